"""The design space of PBT (Fig. 5) over GA3C on CartPole: each choice against random search, on paired seeds.

Prints one JSON object whose ``rows`` hold, for every choice and repetition, the measures of `pbt_cartpole.py`
(``final``, ``mean``, ``over_time``) and those of random search with as many members, the same seeds, frames and node
time (``random_final``, …). The choices:

- ``population``: 5, 10 and 20 members, truncation, weights and hyperparameters copied
- ``exploit``: truncation, binary tournament, Welch's t-test; as in all that follow, of 10 members
- ``copied``: both; the weights alone, hyperparameters neither copied nor explored; the hyperparameters alone
- ``adaptive``: the whole of PBT, and as many runs with the hyperparameters PBT ended with, from their first step on

GA3C trains for real and in its deterministic mode, only the clock is virtual: the numbers repeat exactly.

Run with ``python benchmarks/pbt_design.py --repeats 6 --processes 2``.
"""

import argparse
import json
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

from workbench import PBT, FullRuns, ListSearcher, RandomSearcher
from workbench.paper.pbt import MEASURES, SPACE, last_config, play, summed_up

SIZES = (5, 10, 20)
PLAIN = 10
CHOICES: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("exploit", "truncation"): {},
    ("exploit", "tournament"): {"exploit": "tournament"},
    ("exploit", "t-test"): {"exploit": "t-test"},
    ("copied", "both"): {},
    ("copied", "weights"): {"copy_config": False, "explore": False},
    ("copied", "hyperparameters"): {"copy_weights": False},
}


def repetition(phases: int, frames: int, seed: int) -> list[dict[str, Any]]:
    """Run every choice, and random search of each size, with one seed."""

    def searcher() -> RandomSearcher:
        return RandomSearcher(SPACE, seed=seed)

    def measured(scheduler: Any, size: int) -> dict[str, Any]:
        return summed_up(play(scheduler, size, frames, seed))

    random = {size: measured(FullRuns(searcher(), size, phases), size) for size in SIZES}
    whole = {size: play(PBT(searcher(), size, phases, seed=seed), size, frames, seed) for size in SIZES}
    found = {("population", str(size)): (size, summed_up(whole[size])) for size in SIZES}
    for choice, settings in CHOICES.items():
        if settings:
            found[choice] = (PLAIN, measured(PBT(searcher(), PLAIN, phases, seed=seed, **settings), PLAIN))
        else:
            found[choice] = found["population", str(PLAIN)]
    fixed = ListSearcher([last_config(whole[PLAIN])] * PLAIN)
    found["adaptive", "yes"] = found["population", str(PLAIN)]
    found["adaptive", "no: PBT's last"] = (PLAIN, measured(FullRuns(fixed, PLAIN, phases), PLAIN))
    return [
        {"design": design, "value": value, "population": size, "repeat": seed}
        | {name: measures[name] for name in (*MEASURES, "copies")}
        | {f"random_{name}": random[size][name] for name in MEASURES}
        for (design, value), (size, measures) in found.items()
    ]


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--phases", type=int, default=10)
    parser.add_argument("--frames", type=int, default=2000, help="of one phase of one member")
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0, help="of the first repetition")
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    with ProcessPoolExecutor(given.processes) as pool:
        seeds = range(given.seed, given.seed + given.repeats)
        rows = list(pool.map(partial(repetition, given.phases, given.frames), seeds))
    print(json.dumps({"settings": vars(given), "rows": [row for some in rows for row in some]}))


if __name__ == "__main__":
    main()
