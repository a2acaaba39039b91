"""Workers that are told to leave: they save at the next sign of progress, and it costs no attempt and no step."""

import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import dask
import pytest
from distributed import Client, LocalCluster

from tests.clusters.trials import Paced
from tests.support import SPACE, MemoryLog
from workbench.algos.search import FullRuns, RandomSearcher
from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.dask import DaskExecutor
from workbench.core.drive import drive
from workbench.core.protocols import Kind


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
