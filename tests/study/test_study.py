"""Studies on real worker processes: started, watched, stopped, resumed, refused."""

import asyncio
import contextlib
import multiprocessing
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from distributed import Client
from fsspec.implementations.memory import MemoryFileSystem

from tests.events import begun, ended, judged, runs
from tests.simulated import Clocked
from tests.support import FROM_HERE, SPACE, Deterministic, RandomTimes, Waits, small_disk
from workbench import (
    EvolutionSearcher,
    FullRuns,
    Hyperband,
    HyperTrick,
    KnowledgeBase,
    LogUniform,
    RandomSearcher,
    Space,
    Study,
    SuccessiveHalving,
    unique_name,
)
from workbench.analysis import learning_curves
from workbench.cli.main import main
from workbench.cluster import local
from workbench.cluster.place import Place
from workbench.core.errors import DatabaseError, InvalidInput, SchedulerError, StudyError
from workbench.core.failures import Hopeless
from workbench.core.ledger import Ledger
from workbench.core.living import NO_SLOT
from workbench.core.protocols import Event, Kind
from workbench.core.seeds import trial_seed
from workbench.core.size import Size
from workbench.knowledge import Controls, DiskFull, LogHeld, StudyLog, backup, check, driver_of, record
from workbench.simulation.cluster import VirtualCluster
from workbench.simulation.executor import SimulatedExecutor
from workbench.study.attached import AttachedStudy
from workbench.study.explore import Explorer
from workbench.study.progress import Progress, WatchedLog
from workbench.study.results import Results
from workbench.study.run import StudyRun, see_through
from workbench.study.saved import checkpoint_store, refuse_without_checkpoints
from workbench.study.unpack import refuse_taken
from workbench.viz.dashboard.board import Board
from workbench.viz.dashboard.feed import Feed, News


class Sizeless:
    """A scheduler that does not say how many trials it will ask for."""

    n_phases = 2

    def ask(self):
        return None

    def tell(self, report):
        return {}


@pytest.fixture
def study_of(client, tmp_path):
    def make(**changes) -> Study:
        settings = {
            "name": "a study",
            "scheduler": HyperTrick(RandomSearcher(SPACE), 8, 3),
            "trainable": Deterministic,
            "db": tmp_path / "kb.db",
            "client": client,
            **changes,
        }
        return Study(**settings)

    return make


def verdicts(run) -> list[tuple]:
    rows = run.frames().decisions[["trial", "phase", "verdict"]]
    return sorted(rows.itertuples(index=False, name=None))


def test_a_study_runs_in_the_background_and_is_remembered(study_of, tmp_path) -> None:
    run = study_of().start()
    assert run.wait(300)
    assert not run.running
    assert "ended" in repr(run)
    on_disk = sum(f.stat().st_size for f in (tmp_path / "kb.checkpoints").rglob("*") if f.is_file())
    assert f"checkpoints: {on_disk / 2**20:.1f} MiB" in repr(run)
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        frames = kb["a study"].frames()
    assert frames.state == "ended"
    assert len(frames.trials) == len(run.trials) == 8
    assert set(frames.trials["state"]) <= {"stopped", "finished"}
    assert run.progress.trials_ended == 8
    assert run.progress.phases_ended == len(frames.phases)
    assert frames.phases["phases_run"].tolist() == (frames.phases["phase"] + 1).tolist()


def test_a_study_object_stays_fresh_so_that_the_same_one_can_run_again(study_of) -> None:
    study = study_of(scheduler=FullRuns(RandomSearcher(SPACE), 3, 2))
    first = study.run()
    assert verdicts(first) == verdicts(replace(study, name="again").run())
    same = ["lr", "gamma", "seed", "last_score"]
    assert first.trials[same].equals(
        study_of(name="third", scheduler=FullRuns(RandomSearcher(SPACE), 3, 2)).run().trials[same]
    )


def fails(config, seed):
    """Be no trial."""
    raise ValueError("no")


def interrupted(*_, **__):
    """Be interrupted, as any wait may be."""
    raise KeyboardInterrupt


@pytest.mark.parametrize("interrupted", [interrupted, sys.exit])  # as dask_jobqueue has it
def test_ctrl_c_ends_a_study_cleanly_however_it_is_waited_for_and_says_so(
    study_of, tmp_path, capsys, interrupted
) -> None:
    study = study_of(scheduler=FullRuns(RandomSearcher(SPACE), 4, 3), trainable=Waits(str(tmp_path / "never"), 1))
    run = study.start()
    assert see_through(run, interrupted)
    assert run.frames().state == "interrupted"
    assert capsys.readouterr().err == "\nending the study; press Ctrl-C again to leave at once\n"
    assert not see_through(run, run.wait)  # it is over
    assert not capsys.readouterr().err


def test_a_study_runs_on_where_nobody_reads_its_progress_any_more(study_of) -> None:
    run = study_of(scheduler=FullRuns(RandomSearcher(SPACE), 2, 1)).start()
    reader, writer = os.pipe()
    os.close(reader)
    with contextlib.suppress(BrokenPipeError), open(writer, "w") as nobody:  # again, as it is closed
        assert not see_through(run, partial(run.follow, every_s=0.0, out=nobody))
    assert run.frames().state == "ended"


def test_a_second_ctrl_c_leaves_a_study_at_once(study_of, tmp_path, monkeypatch) -> None:
    study = study_of(scheduler=FullRuns(RandomSearcher(SPACE), 4, 3), trainable=Waits(str(tmp_path / "never"), 1))
    run = study.start()
    with monkeypatch.context() as patch:
        patch.setattr(run, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            see_through(run, run.wait)
    assert run.wait(300)  # it was told to end all the same
    assert run.frames().state == "interrupted"


def test_a_run_can_be_awaited(study_of) -> None:
    async def main():
        return await study_of().start()

    assert asyncio.run(main()).progress.state == "ended"


@pytest.mark.parametrize("attached", [False, True])
def test_who_awaits_a_run_can_be_cancelled_again_and_again_and_leaves_no_thread(study_of, tmp_path, attached) -> None:
    study = study_of(scheduler=FullRuns(RandomSearcher(SPACE), 4, 3), trainable=Waits(str(tmp_path / "never"), 1))
    run = study.start()

    async def main() -> set[threading.Thread]:
        before = {*threading.enumerate()}
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(AttachedStudy(run.db, run.name) if attached else run, 0.01)
        return {thread for thread in threading.enumerate() if thread.name.startswith("asyncio_")} - before

    assert not asyncio.run(main())
    assert run.running
    run.stop()
    assert run.wait(300)


def test_ctrl_c_is_heard_at_once_by_who_awaits_a_run(study_of, tmp_path) -> None:
    study = study_of(scheduler=FullRuns(RandomSearcher(SPACE), 4, 3), trainable=Waits(str(tmp_path / "never"), 1))
    run = study.start()

    async def main() -> None:
        asyncio.get_running_loop().call_later(0.05, signal.raise_signal, signal.SIGINT)
        await run

    try:
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(main())
        assert run.running
    finally:
        run.stop()  # it would hold the workers of all tests to come
    assert run.wait(300)


@pytest.mark.parametrize("attached", [False, True])
def test_what_ends_a_run_badly_is_raised_where_it_is_awaited(study_of, attached) -> None:
    run = study_of(trainable=fails).start()

    async def main() -> None:
        await (AttachedStudy(run.db, run.name) if attached else run)

    with pytest.raises(StudyError, match="failed alike"):
        asyncio.run(main())


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


def test_a_stopped_study_is_resumed_where_it_was(study_of, tmp_path) -> None:
    study = study_of(scheduler=FullRuns(RandomSearcher(SPACE), 4, 3), trainable=Waits(str(tmp_path / "go"), 1))
    run = study.start()
    while run.progress.phases_ended < 2:
        assert not run.wait(0.05)
    run.stop()
    assert run.wait(300)
    assert run.frames().state == "interrupted"

    (tmp_path / "go").touch()
    again = study.start(resume=True)
    assert again.wait(300)
    frames = again.frames()
    assert frames.state == "ended"
    assert sorted(zip(frames.phases["trial"], frames.phases["phase"], strict=True)) == [
        (t, p) for t in range(4) for p in range(3)
    ]
    assert (frames.phases["phases_run"] == frames.phases["phase"] + 1).all()
    calm = study_of(name="calm", scheduler=FullRuns(RandomSearcher(SPACE), 4, 3)).run()
    assert verdicts(again) == verdicts(calm)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_study_stopped_as_its_cluster_comes_up_is_interrupted_and_has_not_failed(
    study_of, monkeypatch, elsewhere
) -> None:
    monkeypatch.setattr(local, "_UP_S", 0.01)  # its workers would be too late
    run = study_of(client=None, nodes=2).start()
    (AttachedStudy(run.db, run.name) if elsewhere else run).stop()
    assert run.wait(300)  # raises what ends a study badly
    assert run.frames().state == "interrupted"


@pytest.mark.parametrize("stopped", [False, True])
def test_a_full_disk_holds_the_study_up_and_loses_nothing(study_of, tmp_path, stopped) -> None:
    with small_disk(tmp_path / "small", "16m") as disk:  # a log of 20 seconds fills 2 MB by itself
        study = study_of(
            scheduler=FullRuns(RandomSearcher(SPACE), 4, 3),
            trainable=Waits(str(tmp_path / "go"), 1),
            db=disk / "kb.db",
            checkpoints=str(tmp_path / "checkpoints"),
        )
        run = study.start()
        while run.progress.phases_ended < 2:
            assert not run.wait(0.05)
        with (disk / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
            while True:
                filler.write(bytes(512))
        (tmp_path / "go").touch()
        while "waiting for disk space to write the log" not in str(run.progress):
            assert not run.wait(0.05)
        if stopped:
            run.stop()
            with pytest.raises(DiskFull, match="make space"):
                run.wait(300)
        (disk / "filler").unlink()
        if stopped:
            run = study.start(resume=True)
        assert run.wait(300)
        frames = run.frames()
        assert frames.state == "ended"
        assert (frames.phases["phases_run"] == frames.phases["phase"] + 1).all()
        assert len(frames.phases) == 12
        assert check(disk / "kb.db") == []


def test_a_study_that_has_ended_can_be_resumed_and_ends_again(study_of) -> None:
    before = verdicts(study_of().run())
    assert verdicts(study_of().run(resume=True)) == before


def test_a_study_is_refused_where_no_workers_may_be_started_before_anything_is_written(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    study = Study("no", FullRuns(RandomSearcher(SPACE), 1, 1), Deterministic, tmp_path / "kb.db", nodes=1)
    with pytest.raises(InvalidInput, match=r"^a study starts worker processes, and .* daemonic.* or pass client=$"):
        study.start()
    assert not list(tmp_path.iterdir())
    with pytest.raises(InvalidInput, match=r"^a cluster starts worker processes, and .* daemonic"), study.executor():
        pass


def test_an_existing_study_is_refused_without_resume(study_of) -> None:
    study_of().run()
    with pytest.raises(StudyError, match=r"exists in .* resume it"):
        study_of().start()


def test_resuming_with_another_scheduler_is_refused_and_leaves_the_study_as_it_was(study_of) -> None:
    run = study_of().run()
    with KnowledgeBase(run.db) as kb:
        before = kb[run.name].events()
    with pytest.raises(StudyError, match=r"was started with scheduler\.n_phases = \d+, not 4: resume it as it was"):
        study_of(scheduler=HyperTrick(RandomSearcher(SPACE), 8, 4)).start(resume=True)
    with KnowledgeBase(run.db) as kb:
        assert kb[run.name].events() == before
    assert driver_of(run.db, run.name) is None


@pytest.mark.parametrize(
    ("scheduler", "since", "changes", "stood_at"),
    [
        (Hyperband(RandomSearcher(SPACE), 4, eta=2), "scheduler.rounds", {"rounds": 2}, "1, not 2"),
        (
            HyperTrick(RandomSearcher(SPACE), 4, 2),
            "scheduler.eviction_rate",
            {"eviction_rate": 0.5},
            "0.25, not 0.5",
        ),
        (SuccessiveHalving(RandomSearcher(SPACE), 4, 2, eta=2), "scheduler.n_configs", None, ""),  # made from n_trials
        (
            FullRuns(EvolutionSearcher(SPACE), 4, 2),
            "scheduler.searcher.warmup",
            {"searcher": EvolutionSearcher(SPACE, warmup=3)},
            "10, not 3",
        ),
    ],
)
def test_a_setting_that_is_new_since_a_study_was_recorded_stood_at_its_default(
    study_of, tmp_path, scheduler, since, changes, stood_at
) -> None:
    study_of(scheduler=scheduler).run()
    with contextlib.closing(sqlite3.connect(tmp_path / "kb.db")) as connection, connection:
        connection.execute("UPDATE studies SET spec = json_remove(spec, ?)", (f"$.{since}",))
    assert study_of(scheduler=scheduler).run(resume=True).frames().state == "ended"
    if changes is not None:
        with pytest.raises(StudyError, match=f"was started with {since} = {stood_at}: resume it as it was"):
            study_of(scheduler=replace(scheduler, **changes)).start(resume=True)


def test_a_scheduler_that_breaks_its_word_ends_the_study_with_its_error(study_of) -> None:
    class Broken(FullRuns):
        def tell(self, report):
            raise SchedulerError("a bug")

    run = study_of(scheduler=Broken(RandomSearcher(SPACE), 3, 2)).start()
    with pytest.raises(SchedulerError, match="a bug"):
        run.wait(300)
    assert run.frames().state == "interrupted"


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"nodes": 0}, InvalidInput, "nodes >= 1, got 0"),
        ({"name": ""}, InvalidInput, "a study's name"),
        ({"name": "../x"}, InvalidInput, "a study's name"),
        ({"name": "Ω" * 101}, InvalidInput, "200 bytes at most"),
        ({"name": "名" * 80}, InvalidInput, "200 bytes at most"),
        ({"checkpoints": "memory://night[12]"}, InvalidInput, r"without \* \? or \[.* got 'memory://night\[12\]'"),
        ({"checkpoints": __file__}, InvalidInput, "test_study.py is a file: a study's checkpoints are in a directory"),
        ({"checkpoints": "file:///runs/*"}, InvalidInput, "would stand for other places as well"),
        ({"checkpoints": "s3:/bucket/x"}, InvalidInput, "is neither .*: write s3://… or ./s3:/bucket/x$"),
        ({"checkpoints": "ftp://me:se@cret@host:21/x"}, InvalidInput, "^(?!.*cret).* has a password in it"),
        ({"judged_by": "bogus"}, InvalidInput, "unknown judged_by 'bogus'"),
        ({"judged_by": 3}, InvalidInput, "unknown judged_by '3'"),
        ({"judged_by": ["mean"]}, InvalidInput, "unknown judged_by"),
        ({"gpus_per_slot": "many"}, InvalidInput, "share of one GPU below 1, got 'many'"),
        ({"gpus_per_slot": float("inf")}, InvalidInput, "share of one GPU below 1, got inf"),
        ({"checkpoints": 3}, InvalidInput, "in a directory or at a URL, got 3"),
        ({"second": "phase"}, InvalidInput, "second names a metric that trials return beside score, got 'phase'"),
        ({"second": "wall_s"}, InvalidInput, "second names a metric that trials return beside score, got 'wall_s'"),
        ({"second_mode": "min"}, InvalidInput, "second_mode 'min' is of a second objective: name it"),
        ({"checkpoints": ""}, InvalidInput, "in a directory or at a URL, got ''"),
        ({"client": "tcp://127.0.0.1:8786"}, InvalidInput, r"got 'tcp://127.0.0.1:8786': pass Client\('tcp://…'\) or"),
        ({"seed": -1}, InvalidInput, "seed"),
        ({"max_retries": 1.5}, InvalidInput, "Study needs max_retries a whole number from 0, got 1.5"),
        ({"stall_s": "soon"}, InvalidInput, "Study needs stall_s a number above 0, got 'soon'"),
        ({"scheduler": HyperTrick}, InvalidInput, "scheduler is an object such as HyperTrick"),
        ({"scheduler": "hypertrick"}, InvalidInput, "scheduler is an object such as HyperTrick"),
        ({"scheduler": "hypertrick", "seeds": 3}, InvalidInput, "scheduler is an object such as HyperTrick"),
        ({"scheduler": Sizeless()}, InvalidInput, "Sizeless lacks n_trials, expected_phases: a scheduler has n_trials"),
        ({"callbacks": print}, InvalidInput, "callbacks"),
        ({"scheduler": FullRuns(RandomSearcher(Space({"seed": LogUniform(1, 2)})), 3, 2)}, InvalidInput, "called seed"),
    ],
)
def test_bad_settings_are_refused_before_anything_starts(study_of, tmp_path, changes, error, says) -> None:
    with pytest.raises(error, match=says):
        study_of(**changes)
    assert list(tmp_path.iterdir()) == []


def test_numpys_numbers_may_stand_among_a_study_s_settings(study_of) -> None:
    numbers = {"max_retries": np.int64(1), "stall_s": np.float32(300), "gpus_per_slot": np.float32(0.5)}
    numbers |= {"nodes": np.int64(2), "weight": np.float64(0.5), "fail_fast": np.bool_(False)}
    run = study_of(scheduler=FullRuns(RandomSearcher(SPACE), 1, 1), seed=np.int64(3), **numbers).run()
    with KnowledgeBase(run.db) as kb:
        assert kb["a study"].spec["seed"] == 3
        settings = kb["a study"].events(Kind.STUDY_STARTED)[0].data["settings"]
    assert [settings[name] for name in numbers if name != "nodes"] == [1, 300.0, 0.5, 0.5, False]


def test_a_client_that_has_been_closed_is_refused(study_of, client) -> None:
    closed = Client(client.scheduler.address, security=client.security, set_as_default=False)
    closed.close()
    with pytest.raises(InvalidInput, match=r"client is a distributed\.Client of a running cluster, got <Client"):
        study_of(client=closed)


def test_a_place_of_checkpoints_may_be_a_path(study_of, tmp_path) -> None:
    assert study_of(checkpoints=tmp_path / "weights").checkpoints == str(tmp_path / "weights")


def test_a_place_of_checkpoints_may_begin_at_home(study_of, tmp_path, monkeypatch) -> None:
    """No shell sees to it in a study file, in Python, or in ``--checkpoints=~/x``."""
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    study = study_of(checkpoints=Path("~/weights"))
    assert study.checkpoints == study.checkpoint_store.root == f"{tmp_path}/me/weights"
    assert study_of(checkpoints="memory://~/weights").checkpoints == "memory://~/weights"
    assert checkpoint_store(study.db, "gone", "~/weights").root == f"{tmp_path}/me/weights"


def test_a_knowledge_base_may_be_at_home(study_of, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert study_of(db="~/kb.db").db == tmp_path / "kb.db"
    StudyLog(tmp_path / "kb.db", "one", {"scheduler": {}, "trainable": {}, "seed": 0}).close()
    assert unique_name("one", "~/kb.db") == "one-2"
    assert main(["studies", "--db=~/kb.db"]) == 0
    assert "one" in capsys.readouterr().out
    assert Results.open("~/kb.db", "one").db == AttachedStudy("~/kb.db", "one").db == tmp_path / "kb.db"
    assert [*Explorer("~/kb.db").results] == ["one"]
    check("~/kb.db")


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


def test_a_database_that_is_a_folder_is_refused_in_one_line(study_of, tmp_path) -> None:
    with pytest.raises(DatabaseError, match="is a folder, and a knowledge base is a file"):
        study_of(db=tmp_path).start()
    (tmp_path / "file").touch()
    with pytest.raises(DatabaseError, match="there can be no knowledge base"):
        study_of(db=tmp_path / "file" / "kb.db").start()


def test_a_name_is_free_where_the_knowledge_base_is_being_made(study_of, tmp_path) -> None:
    (tmp_path / "kb.db").touch()
    assert unique_name("a study", tmp_path / "kb.db") == "a study"
    refuse_taken(tmp_path / "kb.db", "a study")
    assert study_of(scheduler=FullRuns(RandomSearcher(SPACE), 1, 1)).run().frames().state == "ended"
    assert unique_name("a study", tmp_path / "kb.db") == "a study-2"


def test_a_database_that_is_none_is_refused(study_of, tmp_path) -> None:
    (tmp_path / "kb.db").write_text("not a database, but long enough to be taken for one" * 20)
    with pytest.raises(DatabaseError, match="cannot be read"):
        study_of().start()


_DRIVER = """
import sys
import threading
from tests.support import SPACE, Waits
from workbench import FullRuns, RandomSearcher, Study
if __name__ == "__main__":
    folder = sys.argv[1]
    study = Study("killed", FullRuns(RandomSearcher(SPACE), 3, 3), Waits(folder + "/go", 1), folder + "/kb.db")
    run = study.start()
    while run.progress.phases_ended < 2:
        run.wait(0.05)
    print("two phases", flush=True)
    run.wait()
"""


def test_the_clock_goes_on_from_the_last_sign_of_life_of_a_driver_that_was_killed(tmp_path, monkeypatch) -> None:
    simulated = Clocked(RandomTimes(1), VirtualCluster(1))
    monkeypatch.setattr(Study, "executor", lambda *_: contextlib.nullcontext(simulated))
    study = Study("killed", FullRuns(RandomSearcher(SPACE), 1, 1), Deterministic, tmp_path / "kb.db", nodes=1)
    log = StudyLog(study.db, "killed", study.spec)
    config = dict(RandomSearcher(SPACE).suggest(0))
    log.append([
        Event(Kind.STUDY_STARTED, 0.0, data={"code": {}}),
        Event(Kind.SLOT_JOINED, 0.0, slot=0, data={"node": "n"}),
        Event(Kind.RUN, 0.0, 0, 0, data={"config": config, "seed": 0, "parent": None}),
        Event(Kind.PHASE_STARTED, 0.0, 0, 0, 0),
        Event(Kind.PROGRESS, 1.0, 0, 0, 0, {"metrics": {"score": 7.0}}),
        Event(Kind.PROGRESS, 3600.0, 0, 0, 0, {"metrics": {"score": 8.0}}),
    ])  # fmt: skip
    log.close()  # as the operating system does
    attached = AttachedStudy(study.db, "killed")
    assert attached.progress.at == attached.results().summary["wall_s"] == 3600.0
    run = study.start(resume=True)
    assert run.wait(60)
    frames = run.frames()
    lost, again = frames.spans[["started_s", "ended_s", "outcome"]].to_numpy().tolist()
    assert lost == [0.0, 3600.0, "lost"]
    assert again[0] == pytest.approx(3600.0)
    assert learning_curves(frames.phases, frames.metrics)["phase_end"].tolist() == [True]
    assert run.progress.at == frames.wall_s > 3600


@pytest.fixture
def virtual(tmp_path, monkeypatch):
    """Makes studies of one slot whose phases take about a second each, in virtual time."""
    monkeypatch.setattr(
        Study, "executor", lambda *_: contextlib.nullcontext(Clocked(RandomTimes(1), VirtualCluster(1)))
    )
    scheduler = FullRuns(RandomSearcher(SPACE), 4, 5)
    return lambda **given: Study("virtual", scheduler, Deterministic, tmp_path / "kb.db", nodes=1, **given)


def test_the_hours_of_a_study_are_counted_over_all_its_drivers(virtual) -> None:
    first = virtual(max_hours=5 / 3600).run().frames()
    again = virtual(max_hours=8 / 3600).run(resume=True)
    with KnowledgeBase(again.db) as kb:
        turns = [e for e in kb["virtual"].events() if e.kind in (Kind.STUDY_RESUMED, Kind.STUDY_ENDED)]
    assert [e.kind for e in turns] == [Kind.STUDY_ENDED, Kind.STUDY_RESUMED, Kind.STUDY_ENDED]
    assert [round(e.at) for e in turns] == [round(first.wall_s), round(first.wall_s), round(again.frames().wall_s)]
    assert 5 <= first.wall_s < 8 <= again.frames().wall_s < 13
    assert len(first.phases) < len(again.frames().phases) < 20


def test_trials_are_seeded_by_their_study_and_as_before_when_it_is_resumed(virtual) -> None:
    virtual(seed=7, max_hours=2 / 3600).run()
    assert len(virtual(seed=7).run(resume=True).trials) == 4
    assert AttachedStudy(virtual().db, "virtual").trials["seed"].tolist() == [trial_seed(7, t) for t in range(4)]


def test_a_driver_is_not_stopped_by_what_its_predecessor_was_asked(virtual) -> None:
    first = virtual(max_hours=2 / 3600).run()
    Controls(first.db, "virtual").stop_study()
    again = virtual().run(resume=True)
    assert (again.progress.state, again.stopped, again.progress.phases_ended) == ("ended", False, 20)


def test_a_study_is_stopped_from_elsewhere_while_its_log_waits(virtual, monkeypatch) -> None:
    monkeypatch.setattr("workbench.study.progress._DISK_RETRY_S", 0.01)
    append, waits = StudyLog.append, threading.Event()

    def held(log, events) -> None:
        if waits.is_set() or any(e.kind is Kind.PHASE_ENDED for e in events):
            waits.set()
            raise LogHeld("held by another")
        append(log, events)

    monkeypatch.setattr(StudyLog, "append", held)
    run = virtual().start()
    try:
        assert waits.wait(300)
        Controls(run.db, "virtual").stop_study()
        with pytest.raises(LogHeld):
            run.wait(300)
    finally:
        run.stop()


def test_a_resumed_study_whose_next_trials_fail_goes_on(virtual, monkeypatch) -> None:
    """Only a study of which no phase has ended yet is stopped by its first trials."""

    def fail(executor, attempt, result) -> None:
        executor._book.attempt_lost(attempt, "exception", "ValueError: no", executor.now, retry=False)

    scheduler = FullRuns(RandomSearcher(SPACE), 6, 1)
    first = replace(virtual(max_hours=1.5 / 3600), scheduler=scheduler).run()
    assert 0 < first.progress.phases_ended < 4
    monkeypatch.setattr(SimulatedExecutor, "_end", fail)
    assert replace(virtual(), scheduler=scheduler).run(resume=True).progress.state == "ended"


def test_a_note_that_comes_while_a_study_lets_go_of_its_cluster_is_written_down(tmp_path, monkeypatch) -> None:
    @contextlib.contextmanager
    def lets_go_slowly(*_):
        yield Clocked(RandomTimes(1), VirtualCluster(1))
        Controls(tmp_path / "kb.db", "noted").note("late")

    monkeypatch.setattr(Study, "executor", lets_go_slowly)
    run = Study("noted", FullRuns(RandomSearcher(SPACE), 1, 1), Deterministic, tmp_path / "kb.db", nodes=1).run()
    assert run.frames().notes["text"].tolist() == ["late"]


_ENDS = """
from workbench import FullRuns, LogUniform, Study

def train(config):
    yield config["lr"]

run = Study("mine", FullRuns({"lr": LogUniform(1e-3, 1.0)}, 2, 1), train, db="kb.db", nodes=1).start()
"""


@pytest.mark.parametrize(
    ("then", "said"),
    [
        ("", ["study 'mine' is cut off", "run.wait()", "study.start(resume=True)"]),
        ("run.wait()", []),
        ("run.stop()", []),
    ],
)
def test_a_script_that_ends_before_its_study_says_so(tmp_path, then, said) -> None:
    (tmp_path / "script.py").write_text(f"{_ENDS}{then}\n")
    env = {**os.environ, **FROM_HERE}
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0
    assert all(words in done.stderr for words in said), done.stderr
    assert ("cut off" in done.stderr) == bool(said), done.stderr


def test_a_script_that_is_interrupted_while_trials_run_tells_of_no_other_errors(tmp_path) -> None:
    begins = "run = Study('mine', FullRuns({'lr': LogUniform(1e-3, 1.0)}, 2, 1), train, db='kb.db', nodes=2).start()"
    (tmp_path / "script.py").write_text(
        "import signal, threading\n"
        "from pathlib import Path\n"
        "from workbench import FullRuns, LogUniform, Study\n"
        "def train(config):\n"
        "    Path(str(config['lr'])).touch()\n"
        "    threading.Event().wait()\n"
        "    yield 0.0\n"
        f"signal.signal(signal.SIGINT, signal.default_int_handler)\n{begins}\n"
        "while len([*Path().glob('0.*')]) < 2:\n"
        "    run.wait(0.1)\n"
        "signal.raise_signal(signal.SIGINT)\n"
    )
    env = {**os.environ, **FROM_HERE}
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert "study 'mine' is cut off" in done.stderr
    assert done.stderr.count("Traceback") == 1, done.stderr  # KeyboardInterrupt's own


@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_driver_that_died_is_followed_by_another(study_of, tmp_path, how) -> None:
    (tmp_path / "driver.py").write_text(_DRIVER)
    driver = subprocess.Popen(
        [sys.executable, str(tmp_path / "driver.py"), str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **FROM_HERE},
        start_new_session=True,
    )
    assert driver.stdout is not None
    assert driver.stdout.readline() == b"two phases\n"
    os.killpg(driver.pid, how)  # its cluster dies with it
    driver.wait()
    driver.stdout.close()

    (tmp_path / "go").touch()
    study = study_of(
        name="killed", scheduler=FullRuns(RandomSearcher(SPACE), 3, 3), trainable=Waits(str(tmp_path / "go"), 1)
    )
    run = study.run(resume=True)
    frames = run.frames()
    assert sorted(zip(frames.phases["trial"], frames.phases["phase"], strict=True)) == [
        (t, p) for t in range(3) for p in range(3)
    ]
    assert (frames.phases["phases_run"] == frames.phases["phase"] + 1).all()
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        ended = [(e.trial, e.phase) for e in kb["killed"].events() if e.kind is Kind.PHASE_ENDED]
    assert len(ended) == len(set(ended)) == 9


def test_controls_reach_a_running_study_and_the_answers_stand_in_its_log(study_of, tmp_path) -> None:
    study = study_of(scheduler=FullRuns(RandomSearcher(SPACE), 3, 2), trainable=Waits(str(tmp_path / "go"), 1))
    run = study.start()
    while run.progress.phases_ended < 2:
        assert not run.wait(0.05)
    run.controls.stop(0)
    run.controls.pause(1)
    run.controls.stop(77)
    while len(run.frames().interventions) < 3:
        assert not run.wait(0.05)
    (tmp_path / "go").touch()
    assert run.wait(300)
    frames = run.frames()
    assert frames.interventions[["trial", "action", "accepted"]].astype(object).fillna(-1).to_numpy().tolist() == [
        [0, "stop", True],
        [1, "pause", True],
        [-1, "stop", False],
    ]
    assert "there is no trial 77" in frames.interventions["why"].iloc[2]
    assert frames.trials.set_index("trial")["state"].to_dict() == {0: "stopped", 1: "finished", 2: "finished"}
    assert frames.trials.set_index("trial").loc[0, "mode"] == "person"
    assert "stopped" in set(frames.spans["outcome"])
    assert check(tmp_path / "kb.db") == []
    assert run.study.start(resume=True).wait(300)


@pytest.mark.slow
def test_a_local_cluster_is_scaled_by_a_request(tmp_path) -> None:
    study = Study(
        "grows", FullRuns(RandomSearcher(SPACE), 4, 2), Waits(str(tmp_path / "go"), 1), tmp_path / "kb.db", nodes=1
    )
    run = study.start()
    while run.progress.phases_ended < 1:
        assert not run.wait(0.05)
    run.controls.scale(3)
    while len(run.frames().slots) < 3:
        assert not run.wait(0.05)
    (tmp_path / "go").touch()
    assert run.wait(300)
    assert run.frames().spans["slot"].nunique() == 3


def test_what_is_left_is_never_more_than_the_time_a_study_may_take():
    progress = Progress(Size(1000, expected_phases=1000.0))
    progress.see(Event(Kind.STUDY_STARTED, 0.0, data={"aim": {"max_hours": 0.01}}))
    assert progress.eta_s == 36.0
    progress.see(Event(Kind.RUN, 0.0, 0, 0, data={"config": {"lr": 0.1}, "seed": 0, "parent": None}))
    progress.see(Event(Kind.PHASE_ENDED, 9.0, 0, 0, 0, {"score": 1.0}))
    assert (progress.eta_s, progress.share) == (27.0, 0.25)
    assert "about 0:27 left" in str(progress)
    progress.see(Event(Kind.INTERVENTION, 10.0, data={"action": "pause study", "accepted": True}))
    assert (progress.state, progress.eta_s) == ("paused", None)
    progress.see(Event(Kind.STUDY_INTERRUPTED, 10.0, data={}))
    assert "paused" not in str(progress)
    progress.see(Event(Kind.STUDY_RESUMED, 10.0, data={}))
    assert str(progress).endswith(" · paused by a person: controls.resume_study(), or the dashboard, lets it go on")


def test_the_clock_does_not_step_back_to_an_event_that_is_heard_late():
    progress = Progress(Size(1))
    progress.see(Event(Kind.SLOT_JOINED, 10.0, slot=0, data={"node": "n"}))
    while progress.at <= 10.0:
        progress.go_on(driven=True)
    shown = progress.at
    progress.see(Event(Kind.RUN, 10.0, 0, 0, data={"config": {}, "seed": 0, "parent": None}))
    assert progress.at == shown
    progress.pass_to(10.0)
    assert progress.at == shown
    progress.see(Event(Kind.STUDY_ENDED, 10.0))
    assert progress.at == 10.0  # the study took no longer


def _slots_with_phases(slots, phases):
    """Tell of so many slots, each of which has run so many phases of 100 s with as many trials, one after another."""
    for slot in range(slots):
        yield Event(Kind.SLOT_JOINED, 0.0, slot=slot, data={"node": "n"})
    for n in range(slots * phases):
        begun = 100.0 * (n // slots)
        yield Event(Kind.RUN, begun, n, 0, data={"config": {}, "seed": 0, "parent": None})
        yield Event(Kind.PHASE_STARTED, begun, n, 0, n % slots)
        yield Event(Kind.PHASE_ENDED, begun + 100, n, 0, n % slots, {"score": 1.0})
        yield Event(Kind.DECISION, begun + 100, n, 0, data={"verdict": "stop"})


def test_what_is_left_is_told_by_the_phases_and_the_slots_that_live():
    progress = Progress(Size(80, expected_phases=80.0))
    assert progress.eta_s is None
    events = [*_slots_with_phases(8, 5), *(Event(Kind.SLOT_LOST, 500.0, slot=k) for k in range(7))]
    for event in events:
        progress.see(event)
    assert (progress.expected_phases, progress.eta_s) == (80.0, 4000.0)
    board = Board("same", Size(80, expected_phases=80.0))
    board.take(News(events))
    assert board.state()["left_s"] == [4000.0, 4000.0]
    progress.see(Event(Kind.STUDY_RESUMED, 500.0))  # no slot has come yet
    assert progress.eta_s is None


def test_what_is_left_at_most_is_not_told_while_phases_run_longer_than_any_that_has_ended():
    progress, board = Progress(Size(200, expected_phases=200.0)), Board("slow", Size(200, expected_phases=200.0))
    events = [Event(Kind.SLOT_JOINED, 0.0, slot=slot, data={"node": "n"}) for slot in range(16)]
    for n in range(16):
        events.append(Event(Kind.RUN, 0.0, n, 0, data={"config": {}, "seed": 0, "parent": None}))
        events.append(Event(Kind.PHASE_STARTED, 0.0, n, 0, n))
    events += [Event(Kind.PHASE_ENDED, 2.0, n, 0, n, {"score": 1.0}) for n in range(3)]
    events.append(Event(Kind.SLOT_LOST, 9.0, slot=0))
    for event in events:
        progress.see(event)
    board.take(News(events))
    low, high = board.state()["left_s"]
    assert low > 0
    assert high is None
    assert progress.eta_s is None
    assert "left" not in str(progress)


def test_frames_a_second_are_those_of_trials_that_run_as_they_last_grew(tmp_path):
    """In the study's own process, attached from elsewhere, at a first look too, and on a dashboard."""
    log, progress, board = StudyLog(tmp_path / "kb.db", "fast", {}), Progress(Size(2)), Board("fast", Size(2))
    away, feed = AttachedStudy(tmp_path / "kb.db", "fast"), Feed(tmp_path / "kb.db", "fast")

    def rate(*events: Event) -> float:
        log.append(events)
        board.take(feed.news())
        for event in events:
            progress.see(event)
        first = AttachedStudy(tmp_path / "kb.db", "fast").progress
        (told,) = {p.frames_per_s for p in (progress, away.progress, first)} | {board.state()["frames_per_s"]}
        return told

    for trial in (0, 1):
        run = Event(Kind.RUN, 0.0, trial, 0, data={"config": {}, "seed": 0, "parent": None})
        assert rate(run, Event(Kind.PHASE_STARTED, 0.0, trial, 0, trial)) == 0
    seen = [(1, 0, 100, 0), (3, 0, 500, 200), (3, 1, 0, 200), (5, 1, 40, 220), (6, 0, 300, 220), (8, 0, 500, 120)]
    for at, trial, frames, expected in seen:  # trial 0 begins its phase again meanwhile
        metrics = {"frames": float(frames), "loss": 1.0}
        assert rate(Event(Kind.PROGRESS, float(at), trial, 0, trial, {"metrics": metrics})) == expected
    assert rate(ended(9.0, 0, 0, 0, 1.0, frames=600.0), judged(9.0, 0, 0, "stop", "m")) == 20
    late = Event(Kind.PROGRESS, 9.5, 0, 0, 0, {"metrics": {"frames": 700.0}})
    assert rate(late) == 20
    assert rate(Event(Kind.PHASE_FAILED, 10.0, 1, 0, 1, {"error": "died"})) == 0

    def reports(at: float, phase: int, frames: float) -> Event:
        return Event(Kind.PROGRESS, at, 2, phase, 0, {"metrics": {"frames": frames}})

    pauses, resumes = (
        Event(Kind.INTERVENTION, at, data={"action": f"{what} study", "accepted": True})
        for at, what in ((13.5, "pause"), (100.0, "resume"))
    )
    assert rate(runs(10.0, 2, {}), begun(10.0, 2, 0), reports(12.0, 0, 100.0), reports(13.0, 0, 200.0)) == 100
    assert rate(pauses, ended(14.0, 2, 0, 0, 1.0, frames=300.0), judged(14.0, 2, 0, "continue", "m")) == 0
    assert rate(resumes, begun(100.0, 2, 1), reports(101.0, 1, 400.0)) == 0  # it did not run since it was last heard
    assert rate(reports(102.0, 1, 500.0)) == 100
    feed.close()
    log.close()


@pytest.mark.parametrize("then", [Kind.STUDY_INTERRUPTED, Kind.STUDY_RESUMED, Kind.STUDY_ENDED])
def test_nothing_that_an_earlier_driver_ran_has_frames_a_second(then):
    progress = Progress(Size(2, expected_phases=4.0))
    progress.see(Event(Kind.RUN, 0.0, 0, 0, data={"config": {}, "seed": 0, "parent": None}))
    progress.see(Event(Kind.PHASE_STARTED, 0.0, 0, 0, 0))
    for at in (1.0, 2.0):
        progress.see(Event(Kind.PROGRESS, at, 0, 0, 0, {"metrics": {"frames": 1000.0 * at}}))
    assert progress.frames_per_s == 1000
    progress.see(Event(then, 3.0))
    assert progress.frames_per_s == 0


def test_a_study_that_no_worker_is_up_for_says_so(monkeypatch):
    monkeypatch.setattr("workbench.core.living._PATIENCE_S", -1.0)
    progress = Progress(Size(2, expected_phases=4.0))
    progress.see(Event(Kind.STUDY_STARTED, 0.0))
    assert NO_SLOT not in str(progress)  # nobody is known to drive it
    progress.go_on(driven=True)
    assert str(progress).endswith(f" · {NO_SLOT}")
    progress.message = "waiting for disk space to write the log"
    assert str(progress).endswith(f" · {progress.message}")
    progress.message = ""
    progress.see(Event(Kind.SLOT_JOINED, 0.0, slot=0, data={"node": "a"}))
    assert NO_SLOT not in str(progress)
    progress.see(Event(Kind.SLOT_LOST, 0.0, slot=0, data={"node": "a"}))
    assert NO_SLOT in str(progress)
    progress.see(Event(Kind.STUDY_ENDED, 1.0))
    assert NO_SLOT not in str(progress)


def test_a_study_whose_slots_are_all_held_while_a_trial_has_none_says_so(monkeypatch):
    """A node has left for good, and nobody gives up a slot: it stood still without a word."""
    monkeypatch.setattr("workbench.core.living._PATIENCE_S", -1.0)
    progress = Progress(Size(2, expected_phases=4.0))
    progress.see(Event(Kind.STUDY_STARTED, 0.0))
    for trial in (0, 1):
        progress.see(Event(Kind.SLOT_JOINED, 0.0, slot=trial, data={"node": f"m-{trial}"}))
        progress.see(Event(Kind.RUN, 0.0, trial, 0, data={"config": {}, "seed": 0, "parent": None}))
        progress.see(Event(Kind.PHASE_STARTED, 0.0, trial, 0, trial))
    progress.see(Event(Kind.PHASE_ENDED, 1.0, 0, 0, 0, {"score": 1.0}))
    progress.see(Event(Kind.DECISION, 1.0, 0, 0, data={"verdict": "hold", "mode": "waiting"}))
    progress.go_on(driven=True)
    assert NO_SLOT not in str(progress)
    progress.see(Event(Kind.SLOT_LOST, 2.0, slot=1, data={"node": "m-1"}))
    progress.see(Event(Kind.PHASE_FAILED, 2.0, 1, 0, 1, {"why": "crash"}))
    assert str(progress).endswith(f" · {NO_SLOT}")
    progress.see(Event(Kind.SLOT_JOINED, 3.0, slot=1, data={"node": "m-1"}))
    progress.see(Event(Kind.PHASE_STARTED, 3.0, 1, 0, 1))
    assert NO_SLOT not in str(progress)


class FullLog:
    """A log that cannot be written to so many times."""

    def __init__(self, times: int, error=DiskFull) -> None:
        self.times, self.error, self.written = times, error, []

    def append(self, events) -> None:
        self.times -= 1
        if self.times >= 0:
            raise self.error("make space")
        self.written += events


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (DiskFull, "waiting for disk space to write the log"),
        (LogHeld, "waiting for another process to let go of the log"),
    ],
)
def test_what_keeps_the_log_from_being_written_is_waited_for_unless_the_study_is_to_end(
    monkeypatch, error, said
) -> None:
    monkeypatch.setattr("workbench.study.progress._DISK_RETRY_S", 0.0)
    log, progress, stopping, heard = FullLog(3, error), Progress(Size(1)), threading.Event(), []
    watched = WatchedLog(log, progress, stopping.wait, Hopeless(), heard.extend)
    watched.append([Event(Kind.STUDY_STARTED, 1.0)])
    assert (log.written, progress.at, progress.message) == (heard, 1.0, "")
    log.times = 3
    stopping.set()
    with pytest.raises(error, match="make space"):
        watched.append([Event(Kind.STUDY_ENDED, 2.0)])
    assert (len(log.written), progress.at, progress.message) == (1, 1.0, said)


def test_that_a_trial_went_on_from_an_older_checkpoint_is_warned_of_once() -> None:
    watched = WatchedLog(FullLog(0), Progress(Size(1)), threading.Event().wait, Hopeless())
    events, ended = [], {"score": 1.0, "recovered": "went on from the beginning"}
    for trial in (0, 1):
        events.append(Event(Kind.RUN, 0.0, trial, 0, data={"config": {}, "seed": 0, "parent": None}))
        events.append(Event(Kind.PHASE_ENDED, 1.0, trial, 0, 0, ended))
    with pytest.warns(UserWarning, match="trial 0 went on from the beginning; others are in the log") as said:
        watched.append(events)
    assert len(said) == 1


def test_bars_are_full_when_a_study_has_ended_though_trials_still_wait():
    progress = Progress(Size(4, expected_phases=6.0))
    run = {"config": {"lr": 0.1}, "seed": 0, "parent": None}
    progress.see(Event(Kind.RUN, 0.0, 0, 0, data=run))
    progress.see(Event(Kind.PHASE_STARTED, 0.0, 0, 0, 0))
    progress.see(Event(Kind.PHASE_ENDED, 1.0, 0, 0, 0, {"score": 1.0}))
    progress.see(Event(Kind.DECISION, 1.0, 0, 0, data={"verdict": "pause"}))
    assert "<progress value=0 max=4>" in progress._repr_html_()
    assert "phases: 1 of about 6" in str(progress)
    progress.see(Event(Kind.STUDY_ENDED, 2.0))
    assert str(progress).endswith(" · phases: 1")  # what was expected once is not what there is
    assert "<progress value=4 max=4>" in progress._repr_html_()
    assert "<progress value=1.000 max=1>" in progress._repr_html_()


def test_progress_is_looked_at_while_its_driver_tells_of_trials() -> None:
    progress, told, failed = Progress(Size(5000, None, 2, 9000.0, (5000.0, 4000.0), (5000.0, 3000.0))), [], []

    def look() -> None:
        try:
            for _ in range(300):  # where it is not held, the first few tell
                if told:
                    break
                str(progress)
        except RuntimeError as err:
            failed.append(err)

    often, looking = sys.getswitchinterval(), threading.Thread(target=look)
    sys.setswitchinterval(1e-6)  # so that threads meet everywhere
    looking.start()
    try:
        for n in range(1500):
            progress.see(Event(Kind.RUN, 0.0, n, 0, data={"config": {}, "seed": 0, "parent": None}))
            progress.see(Event(Kind.PROGRESS, float(n), n, 0, data={"metrics": {"frames": 1.0}}))
    finally:
        told.append(True)
        looking.join()
        sys.setswitchinterval(often)
    assert failed == []
