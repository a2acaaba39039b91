"""PBT against random search over GA3C on CartPole, with the same frames, slots and time, on paired seeds.

Prints one JSON object. In each repetition both begin with the same configurations, in the same order, under the same
trial seeds; both run `population` × `phases` phases of `frames` frames on as many virtual nodes as members, so they get
equal frames and equal node time, and their first phases are the same to the last bit. GA3C trains for real, in its
deterministic mode; only the clock is virtual, so the numbers repeat exactly.

``final`` is the best score among the members at the end (the mean return of the games in its last phase, 500 at
most), ``mean`` that of all members at the end, ``over_time`` the mean over the phases of the best score so far. Each is
given as a mean with its 95 % bootstrap interval, and so is the paired difference; ``runs`` has every repetition's.

``--game`` plays another game, Atari's for days.

Run with ``python benchmarks/pbt_cartpole.py --repeats 10 --processes 2``.
"""

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from workbench import PBT, FullRuns, RandomSearcher
from workbench.analysis import bootstrap_interval
from workbench.paper.pbt.cartpole import MEASURES, SPACE, play, summed_up


def repetition(given: argparse.Namespace, seed: int) -> dict[str, dict[str, Any]]:
    """Run both schedulers once."""
    population, phases = given.population, given.phases
    both: dict[str, Any] = {
        "pbt": PBT(RandomSearcher(SPACE, seed=seed), population, phases, seed=seed),
        "random": FullRuns(RandomSearcher(SPACE, seed=seed), population, phases),
    }
    found = {}
    for name, scheduler in both.items():
        found[name] = {"repeat": seed, "planned": population * phases}
        found[name] |= summed_up(play(scheduler, population, given.frames, seed, given.game, given.agents))
    return found


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="CartPole-v1")
    parser.add_argument("--agents", type=int, default=8, help="of one member")
    parser.add_argument("--population", type=int, default=10)
    parser.add_argument("--phases", type=int, default=10)
    parser.add_argument("--frames", type=int, default=5000, help="of one phase of one member")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0, help="of the first repetition")
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    run = partial(repetition, given)
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
