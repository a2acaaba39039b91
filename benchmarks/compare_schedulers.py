"""Every scheduler and searcher over paired repetitions in virtual time: who finds how much, how soon, at what cost.

Simulated throughout. `families`: preset ``families`` on each family of learning curves. `searchers`: preset
``searchers``, HyperTrick fed by searchers that learn (Optuna's needs the extra ``optuna``; its Gaussian process is far
slower: see --gp). `bias`: how much of their phases the early and the late trials run where scores are fresh draws. For
each scheduler: medians with 95 % bootstrap intervals, regret after some shares of the longest study's time, and where
the first of them does better, worse or the same in the paired differences.
"""

import argparse
import json
import time
from dataclasses import replace
from typing import Any

from workbench.simulation import Comparison, Scenario, arrival_bias, compare, preset
from workbench.simulation.comparison import MEASURES

CURVES = {
    "families": ("steady", "noisy", "crossing", "cheap-but-bad", "expensive-but-bad"),
    "searchers": ("steady", "crossing"),
    "bias": ("unrelated",),
}
SHARES = (0.1, 0.25, 0.5, 1.0)
GP = {"kind": "optuna", "sampler": "gp"}


def told(comparison: Comparison, label: str) -> dict[str, Any]:
    """Sum a comparison up: measures and regrets by scheduler, and how `label` stands against the others."""
    standing = comparison.standing(label, SHARES[1])
    return {
        "schedulers": {
            name: {m: rounded(found) for m, found in comparison.medians(name, MEASURES[:5]).items()}
            | {f"regret_at_{share:.0%}": rounded(comparison.regret_at(name, share)) for share in SHARES}
            for name in comparison.labels
        },
        f"{label}_is": {
            str(measure): {row.against: row.verdict for row in rows.itertuples()}
            for measure, rows in standing.groupby("measure", sort=False)
        },
    }


def rounded(interval: tuple[float, float, float]) -> list[float]:
    """Write an interval as median, low, high."""
    return [float(f"{number:.4g}") for number in interval]


def with_gp(scenario: Scenario) -> Scenario:
    """Add the Gaussian process to the searchers."""
    tpe = scenario.schedulers["tpe"]
    return replace(scenario, schedulers={**scenario.schedulers, "gp": {**tpe, "searcher": GP}})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", default=list(CURVES), help=f"any of {', '.join(CURVES)} (default: all)")
    parser.add_argument("--repeats", type=int, help="paired repetitions (default 1000, of searchers 200)")
    parser.add_argument("--curves", nargs="+", help="families of learning curves")
    parser.add_argument("--gp", action="store_true", help="searchers: with the Gaussian process")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    found: dict[str, Any] = {"simulated": True}
    for what in given.what:
        began = time.perf_counter()
        repeats = given.repeats or (200 if what == "searchers" else 1000)
        found[what] = {"repeats": repeats}
        for curves in given.curves or CURVES[what]:
            scenario = preset("families" if what == "bias" else what).with_curves(family=curves)
            if what == "bias":
                frame = arrival_bias(scenario, "hypertrick", repeats, processes=given.processes)
                shares = [rounded(row) for row in frame[["share_run", "low", "high"]].to_numpy()]
                found[what][curves] = {"share_run_by_tenth": shares}
            else:
                scenario = with_gp(scenario) if given.gp and what == "searchers" else scenario
                comparison = compare(scenario, repeats, processes=given.processes)
                found[what][curves] = told(comparison, next(iter(scenario.schedulers)))
        found[what]["wall_s"] = round(time.perf_counter() - began, 1)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
