"""A knowledge base from somebody else, or broken: one line whoever opens it, and nothing false is shown."""

import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest
import torch

from tests.knowledge.studies import a_study
from tests.support import FROM_HERE, Deterministic
from workbench.algos.replay import Replay
from workbench.algos.rl.checkpoint import CHECKPOINT, load_agent, read_checkpoint
from workbench.analysis import failure_lines
from workbench.core.errors import InvalidInput, StudyError, WorkbenchError
from workbench.core.protocols import Event, Kind
from workbench.knowledge import KnowledgeBase, StudyLog, backup, check, frames_of
from workbench.study.attached import AttachedStudy
from workbench.study.file import recorded_study
from workbench.study.results import Results
from workbench.study.study import Study

SPEC = {
    "scheduler": {
        "kind": "full",
        "searcher": {"kind": "random", "space": {"lr": {"uniform": [0, 1]}}, "seed": 0},
        "n_trials": 2,
        "n_phases": 2,
    },
    "trainable": {"kind": "quadratic"},
    "seed": 0,
}


@pytest.fixture
def db(tmp_path):
    path = tmp_path / "kb.db"
    log = StudyLog(path, "one", SPEC)
    log.append(a_study())
    log.close()
    return path


def spoil(db: Path, *statements: str) -> None:
    with closing(sqlite3.connect(db)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def looks(db: Path) -> dict:
    return {
        "the list of studies": lambda: KnowledgeBase(db).studies,
        "a study's frames": lambda: KnowledgeBase(db)["one"].frames(),
        "an attached study": lambda: AttachedStudy(db, "one").progress,
        "its results": lambda: Results.open(db, "one").summary,
        "a resumption": lambda: StudyLog(db, "one", SPEC, resume=True).events(),
    }


DEEP = "[" * 100_000 + "]" * 100_000
EVENT = "INSERT INTO events (study, at_s, kind, trial, phase, slot, data) VALUES (1, 9, "
SET = "UPDATE events SET data = '{}' WHERE kind = '{}'"
NONSENSE = {
    "deep JSON": f"UPDATE events SET data = '{DEEP}' WHERE seq = 3",
    "a hold without a span": EVENT + """'decision', 77, 0, 0, '{"verdict": "hold"}')""",
    "a decision without a trial": EVENT + """'decision', NULL, 0, 0, '{"verdict": "stop"}')""",
    "a run without a trial": EVENT + """'run', NULL, 0, 0, '{"config": {}, "parent": null, "seed": 0}')""",
    "a score that is text": SET.format('{"score": "1e9", "checkpoint": ""}', "phase_ended"),
    "a phase of 10^11": "UPDATE events SET phase = 100000000000 WHERE kind = 'phase_started'",
    "a negative trial": "UPDATE events SET trial = -1 WHERE kind = 'run'",
    "data that is a list": "UPDATE events SET data = '[]' WHERE seq = 1",
    "an unknown kind": "UPDATE events SET kind = 'party' WHERE seq = 2",
    "a time without end": "UPDATE events SET at_s = 9e999 WHERE seq = 2",
    "a metric that is a table": SET.format('{"score": 1, "metrics": {"a": {}}}', "phase_ended"),
    "a configuration that is text": SET.format('{"config": "x", "parent": null, "seed": 0}', "run"),
    "a size that is text": """UPDATE events SET data = '{"size": "large"}' WHERE seq = 1""",
}  # fmt: skip


@pytest.mark.parametrize("what", NONSENSE)
def test_events_that_no_driver_writes_are_one_line_for_every_viewer(db, what) -> None:
    spoil(db, NONSENSE[what])
    told = {}
    for name, look in looks(db).items():
        try:
            look()
        except WorkbenchError as err:
            told[name] = str(err)
    assert "a study's frames" in told
    assert all("\n" not in line and len(line) < 500 for line in told.values())
    assert check(db) != []


SCHEMES = {
    "an endless view": [
        "ALTER TABLE metrics RENAME TO m",
        "CREATE VIEW metrics AS WITH RECURSIVE n(seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM n) "
        "SELECT seq, 1 study, 0 at_s, 0 trial, 0 phase, 1 name, 0 value FROM n",
    ],
    "a trigger that rewrites scores": [
        "CREATE TRIGGER better AFTER INSERT ON events BEGIN "
        "UPDATE events SET data = replace(data, '0.5', '9.5') WHERE seq = NEW.seq; END"
    ],
    "a trigger called as SQLite calls its own": [
        "CREATE TRIGGER better AFTER INSERT ON events BEGIN SELECT 1; END",
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET name = 'sqlite_better', sql = replace(sql, 'better', 'sqlite_better') "
        "WHERE name = 'better'",
    ],
    "a column that is computed": ["ALTER TABLE studies ADD COLUMN more TEXT AS (upper(name))"],
    "a table of its own": ["CREATE TABLE more (a)"],
    "an index less": ["DROP INDEX metrics_by_name"],
}


@pytest.mark.parametrize("what", SCHEMES)
def test_a_file_with_another_schema_is_refused_by_all(db, what) -> None:
    spoil(db, *SCHEMES[what])
    for look in (*looks(db).values(), lambda: check(db), lambda: backup(db, db.with_name("copy.db"))):
        with pytest.raises(WorkbenchError, match=r"(has, beyond|lacks, of) what a workbench makes, the "):
            look()


def test_the_schemas_own_functions_are_not_trusted(db) -> None:
    with KnowledgeBase(db) as kb:
        assert kb._connection.execute("PRAGMA trusted_schema").fetchone() == (0,)
        assert kb._connection.execute("PRAGMA cell_size_check").fetchone() == (1,)


NAMES = [
    "/etc",
    "../outside",
    "..",
    ".hidden",
    "a\x1b[2Jb",
    "a\x9bb",
    "",
    "a\nb",
    "left\u202eright",
    "x" * 101,
    "a\\b",
    "字" * 67,
]


as_root = pytest.mark.skipif(os.getuid() != 0, reason="becoming another user needs root")


@pytest.mark.parametrize("name", NAMES)
def test_a_study_cannot_be_called_like_a_path_or_a_command_to_the_terminal(db, tmp_path, name) -> None:
    spoil(db, "UPDATE studies SET name = " + "char(" + ", ".join(str(ord(c)) for c in name) + ")")
    for look in (lambda: list(KnowledgeBase(db)), lambda: KnowledgeBase(db).studies, lambda: check(db)):
        with pytest.raises(WorkbenchError, match="as no driver does: do not trust it") as refused:
            look()
        assert str(refused.value).isprintable()
    with pytest.raises(WorkbenchError):
        KnowledgeBase(db)[name]
    with pytest.raises(InvalidInput, match="a study's name is 1 to 100 printable characters"):
        Study(name, None, Deterministic, db=tmp_path / "other.db")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="a study's name is 1 to 100 printable characters"):
        StudyLog(tmp_path / "other.db", name, {})
    with pytest.raises(InvalidInput, match="printable characters"):
        Study("half \ud800", None, Deterministic, db=tmp_path / "other.db")  # type: ignore[arg-type]


def test_errors_cannot_command_the_terminal() -> None:
    assert str(StudyError("a\x1b[2J\nb\x9b")) == "a\\x1b[2J b\\x9b"
    trials = pd.DataFrame({"trial": [0], "state": ["failed"], "error": ["ValueError: \x1b]0;owned\x07"]})
    assert all(line.isprintable() for line in failure_lines(trials))


@as_root
def test_a_read_only_mount_can_be_read(db) -> None:
    """As nobody, for root may write everywhere; in a folder of its own, for pytest's are closed to others."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    try:
        _read_as_nobody(Path(shutil.copy(db, folder)))
    finally:
        shutil.rmtree(folder)


@as_root
def test_a_read_only_mount_of_a_file_that_was_being_written_shows_nothing_old(db) -> None:
    with tempfile.TemporaryDirectory() as place, closing(StudyLog(db, "one", SPEC, resume=True)) as log:
        log.append([Event(Kind.STUDY_RESUMED, 10.0)])
        Path(place).chmod(0o755)
        for end in ("", "-wal"):  # what was logged last stands in the second
            Path(shutil.copy(f"{db}{end}", place)).chmod(0o644)
        os.seteuid(65534)
        try:
            with pytest.raises(WorkbenchError), KnowledgeBase(Path(place, db.name)) as kb:
                kb["one"].events()
        finally:
            os.seteuid(0)


def _read_as_nobody(db: Path) -> None:
    db.chmod(0o644)
    script = f"""
import os, shutil
from workbench.knowledge import KnowledgeBase
shutil.copy({str(db)!r}, {str(db) + "-copy"!r})
with KnowledgeBase({str(db) + "-copy"!r}) as kb:  # imports what it needs while it may
    print(list(kb), len(kb["one"].events()))
os.setgid(65534); os.setuid(65534)
with KnowledgeBase({str(db)!r}) as kb:
    print(list(kb), len(kb["one"].events()))
"""
    done = subprocess.run(
        [sys.executable, "-B", "-c", script], capture_output=True, text=True, env={**os.environ, **FROM_HERE}
    )
    assert done.stdout.splitlines() == [f"['one'] {len(a_study())}"] * 2, done.stderr


def test_a_schedule_to_replay_is_a_file_of_modest_size(db, tmp_path) -> None:
    spoil(
        db,
        'UPDATE studies SET spec = replace(spec, \'"kind":"quadratic"\', \'"kind":"replay","schedule":"/dev/zero"\')',
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InvalidInput, match="cannot read the schedule /dev/zero: it is no file of 16 MiB at most"):
        recorded_study(db, "one")
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InvalidInput, match="it is no file of 16 MiB at most"):
        Replay(str(tmp_path / "large.json"))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 18  # KiB


WHOLE = {"game": "Pong", "network": "small", "rules": {}, "seed": 0, "steps": 1, "began_at": 0, "updates": 1,
         "generators": [], "kept": {}, "episodes": {"finished": 1, "returns": [1.0], "lengths": [1]}}  # fmt: skip
COUNTERS = [
    [], None, {**WHOLE, "steps": "many"}, {**WHOLE, "seed": None}, {**WHOLE, "updates": [1]}, {**WHOLE, "game": 5},
    {**WHOLE, "rules": []}, {**WHOLE, "episodes": {"finished": "x"}}, {**WHOLE, "generators": {}},
    {**WHOLE, "episodes": {"finished": 1, "returns": ["x"], "lengths": [1]}},
    {**WHOLE, "episodes": {"finished": 1, "returns": [1.0]}},
    *({name: value for name, value in WHOLE.items() if name != lacking} for lacking in WHOLE),
]  # fmt: skip


@pytest.mark.parametrize("counters", COUNTERS, ids=str)
def test_a_checkpoint_whose_counters_are_of_other_types_or_missing_is_refused_in_one_line(tmp_path, counters) -> None:
    torch.save({"model": {}, "optimizer": {}, "counters": json.dumps(counters)}, tmp_path / CHECKPOINT)
    for read in (read_checkpoint, load_agent):
        with pytest.raises(InvalidInput, match="cannot be read") as refused:
            read(tmp_path)
        assert "\n" not in str(refused.value)
    torch.save({"model": {}, "optimizer": {}, "counters": json.dumps(WHOLE)}, tmp_path / CHECKPOINT)
    assert read_checkpoint(tmp_path)["counters"] == WHOLE


def test_words_that_a_sheet_would_run_are_exported_as_words(tmp_path) -> None:
    def spoiled(event: Event) -> Event:
        if event.kind is not Kind.RUN:
            return event
        config = {
            **event.data["config"],
            "=1+1": "=HYPERLINK(1)",
            "sign": "-1",
            "tab": "\t=1",
            "at": "@a",
            "number": -1.5,
        }
        return Event(event.kind, event.at, event.trial, event.phase, event.slot, {**event.data, "config": config})

    frames_of([spoiled(event) for event in a_study()]).export(tmp_path)
    table = pd.read_csv(tmp_path / "trials.csv")
    assert set(table["'=1+1"]) == {"'=HYPERLINK(1)"}
    assert [set(table[name]) for name in ("sign", "tab", "at")] == [{"'-1"}, {"'\t=1"}, {"'@a"}]
    assert set(table["number"]) == {-1.5}
