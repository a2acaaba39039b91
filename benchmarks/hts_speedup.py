"""HTS-RL against its synchronous baseline, as the variance of step times grows: speed, and the returns it costs or not.

Prints one JSON object. Environments sleep (`StepTime`), so what is compared is waiting, not computing, and two cores
suffice, as long as computing takes clearly less than sleeping. Both systems are the same but for `concurrent`: 16
environments, PPO, an update every `sync_interval` steps of each, as many updates of as many steps; HTS-RL plays one
interval more, which it does not train on. ``laws`` holds, for every law of step times, over the seeds:

- ``speedup``: seconds an environment step of the baseline over those of HTS-RL, the two run in turn with the same
  seed; median and 95 % bootstrap interval over seeds, and each value
- ``expected``: what the law alone gives (``expected_speedup``): ``rollout`` without learning, ``with_learning`` with
  the seconds an update took in the baseline here; neither knows of the time that threads and predictions take
- ``returns``: mean return of `--games` games after training, by system, with the interval of the mean over seeds;
  ``difference`` is HTS-RL's less the baseline's, paired by seed: they agree if its interval holds 0
- ``runs``: what they were computed from, one entry a seed and system
- ``step_ms``, ``learning_s``: medians by system; ``policy_lag``: the largest of any experience, by system

``--seeds 0`` gives the expectation alone, in seconds.

Run with ``python benchmarks/hts_speedup.py --laws gamma:0.1 gamma:1 gamma:2 gamma:3 lognormal:2 pareto:2 --seeds 4``;
one to three minutes a law and seed with the defaults, on an idle machine.
"""

import argparse
import json
import os
import statistics
from multiprocessing import get_context
from typing import Any

import numpy as np

from workbench.algos.rl.evaluate import evaluate
from workbench.algos.rl.hts.step_time import StepTime
from workbench.algos.rl.hts.trial import HTS
from workbench.analysis.bootstrap import bootstrap_interval
from workbench.paper.hts.speedup import expected_speedup

SYSTEMS = {"hts": True, "synchronous": False}
CONFIG = {"learning_rate": 1e-3, "init": "orthogonal", "gamma": 0.98, "entropy_beta": 0.0, "gae_lambda": 0.8}
LAWS = ("gamma:0.1", "gamma:1", "gamma:2", "gamma:3", "lognormal:2", "pareto:2")


def train(settings: dict[str, Any], concurrent: bool, seed: int, games: int) -> dict[str, float]:
    """Train once: milliseconds a step of all environments, seconds an update, lag, and the mean return afterwards."""
    trial = HTS.from_json(settings | {"concurrent": concurrent})(CONFIG, seed)
    metrics = trial.train_phase(lambda metrics: None)
    lags = np.flatnonzero(trial._meter.reading().lags)
    trial.close()
    return {
        "step_ms": 1e3 * metrics["seconds"] / metrics["steps"] * settings["n_agents"],
        "steps": metrics["steps"],
        "learning_s": metrics["learning_s"],
        "policy_lag": int(lags.max()),
        "return": evaluate(trial.model, trial.game, games, seed=1000 + seed).mean,
    }


def train_both(settings: dict[str, Any], seed: int, games: int) -> dict[str, dict[str, float]]:
    """Train both systems in turn."""
    return {name: train(settings, on, seed, games) for name, on in SYSTEMS.items()}


def compare(law: StepTime, settings: dict[str, Any], seeds: range, games: int, processes: int) -> dict[str, Any]:
    """Run both systems in turn with every seed."""
    n, alpha = settings["n_agents"], settings["sync_interval"]
    rollout = {"rollout": round(expected_speedup(law, n, alpha).speedup, 3)}
    if not seeds:
        return {"expected": rollout}
    slow = settings | {"step_time_law": law.law, "step_time_mean_s": law.mean_s, "step_time_cv": law.cv}
    with get_context("spawn").Pool(processes) as pool:
        runs = pool.starmap(train_both, [(slow, seed, games) for seed in seeds], chunksize=1)

    def by_system(field: str) -> dict[str, float]:
        return {name: round(statistics.median(run[name][field] for run in runs), 4) for name in SYSTEMS}

    ratios = [run["synchronous"]["step_ms"] / run["hts"]["step_ms"] for run in runs]
    gains = [run["hts"]["return"] - run["synchronous"]["return"] for run in runs]
    learning_s = by_system("learning_s")
    return {
        "speedup": interval(ratios, "median") | {"each": [round(r, 3) for r in ratios]},
        "expected": rollout
        | {"with_learning": round(expected_speedup(law, n, alpha, learning_s["synchronous"]).speedup, 3)},
        "returns": {name: interval([run[name]["return"] for run in runs], "mean") for name in SYSTEMS}
        | {"difference": interval(gains, "mean")},
        "step_ms": by_system("step_ms"),
        "learning_s": learning_s,
        "steps": by_system("steps"),
        "runs": [
            {"seed": seed, "system": name} | run[name]
            for seed, run in zip(seeds, runs, strict=True)
            for name in SYSTEMS
        ],
        "policy_lag": {name: max(run[name]["policy_lag"] for run in runs) for name in SYSTEMS},
    }


def interval(values: list[float], statistic: Any) -> dict[str, float]:
    """Give a median or mean, and its interval."""
    found = bootstrap_interval(values, statistic)
    return {statistic: round(found.value, 3), "low": round(found.low, 3), "high": round(found.high, 3)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--laws", nargs="+", default=LAWS, help="law:cv, cv being standard deviation over mean")
    parser.add_argument("--mean-ms", type=float, default=20, help="of a step")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--updates", type=int, default=6, help="of each run")
    parser.add_argument("--processes", type=int, default=1, help="seeds at once")
    parser.add_argument("--sync-interval", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=60, help="of PPO: how long an update takes")
    parser.add_argument("--games", type=int, default=20, help="played after training")
    given = parser.parse_args()
    settings = {
        "game": "CartPole-v1",
        "device": "cpu",
        "method": "ppo",
        "n_agents": 16,
        "phase": {"updates": given.updates},
        "sync_interval": given.sync_interval,
        "n_epochs": given.epochs,
        "n_minibatches": max(1, given.sync_interval // 8),
    }
    seeds, found = range(given.first_seed, given.first_seed + given.seeds), {}
    for name in given.laws:
        law, cv = name.split(":")
        step_time = StepTime(given.mean_ms / 1e3, float(cv), law)
        found[name] = compare(step_time, settings, seeds, given.games, given.processes)
    shown = {"settings": settings | CONFIG, "mean_ms": given.mean_ms, "load_1m": round(os.getloadavg()[0], 1)}
    print(json.dumps(shown | {"laws": found}, indent=2))


if __name__ == "__main__":
    main()
