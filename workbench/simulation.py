"""One study in virtual time: driven to its end, measured, and kept in a knowledge base if wanted."""

import copy
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.cluster.simulated import JobModel, PhaseModel
from workbench.cluster.virtual import VirtualCluster
from workbench.core.drive import drive
from workbench.core.garbage import uncollected
from workbench.core.protocols import Event, Kind, Scheduler

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

    def best_by(self, at_s: Times) -> Times:
        """Give the best score reported by each moment; -inf before the first."""
        best = np.concatenate([[-np.inf], np.maximum.accumulate(self.scores)])
        return np.asarray(best[np.searchsorted(self.ended_s, at_s, side="right")])

    def busy_slots(self, edges_s: Times) -> Times:
        """Give the mean number of slots at work between each two of `edges_s`, shape [n] → [n - 1]."""
        area = _area_before(self.busy_from_s, edges_s) - _area_before(self.busy_to_s, edges_s)
        return np.maximum(np.diff(area) / np.diff(edges_s), 0.0)


class Tally:
    """A log that keeps only what an `Outcome` needs, so that thousands of studies fit in memory."""

    def __init__(self) -> None:
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
            completion_rate=len(scores) / (n_configs * n_phases),
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


def simulate(
    scheduler: Scheduler,
    model: PhaseModel | JobModel,
    cluster: VirtualCluster | None = None,
    *,
    seed: int = 0,
    events: list[Event] | None = None,
) -> Outcome:
    """Run a study in virtual time.

    Parameters
    ----------
    scheduler : Scheduler
        A fresh one; a copy of it is driven, so it stays fresh.
    model : PhaseModel or JobModel
        What trials do.
    cluster : VirtualCluster, optional
        By default four equal nodes.
    seed : int
        The study's seed, from which the trials' seeds are derived.
    events : list, optional
        Filled with everything that happens, as a real study would log it.
    """
    cluster = cluster or VirtualCluster()
    scheduler = copy.deepcopy(scheduler)
    executor = cluster.executor(model)
    executor.open(0.0)
    tally = Tally()
    with uncollected():
        drive(scheduler, executor, tally if events is None else _Both(tally, events), seed=seed)
    return tally.outcome(full_runs(scheduler), scheduler.n_phases, cluster.n_slots)


def full_runs(scheduler: Scheduler) -> int:
    """Count the runs to the end that a completion rate of 1 stands for: configurations, or members of a population.

    Trials are more where a scheduler restarts some, or lets members go on as new ones; configurations are fewer than
    asked for where the searcher has no more.
    """
    asked = int(getattr(scheduler, "n_configs", getattr(scheduler, "population", scheduler.n_trials)))
    searcher = getattr(scheduler, "searcher", None)
    return min(asked, len(searcher)) if isinstance(searcher, Sized) else asked


def keep(db: str | Path, name: str, spec: Mapping[str, Any], events: Sequence[Event]) -> None:
    """Put a simulated study into a knowledge base, marked as simulated in its spec and in its first event.

    Raises
    ------
    StudyError
        A study of that name is there already.
    """
    from workbench.knowledge import StudyLog

    log = StudyLog(Path(db), name, {**spec, "simulated": True})
    try:
        end = max((event.at for event in events), default=0.0)
        first, last = Event(Kind.STUDY_STARTED, 0.0, data={"simulated": True}), Event(Kind.STUDY_ENDED, end)
        log.append([first, *events, last])
    finally:
        log.close()


class _Both:
    def __init__(self, tally: Tally, events: list[Event]) -> None:
        self._tally, self._events = tally, events

    def append(self, events: Sequence[Event]) -> None:
        self._tally.append(events)
        self._events.extend(events)


def _area_before(times: Times, edges: Times) -> Times:
    """Σ max(0, edge - time) over times [n], for every edge [m] → [m]."""
    ordered = np.sort(times)
    count = np.searchsorted(ordered, edges, side="right")
    total = np.concatenate([[0.0], np.cumsum(ordered)])
    return np.asarray(count * edges - total[count])
