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
from workbench.core.errors import InvalidInput, SchedulerError
from workbench.core.protocols import Event, Job, Kind, TrainableFactory, Verdict

_RECONCILE_S = 5.0
_RESULT_S = 5.0
_FAREWELL_S = 30.0


@dataclass
class _Slot:
    """One worker process, and the trial it holds."""

    index: int
    name: Any  # the worker's name: it survives a restart by the nanny, the address does not
    node: str
    address: str | None = None
    trial: int | None = None
    dirty: bool = False  # the worker may still keep a trial this slot has given up
    releasing: Future | None = None  # kept, for a future without a holder is cancelled


@dataclass
class _Attempt:
    """One try at one phase of one trial."""

    job: Job
    number: int  # 0 for the first
    slot: _Slot
    future: Future
    last_sign: float  # seconds on the executor's clock


@dataclass
class DaskExecutor:
    """Runs each phase as a task pinned to one worker, which keeps the live trial between phases.

    A worker is one slot, whatever its thread count. Lost workers and silent ones cost one attempt at one phase:
    the trial is retried from its last checkpoint, on its own slot when the nanny has brought it back or on
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
    _slots: dict[Any, _Slot] = field(init=False, default_factory=dict, repr=False)
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
        self._restarting: set[str] = set()  # addresses given up for good; a restarted worker has a new one

    # -- what the driver sees ---------------------------------------------------------------------------------

    @property
    def n_slots(self) -> int:
        """Workers that are up."""
        return sum(slot.address is not None for slot in self._slots.values())

    @property
    def n_free(self) -> int:
        """Workers that are up, hold no trial, and are not needed for a retry."""
        return max(len(self._free()) - len(self._waiting), 0)

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

    def start(self, job: Job) -> None:
        """Run the job's phase on a free worker, on the one it names if that is free."""
        if job.checkpoint is not None and not job.checkpoint.startswith(f"trial-{job.trial:05d}/"):
            with suppress(OSError):  # the donor may go on; if this fails, its newest two are kept all the same
                self.checkpoints.pin(job.checkpoint)
        self._submit(job, 0, self._choose(job))

    def apply(self, trial: int, verdict: Verdict) -> None:
        """Carry out a verdict on a trial that has ended a phase, or is held."""
        job = self._jobs.get(trial)
        if job is None or trial in self._attempts:
            raise SchedulerError(f"verdict {verdict} on trial {trial}, which is not waiting for one")
        if verdict is Verdict.CONTINUE:
            following = replace(job, phase=job.phase + 1)
            slot = self._slot_of(trial)
            if slot is not None and slot.address is not None:
                self._submit(following, 0, slot)
            else:  # its worker died while it was held
                self._leave(trial)
                self._waiting.append((following, 0))
        elif verdict is not Verdict.HOLD:
            self._leave(trial)

    def drop(self, trial: int) -> None:
        """Free a trial's slot at once; a phase under way there ends at its next sign of progress, unheard."""
        attempt = self._attempts.get(trial)
        if attempt is not None and attempt.slot.address is not None:
            self._line.cancel_attempt(worker.attempt_name(attempt.job, attempt.number), attempt.slot.address)
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
        try:
            while True:
                self._handle(*self._inbox.get(block, timeout_s))
                block = False
        except queue.Empty:
            pass
        if self.now - self._reconciled > _RECONCILE_S:  # should a message of the cluster's have been lost
            self._reconcile()
        self._restart_stalled()
        while self._waiting and self._free():
            job, attempt = self._waiting.popleft()
            self._submit(job, attempt, self._choose(job))
        events, self._events = self._events, []
        return events

    def close(self) -> None:
        """Cancel what runs, close what lives on the workers, and leave the cluster as it was found."""
        try:
            if self._line.unbroken:
                self._cancel_running()
                releases = [self._release(slot) for slot in self._slots.values()]
                for future in releases:
                    if future is not None:
                        future.exception(timeout=_FAREWELL_S)
        except (OSError, TimeoutError, CancelledError):
            pass  # the cluster went away first, or hangs: nothing more can be released
        finally:
            self._line.close()

    def _cancel_running(self) -> None:
        addresses = [slot.address for slot in self._slots.values() if slot.address is not None]
        if self._attempts and addresses:
            self._line.cancel([attempt.future for attempt in self._attempts.values()], addresses)

    # -- submitting and finishing attempts --------------------------------------------------------------------

    def _submit(self, job: Job, number: int, slot: _Slot) -> None:
        task = worker.PhaseTask(job, self.factory, self.checkpoints, self._study, self._line.topic, number)
        key = f"{self._line.topic}-trial-{job.trial}-phase-{job.phase}-{uuid.uuid4().hex[:8]}"
        try:
            future = self._line.submit(worker.run_phase, task, address=slot.address, key=key)
        except ClosedClientError:  # the cluster has just gone; `_reconcile` will see to its slots
            self._leave(job.trial)
            self._waiting.append((job, number))
            self._all_lost()
            return
        slot.trial, slot.dirty = job.trial, True
        self._jobs[job.trial] = job
        attempt = _Attempt(job, number, slot, future, self.now)
        self._attempts[job.trial] = attempt
        self._events.append(Event(Kind.PHASE_STARTED, self.now, job.trial, job.phase, slot.index))
        future.add_done_callback(lambda _: self._inbox.put(("done", attempt)))

    def _handle(self, what: str, message: Any) -> None:
        if what == "done":
            self._finish(message)
        elif what == "progress":
            self._progress(message)
        elif what == "cluster":
            self._reconcile()

    def _finish(self, attempt: _Attempt) -> None:
        if self._attempts.get(attempt.job.trial) is not attempt:
            return  # given up meanwhile: its worker was lost or restarted
        status = attempt.future.status
        if not self._line.unbroken:
            self._reconcile()
            return
        if status != "finished":
            gone = status in ("cancelled", "lost")  # somebody restarted the cluster: no fault of the trial's
            error = attempt.future.exception() if status == "error" else None
            self._lose(attempt, "crash", f"the worker died: {error or status}", counts=not gone)
            return
        try:
            result = attempt.future.result(timeout=_RESULT_S)
        except (OSError, TimeoutError, CancelledError):
            self._lose(attempt, "crash", "the worker died before its result could be fetched")
            return
        if "error" in result:
            self._lose(attempt, "exception", result["error"], result["traceback"], retry=result["retry"])
            return
        job = attempt.job
        del self._attempts[job.trial]
        self._jobs[job.trial] = replace(job, checkpoint=result["checkpoint"])
        data = {"score": float(result["metrics"]["score"]), **result}
        self._events.append(Event(Kind.PHASE_ENDED, self.now, job.trial, job.phase, attempt.slot.index, data))

    def _lose(
        self, attempt: _Attempt, why: str, error: str, traceback: str = "", *, retry: bool = True, counts: bool = True
    ) -> None:
        job, slot = attempt.job, attempt.slot
        number = attempt.number + counts
        again = retry and number <= self.max_retries
        data = {"why": why, "error": error, "traceback": traceback, "attempt": attempt.number}
        kind = Kind.PHASE_FAILED if again else Kind.TRIAL_FAILED
        self._leave(job.trial)
        if attempt.future.status == "pending":
            attempt.future.cancel()
        self._events.append(Event(kind, self.now, job.trial, job.phase, slot.index, data))
        if again:
            self._waiting.append((job, number))

    def _leave(self, trial: int) -> None:
        """Take a trial off its slot."""
        slot = self._slot_of(trial)
        if slot is not None:
            slot.trial = None
        self._attempts.pop(trial, None)
        self._jobs.pop(trial, None)

    # -- slots ------------------------------------------------------------------------------------------------

    def _free(self) -> list[_Slot]:
        return [slot for slot in self._slots.values() if slot.address is not None and slot.trial is None]

    def _choose(self, job: Job) -> _Slot:
        free = self._free()
        if not free:
            raise SchedulerError(f"trial {job.trial} cannot start: none of the {self.n_slots} slots is free")
        return next((slot for slot in free if slot.index == job.slot), free[0])

    def _slot_of(self, trial: int) -> _Slot | None:
        return next((slot for slot in self._slots.values() if slot.trial == trial), None)

    def _release_idle(self) -> None:
        for slot in self._free():
            self._release(slot)

    def _release(self, slot: _Slot) -> Future | None:
        if not slot.dirty or slot.address is None:
            return None
        slot.dirty = False
        with suppress(ClosedClientError):
            key = f"{self._line.topic}-release-{uuid.uuid4().hex[:8]}"
            slot.releasing = self._line.submit(worker.release, self._study, address=slot.address, key=key)
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
        for slot in self._slots.values():
            if slot.address is not None and slot.address not in workers:
                self._slot_lost(slot)
        known = {slot.address for slot in self._slots.values()}
        for address, info in workers.items():
            if address not in known | self._restarting and info.get("status", "running") == "running":
                self._slot_joined(address, info)

    def _slot_joined(self, address: str, info: Mapping[str, Any]) -> None:
        name = info["name"]
        slot = self._slots.get(name)
        if slot is None:
            slot = self._slots[name] = _Slot(len(self._slots), name, _node_of(info))
        slot.address, slot.dirty = address, True  # an earlier driver may have left a trial there
        self._events.append(Event(Kind.SLOT_JOINED, self.now, slot=slot.index, data={"node": slot.node}))

    def _slot_lost(self, slot: _Slot) -> None:
        slot.address = None
        self._events.append(Event(Kind.SLOT_LOST, self.now, slot=slot.index, data={"node": slot.node}))
        attempt = self._attempts.get(slot.trial) if slot.trial is not None else None
        if attempt is not None:
            self._lose(attempt, "crash", f"the worker on {slot.node} died")

    def _all_lost(self) -> None:
        """Give up everything under way on a cluster that is out of reach, or was: our futures are gone with it."""
        for slot in self._slots.values():
            attempt = self._attempts.get(slot.trial) if slot.trial is not None else None
            if attempt is not None:
                self._lose(attempt, "crash", "the connection to the cluster broke", counts=False)
            if slot.address is not None:
                self._slot_lost(slot)

    def _restart_stalled(self) -> None:
        for attempt in list(self._attempts.values()):
            silent_s = self.now - attempt.last_sign
            if silent_s > self.stall_s:
                address, attempt.slot.address = attempt.slot.address, None
                node, index = attempt.slot.node, attempt.slot.index
                self._lose(attempt, "stall", f"no sign of progress for {silent_s:.0f} s on {node}; worker restarted")
                self._events.append(Event(Kind.SLOT_LOST, self.now, slot=index, data={"node": node}))
                if address is not None:
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
        attempt.last_sign = self.now
        data = {key: message[key] for key in ("metrics", "note") if key in message}
        self._events.append(
            Event(Kind.PROGRESS, self.now, attempt.job.trial, attempt.job.phase, attempt.slot.index, data)
        )


def _node_of(info: Mapping[str, Any]) -> str:
    """Name a worker's host; on one machine each worker stands for a node of its own."""
    host = str(info.get("host", ""))
    return str(info["name"]) if host in ("", "127.0.0.1", "localhost", "::1") else host
