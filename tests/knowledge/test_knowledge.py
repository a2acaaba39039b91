import json
import sqlite3
from contextlib import closing

import pandas as pd
import pytest

from workbench.core.errors import DatabaseError, StudyError
from workbench.core.protocols import Event, Kind
from workbench.knowledge import Frames, KnowledgeBase, StudyLog, frames_of, schema
from workbench.knowledge.frames import DECISIONS, METRICS, PHASES, SLOTS, SPANS, TRIALS
from workbench.knowledge.schema import VERSION

RUN = {"config": {"lr": 0.01}, "parent": None, "seed": 7}


def a_study() -> list[Event]:
    """Two slots; trial 0 loses an attempt, is held, goes on and finishes; trial 1 is stopped; trial 2 fails."""
    return [
        Event(Kind.STUDY_STARTED, 0.0),
        Event(Kind.SLOT_JOINED, 0.0, slot=0, data={"node": "a"}),
        Event(Kind.SLOT_JOINED, 0.0, slot=1, data={"node": "b"}),
        Event(Kind.RUN, 0.0, 0, 0, data=RUN),
        Event(Kind.PHASE_STARTED, 0.0, 0, 0, 0),
        Event(Kind.RUN, 0.0, 1, 0, data=RUN),
        Event(Kind.PHASE_STARTED, 0.0, 1, 0, 1),
        Event(Kind.SLOT_LOST, 1.0, slot=0, data={"node": "a"}),
        Event(Kind.PHASE_FAILED, 1.0, 0, 0, 0, {"error": "died"}),
        Event(Kind.SLOT_JOINED, 2.0, slot=0, data={"node": "a"}),
        Event(Kind.PHASE_STARTED, 2.0, 0, 0, 0),
        Event(
            Kind.PHASE_ENDED, 4.0, 0, 0, 0, {"score": 5.0, "metrics": {"score": 5.0, "frames": 40}, "checkpoint": "x"}
        ),
        Event(Kind.DECISION, 4.0, 0, 0, data={"verdict": "hold", "mode": "barrier"}),
        Event(Kind.PHASE_ENDED, 6.0, 1, 0, 1, {"score": 1.0, "metrics": {"score": 1.0}, "checkpoint": "y"}),
        Event(Kind.DECISION, 6.0, 1, 0, data={"verdict": "stop", "mode": "selecting", "rank": 0.0}),
        Event(Kind.DECISION, 6.0, 0, 0, data={"verdict": "continue", "mode": "released"}),
        Event(Kind.PHASE_STARTED, 6.0, 0, 1, 0),
        Event(Kind.RUN, 6.0, 2, 0, data=RUN),
        Event(Kind.PHASE_STARTED, 6.0, 2, 0, 1),
        Event(Kind.TRIAL_FAILED, 7.0, 2, 0, 1, {"error": "diverged"}),
        Event(Kind.DECISION, 7.0, 2, 0, data={"verdict": "stop", "mode": "failed"}),
        Event(Kind.PHASE_ENDED, 9.0, 0, 1, 0, {"score": 4.0, "metrics": {"score": 4.0}, "checkpoint": "z"}),
        Event(Kind.DECISION, 9.0, 0, 1, data={"verdict": "stop", "mode": "finished"}),
        Event(Kind.STUDY_ENDED, 9.0),
    ]


@pytest.fixture
def db(tmp_path):
    return tmp_path / "kb.db"


def test_a_trial_that_is_taken_up_again_keeps_its_parent() -> None:
    child = {**RUN, "parent": 0}
    events = [Event(Kind.RUN, 0.0, 0, 0, data=RUN), Event(Kind.RUN, 1.0, 1, 1, data=child)]
    events += [Event(Kind.RUN, 2.0, t, 2, data={**RUN, "parent": t}) for t in (0, 1)]
    parents = frames_of(events).trials.set_index("trial")["parent"]
    assert pd.isna(parents[0])
    assert parents[1] == 0


def test_frames_of_a_small_study() -> None:
    frames = frames_of(a_study())
    trials = frames.trials.set_index("trial")
    assert trials["state"].to_dict() == {0: "finished", 1: "stopped", 2: "failed"}
    assert trials["phases"].to_dict() == {0: 2, 1: 1, 2: 0}
    assert (trials.loc[0, "last_score"], trials.loc[0, "best_score"]) == (4.0, 5.0)
    assert trials.loc[2, "error"] == "diverged"
    assert frames.hyperparameters == ["lr"]

    phases = frames.phases.set_index(["trial", "phase"])
    assert phases.loc[(0, 0), ["started_s", "ended_s", "wall_s", "retries"]].tolist() == [2.0, 4.0, 2.0, 1]
    assert phases.loc[(0, 0), "frames"] == 40
    assert pd.isna(phases.loc[(2, 0), "ended_s"])

    spans = [
        tuple(row) for row in frames.spans[["slot", "trial", "phase", "started_s", "ended_s", "outcome"]].to_numpy()
    ]
    assert spans == [
        (0, 0, 0, 0.0, 1.0, "lost"),
        (1, 1, 0, 0.0, 6.0, "ended"),
        (0, 0, 0, 2.0, 4.0, "ended"),
        (0, 0, 0, 4.0, 6.0, "held"),
        (0, 0, 1, 6.0, 9.0, "ended"),
        (1, 2, 0, 6.0, 7.0, "lost"),
    ]
    assert frames.slots["lost_s"].fillna(-1).tolist() == [1.0, -1, -1]
    assert (frames.state, frames.wall_s) == ("ended", 9.0)


@pytest.mark.parametrize("events", [[], a_study()])
def test_frames_have_the_documented_columns_full_or_empty(events) -> None:
    frames = frames_of(events)
    for name, columns in {
        "trials": TRIALS,
        "phases": PHASES,
        "spans": SPANS,
        "decisions": DECISIONS,
        "metrics": METRICS,
        "slots": SLOTS,
    }.items():
        assert list(getattr(frames, name).columns)[: len(columns)] == columns
        assert name in (Frames.__doc__ or "")


@pytest.mark.parametrize("cut", range(len(a_study())))
def test_frames_can_be_read_at_any_moment_of_a_study(cut) -> None:
    frames = frames_of(a_study()[:cut])
    assert frames.state == "running"
    assert (frames.spans["outcome"] == "running").sum() <= 2


def test_a_driver_that_died_leaves_no_span_open_once_another_takes_up() -> None:
    events = [*a_study()[:7], Event(Kind.STUDY_RESUMED, 5.0)]
    frames = frames_of(events)
    assert frames.spans["outcome"].tolist() == ["lost", "lost"]
    assert frames.spans["ended_s"].tolist() == [5.0, 5.0]
    assert frames.slots["lost_s"].tolist() == [5.0, 5.0]


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
        events, seq = study.events_since(0)
        assert events == a_study()
        assert study.events_since(seq) == ([], seq)
        log.append([Event(Kind.STUDY_RESUMED, 10.0)])
        assert [e.kind for e in study.events_since(seq)[0]] == [Kind.STUDY_RESUMED]
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


def test_two_studies_share_a_file_and_two_drivers_do_not_share_a_study(db) -> None:
    one = StudyLog(db, "one", {})
    two = StudyLog(db, "two", {})
    with pytest.raises(StudyError, match="study 'one' is being driven by process"):
        StudyLog(db, "one", {}, resume=True)
    one.close()
    StudyLog(db, "one", {}, resume=True).close()
    two.close()


@pytest.mark.parametrize(
    ("name", "spec", "resume", "says"),
    [
        ("one", {"seed": 0}, False, "exists .* resume it with --resume"),
        ("two", {"seed": 0}, True, "no study 'two'"),
        ("one", {"seed": 1}, True, "was started with seed = 0, not 1"),
    ],
)
def test_a_study_is_neither_overwritten_nor_resumed_as_another(db, name, spec, resume, says) -> None:
    StudyLog(db, "one", {"seed": 0}).close()
    with pytest.raises(StudyError, match=says):
        StudyLog(db, name, spec, resume=resume)


def test_an_unknown_study_is_named_with_its_neighbours(db) -> None:
    StudyLog(db, "first-pong", {}).close()
    with KnowledgeBase(db) as kb, pytest.raises(StudyError, match="did you mean 'first-pong'"):
        kb["frist-pong"]


def test_a_missing_corrupt_foreign_or_newer_database_is_refused(tmp_path) -> None:
    with pytest.raises(DatabaseError, match="no knowledge base at"):
        KnowledgeBase(tmp_path / "missing.db")

    corrupt = tmp_path / "corrupt.db"
    corrupt.write_bytes(b"SQLite format 3\0" + b"\x99" * 5000)
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE t (x)")
    newer = tmp_path / "newer.db"
    StudyLog(newer, "one", {}).close()
    with sqlite3.connect(newer) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")

    for path, says in (
        (corrupt, "cannot be read"),
        (foreign, "not a knowledge base"),
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
