"""What is run for the HTS-RL paper's figures: HTS-RL against its synchronous baseline.

Environments sleep (`StepTime`), so what is compared is waiting, not computing, and two cores suffice, as long as
computing takes clearly less than sleeping. Both systems are the same but for `concurrent`.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench.algos.rl.evaluate import evaluate
from workbench.algos.rl.hts.trial import HTS, HTSTrial
from workbench.core.budget import Budget
from workbench.core.protocols import Config
from workbench.paper.experiment import Experiment, Rows, each, rows_of_each, trained
from workbench.paper.hts.asynchronous import StepRuns, as_many_steps
from workbench.paper.hts.speedup import mark_of

SYSTEMS = {"hts": True, "synchronous": False}
CONFIG: Config = {"learning_rate": 1e-3, "init": "orthogonal", "gamma": 0.98, "entropy_beta": 0.0, "gae_lambda": 0.8}
N_SLEEPERS = 16
LAWS = ("gamma:0.1", "gamma:1", "gamma:3")
METHODS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a2c": ({"method": "a2c", "sync_interval": 5}, {"learning_rate": 3e-3, "t_max": 5}),
    "ppo": (
        {"method": "ppo", "sync_interval": 64},
        {"learning_rate": 1e-3, "n_epochs": 10, "n_minibatches": 8, "gamma": 0.98, "gae_lambda": 0.9},
    ),
}
ATARI: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # barriers as in the paper's code, the rest usual settings
    "a2c": ({"method": "a2c", "sync_interval": 16}, {"learning_rate": 7e-4, "t_max": 5}),
    "ppo": (
        {"method": "ppo", "sync_interval": 128},
        {"learning_rate": 2.5e-4, "n_epochs": 4, "n_minibatches": 4, "gamma": 0.99, "gae_lambda": 0.95},
    ),
}


@dataclass(frozen=True)
class SpeedRuns:
    """Both systems under every law of step times with every seed, by PPO on CartPole.

    Attributes
    ----------
    laws : tuple of str
        ``law:cv``, cv being standard deviation over mean.
    updates : int
        Of each run, every `sync_interval` steps.
    mean_ms : float
        Of a step.
    epochs : int
        Of PPO: how long an update takes.
    games : int
        Played after training.
    processes : int
        Runs of the baseline at once: they mostly sleep. HTS-RL's, which learn all the while, go one by one.
    """

    laws: tuple[str, ...]
    seeds: int
    updates: int = 12
    mean_ms: float = 40.0
    epochs: int = 150
    sync_interval: int = 128
    games: int = 20
    processes: int = 2


def speedup(settings: SpeedRuns) -> Rows:
    """Measure seconds a step by the variance of step times, and the returns it costs or not.

    As many updates of as many steps; HTS-RL plays one interval more, which it does not train on.

    Returns
    -------
    rows
        One a law and seed: law, cv, seed, n_agents, sync_interval, mean_ms, then of both systems (``hts_``,
        ``synchronous_``) step_ms (of all environments), steps, learning_s (of an update), policy_lag (the largest),
        return (mean of the games after training), and speedup (the baseline's step_ms over HTS-RL's: of steps played,
        the interval that is not trained on among them). They are summed up by `hts.speedup.speedups`.
    """
    runs = [(settings, law, seed) for law in settings.laws for seed in range(settings.seeds)]
    measured = {
        system: each(_sleeper, [(*run, system) for run in runs], 1 if concurrent else settings.processes)
        for system, concurrent in SYSTEMS.items()
    }
    rows: Rows = []
    for k, (_, law, seed) in enumerate(runs):
        kind, cv = law.split(":")
        row: dict[str, Any] = {"law": kind, "cv": float(cv), "seed": seed, "n_agents": N_SLEEPERS}
        row |= {"sync_interval": settings.sync_interval, "mean_ms": settings.mean_ms}
        row |= {f"{system}_{name}": value for system, found in measured.items() for name, value in found[k].items()}
        rows.append(row | {"speedup": row["synchronous_step_ms"] / row["hts_step_ms"]})
    return rows


def _sleeper(settings: SpeedRuns, law: str, seed: int, system: str) -> dict[str, float]:
    kind, cv = law.split(":")
    base = _sleeping(settings, settings.updates, settings.sync_interval, float(cv))
    changes: dict[str, Any] = {"step_time_law": kind, "concurrent": SYSTEMS[system]}
    return _measured(replace(base, **changes)(CONFIG, seed), seed, settings.games)


def _sleeping(settings: "SpeedRuns | SweepRuns", updates: int, interval: int, cv: float) -> HTS:
    """Give the settings of PPO in minibatches of 128 on CartPole that sleeps in every step; see `StepTime`."""
    return HTS(
        game="CartPole-v1",
        device="cpu",
        method="ppo",
        n_agents=N_SLEEPERS,
        phase=Budget(updates=updates),
        sync_interval=interval,
        n_epochs=settings.epochs,
        n_minibatches=max(1, interval // 8),
        step_time_mean_s=settings.mean_ms / 1e3,
        step_time_cv=cv,
    )


def _measured(trial: HTSTrial, seed: int, games: int) -> dict[str, float]:
    metrics = trial.train_phase(lambda metrics: None)
    lags = np.flatnonzero(trial._meter.reading().lags)
    trial.close()
    return {
        "step_ms": 1e3 * metrics["seconds"] / metrics["steps"] * trial.settings.n_agents,
        "steps": metrics["steps"],
        "learning_s": metrics["learning_s"],
        "policy_lag": int(lags.max()),
        "return": evaluate(trial.model, trial.game, games, seed=1000 + seed).mean,
    }


@dataclass(frozen=True)
class SweepRuns:
    """HTS-RL by PPO with every number of actors, and with every synchronisation interval; exponential step times.

    Attributes
    ----------
    actors : tuple of int
        At an interval of 128.
    intervals : tuple of int
        At four actors.
    steps : int
        Of every environment in a run, whatever the interval.
    epochs : int
        Of PPO, in minibatches of 128.
    """

    seeds: int
    actors: tuple[int, ...] = (1, 2, 4, 8, 16)
    intervals: tuple[int, ...] = (4, 16, 64, 128, 512)
    steps: int = 1024
    mean_ms: float = 10.0
    epochs: int = 4
    games: int = 20
    processes: int = 2


def sweeps(settings: SweepRuns) -> Rows:
    """Measure speed and return by the number of actors and by the interval (Tables 4 and 5), deterministic.

    Returns
    -------
    rows
        One a value and seed: setting (actors or interval), value, seed, n_actors, sync_interval, n_agents, mean_ms,
        step_ms (of all environments), steps, learning_s (of an update), policy_lag (the largest), return (mean of the
        games after training), weights (a mark of all of them at the end, to the last bit).
    """
    jobs = [
        (settings, setting, value, seed)
        for setting, values in (("actors", settings.actors), ("interval", settings.intervals))
        for value in values
        for seed in range(settings.seeds)
    ]
    return each(_swept, jobs, settings.processes)


def _swept(settings: SweepRuns, setting: str, value: int, seed: int) -> dict[str, Any]:
    interval, actors = (value, 4) if setting == "interval" else (128, value)
    base = _sleeping(settings, settings.steps // interval, interval, cv=1.0)  # of a gamma law: exponential
    trial = replace(base, n_actors=actors)(CONFIG, seed)
    row = {"setting": setting, "value": value, "seed": seed, "n_actors": actors, "sync_interval": interval}
    row |= {"n_agents": base.n_agents, "mean_ms": settings.mean_ms}
    return row | _measured(trial, seed, settings.games) | {"weights": mark_of(trial)}


@dataclass(frozen=True)
class ReturnRuns:
    """Runs of `frames`, cut into `phases`, by every method and system with every seed; steps take exponential times."""

    seeds: int
    frames: int = 32_000
    phases: int = 12
    mean_ms: float = 10.0
    game: str = "CartPole-v1"
    processes: int = 2


def returns(settings: ReturnRuns) -> Rows:
    """Train A2C and PPO, each as HTS-RL and as its synchronous baseline, with the same seeds, frames and settings.

    Returns
    -------
    rows
        One a run and phase: system, method, concurrent, seed, phase, frames, seconds, score (mean return of the last
        phase's games), policy_lag_mean (updates).
    """
    jobs = [
        (settings, method, concurrent, seed)
        for seed in range(settings.seeds)
        for method in METHODS
        for concurrent in (True, False)
    ]
    return rows_of_each(_return_curve, jobs, settings.processes)


def _return_curve(settings: ReturnRuns, method: str, concurrent: bool, seed: int) -> Rows:
    changes, config = (METHODS if settings.game == "CartPole-v1" else ATARI)[method]
    factory = HTS(
        game=settings.game,
        device="cpu",
        n_agents=16,
        phase=Budget(frames=settings.frames // settings.phases),
        step_time_law="gamma",  # of cv 1: exponential
        step_time_mean_s=settings.mean_ms / 1e3,
        step_time_cv=1.0,
        concurrent=concurrent,
        **changes,
    )
    system = f"HTS-RL ({method.upper()})" if concurrent else method.upper()
    rows: Rows = []
    for phase, metrics in enumerate(trained(factory, {"init": "orthogonal", **config}, seed, settings.phases), 1):
        at = {"system": system, "method": method, "concurrent": concurrent, "seed": seed, "phase": phase}
        at |= {"frames": metrics["frames"], "seconds": round(metrics["seconds"], 3)}
        rows.append(at | {"score": round(metrics["score"], 2), "policy_lag_mean": metrics["policy_lag_mean"]})
    return rows


EXPERIMENTS: list[Experiment[Any]] = [
    Experiment(
        "hts-speedup",
        shows="HTS-RL, Fig. 4 (left): speed-up over the baseline by the variance of step times, and the returns",
        source="measured",
        run=speedup,
        scales={
            "minutes": (  # 40 ms and 150 epochs, halved alike: what is compared stays, and 20 seeds fit into an hour
                SpeedRuns(LAWS[2:], seeds=20, mean_ms=20.0, epochs=75, processes=6),
                SpeedRuns(LAWS[:2], seeds=4, mean_ms=20.0, epochs=75),
            ),
            "hours": SpeedRuns(LAWS, seeds=20, updates=30),
            "paper": SpeedRuns(LAWS, seeds=5, updates=1000, sync_interval=512),
        },
    ),
    Experiment(
        "hts-sweeps",
        shows="HTS-RL, Tables 4 and 5: speed and return by the number of actors and by the synchronisation interval",
        source="measured",
        run=sweeps,
        scales={
            "minutes": (SweepRuns(seeds=3, intervals=()), SweepRuns(seeds=3, actors=())),
            "hours": SweepRuns(seeds=20, steps=16_384),
            "paper": SweepRuns(seeds=5, steps=500_000),
        },
    ),
    Experiment(
        "hts-return",
        shows="HTS-RL, Fig. 5: return against wall time of A2C, PPO and HTS-RL, exponential step times",
        source="measured",
        run=returns,
        scales={
            "minutes": ReturnRuns(seeds=10),
            "hours": ReturnRuns(seeds=10, frames=200_000, phases=40),
            "paper": ReturnRuns(seeds=5, frames=40_000_000, phases=100, mean_ms=0, game="Pong"),
        },
    ),
    Experiment(
        "hts-asynchronous",
        shows="HTS-RL, Abstract: score by steps played beside asynchronous GA3C and A3C, the same settings",
        source="measured",
        run=as_many_steps,
        scales={
            "minutes": StepRuns(seeds=20),
            "hours": StepRuns(seeds=20, frames=200_000),
            "paper": StepRuns(seeds=5, frames=40_000_000, phases=100, game="Pong"),
        },
    ),
]
