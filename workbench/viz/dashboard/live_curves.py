"""Learning curves that grow: the same points as `workbench.analysis.learning_curves`, without starting over.

A phase that is lost and begins again, in seconds of the study's clock:

- Trial 3 begins phase 0 at 10 s: an `_Attempt` of [10, ∞). Its report at 14 s is held, for it is not known yet when
  training began, after the worker's start. The one at 16 s settles it: reports come evenly, so at 2 × 14 - 16 = 12 s.
  The two become rows with x = 2 and x = 4, and viewers are sent them.
- The worker dies, and phase 0 begins again at 20 s. The first attempt ends there and is void, and (3, 0) is noted as
  restarted: the next `take` removes its rows, and as viewers have them, they are told to drop the curve of trial 3.
- Reports at 24 and 26 s belong to the second attempt, which began to train at 22 s: x = 2 and x = 4 once more.
- It ends at 30 s: a row with x = 8 that is marked as an end. Phase 1 counts from these 8 s (`before_s`).
- Trial 5 begins with the weights of trial 3 as they are now: its first phase counts from these 8 s, too.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.analysis import thin_curves
from workbench.analysis.curves import began_by_reports
from workbench.knowledge.reader import POINT
from workbench.viz.dashboard.feed import FRAMES, SCORE, joined

Table = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]

_TRIAL, _X, _SCORE, _END, _FRAMES, _FROM, _PHASE = range(7)  # columns of the rows kept; viewers get all but the last
_FEWEST = 8  # points of a trial that are kept, however many trials there are
_NEVER = float("inf")
_LARGEST = float(np.finfo(np.float32).max)  # beyond it a score has no place on its way to a page


@dataclass(slots=True)
class _Attempt:
    """A phase under way, or one that was; points of its trial and phase in [from_s, to_s) are its own."""

    trial: int
    phase: int
    from_s: float
    to_s: float = _NEVER
    earlier: "_Attempt | None" = None  # the phase that its weights come from, until `before_s` is reckoned
    before_s: float = 0.0  # seconds for which these had been trained
    began_s: float | None = None  # when it began to train; unknown before its second report
    score: float = 0.0  # that it ended with
    frames: float = float("nan")  # likewise
    void: bool = False  # lost, and begun again

    def settle(self, began_s: float) -> None:
        """Take in when training began, as far as reports tell; else it is NaN."""
        if self.earlier is not None:
            self.before_s = self.earlier.trained_s
            self.earlier = None
        if self.began_s is None and not np.isnan(began_s):
            self.began_s = began_s

    @property
    def trained_s(self) -> float:
        """Seconds for which its weights were trained up to its end."""
        return self.before_s + self.to_s - self.trains_from_s

    @property
    def trains_from_s(self) -> float:
        """When it began to train, as far as is known."""
        return self.from_s if self.began_s is None else self.began_s

    @property
    def settled(self) -> bool:
        """Whether its points can be placed."""
        return self.began_s is not None or self.to_s < _NEVER


class LiveCurves:
    """Every trial's learning curve, grown by what is new in the log.

    What an attempt had reported is dropped when the phase starts again, as in the analysis: viewers are told to
    drop the curve and get it anew.

    Parameters
    ----------
    most : int
        About the points to keep beside the ends of phases, thinned so that extremes stay, but never below 8 a trial.
        Four times as many may gather before they are thinned.
    """

    def __init__(self, most: int = 60_000) -> None:
        self._most = most
        self._full = 4 * most  # rows that every viewer knows and that are thinned
        self._rows = np.empty((0, _PHASE + 1), np.float32)
        self._n = 0  # rows in use
        self._sent = 0  # of these, known to every viewer
        self._under_way: dict[int, _Attempt] = {}  # by trial
        self._attempts: list[_Attempt] = []  # those the next points may belong to
        self._order: _Order | None = None  # the same, as arrays; made anew when one begins or ends
        self._ended: dict[int, _Attempt | None] = {}  # by trial, the phase that its weights come from
        self._heard: dict[int, _Attempt | None] = {}  # likewise, as the scheduler knows of them
        self._held = np.empty(0, POINT)  # reports of attempts of which only one is known
        self._restarted: set[tuple[int, int]] = set()
        self._dropped: set[int] = set()
        self._placed = False  # whether points have been taken in; before, viewers get the ends of phases

    def inherit(self, trial: int, parent: int) -> None:
        """A trial is to begin with another's weights, as the scheduler knows of them."""
        self._ended[trial] = self._heard[trial] = self._heard.get(parent)

    def start(self, trial: int, phase: int, at_s: float) -> None:
        """A phase begins, or begins again after a crash."""
        self._order = None
        earlier = self._under_way.get(trial)
        if earlier is not None:
            earlier.to_s = at_s
            if earlier.phase == phase:
                earlier.void = True
                self._restarted.add((trial, phase))
        self._under_way[trial] = attempt = _Attempt(trial, phase, at_s, earlier=self._ended.get(trial))
        self._attempts.append(attempt)

    def end(
        self, trial: int, phase: int, at_s: float, score: float, frames: float = float("nan"), *, own: bool = False
    ) -> None:
        """A phase ends with its score, and the frames counted since the trial began; `own`: that a person asked for."""
        attempt = self._under_way.get(trial)
        if attempt is None or attempt.phase != phase:
            return
        self._order = None
        attempt.to_s, attempt.score, attempt.frames = at_s, score, frames
        self._ended[trial] = attempt
        if not own:
            self._heard[trial] = attempt
        del self._under_way[trial]

    def take(self, points: npt.NDArray[Any]) -> None:
        """Take in points, of type `POINT`, after the events read with them; of other metrics only their times count."""
        if not self._placed:
            self._placed = True
            self._dropped.update(self._ends()[:, _TRIAL].astype(int).tolist())
        self._forget_restarted()
        if self._order is None:
            self._order = _Order(self._attempts)
        if len(points) or len(self._order.ended):
            rows, self._held = _rows(joined([self._held, points]), self._order)
            self._append(rows)
        if len(self._attempts) != len(self._under_way):  # the others have told all they had to
            self._attempts, self._order = list(self._under_way.values()), None
        if self._n - self._sent > 4 * self._most:
            self._keep([self._rows[: self._sent], self._thinned(self._rows[self._sent : self._n])])
        if self._sent > self._full:
            rest = self._rows[self._sent : self._n].copy()
            old = self._thinned(self._rows[: self._sent])
            self._sent = len(old)
            self._full = max(4 * self._most, 2 * self._sent)  # of many phases the ends alone are more, and stay
            self._keep([old, rest])

    def changes(self) -> tuple[list[int], Table]:
        """Give what viewers lack, and take it as sent.

        Returns
        -------
        dropped : list of int
            Trials whose curve to forget first.
        points : array of float32, shape [n, 6]
            trial, x (s), score, end (0 or 1), frames (NaN: not told), where its phase began (s); each trial's in order.
        """
        known, new = self._rows[: self._sent], self._rows[self._sent : self._n]
        dropped = sorted(self._dropped)
        again = known[np.isin(known[:, _TRIAL], dropped)] if dropped else known[:0]
        self.take_as_sent()
        rows = np.concatenate([again, new])[:, :_PHASE]
        return dropped, rows[np.argsort(rows[:, _TRIAL], kind="stable")]

    def all(self, most: int | None = None) -> Table:
        """Give every curve, thinned to about `most` points in all (those kept anyway, if not given); as `changes`."""
        if not self._placed:
            return self._ends()[:, :_PHASE]
        return self._thinned(self._rows[: self._n], most)[:, :_PHASE]

    def take_as_sent(self) -> None:
        """Every viewer has all there is."""
        self._sent = self._n
        self._dropped.clear()

    def _ends(self) -> Table:
        """Give the ends of phases alone, before there are points: each phase counts from where it was put on a slot."""
        order = _Order(self._attempts)
        ended = order.ended
        at, before = {id(None): 0.0}, []  # where each stands at its end: a parent has a lower number than its heirs
        for attempt in (order.live[k] for k in ended):
            before.append(at[id(attempt.earlier)])
            at[id(attempt)] = before[-1] + attempt.to_s - attempt.from_s
        x, one = order.to_s[ended] - order.from_s[ended] + before, np.ones(len(ended))
        rows = [order.trial[ended], x, _told(order.score[ended]), one, order.frames[ended], before, order.phase[ended]]
        return np.column_stack(rows).astype("f4")

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
            grown = np.empty((max(1024, need, 2 * len(self._rows)), _PHASE + 1), np.float32)
            grown[: self._n] = self._rows[: self._n]
            self._rows = grown
        self._rows[self._n : need] = rows
        self._n = need

    def _keep(self, parts: list[Table]) -> None:
        self._rows = np.concatenate(parts)
        self._n = len(self._rows)

    def _thinned(self, rows: Table, most: int | None = None) -> Table:
        """Sort rows by trial and thin each one's, keeping its phase ends: a page counts the phases by them."""
        rows = rows[np.argsort(rows[:, _TRIAL], kind="stable")]
        trials, of, count = np.unique(rows[:, _TRIAL], return_inverse=True, return_counts=True)
        share = max(_FEWEST, (self._most if most is None else most) // max(1, len(trials)))
        chosen = (rows[:, _END] > 0) | (count <= share)[of]
        chosen[thin_curves(of, rows[:, _X], rows[:, _SCORE], max(4, share // 2))] = True
        return rows[chosen]


class _Order:
    """Attempts in order of trial and time, as arrays [n]: while none begins or ends, they stay as they are."""

    def __init__(self, attempts: list[_Attempt]) -> None:
        self.live = sorted((a for a in attempts if not a.void), key=lambda a: (a.trial, a.from_s, a.phase))
        ends = [(a.trial, a.from_s, a.phase, a.to_s, a.score, a.frames, a.before_s, a.trains_from_s) for a in self.live]
        self.trial, self.from_s, self.phase, self.to_s, self.score, self.frames, self.before_s, self.began_s = (
            np.array(ends).reshape(-1, 8).T
        )
        self.ended = np.flatnonzero(self.to_s < _NEVER)
        self.settled = np.array([a.earlier is None and a.began_s is not None for a in self.live], bool)

    def settle(self, owner: npt.NDArray[np.intp], at: Floats) -> None:
        """Place the attempts of which two reports have come; `at` are those of the attempts `owner`."""
        if self.settled.all():
            return
        waits = ~self.settled[owner]
        began = began_by_reports(owner[waits], at[waits], self.from_s).tolist()
        for k in np.flatnonzero(~self.settled).tolist():
            attempt = self.live[k]
            attempt.settle(began[k])
            self.settled[k] = attempt.settled
            self.before_s[k] = attempt.before_s
            self.began_s[k] = attempt.trains_from_s


def _rows(points: npt.NDArray[Any], order: _Order) -> tuple[Table, npt.NDArray[Any]]:
    """Give the scores that belong to an attempt, and the attempts' ends, as rows in order of time; and what must wait.

    What must wait are the reports of attempts of which the second report has not come.
    """
    if not order.live:
        return np.empty((0, _PHASE + 1), np.float32), points[:0]
    trial, from_s, phase, to_s = order.trial, order.from_s, order.phase, order.to_s
    owner = _begun_last(trial, from_s, points["trial"], points["at"])
    own = (points["trial"] == trial[owner]) & (points["phase"] == phase[owner])
    own &= (points["at"] >= from_s[owner]) & (points["at"] < to_s[owner])
    points, owner = points[own], owner[own]
    order.settle(owner, points["at"])
    waits = ~order.settled[owner]
    held, points, owner = points[waits], points[~waits], owner[~waits]
    drawn = (points["name"] == SCORE) | (points["name"] == FRAMES)
    points, owner = points[drawn], owner[drawn]
    shown = points["name"] == SCORE
    frames = _frames_at(points, owner, shown)
    ended = order.ended
    at = np.concatenate([to_s[ended], points["at"][shown]])
    by_time = np.argsort(at, kind="stable")  # both parts are nearly in order, so this is quick
    owners = np.concatenate([ended, owner[shown]])[by_time]
    rows = np.empty((len(at), _PHASE + 1), np.float32)
    rows[:, _TRIAL], rows[:, _PHASE] = trial[owners], phase[owners]
    rows[:, _X] = np.maximum(at[by_time] - order.began_s[owners], 0.0) + order.before_s[owners]
    rows[:, _FROM] = order.before_s[owners]
    rows[:, _SCORE] = _told(np.concatenate([order.score[ended], points["value"][shown]])[by_time])
    rows[:, _END] = by_time < len(ended)
    rows[:, _FRAMES] = np.concatenate([order.frames[ended], frames])[by_time]
    return rows, held


def _told(scores: Floats) -> Floats:
    """Bring scores within what float32 can hold: one that has diverged would leave no axis for the others."""
    return np.clip(scores, -_LARGEST, _LARGEST)


def _frames_at(points: npt.NDArray[Any], owner: npt.NDArray[np.intp], scored: npt.NDArray[np.bool_]) -> Floats:
    """Give the frames that were reported with the points `scored`, beside them in the log; NaN where none were."""
    scores = np.flatnonzero(scored)
    frames = np.full(len(scores), np.nan)
    for step in (1, -1):
        if not np.isnan(frames).any():
            break
        beside = np.maximum(np.minimum(scores + step, len(points) - 1), 0)
        same = (points["name"][beside] == FRAMES) & (points["at"][beside] == points["at"][scores])
        same &= (owner[beside] == owner[scores]) & np.isnan(frames)
        frames[same] = points["value"][beside[same]]
    return frames


def _begun_last(trial: Floats, from_s: Floats, of_trial: npt.NDArray[np.integer], at: Floats) -> npt.NDArray[np.intp]:
    """Find for each point which of the attempts, in order of trial and time, had begun last; not always its trial's."""
    per_trial = 2.0 ** np.ceil(np.log2(1.0 + max(from_s.max(), at.max(initial=0.0))))  # a clock for all trials in a row
    owner: npt.NDArray[np.intp] = (
        np.searchsorted(trial * per_trial + from_s, of_trial * per_trial + at, side="right") - 1
    )
    owner -= at < from_s[owner]  # two instants that the long clock could not tell apart
    return np.maximum(owner, 0, out=owner)
