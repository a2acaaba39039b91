"""Studies on real worker processes: what they are made of, remembered, refused, resumed as they were."""

import contextlib
import multiprocessing
import sqlite3
from dataclasses import replace

import numpy as np
import pytest
from distributed import Client

from tests.study.conftest import verdicts
from tests.support import SPACE, Deterministic
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
from workbench.cli.main import main
from workbench.core.errors import DatabaseError, InvalidInput, StudyError
from workbench.core.protocols import Kind
from workbench.knowledge import StudyLog, check, driver_of
from workbench.study.attached import AttachedStudy
from workbench.study.explore import Explorer
from workbench.study.results import Results
from workbench.study.unpack import refuse_taken


class Sizeless:
    """A scheduler that does not say how many trials it will ask for."""

    n_phases = 2

    def ask(self):
        return None

    def tell(self, report):
        return {}


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
