import itertools
import json
from datetime import datetime

import pandas as pd
import pytest

from tests.knowledge.studies import RUN, a_study
from workbench.analysis import learning_curves
from workbench.core.errors import DatabaseError, InvalidInput
from workbench.core.protocols import Event, Kind
from workbench.knowledge import KnowledgeBase, Recording, StudyLog, record


@pytest.fixture
def db(tmp_path):
    log = StudyLog(tmp_path / "kb.db", "one", {"seed": 3})
    log.append(a_study())
    log.append([Event(Kind.PROGRESS, n / 100, 0, 1, 0, {"metrics": {"pps": float(n)}}) for n in range(1001)])
    log.close()
    return tmp_path / "kb.db"


def test_a_recorded_study_reads_as_it_did(db, tmp_path) -> None:
    recording = Recording.open(record(db, "one", tmp_path / "out", points=11, note="a test"))
    with KnowledgeBase(db) as kb:
        original = kb["one"].frames()
    frames = recording.frames()
    for name in ("trials", "phases", "spans", "decisions", "slots"):
        assert getattr(frames, name).equals(getattr(original, name)), name
    kept = frames.metrics[frames.metrics["name"] == "pps"]["value"].tolist()
    assert (len(kept), kept[0], kept[-1]) == (11, 0.0, 1000.0)
    assert 900.0 in kept  # beside the score of the phase's end
    assert max(b - a for a, b in itertools.pairwise(kept)) <= 1.2 * 100
    assert (frames.metrics["name"] != "pps").sum() == 4  # shorter curves are kept whole
    about = json.loads((tmp_path / "out" / "provenance.json").read_text())
    assert (about["name"], about["spec"], about["note"], about["measured"]) == ("one", {"seed": 3}, "a test", True)


def test_a_recording_tells_when_it_began_and_whether_anything_was_measured(tmp_path) -> None:
    log = StudyLog(tmp_path / "kb.db", "one", {})
    log.append([Event(Kind.STUDY_STARTED, 0.0, data={"simulated": True})])
    recording = Recording.open(record(tmp_path / "kb.db", "one", tmp_path / "out"))
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        began = kb["one"].created_unix
        assert kb["one"].frames().state == "running"
    log.close()
    assert recording.provenance["measured"] is False
    assert 0 <= began - datetime.fromisoformat(recording.provenance["started"]).timestamp() < 1
    assert recording.frames().state == "abandoned"  # nobody drives what is recorded


@pytest.mark.parametrize("unscored", [37, 800])
def test_recorded_curves_can_be_drawn_against_a_counter_that_was_logged_more_often(tmp_path, unscored) -> None:
    """A score is there once a game has ended: thinned apart, score and frames hardly ever stood side by side."""
    log = StudyLog(tmp_path / "kb.db", "one", {})
    log.append(
        [Event(Kind.STUDY_STARTED, 0.0), Event(Kind.RUN, 0.0, 0, 0, data=RUN), Event(Kind.PHASE_STARTED, 0.0, 0, 0)]
    )
    for n in range(1000):
        score = {"score": float(n)} if n >= unscored else {}
        log.append([Event(Kind.PROGRESS, 1.0 + n, 0, 0, data={"metrics": {"frames": 10.0 * n, **score}})])
    log.close()
    frames = Recording.open(record(tmp_path / "kb.db", "one", tmp_path / "out", points=500)).frames()
    curve = learning_curves(frames.phases, frames.metrics, "frames")
    assert len(curve) == min(500, 1000 - unscored)
    assert (curve["x"] == 10 * curve["score"]).all()
    assert (frames.metrics["name"] == "frames").sum() == 500


def test_nothing_is_overwritten_and_nothing_half_written(db, tmp_path) -> None:
    record(db, "one", tmp_path / "out")
    with pytest.raises(InvalidInput, match="exists"):
        record(db, "one", tmp_path / "out")
    with pytest.raises(InvalidInput, match="2 points"):
        record(db, "one", tmp_path / "other", points=1)
    with pytest.raises(InvalidInput, match=r"^/proc/one cannot be written: [A-Z][a-z ]+$"):
        record(db, "one", "/proc/one")
    assert sorted(p.name for p in tmp_path.iterdir() if "kb.db" not in p.name) == ["out"]


def test_a_recording_that_fails_leaves_nothing_and_takes_up_nothing_that_was_left(db, tmp_path, monkeypatch) -> None:
    def fails(*_: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setitem(record.__globals__, "_thinned", fails)
        with pytest.raises(InvalidInput, match="out cannot be written: no space left"):
            record(db, "one", tmp_path / "out")
    assert not list(tmp_path.glob("*out*")) + list(tmp_path.glob(".*out*"))
    (tmp_path / ".out.part").mkdir()
    (tmp_path / ".out.part" / "left").touch()
    names = {path.name for path in record(db, "one", tmp_path / "out").iterdir()}
    assert names == {"events.parquet", "metrics.parquet", "provenance.json"}


def test_a_recording_names_no_folder_of_the_machine_it_came_from(tmp_path) -> None:
    said = ["/usr/bin/workbench", "run", "--db=/home/me/runs/kb.db", "--out", "/home/me/out/", "a/b.toml"]
    trained = {
        "kind": "mine:train",
        "data": "/home/me/cifar/",
        "parts": [{"start_from": "/home/me/kb/phase-002"}, "a/b"],
    }
    log = StudyLog(tmp_path / "kb.db", "one", {"trainable": trained, "seed": 0})
    log.append([Event(Kind.STUDY_STARTED, 0.0, data={"argv": said, "checkpoints": "/home/me/checkpoints"})])
    log.append([Event(Kind.RUN, 0.0, 0, 0, data=RUN), Event(Kind.PHASE_STARTED, 0.0, 0, 0, 0)])
    error = "FileNotFoundError: '/home/me/a b/x.npy', file:///home/me/y, /home/me/z: at https://a.b/c/d, 1/2/3 of a/b/c"
    failed = {"error": error, "traceback": 'File "/home/me/train.py"'}
    log.append([Event(Kind.TRIAL_FAILED, 1.0, 0, 0, 0, failed)])
    log.close()
    recording = Recording.open(record(tmp_path / "kb.db", "one", tmp_path / "out"))
    began, *_, failed = recording.events()
    assert began.data["argv"] == ["workbench", "run", "--db=kb.db", "--out", "out", "a/b.toml"]
    assert recording.provenance["drivers"] == [began.data]
    trained = {"kind": "mine:train", "data": "cifar", "parts": [{"start_from": "phase-002"}, "a/b"]}
    assert recording.spec == {"trainable": trained, "seed": 0}
    assert failed.data == {"error": "FileNotFoundError: 'a b/x.npy', file://y, z: at https://a.b/c/d, 1/2/3 of a/b/c"}
    for file in (tmp_path / "out").iterdir():
        assert b"/home/me" not in file.read_bytes()


@pytest.mark.parametrize("about", ["[]", "null", '{"format": "1"}', '{"format": 1, "name": "one"}', "[" * 100_000])
def test_a_recording_s_provenance_that_is_none_is_one_line(db, tmp_path, about) -> None:
    folder = record(db, "one", tmp_path / "out")
    (folder / "provenance.json").write_text(about)
    with pytest.raises(DatabaseError, match=rf"no (whole )?recording in {folder}"):
        Recording.open(folder)


def test_an_experiment_is_told_from_the_recording_of_a_study(tmp_path) -> None:
    about = {"format": 2, "name": "pbt-toy", "command": "workbench reproduce pbt-toy --scale minutes"}
    (tmp_path / "provenance.json").write_text(json.dumps(about))
    with pytest.raises(DatabaseError, match=r"^no recording of a study in .*: it is of workbench reproduce pbt-toy"):
        Recording.open(tmp_path)


@pytest.mark.parametrize("damage", ["missing", "truncated", "newer"])
def test_a_damaged_recording_is_refused(db, tmp_path, damage) -> None:
    folder = record(db, "one", tmp_path / "out")
    if damage == "missing":
        (folder / "metrics.parquet").unlink()
    elif damage == "truncated":
        (folder / "events.parquet").write_bytes((folder / "events.parquet").read_bytes()[:100])
    else:
        about = json.loads((folder / "provenance.json").read_text())
        (folder / "provenance.json").write_text(json.dumps({**about, "format": 99}))
    with pytest.raises(DatabaseError, match=r"recording in|reads up to"):
        Recording.open(folder)


STRANGE = {
    "kind": ("run", {"kind": "dance"}),
    "data": ("run", {"data": "[]"}),
    "config": ("run", {"data": '{"config": 1, "seed": 0, "parent": null}'}),
    "trial": ("phase_ended", {"trial": None}),
    "many": ("run", {"trial": 1 << 40}),
    "unknown": ("phase_ended", {"trial": 77}),
    "score": ("phase_ended", {"data": '{"score": "high"}'}),
    "verdict": ("decision", {"data": '{"verdict": "dance"}'}),
    "time": ("phase_ended", {"at_s": float("nan")}),
}


@pytest.mark.parametrize("strange", STRANGE)
def test_events_that_no_driver_writes_are_one_line(db, tmp_path, strange) -> None:
    folder = record(db, "one", tmp_path / "out")
    events = pd.read_parquet(folder / "events.parquet")
    kind, changes = STRANGE[strange]
    for column, value in changes.items():
        events.loc[(events["kind"] == kind).idxmax(), column] = value
    events.to_parquet(folder / "events.parquet")
    with pytest.raises(DatabaseError, match=rf"no whole recording in {folder} \("):
        Recording.open(folder).frames()


def test_metrics_and_names_that_no_study_has_are_one_line(db, tmp_path) -> None:
    folder = record(db, "one", tmp_path / "out")
    about = json.loads((folder / "provenance.json").read_text())
    for changes in ({"name": "../\x1b[31m"}, {"name": 1}, {"spec": []}):
        (folder / "provenance.json").write_text(json.dumps(about | changes))
        with pytest.raises(DatabaseError, match=rf"no whole recording in {folder} \("):
            Recording.open(folder)
    (folder / "provenance.json").write_text(json.dumps(about))
    pd.read_parquet(folder / "metrics.parquet").assign(value="high").to_parquet(folder / "metrics.parquet")
    with pytest.raises(DatabaseError, match=rf"no whole recording in {folder} \("):
        Recording.open(folder)
