"""Learning curves that grow: the same points as `workbench.analysis.learning_curves`, without starting over."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.analysis import thin_curves

Table = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]

_TRIAL, _X, _SCORE, _END, _PHASE = range(5)  # columns of the rows kept; viewers get the first four
_FEWEST = 8  # points of a trial that are kept, however many trials there are
_NEVER = float("inf")


@dataclass(slots=True)
class _Attempt:
    """A phase under way, or one that was; points of its trial and phase in [from_s, to_s) are its own."""

    trial: int
    phase: int
    from_s: float
    to_s: float = _NEVER
    before_s: float = 0.0  # seconds trained in earlier phases
    score: float = 0.0  # that it ended with
    void: bool = False  # lost, and begun again


class LiveCurves:
    """Every trial's learning curve, grown by what is new in the log.

    What an attempt had reported is dropped when the phase starts again, as in the analysis: viewers are told to
    drop the curve and get it anew.

    Parameters
    ----------
    most : int
        About the points to keep, thinned so that extremes and phase ends stay, but never below 8 a trial. Four times as
        many may gather before they are thinned.
    """

    def __init__(self, most: int = 60_000) -> None:
        self._most = most
        self._rows = np.empty((0, 5), np.float32)
        self._n = 0  # rows in use
        self._sent = 0  # of these, known to every viewer
        self._under_way: dict[int, _Attempt] = {}  # by trial
        self._attempts: list[_Attempt] = []  # those the next points may belong to
        self._before_s: dict[int, float] = {}  # seconds trained in phases that ended, by trial
        self._restarted: set[tuple[int, int]] = set()
        self._dropped: set[int] = set()

    def start(self, trial: int, phase: int, at_s: float) -> None:
        """A phase begins, or begins again after a crash."""
        earlier = self._under_way.get(trial)
        if earlier is not None:
            earlier.to_s = at_s
            if earlier.phase == phase:
                earlier.void = True
                self._restarted.add((trial, phase))
        self._under_way[trial] = attempt = _Attempt(trial, phase, at_s, before_s=self._before_s.get(trial, 0.0))
        self._attempts.append(attempt)

    def end(self, trial: int, phase: int, at_s: float, score: float) -> None:
        """A phase ends with its score."""
        attempt = self._under_way.get(trial)
        if attempt is None or attempt.phase != phase:
            return
        attempt.to_s, attempt.score = at_s, score
        self._before_s[trial] = attempt.before_s + at_s - attempt.from_s
        del self._under_way[trial]

    def take(self, points: npt.NDArray[Any]) -> None:
        """Take in scores, of type `POINT`, after the events that were read with them."""
        self._forget_restarted()
        if len(points) or any(attempt.to_s < _NEVER for attempt in self._attempts):
            self._append(_rows(points, self._attempts))
        self._attempts = list(self._under_way.values())
        if self._n - self._sent > 4 * self._most:
            self._keep([self._rows[: self._sent], self._thinned(self._rows[self._sent : self._n])])
        if self._sent > 4 * self._most:
            rest = self._rows[self._sent : self._n].copy()
            old = self._thinned(self._rows[: self._sent])
            self._sent = len(old)
            self._keep([old, rest])

    def changes(self) -> tuple[list[int], Table]:
        """Give what viewers lack, and take it as sent.

        Returns
        -------
        dropped : list of int
            Trials whose curve to forget first.
        points : array of float32, shape [n, 4]
            trial, x (s), score, end (0 or 1), each trial's in order.
        """
        known, new = self._rows[: self._sent], self._rows[self._sent : self._n]
        dropped = sorted(self._dropped)
        again = known[np.isin(known[:, _TRIAL], dropped)] if dropped else known[:0]
        self.take_as_sent()
        rows = np.concatenate([again, new])[:, :_PHASE]
        return dropped, rows[np.argsort(rows[:, _TRIAL], kind="stable")]

    def all(self, most: int | None = None) -> Table:
        """Give every curve, thinned to about `most` points in all (those kept anyway, if not given); as `changes`."""
        return self._thinned(self._rows[: self._n], most)[:, :_PHASE]

    def take_as_sent(self) -> None:
        """Every viewer has all there is."""
        self._sent = self._n
        self._dropped.clear()

    def of(self, trial: int) -> Table:
        """One trial's curve: x (s), score, end (0 or 1), shape [n, 3]."""
        rows = self._rows[: self._n]
        return rows[rows[:, _TRIAL] == trial, _X:_PHASE]

    def _forget_restarted(self) -> None:
        """Take out what attempts reported that have begun again since, and note whose curves viewers must forget."""
        for trial, phase in self._restarted:
            rows = self._rows[: self._n]
            lost = (rows[:, _TRIAL] == trial) & (rows[:, _PHASE] == phase)
            if not lost.any():
                continue
            if lost[: self._sent].any():
                self._dropped.add(trial)
            self._sent -= int(lost[: self._sent].sum())
            self._keep([rows[~lost]])
        self._restarted.clear()

    def _append(self, rows: Table) -> None:
        need = self._n + len(rows)
        if need > len(self._rows):
            grown = np.empty((max(1024, need, 2 * len(self._rows)), 5), np.float32)
            grown[: self._n] = self._rows[: self._n]
            self._rows = grown
        self._rows[self._n : need] = rows
        self._n = need

    def _keep(self, parts: list[Table]) -> None:
        self._rows = np.concatenate(parts)
        self._n = len(self._rows)

    def _thinned(self, rows: Table, most: int | None = None) -> Table:
        """Sort rows by trial and thin each one's, keeping its phase ends while they are no more than its share."""
        rows = rows[np.argsort(rows[:, _TRIAL], kind="stable")]
        trials, of, count = np.unique(rows[:, _TRIAL], return_inverse=True, return_counts=True)
        share = max(_FEWEST, (self._most if most is None else most) // max(1, len(trials)))
        ends = rows[:, _END] > 0
        few = np.bincount(of, ends, len(trials)) <= share / 2
        chosen = (ends & few[of]) | (count <= share)[of]
        chosen[thin_curves(of, rows[:, _X], rows[:, _SCORE], max(4, share // 2))] = True
        return rows[chosen]


def _rows(points: npt.NDArray[Any], attempts: list[_Attempt]) -> Table:
    """Give the points that belong to an attempt, and the attempts' ends, as rows in order of time."""
    told = sorted((a.trial, a.from_s, a.phase, a.to_s, a.before_s, a.score) for a in attempts if not a.void)
    if not told:
        return np.empty((0, 5), np.float32)
    trial, from_s, phase, to_s, before_s, score = np.array(told).T
    owner = _begun_last(trial, from_s, points["trial"], points["at"])
    own = (points["trial"] == trial[owner]) & (points["phase"] == phase[owner])
    own &= (points["at"] >= from_s[owner]) & (points["at"] < to_s[owner])
    ended = np.flatnonzero(to_s < _NEVER)
    at = np.concatenate([to_s[ended], points["at"][own]])
    order = np.argsort(at, kind="stable")  # both parts are nearly in order, so this is quick
    owner = np.concatenate([ended, owner[own]])[order]
    rows = np.empty((len(at), 5), np.float32)
    rows[:, _TRIAL], rows[:, _PHASE] = trial[owner], phase[owner]
    rows[:, _X] = at[order] - from_s[owner] + before_s[owner]
    rows[:, _SCORE] = np.concatenate([score[ended], points["value"][own]])[order]
    rows[:, _END] = order < len(ended)
    return rows


def _begun_last(trial: Floats, from_s: Floats, of_trial: npt.NDArray[np.integer], at: Floats) -> npt.NDArray[np.intp]:
    """Find for each point which of the attempts, in order of trial and time, had begun last; not always its trial's."""
    per_trial = 2.0 ** np.ceil(np.log2(1.0 + max(from_s.max(), at.max(initial=0.0))))  # a clock for all trials in a row
    owner: npt.NDArray[np.intp] = (
        np.searchsorted(trial * per_trial + from_s, of_trial * per_trial + at, side="right") - 1
    )
    owner -= at < from_s[owner]  # two instants that the long clock could not tell apart
    return np.maximum(owner, 0, out=owner)
