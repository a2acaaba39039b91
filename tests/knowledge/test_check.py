import os
import shutil
import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.knowledge.studies import RUN, a_study
from workbench.core.errors import DatabaseError, InvalidInput
from workbench.core.protocols import Event, Kind
from workbench.knowledge import KnowledgeBase, StudyLog, backup, check, repair, schema
from workbench.knowledge.check import out_of_order


def write(db, name, events) -> None:
    log = StudyLog(db, name, {})
    log.append(events)
    log.close()


def test_a_whole_study_has_nothing_wrong(db) -> None:
    write(db, "one", a_study())
    assert check(db) == []


def test_a_study_that_is_being_driven_has_nothing_wrong(db) -> None:
    log = StudyLog(db, "one", {})
    log.append(a_study()[:9])
    assert check(db) == []
    log.close()


def test_a_driver_that_died_is_found_and_mended(db) -> None:
    write(db, "one", a_study()[:9])
    (found,) = check(db)
    assert (found.study, found.repairable) == ("one", True)
    assert repair(db) == [found]
    assert check(db) == []
    with KnowledgeBase(db) as kb:
        assert kb["one"].frames().state == "interrupted"
        assert kb["one"].events()[:-1] == a_study()[:9]


def test_a_driver_that_died_while_it_only_confirmed_leaves_the_end_of_the_search(db) -> None:
    data = {**RUN, "by": "person", "clone_of": 0, "own_phases": 1, "confirms": True, "candidate": 0}
    fresh = [Event(Kind.RUN, 9.0, 3, 0, data=data), Event(Kind.PHASE_STARTED, 9.0, 3, 0, 0)]
    over = [*a_study()[:-1], Event(Kind.STUDY_ENDED, 9.0, data={"why": "its time is up"})]
    confirming, searching = (Event(Kind.STUDY_RESUMED, 9.0, data=data) for data in ({"confirms": True}, {}))
    for name, driven, states in (
        ("waits for its cluster", [confirming], ["interrupted", "ended"]),
        ("confirms", [confirming, *fresh], ["interrupted", "ended"]),
        ("searches", [searching, *fresh], ["interrupted"]),
    ):
        write(db, name, [*over, *driven])
        assert len(repair(db)) == 1
        with KnowledgeBase(db) as kb:
            marks = kb[name].events()[len(over) + len(driven) :]
            assert kb[name].frames().why_over == ("its time is up" if "ended" in states else "")
        assert [(mark.kind.removeprefix("study_"), mark.at) for mark in marks] == [(state, 9.0) for state in states]
        assert "its driver had died" in marks[0].data["error"]


def test_a_study_that_ends_while_it_is_looked_at_stays_as_it_ended(db, monkeypatch) -> None:
    driver = StudyLog(db, "one", {})
    driver.append(a_study()[:9])

    looks = []

    def ends(*_: object) -> None:
        looks.append(1)
        if len(looks) == 2:  # after its events were read
            driver.append([Event(Kind.STUDY_ENDED, 99.0)])
            driver.close()

    monkeypatch.setitem(check.__globals__, "driver_of", ends)
    assert repair(db) == []
    with KnowledgeBase(db) as kb:
        assert kb["one"].frames().state == "ended"


def test_a_study_that_ends_while_its_events_are_read_has_not_died(db, monkeypatch) -> None:
    driver = StudyLog(db, "one", {})
    driver.append(a_study()[:9])

    def ends(_: object) -> list[str]:
        driver.append([Event(Kind.STUDY_ENDED, 99.0)])
        driver.close()
        return []

    monkeypatch.setitem(check.__globals__, "out_of_order", ends)
    assert check(db) == []


def test_a_file_whose_making_was_interrupted_is_told_and_made(db) -> None:
    with closing(sqlite3.connect(db)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")  # the first thing that making one does
    with pytest.raises(DatabaseError, match=r"the making of .* was interrupted: run workbench repair"):
        check(db)
    assert [str(f) for f in repair(db)] == [f"the making of {db} was interrupted (repair mends this)"]
    assert check(db) == []
    with KnowledgeBase(db) as kb:
        assert list(kb) == []


def test_metrics_that_belong_to_nothing_are_found_and_removed(db) -> None:
    write(db, "one", a_study())
    with sqlite3.connect(db) as connection:
        connection.execute("INSERT INTO metrics (study, at_s, trial, phase, name, value) VALUES (1, 0, 99, 0, 1, 0)")
    (found,) = check(db)
    assert str(found) == "1 metric of no study or trial (repair mends this)"
    repair(db)
    assert check(db) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda e: [*e[:12], e[11], *e[12:]], "was not the phase due, 1"),  # a phase that ended twice
        (lambda e: e[:3] + e[4:], "never run"),
        (lambda e: [*e[:-1], Event(Kind.PHASE_STARTED, 9.0, 1, 1, 1), e[-1]], "after the trial was over"),
        (lambda e: [*e, Event(Kind.STUDY_ENDED, 1.0)], "back in time"),
        (lambda e: [*e[:3], Event(Kind.RUN, 0.0, 5, 1, data={"config": {}, "parent": 4, "seed": 0}), *e[3:]], "parent"),
        (
            lambda e: [*e[:6], *e[7:]],
            "event 12 (phase_ended, trial 1, phase 0) was not the phase due, 0",
        ),  # never begun
        (
            lambda e: [*e[:16], Event(Kind.RUN, 6.0, 0, 0, data={**RUN, "parent": 0}), *e[16:]],
            "was not the phase due, 1",
        ),
    ],
)
def test_every_break_of_the_order_is_named(change, says) -> None:
    assert any(says in line for line in out_of_order(change(a_study())))


def test_what_befalls_other_trials_and_slots_may_be_logged_a_little_late() -> None:
    late = [Event(Kind.SLOT_JOINED, 3.5, slot=2, data={"node": "c"}), Event(Kind.PHASE_STARTED, 4.5, 1, 0, 1)]
    assert list(out_of_order([*a_study()[:6], Event(Kind.INTERVENTION, 5.0, data={"accepted": False}), *late])) == []


def test_a_damaged_study_hides_nothing_of_the_next(db) -> None:
    write(db, "one", a_study())
    write(db, "two", a_study()[:9])
    with closing(sqlite3.connect(db)) as connection, connection:
        connection.execute("UPDATE events SET kind = 'party' WHERE seq = 2")
    assert [(found.study, found.repairable) for found in check(db)] == [("one", False), ("two", True)]


def test_a_damaged_file_is_found(db) -> None:
    write(db, "one", a_study() * 1)
    with sqlite3.connect(db) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        page = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'events_of_study'").fetchone()[0]
    raw = bytearray(db.read_bytes())
    raw[(page - 1) * 4096 + 100 : (page - 1) * 4096 + 300] = b"\xff" * 200
    raw[(page - 1) * 4096 + 3 : (page - 1) * 4096 + 5] = b"\x00\x00"  # the index page claims to hold no cell
    db.write_bytes(bytes(raw))
    assert any("integrity" in str(finding) for finding in check(db))


def test_a_backup_taken_while_the_log_grows_is_whole(db, tmp_path) -> None:
    log = StudyLog(db, "one", {})
    log.append(a_study()[:9])
    done = threading.Event()

    def grow() -> None:
        while not done.is_set():
            log.append([Event(Kind.PROGRESS, 2.0, 0, 0, 0, {"metrics": {"pps": 1.0}})])

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        copies = [backup(db, tmp_path / f"copy-{n}.db") for n in range(5)]
    finally:
        done.set()
        writer.join()
    log.close()
    for copy in copies:
        with KnowledgeBase(copy) as kb:
            assert kb["one"].events() == a_study()[:9]
    with pytest.raises(InvalidInput, match="exists"):
        backup(db, copies[0])
    assert not list(tmp_path.glob(".*part"))


def test_a_study_goes_on_in_a_backup_beside_whoever_reads_it(db, tmp_path, monkeypatch) -> None:
    write(db, "one", a_study()[:9])
    copy = backup(db, tmp_path / "copy.db")
    assert not list(tmp_path.glob("copy.db-*"))
    monkeypatch.setattr(schema, "_WAIT_S", 0)
    with closing(StudyLog(copy, "one", {}, resume=True)) as log, KnowledgeBase(copy) as kb:
        kb._connection.execute("BEGIN")  # as a viewer does for as long as it reads
        assert kb["one"].events() == a_study()[:9]
        log.append(a_study()[9:])
        kb._connection.execute("COMMIT")
        assert kb["one"].events() == a_study()


def test_a_write_that_was_interrupted_is_told_and_taken_back(db, tmp_path) -> None:
    write(db, "one", a_study()[:9])
    torn = tmp_path / "torn.db"
    with closing(sqlite3.connect(backup(db, tmp_path / "copy.db"), isolation_level=None)) as driver:
        for statement in ("PRAGMA cache_size = 1", "PRAGMA cache_spill = 1", "BEGIN"):
            driver.execute(statement)
        driver.execute("UPDATE events SET data = ?", ("x" * 20_000,))  # too much to be kept in memory
        for end in ("", "-journal"):
            shutil.copy(tmp_path / f"copy.db{end}", f"{torn}{end}")
        driver.execute("ROLLBACK")
    for look in (KnowledgeBase, check):
        with pytest.raises(DatabaseError, match=f"a write to {torn} was interrupted: run workbench repair"):
            look(torn)
    assert [str(found) for found in repair(torn)] == [
        f"a write to {torn} was interrupted (repair mends this)",
        "study 'one': its driver died without a word: resume it (repair mends this)",
    ]
    with KnowledgeBase(torn) as kb:
        assert kb["one"].events()[:-1] == a_study()[:9]


def test_repair_marks_the_end_of_a_driver_that_died_at_the_last_that_it_logged(db) -> None:
    write(db, "one", [*a_study()[:9], Event(Kind.PROGRESS, 7.5, 0, 0, 0, {"metrics": {"pps": 1.0}})])
    repair(db)
    with KnowledgeBase(db) as kb:
        assert kb["one"].events()[-1].at == 7.5


def test_a_backup_whose_checkpoints_would_be_the_original_s_is_refused(db, tmp_path) -> None:
    write(db, "one", a_study())
    (tmp_path / "link").symlink_to(db.parent)
    for target in (db.with_suffix(".sqlite"), db.with_suffix(""), tmp_path / "link" / f"{db.stem}.bak"):
        with pytest.raises(InvalidInput, match=f"share the checkpoints in {db.stem}.checkpoints with {db.name}"):
            backup(db, target)
        assert not target.exists()
    backup(db, tmp_path / "elsewhere" / db.name)


@pytest.mark.parametrize("target", ["", ".", "/"])  # the first as of a shell's variable that is not set
def test_a_backup_to_a_folder_without_a_name_is_refused(db, target) -> None:
    write(db, "one", a_study())
    with pytest.raises(InvalidInput, match=r"^[./] exists: choose another name"):
        backup(db, target)


def test_a_backup_takes_up_nothing_that_another_database_left(db, tmp_path) -> None:
    write(db, "one", a_study())
    target = tmp_path / "copies" / "copy.db"
    write(target, "other", a_study())
    with closing(sqlite3.connect(target)) as reader:  # the last to close it would clear up
        reader.execute("SELECT * FROM sqlite_master").fetchall()
        write(target, "another", a_study())
        left = shutil.copy(f"{target}-wal", tmp_path / "wal")
    target.unlink()
    shutil.copy(left, f"{target}-wal")
    with pytest.raises(InvalidInput, match=r"copy\.db-wal is left of another database: delete it"):
        backup(db, target)
    Path(f"{target}-wal").rename(f"{target}-journal")
    with pytest.raises(InvalidInput, match=r"copy\.db-journal is left of another database: delete it"):
        backup(db, target)
    Path(f"{target}-journal").unlink()
    target.with_name(".copy.db.part").write_text("left of a backup that was killed")
    with KnowledgeBase(backup(db, target)) as kb:
        assert list(kb) == ["one"]


def test_of_two_backups_to_one_place_the_first_has_it(db, tmp_path, monkeypatch) -> None:
    write(db, "one", a_study())
    write(other := tmp_path / "other.db", "two", a_study())
    target = tmp_path / "copies" / "copy.db"

    def meanwhile(part: Path) -> sqlite3.Connection:
        monkeypatch.undo()
        backup(other, target)
        return sqlite3.connect(part)

    monkeypatch.setitem(backup.__globals__, "sqlite3", SimpleNamespace(connect=meanwhile, Error=sqlite3.Error))
    with pytest.raises(InvalidInput, match=r"copy\.db exists: choose another name"):
        backup(db, target)
    assert list(target.parent.iterdir()) == [target]
    with KnowledgeBase(target) as kb:
        assert list(kb) == ["two"]


def test_a_backup_is_nobody_else_s_whatever_the_umask(db, tmp_path) -> None:
    write(db, "one", a_study())
    before = os.umask(0o022)
    try:
        assert stat.S_IMODE(backup(db, tmp_path / "folder" / "copy.db").stat().st_mode) == 0o600
    finally:
        os.umask(before)
    assert [p.name for p in (tmp_path / "folder").iterdir()] == ["copy.db"]


def test_a_backup_that_cannot_be_written_is_one_line(db, tmp_path, monkeypatch) -> None:
    write(db, "one", a_study())
    (tmp_path / "file").touch()

    def full(_: Path) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    def refused(target: Path) -> None:
        with pytest.raises(DatabaseError, match=rf"{db} cannot be copied to {target} \(.+\): choose another place"):
            backup(db, target)
        assert not list(tmp_path.glob(".*.part"))

    refused(tmp_path / "file" / "copy.db")
    refused(tmp_path / f"{'long' * 70}.db")
    monkeypatch.setitem(backup.__globals__, "sqlite3", SimpleNamespace(connect=full, Error=sqlite3.Error))
    refused(tmp_path / "full.db")
