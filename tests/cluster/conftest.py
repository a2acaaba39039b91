import pytest

from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.dask import DaskExecutor


@pytest.fixture
def executor_of(client, tmp_path):
    """Makes executors on the shared cluster, and closes them."""
    made = []

    def make(factory, **settings) -> DaskExecutor:
        executor = DaskExecutor(client, factory, CheckpointStore(str(tmp_path / "checkpoints")), **settings)
        executor.open(0.0)
        made.append(executor)
        return executor

    yield make
    for executor in made:
        executor.close()
    client.wait_for_workers(2, timeout=300)
