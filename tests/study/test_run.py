"""Studies on real worker processes while they run: watched, interrupted, stopped, resumed, followed by another."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from functools import partial

import pytest

from tests.simulated import Clocked
from tests.study.conftest import verdicts
from tests.support import FROM_HERE, SPACE, Deterministic, RandomTimes, Waits, small_disk
from workbench import FullRuns, KnowledgeBase, RandomSearcher, Study
from workbench.analysis import learning_curves
from workbench.cluster import local
from workbench.core.errors import SchedulerError, StudyError
from workbench.core.protocols import Event, Kind
from workbench.core.seeds import trial_seed
from workbench.knowledge import Controls, DiskFull, LogHeld, StudyLog, check
from workbench.simulation.cluster import VirtualCluster
from workbench.simulation.executor import SimulatedExecutor
from workbench.study.attached import AttachedStudy
from workbench.study.run import see_through


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


def test_a_scheduler_that_breaks_its_word_ends_the_study_with_its_error(study_of) -> None:
    class Broken(FullRuns):
        def tell(self, report):
            raise SchedulerError("a bug")

    run = study_of(scheduler=Broken(RandomSearcher(SPACE), 3, 2)).start()
    with pytest.raises(SchedulerError, match="a bug"):
        run.wait(300)
    assert run.frames().state == "interrupted"


_DRIVER = """
import sys
import threading
from tests.support import SPACE, Waits
from workbench import FullRuns, RandomSearcher, Study
if __name__ == "__main__":
    folder = sys.argv[1]
    study = Study("killed", FullRuns(RandomSearcher(SPACE), 3, 3), Waits(folder + "/go", 1), folder + "/kb.db", nodes=1)
    run = study.start()
    while run.progress.phases_ended < 1:
        run.wait(0.05)
    print("a phase", flush=True)
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
    begins = "run = Study('mine', FullRuns({'lr': LogUniform(1e-3, 1.0)}, 2, 1), train, db='kb.db', nodes=1).start()"
    (tmp_path / "script.py").write_text(
        "import signal, threading\n"
        "from pathlib import Path\n"
        "from workbench import FullRuns, LogUniform, Study\n"
        "def train(config):\n"
        "    Path(str(config['lr'])).touch()\n"
        "    threading.Event().wait()\n"
        "    yield 0.0\n"
        f"signal.signal(signal.SIGINT, signal.default_int_handler)\n{begins}\n"
        "while not [*Path().glob('0.*')]:\n"
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
    assert driver.stdout.readline() == b"a phase\n"
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
