"""Processes to compute in, several at once."""

import signal
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context


def process_pool(processes: int, method: str | None = None) -> ProcessPoolExecutor:
    """Give a pool whose processes Ctrl-C ends without a word: it is for whoever waits for them to say something.

    Parameters
    ----------
    processes : int
    method : {"fork", "spawn", "forkserver"}, optional
        How they are started; by default as Python does.
    """
    return ProcessPoolExecutor(processes, mp_context=get_context(method), initializer=_end_without_a_word)


def _end_without_a_word() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
