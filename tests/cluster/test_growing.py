"""Clusters made larger or smaller, and what a study may still expect of one."""

import warnings
from collections.abc import Iterator
from contextlib import closing
from types import SimpleNamespace

import pytest
from distributed import Client, LocalCluster, SpecCluster

from tests.cluster.gang import Gang
from tests.support import Deterministic
from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.dask import DaskExecutor
from workbench.cluster.growing import planned_workers, scale, warn_of_threads
from workbench.core.errors import InvalidInput


class _Hosts:
    """A cluster of the hosts it was made with, as Dask's SSHCluster is one, or one that fails."""

    plan = frozenset({"host"})

    def __init__(self, grows: bool) -> None:
        self._supports_scaling = grows

    def scale(self, n: int) -> None:
        assert self._supports_scaling, "Dask's books would name workers that it cannot start"
        raise ConnectionError("the gateway is away\nfor long")


@pytest.mark.parametrize(("grows", "says"), [(False, "has the hosts it was made with"), (True, "gateway is away.$")])
def test_a_cluster_that_cannot_be_scaled_refuses_and_the_study_goes_on(grows, says) -> None:
    assert isinstance(SpecCluster._supports_scaling, property)  # so Dask calls it
    executor = SimpleNamespace(client=SimpleNamespace(cluster=_Hosts(grows)))
    with pytest.raises(InvalidInput, match=says):
        DaskExecutor.scale(executor, 3)


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    """One worker, in this process."""
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        yield cluster


def test_a_cluster_that_adapts_keeps_to_what_a_person_asks_of_it(cluster) -> None:
    with Client(cluster, set_as_default=False) as client:
        adaptive = cluster.adapt(minimum=1, maximum=1, interval="10ms", wait_count=1)
        scale(cluster, 2)
        client.wait_for_workers(2, timeout=60)
        assert adaptive.state == "stopped"
        assert len(cluster.plan) == 2


def test_a_cluster_that_refuses_adapts_on(cluster, monkeypatch) -> None:
    adaptive = cluster.adapt(minimum=1, maximum=3)

    def refuse(n: int) -> None:
        raise RuntimeError("quota exceeded")

    monkeypatch.setattr(cluster, "scale", refuse)
    with pytest.raises(InvalidInput, match="quota exceeded"):
        scale(cluster, 2)
    assert adaptive.state != "stopped"
    assert planned_workers(cluster) == 3


def test_a_cluster_is_to_have_what_was_asked_for_or_at_most_what_it_may_adapt_to(cluster) -> None:
    assert planned_workers(cluster) == 1
    cluster.adapt(minimum=1, maximum=3)
    assert planned_workers(cluster) == 3
    scale(cluster, 2)
    assert planned_workers(cluster) == 2
    assert planned_workers(None) is None
    assert planned_workers(_Hosts(grows=False)) is None
    assert planned_workers(_Hosts(grows=True)) == 1
    assert planned_workers(SimpleNamespace(_supports_scaling=True)) is None  # it says nothing of what it plans


def test_a_study_may_expect_the_workers_that_its_cluster_is_to_bring(cluster, tmp_path) -> None:
    with Client(cluster, set_as_default=False) as client:
        executor = DaskExecutor(client, Deterministic, CheckpointStore(str(tmp_path)))
        with closing(executor):
            executor.open(0.0)
            assert executor.n_slots == 1
            assert not executor.want(2)
            cluster.adapt(minimum=1, maximum=2)
            assert executor.want(2)
            assert not executor.want(1)
            executor._others = 1  # another study has the second
            assert not executor.want(2)
            executor._to_come = 1
            assert executor.want(2)
            assert not executor.want(1)


def test_where_nobody_knows_what_is_to_come_workers_that_have_just_come_or_gone_give_hope(cluster, tmp_path) -> None:
    with Client(cluster.scheduler_address, set_as_default=False) as client:
        executor = DaskExecutor(client, Deterministic, CheckpointStore(str(tmp_path)))
        with closing(executor):
            executor.open(500.0)
            assert executor.want(2)
            executor.open(570.0)
            assert not executor.want(2)
            cluster.scale(2)
            while executor.n_slots < 2:
                executor.wait(5)
            assert executor.want(3)
            assert not executor.want(2)


def test_a_gang_is_refused_only_where_there_are_not_to_be_workers_enough(cluster, tmp_path) -> None:
    def opened(gang_of: int) -> None:
        with closing(DaskExecutor(client, Gang(gang_of), CheckpointStore(str(tmp_path)))) as executor:
            executor.open(0.0)

    with Client(cluster, set_as_default=False) as client:
        with pytest.raises(InvalidInput, match="a gang of 2 workers, the cluster has 1: add workers"):
            opened(2)
        cluster.adapt(minimum=1, maximum=2)
        opened(2)
        with pytest.raises(InvalidInput, match="a gang of 3 workers"):
            opened(3)


def test_threads_of_a_worker_are_told_to_be_no_slots(cluster) -> None:
    with Client(cluster, set_as_default=False) as client:
        with warnings.catch_warnings(action="error"):
            warn_of_threads(client)
        client.scheduler_info = lambda n_workers: {"workers": {"a": {"nthreads": 3}}}
        with pytest.warns(UserWarning, match=r"^1 worker of up to 3 threads: each is one slot; .* --nthreads 1"):
            warn_of_threads(client)
