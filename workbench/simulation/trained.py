"""Real trainables in virtual time: phases are trained in this process, one after the other, and cost what is said."""

import math
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.core.checks import FROM_ZERO, POSITIVE, check
from workbench.core.measured import parted
from workbench.core.protocols import Event, Job, Metrics, Scheduler, TrainableFactory
from workbench.simulation.cluster import VirtualCluster
from workbench.simulation.executor import Ran, checkpoint_name
from workbench.simulation.outcome import Outcome
from workbench.simulation.run import simulate


@dataclass(frozen=True)
class TrainedPhases:
    """A model of a simulated cluster in which trials truly train, so that copied weights count.

    Scores are measured, times are virtual. Every phase is built anew from its checkpoint, as after a change of nodes.

    Parameters
    ----------
    factory : TrainableFactory
    folder : path
        Where checkpoints go; the caller's to remove. One study a folder.
    phase_s : float or None
        Virtual seconds of a phase; ``None``: as long as it really took, which does not repeat.
    spread : float
        Standard deviation of the logarithm of a phase's virtual duration, drawn by trial and phase.
    seed : int
        Of the durations.
    """

    factory: TrainableFactory
    folder: str | Path
    phase_s: float | None = 1.0
    spread: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        check(self, POSITIVE.or_none(), "phase_s")
        check(self, FROM_ZERO, "spread")

    def run(self, job: Job) -> Ran:
        """Train the job's phase and save its checkpoint; training that diverges gives a score of NaN."""
        began = time.perf_counter()
        points: list[Metrics] = []
        trainable = self.factory(job.config, job.seed)
        try:
            if job.checkpoint is not None:
                trainable.load(self._path(job.checkpoint))
            metrics, returns = parted(trainable.train_phase(lambda metrics: points.append(dict(metrics))))
            path = self._path(checkpoint_name(job))
            shutil.rmtree(path, ignore_errors=True)  # a phase may be run again
            path.mkdir(parents=True)
            trainable.save(path)
        except FloatingPointError:
            metrics, returns = {"score": math.nan}, []
        finally:
            trainable.close()
        return Ran(self._seconds(job, time.perf_counter() - began), metrics, points, returns)

    def _path(self, checkpoint: str) -> Path:
        return Path(self.folder) / checkpoint.removeprefix("virtual:")

    def _seconds(self, job: Job, measured_s: float) -> float:
        seconds = measured_s if self.phase_s is None else self.phase_s
        if not self.spread:
            return seconds
        identity = np.random.SeedSequence(self.seed, spawn_key=(3, job.trial, job.phase))  # as with accidents, no list
        return seconds * math.exp(self.spread * float(np.random.default_rng(identity).normal()))


def simulate_training(
    scheduler: Scheduler, factory: TrainableFactory, nodes: int, *, seed: int = 0, spread: float = 0.0
) -> tuple[Outcome, list[Event]]:
    """Run a study of trials that train on equal virtual nodes, and keep nothing but its outcome and its log.

    `seed` is the study's, and of the durations that `spread` makes unequal (see `TrainedPhases`).
    """
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None  # ten thousands of small checkpoints
    events: list[Event] = []
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        model = TrainedPhases(factory, folder, spread=spread, seed=seed)
        return simulate(scheduler, model, VirtualCluster(nodes), seed=seed, events=events), events
