"""Where the checkpoints of studies are: whose a place is, what it is called, where one went."""

import contextlib
import os
import shutil
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from tests.support import SPACE, Deterministic, Waits
from workbench import FullRuns, KnowledgeBase, RandomSearcher, Study
from workbench.cluster import local
from workbench.cluster.place import Place
from workbench.core.errors import InvalidInput, StudyError
from workbench.core.ledger import Ledger
from workbench.core.protocols import Event, Kind
from workbench.knowledge import StudyLog, backup, record
from workbench.study.run import StudyRun
from workbench.study.saved import checkpoint_store, refuse_without_checkpoints


@pytest.mark.parametrize("here", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_the_mark_of_a_named_folder_is_asked_for_by_all_who_are_on_this_machine(
    study_of, client, tmp_path, monkeypatch, here, named
) -> None:
    monkeypatch.setattr(local, "local_client", lambda *_, **__: contextlib.nullcontext(client))
    study = study_of(client=None if here else client, checkpoints=str(tmp_path / "c") if named else None)
    if named:
        Place(study.checkpoints).claim("identity")
    with study.executor("identity") as executor:
        assert executor.checkpoints.marked == (here and named)


def test_a_place_of_checkpoints_may_be_a_path(study_of, tmp_path) -> None:
    assert study_of(checkpoints=tmp_path / "weights").checkpoints == str(tmp_path / "weights")


def test_a_place_of_checkpoints_may_begin_at_home(study_of, tmp_path, monkeypatch) -> None:
    """No shell sees to it in a study file, in Python, or in ``--checkpoints=~/x``."""
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    study = study_of(checkpoints=Path("~/weights"))
    assert study.checkpoints == study.checkpoint_store.root == f"{tmp_path}/me/weights"
    assert study_of(checkpoints="memory://~/weights").checkpoints == "memory://~/weights"
    assert checkpoint_store(study.db, "gone", "~/weights").root == f"{tmp_path}/me/weights"


def test_a_knowledge_base_has_one_place_of_checkpoints_whatever_links_lead_to_it(tmp_path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "kb.db")
    assert checkpoint_store(tmp_path / "link.db", "one").root == checkpoint_store(tmp_path / "kb.db", "one").root


def test_what_waits_to_be_sent_to_the_place_of_checkpoints_is_the_study_s(tmp_path, monkeypatch) -> None:
    made = []

    class Executor:
        def __init__(self, client, factory, checkpoints, *settings) -> None:
            made.append(checkpoints)

        def close(self) -> None:
            pass

    monkeypatch.setattr("workbench.cluster.dask.DaskExecutor", Executor)
    monkeypatch.setattr("workbench.cluster.local.local_client", lambda *_, **__: contextlib.nullcontext())
    scheduler = FullRuns(RandomSearcher(SPACE), 1, 1)
    study = Study("a", scheduler, Deterministic, tmp_path / "kb.db", 1, checkpoints="memory://there", mode="min")
    with study.executor("its identity"):
        assert (made[0].study, made[0].mode) == ("its identity", "min")


def test_a_place_of_checkpoints_belongs_to_one_study(study_of, tmp_path) -> None:
    place = str(tmp_path / "weights")
    study = study_of(checkpoints=place, scheduler=FullRuns(RandomSearcher(SPACE), 1, 1))
    study.run()
    with pytest.raises(StudyError, match="holds checkpoints already, which would mix with those of study 'another'"):
        study_of(name="another", checkpoints=place).start()
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        assert list(kb.studies["name"]) == ["a study"]
    with pytest.raises(StudyError, match="exists"):
        replace(study).start()  # its own are no reason
    replace(study, scheduler=FullRuns(RandomSearcher(SPACE), 1, 1)).run(resume=True)


def test_the_place_of_another_study_beside_a_knowledge_base_is_nobody_elses(study_of, tmp_path) -> None:
    """It has no mark; whether anything is saved there yet or not."""
    place = str(tmp_path / "kb.checkpoints" / "other")
    study = study_of(scheduler=FullRuns(RandomSearcher(SPACE), 1, 1))
    study.run()
    theirs = r"is where study 'other' of kb, the knowledge base beside it, has its checkpoints: give study '{}' a place"
    study.checkpoint_store.remove()
    for name, resume in (("another", False), ("a study", True)):
        if resume:
            (Path(place) / "trial-00000" / "phase-000").mkdir(parents=True)
        taken = study_of(name=name, checkpoints=place, scheduler=FullRuns(RandomSearcher(SPACE), 1, 1))
        with pytest.raises(StudyError, match=theirs.format(name)):
            taken.start(resume=resume)
    assert [path.name for path in Path(place).iterdir()] == ["trial-00000"]
    shutil.rmtree(place)
    study_of(name="other", checkpoints=place, scheduler=FullRuns(RandomSearcher(SPACE), 1, 1)).run()  # its own
    free = str(tmp_path / "some.checkpoints" / "free")  # beside no knowledge base
    study_of(name="free", checkpoints=free, scheduler=FullRuns(RandomSearcher(SPACE), 1, 1)).run()


def test_of_two_studies_begun_at_one_place_before_either_has_saved_the_second_is_refused(study_of, tmp_path) -> None:
    place, go = str(tmp_path / "weights"), tmp_path / "go"
    first = study_of(checkpoints=place, scheduler=FullRuns(RandomSearcher(SPACE), 1, 2), trainable=Waits(str(go), 0))
    run = first.start()
    other = study_of(name="another", checkpoints=place)
    with pytest.raises(StudyError, match=r"is another study's place of checkpoints.*: give study 'another' a place of"):
        other.start()
    with pytest.raises(StudyError, match="is another study's place of checkpoints"):
        StudyRun(other)  # as one that looked at the place before the first had marked it
    go.touch()
    assert run.wait(300)
    first.run(resume=True)
    first.checkpoint_store.remove()
    assert not (tmp_path / "weights").exists()


@pytest.mark.parametrize("named", [True, False])
def test_a_copy_of_a_study_is_not_driven_beside_it_at_one_place_of_checkpoints(study_of, tmp_path, named) -> None:
    """The copy's lock is its own, and its mark the same; beside the knowledge base kb.db and kb.sqlite share one."""
    place = tmp_path / "weights" if named else tmp_path / "kb.checkpoints" / "a study"
    scheduler, go = FullRuns(RandomSearcher(SPACE), 1, 2), tmp_path / "go"
    study = study_of(checkpoints=place if named else None, scheduler=scheduler, trainable=Waits(str(go), 0))
    run = study.start()
    backup(tmp_path / "kb.db", tmp_path / "copy.db")
    copy = replace(study, db=(tmp_path / "copy.db").rename(tmp_path / "kb.sqlite"))
    taken = f"that has its checkpoints at {place} is driven by process {os.getpid()} on .*: stop that driver first"
    with pytest.raises(StudyError, match=taken):
        copy.start(resume=True)
    go.touch()
    assert run.wait(300)
    assert copy.run(resume=True).frames().state == "ended"
    copy.checkpoint_store.remove()
    assert not place.exists()


def test_a_study_is_not_resumed_without_its_checkpoints_that_were_put_elsewhere(study_of, tmp_path) -> None:
    place = str(tmp_path / "elsewhere")
    study_of(checkpoints=place).run()
    with pytest.raises(StudyError, match=f"has its checkpoints at {place}: resume it with checkpoints='{place}'"):
        study_of().start(resume=True)
    study_of(checkpoints=place).run(resume=True)
    beside = Path(study_of().checkpoint_store.root)
    beside.mkdir(parents=True)  # as where they were until they were moved
    with pytest.raises(StudyError, match=f"has its checkpoints at {place}: resume it with checkpoints='{place}'"):
        study_of().start(resume=True)
    beside.rmdir()
    mistyped = tmp_path / "elsewere"
    with pytest.raises(StudyError, match=rf"elsewere holds no checkpoints.* resume it with checkpoints='{place}', or"):
        study_of(checkpoints=str(mistyped)).start(resume=True)
    assert not mistyped.exists()
    (tmp_path / "elsewhere").rename(beside)  # moved beside the knowledge base
    study_of().run(resume=True)
    with pytest.raises(StudyError, match=rf"last had its own at {beside}: resume it without checkpoints=…, or"):
        study_of(checkpoints=str(mistyped)).start(resume=True)
    record(tmp_path / "kb.db", "a study", tmp_path / "kept")
    assert str(tmp_path) not in (tmp_path / "kept" / "provenance.json").read_text()


@pytest.mark.parametrize("named", [True, False])
def test_a_study_whose_folder_of_checkpoints_is_gone_begins_again_only_if_an_empty_one_says_so(
    study_of, tmp_path, named
) -> None:
    """As where its knowledge base was renamed without it; a study that has ended needs none."""
    study = study_of(checkpoints=tmp_path / "weights" if named else None, client=None, nodes=1)
    began, place = {"checkpoints": study.checkpoints} if named else {}, Path(study.checkpoint_store.root)
    run = {"config": {"lr": 0.1}, "seed": 1, "parent": None}
    on = {"score": 1.0, "metrics": {}, "checkpoint": "trial-00000/phase-000", "attempt": 0}
    events = [
        Event(Kind.STUDY_STARTED, 0.0, data=began),
        Event(Kind.RUN, 0.0, 0, 0, data=run),
        Event(Kind.PHASE_STARTED, 0.0, 0, 0, 0, {"attempt": 0}),
        Event(Kind.PHASE_ENDED, 1.0, 0, 0, 0, on),
    ]
    over = Event(Kind.DECISION, 1.0, 0, 0, data={"verdict": "stop", "mode": "finished"})
    refuse_without_checkpoints(study, [*events, over], Ledger([*events, over]))
    gone = f"study 'a study' goes on from checkpoints in {place}, which is not there: bring that folder back, under"
    with pytest.raises(StudyError, match=gone):
        refuse_without_checkpoints(study, events, Ledger(events))
    place.mkdir(parents=True)
    refuse_without_checkpoints(study, events, Ledger(events))


def test_a_study_that_has_no_checkpoint_yet_is_resumed_wherever_they_are_to_go(study_of, tmp_path) -> None:
    """As one that has moved in its first phase: the place it named is on another machine."""
    study = study_of(checkpoints=str(tmp_path / "elsewhere"), scheduler=FullRuns(RandomSearcher(SPACE), 1, 1))
    log = StudyLog(study.db, study.name, study.spec)
    log.append([Event(Kind.STUDY_STARTED, 0.0, data={"checkpoints": study.checkpoints, "aim": study.aim.to_json()})])
    log.close()
    assert replace(study, checkpoints=None).run(resume=True).frames().state == "ended"


def test_knowledge_bases_of_one_stem_do_not_mix_their_studies_checkpoints(study_of, tmp_path) -> None:
    begun = study_of(scheduler=FullRuns(RandomSearcher(SPACE), 1, 1))
    begun.run()
    with pytest.raises(StudyError, match=r"kb\.checkpoints/a study holds checkpoints already, which would mix with"):
        study_of(db=tmp_path / "kb.sqlite").start()
    assert not (tmp_path / "kb.sqlite").exists()
    begun.run(resume=True)
    again = study_of(name="another", db=tmp_path / "kb.sqlite", scheduler=FullRuns(RandomSearcher(SPACE), 1, 1))
    assert again.run().frames().state == "ended"


@pytest.mark.parametrize(("place", "says"), [("nonsense://x", "Protocol not known"), ("oss://x", "ossfs")])
def test_a_place_that_cannot_be_reached_is_refused_before_anything_starts(study_of, tmp_path, place, says) -> None:
    with pytest.raises(InvalidInput, match=f"checkpoints cannot be kept at {place}: .*{says}"):
        study_of(checkpoints=place).start()
    assert list(tmp_path.iterdir()) == []


def test_a_place_whose_package_is_missing_is_told_with_the_extra_that_has_it(study_of, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)  # as where it is not installed
    with pytest.raises(InvalidInput, match=r"checkpoints cannot be kept at s3a://x/y: .*'rl-workbench\[s3\]'$"):
        study_of(checkpoints="s3a://x/y").start()


def test_a_place_that_gives_no_answer_as_a_study_begins_is_said_to_be_waited_for(study_of, monkeypatch) -> None:
    said, told, look = [], threading.Event(), MemoryFileSystem.ls

    def hear(message, *_) -> None:
        said.append(str(message))
        told.set()

    def late(*arguments, **settings):
        assert told.wait(60)
        return look(*arguments, **settings)

    MemoryFileSystem().pipe_file("/silent/trial-00000/phase-000/state", b"1")
    monkeypatch.setattr("workbench.cluster.place._SILENT_S", 0.01)
    monkeypatch.setattr(MemoryFileSystem, "ls", late)
    monkeypatch.setattr("warnings.showwarning", hear)
    with pytest.raises(StudyError, match="memory://silent holds checkpoints already"):
        study_of(checkpoints="memory://silent").start()
    assert said[0] == "the place of checkpoints memory://silent gives no answer yet: waiting for it"


def test_a_place_that_cannot_be_made_is_refused_before_anything_is_trained(study_of, tmp_path) -> None:
    (tmp_path / "file").touch()
    place = tmp_path / "file" / "weights"
    study = study_of(client=None, nodes=1, checkpoints=place)
    with pytest.raises(
        InvalidInput, match=rf"^checkpoints cannot be kept at {place} \(.*/file is a file\): name another"
    ):
        study.start()
    assert not (tmp_path / "kb.db").exists()
    StudyLog(study.db, study.name, study.spec).close()
    with pytest.raises(InvalidInput, match="file is a file"):
        study.start(resume=True)
