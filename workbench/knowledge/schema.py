"""The database file: its tables, its version, and how it is opened for writing and for reading."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path

from workbench.core.errors import DatabaseError, WorkbenchError
from workbench.core.measured import one_line

VERSION = 2
"""Schema version, kept in SQLite's ``user_version``."""

_WAIT_S = 60  # for another's lock
_LONGEST_PATH = 504  # bytes that SQLite opens: 512, less what it puts after the names of files beside
_HEADER = 100  # bytes that every database begins with; SQLite takes some shorter files for empty ones
_APPLICATION = 0x574B4248  # SQLite's application_id: tells our files from other people's

_TABLES = """
CREATE TABLE studies (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    created_unix REAL NOT NULL,
    spec TEXT NOT NULL,
    identity TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    study INTEGER NOT NULL REFERENCES studies (id),
    at_s REAL NOT NULL,
    kind TEXT NOT NULL,
    trial INTEGER,
    phase INTEGER,
    slot INTEGER,
    data TEXT NOT NULL
) STRICT;
CREATE INDEX events_of_study ON events (study, seq);
CREATE TABLE metric_names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE metrics (
    seq INTEGER PRIMARY KEY,
    study INTEGER NOT NULL REFERENCES studies (id),
    at_s REAL NOT NULL,
    trial INTEGER NOT NULL,
    phase INTEGER NOT NULL,
    name INTEGER NOT NULL REFERENCES metric_names (id),
    value REAL
) STRICT;
CREATE INDEX metrics_of_study ON metrics (study, seq);
CREATE INDEX metrics_by_name ON metrics (study, name, seq);
"""


class Unfinished(DatabaseError):
    """What was being written when a driver or the disk failed is to be taken back: a reader may not, a writer does."""


class Held(DatabaseError):
    """Another process has held the file for longer than is waited for; it can be tried again."""


# what reading nonsense raises, deep nesting and numbers without bounds among it
NONSENSE = (
    LookupError, ValueError, TypeError, AttributeError, AssertionError, StopIteration, ArithmeticError, RecursionError
)  # fmt: skip
HELD = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
# Space can be lacking for the rows, for the file they go through, or for the index of that file, for which a reader too
# needs some. A quota that is used up is told as an error of writing.
FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_TRUNCATE}
_INTERRUPTED = {sqlite3.SQLITE_READONLY_ROLLBACK, sqlite3.SQLITE_READONLY_RECOVERY}  # what a reader may not mend


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Open, or create, a knowledge base.

    Writers of different studies take turns, waiting up to 60 s.

    Raises
    ------
    DatabaseError
        The file is not a knowledge base, is damaged, or of another version.
    """
    refuse_what_is_none(path)
    make_folder(path)
    try:
        with suppress(FileExistsError):  # private from the first byte; what SQLite puts beside it takes over its rights
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as err:
        raise DatabaseError(f"{path} cannot be made ({err.strerror}): choose another place") from None
    if path.stat().st_nlink > 1:
        raise DatabaseError(f"{path} has several names (hard links), which SQLite cannot keep apart: use a copy")
    with database_errors(path):
        connection = sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False)
    try:
        with database_errors(path):
            if _is_empty(connection):
                _create(connection)
            _check(connection, path)
            # a backup has another mode, under which those who read lock out those who write
            connection.execute("PRAGMA journal_mode = WAL")
            # NORMAL in WAL mode: a commit survives the death of this process; a power cut may take the last ones.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def refuse_what_is_none(path: Path) -> None:
    """Refuse a path at which there is no knowledge base, and none can be made; raises `DatabaseError`."""
    if path.is_dir():
        file = next(iter(sorted(path.glob("*.db"))), path / "study.db")
        raise DatabaseError(f"{path} is a folder, and a knowledge base is a file: name one in it, {file}")
    for above in filter(Path.is_file, path.parents):
        raise DatabaseError(f"there can be no knowledge base at {path}, for {above} is a file: choose another path")
    if (n := len(os.fsencode(os.path.realpath(path)))) > _LONGEST_PATH:
        what = f"{path} is a path of {n} bytes, and SQLite opens {_LONGEST_PATH} at most"
        raise DatabaseError(f"{what}: choose a shorter one")
    with suppress(FileNotFoundError):
        if path.is_file() and 0 < path.stat().st_size < _HEADER:
            what = f"{path} cannot be read as a knowledge base (it is shorter than any)"
            raise DatabaseError(f"{what}: restore a backup or choose another file")


def make_folder(path: Path) -> None:
    """Make the folder of a knowledge base; raises `DatabaseError` where there can be none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        raise DatabaseError(f"{path} cannot be made ({err.strerror}): choose another place") from None


def left_beside(path: Path) -> list[Path]:
    """Name what is left beside a database: SQLite would write it into another that came to its place."""
    return [left for kind in ("wal", "journal") if (left := path.with_name(f"{path.name}-{kind}")).exists()]


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Open a knowledge base without any right to change it.

    Raises
    ------
    DatabaseError
        The file is missing, not a knowledge base, damaged, or of another version.
    Unfinished
        A writer has to open it first.
    """
    refuse_what_is_none(path)
    if not path.is_file():
        raise DatabaseError(f"no knowledge base at {path}: check the path, or run a study with db={str(path)!r}")
    with database_errors(path):  # as of another user's file
        connection = _connect_for_reading(path)
    try:
        with database_errors(path):
            if _is_empty(connection):
                raise Unfinished(f"the making of {path} was interrupted: run workbench repair")
            _check(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _connect_for_reading(path: Path) -> sqlite3.Connection:
    """Connect without any right to write; where nobody can, on a read-only mount or a full disk, as to one at rest."""

    def connect(how: str) -> sqlite3.Connection:
        return sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, timeout=_WAIT_S, check_same_thread=False)

    connection = connect("mode=ro")
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as err:
        log = path.with_name(f"{path.name}-wal")
        kind = 0 if err.sqlite_errorcode in _INTERRUPTED else err.sqlite_errorcode & 0xFF
        closed = kind in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) or err.sqlite_errorcode in FULL
        if closed and not (log.exists() and log.stat().st_size):
            connection.close()
            connection = connect("mode=ro&immutable=1")
    except (sqlite3.DatabaseError, UnicodeDecodeError):  # SQLite's message quotes the damaged bytes
        pass  # what is wrong is said when it is read
    return connection


@contextmanager
def database_errors(path: Path) -> Iterator[None]:
    """Turn whatever a damaged, full or locked file makes of reading it into one readable error."""
    try:
        yield
    except WorkbenchError:
        raise
    except sqlite3.DatabaseError as err:
        code = getattr(err, "sqlite_errorcode", None)
        if code is not None and code & 0xFF in HELD:  # the low byte: the kind, whatever the occasion
            raise Held(f"{path} is held by another process ({err}): end that, or try again") from None
        if code in FULL:
            raise DatabaseError(f"{path} cannot be opened, the disk is full: make space") from None
        if code in _INTERRUPTED:
            raise Unfinished(f"a write to {path} was interrupted: run workbench repair") from None
        if code is not None and code & 0xFF == sqlite3.SQLITE_READONLY:
            raise DatabaseError(f"{path} cannot be written to ({err}): see to its rights, or use a copy") from None
        if code is not None and code & 0xFF == sqlite3.SQLITE_CANTOPEN:  # as on a read-only disk: nothing is damaged
            what = f"{path} cannot be opened with what SQLite keeps beside it ({err})"
            raise DatabaseError(f"{what}: see to the rights there, or use a copy") from None
        what = f"{path} cannot be read as a knowledge base ({err})"
        raise DatabaseError(f"{what}: restore a backup or choose another file") from None
    except NONSENSE as err:
        what = f"{path} holds what no driver has written ({one_line(err)[:200]})"
        raise DatabaseError(f"{what}: run workbench check, restore a backup") from None


def _is_empty(connection: sqlite3.Connection) -> bool:
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return bool(tables == 0 and _version(connection) == 0)


def _create(connection: sqlite3.Connection) -> None:
    """Make the tables, unless another process that found none either was first."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    if _is_empty(connection):
        marks = (f"PRAGMA application_id = {_APPLICATION}", f"PRAGMA user_version = {VERSION}")
        for statement in (*marks, *_TABLES.split(";")):
            connection.execute(statement)
    connection.execute("COMMIT")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _check(connection: sqlite3.Connection, path: Path) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = _version(connection)
    if application != _APPLICATION:
        raise DatabaseError(f"{path} is an SQLite file, but not a knowledge base of the workbench: choose another file")
    if version != VERSION:
        do = "upgrade the workbench" if version > VERSION else "choose another file, or use the workbench that wrote it"
        raise DatabaseError(f"{path} has schema version {version}, this workbench reads only {VERSION}: {do}")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    _check_tables(connection, path)


def _check_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse whatever else the file brings along: a view or a trigger is code that runs on reading and writing."""
    known, there = _own_shape(), _shape(connection)
    if there != known:
        kind, name, _ = sorted((there - known) or (known - there))[0]
        what = "has, beyond what a workbench makes," if there - known else "lacks, of what a workbench makes,"
        raise DatabaseError(f"{path} {what} the {kind} {name!r}: do not trust it, restore a backup")


def _shape(connection: sqlite3.Connection) -> set[tuple[str, ...]]:
    """Everything a file's schema holds: its words, in one spelling of blanks. Statistics of SQLite's own are let be."""
    rows = connection.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master").fetchall()
    return {
        (kind, name, " ".join(sql.split()))
        for kind, name, sql in rows
        if not (kind in ("table", "index") and name.startswith("sqlite_"))
    }


@cache
def _own_shape() -> set[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_TABLES)
        return _shape(connection)
