"""What happens on a Dask worker: it keeps one live trial, or one rank of it, and runs its phases as ordinary tasks."""

import asyncio
import math
import os
import signal
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import dask
from distributed import Worker, get_worker
from distributed.comm import get_address_host
from distributed.diagnostics.plugin import WorkerPlugin
from distributed.utils import sync

from workbench.cluster.checkpoints import DISK_FULL
from workbench.cluster.measured import MOST_ERROR, carried, check_score, numbers, one_line, parted, traceback_now
from workbench.cluster.memory import keep_freed_memory
from workbench.cluster.sharing import LEAVING
from workbench.cluster.task import PhaseTask, attempt_name
from workbench.cluster.uploads import Uploads
from workbench.core.errors import CheckpointError, InvalidInput, PeerLost, WorkbenchError
from workbench.core.failures import named, place_of, short
from workbench.core.protocols import RETURNS, GangFactory, GangTrainable, Metrics, Trainable

_REPORT_EVERY_S = 0.25
_DISK_RETRY_S = 2.0
_LEAVE_S = 25.0  # what a phase has to come to a sign of progress and save; Dask's nanny may leave it less


class PhaseCancelled(BaseException):
    """Raised out of `progress` when the driver wants the phase no more; not for trainables to catch."""


class Leaving(BaseException):
    """Raised out of `progress` when the worker has been told to leave; not for trainables to catch."""


@dataclass
class _Live:
    study: str
    owner: str  # topic of the driver that put it here
    trial: int
    rank: int
    next_phase: int
    trainable: Trainable
    from_part: bool = False  # whether it was brought up within a phase
    behind: bool = False  # whether it still runs phases again that come before the due one


_live: _Live | None = None
_uploads = Uploads()
_cancelled: set[tuple[str, str]] = set()  # (topic of a study, name of an attempt or all)
_driver: dict[str, str] = {}  # study → topic of the one driver that counts
_leaving = threading.Event()  # set when the worker has been told to leave
_left = threading.Event()  # set when it has said that nothing more will be heard of it
_topics: set[str] = set()  # of the drivers that have had something run here
_lock = threading.Lock()  # a release may overtake a phase that is being cancelled


def run_phase(task: PhaseTask) -> dict[str, Any]:
    """Run one phase on this worker, building or loading the trial first if it does not live here already.

    Returns
    -------
    dict
        ``metrics``, ``checkpoint``, ``wall_s``, ``save_s`` (of it, what the checkpoint took), ``on_its_way`` (whether
        the checkpoint is still being sent: only this machine has it yet), ``returns`` if the trainable gave any, and
        ``recovered`` if the checkpoint to go on from was refused; or ``error``, ``place`` (in the user's code),
        ``traceback``, ``retry`` (whether a second attempt makes sense), ``peer_lost`` (whether another rank is to
        blame) and ``left`` (whether the worker was told to leave). Failures travel as data: nothing of a user's
        exception need be importable elsewhere. A rank that is not 0 has nothing to tell but its failure.

    Notes
    -----
    What is returned goes to the driver as a message too: fetching it would hang if the worker died in between.
    """
    worker = get_worker()
    with _lock:
        leave_in_order(worker)
        _topics.add(task.topic)
        if _left.is_set():
            return {}
        result = _run(task)
        _tell(worker, task.topic, {**task.label, "result": result})
        return result


def _tell(worker: Worker, topic: str, message: dict[str, Any]) -> None:
    if _leaving.is_set():  # the scheduler may have struck it off already, and hears its stream no more
        with suppress(OSError, TimeoutError):
            sync(worker.loop, worker.scheduler.log_event, topic=topic, msg=message, callback_timeout=5)
    else:
        worker.log_event(topic, message)


class InOrder(WorkerPlugin):  # type: ignore[misc]
    """Lets a worker that is told to leave save first what runs on it: by SIGTERM, its lifetime, its nanny, a scheduler.

    SIGTERM reaches this process where a batch system sends it to all of a job's. Dask's nanny sends it as well, to a
    worker that takes too much memory: that one dies at once, for it would only come back and do the same.
    """

    name = "workbench-in-order"

    def setup(self, worker: Worker) -> None:
        self._worker = worker
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._on_signal)

    def _on_signal(self, number: int, frame: object) -> None:
        memory = self._worker.memory_manager
        most = dask.config.get("distributed.worker.memory.terminate") * (memory.memory_limit or 0)
        if 0 < 0.9 * most < self._worker.monitor.get_process_memory():
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        _leaving.set()
        self._worker.loop.add_callback(self._worker.close, nanny=False, reason="told to leave")

    async def teardown(self, worker: Worker) -> None:
        _leaving.set()
        worker.log_event(LEAVING, {"worker": worker.address})
        until = time.monotonic() + _LEAVE_S
        while (_lock.locked() or _uploads.busy) and time.monotonic() < until:
            await asyncio.sleep(0.05)
        if _lock.acquire(blocking=False):  # else a phase that showed no sign is cut short
            _left.set()
            _lock.release()
            with suppress(OSError, TimeoutError):
                for topic in _topics:
                    await worker.scheduler.log_event(topic=topic, msg={"left": worker.address})


@cache
def leave_in_order(worker: Worker) -> None:
    """See to it, once, that this worker leaves in order."""
    _leaving.clear()
    _left.clear()
    sync(worker.loop, worker.plugin_add, InOrder(), name=InOrder.name)


def _run(task: PhaseTask) -> dict[str, Any]:
    keep_freed_memory()
    try:
        began = time.monotonic()
        reporter = _Reporter(task)
        part = task.store.part(task.job.trial, task.job.phase)
        trainable, again, recovered = _bring_up(task, part)
        try:
            _meet(task, trainable, again)
            assert _live is not None
            _live.behind = again > 0
            for _ in range(again):
                trainable.train_phase(lambda _: reporter.say())  # proof of life only: these phases have been reported
            _live.behind = False
            measured = trainable.train_phase(reporter)
        finally:
            if task.n_ranks > 1:
                cast(GangTrainable, trainable).leave()
        _live.next_phase = task.job.phase + 1
        if task.rank:
            return {}
        metrics, returns = parted(measured)
        check_score(metrics)
        ended = time.monotonic()
        checkpoint = _save(task, trainable, task.job.phase, metrics["score"], reporter)
        if _live.from_part:
            _live.from_part = False
            task.store.remove_part(part)
        about: dict[str, Any] = {"recovered": recovered} if recovered else {}
        about |= {RETURNS: returns} if returns else {}
        about |= {"wall_s": time.monotonic() - began, "save_s": time.monotonic() - ended}
        return {
            "metrics": metrics,
            "checkpoint": checkpoint,
            "on_its_way": checkpoint in _uploads.under_way(task.study),
            **about,
        }
    except BaseException as err:  # noqa: BLE001  whatever a trial does, be it sys.exit, it fails alone
        text, place = traceback_now(), carried(place_of(err), MOST_ERROR)
        left = {"left": _save_part(task)} if isinstance(err, Leaving) else {}
        _close()
        # What the workbench itself refuses, and numbers that blew up, come out the same a second time.
        retry = not isinstance(err, (WorkbenchError, FloatingPointError))
        about = {"error": one_line(err), "place": place, "traceback": text}
        return about | {"retry": retry, "peer_lost": isinstance(err, PeerLost)} | left


def release(study: str) -> None:
    """Close the live trial, if there is one of this study."""
    with _lock:
        if _live is not None and _live.study == study:
            _close()


def cancel(topic: str, attempt: str = "") -> None:
    """Make a study's phases, or one attempt at one, stop at the next sign of progress; runs beside their thread."""
    _cancelled.add((topic, attempt))


def supersede(study: str, topic: str) -> list[str]:
    """Make the phases of every other driver of the study stop, for it has a new one; name what is being sent."""
    _driver[study] = topic
    return _uploads.under_way(study)


def _meet(task: PhaseTask, trainable: Trainable, again: int) -> None:
    """Let rank 0 say where it is, and another rank hear it; there is nothing to do where one worker is enough.

    Rank 0's task runs first. What it says goes to the driver, which then submits the other ranks' tasks: so no port
    has to be agreed on beforehand, and no place that all workers can write to is needed.
    """
    if task.n_ranks == 1:
        return
    member = cast(GangTrainable, trainable)
    if task.rank:
        member.join(task.address)
        return
    here = get_worker()
    address = member.listen(get_address_host(here.address))
    here.log_event(task.topic, {**task.label, "meet": address, "again": again})


def _bring_up(task: PhaseTask, part: str) -> tuple[Trainable, int, str]:
    """Give the trial, how many phases it must run again before the due one, and why; ranks but 0 are never loaded."""
    job = task.job
    due = (task.topic, job.trial, task.rank, job.phase)
    if _live is not None and (_live.owner, _live.trial, _live.rank, _live.next_phase) == due:
        return _live.trainable, task.again, ""
    trainable = _built(task)
    if _goes_on_within(task, trainable) and task.store.has(part):
        assert _live is not None
        with suppress(CheckpointError):
            task.store.load(trainable, part)
            _live.from_part = True
            return trainable, 0, ""
        trainable = _built(task)
    if job.checkpoint is None or task.rank:
        return trainable, task.again, ""
    try:
        task.store.load(trainable, job.checkpoint)
    except CheckpointError as err:
        return _recover(task, err)
    return trainable, 0, ""


def _recover(task: PhaseTask, refused: CheckpointError) -> tuple[Trainable, int, str]:
    """Go on from an older checkpoint, or from the beginning; the phases that are missing must be run again."""
    job = task.job
    assert job.checkpoint is not None
    for name, ended in task.store.before(job.checkpoint):
        trainable, source, first = _built(task), name, ended + 1
        with suppress(CheckpointError):
            task.store.load(trainable, name)
            break
    else:
        trainable, source, first = _built(task), "the beginning", 0
    again = f"phase {first}" if first == job.phase - 1 else f"phases {first} to {job.phase - 1}"
    return trainable, job.phase - first, f"went on from {source} and ran {again} again, because {refused}"


def _save(task: PhaseTask, trainable: Trainable, phase: int, score: float, reporter: "_Reporter") -> str:
    """Save a checkpoint; on a full disk wait, showing life, until there is space or the driver wants no more.

    What goes to a URL is sent while the worker goes on, once the one before it has arrived. So no more than one phase
    can be lost with the machine, and none with the process.
    """
    store, trial = task.store, task.job.trial
    _uploads.wait(reporter.say)
    _uploads.refuse(task.study, trial)
    while True:
        try:
            name = store.set_down(trainable, trial, phase, score)
            break
        except OSError as err:
            if err.errno not in DISK_FULL:
                raise
        reporter.say("waiting for disk space to save a checkpoint")
        time.sleep(_DISK_RETRY_S)
    if store.remote:
        proved, here = _uploads.is_proved(store), get_worker()

        def tell(name: str, error: str) -> None:
            topic = _driver.get(task.study, task.topic)  # there may be another driver by then
            _tell(here, topic, {**task.label, "arrived": name, "error": carried(error, MOST_ERROR)})

        _uploads.begin(store, task.study, trial, name, tell)
        if not proved:
            try:
                _uploads.wait(reporter.say)
                _uploads.refuse(task.study, trial)
            except OSError as err:
                raise InvalidInput(str(err)) from None  # a second attempt would train all the phase to hear the same
    return name


def _save_part(task: PhaseTask) -> bool:
    """Save a trial whose phase has been ended from without, if it can go on within it; tell whether that was done."""
    if _live is None or _live.behind or not _goes_on_within(task, _live.trainable):
        return False
    with suppress(Exception):  # what cannot be saved is lost, and the worker leaves in any case
        task.store.save_part(_live.trainable, task.job.trial, task.job.phase)
        return True
    return False


def _goes_on_within(task: PhaseTask, trainable: Trainable) -> bool:
    return task.n_ranks == 1 and getattr(trainable, "resumes_midway", False)


def _built(task: PhaseTask) -> Trainable:
    global _live
    _close()
    config, seed = task.job.config, task.job.seed
    trainable: Trainable
    if task.n_ranks > 1:
        trainable = cast(GangFactory, task.factory).rank(config, seed, task.rank)
    else:
        trainable = task.factory(config, seed)
        if not hasattr(trainable, "train_phase"):
            raise InvalidInput(
                f"{named(task.factory)} returned {short(trainable)}, which is no trial: a factory returns an object "
                "with train_phase, save, load and close; a function of your own yields its score once a phase"
            )
    _live = _Live(task.study, task.topic, task.job.trial, task.rank, task.job.phase, trainable)
    return trainable


def _close() -> None:
    global _live
    gone, _live = _live, None
    if gone is not None:
        with suppress(Exception):  # it is given up in any case; the next trial must not pay for it
            gone.trainable.close()


class _Reporter:
    """The `progress` callable: sends metrics to the driver as structured events, a few times a second at most."""

    def __init__(self, task: PhaseTask) -> None:
        self._task = task
        self._name = attempt_name(task.job, task.attempt)
        self._worker = get_worker()
        self._last = -math.inf
        self._refuse_if_unwanted()

    def __call__(self, metrics: Metrics) -> None:
        self._send(metrics)

    def say(self, note: str = "") -> None:
        """Show life without a metric, and say why there is none."""
        self._send({}, note)

    def _send(self, metrics: Metrics, note: str = "") -> None:
        self._refuse_if_unwanted()
        _uploads.refuse(self._task.study, self._task.job.trial)
        now = time.monotonic()
        if now - self._last < _REPORT_EVERY_S and not note:
            return
        self._last = now
        message = {**self._task.label, "metrics": numbers(metrics)}
        self._worker.log_event(self._task.topic, {**message, "note": note} if note else message)

    def _refuse_if_unwanted(self) -> None:
        topic = self._task.topic
        unwanted = (topic, "") in _cancelled or (topic, self._name) in _cancelled
        if _leaving.is_set():
            raise Leaving(f"the worker {self._worker.name} was told to leave")
        if unwanted or _driver.get(self._task.study, topic) != topic:
            raise PhaseCancelled
