"""PBT's toy problem (Fig. 2) with its ablations over many seeds; with ``--rules``, other readings of it.

Prints one JSON object: for every variant the mean final Q of the better member and the mean Q over time with 95 %
bootstrap intervals, the least final Q, both for every seed, and whether the variants come in the paper's order. Nothing
is measured in seconds: scores are those of the real trainable, time is virtual, and the numbers repeat exactly.

Run with ``python benchmarks/pbt_toy.py --seeds 100`` (a minute), and ``--rules --seeds 20`` (several).
"""

import argparse
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from workbench.paper.pbt import toy as pbt_toy

READINGS: dict[str, dict[str, Any]] = {
    "as chosen": {},
    "noise 0.05": {"noise": 0.05},
    "noise 0.1": {"noise": 0.1},
    "noise 0.2": {"noise": 0.2},
    "factors 0.8 and 1.2": {"noise": 0.0},
    "factors, h drawn anew with 0.25": {"noise": 0.0, "resample": 0.25},
    "h copied too": {"copy_config": True},
    "h copied too, noise 0.2": {"copy_config": True, "noise": 0.2},
    "members out of step": {"spread": 0.1},
    "tournament": {"exploit": "tournament"},
    "tournament, members out of step, rate 0.01": {"exploit": "tournament", "spread": 0.1, "learning_rate": 0.01},
    "rate 0.01": {"learning_rate": 0.01},
    "rate 0.05": {"learning_rate": 0.05},
}


def measured(seeds: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Run all variants of one reading."""
    found = pbt_toy.finals(range(seeds), **settings)
    table = {
        variant: {name: [round(x, 4) for x in interval] for name, interval in pbt_toy.intervals(values).items()}
        | {"least": round(float(values[:, 0].min()), 4), "seeds": np.round(values, 5).tolist()}
        for variant, values in found.items()
    }
    means = [row["final"][0] for row in table.values()]
    return {"variants": table, "in_the_papers_order": all(a > b for a, b in pairwise(means))}


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--rules", action="store_true", help="try other explore rules and step sizes as well")
    parser.add_argument("--figure", metavar="FILE", help="write the picture of seed 0 here, as HTML")
    given = parser.parse_args()
    if given.figure:
        from workbench.viz.figures import toy_problem

        paths = pbt_toy.paths([pbt_toy.play(variant) for variant in pbt_toy.VARIANTS])
        toy_problem(paths).write_html(Path(given.figure))
    readings = READINGS if given.rules else {"as chosen": {}}
    found = {name: measured(given.seeds, settings) for name, settings in readings.items()}
    chosen = {"steps": pbt_toy.STEPS, "phases": pbt_toy.PHASES, "noise": pbt_toy.NOISE, "rate": pbt_toy.LEARNING_RATE}
    print(json.dumps({"seeds": given.seeds, **chosen, "readings": found}, indent=1))


if __name__ == "__main__":
    main()
