import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from tests.viz.figures.conftest import EVENTS, POINTS
from workbench.core.protocols import Event, Kind
from workbench.knowledge import RecordedStudy, StudyLog

SPEC = {"scheduler": {"kind": "hypertrick", "n_trials": 4, "n_phases": 2, "eviction_rate": 0.25}}
NAME = "<script>alert(1)<script>"


def in_order() -> list[Event]:
    """The small study's events, with the points inside phases where they were logged."""
    points = [Event(Kind.PROGRESS, at, trial, phase, data={"metrics": {name: value, "frames": 200.0 * at}})
              for _, trial, phase, at, name, value in POINTS]  # fmt: skip
    return sorted([*EVENTS, *points], key=lambda event: event.at)


def slots_drawn(page: str) -> str:
    """Give the SVG of the picture in a stored page."""
    return base64.b64decode(page.split("data:image/svg+xml;base64,")[1].split("'")[0]).decode()


@contextmanager
def ends_while_read(log) -> Iterator[None]:
    """Let a study's driver end just after a view has read its events."""
    real = RecordedStudy.events_since

    def ends(study, seen):
        read = real(study, seen)
        log.append([Event(Kind.STUDY_ENDED, 20.0)])
        log.close()
        return read

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RecordedStudy, "events_since", ends)
        yield


class Telling:
    """What a live view says, kept: to be mixed into it, and waited for where its thread speaks."""

    def __init__(self, *args, **settings):
        self.said = []
        self.heard = threading.Condition()
        super().__init__(*args, **settings)

    def send(self, content, buffers=None):
        with self.heard:
            self.said.append({**content, **(json.loads(buffers[-1]) if buffers else {})})
            self.heard.notify_all()

    def until(self, kind, **told):
        def found():
            return [m for m in self.said if m["type"] == kind and told.items() <= m.items()]

        with self.heard:
            assert self.heard.wait_for(found, timeout=120)
            return found()[-1]


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """The clock by which a study's goes on between its events, which stands unless a test moves it."""
    clock = SimpleNamespace(at=0.0)
    monkeypatch.setattr("workbench.core.clock.time", SimpleNamespace(monotonic=lambda: clock.at))
    return clock


@pytest.fixture
def in_the_east(monkeypatch) -> Iterator[str]:
    """Live where clocks are ahead, and give by how much."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "IST-05:30")
        time.tzset()
        yield "+0530"
    time.tzset()


@pytest.fixture
def log(db):
    """A writer of the study whose log is still empty."""
    writer = StudyLog(db, NAME, SPEC)
    yield writer
    writer.close()
