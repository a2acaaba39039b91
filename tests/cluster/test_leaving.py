"""Workers that are told to leave: they save at the next sign of progress, and it costs no attempt and no step."""

import errno
import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import dask
import pytest
from distributed import Client, LocalCluster, Worker, get_worker
from distributed.core import Status
from distributed.utils import sync

from tests.clusters.trials import Paced
from tests.support import SPACE, Deterministic, MemoryLog
from workbench.algos.search import FullRuns, RandomSearcher
from workbench.cluster import worker
from workbench.cluster.attempts import Attempts
from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.dask import DaskExecutor
from workbench.cluster.leaving import Leaving
from workbench.cluster.slots import Slot
from workbench.cluster.task import PhaseTask
from workbench.core.drive import drive
from workbench.core.protocols import Job, Kind


def steps_of(file: Path) -> Counter[tuple[str, ...]]:
    return Counter(tuple(line.split()[:3]) for line in file.read_text().splitlines())


def once_under_way(steps: Path, leave: Callable[[], object]) -> Callable[[], bool]:
    """Have a worker leave once each trial has done some steps; never stops the study."""
    told = []

    def look() -> bool:
        if not told and steps.exists() and len(steps.read_text().splitlines()) > 8:
            told.append(leave())
        return False

    return look


@pytest.mark.parametrize("told", ["SIGTERM", pytest.param("retire", marks=pytest.mark.slow)])
def test_a_worker_that_is_told_to_leave_costs_no_attempt_and_no_step(client, tmp_path, told) -> None:
    steps, log = tmp_path / "steps", MemoryLog()
    executor = DaskExecutor(client, Paced(40, 0.05, record=str(steps)), CheckpointStore(str(tmp_path)), max_retries=0)
    executor.open(0.0)

    def leave() -> None:
        if told == "SIGTERM":
            os.kill(int(steps.read_text().split()[3]), signal.SIGTERM)
        else:
            client.retire_workers([next(iter(client.scheduler_info(n_workers=-1)["workers"]))], close_workers=True)

    try:
        assert drive(FullRuns(RandomSearcher(SPACE), 2, 2), executor, log, stop=once_under_way(steps, leave))
    finally:
        executor.close()
        client.wait_for_workers(2, timeout=120)
    assert [e.data["why"] for e in log if e.kind is Kind.PHASE_FAILED] == ["left"]
    assert sum(e.kind is Kind.SLOT_LOST for e in log) == 1
    assert sum(e.kind is Kind.PHASE_ENDED for e in log) == 4
    assert set(steps_of(steps).values()) == {1}
    assert not list(tmp_path.glob("trial-*/*.part"))


@pytest.mark.slow
def test_a_worker_at_the_end_of_its_lifetime_costs_no_attempt_and_no_step(tmp_path) -> None:
    steps, log = tmp_path / "steps", MemoryLog()
    with (
        # 15 s after a worker left Dask looks whether another is there; it would give up the nanny of one just leaving
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}),
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, host="127.0.0.1", lifetime="6s",
                     lifetime_restart=True) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        store = CheckpointStore(str(tmp_path))
        executor = DaskExecutor(client, Paced(200, 0.05, record=str(steps)), store, max_retries=0)
        executor.open(0.0)
        try:
            assert drive(FullRuns(RandomSearcher(SPACE), 1, 1), executor, log)
        finally:
            executor.close()
    assert {e.data["why"] for e in log if e.kind is Kind.PHASE_FAILED} == {"left"}
    assert set(steps_of(steps).values()) == {1}
    assert len(steps_of(steps)) == 200


class Forks(Deterministic):
    """Ends a child that it has forked."""

    def train_phase(self, progress):
        context = multiprocessing.get_context("fork")
        up = context.Event()
        child = context.Process(target=lambda: (up.set(), time.sleep(600)), daemon=True)
        child.start()
        up.wait()  # a signal that comes while it is being forked is lost
        child.terminate()
        child.join(60)
        exitcode = child.exitcode or 0
        child.kill()
        return {**super().train_phase(progress), "exitcode": float(exitcode)}


def test_what_a_trial_has_forked_ends_when_the_trial_ends_it(executor_of) -> None:
    log = MemoryLog()
    assert drive(FullRuns(RandomSearcher(SPACE), 1, 1), executor_of(Forks), log)
    assert [e.data["metrics"]["exitcode"] for e in log if e.kind is Kind.PHASE_ENDED] == [-signal.SIGTERM]


async def come_near_the_limit(worker: Worker) -> None:
    """Take nine tenths of the memory; Dask may have paused the worker just before it heard not to."""
    memory = worker.memory_manager
    worker.monitor.get_process_memory = lambda: int(0.9 * memory.memory_limit)
    worker.status = Status.paused
    await memory.memory_monitor(worker)


class Large(Deterministic):
    """Leaves its worker little memory."""

    def train_phase(self, progress):
        here = get_worker()
        sync(here.loop, come_near_the_limit, here)
        return super().train_phase(progress)


def test_a_trial_that_takes_most_of_its_worker_s_memory_goes_on_there(tmp_path) -> None:
    log = MemoryLog()
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None,
                     memory_limit="8GiB") as cluster,  # far above what this process takes, with all tests before
        Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        executor = DaskExecutor(client, Large, CheckpointStore(str(tmp_path)), max_retries=0, stall_s=60.0)
        executor.open(0.0)
        with closing(executor):
            assert drive(FullRuns(RandomSearcher(SPACE), 1, 2), executor, log)
    assert not [e.data for e in log if e.kind in (Kind.PHASE_FAILED, Kind.TRIAL_FAILED)]
    assert [e.phase for e in log if e.kind is Kind.PHASE_ENDED] == [0, 1]


class Alone:
    """A worker without a cluster, and what it has said; `driver` is what Dask's scheduler says when it is asked."""

    def __init__(self, monkeypatch) -> None:
        self.here, self.said = worker._Kept(), []
        self.n_told = 0
        self.on_note: Callable[[], object] = lambda: None
        self.proved, self.driver = False, "topic"
        told = {"loop": None, "scheduler": SimpleNamespace(workbench_driver=None)}
        dask_worker = SimpleNamespace(name="w", log_event=self._log_event, **told)
        monkeypatch.setattr(worker, "get_worker", lambda: dask_worker)
        monkeypatch.setattr(worker, "sync", lambda *asked, **of: self.driver)
        monkeypatch.setattr(Leaving, "tell", lambda *message: None)

    def _log_event(self, topic: str, message: dict) -> None:
        self.n_told += 1
        if "note" in message:
            self.said.append(message["note"])
            self.on_note()

    def run(
        self,
        store: CheckpointStore,
        how: Paced,
        trial: int = 0,
        on_end=lambda: None,
        save=None,
        upon: str | None = None,
    ) -> dict:
        """Run phase 0 of a trial, or phase 1 upon a checkpoint, calling `on_end` when it has ended.

        `save` takes the place of the trial's own.
        """

        def factory(config, seed):
            made = how(config, seed)
            train = made.train_phase
            made.train_phase = lambda progress: (train(progress), on_end())[0]
            made.save = save or made.save
            return made

        job = Job(trial, int(upon is not None), {"lr": 1e-3}, trial, upon)
        parcel = SimpleNamespace(open=lambda: factory)
        return worker._run(PhaseTask(job, parcel, store, "study", "topic", 0, proved=self.proved), self.here)


def test_a_phase_that_has_ended_is_saved_whole_though_the_one_before_it_is_still_being_sent(
    monkeypatch, tmp_path
) -> None:
    store, alone, arrived = CheckpointStore(f"file://{tmp_path}/c"), Alone(monkeypatch), threading.Event()
    name = store.set_down(Paced()({}, 5), 5, 0)
    alone.on_note = arrived.set
    try:
        alone.here.uploads.begin(store, "study", 5, name, lambda *told: arrived.wait(60))
        result = alone.run(store, Paced(10, 0.0), on_end=alone.here.leaving.begin)
    finally:
        arrived.set()
    assert alone.said == [f"waiting for checkpoint {name} to arrive"]
    assert result["metrics"]["total"] == 10
    alone.here.uploads.wait(lambda note: None)
    fresh = Paced()({}, 0)
    store.load(fresh, result["checkpoint"])
    assert (fresh.phase, fresh.total) == (1, 10)
    assert not list(tmp_path.rglob("*.part"))


def test_a_phase_that_finds_the_disk_full_at_its_end_begins_again_elsewhere(monkeypatch, tmp_path) -> None:
    """No part of a phase is left of one that has ended: the next worker would train another whole one upon it."""
    store, alone = CheckpointStore(str(tmp_path)), Alone(monkeypatch)
    full = [True]

    def save(path: Path) -> None:
        (path / "at.json").write_text("[1, 0, 10]")
        if full.pop():
            full.append(False)
            raise OSError(errno.ENOSPC, "No space left on device")

    result = alone.run(store, Paced(10, 0.0), on_end=alone.here.leaving.begin, save=save)
    assert (result["left"], result["error"]) == (False, "ToldToLeave: the worker w was told to leave")
    assert not list(tmp_path.rglob("at.json"))
    assert Alone(monkeypatch).run(store, Paced(10, 0.0))["metrics"]["total"] == 10


class Gone:
    """A worker that has said that nothing more will be heard of it."""

    def __init__(self) -> None:
        leaving = worker._kept_by(self).leaving
        leaving._watched = True
        leaving._left.set()


def test_a_phase_that_reaches_a_worker_which_has_left_begins_elsewhere(monkeypatch, tmp_path) -> None:
    """Its answer may come before the word that the worker has left."""
    gone = Gone()
    monkeypatch.setattr(worker, "get_worker", lambda: gone)
    book, job = Attempts(max_retries=0), Job(3, 0, {"lr": 1e-3}, 3)
    book.slot_joined(Slot(0, ("w",), ("host",)), 0.0)
    ((attempt,),) = book.start(job, 0.0)
    book.rank_ended(
        attempt, 1.0, 0, worker.run_phase(PhaseTask(job, None, CheckpointStore(str(tmp_path)), "study", "topic", 0))
    )
    assert book.events[-1].data["error"] == "the worker on host was told to leave; the trial begins the phase again"
    assert [(waiting.trial, number) for waiting, number in book.waiting] == [(3, 0)]


def test_a_trial_that_still_lives_on_a_leaving_worker_is_no_part_of_the_next_one(monkeypatch, tmp_path) -> None:
    store, alone = CheckpointStore(str(tmp_path)), Alone(monkeypatch)
    alone.run(store, Paced(10, 0.0), trial=0)
    alone.here.leaving.begin()
    assert alone.run(store, Paced(10, 0.0), trial=1)["left"] is False
    assert not list(tmp_path.rglob("*.part"))
