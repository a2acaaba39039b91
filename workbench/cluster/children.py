"""What is set back between trials: a worker's folder, and how the processes begin that a trial starts of its own.

These are such as those of a PyTorch ``DataLoader`` or of a pool. Python has a process that it has spawned spawn others
in its turn. Workers are begun so, by Dask, and everything that a trial starts would be: it would have to be pickled,
with classes of a script or a cell that no worker can import.
"""

import os
from contextlib import suppress
from multiprocessing import (
    current_process,
    get_all_start_methods,
    get_start_method,
    parent_process,
    set_start_method,
)

WORKER = "Dask Worker process"  # how the names of those begin that a nanny has started


def chosen_method() -> str | None:
    """Give the start method that the script has set; ``None`` where it goes by Python's default.

    A process that was itself started by multiprocessing goes by its own method, which nobody has chosen there.
    """
    method = get_start_method(allow_none=True)
    return None if parent_process() is not None or method == get_all_start_methods()[0] else method


def start_by(method: str | None) -> None:
    """Have a trial's processes begin as they do where its code is called directly; in a worker's own process only.

    Others, such as a driver's with workers in its threads, have the method that is theirs.

    Parameters
    ----------
    method : {"fork", "spawn", "forkserver"} or None
        ``None``: Python's default, as long as the trial sets none.
    """
    if current_process().name.startswith(WORKER):
        set_start_method(method, force=True)


def folder_here() -> str | None:
    """Give the working folder; ``None`` if it has been deleted."""
    with suppress(OSError):
        return os.getcwd()
    return None


def go_back(folder: str | None) -> None:
    """Have a trial begin in the folder that its worker began in, wherever the last one went; as `start_by`."""
    if folder is not None and current_process().name.startswith(WORKER):
        with suppress(OSError):
            os.chdir(folder)
