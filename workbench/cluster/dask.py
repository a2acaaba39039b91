"""Real time: trials on the workers of a Dask cluster."""

import math
import queue
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from distributed import Client, Future
from distributed.client import ClosedClientError

from workbench.cluster.attempts import Attempt, Attempts, Cancel, Instruction, Restart, Submit
from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.connection import Connection
from workbench.cluster.growing import planned_workers, scale, warn_of_threads
from workbench.cluster.local import ending_of
from workbench.cluster.parcel import parcelled
from workbench.cluster.seats import Release
from workbench.cluster.slots import Slots
from workbench.cluster.tasks import AWAY, Tasks
from workbench.cluster.uploads import Arrivals
from workbench.core.errors import InvalidInput, first_line
from workbench.core.protocols import Event, Job, Kind, TrainableFactory, Verdict, ranks_needed

_LOOK_S = 1.0  # between looks at the clock, where nothing happens
_RECONCILE_S = 5.0  # between looks at the workers there are
_EAGER_S = 1.0  # the same where more slots are wanted
_SETTLED_S = 60.0  # in which workers that come or go by themselves are expected
_RESULT_S = 5.0
_CLOSE_S = 30.0
_LEAVE_S = 40.0  # within which a worker that was told to leave says what became of its phase
_CAUSE_S = 10.0  # within which the death of a worker becomes known, after its gang has noticed
_NOTHING: Mapping[str, Any] = {  # as of `Sharing.workers`
    "workers": {}, "surplus": 0, "left": [], "gone": [], "taken": [], "others": 0, "to_come": 0
}  # fmt: skip


@dataclass
class DaskExecutor:
    """Runs each phase as a task pinned to one worker, which keeps the live trial between phases.

    A worker is one slot, whatever its thread count. Where a trial needs several (`GangFactory`), that many workers
    form a slot, those of one host first, and a phase is a task on each; a slot whose workers are not all up is down,
    and those that are left form another as soon as there are enough. Lost workers and silent ones cost one attempt at
    one phase: the trial is retried from its last checkpoint, on its own slot when the nanny has brought it back or on
    another free one, up to `max_retries` times a phase; then it fails, alone.

    Parameters
    ----------
    client : distributed.Client
        Of any cluster whose workers can import what `factory` needs.
    factory : TrainableFactory
    checkpoints : CheckpointStore
    max_retries : int
        Further attempts at a phase after a crash, a stall or an exception.
    stall_s : float
        Longest silence of a running phase; after it the worker is given up, and its nanny, if it has one, replaces
        it. It must exceed the time a trial needs to come up, and the longest time between two of its signs of
        progress.
    study : str, optional
        The study's identity. Phases that an earlier driver of the same study left running on the cluster are
        cancelled.
    weight : float
        Its share of the cluster's workers, against those of other studies that run on it.
    """

    client: Client
    factory: TrainableFactory
    checkpoints: CheckpointStore
    max_retries: int = 2
    stall_s: float = 300.0
    study: str = ""
    weight: float = 1.0

    def __post_init__(self) -> None:
        self._study = self.study or uuid.uuid4().hex[:12]
        self._sent = parcelled(self.factory, self.checkpoints.root)
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()  # filled by the client's own thread
        self._line = Connection(
            self.client,
            self._study,
            on_workers=lambda: self._inbox.put(self._reconcile),
            on_message=lambda message: self._inbox.put(partial(self._hear, message)),
        )
        self._book = Attempts(self.max_retries, self.stall_s, _CAUSE_S, _LEAVE_S)
        self._wanted = 1  # slots, so that a cluster that grows when it is asked to has a beginning
        self._others = self._to_come = 0  # workers that are not its own, and of them those that may be soon
        self._n_ranks = ranks_needed(self.factory)
        self._slots = Slots(self._n_ranks)
        self._restarting: set[str] = set()  # lives given up for good: a restarted worker has a new one
        self._tasks = Tasks(
            self._line,
            self._sent,
            self.checkpoints,
            self._study,
            self._n_ranks,
            ended=lambda *over: self._inbox.put(partial(self._finish, *over)),
        )
        self._arrivals = Arrivals(_LEAVE_S)
        self._answer_s = _RESULT_S if self.checkpoints.remote else 0.0
        self._start_clock = (0.0, time.monotonic())
        self._reconciled = self._looked = self._changed = 0.0
        self._had = 0  # slots, when it was last told how many are wanted
        self._unheard = False  # whether Dask's scheduler does not answer, through which all is told

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
        """Seconds on the study's clock."""
        at, began = self._start_clock
        return at + time.monotonic() - began

    def open(self, at: float) -> None:
        """Start the clock at `at`, learn which workers there are, and end what an earlier driver left running."""
        self._start_clock = (at, time.monotonic())
        self._looked = at
        self._arrivals.begin(self._line.take_over(self._answer_s))
        self._reconcile()
        warn_of_threads(self.client)
        there, planned = self._slots.n_workers + self._others, planned_workers(self.client.cluster)
        if self._n_ranks > max(there, planned or 1):
            raise InvalidInput(
                f"a trial needs a gang of {self._n_ranks} workers, the cluster has {there}: "
                "add workers, or lower n_ranks"
            )

    def start(self, job: Job) -> None:
        """Run the job's phase on a free worker, on the one it names if that is free."""
        if job.keep and job.checkpoint is not None:
            _pin(self.checkpoints, job.checkpoint)
        self._carry_out(self._book.start(job, self.now))

    def apply(self, trial: int, verdict: Verdict) -> None:
        """Carry out a verdict on a trial that has ended a phase, or is held."""
        self._carry_out(self._book.verdict(trial, verdict, self.now))

    def drop(self, trial: int) -> None:
        """Free a trial's slot at once; a phase under way there ends at its next sign of progress, unheard."""
        self._carry_out(self._book.drop(trial))

    def want(self, slots: int) -> bool:
        """Say how many slots the study could use: clusters that adapt grow to it, others that share hear of it.

        Whether more than there are may come, so that trials at a barrier wait on, is told by the first line that holds:

        | there are | more may come |
        |---|---|
        | workers of a study that is not `stuck`, or of none (`to_come` of `Sharing.workers`) | yes: it may have them |
        | fewer workers than the cluster is to have (`planned_workers`) | yes: it grows |
        | as many as it is to have, those of stuck studies among them | no: two would wait for each other |
        | workers of a cluster of which nobody here knows | for a minute after slots have come or gone (`_SETTLED_S`) |

        What another study is owed goes the other way, as `surplus`: see `Attempts.give_back`.
        """
        self._wanted = slots
        if self.n_slots != self._had:
            self._had, self._changed = self.n_slots, self.now
        if slots <= self.n_slots or self._to_come:
            return slots > self.n_slots
        planned = planned_workers(self.client.cluster)
        if planned is None:
            return self.now - self._changed < _SETTLED_S
        return planned > self._slots.n_workers + self._others

    def scale(self, nodes: int) -> None:
        """Ask the cluster this executor's client belongs to for so many workers; one that adapts stops adapting."""
        scale(self.client.cluster, nodes)

    def wait(self, timeout_s: float | None = None) -> Sequence[Event]:
        """Return the events since the last call, in order, waiting for one if there is none."""
        self._carry_out(self._book.seats.release())
        until = math.inf if timeout_s is None else self.now + timeout_s
        while True:
            self._listen(min(max(until - self.now, 0.0), _LOOK_S))
            if (events := self._book.take_events()) or self.now >= until:
                return events

    def caused(self) -> Sequence[Event]:
        """Return the events of the calls since `wait`."""
        return self._book.take_events()

    def _listen(self, most_s: float) -> None:
        """Take in what the cluster tells, waiting for a first word if nothing has happened; then look at the clock."""
        block = not self._book.events
        with suppress(queue.Empty):
            while True:
                self._inbox.get(block, most_s)()
                block = False
        eager = self.n_slots < self._wanted
        if self.now - self._reconciled > (_EAGER_S if eager else _RECONCILE_S):  # a message may also have been lost
            self._reconcile()
        away = self.now - self._looked - (0.0 if self._unheard else max(2 * _LOOK_S, self.stall_s / 10))
        if away > 0:  # this process, or the scheduler's, was stopped or suspended, or was long at something else
            self._book.driver_was_away(away, self.now)
        for attempt in self._arrivals.waiting:
            self._book.sign(attempt, self.now)
        self._carry_out(self._book.time_passed(self.now))
        self._looked = self.now

    def close(self) -> None:
        """Cancel what runs, close what lives on the workers, and leave the cluster as it was found."""
        try:
            if self._line.unbroken:
                with suppress(*AWAY):
                    self._tasks.cancel_all(self._slots.addresses)
                self._arrivals.forget_waiting()
                until = self.now + self.stall_s  # what workers send is let arrive, for as long as a phase may be silent
                while self._arrivals and self._line.unbroken and self.now < until:
                    with suppress(queue.Empty):
                        self._inbox.get(timeout=_LOOK_S)()
                self._tasks.release_all([slot for (slot,) in self._book.seats.release(everything=True)], _CLOSE_S)
        finally:
            self._line.close()
            self._sent.remove()

    # -- what the book of attempts asks for -------------------------------------------------------------------

    def _carry_out(self, instructions: Iterable[Instruction]) -> None:
        for instruction in instructions:
            match instruction:
                case Submit(attempt) if attempt.under_way:  # else the cluster went while another was being submitted
                    self._tasks.begin(attempt)
                    if self._arrivals.must_wait(attempt):
                        continue
                    try:
                        self._tasks.submit(attempt, 0)
                        self._book.sign(attempt, self.now)
                    except ClosedClientError:  # the cluster has just gone; `_reconcile` will look for it
                        self._carry_out(self._book.out_of_reach(self.now))
                case Cancel(attempt, stop):
                    self._tasks.cancel(attempt, stop)
                case Restart(slot, rank):
                    self._restarting.add(slot.lives[rank])
                    self._line.restart(slot.addresses[rank])
                case Release(slot):
                    self._tasks.release(slot)

    # -- what the cluster tells -------------------------------------------------------------------------------

    def _finish(self, attempt: Attempt, rank: int, future: Future) -> None:
        """A rank's task is over, in one way or another."""
        if not attempt.under_way:
            return  # its phase has ended, or it was given up: its worker was lost or restarted
        if attempt.left is not None:
            return  # its worker was told to leave, and will say what became of it
        status, why = future.status, "crash"
        if not self._line.unbroken:
            self._reconcile()
            return
        if status == "finished":
            if rank not in attempt.signs:
                return  # its message has come
            try:  # its message has been lost: it should have come first
                self._take(attempt, rank, future.result(timeout=_RESULT_S))
                return
            except AWAY:
                error = "the worker died before its result could be fetched"
        elif status == "error":
            cause = future.exception()
            if isinstance(cause, (ImportError, AttributeError)):  # the trial's own do not come this way
                raise InvalidInput(
                    f"the worker at {attempt.slot.addresses[rank]} does not have the workbench that is here "
                    f"({first_line(cause)}): install it there as it is here, and start the worker again"
                )
            error = f"the worker died: {cause}"
        else:
            if status in ("cancelled", "lost"):  # somebody restarted the cluster: no fault of the trial's
                why = "left"
            error = f"the worker died: {status}"
        self._carry_out(self._book.attempt_lost(attempt, why, error, self.now, rank=rank))

    def _take(self, attempt: Attempt, rank: int, result: Mapping[str, Any]) -> None:
        life = self._tasks.life_of(attempt, rank)
        if "left" in result:
            self._restarting.add(life)
        outcome = {key: value for key, value in result.items() if key != "on_its_way"}
        if "checkpoint" in result and attempt.under_way:
            self._arrivals.sent(result["checkpoint"], life, result["on_its_way"])
            self._tasks.proved |= not result["on_its_way"]
        self._carry_out(self._book.rank_ended(attempt, self.now, rank, outcome))
        if not attempt.under_way:
            self._tasks.forget(attempt)

    def _hear(self, message: Mapping[str, Any]) -> None:
        """A worker shows life, or more: where rank 0 is, what it has measured, how its task has ended."""
        if "arrived" in message:
            if message["error"]:
                failed = {"metrics": {}, "note": message["error"]}
                note = Event(Kind.PROGRESS, self.now, message["trial"], message["phase"], data=failed)
                self._book.events.append(note)
                warnings.warn(f"checkpoint {message['arrived']} was not sent: {message['error']}", stacklevel=2)
            else:
                self._tasks.proved = True
            self._carry_out(map(Submit, self._arrivals.arrived(message["arrived"])))
            return
        if "left" in message:  # a worker has gone as it was told to: what it had not begun begins elsewhere
            self._restarting.add(message["left"])
            for lost, of in self._tasks.under_way_on(message["left"]):
                self._carry_out(self._book.worker_left(lost, of, self.now))
            return
        attempt, rank = self._tasks.of(message), message["rank"]
        if attempt is None:
            return
        if "result" in message:
            self._take(attempt, rank, message["result"])
        elif "meet" in message:
            self._book.sign(attempt, self.now, rank)
            with suppress(ClosedClientError):
                for other in range(1, self._n_ranks):
                    self._tasks.submit(attempt, other, message["meet"], message["again"])
                    self._book.sign(attempt, self.now, other)
        else:  # of ranks other than 0 it is enough that they live
            data = {key: message[key] for key in ("metrics", "note") if key in message}
            self._book.sign(attempt, self.now, rank, None if rank else data)

    def _reconcile(self) -> None:
        """Compare our slots with the workers there are."""
        self._reconciled = self.now
        status: Mapping[str, Any] | None = _NOTHING
        if not self._line.unbroken:  # our futures are gone with the line
            self._carry_out(self._book.out_of_reach(self.now))
            if self._line.reconnect():
                self._arrivals.begin(self._line.take_over(self._answer_s))
        if self._line.unbroken:
            status = self._line.workers(
                weight=self.weight,
                wanted=self._wanted * self._n_ranks,
                unit=self._n_ranks,
                held=self._slots.held,
                busy=self._slots.busy,
                sending=self._arrivals.senders,
                stuck=self._book.stuck,
            )
        self._unheard = status is None
        if status is None:
            return  # out of reach for the moment: what we know stands until the next look
        self._others, self._to_come = status["others"], status["to_come"]
        for slot, ranks in self._slots.with_lost_workers(status["workers"]):
            if any(life in status["taken"] for life in slot.lives):
                self._carry_out(self._book.out_of_reach(self.now, taken=slot))
                continue
            left = all(slot.lives[rank] in status["left"] for rank in ranks)
            ended = "" if slot.trial is None or left else ending_of(self.client, slot.addresses[ranks[0]])
            self._carry_out(self._book.slot_lost(slot, self.now, ranks[0], ended=ended, left=left))
        lost = self._arrivals.lost(status["gone"], status["left"], self.now)
        self._carry_out(map(Submit, self._arrivals.arrived(*lost)))
        for slot in self._slots.form(status["workers"], self._restarting):
            self._book.slot_joined(slot, self.now)
        self._carry_out(self._book.give_back(status["surplus"], self.now))


def _pin(checkpoints: CheckpointStore, name: str) -> None:
    """Keep a checkpoint that others start from, at a URL in the background; should this fail, the newest two are."""

    def pin() -> None:
        with suppress(Exception):
            checkpoints.pin(name)

    threading.Thread(target=pin, daemon=True).start() if checkpoints.remote else pin()
