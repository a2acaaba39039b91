"""The log, as its writer keeps it: whole appends, one driver a study."""

import sqlite3
from contextlib import closing

import pytest

from tests.knowledge.studies import a_study
from workbench.core.errors import DatabaseError, InvalidInput, StudyError
from workbench.core.protocols import Event, Kind
from workbench.knowledge import KnowledgeBase, LogHeld, StudyLog, driver_of, schema
from workbench.knowledge.lock import lock_path
from workbench.knowledge.writer import transaction


def test_what_is_appended_is_read_back_in_order_by_a_viewer_meanwhile(db) -> None:
    log = StudyLog(db, "one", {"seed": 0})
    with KnowledgeBase(db) as kb:
        for event in a_study():
            log.append([event])
        log.append([Event(Kind.PROGRESS, 9.0, 0, 1, 0, {"metrics": {"pps": 3.0, "nan": float("nan")}})])
        study = kb["one"]
        assert study.events() == a_study()
        metrics = study.metrics()
        assert metrics[["trial", "name", "value"]].to_numpy().tolist() == [
            [0, "score", 5.0],
            [0, "frames", 40.0],
            [1, "score", 1.0],
            [0, "score", 4.0],
            [0, "pps", 3.0],
        ]
        assert study.metrics(after=4)["name"].tolist() == ["pps"]
        assert study.metrics(names=["frames", "pps"])["value"].tolist() == [40.0, 3.0]
        events, seen = study.events_since()
        assert events == a_study()
        assert study.events_since(seen) == ([], seen)
        log.append([Event(Kind.STUDY_RESUMED, 10.0)])
        assert [e.kind for e in study.events_since(seen)[0]] == [Kind.STUDY_RESUMED]
        assert kb.studies.iloc[0][["name", "state", "trials", "phases", "best_score", "wall_s"]].tolist() == [
            "one",
            "running",
            3,
            3,
            5.0,
            10.0,
        ]
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            kb._connection.execute("DELETE FROM events")
    log.close()


def test_an_append_is_whole_or_not_at_all(db) -> None:
    log = StudyLog(db, "one", {})
    with pytest.raises(TypeError):
        log.append([Event(Kind.STUDY_STARTED, 0.0), Event(Kind.RUN, 0.0, 0, 0, data={"config": object()})])
    with pytest.raises(sqlite3.IntegrityError):
        log.append([Event(Kind.STUDY_STARTED, 0.0), Event(Kind.RUN, None, 0, 0)])  # type: ignore[arg-type]
    assert log.events() == []
    log.append([Event(Kind.STUDY_STARTED, 0.0)])
    assert len(log.events()) == 1
    log.close()


def test_a_file_that_is_damaged_while_it_is_written_to_is_told_in_one_line(db) -> None:
    with closing(StudyLog(db, "one", {})) as log:
        log.append(a_study()[:3])
        with closing(sqlite3.connect(db)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with db.open("r+b") as file:
            file.seek(100)  # behind what tells whose file it is
            file.write(b"\xff" * (db.stat().st_size - 100))
        with pytest.raises(DatabaseError, match=r"kb.db was damaged while it was written to \(.*\): restore a backup"):
            log.append(a_study()[3:5])


def test_two_studies_share_a_file_and_two_drivers_do_not_share_a_study(db) -> None:
    one = StudyLog(db, "one", {})
    two = StudyLog(db, "two", {})
    with pytest.raises(StudyError, match=r"study 'one' is being driven by process .*, this one: .*, 'one'\) looks"):
        StudyLog(db, "one", {}, resume=True)
    lock_path(db, "one").write_text("process 1 on elsewhere since 2026-01-01 00:00:00\n")
    with pytest.raises(StudyError, match=r"by process 1 on elsewhere since .*: stop that driver first"):
        StudyLog(db, "one", {}, resume=True)
    one.close()
    StudyLog(db, "one", {}, resume=True).close()
    two.close()


def test_drivers_of_two_studies_in_one_file_take_turns_append_by_append(db, monkeypatch) -> None:
    monkeypatch.setattr(schema, "_WAIT_S", 0)
    one, two = (StudyLog(db, name, {}) for name in ("one", "two"))
    with transaction(one._connection), pytest.raises(LogHeld, match="held by another process for too long"):
        two.append(a_study())  # begun before the first has written anything
    two.append(a_study())
    assert two.events() == a_study()
    one.close()
    two.close()


def test_the_last_metric_is_the_one_logged_last(db) -> None:
    log = StudyLog(db, "one", {})
    assert log.last_metric_s == 0.0
    log.append([Event(Kind.PROGRESS, at, 0, 0, data={"metrics": {"pps": 1.0}}) for at in (2.0, 5.0)])
    assert log.last_metric_s == 5.0
    log.close()


@pytest.mark.parametrize(
    ("name", "spec", "resume", "says"),
    [
        ("one", {"seed": 0}, False, r"exists .* resume it with start\(resume=True\)"),
        ("two", {"seed": 0}, True, "no study 'two'"),
    ],
)
def test_a_study_is_neither_overwritten_nor_resumed_where_there_is_none(db, name, spec, resume, says) -> None:
    StudyLog(db, "one", {"seed": 0}).close()
    with pytest.raises(StudyError, match=says) as refused:
        StudyLog(db, name, spec, resume=resume)
    assert driver_of(db, name) is None, refused  # though the error, and what it refers to, is there still


def test_to_resume_what_is_not_there_leaves_no_lock(db) -> None:
    StudyLog(db, "one", {}).close()
    with pytest.raises(StudyError, match="no study 'two'"):
        StudyLog(db, "two", resume=True)
    assert not lock_path(db, "two").exists()


@pytest.mark.parametrize(("db", "study", "most"), [(248, "one", 245), (250, "s" * 100, 148)])
def test_a_knowledge_base_is_not_begun_under_a_name_too_long_for_what_stands_beside_it(
    tmp_path, db, study, most
) -> None:
    path = tmp_path / f"{'k' * (db - 3)}.db"
    with pytest.raises(DatabaseError, match=rf"a name of {db} bytes, and at most {most} leave room for what stands"):
        StudyLog(path, study, {})
    assert not list(tmp_path.iterdir())
    log = StudyLog(path.with_name(path.name[db - most :]), study, {})
    log.append([Event(Kind.STUDY_STARTED, 0.0)])
    log.close()


@pytest.mark.parametrize(
    ("trainable", "says"), [({"at": {(0, 1): 2}}, "trainable.at .keys must be str"), ({"n": {1}}, "trainable.n .Obj")]
)
def test_what_json_does_not_hold_of_a_study_is_told_by_its_name(tmp_path, trainable, says) -> None:
    with pytest.raises(InvalidInput, match=f"study 'one' cannot be recorded, for JSON does not hold its {says}"):
        StudyLog(tmp_path / "none.db", "one", {"seed": 0, "trainable": trainable})
    assert not (tmp_path / "none.db").exists()
