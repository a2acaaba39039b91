"""SSH: a cluster on three hosts with addresses of their own, whose cables are cut."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.clusters.conftest import RECIPES
from tests.clusters.ssh import ssh_hosts
from tests.clusters.test_slurm import Watch, up
from tests.clusters.trials import Paced
from tests.simulation.test_agreement import SCHEDULERS, Recorded, TakesTime, story
from tests.support import SPACE, MemoryLog, virtual_executor
from workbench import GA3C, Budget, FullRuns, HyperTrick, LogUniform, RandomSearcher, Study
from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.dask import DaskExecutor
from workbench.cluster.launchers import cluster_client
from workbench.core.drive import drive
from workbench.core.protocols import Kind
from workbench.knowledge import KnowledgeBase
from workbench.paper.ba3c.virtual_hosts import Host
from workbench.viz import figures

pytestmark = pytest.mark.clusters


@pytest.fixture
def nodes(home, tmp_path, monkeypatch) -> Iterator[list[Host]]:
    """Three hosts to compute on; this thread is on a fourth, the head, in a home directory with all keys."""
    monkeypatch.setenv("USER", "root")
    subprocess.run(["bash", RECIPES / "keys.sh"], check=True, capture_output=True)
    with ssh_hosts(["head", "n1", "n2", "n3"], tmp_path, home) as (head, *nodes), head.entered():
        yield nodes


@pytest.fixture
def client(nodes):
    """A client of the recipe's cluster; a silent host is given up a little sooner."""
    recipe = (RECIPES / "ssh.toml").read_text()
    assert '"60s"' in recipe
    Path("ssh.toml").write_text(recipe.replace('"60s"', '"20s"'))
    with cluster_client("ssh.toml") as client:
        client.wait_for_workers(6, timeout=300)
        yield client


def test_a_cable_that_is_cut_in_mid_phase_and_put_back_in_time_costs_nothing(nodes, client) -> None:
    watch = Watch()
    scheduler = FullRuns(RandomSearcher(SPACE), 8, 3)
    run = Study("cut", scheduler, Paced(200, 0.05), "kb.db", client=client, callbacks=[watch], max_retries=1).start()
    watch.until(lambda events: sum(e.kind is Kind.PROGRESS for e in events) > 30)
    with ExitStack() as put_back:
        nodes[0].cut()
        put_back.callback(nodes[0].mend)
        heard = len(watch.events)
        watch.until(lambda events: sum(e.kind is Kind.PROGRESS for e in events[heard:]) > 20)  # of the others
    heard = len(watch.events)
    watch.until(lambda events: {e.slot for e in events[heard:] if e.kind is Kind.PROGRESS} == set(range(6)))
    assert watch.n(Kind.SLOT_LOST) == 0
    assert run.wait(600)
    assert watch.n(Kind.PHASE_FAILED) == 0
    assert watch.n(Kind.PHASE_ENDED) == 24


def test_hosts_that_come_back_take_part_again_one_that_was_given_up_and_one_that_crashed(nodes, client) -> None:
    watch = Watch()
    scheduler = FullRuns(RandomSearcher(SPACE), 8, 1000)  # it is stopped when it has been seen
    run = Study("back", scheduler, Paced(20, 0.05), "kb.db", client=client, callbacks=[watch]).start()
    watch.until(lambda events: {e.slot for e in events if e.kind is Kind.PROGRESS} == set(range(6)))
    with ExitStack() as put_back:
        nodes[1].cut()
        put_back.callback(nodes[1].mend)
        nodes[2].crash()
        watch.until(lambda events: sum(e.kind is Kind.SLOT_LOST for e in events) >= 4)
    watch.until(lambda events: up(events) == 6)
    back = [e for e in watch.events if e.kind is Kind.SLOT_JOINED][6:]
    assert {e.data["node"] for e in back} == {nodes[1].address, nodes[2].address}
    heard = len(watch.events)
    watch.until(lambda events: {e.slot for e in back} <= {e.slot for e in events[heard:] if e.kind is Kind.PHASE_ENDED})
    run.stop()
    assert run.wait(600)
    assert {e.data["why"] for e in watch.events if e.kind is Kind.PHASE_FAILED} == {"crash"}
    assert watch.n(Kind.TRIAL_FAILED) == 0


def test_two_studies_share_the_hosts_by_their_weights_and_the_last_has_all(client) -> None:
    watches, runs = {"light": Watch(), "heavy": Watch()}, []
    for name, watch in watches.items():
        scheduler, weight = FullRuns(RandomSearcher(SPACE), 12, 8), 1.0 + (name == "heavy")
        study = Study(name, scheduler, Paced(10, 0.05), f"{name}.db", client=client, callbacks=[watch], weight=weight)
        runs.append(study.start())
    watches["heavy"].until(lambda events: up(events) == 4)
    watches["light"].until(lambda events: up(events) == 2)
    heard = {name: len(watch.events) for name, watch in watches.items()}
    for name, watch in watches.items():  # and so it stays
        since = heard[name]
        watch.until(lambda events, since=since: sum(e.kind is Kind.PHASE_ENDED for e in events[since:]) > 12)
        assert not [e for e in watch.events[since:] if e.kind in (Kind.SLOT_JOINED, Kind.SLOT_LOST)]
    watches["light"].until(lambda events: up(events) == 6)
    for run, watch in zip(runs, watches.values(), strict=True):
        assert run.wait(600)
        assert watch.n(Kind.PHASE_ENDED) == 96
        assert watch.n(Kind.PHASE_FAILED) == 0


def test_a_study_of_ga3c_outlives_a_host_and_its_figure_shows_occupancy_by_host(nodes, client) -> None:
    watch = Watch()
    trials = GA3C("CartPole-v1", phase=Budget(updates=60), n_agents=4, emulator_threads=1)
    scheduler = HyperTrick(RandomSearcher({"learning_rate": LogUniform(1e-4, 1e-2)}), 8, 2)
    run = Study("ga3c", scheduler, trials, "kb.db", client=client, callbacks=[watch]).start()
    watch.until(lambda events: {e.slot for e in events if e.kind is Kind.PHASE_STARTED} == set(range(6)))
    nodes[2].cut()  # for good
    try:
        assert run.wait(600)
    finally:
        nodes[2].mend()  # so that its processes can be ended
    with KnowledgeBase("kb.db") as kb:
        frames = kb["ga3c"].frames()
    assert set(frames.slots["node"]) == {node.address for node in nodes}
    lost = frames.slots["lost_s"] < frames.wall_s  # on a loaded machine others may be silent for as long, and come back
    assert nodes[2].address in set(frames.slots[lost]["node"])
    assert nodes[2].address not in set(frames.slots[~lost]["node"])
    assert (frames.trials["state"] != "failed").all()
    fig = figures.node_occupancy(frames.spans, frames.slots, frames.wall_s)
    told = " ".join(map(str, fig.layout.yaxis.ticktext))
    assert all(node.address in told for node in nodes)


@pytest.mark.parametrize("name", ["hypertrick", "asha"])
def test_over_the_network_too_the_simulator_decides_as_the_cluster_did(client, name) -> None:
    executor, real = DaskExecutor(client, TakesTime, CheckpointStore(os.path.abspath("checkpoints"))), MemoryLog()
    with closing(executor):
        executor.open(0.0)
        while executor.n_slots < 6:
            executor.wait(1)
        assert drive(SCHEDULERS[name](), executor, real, seed=3)
    virtual, simulated = MemoryLog(), virtual_executor(Recorded(real), 6)
    assert drive(SCHEDULERS[name](), simulated, virtual, seed=3)
    assert story(virtual) == story(real)
