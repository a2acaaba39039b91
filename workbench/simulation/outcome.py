"""What a study in virtual time came to, and the log that adds it up."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from workbench.analysis.completion import completion_rate
from workbench.analysis.occupancy import mean_active
from workbench.core.protocols import Event, Kind

Times = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """What a simulated study came to. Times are virtual seconds (or the time unit of the model).

    Attributes
    ----------
    makespan : float
        Until the last trial was over.
    occupancy : float
        Share of the slots' time in which a phase ran, lost attempts included, 0 to 1.
    completion_rate : float
        Phases completed, of all phases of all configurations (or members of a population): α. What is restarted counts
        again, as in the paper.
    time_to_best : float
        When the best score was first reported.
    best_score : float
    best_trial : int or None
    trials, phases, retries : int
        Trials begun, phases completed, attempts lost.
    ended_s, scores, reporters : array, shape [phases]
        When each phase ended, in order, its score, and its trial.
    busy_from_s, busy_to_s : array, shape [attempts]
        When attempts at phases ran.
    slots : int
    events : int
        Lines the log has, or would have had.
    """

    makespan: float
    occupancy: float
    completion_rate: float
    time_to_best: float
    best_score: float
    best_trial: int | None
    trials: int
    phases: int
    retries: int
    ended_s: Times
    scores: Times
    reporters: npt.NDArray[np.int64]
    busy_from_s: Times
    busy_to_s: Times
    slots: int
    events: int

    def phases_run(self) -> npt.NDArray[np.int64]:
        """Give the phases that each trial completed, shape [trials], in the order of starting."""
        return np.bincount(self.reporters, minlength=self.trials)[: self.trials]

    def best_by(self, at_s: Times) -> Times:
        """Give the best score reported by each moment; -inf before the first."""
        best = np.concatenate([[-np.inf], np.maximum.accumulate(self.scores)])
        return np.asarray(best[np.searchsorted(self.ended_s, at_s, side="right")])

    def busy_slots(self, edges_s: Times) -> Times:
        """Give the mean number of slots at work between each two of `edges_s`, shape [n] → [n - 1]."""
        return np.maximum(mean_active(self.busy_from_s, self.busy_to_s, edges_s), 0.0)


class Tally:
    """A log that keeps only what an `Outcome` needs, so that thousands of studies fit in memory.

    Parameters
    ----------
    every : list, optional
        Filled with the events as well.
    """

    def __init__(self, every: list[Event] | None = None) -> None:
        self._every = every
        self.ended: list[tuple[float, float, int]] = []  # at, score, trial
        self.busy: list[tuple[float, float]] = []
        self.alive_s = 0.0
        self._began: dict[int, float] = {}
        self._joined: dict[int, float] = {}
        self.trials = self.retries = self.events = 0
        self.at = 0.0

    def append(self, events: Sequence[Event]) -> None:
        """Take in events, in order."""
        self.events += len(events)
        if self._every is not None:
            self._every.extend(events)
        for event in events:
            kind = event.kind
            if kind is Kind.PHASE_STARTED:
                self._began[event.trial] = event.at  # type: ignore[index]
            elif kind is Kind.PHASE_ENDED:
                self.ended.append((event.at, event.data["score"], event.trial))  # type: ignore[arg-type]
                self._close(event)
            elif kind is Kind.PHASE_FAILED or kind is Kind.TRIAL_FAILED:
                self.retries += 1
                self._close(event)
            elif kind is Kind.RUN:
                self.trials += event.data["parent"] != event.trial
            elif kind is Kind.SLOT_JOINED:
                self._joined[event.slot] = event.at  # type: ignore[index]
            elif kind is Kind.SLOT_LOST:
                self.alive_s += event.at - self._joined.pop(event.slot)  # type: ignore[arg-type]

    def _close(self, event: Event) -> None:
        self.busy.append((self._began.pop(event.trial), event.at))  # type: ignore[arg-type]
        self.at = event.at

    def outcome(self, n_configs: int, n_phases: int, slots: int) -> Outcome:
        """Sum up, the study being over."""
        alive = self.alive_s + sum(max(self.at - joined, 0.0) for joined in self._joined.values())
        busy = np.array(self.busy, dtype=float).reshape(-1, 2)
        ended = np.array([at for at, _, _ in self.ended])
        scores = np.array([score for _, score, _ in self.ended])
        best = int(scores.argmax()) if len(scores) else None  # of equals the first
        return Outcome(
            makespan=self.at,
            occupancy=float((busy[:, 1] - busy[:, 0]).sum() / alive) if alive else float("nan"),
            completion_rate=completion_rate(len(scores), n_configs, n_phases),
            time_to_best=float("nan") if best is None else float(ended[best]),
            best_score=float("nan") if best is None else float(scores[best]),
            best_trial=None if best is None else self.ended[best][2],
            trials=self.trials,
            phases=len(scores),
            retries=self.retries,
            ended_s=ended,
            scores=scores,
            reporters=np.array([trial for _, _, trial in self.ended], dtype=np.int64),
            busy_from_s=busy[:, 0],
            busy_to_s=busy[:, 1],
            slots=slots,
            events=self.events,
        )
