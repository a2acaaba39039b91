"""What is read from a knowledge base, and what is refused as none."""

import json
import os
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from tests.events import write_log
from tests.knowledge.studies import RUN, a_study
from workbench.core.errors import DatabaseError, StudyError
from workbench.core.protocols import Event, Kind
from workbench.knowledge import KnowledgeBase, RecordedStudy, StudyLog, backup, carry, delete, names_taken, schema
from workbench.knowledge.rows import check_event
from workbench.knowledge.schema import VERSION


def test_an_unknown_study_is_named_with_its_neighbours(db) -> None:
    StudyLog(db, "first-pong", {}).close()
    with KnowledgeBase(db) as kb, pytest.raises(StudyError, match="did you mean 'first-pong'"):
        kb["frist-pong"]
    with KnowledgeBase(db) as kb, pytest.raises(StudyError, match="unknown study 0; known: first-pong"):
        kb[0]


def test_no_name_is_taken_in_a_knowledge_base_that_is_only_being_made(db) -> None:
    assert names_taken(db) == set()
    db.touch()  # by a driver that has come no further, or was killed there
    assert names_taken(db) == set()
    StudyLog(db, "one", {}).close()
    assert names_taken(db) == {"one"}


def test_a_study_that_nobody_drives_any_more_is_not_called_running(db) -> None:
    log = StudyLog(db, "one", {})
    log.append([Event(Kind.STUDY_STARTED, 0.0)])
    with KnowledgeBase(db) as kb:
        assert kb["one"].frames().state == "running"
        log.append([Event(Kind.INTERVENTION, 1.0, data={"action": "pause study", "accepted": True})])
        assert kb["one"].frames().state == "paused"
        log.close()  # as the operating system does when its driver is killed
        assert kb["one"].frames().state == kb.studies["state"].item() == "abandoned"
        StudyLog(db, "one", {}, resume=True).append([Event(Kind.STUDY_ENDED, 2.0)])
        assert kb["one"].frames().state == "ended"


def test_a_study_that_ends_or_begins_while_it_is_read_was_not_abandoned(db, monkeypatch) -> None:
    log, read, happens = StudyLog(db, "one", {}), RecordedStudy.metrics, []

    def meanwhile(study: RecordedStudy) -> object:
        happens.pop()()
        return read(study)

    monkeypatch.setattr(RecordedStudy, "metrics", meanwhile)
    log.append([Event(Kind.STUDY_STARTED, 0.0)])
    with KnowledgeBase(db) as kb:
        happens.append(log.close)
        assert kb["one"].frames().state == "running"
        happens.append(lambda: happens.append(StudyLog(db, "one", {}, resume=True)))
        assert kb["one"].frames().state == "running"
    happens.pop().close()


def restored(db, copy) -> None:
    """Put an older copy in the place of the file."""
    os.replace(copy, db)


def copied_over(db, copy) -> None:
    """Write an older copy into the file."""
    db.write_bytes(copy.read_bytes())


def unpacked_again(db, copy) -> None:
    delete(db, "one")
    carry(copy, "one", db)


@pytest.mark.parametrize("disturb", [restored, copied_over, unpacked_again])
def test_events_are_those_of_the_study_that_was_seen(db, tmp_path, disturb) -> None:
    write_log(db, "one", a_study()[:5])
    copy = backup(db, tmp_path / "copies" / "copy.db")
    write_log(db, "one", a_study()[5:], resume=True)
    stays_open = disturb is not copied_over  # SQLite would wait for who reads
    with KnowledgeBase(db) as kb:
        study = kb["one"]
        events, seen = study.events_since()
        assert (len(events), seen.at) == (len(a_study()), 9.0)
        if not stays_open:
            kb.close()
        disturb(db, copy)
        write_log(db, "one", [Event(Kind.STUDY_RESUMED, 50.0 + n) for n in range(30)], resume=True)
        with KnowledgeBase(db) as other:
            for one in [other["one"], study][: 1 + stays_open]:
                with pytest.raises(StudyError, match="'one' is not what was opened: it was deleted from"):
                    one.events_since(seen)
            assert len(other["one"].events_since()[0]) == 35


def test_points_are_those_of_the_study_and_tell_the_names_asked_for(db) -> None:
    logs = [StudyLog(db, name, {}) for name in ("one", "other")]
    for k in range(4):  # their rows lie among each other
        for n, log in enumerate(logs):
            told = {"score": k + 10.0 * n, "frames": 100.0 * k}
            log.append([Event(Kind.PROGRESS, float(k), 3, 1, data={"metrics": told})])
    with KnowledgeBase(db) as kb:
        points, last, more = kb["other"].points(("score",), most=5)
        assert (points["name"].tolist(), last, more) == ([0, -1, 0], 7, True)  # from its first number, 3, five on
        rest, _, more = kb["other"].points(("score",), last)
        assert not more
        told = np.concatenate([points, rest])
        assert told["value"][told["name"] == 0].tolist() == [10.0, 11.0, 12.0, 13.0]
        both, *_ = kb["one"].points(("frames", "score"))
    told = [(row["name"], row["at"], row["value"]) for row in both if row["trial"] == 3 and row["phase"] == 1]
    assert sorted(told) == [*((0, k, 100.0 * k) for k in range(4)), *((1, k, k) for k in range(4))]
    for log in logs:
        log.close()


def test_points_leave_out_what_no_driver_writes_and_tell_late_phases_apart(db) -> None:
    log = StudyLog(db, "one", {})
    log.append([Event(Kind.PROGRESS, 1.0, 3, 70_000, data={"metrics": {"score": 1.0}})])
    log.close()
    insert = "INSERT INTO metrics (study, at_s, trial, phase, name, value) VALUES (1, 0, ?, ?, 1, ?)"
    with closing(sqlite3.connect(db)) as connection, connection:
        connection.executemany(insert, [(3, 0, None), (1 << 23, 0, 1.0), (3, 1 << 20, 1.0), (-1, 0, 1.0)])
    with KnowledgeBase(db) as kb:
        points, *_ = kb["one"].points(("score",))
    assert points.tolist() == [(3, 70_000, 1.0, 0, 1.0)]


def test_a_slot_of_no_number_of_workers_is_refused() -> None:
    check_event(Event(Kind.SLOT_JOINED, 0.0, slot=0, data={"node": "a+b", "workers": 2}))
    with pytest.raises(ValueError, match="slot 0 of 'two' workers"):
        check_event(Event(Kind.SLOT_JOINED, 0.0, slot=0, data={"node": "a+b", "workers": "two"}))


def test_events_of_some_kinds_alone_are_read(db) -> None:
    log = StudyLog(db, "one", {})
    log.append(a_study())
    log.close()
    with KnowledgeBase(db) as kb:
        assert kb["one"].events(Kind.RUN, Kind.STUDY_ENDED) == [
            event for event in a_study() if event.kind in (Kind.RUN, Kind.STUDY_ENDED)
        ]


def test_the_best_of_a_study_is_that_of_its_search_by_its_own_aim(db) -> None:
    log = StudyLog(db, "one", {})
    log.append([Event(Kind.STUDY_STARTED, 0.0, data={"aim": {"mode": "min"}})])
    for trial, score in enumerate((5.0, 4.0, 3.0)):
        run = {**RUN, "candidate": 1, "confirms": True} if trial == 2 else RUN
        ended = {"score": score, "metrics": {}, "checkpoint": None}
        log.append([Event(Kind.RUN, 0.0, trial, 0, data=run), Event(Kind.PHASE_STARTED, 0.0, trial, 0, 0)])
        log.append([Event(Kind.PHASE_ENDED, 1.0, trial, 0, 0, ended)])
    log.close()
    with KnowledgeBase(db) as kb:
        (row,) = kb.studies.to_dict("records")
        assert (row["best_score"], row["created"].timestamp()) == (4.0, pytest.approx(kb["one"].created_unix))


def test_a_missing_corrupt_foreign_or_newer_database_is_refused(tmp_path) -> None:
    with pytest.raises(DatabaseError, match="no knowledge base at"):
        KnowledgeBase(tmp_path / "missing.db")

    corrupt = tmp_path / "corrupt.db"
    corrupt.write_bytes(b"SQLite format 3\0" + b"\x99" * 5000)
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE t (x)")
    empty = tmp_path / "empty.db"
    with sqlite3.connect(empty) as connection:
        connection.execute("PRAGMA user_version = 5")  # another program's, which has put nothing in it yet
    newer = tmp_path / "newer.db"
    StudyLog(newer, "one", {}).close()
    with sqlite3.connect(newer) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")

    for path, says in (
        (corrupt, "cannot be read"),
        (foreign, "not a knowledge base"),
        (empty, "not a knowledge base"),
        (newer, "upgrade the workbench"),
    ):
        before = path.read_bytes()
        with pytest.raises(DatabaseError, match=says):
            KnowledgeBase(path)
        with pytest.raises(DatabaseError, match=says):
            StudyLog(path, "two", {})
        assert path.read_bytes() == before


def test_a_database_that_another_process_holds_is_not_called_damaged(db, monkeypatch) -> None:
    StudyLog(db, "one", {}).close()
    monkeypatch.setattr(schema, "_WAIT_S", 0)
    with closing(sqlite3.connect(db)) as greedy:
        greedy.execute("PRAGMA locking_mode = EXCLUSIVE")
        greedy.execute("BEGIN EXCLUSIVE")
        for open_it in (lambda: KnowledgeBase(db), lambda: StudyLog(db, "two", {})):
            with pytest.raises(DatabaseError, match=r"held by another process \(database is locked\): end that"):
                open_it()


def test_specs_are_kept_as_json(db) -> None:
    spec = {"scheduler": {"kind": "hypertrick", "n_trials": 3}, "name": "ünï"}
    StudyLog(db, "one", spec).close()
    with KnowledgeBase(db) as kb:
        assert kb["one"].spec == json.loads(json.dumps(spec))
