"""The one writer of a study's log."""

import fcntl
import json
import math
import os
import socket
import sqlite3
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from workbench.core.errors import StudyError
from workbench.core.protocols import Event, Kind
from workbench.knowledge.reader import decode_events
from workbench.knowledge.schema import open_for_writing


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
        self._path = Path(path)
        self._lock = threading.Lock()
        self._connection = open_for_writing(self._path)
        self._names: dict[str, int] = dict(self._connection.execute("SELECT name, id FROM metric_names").fetchall())
        self._driver: IO[str] | None = None
        try:
            self._driver = claim(self._path, name)
            self._study = self._enter(name, spec, resume)
        except BaseException:
            self.close()
            raise

    def append(self, events: Sequence[Event]) -> None:
        """Add events in order, all or none; progress becomes metrics, every phase's metrics are kept as such too."""
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
        with self._lock, _transaction(self._connection):
            self._connection.executemany(
                "INSERT INTO events (study, at_s, kind, trial, phase, slot, data) VALUES (?, ?, ?, ?, ?, ?, ?)", rows
            )
            self._connection.executemany(
                "INSERT INTO metrics (study, at_s, trial, phase, name, value) VALUES (?, ?, ?, ?, ?, ?)",
                [(s, at, trial, phase, self._name_id(name), value) for s, at, trial, phase, name, value in points],
            )

    def events(self) -> list[Event]:
        """Read back everything this study has logged."""
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
                raise StudyError(f"no study {name!r} in {self._path} to resume: start it without --resume")
            cursor = self._connection.execute(
                "INSERT INTO studies (name, created_unix, spec) VALUES (?, ?, ?)", (name, time.time(), _dumps(spec))
            )
            return int(cursor.lastrowid or 0)
        if not resume:
            raise StudyError(
                f"study {name!r} exists in {self._path}: resume it with --resume, or choose another --name"
            )
        recorded = json.loads(row[1])
        for key in sorted(recorded.keys() | spec.keys()):
            if _dumps(recorded.get(key)) != _dumps(spec.get(key)):
                raise StudyError(
                    f"study {name!r} was started with {key} = {_dumps(recorded.get(key))}, not "
                    f"{_dumps(spec.get(key))}: resume it as it was, or start another study"
                )
        return int(row[0])

    def _name_id(self, name: str) -> int:
        if name not in self._names:
            self._connection.execute("INSERT OR IGNORE INTO metric_names (name) VALUES (?)", (name,))
            found = self._connection.execute("SELECT id FROM metric_names WHERE name = ?", (name,)).fetchone()
            self._names[name] = int(found[0])
        return self._names[name]


def lock_path(path: Path, name: str) -> Path:
    """Name the file that whoever drives a study holds locked."""
    safe = "".join(c if c.isalnum() or c in "-_." else f"%{ord(c):x}" for c in name)
    return path.with_name(f"{path.name}.{safe}.lock")


class _transaction:  # noqa: N801  a context manager, used like a function
    """Commit whole or not at all."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._connection.execute("COMMIT" if kind is None else "ROLLBACK")


def claim(path: Path, name: str) -> IO[str]:
    """Take the study's lock file; the operating system frees it when its holder dies, however it dies."""
    file = open(lock_path(path, name), "a+")  # noqa: SIM115  held as long as the study is driven
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        holder = file.read().strip() or "an unknown process"
        file.close()
        raise StudyError(f"study {name!r} is being driven by {holder}: stop that driver first") from None
    file.seek(0)
    file.truncate()
    file.write(f"process {os.getpid()} on {socket.gethostname()} since {time.strftime('%Y-%m-%d %H:%M:%S')}\n")
    file.flush()
    return file


def _metrics(event: Event) -> Mapping[str, Any]:
    if event.kind not in (Kind.PROGRESS, Kind.PHASE_ENDED):
        return {}
    found: Mapping[str, Any] = event.data.get("metrics", {})
    return {k: v for k, v in found.items() if isinstance(v, (int, float)) and math.isfinite(v)}


def _dumps(thing: Any) -> str:
    return json.dumps(thing, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
