"""Learning curves that grow: the same points as `workbench.analysis.learning_curves`, without starting over."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from workbench.analysis import thin


class Point(NamedTuple):
    """A score: x in seconds of training, and whether it ended its phase."""

    x: float
    score: float
    end: bool


@dataclass
class _Curve:
    points: list[Point] = field(default_factory=list)
    sent: int = 0  # points every viewer has
    phase: int = -1
    started_s: float = 0.0
    begun_at: int = 0  # index of the phase's first point
    before_s: float = 0.0  # seconds trained in earlier phases
    running: bool = False


class Curves:
    """Every trial's learning curve, grown by events and points in order of time.

    What an attempt had reported is dropped when the phase starts again, as in the analysis: viewers are told to
    drop the curve and get it anew.
    """

    def __init__(self) -> None:
        self._of: dict[int, _Curve] = {}
        self._grown: set[int] = set()
        self._dropped: set[int] = set()

    def start(self, trial: int, phase: int, at_s: float) -> None:
        """A phase begins, or begins again after a crash."""
        curve = self._of.setdefault(trial, _Curve())
        if curve.phase == phase and len(curve.points) > curve.begun_at:
            del curve.points[curve.begun_at :]
            if curve.sent > curve.begun_at:
                self._dropped.add(trial)
        curve.phase, curve.started_s, curve.running = phase, at_s, True
        curve.begun_at = len(curve.points)

    def add(self, trial: int, phase: int, at_s: float, score: float) -> None:
        """A score inside a phase; what does not belong to the attempt under way is passed over."""
        curve = self._of.get(trial)
        if curve is not None and curve.running and curve.phase == phase and at_s >= curve.started_s:
            self._append(trial, curve, at_s, score, end=False)

    def end(self, trial: int, phase: int, at_s: float, score: float) -> None:
        """A phase ends with its score."""
        curve = self._of[trial]
        self._append(trial, curve, at_s, score, end=True)
        curve.before_s += at_s - curve.started_s
        curve.running = False

    def changes(self) -> tuple[list[int], npt.NDArray[np.float32]]:
        """Give what viewers lack, and take it as sent.

        Returns
        -------
        dropped : list of int
            Trials whose curve to forget first.
        points : array of float32, shape [n, 4]
            trial, x (s), score, end (0 or 1), each trial's in order.
        """
        for trial in self._dropped:
            self._of[trial].sent = 0
        changed = sorted(self._grown | self._dropped)
        rows = [_rows(trial, self._of[trial].points[self._of[trial].sent :]) for trial in changed]
        dropped = sorted(self._dropped)
        self.take_as_sent()
        return dropped, _stack(rows)

    def all(self, most: int) -> npt.NDArray[np.float32]:
        """Give every curve, thinned to `most` points in all but never below 8 a trial; as `changes`."""
        share = max(8, most // max(1, len(self._of)))
        rows = [_rows(trial, curve.points) for trial, curve in sorted(self._of.items())]
        return _stack([row[_kept(row, share)] for row in rows])

    def take_as_sent(self) -> None:
        """Every viewer has all there is."""
        for trial in self._grown | self._dropped:
            self._of[trial].sent = len(self._of[trial].points)
        self._grown.clear()
        self._dropped.clear()

    def of(self, trial: int) -> list[Point]:
        """One trial's curve."""
        return list(self._of[trial].points) if trial in self._of else []

    def _append(self, trial: int, curve: _Curve, at_s: float, score: float, *, end: bool) -> None:
        curve.points.append(Point(at_s - curve.started_s + curve.before_s, score, end))
        self._grown.add(trial)


def _kept(rows: npt.NDArray[np.float32], share: int) -> npt.NDArray[np.intp]:
    """Thin, but keep the phase ends while they are no more than the share."""
    ends = np.flatnonzero(rows[:, 3])
    kept = thin(rows[:, 2], max(4, share - len(ends)))
    return np.union1d(kept, ends) if len(ends) < share else kept


def _rows(trial: int, points: list[Point]) -> npt.NDArray[np.float32]:
    table = np.empty((len(points), 4), np.float32)
    table[:, 0] = trial
    table[:, 1:] = np.array(points, np.float32).reshape(-1, 3)
    return table


def _stack(rows: list[npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
    return np.concatenate(rows) if rows else np.empty((0, 4), np.float32)
