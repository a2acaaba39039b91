"""A study's clock between what is logged of it."""

from types import SimpleNamespace

import pytest

from workbench.core.clock import SeenClock
from workbench.core.protocols import Event, Kind

JOINED = Event(Kind.SLOT_JOINED, 0.0, slot=0, data={"node": "a"})


@pytest.fixture
def here(monkeypatch):
    """The clock here."""
    clock = SimpleNamespace(at=1000.0)
    monkeypatch.setattr("workbench.core.clock.time", SimpleNamespace(monotonic=lambda: clock.at))
    return clock


@pytest.fixture
def seen():
    clock = SeenClock()
    clock.see(Event(Kind.STUDY_STARTED, 0.0))
    clock.see(JOINED)
    return clock


def test_it_goes_on_between_events_and_never_back(here, seen) -> None:
    shown = []
    for at, passed in ((10.0, 0), (10.0, 60), (10.0, 1140), (1209.5, 0), (1212.0, 1), (1212.0, 5)):
        here.at += passed
        shown.append(seen.now(at, driven=True))
    assert shown == [10.0, 70.0, 1210.0, 1210.0, 1212.0, 1217.0]  # the word of 1209.5 took half a second


def test_it_stands_until_its_driver_has_slots(here, seen) -> None:
    """A cluster may take minutes to come up, and the driver's clock begins when it has."""
    assert seen.now(10.0, driven=True) == 10.0
    here.at += 60
    seen.see(Event(Kind.STUDY_RESUMED, 20.0))
    assert seen.now(20.0, driven=True) == 20.0
    here.at += 60
    assert seen.now(20.0, driven=True) == 20.0
    seen.see(JOINED)
    here.at += 60
    assert seen.now(20.0, driven=True) == 20.0
    here.at += 60
    assert seen.now(20.0, driven=True) == 80.0


def test_where_nobody_drives_it_is_the_last_that_was_heard(here, seen) -> None:
    seen.now(10.0, driven=True)
    here.at += 600
    assert [seen.now(10.0, driven=driven) for driven in (True, False, True)] == [610.0, 10.0, 10.0]
    seen.see(Event(Kind.STUDY_ENDED, 700.0))
    here.at += 60
    assert seen.now(700.0, driven=True) == 700.0
