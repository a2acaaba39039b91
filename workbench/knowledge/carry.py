"""One study carried from a knowledge base into another: its events and metrics, and nothing else of the file."""

import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from workbench.core.errors import StudyError
from workbench.core.places import check_study_name
from workbench.knowledge.reader import KnowledgeBase
from workbench.knowledge.schema import database_errors, open_for_reading, open_for_writing
from workbench.knowledge.writer import transaction


def carry(source: Path, name: str, target: Path, new_name: str | None = None) -> str:
    """Copy a study into another knowledge base, whole or not at all; the other is made if it is missing.

    Under its own name it is the same study, and its next driver ends what an earlier one left running on a cluster;
    under a new one it is another. Returns its identity there.

    Raises
    ------
    InvalidInput
        `new_name` is no study's name.
    StudyError
        There is no such study, or the target holds one of that name.
    DatabaseError
        A file cannot be used.
    """
    with KnowledgeBase(source) as kb:
        kb[name]  # there is one, or this says which there are
    called = new_name or name
    check_study_name(called)
    with (
        closing(open_for_reading(source)) as there,
        closing(open_for_writing(target)) as here,
        database_errors(target),
        transaction(here),
    ):
        list(_rows(there, source, "BEGIN"))  # events and metrics are of one moment, though a driver goes on writing
        if here.execute("SELECT 1 FROM studies WHERE name = ?", (called,)).fetchone():
            raise StudyError(f"study {called!r} exists in {target}: choose another name, name=…")
        query = "SELECT id, created_unix, spec, identity FROM studies WHERE name = ?"
        old, created, spec, identity = next(_rows(there, source, query, name))
        identity = identity if called == name else uuid.uuid4().hex[:16]
        new = here.execute(
            "INSERT INTO studies (name, created_unix, spec, identity) VALUES (?, ?, ?, ?)",
            (called, created, spec, identity),
        ).lastrowid
        query = "SELECT ?, at_s, kind, trial, phase, slot, data FROM events WHERE study = ? ORDER BY seq"
        here.executemany(
            "INSERT INTO events (study, at_s, kind, trial, phase, slot, data) VALUES (?, ?, ?, ?, ?, ?, ?)",
            _rows(there, source, query, new, old),
        )
        used = "SELECT name FROM metric_names WHERE id IN (SELECT name FROM metrics WHERE study = ?)"
        here.executemany("INSERT OR IGNORE INTO metric_names (name) VALUES (?)", _rows(there, source, used, old))
        query = (
            "SELECT ?, m.at_s, m.trial, m.phase, n.name, m.value "
            "FROM metrics m JOIN metric_names n ON n.id = m.name WHERE m.study = ? ORDER BY m.seq"
        )
        here.executemany(
            "INSERT INTO metrics (study, at_s, trial, phase, name, value) "
            "VALUES (?, ?, ?, ?, (SELECT id FROM metric_names WHERE name = ?), ?)",
            _rows(there, source, query, new, old),
        )
    return str(identity)


def _rows(connection: sqlite3.Connection, path: Path, query: str, *parameters: object) -> Iterator[tuple[Any, ...]]:
    """Read a file while another is written, and tell of what is wrong with it as of this one."""
    with database_errors(path):
        yield from connection.execute(query, parameters)
