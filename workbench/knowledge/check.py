"""Is a knowledge base whole? What is wrong with it, what can be mended safely, and a copy of it while it runs."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from workbench.core.errors import DatabaseError, InvalidInput
from workbench.core.ledger import Ledger
from workbench.core.places import db_path, part_of, refuse_what_exists
from workbench.core.protocols import BEGUN, TURNS, Event, Kind
from workbench.core.record import last_end
from workbench.core.showing import so_many
from workbench.knowledge.lock import driver_of, private
from workbench.knowledge.reader import KnowledgeBase
from workbench.knowledge.schema import Unfinished, database_errors, left_beside, open_for_reading, open_for_writing
from workbench.knowledge.writer import StudyLog


@dataclass(frozen=True)
class Finding:
    """Something wrong in a knowledge base.

    Attributes
    ----------
    study : str
        Empty when it concerns the whole file.
    what : str
        One line.
    repairable : bool
        Whether `repair` mends it without losing anything.
    """

    study: str
    what: str
    repairable: bool = False

    def __str__(self) -> str:
        where = f"study {self.study!r}: " if self.study else ""
        return f"{where}{self.what}{' (repair mends this)' if self.repairable else ''}"


def check(path: str | Path) -> list[Finding]:
    """Look for damage: in the file, between its tables, and in the order of every study's events.

    Returns
    -------
    list of Finding
        Empty when all is well. A study that is being driven right now is never in the wrong for that.

    Raises
    ------
    DatabaseError
        The file cannot be read at all.
    """
    path = db_path(path)
    with closing(open_for_reading(path)) as connection, database_errors(path):
        findings = [Finding("", f"integrity: {line}") for line in _integrity(connection, path)]
        if n := connection.execute(f"SELECT count(*) FROM metrics WHERE {_ORPHAN}").fetchone()[0]:
            findings.append(Finding("", f"{so_many(n, 'metric')} of no study or trial", repairable=True))
    with KnowledgeBase(path) as kb:
        for name in kb:
            driven = driver_of(path, name) is not None  # before its events are read, the last of which may be to come
            try:
                events = kb[name].events()
                with database_errors(path):
                    wrong = [Finding(name, what) for what in out_of_order(events)]
                findings += [*wrong, Finding(name, _UNMENDABLE)] if wrong else []
            except DatabaseError as err:
                findings.append(Finding(name, str(err)))
                continue
            if _left_running(events) and not driven and driver_of(path, name) is None:
                findings.append(Finding(name, "its driver died without a word: resume it", repairable=True))
    return findings


def repair(path: str | Path) -> list[Finding]:
    """Mend what can be mended without losing anything; return what was mended.

    A study whose driver died is marked as interrupted, or as its search ended if that driver only confirmed; metrics
    that belong to nothing are removed; a write that was interrupted is taken back. Events are never changed or removed.
    """
    path = db_path(path)
    try:
        found = [finding for finding in check(path) if finding.repairable]
    except Unfinished as err:
        open_for_writing(path).close()
        return [Finding("", str(err).partition(":")[0], repairable=True), *repair(path)]
    return [finding for finding in found if _mend(path, finding.study)]


def _mend(path: Path, study: str) -> bool:
    """Mend what was found of a study, or of the whole file; tell whether there was anything left to mend."""
    if not study:
        with closing(open_for_writing(path)) as connection, database_errors(path):
            return connection.execute(f"DELETE FROM metrics WHERE {_ORPHAN}").rowcount > 0
    with closing(StudyLog(path, study, resume=True)) as log:
        events = log.events()
        if not _left_running(events):  # its driver was alive, and has ended it since it was looked at
            return False
        at = max(log.last_metric_s, *(event.at for event in events))
        mark = Event(Kind.STUDY_INTERRUPTED, at, data={"error": "marked by repair: its driver had died"})
        end = last_end([*events, mark])
        log.append([mark] if end is mark else [mark, replace(end, at=at)])
    return True


def backup(path: str | Path, target: str | Path) -> Path:
    """Copy a knowledge base as it is at one moment, also while studies write to it; without its checkpoints.

    Studies that have their checkpoints in a place of their own name it in the copy too; what is deleted there is gone
    for both.

    Raises
    ------
    InvalidInput
        The target exists, or what another database left beside it, or its checkpoints would be the original's.
    DatabaseError
        The knowledge base cannot be read, or its copy not be written there.
    """
    path, target = db_path(path), Path(target)
    part = part_of(target)
    try:
        with closing(open_for_reading(path)) as source:
            refuse_what_exists(target)
            for left in left_beside(target):
                raise InvalidInput(f"{left} is left of another database: delete it, or choose another name")
            if len({file.parent.resolve() / file.stem for file in (path, target)}) == 1:
                raise InvalidInput(
                    f"{target} would share the checkpoints in {path.stem}.checkpoints with {path.name}, and what is "
                    "deleted in one would be gone in the other: choose another name or folder for the backup"
                )
            target.parent.mkdir(parents=True, exist_ok=True)
            open(part, "xb", opener=private).close()  # private from the first byte, as the knowledge base itself
            with closing(sqlite3.connect(part)) as copy:
                source.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")  # one file, to be carried away
        refuse_what_exists(target)  # as another backup meanwhile
        os.replace(part, target)
    except (OSError, sqlite3.Error) as err:
        why = getattr(err, "strerror", None) or err
        do = "choose another place, make space, or see workbench check"
        raise DatabaseError(f"{path} cannot be copied to {target} ({why}): {do}") from None
    finally:
        with suppress(OSError):
            part.unlink()
    return target


def out_of_order(events: list[Event]) -> Iterator[str]:
    """Name every break of the order a driver keeps to (see `docs/log.md`)."""
    ledger = Ledger()
    started: set[tuple[int | None, int]] = set()
    last: dict[int | None, float] = {}  # by trial: what several trials do may be logged in one piece, a little late
    for n, event in enumerate(events):
        where = f"event {n} ({event.kind}, trial {event.trial}, phase {event.phase})"
        if event.kind not in (Kind.SLOT_JOINED, Kind.SLOT_LOST):
            if event.at < last.get(event.trial, 0.0):
                yield f"{where} goes back in time, from {last[event.trial]:.3f} to {event.at:.3f} s"
            last[event.trial] = event.at
        trial = None if event.trial is None else ledger.trials.get(event.trial)
        if event.kind is Kind.RUN:
            if event.data["parent"] is not None and event.data["parent"] not in ledger:
                yield f"{where} has a parent that was never run"
                event = replace(event, data={**event.data, "parent": None})
        elif event.trial is not None and trial is None:
            yield f"{where} concerns a trial that was never run"
            continue
        if trial is not None:
            phase = event.phase or 0
            if trial.state.over and event.kind not in (Kind.DECISION, Kind.INTERVENTION):
                yield f"{where} comes after the trial was over"
            unbegun = event.kind is Kind.PHASE_ENDED and (event.trial, phase) not in started
            if event.kind is Kind.PHASE_STARTED:
                started.add((event.trial, phase))
            elif unbegun or (event.kind in (Kind.RUN, Kind.PHASE_ENDED) and phase != trial.due):
                yield f"{where} was not the phase due, {trial.due}"
        ledger.see(event)


_UNMENDABLE = (
    "the order of its events cannot be mended: two drivers have written in turns, or the log was altered, and what one "
    "of them did would be lost; it can be read, not resumed: restore a backup, or start another study"
)
_ORPHAN = "(study, trial) IN (SELECT study, trial FROM metrics EXCEPT SELECT study, trial FROM events)"


def _integrity(connection: sqlite3.Connection, path: Path) -> list[str]:
    try:
        lines = [row[0] for row in connection.execute("PRAGMA integrity_check").fetchall() if row[0] != "ok"]
        return lines + [
            f"a row of {row[0]} points to nothing" for row in connection.execute("PRAGMA foreign_key_check")
        ]
    except sqlite3.DatabaseError as err:
        raise DatabaseError(f"{path} is damaged ({err}): restore a backup") from None


def _left_running(events: list[Event]) -> bool:
    return next((e.kind in BEGUN for e in reversed(events) if e.kind in TURNS), False)
