"""Processes to compute in: they end with whoever waits for them, and at Ctrl-C, which a terminal sends to them all."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import current_process, get_context, parent_process, resource_tracker, spawn
from typing import Any

from workbench.core.errors import InvalidInput

_BY_THEMSELVES: list[str] = []  # how the names of processes begin that are now begun without the script
_ENTERING = threading.Lock()
_prepare = spawn.get_preparation_data


def process_pool(
    processes: int,
    method: str | None = None,
    begin: Callable[..., object] | None = None,
    arguments: tuple[Any, ...] = (),
) -> ProcessPoolExecutor:
    """Give a pool whose processes Ctrl-C ends without a word: it is for whoever waits for them to say something.

    They end with the process that has them, however that one ends.

    Parameters
    ----------
    processes : int
    method : {"fork", "spawn", "forkserver"}, optional
        How they are started; by default as Python does.
    begin, arguments
        What each calls before its first job.

    Raises
    ------
    InvalidInput
        This process is daemonic.
    """
    refuse_without_processes("several processes are to compute", "compute in this one alone (processes=1)")
    _begin_tracker()
    given = (begin, arguments)
    return _Pool(processes, mp_context=get_context(method), initializer=_begin, initargs=given)


def refuse_without_processes(what: str, instead: str) -> None:
    """Refuse what starts processes where none can be started.

    Parameters
    ----------
    what : str
        Says that it starts them.
    instead : str
        What else can be done than run it in another kind of process.

    Raises
    ------
    InvalidInput
        This process is daemonic, which multiprocessing lets start none, or the system makes them no semaphore.
    """
    if current_process().daemon:
        raise InvalidInput(
            f"{what}, and this process may start none (it is daemonic, as those of multiprocessing.Pool are): use "
            f"concurrent.futures.ProcessPoolExecutor or Process(daemon=False), or {instead}"
        )
    try:
        get_context("fork").Lock()  # without an own process to clear up after it
    except OSError as err:
        raise InvalidInput(
            f"{what}, which need semaphores, and the system makes none ({err.strerror}): see to /dev/shm, where they "
            f"are, or {instead}"
        ) from None


@contextmanager
def deaf() -> Iterator[None]:
    """Begin processes here that never hear Ctrl-C, unless they ask to; this one hears it afterwards.

    One that comes up could not ignore it yet: it would end with a traceback of whatever it was importing.
    """
    before = block_interrupts()
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def without_main(name: str) -> Iterator[None]:
    """Keep processes whose names begin so from importing the script that begins them here; others are left alone.

    If they imported it they would run it, and begin what it begins once more, unless that stood under ``if __name__ ==
    "__main__"``. What is defined there must travel to them whole, by `script.pickled`, as from a notebook's cell.
    """
    with _ENTERING:
        _BY_THEMSELVES.append(name)
        spawn.get_preparation_data = _prepared
    try:
        yield
    finally:
        with _ENTERING:
            _BY_THEMSELVES.remove(name)
            if not _BY_THEMSELVES and spawn.get_preparation_data is _prepared:  # or another is over it
                spawn.get_preparation_data = _prepare


def _prepared(name: str) -> dict[str, Any]:
    preparation: dict[str, Any] = _prepare(name)
    alone = name.startswith(tuple(_BY_THEMSELVES))
    return {k: v for k, v in preparation.items() if not (alone and k.startswith("init_main"))}


def block_interrupts() -> set[signal.Signals | int]:
    """Keep Ctrl-C from this thread and from what it begins; tell which signals were kept from it before."""
    _begin_tracker()  # which lets them hear again
    return signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def end_without_a_word() -> None:
    """Have Ctrl-C end this process at once, also one that came while it could not hear; so what is heard as it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if callable(signal.getsignal(number)):  # as one that was forked has it of its parent
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _begin_tracker() -> None:
    """Begin the process that clears up after those that Ctrl-C ends; it would warn of what they leave it to do."""
    sys.warnoptions.append(warning := "ignore:resource_tracker")
    try:
        resource_tracker.ensure_running()
    finally:
        sys.warnoptions.remove(warning)


class _Pool(ProcessPoolExecutor):
    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> bool | None:
        if kind is not None and not issubclass(kind, Exception):  # an interrupt that these may not have heard
            for process in [*(self._processes or {}).values()]:
                process.kill()
        return super().__exit__(kind, *rest)

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        with deaf():  # where it begins a process
            return super().submit(function, *args, **kwargs)


def _begin(begin: Callable[..., object] | None, arguments: tuple[Any, ...]) -> None:
    end_without_a_word()
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    if begin is not None:
        begin(*arguments)


def _end_with_the_parent() -> None:
    """Wait for it; left alone, this process would wait for its next job for ever."""
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)
