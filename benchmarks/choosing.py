"""What the choice among configurations costs by itself: nobody is stopped, and everything has run with all seeds.

On tables of recorded curves (by default this project's). Every way to split a table's seeds into some to choose by and
others that judge is gone through, each of the former being the first once, so that no draw is lucky: what is printed
has no interval. Regret is that of `compare_schedulers.py tables`, once as there, by the last evaluation of the seeds
that judge, and once by the mean of the last half of theirs, which is less noisy.
"""

import argparse
from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.cli.simulate import pair
from workbench.core.errors import InvalidInput
from workbench.core.places import DATA
from workbench.simulation.curve_table import read_table
from workbench.simulation.held_out import last, latest, regrets_of

Array = npt.NDArray[np.float64]


def interquartile(scores: Array, share: float) -> Array:
    """As `latest`, of all these the mean without the lowest and the highest quarter."""
    values = np.sort(last(scores, share).reshape(len(scores), -1))
    quarter = values.shape[1] // 4
    return values[:, quarter : values.shape[1] - quarter].mean(axis=1)


def median(scores: Array, share: float) -> Array:
    """Give the median over seeds of the mean of the last share of the phases."""
    return np.asarray(np.median(last(scores, share).mean(axis=2), axis=1))


def discounted(scores: Array, half_life: float) -> Array:
    """Give the mean over seeds and phases, one that is so large a share of the run older weighing half."""
    weights = 0.5 ** (np.arange(scores.shape[2])[::-1] / (half_life * scores.shape[2]))
    return np.asarray(scores.mean(axis=1) @ weights / weights.sum())


def line(scores: Array, share: float, kept: float) -> Array:
    """Give the end of a line through the mean curve's last share, of its slope only the kept part."""
    ends = scores.mean(axis=1)[:, -max(2, round(share * scores.shape[2])) :]
    since = np.arange(ends.shape[1]) - (ends.shape[1] - 1) / 2
    slope = ends @ since / (since @ since)
    return np.asarray(ends.mean(axis=1) + kept * slope * since[-1])


def finalists(scores: Array, share: float, best: int) -> Array:
    """Give the mean over seeds to those alone that the first seed puts first."""
    one_seed = latest(scores[:, :1], share)
    return np.where(one_seed >= np.sort(one_seed)[-min(best, len(one_seed))], latest(scores, share), -np.inf)


RULES: dict[str, Callable[[Array], Array]] = {
    "the last half, as `sure`": partial(latest, share=0.5),
    "the last evaluation": partial(latest, share=0.0),
    "the last three tenths": partial(latest, share=0.3),
    "the last seven tenths": partial(latest, share=0.7),
    "the last half, without its outer quarters": partial(interquartile, share=0.5),
    "the last half, median over seeds": partial(median, share=0.5),
    "discounted, half-life a tenth": partial(discounted, half_life=0.1),
    "discounted, half-life two tenths": partial(discounted, half_life=0.2),
    "discounted, half-life three tenths": partial(discounted, half_life=0.3),
    "discounted, half-life four tenths": partial(discounted, half_life=0.4),
    "end of a line through the last half": partial(line, share=0.5, kept=1.0),
    "the same with half its slope": partial(line, share=0.5, kept=0.5),
    "the last half of the best two by one seed": partial(finalists, share=0.5, best=2),
    "the last half of the best four by one seed": partial(finalists, share=0.5, best=4),
    "the last half of the best eight by one seed": partial(finalists, share=0.5, best=8),
}


def regrets(scores: Array, n_seeds: int) -> Array:
    """Give the mean regret of every rule over all splits of the seeds, [rules, 2]: by the last evaluation, by half."""
    seeds = range(scores.shape[1])
    found = []
    for chosen_by in combinations(seeds, n_seeds):
        judging = scores[:, [seed for seed in seeds if seed not in chosen_by]]
        by_judge = [regrets_of(latest(judging, share)) for share in (0.0, 0.5)]
        for turn in range(n_seeds):
            met = scores[:, chosen_by[turn:] + chosen_by[:turn]]
            rows = [int(rule(met).argmax()) for rule in RULES.values()]
            found.append([[regret[row] for regret in by_judge] for row in rows])
    return np.asarray(np.mean(found, axis=0))


def printed(given: Any) -> str:
    """Set the rules side by side: a column a table, and the means over tables by either judge."""
    kept: list[dict[str, str]] = [dict([only]) for only in given.only] or [{}]
    path = given.table or str(DATA / "ga3c-curves" / "table.parquet")
    tables = [read_table(path, given.configs, columns=dict(given.column), only=only) for only in kept]
    for table in tables:
        if len(table.seeds) <= given.seeds:
            raise InvalidInput(
                f"{given.seeds} seeds to choose by, of {len(table.seeds)}, leave none to judge: take fewer"
            )
    found = np.array([regrets(table.scores, given.seeds) for table in tables])  # [tables, rules, 2]
    names = [", ".join(only.values()) or "the table" for only in kept]
    lines = [f"| {given.seeds} seeds choose | {' | '.join(names)} | mean | mean, judged by the last half |"]
    lines += ["|---" * (len(names) + 3) + "|"]
    for n, rule in enumerate(RULES):
        cells = [*found[:, n, 0], *found[:, n].mean(axis=0)]
        lines.append(f"| {rule} | {' | '.join(f'{cell:.4f}' for cell in cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", help="recorded curves, as in workbench simulate")
    parser.add_argument("--configs", help="a second table with hyperparameters")
    parser.add_argument("--column", type=pair, action="append", default=[], help="score=return")
    parser.add_argument("--only", type=pair, action="append", default=[], help="env=Qbert-v5; each is a table")
    parser.add_argument("--seeds", type=int, default=2, help="to choose by; the others judge")
    print(printed(parser.parse_args()))


if __name__ == "__main__":
    try:
        main()
    except InvalidInput as wrong:
        raise SystemExit(f"choosing.py: {wrong}") from None
