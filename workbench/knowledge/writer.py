"""The one writer of a study's log."""

import fcntl
import hashlib
import json
import math
import os
import signal
import socket
import sqlite3
import threading
import time
import uuid
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from workbench.core.describe import without_retired
from workbench.core.errors import DatabaseError, InvalidInput, StudyError
from workbench.core.places import STUDY_NAME, is_study_name
from workbench.core.protocols import Event, Kind
from workbench.knowledge.reader import decode_events
from workbench.knowledge.schema import database_errors, open_for_writing

# Space can be lacking for the rows, for the file they go through, or for the index of that file. A quota that is used
# up is told as an error of writing.
_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_TRUNCATE}

_LONGEST_LOCK = 120  # characters of a lock's name that the study's takes: names of files have 255 bytes


class DiskFull(DatabaseError):
    """An append found no space left on the disk, or so it seems; nothing of it was kept, and it can be tried again."""


class StudyLog:
    """Append-only log of one study, held by one driver at a time.

    Parameters
    ----------
    path : Path
        The knowledge base's file; made if missing.
    name : str
        The study's name.
    spec : Mapping
        What the study runs, in JSON's types; kept when the study is new, compared when it is resumed.
    resume : bool
        Whether the study must exist already.

    Raises
    ------
    StudyError
        The study exists and `resume` is false, does not exist and `resume` is true, is held by another driver, or
        was recorded with another spec.
    DatabaseError
        The file cannot be used.
    """

    def __init__(self, path: Path, name: str, spec: Mapping[str, Any], *, resume: bool = False) -> None:
        self._path = real_path(path)
        self._lock = threading.Lock()
        if resume and not self._path.is_file():  # to look for what is not there makes nothing
            raise StudyError(f"no study {name!r} to resume, for there is no {self._path}: start it without resume=True")
        self._connection = open_for_writing(self._path)
        self._name, self._inode = name, os.stat(self._path).st_ino
        self._driver: IO[str] | None = None
        try:
            self._driver = claim(self._path, name)
            with database_errors(self._path):
                rows = self._connection.execute("SELECT name, id FROM metric_names").fetchall()
                self._names: dict[str, int] = dict(rows)
                self._study = self._enter(name, spec, resume)
                self._last = self._newest()
        except BaseException:
            self.close()
            raise

    def append(self, events: Sequence[Event]) -> None:
        """Add events in order, all or none; progress becomes metrics, every phase's metrics are kept as such too.

        Raises
        ------
        DiskFull
            There is no space left; the same append may be tried again.
        StudyError
            Another driver has written to the study meanwhile: nothing is added to what it wrote.
        DatabaseError
            The file is gone, or cannot be written to.
        """
        self.check_there()
        rows = [
            (self._study, e.at, str(e.kind), e.trial, e.phase, e.slot, _dumps(e.data))
            for e in events
            if e.kind is not Kind.PROGRESS
        ]
        points = [
            (self._study, e.at, e.trial, e.phase, name, float(value))
            for e in events
            for name, value in _metrics(e).items()
        ]
        with self._lock:
            known = dict(self._names)
            try:
                with transaction(self._connection):
                    if self._newest() != self._last:
                        raise StudyError(f"another driver has taken study {self._name!r} over: this one ends")
                    self._insert(rows, points)
                    newest = self._newest()
                self._last = newest
            except sqlite3.OperationalError as err:
                self._names = known  # what was added to them is not in the file
                if err.sqlite_errorcode == sqlite3.SQLITE_FULL:
                    raise DiskFull(f"no space left to write to {self._path} ({err}): make space") from None
                if err.sqlite_errorcode in _FULL:
                    what = f"{self._path} cannot be written to ({err})"
                    raise DiskFull(f"{what}: make space, or see to the disk") from None
                if err.sqlite_errorcode & 0xFF == sqlite3.SQLITE_IOERR:
                    raise DatabaseError(
                        f"{self._path} cannot be written to ({err}): see to the disk, then resume"
                    ) from None
                raise

    def check_there(self) -> None:
        """Raise `DatabaseError` if the file has been deleted, moved or replaced since it was opened."""
        try:
            if os.stat(self._path).st_ino == self._inode:
                return
        except OSError:
            pass
        raise DatabaseError(
            f"{self._path} was deleted, moved or replaced while study {self._name!r} ran: put it back, then resume"
        )

    @property
    def spec(self) -> dict[str, Any]:
        """What was recorded of the study when it was begun."""
        row = self._connection.execute("SELECT spec FROM studies WHERE id = ?", (self._study,)).fetchone()
        with database_errors(self._path):
            return dict(json.loads(row[0]))

    @property
    def identity(self) -> str:
        """The study's own mark, the same for every driver it ever has."""
        row = self._connection.execute("SELECT identity FROM studies WHERE id = ?", (self._study,)).fetchone()
        return str(row[0])

    def events(self) -> list[Event]:
        """Read back everything this study has logged."""
        with database_errors(self._path):
            return decode_events(self._connection, self._study)

    def close(self) -> None:
        """Give the study up; another driver may take it."""
        with self._lock:
            self._connection.close()
            if self._driver is not None:
                self._driver.close()  # releases the lock
                self._driver = None

    def _enter(self, name: str, spec: Mapping[str, Any], resume: bool) -> int:
        row = self._connection.execute("SELECT id, spec FROM studies WHERE name = ?", (name,)).fetchone()
        if row is None:
            if resume:
                raise StudyError(f"no study {name!r} in {self._path} to resume: start it without resume=True")
            if not is_study_name(name):
                raise InvalidInput(f"{STUDY_NAME}, got {name!r}")
            cursor = self._connection.execute(
                "INSERT INTO studies (name, created_unix, spec, identity) VALUES (?, ?, ?, ?)",
                (name, time.time(), _dumps(spec), uuid.uuid4().hex[:16]),
            )
            return int(cursor.lastrowid or 0)
        if not resume:
            raise StudyError(
                f"study {name!r} exists in {self._path}: resume it with start(resume=True), or choose another name"
            )
        recorded, given = without_retired(json.loads(row[1])), json.loads(_dumps(spec))
        for key in sorted(recorded.keys() | given.keys()):
            if key in recorded and _differs(_kept(recorded[key]), _kept(given.get(key))):
                raise StudyError(
                    f"study {name!r} was started with {key} = {_dumps(recorded[key])}, not "
                    f"{_dumps(given.get(key))}: resume it as it was, or start another study"
                )
        return int(row[0])

    def _newest(self) -> int:
        """Number of the study's last event: whatever becomes of the lock, two drivers never write in turns."""
        query = "SELECT max(seq) FROM events WHERE study = ?"
        return int(self._connection.execute(query, (self._study,)).fetchone()[0] or 0)

    def _insert(self, rows: Sequence[tuple[Any, ...]], points: Sequence[tuple[Any, ...]]) -> None:
        self._connection.executemany(
            "INSERT INTO events (study, at_s, kind, trial, phase, slot, data) VALUES (?, ?, ?, ?, ?, ?, ?)", rows
        )
        self._connection.executemany(
            "INSERT INTO metrics (study, at_s, trial, phase, name, value) VALUES (?, ?, ?, ?, ?, ?)",
            [(s, at, trial, phase, self._name_id(name), value) for s, at, trial, phase, name, value in points],
        )

    def _name_id(self, name: str) -> int:
        if name not in self._names:
            self._connection.execute("INSERT OR IGNORE INTO metric_names (name) VALUES (?)", (name,))
            row = self._connection.execute("SELECT id FROM metric_names WHERE name = ?", (name,)).fetchone()
            self._names[name] = int(row[0])
        return self._names[name]


def real_path(path: str | Path) -> Path:
    """Follow every link: one knowledge base has one place, and its locks and requests stand beside it."""
    return Path(os.path.realpath(path))


def lock_path(path: Path, name: str) -> Path:
    """Name the file that whoever drives a study holds locked; no two studies have one, and any file system takes it."""
    path, safe = real_path(path), quote(name, safe=" ")
    if len(safe) > _LONGEST_LOCK:  # "+" stands in no quoted name
        safe = f"{safe[: _LONGEST_LOCK // 2]}+{hashlib.sha256(name.encode()).hexdigest()[:32]}"
    return path.with_name(f"{path.name}.{safe}.lock")


class transaction:  # noqa: N801  a context manager, used like a function
    """Commit whole or not at all."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:  # not so where SQLite has taken it back itself
                self._connection.execute("ROLLBACK")


def output_path(path: Path, name: str) -> Path:
    """Name the file to which a driver in a process of its own writes what it has to say."""
    return lock_path(path, name).with_suffix(".out")


def driver_of(path: Path, name: str) -> str | None:
    """Say which process drives a study, "process 12 on host since …"; ``None`` if none does."""
    holder = holder_of(lock_path(path, name))
    return None if holder is None else holder.partition("\n")[0] or "an unknown process"


def signal_driver(path: Path, name: str, number: int) -> bool:
    """Send a signal to the process that drives a study; tell whether there is one.

    It goes to that process or to none: the process is taken hold of first, and then asked for once more.

    Raises
    ------
    StudyError
        It is on another machine, or cannot be told from others.
    """
    lock = lock_path(path, name)
    written = holder_of(lock)
    if written is None:
        return False
    holder, _, mark = written.strip().partition("\n")
    words = holder.split()
    if words[:1] != ["process"] or words[3:4] != [socket.gethostname()] or mark != _began(words[1]):
        who = holder or "an unknown process"
        raise StudyError(f"study {name!r} is driven by {who}, out of reach from here: stop it there")
    try:
        process = os.pidfd_open(int(words[1]))
    except ProcessLookupError:
        return False
    try:
        if holder_of(lock) != written:
            return False
        signal.pidfd_send_signal(process, number)
    finally:
        os.close(process)
    return True


def claim(path: Path, name: str) -> IO[str]:
    """Take the study's lock file; the operating system frees it when its holder dies, however it dies."""
    lock = lock_path(path, name)
    while True:
        file = open(lock, "a+", opener=private)  # noqa: SIM115  held as long as the study is driven
        try:
            _lock(file)
        except OSError:
            file.seek(0)
            holder = file.readline().strip() or "an unknown process"
            file.close()
            raise StudyError(f"study {name!r} is being driven by {holder}: stop that driver first") from None
        if _is_at(file, lock):
            break
        file.close()  # removed between being opened and being locked: what is locked is nobody's
    _HELD.add(file)
    holder = f"process {os.getpid()} on {socket.gethostname()} since {time.strftime('%Y-%m-%d %H:%M:%S')}\n"
    with suppress(OSError):  # should the disk not take it: the lock holds all the same
        os.ftruncate(file.fileno(), 0)
        os.write(file.fileno(), f"{holder}{_began(str(os.getpid()))}".encode())
    return file


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
    """Read what a living driver wrote into its lock, named by `lock_path`; ``None`` if nobody holds it."""
    try:
        file = open(lock)  # noqa: SIM115  closed below
    except FileNotFoundError:
        return None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return file.read().strip()
    return None


def _began(pid: str) -> str:
    """When a process began, in ticks since the machine did: with its number it is no other's. Empty if unknown."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _is_at(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except OSError:
        return False


def _lock(file: IO[str], tries: int = 10) -> None:
    """Lock a file for one holder; whoever asks `driver_of` holds it for an instant, so a refusal is tried again."""
    for left in range(tries, 0, -1):
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if left == 1:
                raise
            time.sleep(0.01)
    return None


def _kept(settings: Any) -> Any:
    """Leave out what may be raised; whether it may here is for `workbench.core.record.take_up` to say."""
    return {k: v for k, v in settings.items() if k != "n_trials"} if isinstance(settings, dict) else settings


def _differs(recorded: Any, given: Any) -> bool:
    """Compare settings; one that is new since the study was recorded, and stands among others of a kind, is none."""
    if isinstance(recorded, dict) and isinstance(given, dict):
        if "kind" not in recorded and recorded.keys() != given.keys():
            return True
        return any(key not in given or _differs(value, given[key]) for key, value in recorded.items())
    if isinstance(recorded, list) and isinstance(given, list):
        return len(recorded) != len(given) or any(map(_differs, recorded, given))
    return bool(recorded != given)


def _metrics(event: Event) -> Mapping[str, Any]:
    if event.kind not in (Kind.PROGRESS, Kind.PHASE_ENDED):
        return {}
    metrics: Mapping[str, Any] = event.data.get("metrics", {})
    return {k: v for k, v in metrics.items() if isinstance(v, (int, float)) and math.isfinite(v)}


def _dumps(thing: Any) -> str:
    return json.dumps(thing, ensure_ascii=False, separators=(",", ":"))  # a space's order counts
