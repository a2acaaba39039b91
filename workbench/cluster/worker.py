"""What happens on a Dask worker: it keeps one live trial and runs its phases as ordinary tasks."""

import math
import threading
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from distributed import get_worker

from workbench.cluster.checkpoints import DISK_FULL, CheckpointError, CheckpointStore
from workbench.core.errors import WorkbenchError
from workbench.core.protocols import Job, Metrics, Trainable, TrainableFactory

_REPORT_EVERY_S = 0.25
_DISK_RETRY_S = 2.0


class PhaseCancelled(BaseException):
    """Raised out of `progress` when the driver wants the phase no more; not for trainables to catch."""


@dataclass(frozen=True)
class PhaseTask:
    """One phase as it travels to a worker.

    Attributes
    ----------
    job : Job
    factory : TrainableFactory
    store : CheckpointStore
    study : str
        The study's identity: the same for every driver it ever has.
    topic : str
        Where progress goes; each driver has one of its own.
    attempt : int
    """

    job: Job
    factory: TrainableFactory
    store: CheckpointStore
    study: str
    topic: str
    attempt: int


@dataclass
class _Live:
    study: str
    owner: str  # topic of the driver that put it here
    trial: int
    next_phase: int
    trainable: Trainable


_live: _Live | None = None
_cancelled: set[tuple[str, str]] = set()  # (topic of a study, name of an attempt or all)
_driver: dict[str, str] = {}  # study → topic of the one driver that counts
_lock = threading.Lock()  # a release may overtake a phase that is being cancelled


def run_phase(task: PhaseTask) -> dict[str, Any]:
    """Run one phase on this worker, building or loading the trial first if it does not live here already.

    Returns
    -------
    dict
        ``metrics``, ``checkpoint`` and ``wall_s``, and ``recovered`` if the checkpoint to go on from was refused; or
        ``error``, ``traceback`` and ``retry`` (whether a second attempt makes sense). Failures travel as data: nothing
        of a user's exception need be importable elsewhere.
    """
    with _lock:
        try:
            began = time.monotonic()
            reporter = _Reporter(task)
            trainable, recovered = _bring_up(task, reporter)
            metrics = dict(trainable.train_phase(reporter))
            _check_score(metrics)
            checkpoint = _save(task, trainable, task.job.phase, metrics["score"], reporter)
            assert _live is not None
            _live.next_phase = task.job.phase + 1
            told = {"recovered": recovered} if recovered else {}
            return {"metrics": metrics, "checkpoint": checkpoint, "wall_s": time.monotonic() - began, **told}
        except (Exception, PhaseCancelled) as err:  # noqa: BLE001  whatever a trial does, it fails alone
            text = traceback.format_exc()
            _close()
            # What the workbench itself refuses, and numbers that blew up, come out the same a second time.
            retry = not isinstance(err, (WorkbenchError, FloatingPointError))
            return {"error": _one_line(err), "traceback": text, "retry": retry}


def release(study: str) -> None:
    """Close the live trial, if there is one of this study."""
    with _lock:
        if _live is not None and _live.study == study:
            _close()


def cancel(topic: str, attempt: str = "") -> None:
    """Make a study's phases, or one attempt at one, stop at the next sign of progress; runs beside their thread."""
    _cancelled.add((topic, attempt))


def attempt_name(job: Job, number: int) -> str:
    """Name one attempt at one phase of one trial."""
    return f"trial-{job.trial}-phase-{job.phase}-attempt-{number}"


def supersede(study: str, topic: str) -> None:
    """Make the phases of every other driver of the study stop, for it has a new one."""
    _driver[study] = topic


def _bring_up(task: PhaseTask, reporter: "_Reporter") -> tuple[Trainable, str]:
    """Give the trial, ready to run the due phase, and what had to be done for it beyond the ordinary."""
    job = task.job
    if _live is not None and (_live.owner, _live.trial, _live.next_phase) == (task.topic, job.trial, job.phase):
        return _live.trainable, ""
    if job.checkpoint is None:
        return _built(task), ""
    trainable = _built(task)
    try:
        task.store.load(trainable, job.checkpoint)
    except CheckpointError as err:
        return _recover(task, reporter, err)
    return trainable, ""


def _recover(task: PhaseTask, reporter: "_Reporter", refused: CheckpointError) -> tuple[Trainable, str]:
    """Go on from an older checkpoint, or from the beginning, running again the phases that are missing."""
    job = task.job
    assert job.checkpoint is not None
    for name, ended in task.store.before(job.checkpoint):
        trainable, source, first = _built(task), name, ended + 1
        with suppress(CheckpointError):
            task.store.load(trainable, name)
            break
    else:
        trainable, source, first = _built(task), "the beginning", 0
    for _ in range(first, job.phase):
        trainable.train_phase(lambda _: reporter.say())  # proof of life only: these phases have been reported
    again = f"phase {first}" if first == job.phase - 1 else f"phases {first} to {job.phase - 1}"
    return trainable, f"went on from {source} and ran {again} again, because {refused}"


def _save(task: PhaseTask, trainable: Trainable, phase: int, score: float, reporter: "_Reporter") -> str:
    """Save a checkpoint; on a full disk wait, showing life, until there is space or the driver wants no more."""
    while True:
        try:
            return task.store.save(trainable, task.job.trial, phase, score)
        except OSError as err:
            if err.errno not in DISK_FULL:
                raise
        reporter.say("waiting for disk space to save a checkpoint")
        time.sleep(_DISK_RETRY_S)


def _built(task: PhaseTask) -> Trainable:
    global _live
    _close()
    trainable = task.factory(task.job.config, task.job.seed)
    _live = _Live(task.study, task.topic, task.job.trial, task.job.phase, trainable)
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
        now = time.monotonic()
        if now - self._last < _REPORT_EVERY_S and not note:
            return
        self._last = now
        job = self._task.job
        plain = {name: float(value) for name, value in metrics.items()}
        message = {"trial": job.trial, "phase": job.phase, "attempt": self._task.attempt, "metrics": plain}
        self._worker.log_event(self._task.topic, {**message, "note": note} if note else message)

    def _refuse_if_unwanted(self) -> None:
        topic = self._task.topic
        unwanted = (topic, "") in _cancelled or (topic, self._name) in _cancelled
        if unwanted or _driver.get(self._task.study, topic) != topic:
            raise PhaseCancelled


def _check_score(metrics: Metrics) -> None:
    if "score" not in metrics:
        raise WorkbenchError(f"train_phase returned no score, only {sorted(metrics)}: add metrics['score']")
    if not math.isfinite(metrics["score"]):
        raise FloatingPointError(f"the score is {metrics['score']}: training has diverged")


def _one_line(err: BaseException) -> str:
    text = " ".join(str(err).split())
    return f"{type(err).__name__}: {text}" if text else type(err).__name__
