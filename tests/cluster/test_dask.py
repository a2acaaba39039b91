"""Trials on real worker processes: kept alive, killed, hung, failing, cancelled."""

import contextlib
import ctypes
import math
import os
import platform
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from distributed import Client, LocalCluster

from tests.cluster.conftest import stalls_once
from tests.support import (
    SPACE,
    Deterministic,
    MemoryLog,
    Plays,
    Waits,
    assert_returns_logged,
    free_port,
    score_of,
    until,
)
from workbench.algos.search import FullRuns, HyperTrick, RandomSearcher
from workbench.cluster.attempts import Attempt
from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.dask import DaskExecutor
from workbench.cluster.local import local_client
from workbench.cluster.slots import Slot
from workbench.cluster.tasks import Tasks
from workbench.core.drive import drive
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Job, Kind, Verdict
from workbench.core.record import PACKAGE

CRASHES = ("kill", "crash_natively")


@dataclass(frozen=True)
class Misbehaves:
    """Does `what` in phase 1 as long as the file `once` is absent; makes the file first."""

    once: str
    what: str = "nothing"

    def __call__(self, config, seed):
        return _Misbehaving(self, config, seed)


def first_here(path: Path) -> bool:
    """Make a file; tell whether it was not there."""
    with contextlib.suppress(FileExistsError):
        path.touch(exist_ok=False)
        return True
    return False


class _Misbehaving(Deterministic):
    def __init__(self, how: Misbehaves, config, seed) -> None:
        super().__init__(config, seed)
        self.how = how

    def train_phase(self, progress):
        if self.phase == 1 and (self.how.once == "always" or first_here(Path(self.how.once))):
            getattr(self, self.how.what)(progress)
        return {**super().train_phase(progress), "pid": float(os.getpid())}

    def nothing(self, progress) -> None: ...

    def kill(self, progress) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def hang(self, progress) -> None:
        threading.Event().wait()

    def stop_process(self, progress) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)

    def crash_natively(self, progress) -> None:
        ctypes.string_at(0)

    def hold_the_gil(self, progress) -> None:
        re.match(r"(a+)+$", "a" * 60 + "b")  # takes longer than the universe is old, in C

    def deadlock_the_emulator(self, progress) -> None:
        from ale_py.vector_env import AtariVectorEnv  # here, for a worker's first phase must not wait for it

        envs = AtariVectorEnv("pong", num_envs=1)
        envs.reset()
        envs.send(np.array([99]))  # there is no such action: its threads never come back
        envs.recv()

    def fail(self, progress) -> None:
        raise OSError("the disk\nis on fire")

    def diverge(self, progress) -> None:
        self.train_phase = lambda progress: {"score": math.nan}  # type: ignore[method-assign]
        raise FloatingPointError("loss is nan")


BUILT: list[int] = []
TOGETHER = threading.Barrier(3)


class MeetsOthers(Deterministic):
    """Waits in every phase for two others, which must be in this process."""

    def __init__(self, config, seed) -> None:
        super().__init__(config, seed)
        BUILT.append(seed)

    def train_phase(self, progress):
        TOGETHER.wait(60)
        return super().train_phase(progress)


def verdicts(log) -> list[tuple]:
    return sorted((e.trial, e.phase, e.data["verdict"]) for e in log if e.kind is Kind.DECISION)


def test_a_study_runs_to_its_end_with_scores_that_depend_on_config_and_seed_alone(executor_of) -> None:
    log = MemoryLog()
    assert drive(HyperTrick(RandomSearcher(SPACE), 10, 3), executor_of(Deterministic), log, seed=4)
    runs = {e.trial: e.data for e in log if e.kind is Kind.RUN}
    ended = [e for e in log if e.kind is Kind.PHASE_ENDED]
    assert len(runs) == 10
    for event in ended:
        run = runs[event.trial]
        assert event.data["score"] == score_of(run["config"], run["seed"], event.phase)
        # the live trial was kept, or brought back from its checkpoint: it has run every phase before this one
        assert event.data["metrics"]["phases_run"] == event.phase + 1


def test_several_workers_of_one_process_keep_a_trial_each(tmp_path) -> None:
    log = MemoryLog()
    with (
        LocalCluster(n_workers=3, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        executor = DaskExecutor(client, MeetsOthers, CheckpointStore(str(tmp_path)))
        executor.open(0.0)
        assert drive(FullRuns(RandomSearcher(SPACE), 3, 4), executor, log)
        executor.close()
    assert len(BUILT) == 3
    assert [e.data["metrics"]["phases_run"] for e in log if e.kind is Kind.PHASE_ENDED and e.trial == 0] == [1, 2, 3, 4]


def test_a_restarted_worker_is_used_again_though_it_is_back_at_the_same_address(tmp_path) -> None:
    port = free_port()
    log, hung = MemoryLog(), tmp_path / "once"
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, host="127.0.0.1",
                     worker_port=port) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        executor = DaskExecutor(client, Misbehaves(str(hung), "hang"), CheckpointStore(str(tmp_path / "c")))
        executor.open(0.0)
        stalls_once(executor, lambda: hung.exists() and not any(e.kind is Kind.PHASE_FAILED for e in log))
        given_up_after = time.monotonic() + 120
        assert drive(FullRuns(RandomSearcher(SPACE), 1, 2), executor, log,
                     stop=lambda: time.monotonic() > given_up_after)  # fmt: skip
        assert [address.rpartition(":")[2] for address in client.scheduler_info()["workers"]] == [str(port)]
        executor.close()
    assert [e.data["why"] for e in log if e.kind is Kind.PHASE_FAILED] == ["stall"]
    assert [e.slot for e in log if e.kind is Kind.SLOT_JOINED] == [0, 0]


@pytest.mark.slow
def test_a_cluster_that_ends_while_a_worker_is_replaced_says_nothing_of_it(tmp_path, capfd) -> None:
    log, hung = MemoryLog(), tmp_path / "once"
    with local_client(1) as client:
        misbehaves, store = Misbehaves(str(hung), "hang"), CheckpointStore(str(tmp_path / "c"))
        executor = DaskExecutor(client, misbehaves, store, max_retries=0)
        executor.open(0.0)
        stalls_once(executor, hung.exists)
        drive(FullRuns(RandomSearcher(SPACE), 1, 2), executor, log)
        executor.close()
    assert ["the worker was given up" in e.data["error"] for e in log if e.kind is Kind.TRIAL_FAILED] == [True]
    assert capfd.readouterr() == ("", "")


def test_a_continued_trial_stays_on_its_worker_and_both_workers_are_used(executor_of) -> None:
    log = MemoryLog()
    drive(FullRuns(RandomSearcher(SPACE), 4, 3), executor_of(Deterministic), log)
    started = {(e.trial, e.phase): e.slot for e in log if e.kind is Kind.PHASE_STARTED}
    for trial in range(4):
        assert len({started[trial, phase] for phase in range(3)}) == 1
    assert set(started.values()) == {0, 1}


SILENT = [pytest.param(w, marks=pytest.mark.slow) for w in ("hold_the_gil", "stop_process", "deadlock_the_emulator")]


@pytest.mark.parametrize("what", [*CRASHES, "hang", *SILENT])
def test_a_lost_or_silent_worker_costs_one_attempt_at_one_phase(executor_of, tmp_path, what) -> None:
    executor, log = executor_of(Misbehaves(str(tmp_path / "once"), what), stall_s=600.0), MemoryLog()

    def left_alone() -> bool:  # nobody else works who could be taken for silent
        ended = sum(e.kind is Kind.PHASE_ENDED for e in log)
        return ended == 10 and not any(e.kind is Kind.PHASE_FAILED for e in log) and (tmp_path / "once").exists()

    if what not in CRASHES:
        stalls_once(executor, left_alone)
    assert drive(FullRuns(RandomSearcher(SPACE), 4, 3), executor, log, seed=1)
    failed = [e for e in log if e.kind is Kind.PHASE_FAILED]
    assert [(e.phase, e.data["why"]) for e in failed] == [(1, "crash" if what in CRASHES else "stall")]
    assert sorted((e.trial, e.phase) for e in log if e.kind is Kind.PHASE_ENDED) == [
        (t, p) for t in range(4) for p in range(3)
    ]
    # the retried trial went on from its checkpoint
    assert all(e.data["metrics"]["phases_run"] == e.phase + 1 for e in log if e.kind is Kind.PHASE_ENDED)
    assert any(e.kind is Kind.SLOT_LOST for e in log)
    # the decisions are those of an undisturbed study
    calm = MemoryLog()
    drive(FullRuns(RandomSearcher(SPACE), 4, 3), executor_of(Deterministic), calm, seed=1)
    assert verdicts(log) == verdicts(calm)


def test_after_the_last_retry_the_trial_fails_with_its_reason_and_the_study_goes_on(executor_of) -> None:
    executor = executor_of(Misbehaves("always", "fail"), max_retries=1)
    log = MemoryLog()
    assert drive(FullRuns(RandomSearcher(SPACE), 2, 3), executor, log)
    assert sum(e.kind is Kind.PHASE_FAILED for e in log) == 2
    failed = [e for e in log if e.kind is Kind.TRIAL_FAILED]
    assert sorted(e.trial for e in failed) == [0, 1]
    assert failed[0].data["error"] == "OSError: the disk is on fire"
    assert "Traceback" in failed[0].data["traceback"]


def test_numbers_that_blew_up_fail_their_trial_at_once(executor_of, tmp_path) -> None:
    log = MemoryLog()
    assert drive(FullRuns(RandomSearcher(SPACE), 3, 2), executor_of(Misbehaves(str(tmp_path / "x"), "diverge")), log)
    assert sum(e.kind is Kind.PHASE_FAILED for e in log) == 0
    assert [e.data["error"] for e in log if e.kind is Kind.TRIAL_FAILED] == ["FloatingPointError: loss is nan"]
    assert sum(e.kind is Kind.PHASE_ENDED for e in log) == 5


@pytest.mark.parametrize("returned", [{"score": math.nan}, {"score": math.inf}, {}])
def test_a_score_that_is_no_number_fails_the_trial(executor_of, returned) -> None:
    executor = executor_of(_Returns(returned))
    executor.start(Job(0, 0, {"lr": 1e-3}, 0))
    (failed,) = [e for e in until(executor, Kind.TRIAL_FAILED) if e.kind is Kind.TRIAL_FAILED]
    assert "score" in failed.data["error"]
    assert executor.n_free == 2


@dataclass(frozen=True)
class _Returns:
    metrics: dict

    def __call__(self, config, seed):
        trial = Deterministic(config, seed)
        trial.train_phase = lambda progress: dict(self.metrics)  # type: ignore[method-assign]
        return trial


def test_a_paused_trial_frees_its_slot_and_goes_on_elsewhere_from_its_checkpoint(executor_of) -> None:
    executor = executor_of(Deterministic)
    executor.start(Job(0, 0, {"lr": 1e-3}, 0))
    (ended,) = [e for e in until(executor, Kind.PHASE_ENDED) if e.kind is Kind.PHASE_ENDED]
    executor.apply(0, Verdict.HOLD)
    assert executor.n_free == 1
    executor.apply(0, Verdict.PAUSE)
    assert executor.n_free == 2
    elsewhere = 1 - ended.slot
    executor.start(Job(0, 1, {"lr": 1e-3}, 0, ended.data["checkpoint"], elsewhere))
    (again,) = [e for e in until(executor, Kind.PHASE_ENDED) if e.kind is Kind.PHASE_ENDED]
    assert again.slot == elsewhere
    assert again.data["metrics"]["phases_run"] == 2


def test_closing_ends_the_phases_under_way_and_leaves_the_cluster_usable(client, executor_of, tmp_path) -> None:
    executor = executor_of(Waits(str(tmp_path / "never")))
    for trial in range(2):
        executor.start(Job(trial, 0, {"lr": 1e-3}, 0))
    until(executor, Kind.PROGRESS)
    executor.close()
    futures = [client.submit(os.getpid, workers=[w], pure=False) for w in client.scheduler_info()["workers"]]
    assert len({f.result(timeout=300) for f in futures}) == 2


@dataclass(frozen=True)
class Closes:
    """Trials that leave a file behind when they are closed."""

    file: str

    def __call__(self, config, seed):
        trial = Deterministic(config, seed)
        trial.close = Path(self.file).touch  # type: ignore[method-assign]
        return trial


def test_a_worker_that_hangs_keeps_no_other_from_being_cleared(executor_of, tmp_path, monkeypatch) -> None:
    executor = executor_of(Closes(str(tmp_path / "closed")))
    executor.start(Job(0, 0, {"lr": 1e-3}, 0))
    until(executor, Kind.PHASE_ENDED)

    def hang(addresses) -> None:
        raise TimeoutError

    monkeypatch.setattr(executor._tasks, "cancel_all", hang)
    executor.close()
    assert (tmp_path / "closed").exists()


def test_a_paused_trial_is_closed_though_no_other_takes_its_slot(executor_of, tmp_path) -> None:
    executor = executor_of(Closes(str(tmp_path / "closed")))
    executor.start(Job(0, 0, {"lr": 1e-3}, 0))
    until(executor, Kind.PHASE_ENDED)
    executor.apply(0, Verdict.PAUSE)
    while not (tmp_path / "closed").exists():
        executor.wait(1)


@pytest.mark.parametrize(
    ("status", "kind"),
    [("cancelled", Kind.PHASE_FAILED), ("lost", Kind.PHASE_FAILED), ("forgotten", Kind.TRIAL_FAILED)],
)
def test_what_somebody_else_took_from_the_cluster_costs_no_attempt(executor_of, tmp_path, status, kind) -> None:
    executor = executor_of(Waits(str(tmp_path / "go")), max_retries=0)
    executor.start(Job(0, 0, {"lr": 1e-3}, 0))
    executor._finish(executor._book._attempts[0], 0, SimpleNamespace(status=status))
    (tmp_path / "go").touch()
    assert executor.caused()[-1].kind is kind


def test_a_worker_that_has_no_workbench_is_named(tmp_path) -> None:
    (tmp_path / "workbench.py").touch()  # what it imports instead
    with (
        LocalCluster(n_workers=0, processes=False, protocol="tcp", dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        executor = DaskExecutor(client, Deterministic, CheckpointStore(str(tmp_path / "c")))
        executor.open(0.0)
        words = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address, "--no-nanny"]
        bare = subprocess.Popen([*words, "--no-dashboard"], cwd=tmp_path, stderr=subprocess.DEVNULL)
        try:
            with pytest.raises(InvalidInput, match=r"does not have the workbench that is here \(No module named"):
                drive(FullRuns(RandomSearcher(SPACE), 1, 1), executor, MemoryLog())
            executor.close()
        finally:
            bare.kill()
            bare.wait(60)


@pytest.mark.parametrize(
    ("name", "here", "there"),
    [
        ("_VERSION", "0.1", f"{PACKAGE} {version(PACKAGE)}"),
        ("_PYTHON", "3.1", f"Python {'.'.join(platform.python_version_tuple()[:2])}"),
    ],
)
def test_a_worker_of_another_version_or_python_is_named_with_both(executor_of, monkeypatch, name, here, there) -> None:
    """What is pickled there has code for one Python alone: another one dies of it without a word."""
    executor = executor_of(Deterministic)
    monkeypatch.setattr(f"workbench.cluster.connection.{name}", here)  # the workers are other processes
    with pytest.raises(InvalidInput, match=re.escape(f"is here ({there} there, {here} here): install it there")):
        drive(FullRuns(RandomSearcher(SPACE), 1, 1), executor, MemoryLog())


def test_progress_arrives_while_the_phase_runs(executor_of, tmp_path) -> None:
    executor = executor_of(Waits(str(tmp_path / "never")))
    executor.start(Job(3, 2, {"lr": 1e-3}, 0))
    event = next(e for e in until(executor, Kind.PROGRESS) if e.kind is Kind.PROGRESS)
    assert (event.trial, event.phase, event.data) == (3, 2, {"metrics": {"waiting": 1.0}})


def test_a_dropped_trial_ends_in_mid_phase_and_its_slot_serves_another(executor_of, tmp_path) -> None:
    executor = executor_of(Waits(str(tmp_path / "never")))
    executor.start(Job(0, 0, {"lr": 1e-3}, 0, slot=0))
    until(executor, Kind.PROGRESS)
    executor.drop(0)
    assert executor.n_free == 2
    executor.start(Job(1, 0, {"lr": 1e-3}, 0, slot=0))
    events = until(executor, Kind.PROGRESS)  # of trial 1: its worker has let go of trial 0
    assert {e.trial for e in events if e.trial is not None} == {1}


def test_a_trial_that_is_stopped_in_mid_phase_and_started_again_is_not_stopped_twice(executor_of, tmp_path) -> None:
    executor = executor_of(Waits(str(tmp_path / "go")))
    executor.start(Job(0, 0, {"lr": 1e-3}, 0, slot=0))
    until(executor, Kind.PROGRESS)
    executor.drop(0)
    executor.start(Job(0, 0, {"lr": 1e-3}, 0, slot=0))
    events = until(executor, Kind.PROGRESS)  # of the second start: the worker runs one phase at a time
    (tmp_path / "go").touch()
    events += until(executor, Kind.PHASE_ENDED)
    assert {e.kind for e in events} == {Kind.PHASE_STARTED, Kind.PROGRESS, Kind.PHASE_ENDED}


def test_what_is_told_of_an_attempt_that_another_has_followed_comes_too_late() -> None:
    tasks = Tasks(None, Deterministic, None, "study", 1, ended=None)  # nothing is submitted
    slot = Slot(0, ("a",), ("node",), ("tcp://a",), ("a, first life",))
    first, second = (Attempt(Job(3, 1, {}, 0), number, slot, 0.0, False, mark=number) for number in (0, 1))
    for attempt in (first, second):
        tasks.begin(attempt)
        assert tasks.of({"trial": 3, "attempt": attempt.mark}) is attempt
    assert tasks.of({"trial": 3, "attempt": first.mark}) is None
    assert tasks.of({"trial": 4, "attempt": second.mark}) is None
    assert tasks.under_way_on("a, first life") == [(second, 0)]
    assert tasks.under_way_on("a, second life") == []
    second.under_way = False
    assert tasks.under_way_on("a, first life") == []


def test_what_the_cluster_remembers_does_not_grow_with_the_phases(client, executor_of) -> None:
    """Dask's own books: spans of tasks on the scheduler, times by span on the workers."""

    def books() -> tuple[int, int]:
        spans = len(client.cluster.scheduler.extensions["spans"].root_spans)
        return spans, max(client.run(lambda dask_worker: len(dask_worker.digests_total)).values())

    executor = executor_of(Deterministic)
    drive(FullRuns(RandomSearcher(SPACE), 4, 3), executor, MemoryLog())
    spans, times = books()
    for _ in range(3):
        drive(FullRuns(RandomSearcher(SPACE), 4, 3), executor, MemoryLog())
    assert books()[0] <= spans + 1  # one of another's tasks, such as those that ask for these figures
    assert books()[1] <= times + 10
    assert set(client.run(lambda dask_worker: len(dask_worker.profile_history)).values()) == {0}


class _Churns(Deterministic):
    """Takes and frees a megabyte a hundred times, and tells what page faults that cost."""

    def train_phase(self, progress):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(100):
            np.ones(1 << 17)
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
        return super().train_phase(progress) | {"faults": faults}


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_memory_a_trial_frees_is_kept_for_what_it_takes_next(executor_of) -> None:
    executor = executor_of(_Churns)
    executor.start(Job(0, 0, {"lr": 1e-3}, 0))
    (ended,) = (e for e in until(executor, Kind.PHASE_ENDED) if e.kind is Kind.PHASE_ENDED)
    assert ended.data["metrics"]["faults"] < 2500  # 25 600 pages are touched


def test_a_phase_on_dask_reports_its_returns(executor_of) -> None:
    log = MemoryLog()
    assert drive(FullRuns(RandomSearcher(SPACE), 1, 2), executor_of(Plays), log)
    assert_returns_logged(log)


class NoReturns(Deterministic):
    def train_phase(self, progress):
        return {**super().train_phase(progress), "returns": 3.0}


def test_a_trial_with_nonsense_for_returns_fails_with_the_reason(executor_of) -> None:
    log = MemoryLog()
    assert drive(FullRuns(RandomSearcher(SPACE), 1, 2), executor_of(NoReturns), log)
    failed = [e for e in log if e.kind is Kind.TRIAL_FAILED]
    assert len(failed) == 1
    assert "a sequence of numbers, got 3.0" in failed[0].data["error"]
