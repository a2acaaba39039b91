"""The one writer of a study's log."""

import json
import math
import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from workbench.core.errors import DatabaseError, InvalidInput, StudyError
from workbench.core.places import check_study_name, real_path
from workbench.core.protocols import Event, Kind
from workbench.knowledge.lock import claim, lock_path
from workbench.knowledge.rows import decode_events, identity_of, last_metric_of
from workbench.knowledge.schema import FULL, HELD, database_errors, open_for_writing


class DiskFull(DatabaseError):
    """An append found no space left on the disk, or so it seems; nothing of it was kept, and it can be tried again."""


class LogHeld(DatabaseError):
    """An append has waited in vain for another process to let go of the file; it can be tried again."""


class StudyLog:
    """Append-only log of one study, held by one driver at a time.

    Parameters
    ----------
    path : Path
        The knowledge base's file; made if missing.
    name : str
        The study's name.
    spec : Mapping
        What the study runs, in JSON's types; kept when the study is new, not read when it is resumed.
    resume : bool
        Whether the study must exist already.

    Raises
    ------
    StudyError
        The study exists and `resume` is false, does not exist and `resume` is true, or is held by another driver.
    InvalidInput
        `spec` holds what JSON does not.
    DatabaseError
        The file cannot be used.
    """

    def __init__(self, path: Path, name: str, spec: Mapping[str, Any] = {}, *, resume: bool = False) -> None:
        self._path = real_path(path)
        self._lock = threading.Lock()
        if resume and not self._path.exists():  # to look for what is not there makes nothing
            raise StudyError(f"no study {name!r} to resume, for there is no {self._path}: start it without resume=True")
        text = "" if resume else _spec_text(name, spec)
        lock_path(self._path, name)  # can be named
        self._connection = open_for_writing(self._path)
        self._name, self._inode = name, os.stat(self._path).st_ino
        self._driver: IO[str] | None = None
        try:
            with database_errors(self._path):
                self._number(name, resume)  # what is not there is not claimed either
            self._driver = claim(self._path, name)
            with database_errors(self._path):
                rows = self._connection.execute("SELECT name, id FROM metric_names").fetchall()
                self._names: dict[str, int] = dict(rows)
                self._study = self._enter(name, text, resume)
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
        LogHeld
            Another process has written to the file for a minute; likewise.
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
            except sqlite3.DatabaseError as err:
                self._names = known  # what was added to them is not in the file
                raise _why_unwritten(self._path, err) from None

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
        with database_errors(self._path):
            return identity_of(self._connection, self._study)

    @property
    def last_metric_s(self) -> float:
        """When the newest metric was logged, seconds on the study's clock; 0 where there is none."""
        with database_errors(self._path):
            return last_metric_of(self._connection, self._study)

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

    def _enter(self, name: str, spec: str, resume: bool) -> int:
        number = self._number(name, resume)
        if number is None:
            check_study_name(name)
            cursor = self._connection.execute(
                "INSERT INTO studies (name, created_unix, spec, identity) VALUES (?, ?, ?, ?)",
                (name, time.time(), spec, uuid.uuid4().hex[:16]),
            )
            return int(cursor.lastrowid or 0)
        if not resume:
            raise StudyError(
                f"study {name!r} exists in {self._path}: resume it with start(resume=True), or choose another name"
            )
        return number

    def _number(self, name: str, resume: bool) -> int | None:
        row = self._connection.execute("SELECT id FROM studies WHERE name = ?", (name,)).fetchone()
        if row is None and resume:
            raise StudyError(f"no study {name!r} in {self._path} to resume: start it without resume=True")
        return None if row is None else int(row[0])

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


def _why_unwritten(path: Path, err: sqlite3.DatabaseError) -> Exception:
    """Tell what keeps an append out of the file; what is no fault of file or disk is given back."""
    code = getattr(err, "sqlite_errorcode", 0)
    kind = code & 0xFF  # the low byte, whatever the occasion
    if code == sqlite3.SQLITE_FULL:
        return DiskFull(f"no space left to write to {path} ({err}): make space")
    if code in FULL:
        return DiskFull(f"{path} cannot be written to ({err}): make space, or see to the disk")
    if kind in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):  # of what is beside it
        return DatabaseError(f"{path} cannot be written to ({err}): see to the disk, then resume")
    if kind in HELD:
        return LogHeld(f"{path} was held by another process for too long ({err}): end that, then resume")
    if kind in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return DatabaseError(f"{path} was damaged while it was written to ({err}): restore a backup, then resume")
    return err


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


def _metrics(event: Event) -> Mapping[str, Any]:
    if event.kind not in (Kind.PROGRESS, Kind.PHASE_ENDED):
        return {}
    metrics: Mapping[str, Any] = event.data.get("metrics", {})
    return {k: v for k, v in metrics.items() if isinstance(v, (int, float)) and math.isfinite(v)}


def _dumps(thing: Any) -> str:
    return json.dumps(thing, ensure_ascii=False, separators=(",", ":"))  # a space's order counts


def _spec_text(name: str, spec: Mapping[str, Any]) -> str:
    try:
        return _dumps(spec)
    except (TypeError, ValueError) as err:
        raise InvalidInput(
            f"study {name!r} cannot be recorded, for JSON does not hold its {_not_written(spec)} ({err}): "
            "use words as names, and numbers, words, lists and dicts as values"
        ) from None


def _not_written(thing: Any) -> str:
    """Name the innermost setting that JSON does not hold, "trainable.weights"; "" if it is the thing itself."""
    for key, value in thing.items() if isinstance(thing, Mapping) else ():
        try:
            _dumps(value)
        except (TypeError, ValueError):
            return ".".join(filter(None, (str(key), _not_written(value))))
    return ""
