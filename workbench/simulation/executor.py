"""Virtual time: the same schedulers on a cluster that exists only as a heap of events."""

import heapq
import math
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple, Protocol, runtime_checkable

from workbench.cluster.attempts import Attempt, Attempts, Submit
from workbench.cluster.seats import Release
from workbench.cluster.slots import Slot
from workbench.core.errors import InvalidInput
from workbench.core.protocols import RETURNS, Config, Event, Job, Metrics, Verdict
from workbench.core.showing import so_many
from workbench.simulation.cluster import VirtualCluster


class PhaseModel(Protocol):
    """What a trial would do: how long a phase takes, and the score at its end."""

    def phase(self, trial: int, phase: int, config: Config, seed: int) -> tuple[float, float]:
        """Return (duration on a slot of speed 1, score); the same for the same arguments.

        A score of NaN stands for training that diverged: the trial fails, as it does on a real cluster.
        """


class Ran(NamedTuple):
    """One phase as it ran: duration on a slot of speed 1, metrics, what was reported meanwhile, episode returns."""

    seconds: float
    metrics: Metrics
    points: Sequence[Metrics] = ()
    returns: Sequence[float] = ()


@runtime_checkable
class JobModel(Protocol):
    """What a trial does where its weights count: it is told which checkpoint a phase goes on from."""

    def run(self, job: Job) -> Ran:
        """Run the job's phase and leave its checkpoint under `checkpoint_name`; the same for the same job.

        A score of NaN stands for training that diverged.
        """


_Entry = tuple[float, int, Callable[[Any, Any], None], "Attempt | Slot", Any]  # when, a number, what, of whom, more


class SimulatedExecutor:
    """A cluster in virtual time, with the manners of `DaskExecutor`.

    A trial keeps its slot from phase to phase. A lost attempt is tried again from the phase's beginning, on the slot
    the trial is bound to if that is free, else on the lowest free one. Seconds are virtual. What happens to an attempt
    depends on the cluster's seed, the trial, the phase and the attempt alone.
    """

    def __init__(self, model: PhaseModel | JobModel, cluster: VirtualCluster) -> None:
        self.cluster = cluster
        self.speeds = cluster.slot_speeds()
        self._now = 0.0
        self._book = Attempts(cluster.hazards.max_retries)
        self._run = model.run if isinstance(model, JobModel) else _scored(model)
        self._agenda: list[_Entry] = []  # heap: what happens next comes first
        self._tie = count()

    # -- what the driver sees ---------------------------------------------------------------------------------

    @property
    def n_slots(self) -> int:
        """Slots that are up."""
        return self._book.seats.n_up

    @property
    def n_free(self) -> int:
        """Slots that are up, hold no trial, and are not needed for a retry."""
        return self._book.n_free

    @property
    def now(self) -> float:
        """Virtual seconds."""
        return self._now

    def open(self, at: float) -> None:
        """Set the clock; every slot joins."""
        self._now = at
        n_ranks, per_node = self.cluster.n_ranks, self.cluster.slots_per_node
        for index in range(len(self.speeds)):
            workers = tuple(range(index * n_ranks, (index + 1) * n_ranks))
            nodes = tuple(f"node-{worker // per_node}" for worker in workers)
            self._book.slot_joined(Slot(index, workers, nodes), at)

    def start(self, job: Job) -> None:
        """Put a trial on the slot it names if that is free, else on the lowest free one."""
        self._begin_all(self._book.start(job, self._now))

    def apply(self, trial: int, verdict: Verdict) -> None:
        """Carry out a verdict."""
        self._begin_all(self._book.verdict(trial, verdict, self._now))

    def drop(self, trial: int) -> None:
        """Free a trial's slot, and forget what it would have done."""
        for attempt, _ in self._book.drop(trial):
            self._agenda = [entry for entry in self._agenda if entry[3] is not attempt]
            heapq.heapify(self._agenda)

    def want(self, slots: int) -> bool:
        """Take note: a simulated cluster does not grow, but slots that were lost come back."""
        return self.n_slots < min(slots, len(self.speeds))

    def scale(self, nodes: int) -> None:
        """Refuse: a simulated cluster has the slots it was made with."""
        raise InvalidInput(f"a simulated cluster keeps its {so_many(self.n_slots, 'slot')}, {nodes} were asked for")

    def wait(self, timeout_s: float | None = None) -> Sequence[Event]:
        """Jump to the next thing that happens; real time does not pass."""
        book = self._book
        if book.waiting:
            self._begin_all(book.seat_waiting(self._now))
        if self._agenda:
            self._now, _, happen, about, data = heapq.heappop(self._agenda)
            happen(about, data)
            if book.waiting:
                self._begin_all(book.seat_waiting(self._now))
        return book.take_events()

    def caused(self) -> Sequence[Event]:
        """Return the events of the calls since `wait`."""
        return self._book.take_events()

    def close(self) -> None:
        """Nothing to release."""

    # -- what lies ahead --------------------------------------------------------------------------------------

    def _begin_all(self, submits: Sequence[Submit | Release]) -> None:
        for submit in submits:
            if isinstance(submit, Submit):  # it shares no slots, and releases none
                self._begin(submit.attempt)

    def _begin(self, attempt: Attempt) -> None:
        """Work out how an attempt will go, and enter it in the agenda."""
        job, delay_s = attempt.job, 0.0
        if not attempt.alive:
            delay_s = self.cluster.startup_s if job.checkpoint is None else self.cluster.switch_s
        ran = self._run(job)
        seconds = delay_s + ran.seconds / self.speeds[attempt.slot.index]
        if not 0 <= seconds < math.inf:
            raise InvalidInput(f"the model gives trial {job.trial}, phase {job.phase}, a duration of {ran.seconds}")
        lasts, what = self.cluster.accident(job.trial, job.phase, attempt.number)
        for n, metrics in enumerate(ran.points, 1):
            after_s = min(delay_s + (seconds - delay_s) * n / len(ran.points), seconds)  # rounding must not pass it
            if after_s <= lasts:
                self._enter(after_s, self._show_point, attempt, metrics)
        if lasts < seconds:
            found_s = lasts + (self.cluster.hazards.stall_s if what == "stall" else 0.0)
            self._enter(found_s, self._lose, attempt, what)
        else:
            self._enter(seconds, self._end, attempt, (ran, seconds))

    def _enter(self, after_s: float, happen: Callable[[Any, Any], None], about: Attempt | Slot, data: Any) -> None:
        heapq.heappush(self._agenda, (self._now + after_s, next(self._tie), happen, about, data))

    # -- what happens -----------------------------------------------------------------------------------------

    def _end(self, attempt: Attempt, result: tuple[Ran, float]) -> None:
        """The phase comes to its end."""
        ran, wall_s = result
        score = ran.metrics["score"]
        if not math.isfinite(score):
            error = f"FloatingPointError: the score is {score}: training has diverged"
            self._book.attempt_lost(attempt, "exception", error, self._now, retry=False)
            return
        checkpoint = checkpoint_name(attempt.job)
        data = {"score": score, "metrics": ran.metrics, "checkpoint": checkpoint, "wall_s": wall_s}
        if ran.returns:
            data[RETURNS] = list(ran.returns)
        self._book.phase_ended(attempt, self._now, data)

    def _show_point(self, attempt: Attempt, metrics: Metrics) -> None:
        """A sign of progress inside a phase."""
        self._book.sign(attempt, self._now, data={"metrics": metrics})

    def _lose(self, attempt: Attempt, what: str) -> None:
        """The slot dies under a phase, or the phase is found to hang and the slot is restarted."""
        silent_s = self.cluster.hazards.stall_s if what == "stall" else None
        self._book.slot_lost(attempt.slot, self._now, silent_s=silent_s)
        after_s = self.cluster.hazards.restart_s
        self._enter(after_s, self._book.slot_joined, attempt.slot, self._now + after_s)


def _scored(model: PhaseModel) -> Callable[[Job], Ran]:
    """Run a model that knows of durations and scores only."""

    def run(job: Job) -> Ran:
        seconds, score = model.phase(job.trial, job.phase, job.config, job.seed)
        return Ran(seconds, {"score": score})

    return run


def checkpoint_name(job: Job) -> str:
    """Name what a trial leaves behind at the end of a phase; behind a `PhaseModel` there is nothing."""
    return f"virtual:trial-{job.trial}/phase-{job.phase}"
