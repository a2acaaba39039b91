"""How a Dask worker leaves: in order, what runs on it being saved first."""

import asyncio
import math
import os
import signal
import threading
import time
from contextlib import suppress
from functools import partial
from typing import Any

import dask
from distributed import Worker
from distributed.diagnostics.plugin import WorkerPlugin
from distributed.utils import sync

from workbench.cluster.sharing import LEAVING
from workbench.cluster.uploads import Uploads

_LEAVE_S = 25.0  # what a phase has to come to a sign of progress and save; Dask's nanny may leave it less


class Leaving:
    """Whether a worker has been told to leave, and whether it has said that nothing more will be heard of it.

    Parameters
    ----------
    uploads : Uploads
        What may still be on its way from there.

    Attributes
    ----------
    lock : Lock
        Held while a phase runs, or its trial is closed.
    """

    def __init__(self, uploads: Uploads) -> None:
        self._uploads = uploads
        self.lock = threading.Lock()
        self._told = threading.Event()
        self._left = threading.Event()
        self._topics: set[str] = set()  # of the drivers that have had something run here
        self._watched = False

    @property
    def told(self) -> bool:
        """Whether the worker has been told to leave."""
        return self._told.is_set()

    @property
    def left(self) -> bool:
        """Whether it has said that nothing more will be heard of it."""
        return self._left.is_set()

    def begin(self) -> None:
        """Note that the worker has been told to leave."""
        self._told.set()

    def watch(self, worker: Worker, topic: str) -> None:
        """See to it that this worker leaves in order, and that the driver of this topic hears of it."""
        if not self._watched:
            sync(worker.loop, worker.plugin_add, InOrder(self), name=InOrder.name)
            self._watched = True
        self._topics.add(topic)

    def tell(self, worker: Worker, topic: str, message: dict[str, Any]) -> None:
        """Send a driver a message, by a way that is still open when the worker leaves."""
        if self.told:  # the scheduler may have struck it off already, and hears its stream no more
            with suppress(OSError, TimeoutError):
                sync(worker.loop, worker.scheduler.log_event, topic=topic, msg=message, callback_timeout=5)
        else:
            worker.log_event(topic, message)

    async def finish(self, worker: Worker) -> None:
        """Wait for what runs and what is being sent; then tell the drivers that the worker has left."""
        until = time.monotonic() + _LEAVE_S
        while (self.lock.locked() or self._uploads.busy) and time.monotonic() < until:
            await asyncio.sleep(0.05)
        if self.lock.acquire(blocking=False):  # else a phase that showed no sign is cut short
            self._left.set()
            self.lock.release()
            with suppress(OSError, TimeoutError):
                for topic in [*self._topics]:  # a task that comes too late may add to them
                    await worker.scheduler.log_event(topic=topic, msg={"left": worker.id})


class InOrder(WorkerPlugin):  # type: ignore[misc]
    """Lets a worker that is told to leave save first what runs on it: by SIGTERM, its lifetime, its nanny, a scheduler.

    SIGTERM reaches this process where a batch system sends it to all of a job's. Dask's nanny sends it as well, to a
    worker that takes too much memory: that one dies at once, for it would only come back and do the same.

    Until then no worker is paused, as Dask would at 80 % of its memory so that fewer tasks add to it: here the next
    phase would wait there, beside its own trial that takes the memory, until it was taken for a stall.
    """

    name = "workbench-in-order"

    def __init__(self, leaving: Leaving) -> None:
        self._leaving = leaving

    def setup(self, worker: Worker) -> None:
        self._worker = worker
        worker.memory_manager.memory_pause_fraction = math.inf  # False would leave one paused that just was
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._on_signal)
            # What a trial forks is ended by it: there is no loop in it to leave by.
            os.register_at_fork(after_in_child=partial(signal.signal, signal.SIGTERM, signal.SIG_DFL))

    def _on_signal(self, number: int, frame: object) -> None:
        memory = self._worker.memory_manager
        most = dask.config.get("distributed.worker.memory.terminate") * (memory.memory_limit or 0)
        if 0 < 0.9 * most < self._worker.monitor.get_process_memory():
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self._leaving.begin()
        self._worker.loop.add_callback(self._worker.close, nanny=False, reason="told to leave")

    async def teardown(self, worker: Worker) -> None:
        self._leaving.begin()
        worker.log_event(LEAVING, {"life": worker.id})
        await self._leaving.finish(worker)
