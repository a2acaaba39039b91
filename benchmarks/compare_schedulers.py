"""Every scheduler and searcher over paired repetitions in virtual time: who finds how much, how soon, at what cost.

Simulated throughout. `families`: preset ``families`` on each family of learning curves. `searchers`: preset
``searchers``, HyperTrick fed by searchers that learn (Optuna's needs the extra ``optuna``; its Gaussian process, and
SMAC's forest of the extra ``smac``, are far slower: see --gp and --smac). `bias`: how much of their phases the early
and the late trials run where scores are fresh draws.
`tables`: all schedulers, with 1, 2, 3 and 5 seeds a configuration where the table has that many, on tables of recorded
curves (by default this project's), judged by held-out seeds; printed as one table, and under it how `sure` stands
against the best of the others at each budget, and at the last against what no stopping rule could know: every
configuration whole, with all the seeds there are to choose by, judged by the last half of each curve. The tables share
the repetitions; a study is cut at the last budget.
For each scheduler of the others: medians with the sign test's 95 % intervals, regret after some shares of the longest
study's time, and where the first of them does better, worse or the same in the paired differences.
"""

import argparse
import json
import time
import tomllib
from dataclasses import replace
from typing import Any

import numpy as np

from workbench.analysis.bootstrap import bootstrap_interval
from workbench.cli.simulate import pair
from workbench.core.errors import InvalidInput
from workbench.core.places import DATA
from workbench.simulation import Comparison, Scenario, arrival_bias, compare, compare_held_out, preset, scenario_from
from workbench.simulation.comparison import MEASURES
from workbench.simulation.held_out import SHARES as BUDGETS
from workbench.simulation.held_out import Draw, latest, table_of

CURVES = {
    "families": ("steady", "noisy", "crossing", "cheap-but-bad", "expensive-but-bad"),
    "searchers": ("steady", "crossing"),
    "bias": ("unrelated",),
}
SHARES = (0.1, 0.25, 0.5, 1.0)
RIVALS: dict[str, dict[str, Any]] = {
    "random": {"kind": "full"},
    "random, smoothed": {"kind": "full", "smooth": 5},
    "top 8": {"kind": "topk"},
    "hypertrick": {"kind": "hypertrick"},
    "portfolio": {"kind": "portfolio"},
    "halving": {"kind": "halving"},
    "hyperband": {"kind": "hyperband"},
    "asha": {"kind": "asha"},
    "asha, smoothed": {"kind": "asha", "smooth": 5},
    "asha-stopping": {"kind": "asha", "variant": "stopping"},
    "pasha": {"kind": "pasha"},
    "median": {"kind": "median"},
    "pbt": {"kind": "pbt"},
    "mfpbt": {"kind": "mfpbt", "intervals": [1, 2, 3, 5]},  # all below the 10 evaluations of a table
    "sure": {"kind": "sure"},
}
DEFAULT_SEEDS = {"sure": 4}  # of those that choose themselves what to repeat
SLOW = {"gp": {"kind": "optuna", "sampler": "gp"}, "smac": {"kind": "smac"}}  # searchers that are asked for by name


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


def with_slow(scenario: Scenario, names: list[str]) -> Scenario:
    """Add some of `SLOW` to the searchers."""
    more = {name: {**scenario.schedulers["tpe"], "searcher": SLOW[name]} for name in names}
    return replace(scenario, schedulers={**scenario.schedulers, **more})


def tables(given: argparse.Namespace, repeats: int) -> str:
    """Compare on held-out seeds: one row a scheduler and number of seeds, the mean over tables and repetitions."""
    path = given.table or str(DATA / "ga3c-curves" / "table.parquet")
    curves = {"kind": "table", "path": path, "columns": dict(given.column)}
    curves |= {"configs": given.configs} if given.configs else {}
    kept: list[dict[str, str]] = [dict([pair]) for pair in given.only] or [{}]
    names = given.schedulers or list(RIVALS)
    labels = {f"{n} × {k}": {**RIVALS[n], "seeds": k} for k in given.seeds for n in names if n not in DEFAULT_SEEDS}
    chosen = {f"{n} × {k}": {**RIVALS[n], "seeds": k} for n, k in DEFAULT_SEEDS.items() if n in names}
    chosen |= {f"sure, {text}": {**RIVALS["sure"], "seeds": 4, **settings} for text, settings in given.sure}
    labels |= chosen
    repeats, found, all_whole = -(-repeats // len(kept)), [], []
    plain = {"schedulers": {"": {"kind": "full"}}, "simulation": {"seeds": 1}}
    scenarios = [scenario_from({"curves": {**curves, "only": only}, **plain}) for only in kept]
    most = min(len(table_of(scenario).seeds) for scenario in scenarios) - 1  # that all tables have, one held out
    fitting = {n: k for n, k in labels.items() if k["seeds"] <= most or n in chosen}
    fitting = {label: {**kind, "seeds": min(kind["seeds"], most)} for label, kind in fitting.items()}
    for scenario in scenarios:
        cluster = replace(scenario.cluster, nodes=given.nodes, speed_spread=0.3)
        compared = replace(scenario, schedulers=fitting, cluster=cluster)
        found.append(compare_held_out(compared, repeats, to_end=False, processes=given.processes))
        all_whole.append(whole(compared, repeats))
    regrets = {label: np.mean([one.regret[label][:, :-1] for one in found], axis=0) for label in fitting}
    spent = {label: f"{np.mean([one.spent[label] for one in found]):.0%}" for label in regrets}
    held_out = " or ".join(map(str, sorted({one.held_out for one in found})))
    lines = [
        f"Simulated: {repeats} paired repetitions on each of {len(found)} tables, {given.nodes} nodes of unequal "
        f"speed; {found[0].seeds} seeds to choose by, judged by {held_out} others.",
        "",
        "| | " + " | ".join(f"{share:.0%}" for share in BUDGETS) + " | node time |",
        "|---" * (len(BUDGETS) + 2) + "|",
        *(f"| {label} | {' | '.join(map(mean_of, rows.T))} | {spent[label]} |" for label, rows in regrets.items()),
    ]
    lines += against_the_best(regrets) + against_whole(regrets, np.mean(all_whole, axis=0))
    for only, one, here in zip(kept, found, all_whole, strict=True) if given.by_table else ():
        own = {label: rows[:, :-1] for label, rows in one.regret.items()}
        told = [
            f"| {label} | {' | '.join(map(mean_of, own[label].T))} | |" for label in own if label.startswith("sure")
        ]
        lines += [f"| **{', '.join(only.values()) or 'the table'}** |{' |' * (len(BUDGETS) + 1)}", *told]
        lines += against_the_best(own) + against_whole(own, here)
    return "\n".join(lines)


def mean_of(values: Any) -> str:
    """Write a mean with its interval."""
    return bootstrap_interval(values, "mean", resamples=2000).written(".3f")


def against_the_best(regrets: dict[str, Any]) -> list[str]:
    """Hold `sure`, or the last, against whichever of the others is best at each budget: paired, two rows or none."""
    ours = next((label for label in regrets if label.startswith("sure")), [*regrets][-1])
    if len(regrets) == 1:
        return []
    others = [label for label in regrets if label != ours]
    best = [min(others, key=lambda label: regrets[label][:, n].mean()) for n in range(len(BUDGETS))]
    less = [mean_of(regrets[ours][:, n] - regrets[label][:, n]) for n, label in enumerate(best)]
    return [f"| best of the others | {' | '.join(best)} | |", f"| {ours}, less that | {' | '.join(less)} | |"]


def whole(scenario: Scenario, repeats: int) -> Any:
    """Give the regret of the best mean over all seeds to choose by and the last half of every curve, [repetitions]."""
    table, regrets = table_of(scenario), []
    for number in range(repeats):
        draw = Draw(table, scenario.n_seeds, scenario.repetition(number).seed)
        regrets.append(draw.regrets[int(latest(table.scores[:, draw.tuning], 0.5).argmax())])
    return np.array(regrets)


def against_whole(regrets: dict[str, Any], all_whole: Any) -> list[str]:
    """Hold every `sure`, at the last budget, against all configurations whole with all seeds: paired differences."""
    ours = {label: rows[:, -1] for label, rows in regrets.items() if label.startswith("sure")}
    gaps = [f"| {label} at the end, less that | {mean_of(rows - all_whole)} |" for label, rows in ours.items()]
    return [f"| all whole, with all seeds | {mean_of(all_whole)} |", *gaps] if ours else []


def settings(text: str) -> tuple[str, dict[str, Any]]:
    """Read settings as TOML writes them in a table, and keep the words as their label."""
    try:
        return text, tomllib.loads(f"settings = {{{text}}}")["settings"]
    except tomllib.TOMLDecodeError as wrong:
        raise argparse.ArgumentTypeError(f"write it as name=value, name=value; got {text!r}: {wrong}") from None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", default=list(CURVES), help=f"any of {', '.join(CURVES)}, or tables alone")
    parser.add_argument("--repeats", type=int, help="paired repetitions, in all (1000; searchers 200)")
    parser.add_argument("--curves", nargs="+", help="families of learning curves")
    parser.add_argument("--gp", action="store_true", help="searchers: with the Gaussian process")
    parser.add_argument("--smac", action="store_true", help="searchers: with SMAC's random forest")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--table", help="tables: recorded curves, as in workbench simulate")
    parser.add_argument("--configs", help="tables: a second table with hyperparameters")
    parser.add_argument("--column", type=pair, action="append", default=[], help="tables: score=return")
    parser.add_argument(
        "--only", type=pair, action="append", default=[], help="tables: env=Qbert-v5; each one is a table of its own"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 5], help="tables: seeds a configuration")
    parser.add_argument("--schedulers", nargs="+", choices=list(RIVALS), help="tables: some of them")
    parser.add_argument(
        "--sure", type=settings, action="append", default=[], help="tables: `sure` once more, with finalists=6, seeds=3"
    )
    parser.add_argument("--by-table", action="store_true", help="tables: `sure` on each of them, too")
    parser.add_argument("--nodes", type=int, default=8, help="tables")
    given = parser.parse_args()
    if wrong := [what for what in given.what if what not in CURVES and given.what != ["tables"]]:
        parser.error(f"{wrong[0]!r}: any of {', '.join(CURVES)}, or tables alone")
    if given.what == ["tables"]:
        print(tables(given, given.repeats or 1000))
        return
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
                slow = [name for name in SLOW if getattr(given, name)] if what == "searchers" else []
                scenario = with_slow(scenario, slow)
                comparison = compare(scenario, repeats, processes=given.processes)
                found[what][curves] = told(comparison, next(iter(scenario.schedulers)))
        found[what]["wall_s"] = round(time.perf_counter() - began, 1)
    print(json.dumps(found))


if __name__ == "__main__":
    try:
        main()
    except InvalidInput as wrong:
        raise SystemExit(f"compare_schedulers.py: {wrong}") from None
