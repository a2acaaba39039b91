"""One small study, worked by hand: 2 slots on 2 nodes, 3 trials of at most 2 phases, 20 seconds, still running.

slot 0 (node a): trial 0 phase 0 at 0-10 s, phase 1 at 10-20 s, finished.
slot 1 (node b): trial 1 phase 0 at 0-4 s (crash), again at 5-11 s, stopped; trial 2 phase 0 from 12 s, running.
"""

import pandas as pd
import pytest

from tests.events import begun, ended, judged, runs
from workbench.core.protocols import Event, Kind
from workbench.knowledge import Frames, frames_of


def _judged(at: float, trial: int, phase: int, verdict: str, mode: str, reported: int) -> Event:
    return judged(at, trial, phase, verdict, mode, rank=0.0, threshold=0.5, reported=reported, collecting_reports=1.5)


EVENTS = [
    Event(Kind.STUDY_STARTED, 0.0),
    Event(Kind.SLOT_JOINED, 0.0, slot=0, data={"node": "a"}),
    Event(Kind.SLOT_JOINED, 0.0, slot=1, data={"node": "b"}),
    runs(0.0, 0, {"lr": 1e-3, "t_max": 5}, seed=0),
    runs(0.0, 1, {"lr": 1e-2, "t_max": 20}, seed=1),
    begun(0.0, 0, 0, 0),
    begun(0.0, 1, 0, 1),
    Event(Kind.PHASE_FAILED, 4.0, 1, 0, 1, {"error": "killed"}),
    begun(5.0, 1, 0, 1),
    ended(10.0, 0, 0, 0, 1.0, frames=100),
    _judged(10.0, 0, 0, "continue", "collecting", 1),
    begun(10.0, 0, 1, 0),
    ended(11.0, 1, 0, 1, 0.5, frames=100),
    _judged(11.0, 1, 0, "stop", "selecting", 2),
    runs(12.0, 2, {"lr": 1e-4, "t_max": 5}, seed=2),
    begun(12.0, 2, 0, 1),
    ended(20.0, 0, 1, 0, 5.0, frames=100),
    _judged(20.0, 0, 1, "stop", "finished", 1),
]

POINTS = [
    # seq, trial, phase, at_s, name, value
    (1, 1, 0, 2.0, "score", 0.1),  # before the crash: thrown away
    (2, 1, 0, 2.0, "frames", 20.0),
    (3, 0, 0, 5.0, "score", 0.5),
    (4, 0, 0, 5.0, "frames", 50.0),
    (5, 1, 0, 8.0, "score", 0.3),
    (6, 1, 0, 8.0, "frames", 30.0),
    (7, 0, 0, 10.0, "score", 1.0),  # a phase's end stands among the metrics too
    (8, 0, 0, 10.0, "frames", 100.0),
]


@pytest.fixture
def few_shuffles(monkeypatch) -> None:
    """Has scores held against a few shuffles: against 39, which tests of trees ask for, takes longer than all else."""
    monkeypatch.setattr("workbench.analysis.trees._SHUFFLED", 7)


@pytest.fixture
def frames() -> Frames:
    return frames_of(EVENTS, pd.DataFrame(POINTS, columns=["seq", "trial", "phase", "at_s", "name", "value"]))


@pytest.fixture
def nothing() -> Frames:
    """A study of which nothing has been logged yet."""
    return frames_of([])
