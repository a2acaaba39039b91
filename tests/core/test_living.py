"""Which slots live, and when their lack is told."""

from types import SimpleNamespace

import pytest

from workbench.core.ledger import Ledger
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


def run(trial: int) -> Event:
    return Event(Kind.RUN, 0.0, trial, 0, data={"config": {}, "seed": 0, "parent": None})


def phase(kind: Kind, trial: int, slot: int, **data: object) -> Event:
    return Event(kind, 0.0, trial, 0, slot, data)


def decided(trial: int, verdict: str) -> Event:
    return Event(Kind.DECISION, 0.0, trial, 0, data={"verdict": verdict, "mode": "waiting"})


HELD = [
    BEGUN, joined(0), joined(1), run(0), run(1), phase(Kind.PHASE_STARTED, 0, 0), phase(Kind.PHASE_STARTED, 1, 1),
    phase(Kind.PHASE_ENDED, 0, 0, score=1.0), decided(0, "hold"),
]  # fmt: skip
LEFT_FOR_GOOD = [lost(1), phase(Kind.PHASE_FAILED, 1, 1, why="crash")]
PAUSED = Event(Kind.INTERVENTION, 0.0, data={"request": "a", "action": "pause study", "accepted": True})


@pytest.mark.parametrize(
    ("then", "lacking"),
    [
        ([], False),
        (LEFT_FOR_GOOD, True),
        ([*LEFT_FOR_GOOD, joined(1), phase(Kind.PHASE_STARTED, 1, 1)], False),
        ([*LEFT_FOR_GOOD, decided(0, "continue"), phase(Kind.PHASE_STARTED, 0, 0)], False),
        ([phase(Kind.PHASE_ENDED, 1, 1, score=0.0), decided(1, "stop"), decided(0, "stop")], False),
        ([phase(Kind.PHASE_FAILED, 1, 1, why="error")], False),  # it is tried again by and by: there is a slot
        ([PAUSED, phase(Kind.PHASE_ENDED, 1, 1, score=0.0), decided(1, "continue")], False),
    ],
)
def test_slots_are_too_few_where_all_are_held_and_a_trial_has_lost_its_own(pass_s, then, lacking) -> None:
    slots, ledger = LivingSlots(), Ledger()
    for event in [*HELD, *then]:
        ledger.see(event)
        slots.see(event, ledger.n_in_the_way)
    assert not slots.lacking
    pass_s(20)
    assert slots.lacking is lacking
