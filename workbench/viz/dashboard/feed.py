"""A study's log as it grows: what is new since the last look."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from workbench.core.protocols import Event
from workbench.knowledge import KnowledgeBase, holder_of, lock_path
from workbench.knowledge.reader import POINT, Seen

READ = ("score", "frames", "pps", "tps", "policy_lag_mean", "prediction_queue", "training_queue")
SCORE, FRAMES = READ.index("score"), READ.index("frames")

_AT_ONCE = 20_000  # points
NO_POINTS = np.empty(0, POINT)


class News(NamedTuple):
    """Events and metric points of one stretch of the log, each in the order they were logged."""

    events: list[Event]
    points: npt.NDArray[Any] = NO_POINTS
    """Of type `POINT`; ``name`` is an index into `READ`, -1 of other metrics."""
    more: bool = False
    """Whether points are left that these events already explain: of a long log they come bit by bit."""


def joined(parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Put stretches of points together; one alone stays as it is, since fields take long to join."""
    full = [points for points in parts if len(points)]
    return full[0] if len(full) == 1 else np.concatenate([NO_POINTS, *full])


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
        self._lock = lock_path(self._kb.path, name)  # it is looked at twice a second: finding its name takes longer
        self._events: Seen | None = None
        self._metrics = 0
        self._was_driven = False  # before the last events were read

    @property
    def spec(self) -> dict[str, Any]:
        """What was set out to run."""
        return self._study.spec

    @property
    def n_events(self) -> int:
        """Events logged so far."""
        return self._study.n_events

    @property
    def driven(self) -> bool:
        """Whether somebody drives the study, or did just before `news` read it: who leaves has a last word."""
        return self._was_driven or holder_of(self._lock) is not None

    def news(self) -> News:
        """Read what has been logged since the last call: all events, and of the points no more than a glance takes.

        Metrics are read first, so that the events that explain them are never missing. A call that fails has read
        nothing: the next one gives all of it.
        """
        self._was_driven = holder_of(self._lock) is not None
        points, metrics, more = self._study.points(READ, self._metrics, _AT_ONCE)
        events, self._events = self._study.events_since(self._events)
        self._metrics = metrics
        return News(events, points, more)

    def close(self) -> None:
        """Close the connection."""
        self._kb.close()
