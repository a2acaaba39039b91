"""What only events change of a study's numbers, kept up to date event by event: survival, occupancy, best scores."""

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from workbench import analysis
from workbench.analysis.occupancy import KIND_OF
from workbench.analysis.survival import COUNTS, FATES, NO_REPORT, fate_after, mode_after
from workbench.core.ledger import FOR_SEEDS, Ledger, TrialState
from workbench.core.protocols import Event, Kind
from workbench.core.size import Size
from workbench.knowledge.frames import FrameReader
from workbench.viz.dashboard.spans import OUTCOMES, SpanTable

Floats = npt.NDArray[np.float64]

_SPENT = [KIND_OF[outcome] for outcome in OUTCOMES]


@dataclass
class Usage:
    """Where the slots' time went up to an instant, and how it goes on until the next event.

    Attributes
    ----------
    at_s : float
        The instant.
    lived, ran, lost, held : float
        Slot-seconds up to it, as `analysis.Occupancy` tells them apart.
    running, holding, alive : int
        Slots that run a phase, hold a trial at a barrier, and live, from then on.
    ended_s : array
        Seconds that each phase took which has ended.
    begun_s : array
        When each phase under way began, seconds on the study's clock.
    """

    at_s: float
    lived: float
    ran: float
    lost: float
    held: float
    running: int
    holding: int
    alive: int
    ended_s: npt.NDArray[np.float64]
    begun_s: npt.NDArray[np.float64]

    def left_s(self, now_s: float, phases_left: tuple[float, float], limit_s: float) -> list[float | None] | None:
        """Estimate how long the study still takes, as `analysis.time_left`; a high end of ``None``: nobody knows."""
        left = analysis.time_left(self.ended_s, now_s - self.begun_s, phases_left, self.alive, limit_s)
        return left and [finite(round(seconds, 1)) for seconds in left]

    def shares(self, now_s: float) -> tuple[float | None, float | None]:
        """Give the shares of slot time occupied and idle up to `now_s`, 0 to 1; ``None`` before any slot has lived."""
        passed = max(0.0, now_s - self.at_s)
        alive = self.lived + passed * self.alive
        if not alive > 0:
            return None, None
        occupied = self.ran + self.lost + passed * self.running
        idle = max(0.0, self.lived - self.ran - self.lost - self.held)
        idle += passed * max(0, self.alive - self.running - self.holding)
        return round(occupied / alive, 4), round(idle / alive, 4)


class SlotTime:
    """The slots' time as `analysis.occupancy` measures it, without starting over.

    Parameters
    ----------
    reader : FrameReader
        Of the study's events.
    spans : SpanTable
        Its spans.
    """

    def __init__(self, reader: FrameReader, spans: SpanTable) -> None:
        self._reader, self._spans = reader, spans
        self._lives: dict[float, list[dict[str, Any]]] = defaultdict(list)  # by slot: its rows, as the reader has them
        self._n_lives = 0
        self._over = dict.fromkeys(_SPENT, 0.0)  # slot-seconds of spans that have ended
        self._ended_s = array("d")

    def take(self, events: Iterable[Event]) -> None:
        """Take in what the reader has read."""
        for life in self._reader.slots[self._n_lives :]:
            self._lives[life["slot"]].append(life)
        self._n_lives = len(self._reader.slots)
        slot, from_s, to_s, outcome = self._spans.take().T
        spent = np.bincount(outcome.astype(int), self._lived(slot, from_s, to_s), len(_SPENT))
        for kind, seconds in zip(_SPENT, spent.tolist(), strict=True):
            self._over[kind] += seconds
        ended = ((e.trial, e.phase) for e in events if e.kind is Kind.PHASE_ENDED)
        self._ended_s.extend(self._reader.phases[key]["wall_s"] for key in ended)  # type: ignore[index]

    def now(self) -> Usage:
        """Give the slots' time up to the last event."""
        at_s, spent = self._reader.ledger.at, dict(self._over)
        living = {life["slot"] for life in self._reader.slots if "lost_s" not in life}
        lived = math.fsum([life.get("lost_s", at_s) - life["joined_s"] for life in self._reader.slots])
        slot, from_s, _, outcome = self._spans.under_way().T
        kinds = [_SPENT[k] for k in outcome.astype(int).tolist()]
        for kind, seconds in zip(kinds, self._lived(slot, from_s, np.full(len(slot), at_s)).tolist(), strict=True):
            spent[kind] += seconds
        ran = np.array([kind == "ran" for kind in kinds], bool)
        running, holding = (len(living.intersection(slot[which].tolist())) for which in (ran, ~ran))
        return Usage(at_s, lived, **spent, running=running, holding=holding, alive=len(living),
                     ended_s=np.array(self._ended_s), begun_s=from_s[ran])  # fmt: skip

    def _lived(self, slot: Floats, from_s: Floats, to_s: Floats) -> Floats:
        """Give the seconds of each stretch during which its slot lived: a death may be noticed late."""
        seconds = to_s - from_s
        lone = ((s, rows[0]) for s, rows in self._lives.items() if len(rows) == 1)
        whole = {s: life["joined_s"] for s, life in lone if "lost_s" not in life}
        since = np.array([whole.get(s, math.inf) for s in slot.tolist()])
        for k in np.flatnonzero(~(since <= from_s)).tolist():  # hardly any
            begun, over, lives = float(from_s[k]), float(to_s[k]), self._lives.get(float(slot[k]), [])
            parts = (min(over, life.get("lost_s", over)) - max(begun, life["joined_s"]) for life in lives)
            seconds[k] = math.fsum(max(0.0, part) for part in parts)
        return seconds


class Fates:
    """What became of the trials in each phase, as `analysis.survival` counts it, and the best scores on the way.

    Trials that confirm others are no part of the search, and of neither.

    Parameters
    ----------
    ledger : Ledger
        Of the same events, one step ahead.

    Attributes
    ----------
    best : list
        At each improvement: seconds, score, trial, phase.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.best: list[list[Any]] = []
        self._counts: dict[str, Counter[int]] = {name: Counter() for name in (*COUNTS, "judged")}
        self._known: set[tuple[str, int, int]] = set()  # count, trial, phase: what counts once
        self._furthest: dict[int, int] = {}  # by trial, the last phase that it began
        self._verdict: dict[tuple[int, int], str] = {}  # by trial and phase
        self._end: dict[int, tuple[str, int | None]] = {}  # of trials that failed or were stopped by a person
        self._failed: list[int] = []
        self._failures: list[str] = []  # of these
        self._mode: dict[int, tuple[str, Mapping[str, Any]]] = {}  # of the last that was judged, and why

    def take(self, event: Event) -> None:
        """Count what an event changes."""
        kind, trial, phase = event.kind, event.trial, event.phase
        if trial is None or (trial in self._ledger and self._ledger.trials[trial].confirms):
            return
        if kind is Kind.PHASE_STARTED and phase is not None:
            self._once("began", trial, phase)
            self._furthest[trial] = max(phase, self._furthest.get(trial, phase))
            if self._verdict.get((trial, phase - 1)) == "waiting":
                self._judge(trial, phase - 1, "continued")
            return
        if kind is Kind.PHASE_ENDED and phase is not None:
            self._once("completed", trial, phase)
            score, sign = float(event.data["score"]), self._ledger.aim.sign
            if sign * score > (sign * self.best[-1][1] if self.best else -math.inf):
                self.best.append([event.at, score, trial, phase])
            return
        self._reopen(trial)
        if kind is Kind.DECISION and phase is not None:
            self._decided(trial, phase, event.data)
        record = self._ledger.trials.get(trial)
        if record is not None and record.state.over:
            self._ended(trial, record.standing, record.mode)

    def survival(self, n_phases: int | None) -> list[dict[str, Any]]:
        """Give the rows of `analysis.survival`, ``None`` where it has NaN."""
        n = max(n_phases or 0, 1 + max(self._counts["began"], default=-1))
        return [self._row(phase) for phase in range(n)]

    def failures(self) -> list[str]:
        """Say of each kind of error which trials failed by it."""
        failed = self._ledger.in_state(TrialState.FAILED)  # those that confirm others, too
        if failed != self._failed:  # hardly ever: the frames take a quarter of a refresh
            failures = [(trial, TrialState.FAILED.value, self._ledger.trials[trial].error) for trial in failed]
            lines = analysis.failure_lines(pd.DataFrame(failures, columns=["trial", "state", "error"], dtype=object))
            self._failed, self._failures = failed, lines
        return self._failures

    def _row(self, phase: int) -> dict[str, Any]:
        row: dict[str, Any] = {"phase": phase, **{name: self._counts[name][phase] for name in COUNTS}}
        row["running"] = max(row["began"] - sum(row[fate] for fate in FATES), 0)
        mode, why = self._mode.get(phase, (None, {}))
        known = (None, None, None) if mode is None else mode_after(mode, why, self._counts["judged"][phase])
        numbers = [finite(number) for number in known[1:]]
        return row | {"mode": known[0], "reported": numbers[0], "collecting_reports": numbers[1]}

    def _once(self, count: str, trial: int, phase: int) -> None:
        if (count, trial, phase) not in self._known:
            self._known.add((count, trial, phase))
            self._counts[count][phase] += 1

    def _decided(self, trial: int, phase: int, data: Mapping[str, Any]) -> None:
        """Keep the last verdict on each trial and phase: a hold that was released does not count twice."""
        mode = data.get("mode")
        if mode == "failed":  # an answer to a failure, of which the trial tells
            return
        self._judge(trial, phase, fate_after(data["verdict"], mode))
        if mode is not None and mode not in NO_REPORT:
            self._once("judged", trial, phase)
            if mode != FOR_SEEDS:
                self._mode[phase] = mode, data

    def _judge(self, trial: int, phase: int, fate: str) -> None:
        if before := self._verdict.get((trial, phase)):
            self._counts[before][phase] -= 1
        self._verdict[trial, phase] = fate
        self._counts[fate][phase] += 1

    def _ended(self, trial: int, standing: str, mode: str | None) -> None:
        """Count the end of a trial that no verdict tells of: in the last phase that it began, in place of a verdict."""
        if standing == TrialState.FAILED or (standing == TrialState.STOPPED and mode == "person"):
            self._end[trial] = standing, self._furthest.get(trial)
            self._count_end(trial, 1)

    def _reopen(self, trial: int) -> None:
        """Take back what `_ended` counted."""
        if trial in self._end:
            self._count_end(trial, -1)
            del self._end[trial]

    def _count_end(self, trial: int, by: int) -> None:
        fate, phase = self._end[trial]
        if phase is None:  # stopped before it began
            return
        self._counts[fate][phase] += by
        if verdict := self._verdict.get((trial, phase)):
            self._counts[verdict][phase] -= by


def counted(reader: FrameReader, fates: Fates, size: Size) -> dict[str, Any]:
    """Give what only events change of the small things that viewers are told."""
    ledger = reader.ledger
    return {
        "trials_started": len(ledger),
        "trials_asked": ledger.n_asked,  # by the scheduler
        "trials_ended": ledger.n_over,
        "phases_ended": ledger.phases_ended,
        "slots": [[r["slot"], r["node"], r["joined_s"], r.get("lost_s")] for r in reader.slots],
        "workers": sum(reader.workers[r["slot"]] for r in reader.slots if "lost_s" not in r),
        "paused": ledger.paused,
        "failed": ledger.n_in(TrialState.FAILED),
        "failures": fates.failures(),
        "expected_phases": ledger.expected_phases(size),
        "survival": fates.survival(size.n_phases),
        "best": [*fates.best],
    }


def finite(value: Any) -> float | None:
    """Give a number that JSON can hold, else ``None``."""
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None
