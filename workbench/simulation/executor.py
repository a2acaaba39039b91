"""Virtual time: the same schedulers on a cluster that exists only as a heap of events."""

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from workbench.cluster.attempts import Attempt, Attempts, Submit
from workbench.cluster.slots import Slot
from workbench.core.errors import InvalidInput
from workbench.core.protocols import RETURNS, Config, Event, Job, Metrics, Verdict


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


@dataclass(frozen=True)
class Hazards:
    """What goes wrong on a cluster, and how often.

    Parameters
    ----------
    crash_rate, hang_rate : float
        Expected crashes and hangs in a second of a running phase; both cost one attempt at the phase.
    stall_s : float
        Silence after which a hang is found.
    restart_s : float
        Seconds until a lost slot is back.
    max_retries : int
        Further attempts at a phase; then its trial fails, alone.
    """

    crash_rate: float = 0.0
    hang_rate: float = 0.0
    stall_s: float = 300.0
    restart_s: float = 0.0
    max_retries: int = 2

    def __post_init__(self) -> None:
        for name in ("crash_rate", "hang_rate", "restart_s", "max_retries"):
            _check_not_negative(name, getattr(self, name))
        if not self.stall_s > 0:
            raise InvalidInput(f"stall_s must be more than 0, got {self.stall_s}")

    def draw(self, rng: np.random.Generator, n_ranks: int = 1) -> tuple[float, str]:
        """Draw how long a phase runs before something goes wrong on one of its workers, seconds, and what it is."""
        crash = rng.exponential(1 / (self.crash_rate * n_ranks)) if self.crash_rate else math.inf
        hang = rng.exponential(1 / (self.hang_rate * n_ranks)) if self.hang_rate else math.inf
        return (float(crash), "crash") if crash <= hang else (float(hang), "stall")

    @property
    def any(self) -> bool:
        """Whether anything can go wrong at all."""
        return self.crash_rate > 0 or self.hang_rate > 0


@dataclass
class SimulatedExecutor:
    """A cluster in virtual time, with the manners of `DaskExecutor`.

    A trial keeps its slot from phase to phase. A lost attempt is tried again from the phase's beginning, on the slot
    the trial is bound to if that is free, else on the lowest free one. Seconds are virtual.

    Parameters
    ----------
    model : PhaseModel or JobModel
    speeds : sequence of float
        One slot each; a phase takes its duration divided by the slot's speed.
    slots_per_node : int
        Neighbouring slots that form one node.
    n_ranks : int
        Workers a trial needs at once. So many neighbours form a slot, as fast as the slowest of them; `speeds` are then
        the workers', and those that are left over stay idle. What happens to one of them costs the trial its attempt,
        so crashes and hangs are as many times as frequent.
    startup_s : float
        Added when a trial is brought up from nothing on a slot.
    switch_s : float
        Added when a trial is brought up from a checkpoint: after a pause, a retry, or from a parent.
    hazards : Hazards
    seed : int
        Of the hazards: what happens to an attempt depends on the seed, the trial, the phase and the attempt alone.
    """

    model: PhaseModel | JobModel
    speeds: Sequence[float]
    slots_per_node: int = 1
    startup_s: float = 0.0
    switch_s: float = 0.0
    hazards: Hazards = field(default_factory=Hazards)
    seed: int = 0
    n_ranks: int = 1

    def __post_init__(self) -> None:
        if not self.speeds or not all(math.isfinite(speed) and speed > 0 for speed in self.speeds):
            raise InvalidInput(f"a simulated cluster needs one or more slots of positive speed, got {self.speeds}")
        if self.slots_per_node < 1:
            raise InvalidInput(f"a node offers one or more slots, got slots_per_node={self.slots_per_node}")
        if self.n_ranks < 1 or len(self.speeds) < self.n_ranks:
            raise InvalidInput(
                f"a trial needs a gang of {self.n_ranks} workers, the cluster has {len(self.speeds)}: add nodes, or "
                "lower n_ranks"
            )
        if self.n_ranks > 1:
            starts = range(0, len(self.speeds) - self.n_ranks + 1, self.n_ranks)
            self.speeds = [min(self.speeds[start : start + self.n_ranks]) for start in starts]
        _check_not_negative("startup_s", self.startup_s)
        _check_not_negative("switch_s", self.switch_s)
        self._now = 0.0
        self._book = Attempts(self.hazards.max_retries)
        self._run = self.model.run if isinstance(self.model, JobModel) else _scored(self.model)
        self._agenda: list[_Entry] = []  # heap: what happens next comes first
        self._tie = count()

    # -- what the driver sees ---------------------------------------------------------------------------------

    @property
    def n_slots(self) -> int:
        """Slots that are up."""
        return self._book.n_slots

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
        for index in range(len(self.speeds)):
            workers = tuple(range(index * self.n_ranks, (index + 1) * self.n_ranks))
            nodes = tuple(f"node-{worker // self.slots_per_node}" for worker in workers)
            self._book.slot_joined(Slot(index, workers, nodes), at)

    def start(self, job: Job) -> None:
        """Put a trial on the slot it names if that is free, else on the lowest free one."""
        self._begin(self._book.start(job, self._now))

    def apply(self, trial: int, verdict: Verdict) -> None:
        """Carry out a verdict."""
        self._begin(self._book.verdict(trial, verdict, self._now))

    def drop(self, trial: int) -> None:
        """Free a trial's slot, and forget what it would have done."""
        for attempt, _ in self._book.drop(trial):
            self._agenda = [entry for entry in self._agenda if entry[3] is not attempt]
            heapq.heapify(self._agenda)

    def scale(self, nodes: int) -> None:
        """Refuse: a simulated cluster has the slots it was made with."""
        raise InvalidInput(f"a simulated cluster keeps its {self.n_slots} slots, {nodes} were asked for")

    def wait(self, timeout_s: float | None = None) -> Sequence[Event]:
        """Jump to the next thing that happens; real time does not pass."""
        book = self._book
        if book.waiting:
            self._begin(book.seat_waiting(self._now))
        if self._agenda:
            self._now, _, happen, about, data = heapq.heappop(self._agenda)
            happen(about, data)
            if book.waiting:
                self._begin(book.seat_waiting(self._now))
        return book.take_events()

    def close(self) -> None:
        """Nothing to release."""

    # -- what lies ahead --------------------------------------------------------------------------------------

    def _begin(self, submits: Sequence[Submit]) -> None:
        """Work out how attempts will go, and enter it in the agenda."""
        for (attempt,) in submits:
            job, delay_s = attempt.job, 0.0
            if not attempt.alive:
                delay_s = self.startup_s if job.checkpoint is None else self.switch_s
            ran = self._run(job)
            seconds = delay_s + ran.seconds / self.speeds[attempt.slot.index]
            if not 0 <= seconds < math.inf:
                raise InvalidInput(f"the model gives trial {job.trial}, phase {job.phase}, a duration of {ran.seconds}")
            lasts, what = self._accident(attempt) if self.hazards.any else (math.inf, "")
            lost = lasts < seconds
            if lost:
                seconds = lasts + (self.hazards.stall_s if what == "stall" else 0.0)
            for n, metrics in enumerate(ran.points, 1):
                after_s = min(delay_s + (seconds - delay_s) * n / len(ran.points), seconds)  # rounding must not pass it
                if after_s <= lasts:
                    self._enter(after_s, self._show_point, attempt, metrics)
            if lost:
                self._enter(seconds, self._lose, attempt, what)
            else:
                self._enter(seconds, self._end, attempt, (ran, seconds))

    def _accident(self, attempt: Attempt) -> tuple[float, str]:
        """Draw what goes wrong with an attempt, and when."""
        identity = [self.seed, attempt.job.trial, attempt.job.phase, attempt.number]
        return self.hazards.draw(np.random.default_rng(identity), self.n_ranks)

    def _enter(self, after_s: float, happen: Callable[[Any, Any], None], about: Attempt | Slot, data: Any) -> None:
        heapq.heappush(self._agenda, (self._now + after_s, next(self._tie), happen, about, data))

    # -- what happens -----------------------------------------------------------------------------------------

    def _end(self, attempt: Attempt, told: tuple[Ran, float]) -> None:
        """The phase comes to its end."""
        ran, wall_s = told
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
        silent_s = self.hazards.stall_s if what == "stall" else None
        self._book.slot_lost(attempt.slot, self._now, silent_s=silent_s)
        self._enter(self.hazards.restart_s, self._bring_back, attempt.slot, None)

    def _bring_back(self, slot: Slot, _: None) -> None:
        self._book.slot_joined(slot, self._now)


def _scored(model: PhaseModel) -> Callable[[Job], Ran]:
    """Run a model that knows of durations and scores only."""

    def run(job: Job) -> Ran:
        seconds, score = model.phase(job.trial, job.phase, job.config, job.seed)
        return Ran(seconds, {"score": score})

    return run


def checkpoint_name(job: Job) -> str:
    """Name what a trial leaves behind at the end of a phase; behind a `PhaseModel` there is nothing."""
    return f"virtual:trial-{job.trial}/phase-{job.phase}"


def _check_not_negative(name: str, value: float) -> None:
    if not 0 <= value < math.inf:
        raise InvalidInput(f"{name} must be 0 or more, and finite, got {value!r}")
