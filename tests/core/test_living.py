"""Which slots live, and when their lack is told."""

from types import SimpleNamespace

import pytest

from workbench.core.living import LivingSlots
from workbench.core.protocols import Event, Kind

BEGUN = Event(Kind.STUDY_STARTED, 0.0)


def joined(slot: int) -> Event:
    return Event(Kind.SLOT_JOINED, 0.0, slot=slot, data={"node": "a"})


def lost(slot: int) -> Event:
    return Event(Kind.SLOT_LOST, 0.0, slot=slot, data={"node": "a"})


@pytest.fixture
def pass_s(monkeypatch):
    """Lets seconds pass on the clock here."""
    clock = SimpleNamespace(at=1000.0)
    monkeypatch.setattr("workbench.core.living.time", SimpleNamespace(monotonic=lambda: clock.at))
    return lambda seconds: setattr(clock, "at", clock.at + seconds)


@pytest.mark.parametrize("seen", [[BEGUN], [BEGUN, joined(0), joined(1), lost(0), lost(1)]])
def test_a_study_without_a_slot_lacks_one_once_a_cluster_had_time_to_bring_one_up(pass_s, seen) -> None:
    slots = LivingSlots()
    for event in seen:
        slots.see(event)
        pass_s(10)
    assert not slots.lacking
    pass_s(10)
    assert slots.lacking
    slots.see(joined(0))
    assert (len(slots), slots.lacking) == (1, False)


@pytest.mark.parametrize(
    "seen", [[], [BEGUN, joined(0), joined(1), lost(0)], [BEGUN, Event(Kind.STUDY_ENDED, 0.0)],
             [BEGUN, joined(0), Event(Kind.STUDY_INTERRUPTED, 0.0)]]
)  # fmt: skip
def test_nothing_lacks_a_study_that_has_a_slot_or_is_not_under_way(pass_s, seen) -> None:
    slots = LivingSlots()
    for event in seen:
        slots.see(event)
    pass_s(1000)
    assert not slots.lacking


def test_a_driver_that_begins_has_no_slot_of_the_one_before(pass_s) -> None:
    slots = LivingSlots()
    for event in (BEGUN, joined(0), Event(Kind.STUDY_RESUMED, 0.0)):
        slots.see(event)
    pass_s(20)
    assert (len(slots), slots.lacking) == (0, True)
