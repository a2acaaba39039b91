"""A small study with everything a figure must draw: a crash, a held trial, a running one, and hostile words.

node "<b>n</b>" has slots 0 and 1, node "m" slot 2. Trial 0 runs on slot 0, trial 1 crashes once on slot 1 and is
stopped, trial 2 is held on slot 2, trial 3 runs on slot 1 to no end; the clock stands at 20 s.
"""

import pandas as pd
import pytest

from workbench.core.protocols import Event, Kind
from workbench.knowledge import Frames, frames_of

HOSTILE = "<script>alert(1)</script>"


def _run(at: float, trial: int, lr: float, net: str) -> Event:
    config = {"lr": lr, "net": net, HOSTILE: 1}
    return Event(Kind.RUN, at, trial, 0, None, {"config": config, "parent": None, "seed": trial})


def _begun(at: float, trial: int, phase: int, slot: int) -> Event:
    return Event(Kind.PHASE_STARTED, at, trial, phase, slot)


def _ended(at: float, trial: int, phase: int, slot: int, score: float) -> Event:
    return Event(Kind.PHASE_ENDED, at, trial, phase, slot, {"score": score, "metrics": {"score": score, "frames": 100}})


def _judged(at: float, trial: int, phase: int, verdict: str, mode: str) -> Event:
    return Event(Kind.DECISION, at, trial, phase, None, {"verdict": verdict, "mode": mode, "rank": 0.25})


EVENTS = [
    Event(Kind.STUDY_STARTED, 0.0),
    Event(Kind.SLOT_JOINED, 0.0, slot=0, data={"node": "<b>n</b>"}),
    Event(Kind.SLOT_JOINED, 0.0, slot=1, data={"node": "<b>n</b>"}),
    Event(Kind.SLOT_JOINED, 2.0, slot=2, data={"node": "m"}),
    _run(0.0, 0, 1e-4, "small"),
    _run(0.0, 1, 1e-3, HOSTILE),
    _run(2.0, 2, 1e-2, "small"),
    _begun(0.0, 0, 0, 0),
    _begun(0.0, 1, 0, 1),
    _begun(2.0, 2, 0, 2),
    Event(Kind.PHASE_FAILED, 4.0, 1, 0, 1, {"error": HOSTILE}),
    _begun(5.0, 1, 0, 1),
    _ended(8.0, 2, 0, 2, 3.0),
    _judged(8.0, 2, 0, "hold", "rung"),
    _ended(10.0, 0, 0, 0, 1.0),
    _judged(10.0, 0, 0, "continue", "collecting"),
    _begun(10.0, 0, 1, 0),
    _ended(11.0, 1, 0, 1, 0.5),
    _judged(11.0, 1, 0, "stop", "selecting"),
    _run(12.0, 3, 1e-5, "large"),
    _begun(12.0, 3, 0, 1),
    _ended(20.0, 0, 1, 0, 5.0),
    _judged(20.0, 0, 1, "stop", "finished"),
]

POINTS = [(1, 0, 0, 5.0, "score", 0.5), (2, 3, 0, 14.0, "score", 0.2), (3, 3, 0, 16.0, "score", 0.4)]


@pytest.fixture
def frames() -> Frames:
    return frames_of(EVENTS, pd.DataFrame(POINTS, columns=["seq", "trial", "phase", "at_s", "name", "value"]))


@pytest.fixture
def nothing() -> Frames:
    """A study of which nothing has been logged yet."""
    return frames_of([])


@pytest.fixture
def curves() -> pd.DataFrame:
    """The curves of that study, as the analysis gives them."""
    rows = [(0, 0, 5.0, 5.0, 0.5, False), (0, 0, 10.0, 10.0, 1.0, True), (0, 1, 20.0, 20.0, 5.0, True)]
    rows += [(1, 0, 11.0, 6.0, 0.5, True), (2, 0, 8.0, 6.0, 3.0, True)]
    rows += [(3, 0, 14.0, 2.0, 0.2, False), (3, 0, 16.0, 4.0, 0.4, False)]
    return pd.DataFrame(rows, columns=["trial", "phase", "at_s", "x", "score", "phase_end"])


@pytest.fixture
def survival() -> pd.DataFrame:
    """What became of its trials, as the analysis gives it."""
    rows = [(0, 4, 3, 2, 1, 0, 0, 1, "selecting"), (1, 1, 1, 0, 0, 1, 0, 0, "finished")]
    names = ["phase", "began", "completed", "continued", "stopped", "finished", "failed", "running", "mode"]
    return pd.DataFrame(rows, columns=names)
