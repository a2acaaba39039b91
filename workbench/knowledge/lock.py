"""Who drives a study: the file that its driver holds locked, and what is done with it."""

import fcntl
import hashlib
import os
import socket
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO
from urllib.parse import quote

from workbench.core.errors import DatabaseError, StudyError
from workbench.core.places import real_path

_LONGEST_FILE = 255  # bytes of a file's name
_LONGEST_LOCK = 120  # characters of a lock's name that the study's takes
_TAKEN = (BlockingIOError, PermissionError)  # what a lock that another holds is told as, also on network file systems
_LONGEST_HOLDER = 4096  # bytes of what a driver writes into its lock


def lock_path(path: Path, name: str) -> Path:
    """Name the file that whoever drives a study holds locked; no two studies have one, and any file system takes it.

    Raises
    ------
    DatabaseError
        The knowledge base's own name leaves too little for it.
    """
    path, safe = real_path(path), quote(name, safe=" ").replace(".", "%2E")  # x.y in kb.db, y in kb.db.x
    if len(safe) > _LONGEST_LOCK:  # "+" stands in no quoted name
        safe = f"{safe[: _LONGEST_LOCK // 2]}+{hashlib.sha256(name.encode()).hexdigest()[:32]}"
    beside = f".{safe}.inbox"  # the longest of those named after both
    if (most := _LONGEST_FILE - len(beside)) < (n := len(os.fsencode(path.name))):
        raise DatabaseError(
            f"{path} has a name of {n} bytes, and at most {most} leave room for what stands beside it, …{beside}: "
            "choose a shorter one"
        )
    return path.with_name(f"{path.name}.{safe}.lock")


def output_path(path: Path, name: str) -> Path:
    """Name the file to which a driver in a process of its own writes what it has to say."""
    return lock_path(path, name).with_suffix(".out")


def written_by_last_driver(path: Path, name: str) -> Path | None:
    """Name the file of `output_path` if the last driver has written anything there: what is older is another's."""
    said = output_path(path, name)
    with suppress(OSError):
        status = said.stat()
        if status.st_size and status.st_mtime >= lock_path(path, name).stat().st_mtime:
            return said
    return None


def driver_of(path: Path, name: str) -> str | None:
    """Say which process drives a study, "process 12 on host since …"; ``None`` if none does."""
    holder = holder_of(lock_path(path, name))
    return None if holder is None else holder.partition("\n")[0] or "an unknown process"


def refuse_driven(path: Path, name: str, instead: str = "") -> None:
    """Refuse a study that somebody drives; raises `StudyError`, which ends with what to do `instead`, if given."""
    if (holder := driver_of(path, name)) is not None:
        raise _driven(path, name, holder, instead)


def claim(path: Path, name: str) -> IO[str]:
    """Take the study's lock file; the operating system frees it when its holder dies, however it dies."""
    lock = lock_path(path, name)
    try:
        return hold(lock, lambda holder: _driven(path, name, holder))
    except OSError as err:
        raise DatabaseError(f"{lock} cannot be locked ({err.strerror}): put it on another disk") from None


def hold(lock: Path, taken: Callable[[str], StudyError]) -> IO[str]:
    """Lock a file, made if need be, as long as what is returned is open; `taken` tells who holds it already.

    Raises
    ------
    StudyError
        Another holds it.
    OSError
        It cannot be opened, or its file system knows no locks.
    """
    while True:
        file = open(lock, "a+", opener=private)  # noqa: SIM115  held as long as the study is driven
        try:
            _lock(file)
        except _TAKEN:
            file.seek(0)
            holder = file.readline().strip() or "an unknown process"
            file.close()
            raise taken(holder) from None
        except OSError:
            file.close()
            raise
        if _is_at(file, lock):
            break
        file.close()  # removed between being opened and being locked: what is locked is nobody's
    _HELD.add(file)
    holder = f"{_this_process()}{time.strftime('%Y-%m-%d %H:%M:%S')}\n"
    with suppress(OSError):  # should the disk not take it: the lock holds all the same
        os.ftruncate(file.fileno(), 0)
        os.write(file.fileno(), holder.encode())
    return file


def _this_process() -> str:
    return f"process {os.getpid()} on {socket.gethostname()} since "


def _driven(path: Path, name: str, holder: str, instead: str = "") -> StudyError:
    said = f"study {name!r} is being driven by {holder}"
    if not holder.startswith(_this_process()):
        return StudyError(f"{said}: {instead or 'stop that driver first'}")
    here = f"AttachedStudy({str(path)!r}, {name!r})"  # a cell that is run again has nothing else to hold it by
    said += f", this one: {here} looks at it, and its stop() ends it"
    return StudyError(f"{said}: {instead}" if instead else said)


def private(path: str, flags: int) -> int:
    """Open a file, as `open`'s ``opener``, that nobody else may read if it is made now, whatever the umask."""
    return os.open(path, flags, 0o600)


_HELD: "weakref.WeakSet[IO[str]]" = weakref.WeakSet()


def _let_go_in_a_fork() -> None:
    """Close a driver's locks in its child: there they would outlive the driver, and be nobody's."""
    for file in list(_HELD):
        with suppress(OSError):
            file.close()


os.register_at_fork(after_in_child=_let_go_in_a_fork)


def holder_of(lock: Path) -> str | None:
    """Read what a living driver wrote into its lock, named by `lock_path`; ``None`` if nobody holds it.

    One that may not be opened, another user's, counts as held, by nobody knows whom.
    """
    try:
        file = os.open(lock, os.O_RDONLY)  # a dashboard looks twice a second: `open` takes longer
    except FileNotFoundError:
        return None
    except PermissionError:
        return ""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except _TAKEN:
        return os.read(file, _LONGEST_HOLDER).decode(errors="replace").strip()
    except OSError:  # the file system knows no locks: nobody can have taken one
        return None
    finally:
        os.close(file)
    return None


def _is_at(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except OSError:
        return False


def _lock(file: IO[str]) -> None:
    """Lock a file for one holder; whoever asks `driver_of` holds it for an instant, so a refusal is tried again."""
    for left in range(10, 0, -1):
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except _TAKEN:
            if left == 1:
                raise
            time.sleep(0.01)
    return None
