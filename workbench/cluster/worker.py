"""What happens on a Dask worker: it keeps one live trial, or one rank of it, and runs its phases as ordinary tasks."""

import math
import threading
import time
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any, cast
from weakref import WeakKeyDictionary

from distributed import Worker, get_worker
from distributed.comm import get_address_host
from distributed.utils import sync

from workbench.cluster.leaving import Leaving
from workbench.cluster.memory import keep_freed_memory
from workbench.cluster.place import heard_of
from workbench.cluster.resident import Resident
from workbench.cluster.task import PhaseTask, attempt_name
from workbench.cluster.uploads import Uploads
from workbench.core.errors import DISK_FULL, InvalidInput, PeerLost, PlaceAway, WorkbenchError
from workbench.core.failures import place_of
from workbench.core.measured import MOST_ERROR, carried, numbers, one_line, parted, traceback_now
from workbench.core.protocols import RETURNS, GangTrainable, Metrics, Trainable

_REPORT_EVERY_S = 0.25
_PLACE_RETRY_S = 2.0
_ANSWER_S = 5.0


class PhaseCancelled(BaseException):
    """Raised out of `progress` when the driver wants the phase no more; not for trainables to catch."""


class ToldToLeave(BaseException):
    """Raised out of `progress` when the worker has been told to leave; not for trainables to catch."""


class _Kept:
    """What one worker keeps from task to task.

    Attributes
    ----------
    resident, uploads, leaving
    cancelled : set of (str, str)
        Topic of a study, and name of an attempt or "" for all.
    driver : dict
        Study → topic of the one driver that counts.
    """

    def __init__(self) -> None:
        self.resident, self.uploads = Resident(), Uploads()
        self.leaving = Leaving(self.uploads)
        self.cancelled: set[tuple[str, str]] = set()
        self.driver: dict[str, str] = {}


_kept: "WeakKeyDictionary[Worker, _Kept]" = WeakKeyDictionary()  # a process may hold several workers
_kept_lock = threading.Lock()


def _kept_by(worker: Worker) -> _Kept:
    with _kept_lock:
        return _kept.setdefault(worker, _Kept())


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
    here = _kept_by(worker)
    with here.leaving.lock:
        here.leaving.watch(worker, task.topic)
        if here.leaving.left:  # this may be heard before the word that it has
            return {"error": "the worker had left", "left": False}
        result = _run(task, here)
        here.leaving.tell(worker, task.topic, {**task.label, "result": result})
        return result


def _run(task: PhaseTask, here: _Kept) -> dict[str, Any]:
    keep_freed_memory()
    resident = here.resident
    try:
        began = time.monotonic()
        reporter = _Reporter(task, here)
        trainable, again, recovered = _bring_up(task, resident, reporter)
        try:
            _meet(task, trainable, again)
            for _ in range(again):
                trainable.train_phase(lambda _: reporter.say())  # proof of life only: these phases have been reported
            resident.begins()
            measured = trainable.train_phase(reporter)
            resident.has_run(task)
        finally:
            if task.n_ranks > 1:
                cast(GangTrainable, trainable).leave()
        if task.rank:
            return {}
        metrics, returns = parted(measured)
        ended = time.monotonic()
        checkpoint = _save(task, here, trainable, metrics["score"], reporter)
        resident.forget_part(task)
        about: dict[str, Any] = {"recovered": recovered} if recovered else {}
        about |= {RETURNS: returns} if returns else {}
        about |= {"wall_s": time.monotonic() - began, "save_s": time.monotonic() - ended}
        return {
            "metrics": metrics,
            "checkpoint": checkpoint,
            "on_its_way": checkpoint in here.uploads.under_way(task.study),
            **about,
        }
    except BaseException as err:  # noqa: BLE001  whatever a trial does, be it sys.exit, it fails alone
        text, place = traceback_now(), carried(place_of(err), MOST_ERROR)
        left = {"left": resident.save_part(task)} if isinstance(err, ToldToLeave) else {}
        resident.close()
        # What the workbench itself refuses, and numbers that blew up, come out the same a second time.
        retry = not isinstance(err, (WorkbenchError, FloatingPointError))
        about = {"error": one_line(err), "place": place, "traceback": text}
        return about | {"retry": retry, "peer_lost": isinstance(err, PeerLost)} | left


def release(study: str) -> None:
    """Close the live trial, if there is one of this study."""
    here = _kept_by(get_worker())
    with here.leaving.lock:  # it may overtake a phase that is being cancelled
        here.resident.close(study)


def cancel(topic: str, attempt: str = "", *, dask_worker: Worker) -> None:
    """Make a study's phases, or one attempt at one, stop at the next sign of progress; runs beside their thread."""
    _kept_by(dask_worker).cancelled.add((topic, attempt))


def supersede(study: str, topic: str, *, dask_worker: Worker) -> dict[str, str]:
    """Make the phases of every other driver of the study stop, for it has a new one; name what is sent, and by whom."""
    here = _kept_by(dask_worker)
    here.driver[study] = topic
    return dict.fromkeys(here.uploads.under_way(study), dask_worker.id)


def _hear_of_driver(task: PhaseTask, here: _Kept, worker: Worker) -> None:
    """Ask Dask's scheduler who drives the study where this phase is not of the driver that is known here.

    A new driver's word (`supersede`) may come late, or be lost; before it submits anything, the scheduler knows of it.
    """
    if here.driver.setdefault(task.study, task.topic) == task.topic:
        return
    with suppress(Exception):  # it is as was known, then
        drives = sync(worker.loop, worker.scheduler.workbench_driver, study=task.study, callback_timeout=_ANSWER_S)
        if drives == task.topic:
            here.driver[task.study] = task.topic


def _bring_up(task: PhaseTask, resident: Resident, reporter: "_Reporter") -> tuple[Trainable, int, str]:
    """Bring the trial up as `Resident.bring_up`, once the place of its checkpoint is there, and answers."""
    note = f"waiting for the place of checkpoints {task.store.root} to answer"
    while True:
        try:  # a folder that hangs is taken for a stall, so that another machine is tried
            with heard_of(partial(reporter.say, note)) if task.store.remote else nullcontext():
                return resident.bring_up(task)
        except PlaceAway as err:
            _wait_for_place(task, err, reporter)


def _wait_for_place(task: PhaseTask, err: OSError, reporter: "_Reporter") -> None:
    """Show life for a moment, saying what is waited for; raise what does not pass, or is so from the beginning."""
    if err.errno in DISK_FULL:
        note = "waiting for disk space to save a checkpoint"
    elif isinstance(err, PlaceAway) and task.proved:
        note = f"waiting for the place of checkpoints {task.store.root}: {err.strerror or err}"
    else:
        raise err
    reporter.say(note)
    time.sleep(_PLACE_RETRY_S)


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


def _save(task: PhaseTask, here: _Kept, trainable: Trainable, score: float, reporter: "_Reporter") -> str:
    """Save a checkpoint; where the place cannot take it wait, until it can or the driver wants no more.

    What goes to a URL is sent while the worker goes on, once the one before it has arrived. So no more than one phase
    can be lost with the machine, and none with the process. The phase has ended: a worker that is told to leave saves
    it first, unless the place cannot take it. Then, and if it runs out of time, another runs the phase again.
    """
    store, trial, uploads = task.store, task.job.trial, here.uploads
    uploads.wait(reporter.say_saving)
    uploads.refuse(task.study, trial)
    while True:
        try:
            name = store.set_down(trainable, trial, task.job.phase, score)
            break
        except OSError as err:
            _wait_for_place(task, err, reporter)
    if store.remote:
        proved, worker = uploads.is_proved(store), get_worker()

        def tell(name: str, error: str) -> None:
            topic = here.driver.get(task.study, task.topic)  # there may be another driver by then
            here.leaving.tell(worker, topic, {**task.label, "arrived": name, "error": carried(error, MOST_ERROR)})

        uploads.begin(store, task.study, trial, name, tell)
        if not proved:
            try:
                uploads.wait(reporter.say)
                uploads.refuse(task.study, trial)
            except ToldToLeave:
                pass  # nobody trains on here, and `Leaving.finish` lets it arrive
            except OSError as err:
                if task.proved:  # it is away for the moment
                    raise
                raise InvalidInput(str(err)) from None  # a second attempt would train all the phase to hear the same
    return name


class _Reporter:
    """The `progress` callable: sends metrics to the driver as structured events, a few times a second at most."""

    def __init__(self, task: PhaseTask, here: _Kept) -> None:
        self._task, self._here = task, here
        self._name = attempt_name(task.job, task.attempt)
        self._worker = get_worker()
        self._last = -math.inf
        _hear_of_driver(task, here, self._worker)
        self._refuse_if_unwanted()

    def __call__(self, metrics: Metrics) -> None:
        self._send(metrics)

    def say(self, note: str = "") -> None:
        """Show life without a metric, and say why there is none."""
        self._send({}, note)

    def say_saving(self, note: str) -> None:
        """Show life while a phase that has ended is saved, which a worker that was told to leave does first."""
        self._send({}, note, leaves=False)

    def _send(self, metrics: Metrics, note: str = "", *, leaves: bool = True) -> None:
        self._refuse_if_unwanted(leaves)
        self._here.uploads.refuse(self._task.study, self._task.job.trial)
        now = time.monotonic()
        if now - self._last < _REPORT_EVERY_S and not note:
            return
        self._last = now
        message = {**self._task.label, "metrics": numbers(metrics)}
        self._worker.log_event(self._task.topic, {**message, "note": note} if note else message)

    def _refuse_if_unwanted(self, leaves: bool = True) -> None:
        topic, here = self._task.topic, self._here
        unwanted = (topic, "") in here.cancelled or (topic, self._name) in here.cancelled
        if leaves and here.leaving.told:
            raise ToldToLeave(f"the worker {self._worker.name} was told to leave")
        if unwanted or here.driver.get(self._task.study, topic) != topic:
            raise PhaseCancelled
