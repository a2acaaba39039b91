"""What happens on a Dask worker: it keeps one live trial and runs its phases as ordinary tasks."""

import math
import threading
import time
import traceback
from dataclasses import dataclass
from typing import Any

from distributed import get_worker

from workbench.cluster.checkpoints import CheckpointStore
from workbench.core.errors import WorkbenchError
from workbench.core.protocols import Job, Metrics, Trainable, TrainableFactory

_REPORT_EVERY_S = 0.25


class PhaseCancelled(BaseException):
    """Raised out of `progress` when the driver wants the phase no more; not for trainables to catch."""


@dataclass(frozen=True)
class PhaseTask:
    """One phase as it travels to a worker."""

    job: Job
    factory: TrainableFactory
    store: CheckpointStore
    topic: str
    attempt: int


@dataclass
class _Live:
    owner: str  # topic of the study it belongs to
    trial: int
    next_phase: int
    trainable: Trainable


_live: _Live | None = None
_cancelled: set[tuple[str, str]] = set()  # (topic of a study, name of an attempt or all)
_lock = threading.Lock()  # a release may overtake a phase that is being cancelled


def run_phase(task: PhaseTask) -> dict[str, Any]:
    """Run one phase on this worker, building or loading the trial first if it does not live here already.

    Returns
    -------
    dict
        ``metrics``, ``checkpoint`` and ``wall_s``; or ``error``, ``traceback`` and ``retry`` (whether a second
        attempt makes sense). Failures travel as data: nothing of a user's exception need be importable elsewhere.
    """
    with _lock:
        try:
            began = time.monotonic()
            trainable = _bring_up(task)
            metrics = dict(trainable.train_phase(_Reporter(task)))
            _check_score(metrics)
            checkpoint = task.store.save(trainable, task.job.trial, task.job.phase)
            assert _live is not None
            _live.next_phase = task.job.phase + 1
            return {"metrics": metrics, "checkpoint": checkpoint, "wall_s": time.monotonic() - began}
        except (Exception, PhaseCancelled) as err:  # noqa: BLE001  whatever a trial does, it fails alone
            _close()
            # What the workbench itself refuses, and numbers that blew up, come out the same a second time.
            retry = not isinstance(err, (WorkbenchError, FloatingPointError))
            return {"error": _one_line(err), "traceback": traceback.format_exc(), "retry": retry}


def release() -> None:
    """Close the live trial, if there is one."""
    with _lock:
        _close()


def cancel(topic: str, attempt: str = "") -> None:
    """Make a study's phases, or one attempt at one, stop at the next sign of progress; runs beside their thread."""
    _cancelled.add((topic, attempt))


def attempt_name(job: Job, number: int) -> str:
    """Name one attempt at one phase of one trial."""
    return f"trial-{job.trial}-phase-{job.phase}-attempt-{number}"


def _bring_up(task: PhaseTask) -> Trainable:
    global _live
    job = task.job
    if _live is not None and (_live.owner, _live.trial, _live.next_phase) == (task.topic, job.trial, job.phase):
        return _live.trainable
    _close()
    trainable = task.factory(job.config, job.seed)
    _live = _Live(task.topic, job.trial, job.phase, trainable)
    if job.checkpoint is not None:
        task.store.load(trainable, job.checkpoint)
    return trainable


def _close() -> None:
    global _live
    gone, _live = _live, None
    if gone is not None:
        gone.trainable.close()


class _Reporter:
    """The `progress` callable: sends metrics to the driver as structured events, a few times a second at most."""

    def __init__(self, task: PhaseTask) -> None:
        self._task = task
        self._name = attempt_name(task.job, task.attempt)
        self._worker = get_worker()
        self._last = -math.inf

    def __call__(self, metrics: Metrics) -> None:
        if (self._task.topic, "") in _cancelled or (self._task.topic, self._name) in _cancelled:
            raise PhaseCancelled
        now = time.monotonic()
        if now - self._last < _REPORT_EVERY_S:
            return
        self._last = now
        job = self._task.job
        plain = {name: float(value) for name, value in metrics.items()}
        message = {"trial": job.trial, "phase": job.phase, "attempt": self._task.attempt, "metrics": plain}
        self._worker.log_event(self._task.topic, message)


def _check_score(metrics: Metrics) -> None:
    if "score" not in metrics:
        raise WorkbenchError(f"train_phase returned no score, only {sorted(metrics)}: add metrics['score']")
    if not math.isfinite(metrics["score"]):
        raise FloatingPointError(f"the score is {metrics['score']}: training has diverged")


def _one_line(err: BaseException) -> str:
    text = " ".join(str(err).split())
    return f"{type(err).__name__}: {text}" if text else type(err).__name__
