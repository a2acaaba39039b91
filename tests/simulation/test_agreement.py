"""The simulator and the Dask executor take the same decisions in the same order, for recorded durations and scores."""

import threading
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from tests.support import SPACE, Deterministic, MemoryLog, virtual_executor
from workbench.algos.search import (
    ASHA,
    MFPBT,
    PASHA,
    PB2,
    PBT,
    EvolutionSearcher,
    FullRuns,
    Hyperband,
    HyperTrick,
    MedianStopping,
    Portfolio,
    RandomSearcher,
    Seeded,
    SuccessiveHalving,
    Sure,
    TopK,
)
from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.dask import DaskExecutor
from workbench.cluster.local import local_client
from workbench.core.drive import drive
from workbench.core.protocols import Kind

N = 3  # workers

SCHEDULERS = {
    "hypertrick": lambda: HyperTrick(RandomSearcher(SPACE), 8, 3, 0.25),
    "hypertrick-evolution": lambda: HyperTrick(EvolutionSearcher(SPACE, warmup=2, random=0.0), 8, 3, 0.25),
    "full": lambda: FullRuns(RandomSearcher(SPACE), 4, 2),
    "portfolio": lambda: Portfolio(RandomSearcher(SPACE), 3, (4, 4), (0.5, 0.1)),
    "halving": lambda: SuccessiveHalving(RandomSearcher(SPACE), 7, 4, eta=2),
    "halving-static": lambda: SuccessiveHalving(RandomSearcher(SPACE), 7, 4, eta=2, allocation="static", n_nodes=N),
    "halving-hold": lambda: SuccessiveHalving(
        RandomSearcher(SPACE), N, 3, eviction_rate=0.4, allocation="none", n_nodes=N
    ),
    "halving-restart": lambda: SuccessiveHalving(RandomSearcher(SPACE), 6, 4, eta=2, restart=True),
    "hyperband": lambda: Hyperband(RandomSearcher(SPACE), 4, eta=2),
    "hyperband-hold": lambda: Hyperband(RandomSearcher(SPACE), 3, order="sequence", allocation="none", n_nodes=N),
    "asha": lambda: ASHA(RandomSearcher(SPACE), 8, 4, eta=2),
    "asha-stopping": lambda: ASHA(RandomSearcher(SPACE), 8, 4, eta=2, variant="stopping"),
    "mfpbt": lambda: MFPBT(RandomSearcher(SPACE), 5, 4, share=0.4, intervals=(1, 2)),
    "pb2": lambda: PB2(RandomSearcher(SPACE), 5, 4, share=0.4, warmup=2, draws=20),
    "pasha": lambda: PASHA(RandomSearcher(SPACE), 8, 4, eta=2),
    "median": lambda: MedianStopping(RandomSearcher(SPACE), 7, 3, min_reports=1),
    "pbt": lambda: PBT(RandomSearcher(SPACE), 5, 4, share=0.4),
    "seeded": lambda: Seeded(HyperTrick(RandomSearcher(SPACE), 4, 3, 0.25), 2),
    "topk": lambda: TopK(RandomSearcher(SPACE), 7, 3, kept=2),
    "sure": lambda: Sure(RandomSearcher(SPACE), 8, 4, finalists=2, seeds=2, warmup=3),
}
# of every way to let trials wait, end, go on, be repeated or copied one
QUICK = {"hypertrick-evolution", "portfolio", "halving-hold", "halving-restart", "hyperband", "asha", "mfpbt"}
QUICK |= {"seeded", "sure"}


class TakesTime(Deterministic):
    """Takes as long as its seed and phase say, up to a tenth of a second."""

    def train_phase(self, progress) -> dict[str, float]:
        threading.Event().wait(0.1 * np.random.default_rng([self.seed, self.phase, 1]).random())
        return super().train_phase(progress)


class Recorded:
    """What a log says of every phase: its score, and the time from what let the trial run to the end of the phase.

    What lets a trial run is a report: its own, or another's that ends a barrier or frees a slot. Times are counted from
    it, not from the moment the phase began, so that what the driver and the cluster needed in between is in them.
    """

    def __init__(self, log) -> None:
        self.known: dict[tuple[int, int], tuple[float, float]] = {}
        last = next(e.at for e in log if e.kind is Kind.RUN)
        since: dict[int, float] = {}
        for event in log:
            if event.kind is Kind.RUN:
                since[event.trial] = last
            elif event.kind is Kind.DECISION and event.data["verdict"] == "continue":
                since[event.trial] = event.at
            elif event.kind is Kind.PHASE_ENDED:
                self.known[event.trial, event.phase] = (event.at - since[event.trial], event.data["score"])
                last = event.at

    def phase(self, trial, phase, config, seed):
        return self.known[trial, phase]


@pytest.fixture(scope="module")
def cluster():
    with local_client(N) as client:
        yield client


def story(log) -> list[tuple[Any, ...]]:
    """What was asked for, what was reported and what was decided, in order, times left out."""
    told = []
    for e in log:
        if e.kind in (Kind.RUN, Kind.DECISION):
            told.append((str(e.kind), e.trial, e.phase, dict(e.data)))
        elif e.kind is Kind.PHASE_ENDED:
            told.append((str(e.kind), e.trial, e.phase, e.data["score"], e.slot))
    return told


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in SCHEDULERS])
def test_the_simulator_decides_as_the_real_cluster_did(cluster, tmp_path, name) -> None:
    executor, real = DaskExecutor(cluster, TakesTime, CheckpointStore(str(tmp_path))), MemoryLog()
    with closing(executor):
        executor.open(0.0)
        assert drive(SCHEDULERS[name](), executor, real, seed=3)
    virtual = MemoryLog()
    simulated = virtual_executor(Recorded(real), N)
    assert drive(SCHEDULERS[name](), simulated, virtual, seed=3)
    assert story(virtual) == story(real)
    assert len({e.slot for e in real if e.kind is Kind.PHASE_STARTED}) == N
