"""What Dask runs for a study: a task for each rank of an attempt, pinned to its worker, and the releases between."""

import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from distributed import CancelledError, Future
from distributed.client import ClosedClientError

from workbench.cluster import worker
from workbench.cluster.attempts import Attempt
from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.connection import Connection
from workbench.cluster.parcel import Parcel
from workbench.cluster.slots import Slot
from workbench.cluster.task import PhaseTask, attempt_name

AWAY = (OSError, TimeoutError, CancelledError)  # the cluster has gone, or a worker hangs


@dataclass(frozen=True, slots=True)
class _Tasks:
    attempt: Attempt
    lives: tuple[str, ...]  # of the workers, which are others when the slot is back
    futures: dict[int, Future]  # by rank


class Tasks:
    """The last attempt of each trial, as tasks.

    Parameters
    ----------
    line : Connection
    factory : Parcel
    checkpoints : CheckpointStore
    study : str
        The study's identity.
    n_ranks : int
        Tasks of an attempt.
    ended : callable
        Called on the client's own thread with attempt, rank and future of a task that is over.

    Attributes
    ----------
    proved : bool
        Whether the place of checkpoints has taken any of this study's.
    """

    def __init__(
        self,
        line: Connection,
        factory: Parcel,
        checkpoints: CheckpointStore,
        study: str,
        n_ranks: int,
        ended: Callable[[Attempt, int, Future], None],
    ) -> None:
        self._line, self._factory, self._checkpoints = line, factory, checkpoints
        self._study, self._n_ranks, self._ended = study, n_ranks, ended
        self.proved = False
        self._running: dict[int, _Tasks] = {}  # by trial
        self._releasing: dict[int, list[Future]] = {}  # by slot: kept, for a future without a holder is cancelled

    def begin(self, attempt: Attempt) -> None:
        """Take an attempt in, in the place of the trial's last; none of its ranks runs yet."""
        self._running[attempt.job.trial] = _Tasks(attempt, attempt.slot.lives, {})

    def submit(self, attempt: Attempt, rank: int, address: str = "", again: int = 0) -> None:
        """Submit a rank's task; that of rank 0 comes first, the others' when it has said where it is (`address`)."""
        job, topic = attempt.job, self._line.topic
        task = PhaseTask(
            job,
            self._factory,
            self._checkpoints,
            self._study,
            topic,
            attempt.mark,
            rank,
            self._n_ranks,
            address,
            again,
            self.proved or job.checkpoint is not None,
        )
        key = f"{topic}-trial-{job.trial}-phase-{job.phase}-rank-{rank}-{uuid.uuid4().hex[:8]}"
        future = self._line.submit(worker.run_phase, task, address=attempt.slot.addresses[rank], key=key)
        self._running[job.trial].futures[rank] = future
        self._line.when_done(future, lambda done: self._ended(attempt, rank, done))

    def cancel(self, attempt: Attempt, stop: bool) -> None:
        """Take back what has not begun; what runs stops, if it must, at its next sign of progress."""
        if stop and self._line.unbroken:  # a new line supersedes whatever a broken one has left
            name = attempt_name(attempt.job, attempt.mark)
            self._line.cancel_attempt(name, list(attempt.slot.addresses))
        tasks = self._running.pop(attempt.job.trial, None)
        for future in tasks.futures.values() if tasks is not None else ():
            if future.status == "pending":
                future.cancel()

    def cancel_all(self, addresses: list[str]) -> None:
        """Make all that runs stop, and wait until these workers have heard of it."""
        futures = [future for tasks in self._running.values() for future in tasks.futures.values()]
        if futures and addresses:
            self._line.cancel(futures, addresses)

    def forget(self, attempt: Attempt) -> None:
        """Nothing more is wanted of an attempt."""
        self._running.pop(attempt.job.trial, None)

    def release(self, slot: Slot) -> list[Future]:
        """Close what lives on a slot's workers."""
        futures = self._releasing[slot.index] = []
        with suppress(ClosedClientError):
            for address in slot.addresses:
                key = f"{self._line.topic}-release-{uuid.uuid4().hex[:8]}"
                futures.append(self._line.submit(worker.release, self._study, address=address, key=key))
        return futures

    def release_all(self, slots: Iterable[Slot], within_s: float) -> None:
        """Close what lives on the workers and wait until it is done: one that hangs keeps no other from it."""
        until = time.monotonic() + within_s
        for future in [future for slot in slots for future in self.release(slot)]:
            with suppress(*AWAY):
                future.exception(timeout=max(until - time.monotonic(), 0.1))

    def of(self, message: Mapping[str, Any]) -> Attempt | None:
        """Give the attempt that a worker speaks of, unless there has been another since."""
        tasks = self._running.get(message["trial"])
        return tasks.attempt if tasks is not None and tasks.attempt.mark == message["attempt"] else None

    def life_of(self, attempt: Attempt, rank: int) -> str:
        """Name the process that was given this rank of the trial's last attempt."""
        return self._running[attempt.job.trial].lives[rank]

    def under_way_on(self, life: str) -> list[tuple[Attempt, int]]:
        """Give the attempts that a worker has a rank of, and which."""
        return [
            (tasks.attempt, tasks.lives.index(life))
            for tasks in self._running.values()
            if life in tasks.lives and tasks.attempt.under_way
        ]
