"""Playing on while a gradient is taken and exchanged: the loop within a node of Distributed BA3C (Sec. 2.1).

One thread plays, one batch ahead at most: it begins the next one when the last one is taken. It acts on the weights
while they are written, as in GA3C; what that brings about is in the policy lag.
"""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from workbench.algos.rl.ba3c.connection import ALIVE_S
from workbench.algos.rl.workers import Halted, Workers

Batch = TypeVar("Batch")


class Ahead(Generic[Batch]):
    """A thread that plays the next batch.

    Parameters
    ----------
    play : callable
        Plays a batch, calling `check` at every step.
    ready : optional
        What `close` gave the last time.
    """

    def __init__(self, play: Callable[[], Batch], ready: Batch | None = None) -> None:
        self._play, self._ready = play, ready
        self._changed = threading.Condition()
        self._workers = Workers(self._wake)

    def start(self) -> None:
        """Begin to play."""
        self._workers.start(self._run)

    def check(self) -> None:
        """Raise `Halted` if it is to play no more."""
        if self._workers.stopping:
            raise Halted

    def next(self, alive: Callable[[], object]) -> Batch:
        """Wait for a batch, calling `alive` meanwhile, and once in any case; raises what playing has failed of."""
        while True:
            alive()
            with self._changed:
                self._changed.wait_for(lambda: self._ready is not None, ALIVE_S)
                batch, self._ready = self._ready, None
                self._changed.notify_all()
            if batch is not None:
                return batch
            if self._workers.failure is not None:
                raise self._workers.failure

    def close(self) -> Batch | None:
        """End the thread, at its next step; give the batch that nobody has taken, if there is one."""
        self._workers.stop()
        self._workers.join()
        return self._ready

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ready is None or self._workers.stopping)
            self.check()
            batch = self._play()
            with self._changed:
                self._ready = batch
                self._changed.notify_all()
