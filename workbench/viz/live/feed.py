"""A study's log as it grows: what is new since the last look, in order of time."""

from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from workbench.core.protocols import Event
from workbench.knowledge import KnowledgeBase

SCORE, FRAMES = "score", "frames"
READ = (SCORE, FRAMES, "pps", "tps", "policy_lag_mean", "prediction_queue", "training_queue")


class MetricPoint(NamedTuple):
    """One metric value inside a phase; at_s in seconds on the study's clock."""

    trial: int
    phase: int
    at: float
    name: str
    value: float


class Feed:
    """Reads one study through a connection of its own that cannot write.

    Parameters
    ----------
    db : path
        The knowledge base.
    name : str
        The study.

    Raises
    ------
    DatabaseError, StudyError
        There is no such file, or no such study in it.
    """

    def __init__(self, db: str | Path, name: str) -> None:
        self._kb = KnowledgeBase(db)
        try:
            self._study = self._kb[name]
        except BaseException:
            self._kb.close()
            raise
        self._events = 0
        self._metrics = 0

    @property
    def spec(self) -> dict[str, Any]:
        """What was set out to run."""
        return self._study.spec

    def news(self) -> list[Event | MetricPoint]:
        """Read what has been logged since the last call, in order of time.

        Metrics are read first, so that the events that explain them are never missing.
        """
        points = list(self._points())
        events, self._events = self._study.events_since(self._events)
        return list(merged(events, points))

    def close(self) -> None:
        """Close the connection."""
        self._kb.close()

    def _points(self) -> Iterator[MetricPoint]:
        frame = self._study.metrics(self._metrics, names=READ)
        if len(frame):
            self._metrics = int(frame["seq"].iloc[-1])
            columns = (frame[column].tolist() for column in ("trial", "phase", "at_s", "name", "value"))
            yield from map(MetricPoint, *columns)


def merged(events: Sequence[Event], points: Sequence[MetricPoint]) -> Iterator[Event | MetricPoint]:
    """Put points between events by time, and after the events of the same instant; events keep their order."""
    waiting = iter(sorted(points, key=attrgetter("at")))
    point = next(waiting, None)
    for event in events:
        while point is not None and point.at < event.at:
            yield point
            point = next(waiting, None)
        yield event
    if point is not None:
        yield point
        yield from waiting
