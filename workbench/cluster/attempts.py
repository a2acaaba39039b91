"""The book of attempts: which trial holds which slot, which wait for one, and what comes of an attempt that is lost.

A pure state machine, as the one inside a Dask worker: what happens is told to it (stimuli), what is to be done comes
back (instructions), and what has come of it is written down (events). It has no clock (every stimulus says what time it
is), no thread, no input or output, and knows nothing of Dask: the real and the simulated executor keep the same book.
"""

import itertools
import math
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from workbench.cluster.seats import Release, Seats
from workbench.cluster.slots import Slot
from workbench.core.errors import SchedulerError
from workbench.core.protocols import Event, Job, Kind, Verdict


class Attempt:
    """One try at one phase of one trial, under way on a slot; once its phase has ended, the trial held there.

    Attributes
    ----------
    job : Job
    number : int
        0 for the first attempt at the phase; a trial that was dropped and is started again begins at 0 again.
    mark : int
        Of this attempt alone among all that the book has ever begun.
    slot : Slot
    alive : bool
        Whether the trial lives on the slot: not before its first phase there has ended, nor once the slot was lost.
    under_way : bool
        False once the phase has ended or the attempt has been given up: what is told of it then comes too late.
    signs : dict of int to float
        Rank at work → when it last showed life.
    suspicion : tuple or None
        When a rank said that it had lost another, its error and its traceback.
    checkpoint : str or None
        Where the trial goes on from, once the phase has ended.
    left : float or None
        When its worker was taken out of service because it was told to leave: it may still be saving.
    """

    __slots__ = ("alive", "checkpoint", "job", "left", "mark", "number", "signs", "slot", "suspicion", "under_way")

    def __init__(self, job: Job, number: int, slot: Slot, now: float, alive: bool, mark: int) -> None:
        self.job, self.number, self.slot, self.alive, self.mark = job, number, slot, alive, mark
        self.under_way = True
        self.signs = {0: now}
        self.suspicion: tuple[float, str, str] | None = None
        self.checkpoint: str | None = None
        self.left: float | None = None

    def label(self, rank: int) -> str:
        """Say which rank an error is of, where there are several."""
        n = len(self.slot.names)
        return f"rank {rank} of {n}: " if n > 1 else ""


class Submit(NamedTuple):
    """Run the attempt on its slot, rank 0 first."""

    attempt: Attempt


class Cancel(NamedTuple):
    """Let go of an attempt that has been given up; `stop`: ranks that are left must hear of it."""

    attempt: Attempt
    stop: bool


class Restart(NamedTuple):
    """Replace the worker that holds this rank: it is up, and silent."""

    slot: Slot
    rank: int


Instruction = Submit | Cancel | Restart | Release


class Attempts:
    """The book.

    Parameters
    ----------
    max_retries : int
        Further attempts at a phase that was lost; then its trial fails, alone.
    stall_s : float
        Longest silence of a rank at work.
    cause_s : float
        How long a rank's word that it has lost another waits for the true cause.
    leave_s : float
        How long the word of a worker that was told to leave is waited for.

    Attributes
    ----------
    seats : Seats
        The slots that are up, and those that are free.
    waiting : deque of (Job, int)
        Attempts without a slot: they come before any new trial. From the third on, one shuns the slot where the last
        failed, while others are at work: a worker that lacks a module, cannot write where others can, or dies of its
        GPU is always the first to be free, and all trials to come would fail there, one by one.
    events : list of Event
        What has happened since `take_events` was last called.
    surplus : int
        Slots to be given back as soon as no trial is in a phase there: another study is to have them.
    """

    def __init__(self, max_retries: int, stall_s: float = math.inf, cause_s: float = 0.0, leave_s: float = 0.0) -> None:
        self._max_retries, self._stall_s, self._cause_s, self._leave_s = max_retries, stall_s, cause_s, leave_s
        self.surplus = 0
        self.seats = Seats()
        self.waiting: deque[tuple[Job, int]] = deque()
        self._shunned: dict[int, Slot] = {}  # by trial that waits
        self._attempts: dict[int, Attempt] = {}  # by trial: the last on the slot it holds
        self._marks = itertools.count()
        self.events: list[Event] = []

    @property
    def n_free(self) -> int:
        """Slots that are up, hold no trial, and are not needed for a retry."""
        if not self.waiting:
            return self.seats.n_free
        at_work, shunned = self._at_work, (self._shunned.get(job.trial) for job, _ in self.waiting)
        return max(self.seats.n_free - sum(self.seats.admit(slot, at_work) for slot in shunned), 0)

    @property
    def _at_work(self) -> bool:
        return any(attempt.under_way for attempt in self._attempts.values())

    @property
    def stuck(self) -> bool:
        """Whether it has slots, but nothing is at work or free, nor has anything happened that is still to be acted on.

        Another study that waits for slots of this one waits in vain then: see `DaskExecutor.want`.
        """
        return self.seats.n_up > 0 and not (self.seats.n_free or self.events or self._at_work)

    def take_events(self) -> list[Event]:
        """Hand over the events since the last call."""
        events, self.events = self.events, []
        return events

    # -- stimuli: what the driver wants ---------------------------------------------------------------------------

    def start(self, job: Job, now: float) -> list[Submit]:
        """Put a trial on the slot it names if that is free, else on the lowest free one."""
        if job.trial in self._attempts:
            held = self._attempts[job.trial].slot.index
            raise SchedulerError(f"trial {job.trial} cannot start: it holds slot {held} already")
        return [self._submit(job, 0, now)]

    def verdict(self, trial: int, verdict: Verdict, now: float) -> list[Submit] | list[Release]:
        """Carry out a verdict on a trial that has ended a phase, or is held."""
        attempt = self._attempts.get(trial)
        if attempt is None or attempt.under_way:
            raise SchedulerError(f"verdict {verdict} on trial {trial}, which is not waiting for one")
        if verdict is Verdict.HOLD:
            return []
        if verdict is Verdict.CONTINUE:
            job, slot = attempt.job, attempt.slot
            following = replace(job, phase=job.phase + 1, checkpoint=attempt.checkpoint, keep=False)
            if slot.up and not self.surplus:
                return [self._submit(following, 0, now, slot, attempt.alive)]
            self.waiting.append((following, 0))  # lost while the trial was held, or to be given back
        self._leave(attempt)
        return self.give_back(self.surplus, now)  # before the next trial is seated there

    def drop(self, trial: int) -> list[Cancel]:
        """Forget a trial, wherever it is; nothing more is heard of it."""
        attempt = self._attempts.get(trial)
        under_way = attempt is not None and attempt.under_way
        if attempt is not None:
            self._leave(attempt)
        self.waiting = deque((job, number) for job, number in self.waiting if job.trial != trial)
        self.events = [event for event in self.events if event.trial != trial]
        return [Cancel(attempt, stop=True)] if attempt is not None and under_way else []

    def give_back(self, n: int, now: float) -> list[Release]:
        """Give so many slots back: at once those without a trial, and those of trials held; others as phases end."""
        self.surplus = n
        given_back = []
        held = [attempt.slot for attempt in self._attempts.values() if attempt.slot.up and not attempt.under_way]
        while self.surplus and (self.seats.n_free or held):
            self.surplus -= 1
            slot = self.seats.last if self.seats.n_free else held.pop()
            self.slot_lost(slot, now)
            given_back.append(Release(slot))
        return given_back

    def seat_waiting(self, now: float) -> list[Submit]:
        """Put what waits on slots that have become free, in the order of waiting."""
        submits = []
        for _ in range(len(self.waiting) if self.seats.n_free else 0):
            job, number = self.waiting.popleft()
            shunned = self._shunned.get(job.trial)
            if self.seats.admit(shunned, self._at_work):
                submits.append(self._submit(job, number, now, self.seats.take(job.trial, job.slot, shunned)))
            else:
                self.waiting.append((job, number))
        return submits

    # -- stimuli: what happens on the cluster ---------------------------------------------------------------------

    def slot_joined(self, slot: Slot, now: float) -> None:
        """Take a slot into service, a new one or one that is back; an earlier driver may have left a trial on it."""
        self.seats.join(slot)
        self.events.append(Event(Kind.SLOT_JOINED, now, slot=slot.index, data=slot.place))

    def slot_lost(
        self,
        slot: Slot,
        now: float,
        rank: int | None = None,
        silent_s: float | None = None,
        ended: str = "",
        *,
        left: bool = False,
    ) -> list[Cancel]:
        """Take a slot out of service: a worker of it has died, or was silent for so long that it is given up.

        The attempt under way there is lost. `rank` says whose worker it was, and `ended` how it did, if that is known.
        If it `left` as it was told to, that costs no attempt, and its last word is waited for.
        """
        if not slot.up:
            return []
        self.seats.lose(slot)
        self.events.append(Event(Kind.SLOT_LOST, now, slot=slot.index, data=slot.place))
        if slot.trial is None:
            return []
        attempt = self._attempts[slot.trial]
        attempt.alive = False
        where = slot.node if rank is None else slot.nodes[rank]
        if left and attempt.left is None:
            attempt.left = now
        if attempt.left is not None:  # a worker in the place of one that left has no part in this attempt
            return []
        if silent_s is None:
            return self.attempt_lost(attempt, "crash", f"the worker on {where} died{ended}", now, rank=rank)
        error = f"no sign of progress for {silent_s:.0f} s on {where}; the worker was given up"
        return self.attempt_lost(attempt, "stall", error, now, rank=rank)

    def worker_left(
        self, attempt: Attempt, rank: int, now: float, how: str = "left before the phase had begun"
    ) -> list[Cancel]:
        """Give up an attempt of which nothing more will be heard: a worker of it left, or is about to."""
        if attempt.left is None:  # else the slot was taken out of service then, and may be back
            self.slot_lost(attempt.slot, now, rank, left=True)
        error = f"the worker on {attempt.slot.nodes[rank]} {how}"
        return self.attempt_lost(attempt, "left", error, now, rank=rank)

    def out_of_reach(self, now: float, taken: Slot | None = None) -> list[Cancel]:
        """Take a slot out of service that was `taken` for another study, or all: the connection to the cluster broke.

        What is at work there stops unharmed, and it costs no attempt.
        """
        stopped: list[Cancel] = []
        error = "the connection to the cluster broke"
        if taken is not None:
            error = f"the worker on {taken.node} was given to another study, for this one's driver had been silent"
        for slot in self.seats.slots if taken is None else [taken]:
            if slot.trial is not None:
                stopped += self.attempt_lost(self._attempts[slot.trial], "left", error, now)
            self.slot_lost(slot, now)  # it gives nothing to cancel: what was under way there is lost already
        return [Cancel(attempt, stop=True) for attempt, _ in stopped]

    def sign(self, attempt: Attempt, now: float, rank: int = 0, data: Mapping[str, Any] | None = None) -> None:
        """A rank is at work: it has been submitted, or has shown life, or has progress to tell (`data`)."""
        if not attempt.under_way:
            return
        attempt.signs[rank] = now
        if data is not None:
            job = attempt.job
            self.events.append(Event(Kind.PROGRESS, now, job.trial, job.phase, attempt.slot.index, data))

    def rank_ended(self, attempt: Attempt, now: float, rank: int, result: Mapping[str, Any]) -> list[Cancel]:
        """Take what a rank's task returned (`worker.run_phase`); the phase ends with that of rank 0."""
        if not attempt.under_way or attempt.signs.pop(rank, None) is None:
            return []
        if "error" not in result:
            if rank == 0:
                self.phase_ended(attempt, now, {"score": float(result["metrics"]["score"]), **result})
            return []
        if result.get("peer_lost"):  # the rank that it has lost will explain itself, or its worker is found dead
            error = attempt.label(rank) + result["error"]
            attempt.suspicion = attempt.suspicion or (now, error, result["traceback"])
            return []
        if (saved := result.get("left")) is not None:
            kept = "saved within the phase" if saved else "begins the phase again"
            return self.worker_left(attempt, rank, now, f"was told to leave; the trial {kept}")
        details = {name: result[name] for name in ("traceback", "place", "retry")}
        return self.attempt_lost(attempt, "exception", result["error"], now, rank=rank, **details)

    def phase_ended(self, attempt: Attempt, now: float, data: Mapping[str, Any]) -> None:
        """Hold the trial on its slot, a verdict being due; `data` is the event's."""
        if not attempt.under_way:
            return
        attempt.under_way, attempt.alive = False, attempt.left is None
        attempt.checkpoint = data["checkpoint"]
        job = attempt.job
        self.events.append(Event(Kind.PHASE_ENDED, now, job.trial, job.phase, attempt.slot.index, data))

    def attempt_lost(
        self,
        attempt: Attempt,
        why: str,
        error: str,
        now: float,
        traceback: str = "",
        place: str = "",
        *,
        rank: int | None = None,
        retry: bool = True,
    ) -> list[Cancel]:
        """Free the slot, and let the trial wait for another attempt if there is one left; else it fails.

        What is called ``left`` is no fault of the trial's: it does not count, and the next attempt bears its number.
        """
        if not attempt.under_way:
            return []
        job, number = attempt.job, attempt.number + (why != "left")
        again = retry and number <= self._max_retries
        self._leave(attempt)
        label = "" if rank is None else attempt.label(rank)
        data = {"why": why, "error": label + error, "place": place, "traceback": traceback, "attempt": attempt.number}
        kind = Kind.PHASE_FAILED if again else Kind.TRIAL_FAILED
        self.events.append(Event(kind, now, job.trial, job.phase, attempt.slot.index, data))
        if again:
            self.waiting.append((job, number))
            if why != "left" and number > 1:
                self._shunned[job.trial] = attempt.slot
        return [Cancel(attempt, stop=len(attempt.slot.names) > 1)]

    def driver_was_away(self, seconds: float, now: float) -> None:
        """Leave out a time in which nobody listened: silence then was the driver's own, until what came meanwhile."""
        for attempt in self._attempts.values():
            attempt.signs = {rank: min(at + seconds, now) for rank, at in attempt.signs.items()}
            attempt.left = attempt.left and min(attempt.left + seconds, now)
            if attempt.suspicion is not None:
                at, error, traceback = attempt.suspicion
                attempt.suspicion = (min(at + seconds, now), error, traceback)

    def time_passed(self, now: float) -> list[Instruction]:
        """Give up attempts that are silent, or that a rank has called lost for long enough; then seat what waits.

        Slots that became free because an attempt failed are given back first, if any are to be.
        """
        instructions: list[Instruction] = []
        for attempt in [attempt for attempt in self._attempts.values() if attempt.under_way]:
            if attempt.left is not None:
                if now - attempt.left > self._leave_s:
                    error = f"the worker on {attempt.slot.node} left, and nothing more was heard of it"
                    instructions += self.attempt_lost(attempt, "left", error, now)
                continue
            silent = {rank: now - at for rank, at in attempt.signs.items() if now - at > self._stall_s}
            if silent:
                rank, longest = max(silent.items(), key=lambda item: item[1])
                instructions += self.slot_lost(attempt.slot, now, rank, longest)
                instructions += [Restart(attempt.slot, rank) for rank in silent]
            elif attempt.suspicion is not None and now - attempt.suspicion[0] > self._cause_s:
                _, error, traceback = attempt.suspicion
                instructions += self.attempt_lost(attempt, "crash", error, now, traceback)
        return [*instructions, *self.give_back(self.surplus, now), *self.seat_waiting(now)]

    # -- who holds what -------------------------------------------------------------------------------------------

    def _submit(self, job: Job, number: int, now: float, slot: Slot | None = None, alive: bool = False) -> Submit:
        """Begin an attempt; without a slot of its own on the free one that the job names, else on the lowest."""
        if slot is None:
            if not self.seats.n_free:
                raise SchedulerError(f"trial {job.trial} cannot start: no slot of {self.seats.n_up} is free")
            slot = self.seats.take(job.trial, job.slot)
        self._shunned.pop(job.trial, None)
        attempt = self._attempts[job.trial] = Attempt(job, number, slot, now, alive, next(self._marks))
        self.events.append(Event(Kind.PHASE_STARTED, now, job.trial, job.phase, slot.index))
        return Submit(attempt)

    def _leave(self, attempt: Attempt) -> None:
        """Take a trial off its slot."""
        attempt.under_way = False
        del self._attempts[attempt.job.trial]
        self.seats.leave(attempt.slot)
