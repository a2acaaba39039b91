"""PBT against random search over GA3C on CartPole, with the same frames, slots and time, on paired seeds.

Prints one JSON object. In each repetition both begin with the same configurations, in the same order, under the same
trial seeds; both run `population` × `phases` phases of `frames` frames on as many virtual nodes as members, so they get
equal frames and equal node time, and their first phases are the same to the last bit. GA3C trains for real, in its
deterministic mode; only the clock is virtual, so the numbers repeat exactly.

``final`` is the best score among the members at the end (the mean return of the last 100 games of that trial, 500 at
most), ``mean`` that of all members at the end, ``over_time`` the mean over the phases of the best score so far. Each is
given as a mean with its 95 % bootstrap interval, and so is the paired difference.

Run with ``python benchmarks/pbt_cartpole.py --repeats 10 --processes 2``.
"""

import argparse
import json
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from workbench import GA3C, PBT, Budget, FullRuns, LogUniform, RandomSearcher, Space
from workbench.analysis import bootstrap_interval, lineage, schedules
from workbench.cluster.trained import TrainedPhases
from workbench.cluster.virtual import VirtualCluster
from workbench.core.protocols import Event
from workbench.knowledge import frames_of
from workbench.simulation import simulate

SPACE = Space(
    {
        "learning_rate": LogUniform(1e-5, 1e-2),
        "entropy_beta": LogUniform(1e-4, 1e-1),
        "t_max": LogUniform(2, 100, step=1),
    }
)
MEASURES = ("final", "mean", "over_time")


def repetition(population: int, phases: int, frames: int, seed: int) -> dict[str, dict[str, Any]]:
    """Run both schedulers once."""
    agent = GA3C(game="CartPole-v1", phase=Budget(frames=frames), n_agents=8, lockstep=True, device="cpu")
    both: dict[str, Any] = {
        "pbt": PBT(RandomSearcher(SPACE, seed=seed), population, phases, seed=seed),
        "random": FullRuns(RandomSearcher(SPACE, seed=seed), population, phases),
    }
    found = {}
    for name, scheduler in both.items():
        events: list[Event] = []
        with tempfile.TemporaryDirectory() as folder:
            model = TrainedPhases(agent, folder)
            simulate(scheduler, model, VirtualCluster(population), seed=seed, events=events)
        found[name] = summed_up(events, population, phases)
    return found


def summed_up(events: list[Event], population: int, phases: int) -> dict[str, Any]:
    """Take the measures from a study's log."""
    frames = frames_of(events)
    known = lineage(frames.trials, frames.phases, frames.decisions)
    table = schedules(known, frames.trials, frames.phases, [])
    scores = table.pivot(index="member", columns="phase", values="score").to_numpy(float)  # [members, phases]
    return {
        "final": float(np.nanmax(scores[:, -1])),
        "mean": float(np.nanmean(scores[:, -1])),
        "over_time": float(np.maximum.accumulate(np.nanmax(scores, axis=0)).mean()),
        "first_phase": scores[:, 0].tolist(),
        "phases": int(np.isfinite(scores).sum()),
        "planned": population * phases,
        "copies": int(known["copied"].sum()),
    }


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--population", type=int, default=10)
    parser.add_argument("--phases", type=int, default=10)
    parser.add_argument("--frames", type=int, default=5000, help="of one phase of one member")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0, help="of the first repetition")
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    run = partial(repetition, given.population, given.phases, given.frames)
    seeds = range(given.seed, given.seed + given.repeats)
    if given.processes == 1:
        runs = list(map(run, seeds))
    else:
        with ProcessPoolExecutor(given.processes) as pool:
            runs = list(pool.map(run, seeds))
    result: dict[str, Any] = {"settings": vars(given), "paired": all(map(is_paired, runs))}
    for measure in MEASURES:
        pbt, random = (np.array([run[name][measure] for run in runs]) for name in ("pbt", "random"))
        values = {"pbt": pbt, "random": random, "difference": pbt - random}
        result[measure] = {name: [round(x, 2) for x in bootstrap_interval(v, "mean")] for name, v in values.items()}
        result[measure]["pbt_better_in"] = int((pbt > random).sum())
    result["runs"] = runs
    print(json.dumps(result, indent=1))


def is_paired(run: dict[str, Any]) -> bool:
    """Tell whether both began alike: the same scores after the first phase."""
    return bool(run["pbt"]["first_phase"] == run["random"]["first_phase"])


if __name__ == "__main__":
    main()
