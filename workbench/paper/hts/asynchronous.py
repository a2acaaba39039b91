"""What as many steps teach HTS-RL, and the asynchronous systems here: GA3C, whose queues age what is played, and A3C.

All have the same agents, segments, network, optimiser and learning rates, and play as fast as they can. GA3C waits for
batches as large as HTS-RL's; A3C steps along the gradient of every segment by itself, as it is defined.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from workbench.algos.rl.a3c.trial import A3C
from workbench.algos.rl.ga3c.trial import GA3C
from workbench.algos.rl.hts.trial import HTS
from workbench.core.budget import Budget
from workbench.paper.experiment import Rows, rows_of_each, trained

N_AGENTS, T_MAX = 16, 5
SYSTEMS: Mapping[str, tuple[Any, Mapping[str, Any]]] = {
    "HTS-RL": (HTS, {"method": "a2c", "sync_interval": T_MAX}),
    "GA3C": (GA3C, {"min_training_batch": N_AGENTS * T_MAX}),
    "A3C": (A3C, {}),
}


@dataclass(frozen=True)
class StepRuns:
    """Runs of `frames`, cut into `phases`, by every system at every learning rate with every seed."""

    seeds: int
    frames: int = 60_000
    phases: int = 12
    learning_rates: tuple[float, ...] = (1e-3, 3e-3)
    game: str = "CartPole-v1"
    processes: int = 2


def as_many_steps(settings: StepRuns) -> Rows:
    """Train all systems on the same budget of frames.

    Returns
    -------
    rows
        One a run and phase: system, learning_rate, seed, phase, frames, seconds, score (mean return of the phase's
        games), policy_lag_mean (updates).
    """
    jobs = [
        (settings, system, rate, seed)
        for seed in range(settings.seeds)
        for rate in settings.learning_rates
        for system in SYSTEMS
    ]
    return rows_of_each(_curve, jobs, settings.processes)


def _curve(settings: StepRuns, system: str, rate: float, seed: int) -> Rows:
    kind, own = SYSTEMS[system]
    phase = Budget(frames=settings.frames // settings.phases)
    factory = kind(settings.game, phase, device="cpu", n_agents=N_AGENTS, t_max=T_MAX, **own)
    phases = trained(factory, {"learning_rate": rate}, seed, settings.phases)
    rows: Rows = []
    for number, metrics in enumerate(phases, 1):
        at = {"system": system, "learning_rate": rate, "seed": seed, "phase": number, "frames": metrics["frames"]}
        at |= {"seconds": round(metrics["seconds"], 2), "score": round(metrics["score"], 2)}
        rows.append(at | {"policy_lag_mean": round(metrics["policy_lag_mean"], 3)})
    return rows


def over_frames(runs: pd.DataFrame) -> pd.Series:
    """Average every run's score over the budget of frames, which all have played; of what is beyond it, nothing.

    Phases end late where games are long, so those of a system that plays well hold more frames.

    Parameters
    ----------
    runs : DataFrame
        The recording ``hts-asynchronous``.

    Returns
    -------
    Series
        By system, learning_rate and seed: the mean of the curve at the frames where phases were to end, between its
        points in a straight line.
    """
    by_run = runs.groupby(["system", "learning_rate", "seed"])
    n_phases, budget = runs["phase"].max(), by_run["frames"].max().min()
    at = budget / n_phases * np.arange(1, n_phases + 1)
    means = {run: float(np.interp(at, curve["frames"], curve["score"]).mean()) for run, curve in by_run}
    return pd.Series(means).rename_axis(["system", "learning_rate", "seed"])
