"""Real time: trials on the workers of a Dask cluster."""

import queue
import time
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from distributed import CancelledError, Client, Future
from distributed.client import ClosedClientError

from workbench.cluster import worker
from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.connection import Connection
from workbench.cluster.slots import Slot, Slots
from workbench.core.errors import InvalidInput, SchedulerError
from workbench.core.protocols import Event, Job, Kind, TrainableFactory, Verdict, ranks_needed

_RECONCILE_S = 5.0
_RESULT_S = 5.0
_FAREWELL_S = 30.0
_CAUSE_S = 10.0  # within which the death of a worker becomes known, after its gang has noticed


@dataclass
class _Attempt:
    """One try at one phase of one trial."""

    job: Job
    number: int  # 0 for the first
    slot: Slot
    signs: dict[int, float]  # rank at work → when it last showed life, seconds on the executor's clock
    futures: dict[int, Future] = field(default_factory=dict)
    suspicion: tuple[float, str, str] | None = None  # when a rank lost another, its error, its traceback

    def label(self, rank: int) -> str:
        n = len(self.slot.names)
        return f"rank {rank} of {n}: " if n > 1 else ""


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
        Longest silence of a running phase; after it the worker is restarted through its nanny. It must exceed
        the time a trial needs to come up, and the longest time between two of its signs of progress.
    study : str, optional
        The study's identity. Phases that an earlier driver of the same study left running on the cluster are
        cancelled.
    """

    client: Client
    factory: TrainableFactory
    checkpoints: CheckpointStore
    max_retries: int = 2
    stall_s: float = 300.0
    study: str = ""
    _attempts: dict[int, _Attempt] = field(init=False, default_factory=dict, repr=False)
    _jobs: dict[int, Job] = field(init=False, default_factory=dict, repr=False)  # trials that hold a slot
    _waiting: deque[tuple[Job, int]] = field(init=False, default_factory=deque, repr=False)
    _inbox: "queue.SimpleQueue[tuple[str, Any]]" = field(init=False, default_factory=queue.SimpleQueue, repr=False)
    _events: list[Event] = field(init=False, default_factory=list, repr=False)

    def __post_init__(self) -> None:
        if self.max_retries < 0 or self.stall_s <= 0:
            raise InvalidInput(f"need max_retries >= 0 and stall_s > 0, got {self.max_retries} and {self.stall_s}")
        study = self.study or uuid.uuid4().hex[:12]
        self._study = study
        self._line = Connection(self.client, study, self._on_cluster_event, self._on_progress)
        self._start_clock = (0.0, time.monotonic())
        self._reconciled = 0.0
        self._n_ranks = ranks_needed(self.factory)
        self._slots = Slots(self._n_ranks)
        self._restarting: set[str] = set()  # addresses given up for good; a restarted worker has a new one

    # -- what the driver sees ---------------------------------------------------------------------------------

    @property
    def n_slots(self) -> int:
        """Slots that are up."""
        return self._slots.n_up

    @property
    def n_free(self) -> int:
        """Slots that are up, hold no trial, and are not needed for a retry."""
        return max(len(self._slots.free) - len(self._waiting), 0)

    @property
    def now(self) -> float:
        """Seconds on the study's clock."""
        at, began = self._start_clock
        return at + time.monotonic() - began

    def open(self, at: float) -> None:
        """Start the clock at `at`, learn which workers there are, and end what an earlier driver left running."""
        self._start_clock = (at, time.monotonic())
        self._line.greet()
        self._reconcile()
        if self._n_ranks > 1 and not self.n_slots:
            raise InvalidInput(
                f"a trial needs a gang of {self._n_ranks} workers, the cluster has {len(self._slots.apart)}: "
                "add workers, or lower n_ranks"
            )

    def start(self, job: Job) -> None:
        """Run the job's phase on a free worker, on the one it names if that is free."""
        if job.checkpoint is not None and not job.checkpoint.startswith(f"trial-{job.trial:05d}/"):
            with suppress(OSError):  # the donor may go on; if this fails, its newest two are kept all the same
                self.checkpoints.pin(job.checkpoint)
        self._submit(job, 0, self._slots.choose(job.trial, job.slot))

    def apply(self, trial: int, verdict: Verdict) -> None:
        """Carry out a verdict on a trial that has ended a phase, or is held."""
        job = self._jobs.get(trial)
        if job is None or trial in self._attempts:
            raise SchedulerError(f"verdict {verdict} on trial {trial}, which is not waiting for one")
        if verdict is Verdict.CONTINUE:
            following = replace(job, phase=job.phase + 1)
            slot = self._slots.of(trial)
            if slot is not None and slot.up:
                self._submit(following, 0, slot)
            else:  # its worker died while it was held
                self._leave(trial)
                self._waiting.append((following, 0))
        elif verdict is not Verdict.HOLD:
            self._leave(trial)

    def drop(self, trial: int) -> None:
        """Free a trial's slot at once; a phase under way there ends at its next sign of progress, unheard."""
        attempt = self._attempts.get(trial)
        if attempt is not None:
            self._cancel(attempt)
        self._leave(trial)
        self._waiting = deque((job, number) for job, number in self._waiting if job.trial != trial)
        self._events = [event for event in self._events if event.trial != trial]

    def scale(self, nodes: int) -> None:
        """Ask the cluster this executor's client belongs to for a number of workers."""
        cluster = self.client.cluster
        if cluster is None or not hasattr(cluster, "scale"):
            raise InvalidInput(
                "this cluster was not started from here and cannot be scaled from here: add workers to it"
            )
        cluster.scale(nodes)

    def wait(self, timeout_s: float | None = None) -> Sequence[Event]:
        """Return the events since the last call, in order, waiting for one if there is none."""
        self._release_idle()
        block = not self._events
        if any(attempt.suspicion for attempt in self._attempts.values()):
            timeout_s = _CAUSE_S if timeout_s is None else min(timeout_s, _CAUSE_S)
        try:
            while True:
                self._handle(*self._inbox.get(block, timeout_s))
                block = False
        except queue.Empty:
            pass
        if self.now - self._reconciled > _RECONCILE_S:  # should a message of the cluster's have been lost
            self._reconcile()
        self._restart_stalled()
        self._believe_hearsay()
        while self._waiting and self._slots.free:
            job, attempt = self._waiting.popleft()
            self._submit(job, attempt, self._slots.choose(job.trial, job.slot))
        events, self._events = self._events, []
        return events

    def close(self) -> None:
        """Cancel what runs, close what lives on the workers, and leave the cluster as it was found."""
        try:
            if self._line.unbroken:
                self._cancel_running()
                for future in [future for slot in self._slots for future in self._release(slot)]:
                    future.exception(timeout=_FAREWELL_S)
        except (OSError, TimeoutError, CancelledError):
            pass  # the cluster went away first, or hangs: nothing more can be released
        finally:
            self._line.close()

    def _cancel_running(self) -> None:
        addresses = [address for slot in self._slots for address in slot.addresses]
        if self._attempts and addresses:
            futures = [future for attempt in self._attempts.values() for future in attempt.futures.values()]
            self._line.cancel(futures, addresses)

    # -- submitting and finishing attempts --------------------------------------------------------------------

    def _submit(self, job: Job, number: int, slot: Slot) -> None:
        attempt = _Attempt(job, number, slot, {})
        try:
            self._submit_rank(attempt, 0)
        except ClosedClientError:  # the cluster has just gone; `_reconcile` will see to its slots
            self._leave(job.trial)
            self._waiting.append((job, number))
            self._all_lost()
            return
        slot.trial, slot.dirty = job.trial, True
        self._jobs[job.trial] = job
        self._attempts[job.trial] = attempt
        self._events.append(Event(Kind.PHASE_STARTED, self.now, job.trial, job.phase, slot.index))

    def _submit_rank(self, attempt: _Attempt, rank: int, address: str = "", again: int = 0) -> None:
        """Submit a rank's task; that of rank 0 comes first, the others' when it has said where it is."""
        job, slot, topic = attempt.job, attempt.slot, self._line.topic
        task = worker.PhaseTask(
            job,
            self.factory,
            self.checkpoints,
            self._study,
            topic,
            attempt.number,
            rank,
            self._n_ranks,
            address,
            again,
        )
        key = f"{topic}-trial-{job.trial}-phase-{job.phase}-rank-{rank}-{uuid.uuid4().hex[:8]}"
        future = self._line.submit(worker.run_phase, task, address=slot.addresses[rank], key=key)
        attempt.futures[rank], attempt.signs[rank] = future, self.now
        future.add_done_callback(lambda _: self._inbox.put(("done", (attempt, rank))))

    def _handle(self, what: str, message: Any) -> None:
        if what == "done":
            self._finish(*message)
        elif what == "progress":
            self._progress(message)
        elif what == "cluster":
            self._reconcile()

    def _finish(self, attempt: _Attempt, rank: int) -> None:
        if self._attempts.get(attempt.job.trial) is not attempt:
            return  # given up meanwhile: its worker was lost or restarted
        future = attempt.futures[rank]
        status = future.status
        if not self._line.unbroken:
            self._reconcile()
            return
        if status != "finished":
            gone = status in ("cancelled", "lost")  # somebody restarted the cluster: no fault of the trial's
            error = future.exception() if status == "error" else None
            self._lose(attempt, "crash", f"{attempt.label(rank)}the worker died: {error or status}", counts=not gone)
            return
        if rank not in attempt.signs:
            return  # its message has come
        try:  # its message has been lost: it should have come first
            self._take(attempt, rank, future.result(timeout=_RESULT_S))
        except (OSError, TimeoutError, CancelledError):
            self._lose(attempt, "crash", f"{attempt.label(rank)}the worker died before its result could be fetched")

    def _take(self, attempt: _Attempt, rank: int, result: Mapping[str, Any]) -> None:
        attempt.signs.pop(rank, None)
        if "error" in result:
            error, traceback = attempt.label(rank) + result["error"], result["traceback"]
            if result.get("hearsay"):  # the rank that it has lost will explain itself, or its worker is found dead
                attempt.suspicion = attempt.suspicion or (self.now, error, traceback)
            else:
                self._lose(attempt, "exception", error, traceback, place=result["place"], retry=result["retry"])
            return
        if rank:
            return
        job = attempt.job
        del self._attempts[job.trial]
        self._jobs[job.trial] = replace(job, checkpoint=result["checkpoint"])
        data = {"score": float(result["metrics"]["score"]), **result}
        self._events.append(Event(Kind.PHASE_ENDED, self.now, job.trial, job.phase, attempt.slot.index, data))

    def _lose(
        self,
        attempt: _Attempt,
        why: str,
        error: str,
        traceback: str = "",
        *,
        place: str = "",
        retry: bool = True,
        counts: bool = True,
    ) -> None:
        job, slot = attempt.job, attempt.slot
        number = attempt.number + counts
        again = retry and number <= self.max_retries
        data = {"why": why, "error": error, "place": place, "traceback": traceback, "attempt": attempt.number}
        kind = Kind.PHASE_FAILED if again else Kind.TRIAL_FAILED
        self._leave(job.trial)
        if len(attempt.futures) > 1 and counts:  # ranks that are left; if it does not count, the retry has this name
            self._cancel(attempt)
        for future in attempt.futures.values():
            if future.status == "pending":
                future.cancel()
        self._events.append(Event(kind, self.now, job.trial, job.phase, slot.index, data))
        if again:
            self._waiting.append((job, number))

    def _believe_hearsay(self) -> None:
        """Give up an attempt whose ranks have lost one of them, and nothing has been heard of why."""
        for attempt in list(self._attempts.values()):
            if attempt.suspicion is not None and self.now - attempt.suspicion[0] > _CAUSE_S:
                _, error, traceback = attempt.suspicion
                self._lose(attempt, "crash", error, traceback)

    def _cancel(self, attempt: _Attempt) -> None:
        """Make what is left of an attempt stop at its next sign of progress."""
        name = worker.attempt_name(attempt.job, attempt.number)
        self._line.cancel_attempt(name, list(attempt.slot.addresses))

    def _leave(self, trial: int) -> None:
        """Take a trial off its slot."""
        slot = self._slots.of(trial)
        if slot is not None:
            slot.trial = None
        self._attempts.pop(trial, None)
        self._jobs.pop(trial, None)

    # -- slots ------------------------------------------------------------------------------------------------

    def _release_idle(self) -> None:
        for slot in self._slots.free:
            self._release(slot)

    def _release(self, slot: Slot) -> list[Future]:
        if not slot.dirty or not slot.up:
            return []
        slot.dirty, slot.releasing = False, []
        with suppress(ClosedClientError):
            for address in slot.addresses:
                key = f"{self._line.topic}-release-{uuid.uuid4().hex[:8]}"
                slot.releasing.append(self._line.submit(worker.release, self._study, address=address, key=key))
        return slot.releasing

    # -- the cluster's comings and goings ---------------------------------------------------------------------

    def _reconcile(self) -> None:
        """Compare our slots with the workers there are."""
        self._reconciled = self.now
        workers: Mapping[str, Any] | None = {}
        if self._line.unbroken:
            workers = self._line.workers()
        else:
            self._all_lost()
            if self._line.mend():
                self._line.greet()
                workers = self._line.workers()
        if workers is None:
            return  # out of reach for the moment: what we know stands until the next look
        for slot, gone in self._slots.bereft(workers):
            self._slot_lost(slot, gone)
        for slot in self._slots.form(workers, self._restarting):
            self._events.append(Event(Kind.SLOT_JOINED, self.now, slot=slot.index, data=slot.place))

    def _slot_lost(self, slot: Slot, gone: Sequence[int]) -> None:
        """Take a slot down; `gone` are the ranks whose workers are."""
        attempt = self._attempts.get(slot.trial) if slot.trial is not None else None
        self._events.append(Event(Kind.SLOT_LOST, self.now, slot=slot.index, data=slot.place))
        if attempt is not None:
            rank = gone[0]
            self._lose(attempt, "crash", f"{attempt.label(rank)}the worker on {slot.nodes[rank]} died")
        slot.addresses = ()

    def _all_lost(self) -> None:
        """Give up everything under way on a cluster that is out of reach, or was: our futures are gone with it."""
        for slot in self._slots:
            attempt = self._attempts.get(slot.trial) if slot.trial is not None else None
            if attempt is not None:
                self._lose(attempt, "crash", "the connection to the cluster broke", counts=False)
            if slot.up:
                self._slot_lost(slot, [0])

    def _restart_stalled(self) -> None:
        for attempt in list(self._attempts.values()):
            silent = {rank: self.now - at for rank, at in attempt.signs.items() if self.now - at > self.stall_s}
            if not silent:
                continue
            slot, addresses = attempt.slot, attempt.slot.addresses
            rank = max(silent, key=lambda rank: silent[rank])
            error = f"no sign of progress for {silent[rank]:.0f} s on {slot.nodes[rank]}; worker restarted"
            self._lose(attempt, "stall", attempt.label(rank) + error)
            slot.addresses = ()
            self._events.append(Event(Kind.SLOT_LOST, self.now, slot=slot.index, data=slot.place))
            for rank, address in enumerate(addresses):
                if rank in silent:
                    self._restarting.add(address)
                    self._line.restart(address)

    # -- called on the client's own thread --------------------------------------------------------------------

    def _on_cluster_event(self, event: tuple[float, Any]) -> None:
        message = event[1]
        if isinstance(message, dict) and message.get("action") in ("add-worker", "remove-worker"):
            self._inbox.put(("cluster", message))

    def _on_progress(self, event: tuple[float, Any]) -> None:
        self._inbox.put(("progress", event[1]))

    def _progress(self, message: Mapping[str, Any]) -> None:
        attempt = self._attempts.get(message["trial"])
        if attempt is None or (attempt.job.phase, attempt.number) != (message["phase"], message["attempt"]):
            return
        rank = message["rank"]
        if "result" in message:
            self._take(attempt, rank, message["result"])
            return
        attempt.signs[rank] = self.now
        if "meet" in message:
            with suppress(ClosedClientError):
                for other in range(1, self._n_ranks):
                    self._submit_rank(attempt, other, message["meet"], message["again"])
            return
        if rank:
            return  # it lives: that is all that is asked of it
        data = {key: message[key] for key in ("metrics", "note") if key in message}
        self._events.append(
            Event(Kind.PROGRESS, self.now, attempt.job.trial, attempt.job.phase, attempt.slot.index, data)
        )
