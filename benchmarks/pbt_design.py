"""The design space of PBT (Fig. 5) over GA3C on CartPole: each choice against random search, on paired seeds.

Prints one JSON object whose ``rows`` hold, for every choice and repetition, the measures of `pbt_cartpole.py`
(``final``, ``mean``, ``over_time``) and those of random search with as many members, the same seeds, frames and node
time (``random_final``, …). The choices:

- ``population``: ``--sizes`` of it, truncation, weights and hyperparameters copied
- ``exploit``: truncation, binary tournament, Welch's t-test; as in all that follow, of ``--plain`` members
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
from workbench.core.protocols import Event, Scheduler
from workbench.paper.pbt.cartpole import MEASURES, SPACE, last_config, play, summed_up

CHOICES: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("exploit", "truncation"): {},
    ("exploit", "tournament"): {"exploit": "tournament"},
    ("exploit", "t-test"): {"exploit": "t-test"},
    ("copied", "both"): {},
    ("copied", "weights"): {"copy_config": False, "explore": False},
    ("copied", "hyperparameters"): {"copy_weights": False},
}


def repetition(given: argparse.Namespace, seed: int) -> list[dict[str, Any]]:
    """Run every choice, and random search of each size, with one seed."""
    phases, plain = given.phases, given.plain

    def played(scheduler: Scheduler, size: int) -> list[Event]:
        return play(scheduler, size, given.frames, seed, given.game, given.agents)

    def searcher() -> RandomSearcher:
        return RandomSearcher(SPACE, seed=seed)

    sizes = sorted({*given.sizes, plain})
    random = {size: summed_up(played(FullRuns(searcher(), size, phases), size)) for size in sizes}
    whole = {size: played(PBT(searcher(), size, phases, seed=seed), size) for size in sizes}
    found = {("population", str(size)): (size, summed_up(whole[size])) for size in sizes}
    for choice, settings in CHOICES.items():
        if settings:
            scheduler = PBT(searcher(), plain, phases, seed=seed, **settings)
            found[choice] = (plain, summed_up(played(scheduler, plain)))
        else:
            found[choice] = found["population", str(plain)]
    fixed = ListSearcher([last_config(whole[plain])] * plain)
    found["adaptive", "yes"] = found["population", str(plain)]
    found["adaptive", "no: PBT's last"] = (plain, summed_up(played(FullRuns(fixed, plain, phases), plain)))
    return [
        {"design": design, "value": value, "population": size, "repeat": seed}
        | {name: measures[name] for name in (*MEASURES, "copies")}
        | {f"random_{name}": random[size][name] for name in MEASURES}
        for (design, value), (size, measures) in found.items()
    ]


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="CartPole-v1")
    parser.add_argument("--agents", type=int, default=8, help="of one member")
    parser.add_argument("--sizes", type=int, nargs="+", default=[5, 10, 20], metavar="MEMBERS")
    parser.add_argument("--plain", type=int, default=10, metavar="MEMBERS", help="of the other choices")
    parser.add_argument("--phases", type=int, default=10)
    parser.add_argument("--frames", type=int, default=2000, help="of one phase of one member")
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0, help="of the first repetition")
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    with ProcessPoolExecutor(given.processes) as pool:
        seeds = range(given.seed, given.seed + given.repeats)
        rows = list(pool.map(partial(repetition, given), seeds))
    print(json.dumps({"settings": vars(given), "rows": [row for some in rows for row in some]}))


if __name__ == "__main__":
    main()
