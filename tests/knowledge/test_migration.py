"""Files of older versions: read as they are, brought up by a writer, never harmed."""

import json
import os
import shutil
import signal
import sqlite3
from contextlib import closing
from multiprocessing import get_context

import pytest

from tests.knowledge.test_knowledge import a_study
from workbench.core.errors import StudyError
from workbench.core.protocols import Event, Kind
from workbench.knowledge import KnowledgeBase, StudyLog, check, schema
from workbench.knowledge.schema import VERSION

VERSION_1 = """
PRAGMA journal_mode = WAL;
BEGIN;
PRAGMA application_id = 1464549960;
PRAGMA user_version = 1;
CREATE TABLE studies (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, created_unix REAL NOT NULL, spec TEXT NOT NULL
) STRICT;
CREATE TABLE events (
    seq INTEGER PRIMARY KEY, study INTEGER NOT NULL REFERENCES studies (id), at_s REAL NOT NULL, kind TEXT NOT NULL,
    trial INTEGER, phase INTEGER, slot INTEGER, data TEXT NOT NULL
) STRICT;
CREATE INDEX events_of_study ON events (study, seq);
CREATE TABLE metric_names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE metrics (
    seq INTEGER PRIMARY KEY, study INTEGER NOT NULL REFERENCES studies (id), at_s REAL NOT NULL,
    trial INTEGER NOT NULL, phase INTEGER NOT NULL, name INTEGER NOT NULL REFERENCES metric_names (id), value REAL
) STRICT;
CREATE INDEX metrics_of_study ON metrics (study, seq);
INSERT INTO studies VALUES (1, 'old', 1.5, '{"seed":3}'), (2, 'older', 0.5, '{"seed":4}');
INSERT INTO metric_names VALUES (1, 'frames');
INSERT INTO metrics VALUES (1, 1, 2.0, 0, 0, 1, 40.0);
COMMIT;
"""


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(VERSION_1)
        connection.executemany(
            "INSERT INTO events (study, at_s, kind, trial, phase, slot, data) VALUES (1, ?, ?, ?, ?, ?, ?)",
            [(e.at, str(e.kind), e.trial, e.phase, e.slot, json.dumps(dict(e.data))) for e in a_study()],
        )
        connection.commit()
    return path


def version(path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA user_version").fetchone()[0]


def assert_nothing_lost(path) -> None:
    with KnowledgeBase(path) as kb:
        assert list(kb) == ["old", "older"]
        assert (kb["old"].spec, kb["old"].created_unix) == ({"seed": 3}, 1.5)
        assert kb["old"].events()[: len(a_study())] == a_study()
        assert kb["old"].metrics()[["name", "value"]].to_numpy().tolist() == [["frames", 40.0]]
    assert check(path) == []


def test_a_viewer_reads_an_old_file_and_leaves_it_as_it_is(old) -> None:
    assert_nothing_lost(old)
    assert version(old) == 1


def test_a_writer_brings_an_old_file_up_and_loses_nothing(old) -> None:
    with KnowledgeBase(old) as viewer:  # one that was there before
        log = StudyLog(old, "old", {"seed": 3}, resume=True)
        other = StudyLog(old, "older", {"seed": 4}, resume=True)
        assert log.identity
        assert log.identity != other.identity
        log.append([Event(Kind.STUDY_RESUMED, 9.0), Event(Kind.STUDY_ENDED, 9.0)])
        assert viewer["old"].events()[-1].kind is Kind.STUDY_ENDED
        log.close()
        other.close()
    assert version(old) == VERSION
    assert_nothing_lost(old)
    again = StudyLog(old, "old", {"seed": 3}, resume=True)
    assert again.identity == log_identity(old)
    again.close()


def log_identity(path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT identity FROM studies WHERE name = 'old'").fetchone()[0]


def _migrate_and_die(path, left: int) -> None:
    """Bring a file up, and kill this process at its statement number `left`."""
    connect = sqlite3.connect

    def dying(*arguments, **settings):
        connection = connect(*arguments, **settings)

        def count(_statement: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        connection.set_trace_callback(count)
        return connection

    sqlite3.connect = dying  # type: ignore[assignment]
    schema.open_for_writing(path).close()


def test_a_writer_killed_at_any_statement_of_the_migration_leaves_a_whole_file(old, tmp_path) -> None:
    died, statement, code = 0, 0, -signal.SIGKILL
    while code:
        path = tmp_path / f"{statement}.db"
        shutil.copy(old, path)
        process = get_context("fork").Process(target=_migrate_and_die, args=(path, statement))
        process.start()
        process.join()
        code = process.exitcode
        assert code in (0, -signal.SIGKILL)
        died += code != 0
        assert version(path) in (1, VERSION)
        assert_nothing_lost(path)
        statement += 1
    assert died >= 8
    StudyLog(path, "old", {"seed": 3}, resume=True).close()
    assert version(path) == VERSION


RECORDED = {"scheduler": {"kind": "hypertrick", "n": 3, "searcher": {"kind": "random", "space": {"lr": [0, 1]}}}}


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        (lambda s: s["scheduler"].update(new_setting=0.5), False),
        (lambda s: s["scheduler"]["searcher"].update(new_setting=None), False),
        (lambda s: s.update(new_table={"kind": "x"}), False),
        (lambda s: s["scheduler"].update(n=4), True),
        (lambda s: s["scheduler"].pop("n"), True),
        (lambda s: s["scheduler"]["searcher"].update(kind="grid"), True),
        (lambda s: s["scheduler"]["searcher"]["space"].update(gamma=[0, 1]), True),
        (lambda s: s["scheduler"]["searcher"]["space"]["lr"].append(2), True),
        (lambda s: s.clear(), True),
    ],
)
def test_a_setting_unknown_when_a_study_was_recorded_does_not_keep_it_from_being_resumed(tmp_path, change, refused):
    StudyLog(tmp_path / "kb.db", "one", RECORDED).close()
    given = json.loads(json.dumps(RECORDED))
    change(given)
    if refused:
        with pytest.raises(StudyError, match=r"was started with scheduler = .*: resume it as it was"):
            StudyLog(tmp_path / "kb.db", "one", given, resume=True)
    else:
        StudyLog(tmp_path / "kb.db", "one", given, resume=True).close()
