"""How fast the running trials go, over the study's clock: rates summed, lags and queues averaged over trials.

No sample asks every trial what it said last; changes are added up (`_sample`). Trial 0 says 3 at 0.5 s, trial 1 says 5
at 1.2 s, trial 0 leaves its slot at 2.5 s: +3, +5, -3. Of samples due at 1, 2 and 3 s, each change belongs to the first
after it, and their running sum, 3, 8, 5, is what all trials do at each. By 1, 2, 1, how many of them have said
anything, summed likewise, averages are divided.

Frames are told as a count, and made a rate before that (`_paces`). 100 at 2 s and 300 at 4 s are 100 a second, from 4 s
on. 200 at 5 s, fewer than before, tell of a trial that went back to its checkpoint: the rate stays, and 260 at 6 s make
it 60. At 7 s it leaves its slot, a count of NaN: no rate. When it is back, 400 at 9 s have nothing to be counted from;
500 at 10 s are 100 a second again.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.viz.dashboard.feed import FRAMES, READ

SUMMED = ("frames_per_s", "pps", "tps")
AVERAGED = ("policy_lag_mean", "prediction_queue", "training_queue")
NAMES = (*SUMMED, *AVERAGED)
MOST = 400  # samples; then every two become one

Sample = list[float | None]
"""Seconds on the study's clock, then a value a name in `NAMES`; None where no running trial has said."""

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

_COLUMN = np.array([*(NAMES.index(name) if name in NAMES else -1 for name in READ), -1])  # by name; of others the last
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

    def drop_all(self, at_s: float) -> None:
        """No trial is on a slot any more: their driver has gone."""
        for trial in sorted(self._on):
            self.drop(trial, at_s)

    def take(self, points: npt.NDArray[Any], until_s: float) -> None:
        """Take in metrics, of type `POINT`, after the events read with them; the clock stands at `until_s`."""
        most = max(self._joined, default=-1) + 1
        self._last, self._frames = _grown(self._last, most), _grown(self._frames, most)
        there = np.zeros(most + 1, bool)
        there[list(self._joined)] = True
        trial = np.minimum(points["trial"], most)
        on = there[trial]
        trial, name, at, value = trial[on].astype(np.intp), points["name"][on], points["at"][on], points["value"][on]
        counted, column = name == FRAMES, _COLUMN[name]
        plain = column >= 0
        left = np.array([number for number, _ in self._left], np.intp)
        left_at = np.array([at_s for _, at_s in self._left], float)
        nothing = np.full(len(left), np.nan)  # its frames: it is not paced over the time until it is back
        of_frames = ((trial[counted], left), (at[counted], left_at), (value[counted], nothing))
        paced, paced_at, paces = self._paces(*map(np.concatenate, of_frames))
        keys = (
            _keys(trial[plain], column[plain]),
            _keys(paced, _FRAMES_AT),
            _keys(left[:, None], np.arange(len(NAMES))).ravel(),
        )
        times = at[plain], paced_at, left_at.repeat(len(NAMES))
        values = value[plain], paces, nothing.repeat(len(NAMES))
        self._sample(np.concatenate(keys), np.concatenate(times), np.concatenate(values), until_s)
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

    def _paces(self, trial: Indices, at: Floats, frames: Floats) -> tuple[Indices, Floats, Floats]:
        """Turn frames, counted since a trial began, into frames a second; all of shape [n], put in order.

        NaN stands where it left its slot: what comes next is counted from its next report.
        """
        order = np.lexsort((at, trial))
        trial, at, frames = trial[order], at[order], frames[order]
        begins = _begins(trial)
        known = self._frames[trial[begins]].T
        seconds, grown = at - _before(at, begins, known[1]), frames - _before(frames, begins, known[0])
        good = (seconds > 0) & (grown >= 0) | np.isnan(frames)  # they fall when a trial goes back to its checkpoint
        pace = _before(np.full(len(at), np.nan), begins, known[2])
        np.divide(grown, seconds, out=pace, where=good)
        pace = pace[np.maximum.accumulate((good | begins) * np.arange(len(at)))]  # else as before
        self._frames[trial] = np.column_stack([frames, at, pace])  # the last of a trial stays
        return trial, at, pace

    def _sample(self, key: Indices, at: Floats, value: Floats, until_s: float) -> None:
        """Let the clock run to `until_s` through changes of what `key` names; NaN, given last: it says nothing more."""
        order = np.lexsort((at, key))
        key, at, value = key[order], at[order], value[order]
        begins, last = _begins(key), self._last.reshape(-1)
        before = _before(value, begins, last[key[begins]])
        last[key] = value
        while len(self.samples) + (until_s - self._next_s) / self._step_s > MOST:
            self._halve()
        due = np.arange(self._next_s, until_s + self._step_s * 1e-9, self._step_s)
        place = _keys(np.searchsorted(due, at, side="right"), key % len(NAMES))
        says, said = np.isfinite(value), np.isfinite(before)
        grown = np.where(says, value, 0.0) - np.where(said, before, 0.0)
        table = (len(due) + 1, len(NAMES))
        of = (np.bincount(place, by, table[0] * table[1]) for by in (grown, says * 1.0 - said))
        sums, counts = (total.astype(float).reshape(table) for total in of)
        sums[0] += self._sum
        counts[0] += self._count
        sums, counts = sums.cumsum(axis=0), counts.cumsum(axis=0)
        for at_s, total, known in zip(due, sums, counts, strict=False):
            if known.any() or self.samples:  # where nothing runs later on, there is a gap and no line across it
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


def _keys(trial: Indices, column: Indices | int) -> Indices:
    """Number what a trial says in a column."""
    return trial * len(NAMES) + column


def _begins(of: Indices) -> npt.NDArray[np.bool_]:
    """Tell where a stretch of equal numbers begins."""
    begins = np.ones(len(of), bool)
    np.not_equal(of[1:], of[:-1], out=begins[1:])
    return begins


def _before(values: Floats, begins: npt.NDArray[np.bool_], first: Floats) -> Floats:
    """Give what stood before each value; before the first of each stretch, `first`."""
    before = np.empty(len(values))
    before[1:] = values[:-1]
    before[begins] = first
    return before


def _value(name: str, total: float, known: float) -> float | None:
    if not known:
        return None
    return float(f"{total / (1 if name in SUMMED else known):.4g}")


def _mean(a: float | None, b: float | None) -> float | None:
    known = [value for value in (a, b) if value is not None and math.isfinite(value)]
    return sum(known) / len(known) if known else None
