"""The threads of one phase: started one by one, ended together, the first failure kept for the thread that waits."""

import threading
from collections.abc import Callable, Iterable
from typing import Any

import torch


class Halted(Exception):
    """What a thread waits for will not come: another one has failed, or the phase is over."""


class Workers:
    """Threads that work until one of them, or the thread that waits for them, ends the phase.

    Parameters
    ----------
    wake : callable
        Called when the phase ends, to wake who waits for something else.

    Attributes
    ----------
    failure : BaseException or None
        What the first thread that failed died of.
    """

    def __init__(self, wake: Callable[[], object] = lambda: None) -> None:
        self.failure: BaseException | None = None
        self._wake = wake
        self._threads: list[threading.Thread] = []
        self._stop = threading.Event()

    @property
    def stopping(self) -> bool:
        """The phase is over: finish what you do, and return."""
        return self._stop.is_set()

    def start(self, work: Callable[..., None], *args: Any) -> threading.Thread:
        """Start a thread; if it fails, the phase ends."""

        def guarded() -> None:
            torch.get_num_threads()  # a thread that has not asked computes on all cores, whatever the process was told
            try:
                work(*args)
            except Halted:
                pass
            except BaseException as failure:  # noqa: BLE001 - raised again by the thread that runs the phase
                self.failure = self.failure or failure
                self.stop()

        thread = threading.Thread(target=guarded, name=work.__name__.strip("_"), daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def stop(self) -> None:
        """End the phase, from any thread."""
        self._stop.set()
        self._wake()

    def wait(self, seconds: float) -> bool:
        """Wait for the phase's end, at most that long; tell whether it has come."""
        return self._stop.wait(seconds)

    def join(
        self, threads: Iterable[threading.Thread] | None = None, meanwhile: Callable[[], object] = lambda: None
    ) -> None:
        """Wait until these threads have ended, or all, calling `meanwhile` now and then; raises nothing of theirs."""
        for thread in self._threads if threads is None else threads:
            while thread.is_alive():
                meanwhile()
                thread.join(0.1)
