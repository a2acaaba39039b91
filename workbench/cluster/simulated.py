"""Virtual time: the same schedulers on a cluster that exists only as a heap of events."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Protocol

from workbench.core.errors import InvalidInput, SchedulerError
from workbench.core.protocols import Config, Event, Job, Kind, Verdict


class PhaseModel(Protocol):
    """What a trial would do: how long a phase takes, and the score at its end."""

    def phase(self, trial: int, phase: int, config: Config, seed: int) -> tuple[float, float]:
        """Return (duration on a slot of speed 1, score); the same for the same arguments."""


@dataclass
class SimulatedExecutor:
    """A cluster in virtual time.

    Parameters
    ----------
    model : PhaseModel
    speeds : sequence of float
        One slot each; a phase takes its duration divided by the slot's speed.
    """

    model: PhaseModel
    speeds: Sequence[float]
    _now: float = field(init=False, default=0.0, repr=False)
    _trial_of: list[int | None] = field(init=False, repr=False)
    _free: list[int] = field(init=False, repr=False)  # heap: the lowest free slot comes first
    _slot_of: dict[int, int] = field(init=False, default_factory=dict, repr=False)
    _jobs: dict[int, Job] = field(init=False, default_factory=dict, repr=False)
    _heap: list[tuple[float, int, Event]] = field(init=False, default_factory=list, repr=False)
    _buffer: list[Event] = field(init=False, default_factory=list, repr=False)

    def __post_init__(self) -> None:
        if not self.speeds or min(self.speeds) <= 0:
            raise InvalidInput(f"a simulated cluster needs one or more slots of positive speed, got {self.speeds}")
        self._trial_of = [None] * len(self.speeds)
        self._free = list(range(len(self.speeds)))
        self._tie = count()

    @property
    def n_slots(self) -> int:
        """Slots in all."""
        return len(self.speeds)

    @property
    def n_free(self) -> int:
        """Slots that hold no trial."""
        return len(self._free)

    @property
    def now(self) -> float:
        """Virtual seconds."""
        return self._now

    def open(self, at: float) -> None:
        """Set the clock; every slot joins as a node of its own."""
        self._now = at
        self._buffer += [
            Event(Kind.SLOT_JOINED, at, slot=slot, data={"node": f"node-{slot}"}) for slot in range(self.n_slots)
        ]

    def start(self, job: Job) -> None:
        """Put a trial on a free slot."""
        slot = self._take(job)
        self._trial_of[slot], self._slot_of[job.trial] = job.trial, slot
        self._begin(job)

    def apply(self, trial: int, verdict: Verdict) -> None:
        """Carry out a verdict."""
        job = self._jobs.get(trial)
        if job is None:
            raise SchedulerError(f"verdict {verdict} on trial {trial}, which holds no slot")
        if verdict is Verdict.CONTINUE:
            self._begin(replace(job, phase=job.phase + 1))
        elif verdict is not Verdict.HOLD:
            del self._jobs[trial]
            slot = self._slot_of.pop(trial)
            self._trial_of[slot] = None
            heapq.heappush(self._free, slot)

    def drop(self, trial: int) -> None:
        """Free a trial's slot, and forget what it would have done."""
        self.apply(trial, Verdict.STOP)
        self._heap = [entry for entry in self._heap if entry[2].trial != trial]
        heapq.heapify(self._heap)
        self._buffer = [event for event in self._buffer if event.trial != trial]

    def scale(self, nodes: int) -> None:
        """Refuse: a simulated cluster has the slots it was made with."""
        raise InvalidInput(f"a simulated cluster keeps its {self.n_slots} slots, {nodes} were asked for")

    def wait(self, timeout_s: float | None = None) -> Sequence[Event]:
        """Jump to the next event; real time does not pass."""
        events, self._buffer = self._buffer, []
        if not events and self._heap:
            at, _, event = heapq.heappop(self._heap)
            self._now = at
            events = [event]
        return events

    def close(self) -> None:
        """Nothing to release."""

    def _take(self, job: Job) -> int:
        if job.slot is None or self._trial_of[job.slot] is not None:
            if not self._free or job.slot is not None:
                raise SchedulerError(f"trial {job.trial} cannot start: slot {job.slot or 'any'} is not free")
            return heapq.heappop(self._free)
        self._free.remove(job.slot)
        heapq.heapify(self._free)
        return job.slot

    def _begin(self, job: Job) -> None:
        slot = self._slot_of[job.trial]
        self._jobs[job.trial] = job
        duration, score = self.model.phase(job.trial, job.phase, job.config, job.seed)
        self._buffer.append(Event(Kind.PHASE_STARTED, self._now, job.trial, job.phase, slot))
        data = {"score": score, "metrics": {"score": score}, "checkpoint": None}
        ended = Event(Kind.PHASE_ENDED, self._now + duration / self.speeds[slot], job.trial, job.phase, slot, data)
        heapq.heappush(self._heap, (ended.at, next(self._tie), ended))
