"""How fast the running trials go, over the study's clock: rates summed, lags and queues averaged over trials."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.viz.dashboard.feed import READ

SUMMED = ("frames_per_s", "pps", "tps")
AVERAGED = ("policy_lag_mean", "prediction_queue", "training_queue")
NAMES = (*SUMMED, *AVERAGED)
MOST = 400  # samples; then every two become one

Sample = list[float | None]
"""Seconds on the study's clock, then a value a name in `NAMES`; None where no running trial has said."""

Floats = npt.NDArray[np.float64]

_FRAMES = READ.index("frames")
_COLUMN = np.array([NAMES.index(name) if name in NAMES else -1 for name in READ])
_FRAMES_AT = NAMES.index("frames_per_s")


class Rates:
    """Samples of what the running trials last reported, at equal steps of time that double as the study goes on."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self._step_s = 1.0
        self._next_s = 1.0
        self._sent = 0
        self._on: set[int] = set()  # trials on a slot: only theirs count
        self._joined: set[int] = set()  # on a slot at some time since the last points
        self._left: list[tuple[int, float]] = []  # trials that left theirs since, and when
        self._last = np.empty((0, len(NAMES)))  # by trial, what it last said; NaN: nothing
        self._frames = np.empty((0, 3))  # by trial: frames, at_s, frames a second
        self._sum, self._count = np.zeros(len(NAMES)), np.zeros(len(NAMES))

    def join(self, trial: int) -> None:
        """A trial is put on a slot, or begins its next phase there."""
        self._on.add(trial)
        self._joined.add(trial)

    def drop(self, trial: int, at_s: float) -> None:
        """A trial is on no slot any more: it does nothing."""
        if trial in self._on:
            self._on.remove(trial)
            self._left.append((trial, at_s))

    def take(self, points: npt.NDArray[Any], until_s: float) -> None:
        """Take in metrics, of type `POINT`, after the events read with them; the clock stands at `until_s`."""
        most = max([*self._joined, -1]) + 1
        self._last, self._frames = _grown(self._last, most), _grown(self._frames, most)
        there = np.zeros(most + 1, bool)
        there[list(self._joined)] = True
        told = points[there[np.minimum(points["trial"], most)]]
        column = _COLUMN[told["name"]]
        plain, column = told[column >= 0], column[column >= 0]
        left = np.array(self._left, float).reshape(-1, 2)
        gone = len(NAMES)
        changes = [
            np.column_stack([plain["trial"], column, plain["at"], plain["value"]]),
            self._paces(told[told["name"] == _FRAMES]),
            np.column_stack([left[:, 0].repeat(gone), np.tile(np.arange(gone), len(left)), left[:, 1].repeat(gone),
                             np.full(len(left) * gone, np.nan)]),
        ]  # fmt: skip
        self._sample(np.concatenate(changes), until_s)
        self._frames[left[:, 0].astype(int)] = np.nan
        self._left.clear()
        self._joined = set(self._on)

    @property
    def frames_per_s(self) -> float:
        """Of all running trials, as they last reported."""
        return float(self._sum[_FRAMES_AT])

    def changes(self) -> tuple[bool, list[Sample]]:
        """Give the samples viewers lack, and whether they must forget those they have; take them as sent."""
        anew, new = self._sent == 0, self.samples[self._sent :]
        self._sent = len(self.samples)
        return anew, new

    def _paces(self, points: npt.NDArray[Any]) -> Floats:
        """Turn frames, counted since a trial began, into frames a second: trial, column, at_s, value, shape [n, 4]."""
        p = points[np.lexsort((points["at"], points["trial"]))]
        trial = p["trial"].astype(int)
        begins = np.r_[True, trial[1:] != trial[:-1]][: len(p)]
        now = np.column_stack([p["value"], p["at"]])
        before = np.where(begins[:, None], self._frames[trial, :2], np.roll(now, 1, axis=0))
        grown, seconds = (now - before).T
        good = (seconds > 0) & (grown >= 0)  # they fall when a trial goes back to its checkpoint
        pace = np.divide(grown, seconds, out=np.where(begins, self._frames[trial, 2], np.nan), where=good)
        known = np.maximum.accumulate(np.where(good | begins, np.arange(len(p)), 0)) if len(p) else np.arange(0)
        pace = pace[known]  # else as before
        self._frames[trial] = np.column_stack([now, pace])  # the last of a trial stays
        return np.column_stack([trial, np.full(len(p), _FRAMES_AT), p["at"], pace])

    def _sample(self, changes: Floats, until_s: float) -> None:
        """Let the clock run to `until_s` through changes (trial, column, at_s, value; NaN: says nothing any more)."""
        trial, column, at, value = changes[np.lexsort((np.isnan(changes[:, 3]), changes[:, 2], *changes[:, 1::-1].T))].T
        trial, column = trial.astype(int), column.astype(int)
        begins = np.r_[True, (trial[1:] != trial[:-1]) | (column[1:] != column[:-1])][: len(trial)]
        before = np.where(begins, self._last[trial, column], np.roll(value, 1))
        self._last[trial, column] = value
        while len(self.samples) + (until_s - self._next_s) / self._step_s > MOST:
            self._halve()
        due = np.arange(self._next_s, until_s + self._step_s * 1e-9, self._step_s)
        place = (np.searchsorted(due, at, side="right"), column)
        sums, counts = np.zeros((len(due) + 1, len(NAMES))), np.zeros((len(due) + 1, len(NAMES)))
        sums[0], counts[0] = self._sum, self._count
        says, said = np.isfinite(value), np.isfinite(before)
        np.add.at(sums, place, np.where(says, value, 0.0) - np.where(said, before, 0.0))
        np.add.at(counts, place, says * 1.0 - said)
        sums, counts = sums.cumsum(axis=0), counts.cumsum(axis=0)
        for at_s, total, known in zip(due, sums, counts, strict=False):
            if known.any():
                self.samples.append([round(float(at_s), 1), *map(_value, NAMES, total, known)])
        self._sum, self._count = np.where(counts[-1] > 0, sums[-1], 0.0), counts[-1]
        if len(due):
            self._next_s = float(due[-1]) + self._step_s

    def _halve(self) -> None:
        pairs = zip(self.samples[::2], self.samples[1::2], strict=False)
        self.samples = [[a[0], *map(_mean, a[1:], b[1:])] for a, b in pairs]
        self._step_s *= 2
        self._sent = 0


def _grown(table: Floats, rows: int) -> Floats:
    """Make room for more trials, of which nothing is known."""
    if rows <= len(table):
        return table
    return np.vstack([table, np.full((max(rows, 2 * len(table)) - len(table), table.shape[1]), np.nan)])


def _value(name: str, total: float, known: float) -> float | None:
    if not known:
        return None
    return float(f"{total / (1 if name in SUMMED else known):.4g}")


def _mean(a: float | None, b: float | None) -> float | None:
    known = [value for value in (a, b) if value is not None and math.isfinite(value)]
    return sum(known) / len(known) if known else None
