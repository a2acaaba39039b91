"""What a study outlives beside dead workers: damaged checkpoints, full disks, dead drivers, lost clusters."""

import errno
import os
import signal
import subprocess
import sys
import threading
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from distributed import Client, LocalCluster

from tests.support import FROM_HERE, SPACE, Deterministic, MemoryLog, Waits, saved, score_of, small_disk, until
from workbench.algos.search import FullRuns, RandomSearcher
from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.connection import Connection
from workbench.cluster.dask import DaskExecutor
from workbench.cluster.local import local_client
from workbench.core.drive import drive
from workbench.core.protocols import Job, Kind, Verdict

CONFIG = {"lr": 1e-3}


def run_phase(executor, phase: int, checkpoint: str | None = None, trial: int = 0, keep: bool = False):
    executor.start(Job(trial, phase, CONFIG, 0, checkpoint, keep=keep))
    (ended,) = [e for e in until(executor, Kind.PHASE_ENDED) if e.kind is Kind.PHASE_ENDED]
    executor.apply(trial, Verdict.PAUSE)
    return ended


def spoil(tmp_path, name: str) -> None:
    (tmp_path / "checkpoints" / name / "phase.txt").write_text("7")


def test_a_damaged_checkpoint_is_passed_over_and_the_phase_it_stood_for_run_again(executor_of, tmp_path) -> None:
    executor = executor_of(Deterministic)
    first = run_phase(executor, 0)
    second = run_phase(executor, 1, first.data["checkpoint"])
    spoil(tmp_path, second.data["checkpoint"])
    third = run_phase(executor_of(Deterministic), 2, second.data["checkpoint"])
    assert third.data["score"] == score_of(CONFIG, 0, 2)
    assert third.data["metrics"]["phases_run"] == 3
    assert third.data["recovered"].startswith("went on from trial-00000/phase-000 and ran 1 phase again, because ")
    assert "recovered" not in second.data


def test_with_no_whole_checkpoint_left_a_trial_begins_again(executor_of, tmp_path) -> None:
    executor = executor_of(Deterministic)
    first = run_phase(executor, 0)
    second = run_phase(executor, 1, first.data["checkpoint"])
    spoil(tmp_path, first.data["checkpoint"])
    spoil(tmp_path, second.data["checkpoint"])
    third = run_phase(executor_of(Deterministic), 2, second.data["checkpoint"])
    assert third.data["metrics"]["phases_run"] == 3
    assert "went on from the beginning and ran 2 phases again" in third.data["recovered"]


def test_a_donors_checkpoint_is_still_there_when_the_donor_has_gone_on(executor_of, tmp_path) -> None:
    executor = executor_of(Deterministic)
    donor = run_phase(executor, 0, trial=0).data["checkpoint"]
    child = run_phase(executor, 1, donor, trial=1, keep=True)
    assert child.data["metrics"]["phases_run"] == 2
    checkpoint = donor
    for phase in range(1, 5):
        checkpoint = run_phase(executor, phase, checkpoint).data["checkpoint"]
    CheckpointStore(str(tmp_path / "checkpoints")).load(Deterministic(CONFIG, 0), donor)


def test_a_scheduler_that_is_away_for_long_costs_no_threads(monkeypatch) -> None:
    """It is asked again every few seconds, for as long as the study lasts."""
    monkeypatch.setattr("workbench.cluster.connection._AGAIN_S", 0.1)
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        line = Connection(client, "study", lambda: None, lambda message: None)
        line._address = "tcp://127.0.0.1:1"
        before = threading.active_count()
        for _ in range(5):
            line._tried = 0.0
            assert not line.reconnect()
        assert threading.active_count() < before + 5
        line.close()


@dataclass(frozen=True)
class NoSpace:
    """Finds the disk full as long as a file exists; `hides` as torch does, which gives another error."""

    full: str
    hides: bool = False

    def __call__(self, config, seed):
        trial = Deterministic(config, seed)
        save = trial.save

        def full_save(path) -> None:
            save(path)
            if Path(self.full).exists():
                raise OSError(errno.ENOSPC, "No space left on device")

        trial.save = full_save  # type: ignore[method-assign]
        return trial


def test_a_full_disk_holds_a_trial_up_until_there_is_space(executor_of, tmp_path) -> None:
    (tmp_path / "full").touch()
    executor = executor_of(NoSpace(str(tmp_path / "full")))
    executor.start(Job(0, 0, CONFIG, 0))
    signs: set[float] = set()  # every note shows life, so that the trial is not taken for a hang
    while len(signs) < 2:
        for event in executor.wait(60):
            if event.kind is Kind.PROGRESS and "note" in event.data:
                assert event.data["note"] == "waiting for disk space to save a checkpoint"
                signs.add(executor._book._attempts[0].signs[0])
    assert not [p for p in (tmp_path / "checkpoints").rglob("*") if p.is_file()]
    (tmp_path / "full").unlink()
    events = until(executor, Kind.PHASE_ENDED)
    assert not any(e.kind is Kind.PHASE_FAILED for e in events)


def test_a_trial_held_up_by_a_full_disk_can_be_stopped(executor_of, tmp_path) -> None:
    (tmp_path / "full").touch()
    executor = executor_of(NoSpace(str(tmp_path / "full")))
    executor.start(Job(0, 0, CONFIG, 0))
    until(executor, Kind.PROGRESS)
    executor.close()
    again = executor_of(Deterministic)
    again.start(Job(0, 0, CONFIG, 0))
    again.start(Job(1, 0, CONFIG, 0))
    until(again, Kind.PHASE_ENDED, 2)


def test_a_place_that_becomes_read_only_holds_a_new_trial_up_too(client, tmp_path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        executor = DaskExecutor(client, Deterministic, CheckpointStore(str(disk)), max_retries=0)
        executor.open(0.0)
        try:
            executor.start(Job(0, 0, CONFIG, 0))
            until(executor, Kind.PHASE_ENDED)
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
            executor.start(Job(1, 0, CONFIG, 0))
            notes = [e.data["note"] for e in until(executor, Kind.PROGRESS, 2) if "note" in e.data]
            assert notes == [f"waiting for the place of checkpoints {disk}: Read-only file system"]
            subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
            assert not any(e.kind is Kind.PHASE_FAILED for e in until(executor, Kind.PHASE_ENDED))
        finally:
            executor.close()


class Disk:
    """A trial whose state is larger than a small disk, and whose library does not say why it could not write."""

    def __init__(self, config, seed) -> None: ...

    def train_phase(self, progress) -> dict[str, float]:
        return {"score": 0.0}

    def save(self, path: Path) -> None:
        try:
            (path / "state").write_bytes(bytes(1 << 20))
        except OSError:
            raise RuntimeError("PytorchStreamWriter failed writing file") from None

    def close(self) -> None: ...


def test_a_disk_that_is_really_full_is_known_whatever_the_library_says(tmp_path) -> None:
    with small_disk(tmp_path / "small") as disk:
        store = CheckpointStore(str(disk))
        saved(store, Disk({}, 0), 0, 0)
        with pytest.raises(OSError, match="No space left"):
            saved(store, Disk({}, 0), 0, 1)
        assert sorted(p.name for p in disk.rglob("*")) == ["manifest.json", "phase-000", "state", "trial-00000"]


_DEAD_DRIVER = """
import os, sys
from distributed import Client
from tests.support import Waits, until
from workbench.cluster import local
from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.dask import DaskExecutor
from workbench.core.protocols import Job, Kind
executor = DaskExecutor(Client(sys.argv[1]), Waits(sys.argv[2]), CheckpointStore(sys.argv[3]), study="the study")
executor.open(0.0)
for trial in range(2):
    executor.start(Job(trial, 0, {"lr": 1e-3}, 0))
seen = set()
while len(seen) < 2:
    seen |= {e.trial for e in executor.wait(60) if e.kind is Kind.PROGRESS}
os._exit(7)
"""


def test_a_new_driver_ends_what_a_dead_one_left_running(client, certified, executor_of, tmp_path) -> None:
    arguments = [client.scheduler.address, str(tmp_path / "never"), str(tmp_path / "checkpoints")]
    dead = subprocess.run([sys.executable, "-c", _DEAD_DRIVER, *arguments], timeout=120, check=False)
    assert dead.returncode == 7, "it died at its own hand, with both trials under way"
    executor = executor_of(Deterministic, study="the study", stall_s=60.0)
    for trial in range(2):
        executor.start(Job(trial, 0, CONFIG, 0))
    events = until(executor, Kind.PHASE_ENDED, 2)  # the old phases run for ever: without help these would never start
    assert not any(e.kind is Kind.PHASE_FAILED for e in events)


@dataclass(frozen=True)
class Hungry:
    """Takes more and more memory in phase 1, as long as a file is absent; makes the file first."""

    once: str

    def __call__(self, config, seed):
        trial = Deterministic(config, seed)
        train = trial.train_phase

        def train_phase(progress):
            if trial.phase == 1 and not Path(self.once).exists():
                Path(self.once).touch()
                _taken = [np.ones(1 << 22) for _ in range(64)]  # 2 GiB, were there so much
                threading.Event().wait()
            return train(progress)

        trial.train_phase = train_phase  # type: ignore[method-assign]
        return trial


@pytest.mark.slow
def test_a_worker_that_takes_more_memory_than_it_may_is_replaced_and_its_trial_goes_on(tmp_path) -> None:
    with local_client(1, memory_limit="1GiB") as client:
        executor = DaskExecutor(client, Hungry(str(tmp_path / "once")), CheckpointStore(str(tmp_path / "c")))
        executor.open(0.0)
        log = MemoryLog()
        with closing(executor):
            assert drive(FullRuns(RandomSearcher(SPACE), 2, 3), executor, log, seed=3)
    assert_complete(log, 2, 3)
    assert [e.data["why"] for e in log if e.kind is Kind.PHASE_FAILED] == ["crash"]


def study_through(executor, scheduler, disturb) -> MemoryLog:
    """Drive a study, calling `disturb` once, after the second phase has ended."""

    class Log(MemoryLog):
        def append(self, events) -> None:
            before = sum(e.kind is Kind.PHASE_ENDED for e in self)
            super().append(events)
            if before < 2 <= sum(e.kind is Kind.PHASE_ENDED for e in self):
                disturb()

    log = Log()
    assert drive(scheduler, executor, log, seed=3)
    return log


def assert_complete(log, trials: int, phases: int) -> None:
    ended = sorted((e.trial, e.phase) for e in log if e.kind is Kind.PHASE_ENDED)
    assert ended == [(t, p) for t in range(trials) for p in range(phases)]
    assert all(e.data["metrics"]["phases_run"] == e.phase + 1 for e in log if e.kind is Kind.PHASE_ENDED)
    assert not any(e.kind is Kind.TRIAL_FAILED for e in log)


def test_a_cluster_may_shrink_to_nothing_and_grow_again(tmp_path) -> None:
    with local_client(2) as client:
        cluster = client.cluster
        assert cluster is not None
        executor = DaskExecutor(client, Deterministic, CheckpointStore(str(tmp_path / "c")))
        executor.open(0.0)

        def shrink() -> None:
            cluster.scale(0)
            threading.Thread(target=lambda: (client.sync(_none_left, client), cluster.scale(3))).start()

        with closing(executor):
            log = study_through(executor, FullRuns(RandomSearcher(SPACE), 6, 3), shrink)
    assert_complete(log, 6, 3)
    assert sum(e.kind is Kind.SLOT_LOST for e in log) == 2
    assert len({e.slot for e in log if e.kind is Kind.SLOT_JOINED}) >= 3


async def _none_left(client) -> None:
    while (await client.scheduler.identity(n_workers=-1))["workers"]:
        pass


_SCHEDULER = """
import asyncio, sys
from distributed import Nanny, Scheduler
async def main():
    async with Scheduler(host="127.0.0.1", port=int(sys.argv[1]), dashboard=False) as scheduler:
        async with Nanny(scheduler.address, nthreads=1, name="a", host="127.0.0.1"):
            print(scheduler.address, flush=True)
            await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
if __name__ == "__main__":
    asyncio.run(main())
"""


@contextmanager
def a_cluster(script: Path, port: int):
    script.write_text(_SCHEDULER)
    process = subprocess.Popen(
        [sys.executable, str(script), str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **FROM_HERE},  # its workers know the tests' trials
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


@pytest.mark.slow  # two clusters begun as scripts; each worker may go away among the quick tests
def test_the_whole_cluster_may_go_away_and_come_back(tmp_path) -> None:
    """Scheduler and workers end; others come up at the same address. Costs no attempt."""
    first = a_cluster(tmp_path / "cluster.py", 0)
    address = first.__enter__()
    second = a_cluster(tmp_path / "cluster.py", int(address.rpartition(":")[2]))
    with Client(address, set_as_default=False, timeout=60) as client:
        executor = DaskExecutor(client, Deterministic, CheckpointStore(str(tmp_path / "c")), max_retries=0)
        executor.open(0.0)

        def away_and_back() -> None:
            first.__exit__(None, None, None)
            second.__enter__()

        with closing(executor):
            log = study_through(executor, FullRuns(RandomSearcher(SPACE), 3, 3), away_and_back)
    second.__exit__(None, None, None)
    assert_complete(log, 3, 3)


def test_a_scheduler_that_stands_still_is_not_taken_for_silent_workers(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("workbench.cluster.connection._ANSWER_S", 1.0)
    monkeypatch.setattr("workbench.cluster.dask._RECONCILE_S", 1.0)
    with a_cluster(tmp_path / "cluster.py", 0) as address, Client(address, set_as_default=False, timeout=60) as client:
        scheduler = client.run_on_scheduler(os.getpid)
        store = CheckpointStore(str(tmp_path / "c"))
        executor = DaskExecutor(client, Waits(str(tmp_path / "go")), store, max_retries=0)
        executor.open(0.0)
        with closing(executor):
            until(executor, Kind.SLOT_JOINED)
            executor.start(Job(0, 0, CONFIG, 0))
            until(executor, Kind.PROGRESS)
            os.kill(scheduler, signal.SIGSTOP)
            try:
                executor._book._stall_s, begun = 6.0, executor.now
                told = []
                while executor.now < begun + 15:  # what is tested is that this time passes
                    told += executor.wait(1.0)
            finally:
                executor._book._stall_s = 600.0
                os.kill(scheduler, signal.SIGCONT)
            assert {e.kind for e in told} <= {Kind.PROGRESS}
            (tmp_path / "go").touch()
            assert {e.kind for e in until(executor, Kind.PHASE_ENDED)} <= {Kind.PROGRESS, Kind.PHASE_ENDED}
