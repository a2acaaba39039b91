from pathlib import Path

import pytest

from tests.viz.figures.conftest import EVENTS, POINTS
from workbench.core.protocols import Event, Kind
from workbench.knowledge import StudyLog

SPEC = {"scheduler": {"kind": "hypertrick", "n_trials": 4, "n_phases": 2, "eviction_rate": 0.25}}
NAME = "<script>alert(1)<script>"


def in_order() -> list[Event]:
    """The small study's events, with the points inside phases where they were logged."""
    points = [Event(Kind.PROGRESS, at, trial, phase, data={"metrics": {name: value, "frames": 200.0 * at}})
              for _, trial, phase, at, name, value in POINTS]  # fmt: skip
    return sorted([*EVENTS, *points], key=lambda event: event.at)


@pytest.fixture
def db(tmp_path) -> Path:
    return tmp_path / "kb.db"


@pytest.fixture
def log(db):
    """A writer of the study whose log is still empty."""
    writer = StudyLog(db, NAME, SPEC)
    yield writer
    writer.close()
