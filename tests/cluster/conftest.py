from collections.abc import Callable

import pytest

from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.dask import DaskExecutor


def stalls_once(executor: DaskExecutor, hung: Callable[[], bool], stall_s: float = 1.0) -> None:
    """Take silence for a stall only while `hung` is true.

    How long a loaded machine keeps a worker waiting nobody can say: otherwise no limit would be long enough.
    """
    wait = executor.wait

    def watched(timeout_s=None):
        executor._book._stall_s = stall_s if hung() else 600.0
        return wait(timeout_s)

    executor.wait = watched  # type: ignore[method-assign]


@pytest.fixture
def executor_of(client, tmp_path):
    """Makes executors on the shared cluster, and closes them."""
    made = []

    def make(factory, **settings) -> DaskExecutor:
        settings.setdefault("study", "tests")  # one driver after the other, of one study
        executor = DaskExecutor(client, factory, CheckpointStore(str(tmp_path / "checkpoints")), **settings)
        executor.open(0.0)
        made.append(executor)
        return executor

    yield make
    for executor in made:
        executor.close()
    client.wait_for_workers(2, timeout=300)
