"""A study packed, unpacked elsewhere and resumed there."""

import json
import os
import re
import shutil
import sqlite3
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from tests.events import begun, ended, judged, runs, write_log
from tests.support import SPACE, Deterministic, files, saved, small_disk
from workbench import PBT, HyperTrick, RandomSearcher, Study, SuccessiveHalving, pack, unpack
from workbench.cli.main import main
from workbench.cluster.place import Place
from workbench.core.errors import DatabaseError, InvalidInput, StudyError, WorkbenchError
from workbench.core.ledger import Ledger
from workbench.core.machine import slots_here
from workbench.core.protocols import Event, Kind
from workbench.core.record import recorded_place, versions
from workbench.knowledge import KnowledgeBase, StudyLog, carry, check
from workbench.knowledge.schema import open_for_writing
from workbench.study import pack as packing
from workbench.study.file import study_from
from workbench.study.pack import Pack, needed
from workbench.study.saved import checkpoint_store

HALVING = SuccessiveHalving(RandomSearcher(SPACE), 8, 3, eta=2)


def interrupted(study: Study, after: int) -> Study:
    """Run a study until so many phases have ended."""
    reached, go, ended = threading.Event(), threading.Event(), []

    def count(events) -> None:
        ended.extend(e for e in events if e.kind is Kind.PHASE_ENDED)
        if len(ended) >= after:
            reached.set()
            go.wait(60)

    object.__setattr__(study, "callbacks", [count])
    run = study.start()
    assert reached.wait(60)
    run.stop()
    go.set()
    assert run.wait(60)
    assert run.frames().state == "interrupted"
    return study


def outcome(run) -> tuple[list, list]:
    """Who ran which phase with what score, and how each trial ended: all that a rung's barrier decides."""
    frames = run.frames()
    phases = frames.phases.sort_values(["trial", "phase"])[["trial", "phase", "score"]]
    return phases.values.tolist(), frames.trials[["trial", "state", "mode"]].values.tolist()


def study_of(client, db, name="a study", scheduler=HALVING, **more) -> Study:
    return Study(name, scheduler, Deterministic, db=db, client=client, **more)


@pytest.fixture(scope="module")
def calm(client, tmp_path_factory) -> tuple[list, list]:
    """What comes of the study where nothing disturbs it."""
    return outcome(study_of(client, tmp_path_factory.mktemp("calm") / "calm.db").run())


@pytest.mark.parametrize("at_a_url", [False, True])
def test_a_study_that_has_moved_ends_as_an_undisturbed_one_does(client, tmp_path, calm, at_a_url) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    place = f"file://{there}/bucket" if at_a_url else None
    interrupted(study_of(client, here / "kb.db"), after=9)
    said = pack(here / "kb.db", "a study", tmp_path / "study.pack")
    shutil.rmtree(here)
    assert said.lost == 0
    assert (tmp_path / "study.pack").stat().st_mode & 0o077 == 0
    found = unpack(tmp_path / "study.pack", there / "other.db", checkpoints=place)
    assert (found.name, found.checkpoints, found.other_versions) == ("a study", said.checkpoints, {})
    assert found.spec == json.loads(json.dumps(study_of(client, here / "kb.db").spec))
    run = study_of(client, there / "other.db", checkpoints=place).run(resume=True)
    frames = run.frames()
    assert frames.state == "ended"
    assert outcome(run) == calm
    assert (frames.phases["phases_run"] == frames.phases["phase"] + 1).all()  # none went on from its start
    assert check(there / "other.db") == []
    assert (there / "other.checkpoints").exists() != at_a_url


def test_a_population_that_has_moved_goes_on_with_the_weights_of_trials_that_are_over(client, tmp_path) -> None:
    interrupted(study_of(client, tmp_path / "kb.db", scheduler=PBT(RandomSearcher(SPACE), 4, 6, share=0.5)), after=12)
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        ledger = Ledger(kb["a study"].events())
    said = pack(tmp_path / "kb.db", "a study", tmp_path / "p")
    assert {trial.checkpoint for trial in ledger.trials.values()} - {None} <= {*said.checkpoints}
    unpack(tmp_path / "p", tmp_path / "new" / "kb.db")
    scheduler = PBT(RandomSearcher(SPACE), 4, 6, share=0.5)
    run = study_of(client, tmp_path / "new" / "kb.db", scheduler=scheduler).run(resume=True)
    assert run.frames().state == "ended"
    with KnowledgeBase(tmp_path / "new" / "kb.db") as kb:
        assert not [e for e in kb["a study"].events() if "recovered" in e.data]


def test_only_what_a_study_still_needs_is_packed(client, tmp_path) -> None:
    study = study_of(client, tmp_path / "kb.db", scheduler=HyperTrick(RandomSearcher(SPACE), 8, 3))
    run = study.run()
    said = pack(tmp_path / "kb.db", "a study", tmp_path / "p")
    finished = run.trials.loc[run.trials["state"] == "finished", "trial"]
    newest = {f"trial-{trial:05d}/phase-002" for trial in finished}
    phases = run.frames().phases
    best = phases[phases["trial"] == run.results().best["trial"]].sort_values("score").iloc[-1]
    assert {*said.checkpoints} == newest | {f"trial-{best['trial']:05d}/phase-{best['phase']:03d}"}
    with zipfile.ZipFile(tmp_path / "p") as archive:
        assert {"/".join(m.split("/")[1:3]) for m in archive.namelist() if "/" in m} == {*said.checkpoints}
        about = json.loads(archive.read("pack.json"))
    assert about["versions"]["torch"]
    assert about["spec"]["scheduler"]["kind"] == "hypertrick"


def logged(db, *more: Event, spec=None, place=None) -> None:
    """Write a study of two trials, one of them stopped, with the checkpoints it tells of."""
    began = {"versions": {"torch": "0.4", "numpy": None}} | ({} if place is None else {"checkpoints": place})
    events = [Event(Kind.STUDY_STARTED, 0.0, data=began)]
    for trial in (0, 1):
        name = saved(checkpoint_store(db, "one", place), Deterministic({}, 0), trial, 0, float(trial))
        events += [runs(1.0, trial, {"lr": 0.1}, seed=1), begun(1.0, trial, 0)]
        events += [ended(2.0, trial, 0, 0, float(trial), name, loss=0.5)]
    events += [judged(2.0, 0, 0, "stop", "selected"), *more]
    spec = spec or {"scheduler": {"kind": "full"}, "trainable": {"kind": "mine:train"}, "seed": 0}
    write_log(db, "one", events, spec)


def test_of_weights_that_are_handed_on_every_trial_is_needed() -> None:
    def events(*more: Event) -> list[Event]:
        known = [event for t in (0, 1) for event in (runs(1.0, t, {}, seed=1), begun(1.0, t, 0))]
        known += [ended(2.0, t, 0, 0, float(t), f"trial-{t:05d}/phase-000") for t in (0, 1)]
        return [*known, judged(2.0, 0, 0, "stop", "copied"), *more]

    both = ["trial-00000/phase-000", "trial-00001/phase-000"]
    assert needed({"scheduler": {"kind": "full"}}, events()) == (both[1:], [])
    assert needed({"scheduler": {"kind": "mine:Rule"}}, events()) == (both, [])
    finished = judged(2.0, 1, 0, "stop", "finished")
    minimised = Event(Kind.STUDY_STARTED, 0.0, data={"aim": {"mode": "min"}})
    assert needed({"scheduler": {"kind": "full"}}, [minimised, *events(finished)]) == (both[1:], both[:1])
    assert needed({"scheduler": {"kind": "pbt"}}, events()) == (both, [])  # nobody has copied yet
    own = [Event(Kind.INTERVENTION, 2.5, 0, data={"action": "extend", "phases": 1, "accepted": True, "request": "r"})]
    own += [begun(2.5, 0, 1), ended(3.0, 0, 1, 0, 0.0, "trial-00000/phase-001")]  # nobody else hears of these
    extended = ["trial-00000/phase-001", *both]
    assert needed({"scheduler": {"kind": "pbt"}}, events(*own)) == (extended, [])
    heir = runs(3.0, 2, {}, phase=1, parent=0, seed=1)
    assert needed({"scheduler": {"kind": "pbt"}}, events(heir)) == (both, [])


def test_a_best_score_that_a_later_phase_has_beaten_is_no_loss(client, tmp_path) -> None:
    """A phase under way ends after its driver has gone: the worker may have kept its checkpoint instead."""
    study = interrupted(study_of(client, tmp_path / "kb.db"), after=9)
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        wanted, best = needed(kb["a study"].spec, kb["a study"].events())
    store = checkpoint_store(tmp_path / "kb.db", "a study")
    for name in best or wanted[-1:]:
        shutil.rmtree(Path(store.root) / name, ignore_errors=True)  # its worker may have been first
    said = pack(study.db, "a study", tmp_path / "p")
    assert said.lost == (0 if best else 1)
    assert len(said.checkpoints) >= len(wanted) - 1


def test_from_a_shell_what_to_do_next_is_said(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    logged(tmp_path / "kb.db")
    assert main(["pack", "one", "moved/one.pack", "--db", "kb.db"]) == 0
    said = capsys.readouterr().out
    assert "moved/one.pack: study 'one', 1 checkpoint\n" in said
    assert "runs mine:train, code of your own, which is not in the pack" in said
    assert "torch was 0.4 there, is " in said
    assert main(["unpack", "moved/one.pack", "--db", "there/kb.db", "--name", "an other"]) == 0
    then = "go on with: workbench run --resume --name 'an other' --trainable mine:train --db there/kb.db"
    assert f"{then} --nodes {slots_here()}\n" in capsys.readouterr().out
    with KnowledgeBase("kb.db") as old, KnowledgeBase("there/kb.db") as new:
        assert new["an other"].events() == old["one"].events()
        same = ["trial", "phase", "at_s", "name", "value"]
        assert new["an other"].metrics()[same].equals(old["one"].metrics()[same])
        assert new["an other"].created_unix == old["one"].created_unix


def test_a_study_that_has_ended_is_to_be_looked_at_not_gone_on_with(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    logged(tmp_path / "kb.db", Event(Kind.STUDY_ENDED, 3.0))
    assert main(["pack", "one", "p", "--db", "kb.db"]) == 0
    assert main(["unpack", "p", "--db", "there.db", "--name", "an other"]) == 0
    said = capsys.readouterr().out
    assert said.endswith("it has ended; look at it with: workbench show --db there.db 'an other'\n")
    assert "go on with" not in said


def test_checkpoints_are_packed_from_where_the_log_has_them_and_it_says_where_they_are_now(
    tmp_path, monkeypatch
) -> None:
    db, there = tmp_path / "kb.db", tmp_path / "there.db"
    logged(db, place=str(tmp_path / "shared"))
    assert len(pack(db, "one", tmp_path / "p").checkpoints) == 1
    unpack(tmp_path / "p", there, name="beside")
    monkeypatch.setenv("HOME", str(tmp_path))
    unpack(tmp_path / "p", there, name="elsewhere", checkpoints="~/new")
    with KnowledgeBase(there) as kb:
        places = {name: recorded_place(kb[name].events()) for name in kb}
    assert places == {"beside": None, "elsewhere": str(tmp_path / "new")}
    assert pack(there, "elsewhere", tmp_path / "q").checkpoints == ("trial-00001/phase-000",)
    moved = shutil.move(tmp_path / "shared", tmp_path / "moved")
    assert len(pack(db, "one", tmp_path / "m", checkpoints=str(moved)).checkpoints) == 1
    with pytest.raises(StudyError, match=rf"is to be had .*: bring them back to {tmp_path / 'shared'}, or say where"):
        pack(db, "one", tmp_path / "r")


def test_what_a_trial_starts_from_is_kept_where_it_was_unpacked(tmp_path) -> None:
    logged(tmp_path / "kb.db", runs(3.0, 2, {"lr": 0.2}, phase=1, parent=0, seed=1))
    pack(tmp_path / "kb.db", "one", tmp_path / "p")
    unpack(tmp_path / "p", tmp_path / "new.db")
    store = checkpoint_store(tmp_path / "new.db", "one")
    assert [p.relative_to(store.root).as_posix() for p in Path(store.root).rglob("*.donor")] == [
        "trial-00000/phase-000.donor"
    ]


def test_what_a_population_may_copy_of_an_extended_trial_is_kept_where_it_was_unpacked(tmp_path) -> None:
    own = [Event(Kind.INTERVENTION, 2.5, 0, data={"action": "extend", "phases": 2, "accepted": True, "request": "r"})]
    name = saved(checkpoint_store(tmp_path / "kb.db", "one"), Deterministic({}, 0), 0, 1, 0.0)
    own += [begun(2.5, 0, 1), ended(3.0, 0, 1, 0, 0.0, name), judged(3.0, 0, 1, "continue", "extended")]
    spec = {"scheduler": {"kind": "pbt"}, "trainable": {"kind": "mine:train"}, "seed": 0}
    logged(tmp_path / "kb.db", *own, spec=spec)
    pack(tmp_path / "kb.db", "one", tmp_path / "p")
    unpack(tmp_path / "p", tmp_path / "new.db")
    store = checkpoint_store(tmp_path / "new.db", "one")
    for phase in (2, 3):
        saved(store, Deterministic({}, 0), 0, phase, 9.0)
    assert store.has("trial-00000/phase-000")


@pytest.mark.parametrize(("name", "same"), [(None, True), ("other", False)])
def test_under_its_name_it_is_the_same_study_under_another_another(tmp_path, name, same) -> None:
    logged(tmp_path / "kb.db")
    pack(tmp_path / "kb.db", "one", tmp_path / "p")
    unpack(tmp_path / "p", tmp_path / "new.db", name=name)
    identities = []
    for db, called in ((tmp_path / "kb.db", "one"), (tmp_path / "new.db", name or "one")):
        with KnowledgeBase(db) as kb:
            spec = kb[called].spec
        log = StudyLog(db, called, spec, resume=True)
        identities.append(log.identity)
        log.close()
    assert (identities[0] == identities[1]) is same


def test_the_place_that_its_checkpoints_are_put_into_is_its_own(tmp_path) -> None:
    logged(tmp_path / "kb.db")
    pack(tmp_path / "kb.db", "one", tmp_path / "p")
    mine, others = str(tmp_path / "mine"), str(tmp_path / "others")
    Place(others).claim("another's")
    with pytest.raises(StudyError, match="is another study's place of checkpoints"):
        unpack(tmp_path / "p", tmp_path / "new.db", checkpoints=others)
    assert Place(others).owner() == "another's"
    with pytest.raises(StudyError, match="is where study 'two' of kb, the knowledge base beside it, has"):
        unpack(tmp_path / "p", tmp_path / "new.db", checkpoints=str(tmp_path / "kb.checkpoints" / "two"))
    unpack(tmp_path / "p", tmp_path / "new.db", name="other", checkpoints=mine)
    with KnowledgeBase(tmp_path / "new.db") as kb:
        spec = kb["other"].spec
    log = StudyLog(tmp_path / "new.db", "other", spec, resume=True)
    assert Place(mine).owner() == log.identity
    log.close()


def test_a_place_without_a_name_is_refused(tmp_path, monkeypatch) -> None:
    """As of a shell's variable that is not set: the log would tell the working directory."""
    monkeypatch.chdir(tmp_path)
    logged(tmp_path / "kb.db")
    pack(tmp_path / "kb.db", "one", tmp_path / "p")
    with pytest.raises(InvalidInput, match="checkpoints are in a directory or at a URL, got ''"):
        unpack(tmp_path / "p", tmp_path / "new.db", checkpoints="")
    assert not (tmp_path / "new.db").exists()


def test_what_is_said_to_type_next_has_nodes_for_a_gang(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    n_ranks = slots_here() + 1
    trainable = {"kind": "ba3c", "game": "Pong", "n_ranks": n_ranks, "phase": {"frames": 100}}
    logged(tmp_path / "kb.db", spec={"scheduler": {"kind": "full"}, "trainable": trainable, "seed": 0})
    pack("kb.db", "one", "p")
    assert main(["unpack", "p", "--db", "there.db"]) == 0
    assert capsys.readouterr().out.endswith(f" --nodes {n_ranks}\n")


def test_a_study_that_runs_is_not_packed_and_one_that_is_packed_cannot_be_driven(tmp_path, monkeypatch) -> None:
    logged(tmp_path / "kb.db")
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        spec = kb["one"].spec
    driver = StudyLog(tmp_path / "kb.db", "one", spec, resume=True)
    before = files(tmp_path)
    with pytest.raises(StudyError, match=rf"'one' is being driven by process {os.getpid()} on .*, this one"):
        pack(tmp_path / "kb.db", "one", tmp_path / "p")
    assert files(tmp_path) == before
    driver.close()
    meanwhile = []

    def drive(*_):
        with pytest.raises(StudyError, match="being driven"):
            StudyLog(tmp_path / "kb.db", "one", spec, resume=True)
        meanwhile.append(True)
        return [], []

    monkeypatch.setattr("workbench.study.pack.needed", drive)
    pack(tmp_path / "kb.db", "one", tmp_path / "p")
    assert meanwhile
    StudyLog(tmp_path / "kb.db", "one", spec, resume=True).close()


def test_a_study_that_runs_is_carried_as_of_one_moment(tmp_path, monkeypatch) -> None:
    """What its driver logs between the reading of its events and of its metrics is in neither."""
    log = StudyLog(tmp_path / "kb.db", "one", {})

    def begins(trial: int) -> None:
        log.append([runs(1.0, trial, {}), Event(Kind.PROGRESS, 2.0, trial, 0, 0, {"metrics": {"score": 1.0}})])

    def goes_on(statement: str) -> None:
        if "INTO metric_names" in statement:
            begins(7)

    log.append([Event(Kind.STUDY_STARTED, 0.0)])
    begins(0)

    def watched(path: Path) -> sqlite3.Connection:
        connection = open_for_writing(path)
        connection.set_trace_callback(goes_on)
        return connection

    monkeypatch.setattr(sys.modules[carry.__module__], "open_for_writing", watched)
    carry(tmp_path / "kb.db", "one", tmp_path / "other.db")
    log.close()
    assert [finding.study for finding in check(tmp_path / "other.db")] == ["one"]  # nobody drives it; no metric is lost
    for file, trials in (("other.db", [0]), ("kb.db", [0, 7])):
        with KnowledgeBase(tmp_path / file) as kb:
            assert kb["one"].metrics()["trial"].tolist() == trials


def test_damage_is_told_of_the_file_that_has_it(tmp_path) -> None:
    source = tmp_path / "kb.db"
    logged(source)
    with sqlite3.connect(source) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        page = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'metrics_of_study'").fetchone()[0]
    raw = bytearray(source.read_bytes())
    raw[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    source.write_bytes(bytes(raw))
    with pytest.raises(DatabaseError, match=r"kb.db cannot be read as a knowledge base"):
        carry(source, "one", tmp_path / "other.db")


def test_only_packages_that_are_known_here_are_said_to_be_others() -> None:
    here = {name: version for name, version in versions().items() if version}
    found = Pack(Path("p"), "one", {}, {**here, "torch": "0.4", "of a later workbench": "1.0"}, ())
    assert found.other_versions == {"torch": ("0.4", here["torch"])}


def test_what_is_there_already_is_left_alone(tmp_path) -> None:
    logged(tmp_path / "kb.db")
    pack(tmp_path / "kb.db", "one", tmp_path / "p")
    before = files(tmp_path)
    with pytest.raises(StudyError, match=r"'one' exists in .*kb.db: choose another name, name=…"):
        unpack(tmp_path / "p", tmp_path / "kb.db")
    with pytest.raises(InvalidInput, match="p exists: choose another name"):
        pack(tmp_path / "kb.db", "one", tmp_path / "p")
    with pytest.raises(StudyError, match="did you mean 'one'"):
        pack(tmp_path / "kb.db", "ome", tmp_path / "q")
    with pytest.raises(DatabaseError, match="no knowledge base at"):
        pack(tmp_path / "no.db", "one", tmp_path / "q")
    with pytest.raises(InvalidInput, match="a study's name is"):
        unpack(tmp_path / "p", tmp_path / "kb.db", name="../x")
    with pytest.raises(
        DatabaseError, match=r"there can be no knowledge base at .*, for .*/p is a file: choose another"
    ):
        unpack(tmp_path / "p", tmp_path / "p" / "kb.db")
    assert files(tmp_path) == before
    saved(checkpoint_store(tmp_path / "new.db", "one"), Deterministic({}, 0), 0, 0)
    before = files(tmp_path)
    there = checkpoint_store(tmp_path / "new.db", "one").root
    for place, told in ((None, "name=…"), (there, "checkpoints=…")):  # the place that is named is every name's
        with pytest.raises(
            StudyError, match=rf"there are checkpoints in .*new.checkpoints/one already: .* choose {told}$"
        ):
            unpack(tmp_path / "p", tmp_path / "new.db", checkpoints=place)
    assert files(tmp_path) == before


def test_of_two_studies_packed_into_one_file_at_once_one_is_there_whole(tmp_path, monkeypatch) -> None:
    logged(tmp_path / "one" / "kb.db")
    logged(tmp_path / "two" / "kb.db")
    begun, go, refused = threading.Event(), threading.Event(), []
    add = packing._add_checkpoints

    def second() -> None:
        try:
            pack(tmp_path / "two" / "kb.db", "one", tmp_path / "p")
        except InvalidInput as err:
            refused.append(str(err))

    other = threading.Thread(target=second)

    def meeting(*args):
        if threading.current_thread() is other:
            begun.set()
            assert go.wait(60)
        else:
            other.start()
            assert begun.wait(60)
        return add(*args)

    monkeypatch.setattr(packing, "_add_checkpoints", meeting)
    pack(tmp_path / "one" / "kb.db", "one", tmp_path / "p")
    go.set()
    other.join(60)
    assert refused == [f"{tmp_path / 'p'} exists: choose another name"]
    with KnowledgeBase(tmp_path / "one" / "kb.db") as kb:
        events = kb["one"].events()
    unpack(tmp_path / "p", tmp_path / "new.db")
    with KnowledgeBase(tmp_path / "new.db") as kb:
        assert kb["one"].events() == events
    assert not list(tmp_path.glob(".*.part"))


def test_a_study_moves_by_the_disks_that_it_comes_from_and_goes_to_alone(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "full"))
    logged(tmp_path / "kb.db")
    pack(tmp_path / "kb.db", "one", tmp_path / "new" / "p")
    unpack(tmp_path / "new" / "p", tmp_path / "there" / "kb.db")
    assert not list(tmp_path.rglob(".*.part"))


@pytest.mark.parametrize("size", ["16k", "48k", "84k"])  # for no log; for one; for a part of another beside it
def test_a_disk_that_is_full_is_told_by_the_name_of_what_goes_there(tmp_path, size) -> None:
    logged(tmp_path / "kb.db")
    pack(tmp_path / "kb.db", "one", tmp_path / "p")
    with small_disk(tmp_path / "small", size) as disk:
        with pytest.raises(WorkbenchError, match=r"small/p\b.*make space") as packing:
            pack(tmp_path / "kb.db", "one", disk / "p")
        with pytest.raises(WorkbenchError, match=r"small/kb\.db\b.*make space") as unpacking:
            unpack(tmp_path / "p", disk / "kb.db")
        assert ".part" not in f"{packing.value}{unpacking.value}"
        assert not list(disk.glob(".*"))
        assert not (disk / "kb.db").exists()


def test_a_study_is_carried_whole_or_not_at_all(tmp_path, monkeypatch) -> None:
    logged(tmp_path / "kb.db")
    read = carry.__globals__["_rows"]

    def cut_short(connection, path, query, *parameters):
        if "FROM metrics m" in query:  # the last that is carried
            raise DatabaseError("the disk was taken away")
        return read(connection, path, query, *parameters)

    monkeypatch.setitem(carry.__globals__, "_rows", cut_short)
    with pytest.raises(DatabaseError, match="taken away"):
        carry(tmp_path / "kb.db", "one", tmp_path / "new.db")
    with KnowledgeBase(tmp_path / "new.db") as kb:
        assert list(kb) == []


@pytest.mark.parametrize("score", [7.0, 0.5])  # the one before is not the study's best, or is
def test_a_checkpoint_that_is_damaged_gives_way_to_the_one_before_and_that_is_said(tmp_path, score) -> None:
    logged(tmp_path / "kb.db")
    store = checkpoint_store(tmp_path / "kb.db", "one")
    file = tmp_path / "kb.checkpoints" / "one" / "trial-00001" / "phase-000" / "phase.txt"
    file.write_text("9")
    with pytest.raises(StudyError, match=r"none of the checkpoints is to be had \(.*phase.txt is not what was written"):
        pack(tmp_path / "kb.db", "one", tmp_path / "p")
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        spec = kb["one"].spec
    name = saved(store, Deterministic({}, 0), 1, 1, score)
    went_on = [judged(2.0, 1, 0, "continue", "kept"), begun(2.0, 1, 1), ended(3.0, 1, 1, 0, score, name)]
    write_log(tmp_path / "kb.db", "one", went_on, spec, resume=True)
    file.write_text("0")
    (tmp_path / "kb.checkpoints" / "one" / name / "phase.txt").write_text("9")
    (tmp_path / "kb.checkpoints" / "one" / "trial-00001" / "phase-000" / "note.txt").touch()  # of no checkpoint's files
    said = pack(tmp_path / "kb.db", "one", tmp_path / "p")
    assert (said.checkpoints, said.lost) == (("trial-00001/phase-000",), 1)
    assert "newest checkpoint of 1 trial lost" in str(said)
    assert unpack(tmp_path / "p", tmp_path / "new.db").lost == 1


def test_a_checkpoint_that_is_lost_without_an_older_one_is_not_said_to_have_one(tmp_path) -> None:
    logged(tmp_path / "kb.db", spec={"scheduler": {"kind": "pbt"}, "trainable": {"kind": "mine:train"}, "seed": 0})
    shutil.rmtree(tmp_path / "kb.checkpoints" / "one" / "trial-00000")
    said = pack(tmp_path / "kb.db", "one", tmp_path / "p")
    assert (said.checkpoints, said.lost) == (("trial-00001/phase-000",), 1)
    assert "1 trial lost: who goes on does so from an older one or, without any, from the start\n" in str(said)


def test_a_pack_tells_the_versions_of_the_last_driver(tmp_path) -> None:
    logged(tmp_path / "kb.db", Event(Kind.STUDY_RESUMED, 3.0, data={"versions": {"torch": "0.5", "numpy": None}}))
    assert pack(tmp_path / "kb.db", "one", tmp_path / "p").versions == {"torch": "0.5"}


def test_of_a_study_that_could_not_be_taken_up_no_checkpoint_is_left(tmp_path, monkeypatch) -> None:
    def fail(*_) -> None:
        raise DatabaseError("the disk was taken away")

    logged(tmp_path / "kb.db")
    pack(tmp_path / "kb.db", "one", tmp_path / "p")
    monkeypatch.setattr("workbench.knowledge.carry", fail)
    with pytest.raises(DatabaseError, match="taken away"):
        unpack(tmp_path / "p", tmp_path / "new.db")
    assert checkpoint_store(tmp_path / "new.db", "one").disk_use() == 0


def test_a_study_that_cannot_be_resumed_is_not_packed(tmp_path) -> None:
    logged(tmp_path / "kb.db", Event(Kind.PHASE_ENDED, 5.0, 0, 7, 0, {"score": 1.0, "checkpoint": None}))
    with pytest.raises(StudyError, match=r"'one' cannot be resumed, .* event 8 .* after the trial was over"):
        pack(tmp_path / "kb.db", "one", tmp_path / "p")
    assert not (tmp_path / "p").exists()


def test_a_place_that_cannot_be_written_is_said_in_one_line(tmp_path) -> None:
    logged(tmp_path / "kb.db")
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match=r"study 'one' cannot be packed into .*: (Not a directory|File exists)"):
        pack(tmp_path / "kb.db", "one", tmp_path / "file" / "p")
    with pytest.raises(InvalidInput, match=r"cannot be unpacked into .*: No such file"):
        unpack(tmp_path / "none", tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("what", ["/dev/zero", "/dev/null", "."])
def test_what_is_no_file_is_refused_before_it_is_read(tmp_path, what) -> None:
    with pytest.raises(InvalidInput, match=f"^{re.escape(what)} is refused: it is a folder, a pipe or a device"):
        unpack(what, tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


def test_a_study_from_a_file_is_resumed_by_its_name_where_it_was_unpacked(tmp_path, one_cluster) -> None:
    table = {
        "study": {"name": "known", "db": tmp_path / "kb.db", "nodes": 2},
        "space": {"h0": {"uniform": [0, 1]}, "h1": {"uniform": [0, 1]}},
        "scheduler": {"kind": "full", "n_trials": 3, "n_phases": 4},
        "trainable": {"kind": "quadratic"},
    }
    interrupted(study_from(table), after=4)
    assert main(["pack", "known", str(tmp_path / "p"), "--db", str(tmp_path / "kb.db")]) == 0
    assert main(["unpack", str(tmp_path / "p"), "--db", str(tmp_path / "new" / "kb.db")]) == 0
    assert main(["run", "--resume", "--quiet", "--name", "known", "--db", str(tmp_path / "new" / "kb.db")]) == 0
    with KnowledgeBase(tmp_path / "new" / "kb.db") as kb:
        frames = kb["known"].frames()
    assert frames.state == "ended"
    assert len(frames.phases) == 12
