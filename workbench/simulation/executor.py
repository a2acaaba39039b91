"""Virtual time: the same schedulers on a cluster that exists only as a heap of events."""

import heapq
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from workbench.core.errors import InvalidInput, SchedulerError
from workbench.core.protocols import RETURNS, Config, Event, Job, Kind, Metrics, Verdict


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

    A trial keeps its slot from phase to phase. A lost attempt is tried again from the phase's beginning, on the
    trial's own slot if it is free, else on any. Seconds are virtual.

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
    _now: float = field(init=False, default=0.0, repr=False)
    _trial_of: list[int | None] = field(init=False, repr=False)
    _up: list[bool] = field(init=False, repr=False)
    _free: list[int] = field(init=False, repr=False)  # heap: the lowest free slot comes first
    _slot_of: dict[int, int] = field(init=False, default_factory=dict, repr=False)
    _jobs: dict[int, Job] = field(init=False, default_factory=dict, repr=False)
    _heap: list[tuple[float, int, "_Due"]] = field(init=False, default_factory=list, repr=False)
    _waiting: deque[tuple[Job, int]] = field(init=False, default_factory=deque, repr=False)
    _buffer: list[Event] = field(init=False, default_factory=list, repr=False)

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
        self._trial_of = [None] * len(self.speeds)
        self._up = [True] * len(self.speeds)
        self._free = list(range(len(self.speeds)))
        self._tie = count()

    # -- what the driver sees ---------------------------------------------------------------------------------

    @property
    def n_slots(self) -> int:
        """Slots that are up."""
        return sum(self._up)

    @property
    def n_free(self) -> int:
        """Slots that are up, hold no trial, and are not needed for a retry."""
        return max(len(self._free) - len(self._waiting), 0)

    @property
    def now(self) -> float:
        """Virtual seconds."""
        return self._now

    def open(self, at: float) -> None:
        """Set the clock; every slot joins."""
        self._now = at
        self._buffer += [self._slot_event(Kind.SLOT_JOINED, slot) for slot in range(len(self.speeds))]

    def start(self, job: Job) -> None:
        """Put a trial on the slot it names if that is free, else on the lowest free one."""
        self._bring_up(job, 0)

    def apply(self, trial: int, verdict: Verdict) -> None:
        """Carry out a verdict."""
        job = self._jobs.get(trial)
        if job is None:
            raise SchedulerError(f"verdict {verdict} on trial {trial}, which holds no slot")
        if verdict is Verdict.CONTINUE:
            following = Job(trial, job.phase + 1, job.config, job.seed, checkpoint_name(job), job.slot)
            self._begin(following, self._slot_of[trial], 0, 0.0)
        elif verdict is not Verdict.HOLD:
            self._leave(trial)

    def drop(self, trial: int) -> None:
        """Free a trial's slot, and forget what it would have done."""
        if trial in self._jobs:
            self._leave(trial)
        self._waiting = deque((job, attempt) for job, attempt in self._waiting if job.trial != trial)
        self._heap = [entry for entry in self._heap if entry[2].trial != trial]
        heapq.heapify(self._heap)
        self._buffer = [event for event in self._buffer if event.trial != trial]

    def scale(self, nodes: int) -> None:
        """Refuse: a simulated cluster has the slots it was made with."""
        raise InvalidInput(f"a simulated cluster keeps its {self.n_slots} slots, {nodes} were asked for")

    def wait(self, timeout_s: float | None = None) -> Sequence[Event]:
        """Jump to the next thing that happens; real time does not pass."""
        self._retry()
        if self._heap:
            self._now, _, due = heapq.heappop(self._heap)
            due.happen(self)
            self._retry()
        events, self._buffer = self._buffer, []
        return events

    def close(self) -> None:
        """Nothing to release."""

    # -- attempts ---------------------------------------------------------------------------------------------

    def _retry(self) -> None:
        while self._waiting and self._free:
            self._bring_up(*self._waiting.popleft())

    def _bring_up(self, job: Job, attempt: int) -> None:
        slot = self._take(job)
        self._trial_of[slot], self._slot_of[job.trial] = job.trial, slot
        self._begin(job, slot, attempt, self.startup_s if job.checkpoint is None else self.switch_s)

    def _begin(self, job: Job, slot: int, attempt: int, delay_s: float) -> None:
        self._jobs[job.trial] = job
        ran = self._phase(job)
        seconds = delay_s + ran.seconds / self.speeds[slot]
        if not 0 <= seconds < math.inf:
            raise InvalidInput(f"the model gives trial {job.trial}, phase {job.phase}, a duration of {ran.seconds}")
        due: _Due = _PhaseEnd(job, slot, ran, seconds)
        lasts = math.inf
        if self.hazards.any:
            lasts, what = self.hazards.draw(
                np.random.default_rng([self.seed, job.trial, job.phase, attempt]), self.n_ranks
            )
            if lasts < seconds:
                due = _Loss(job, slot, attempt, what)
                seconds = lasts + (self.hazards.stall_s if what == "stall" else 0.0)
        self._buffer.append(Event(Kind.PHASE_STARTED, self._now, job.trial, job.phase, slot))
        for n, metrics in enumerate(ran.points, 1):
            at = delay_s + (seconds - delay_s) * n / len(ran.points)
            if at <= lasts:
                heapq.heappush(self._heap, (self._now + at, next(self._tie), _Point(job, slot, metrics)))
        heapq.heappush(self._heap, (self._now + seconds, next(self._tie), due))

    def _phase(self, job: Job) -> Ran:
        if isinstance(self.model, JobModel):
            return self.model.run(job)
        seconds, score = self.model.phase(job.trial, job.phase, job.config, job.seed)
        return Ran(seconds, {"score": score})

    def _leave(self, trial: int) -> None:
        """Take a trial off its slot."""
        del self._jobs[trial]
        slot = self._slot_of.pop(trial)
        self._trial_of[slot] = None
        if self._up[slot]:
            heapq.heappush(self._free, slot)

    # -- slots ------------------------------------------------------------------------------------------------

    def _take(self, job: Job) -> int:
        if not self._free:
            raise SchedulerError(f"trial {job.trial} cannot start: none of the {self.n_slots} slots is free")
        wanted = job.slot
        if wanted is None or wanted == self._free[0] or wanted not in self._free:
            return heapq.heappop(self._free)
        self._free.remove(wanted)
        heapq.heapify(self._free)
        return wanted

    def _lose_slot(self, slot: int) -> None:
        self._up[slot] = False
        self._buffer.append(self._slot_event(Kind.SLOT_LOST, slot))
        heapq.heappush(self._heap, (self._now + self.hazards.restart_s, next(self._tie), _SlotBack(slot)))

    def _slot_event(self, kind: Kind, slot: int) -> Event:
        data: dict[str, Any] = {"node": self._node(slot)}
        if self.n_ranks > 1:
            data["workers"] = self.n_ranks
        return Event(kind, self._now, slot=slot, data=data)

    def _node(self, slot: int) -> str:
        """Name the node a slot is on; of a gang the first and the last."""
        first, last = (worker // self.slots_per_node for worker in (slot * self.n_ranks, (slot + 1) * self.n_ranks - 1))
        if last - first < 4:
            return "+".join(f"node-{node}" for node in range(first, last + 1))
        return f"node-{first}…node-{last} ({last - first + 1})"


class _Due(Protocol):
    """Something on the heap, of one trial or of none."""

    @property
    def trial(self) -> int | None:
        """The trial it is of."""

    def happen(self, cluster: SimulatedExecutor) -> None:
        """Change the cluster, and tell in its buffer."""


class _PhaseEnd:
    __slots__ = ("job", "ran", "seconds", "slot")

    def __init__(self, job: Job, slot: int, ran: Ran, seconds: float) -> None:
        self.job, self.slot, self.ran, self.seconds = job, slot, ran, seconds

    @property
    def trial(self) -> int | None:
        return self.job.trial

    def happen(self, cluster: SimulatedExecutor) -> None:
        job, score = self.job, self.ran.metrics["score"]
        if not math.isfinite(score):
            cluster._leave(job.trial)
            error = f"FloatingPointError: the score is {score}: training has diverged"
            data: dict[str, Any] = {"why": "exception", "error": error, "traceback": "", "attempt": 0}
            cluster._buffer.append(Event(Kind.TRIAL_FAILED, cluster._now, job.trial, job.phase, self.slot, data))
            return
        data = {
            "score": score,
            "metrics": self.ran.metrics,
            "checkpoint": checkpoint_name(job),
            "wall_s": self.seconds,
            **({RETURNS: list(self.ran.returns)} if self.ran.returns else {}),
        }
        cluster._buffer.append(Event(Kind.PHASE_ENDED, cluster._now, job.trial, job.phase, self.slot, data))


@dataclass(frozen=True, slots=True)
class _Point:
    """A sign of progress inside a phase."""

    job: Job
    slot: int
    metrics: Metrics

    @property
    def trial(self) -> int | None:
        return self.job.trial

    def happen(self, cluster: SimulatedExecutor) -> None:
        data = {"metrics": self.metrics}
        cluster._buffer.append(Event(Kind.PROGRESS, cluster._now, self.job.trial, self.job.phase, self.slot, data))


@dataclass(frozen=True, slots=True)
class _Loss:
    """The slot dies under a phase, or the phase is found to hang and the slot is restarted."""

    job: Job
    slot: int
    attempt: int
    why: str

    @property
    def trial(self) -> int | None:
        return self.job.trial

    def happen(self, cluster: SimulatedExecutor) -> None:
        job, node = self.job, cluster._node(self.slot)
        again = self.attempt < cluster.hazards.max_retries
        stalled = f"no sign of progress for {cluster.hazards.stall_s:.0f} s on {node}; worker restarted"
        error = f"the worker on {node} died" if self.why == "crash" else stalled
        data = {"why": self.why, "error": error, "traceback": "", "attempt": self.attempt}
        kind = Kind.PHASE_FAILED if again else Kind.TRIAL_FAILED
        cluster._lose_slot(self.slot)
        cluster._leave(job.trial)
        cluster._buffer.append(Event(kind, cluster._now, job.trial, job.phase, self.slot, data))
        if again:
            cluster._waiting.append((job, self.attempt + 1))


@dataclass(frozen=True, slots=True)
class _SlotBack:
    slot: int

    @property
    def trial(self) -> int | None:
        return None

    def happen(self, cluster: SimulatedExecutor) -> None:
        cluster._up[self.slot] = True
        heapq.heappush(cluster._free, self.slot)
        cluster._buffer.append(cluster._slot_event(Kind.SLOT_JOINED, self.slot))


def checkpoint_name(job: Job) -> str:
    """Name what a trial leaves behind at the end of a phase; behind a `PhaseModel` there is nothing."""
    return f"virtual:trial-{job.trial}/phase-{job.phase}"


def _check_not_negative(name: str, value: float) -> None:
    if not 0 <= value < math.inf:
        raise InvalidInput(f"{name} must be 0 or more, and finite, got {value!r}")
