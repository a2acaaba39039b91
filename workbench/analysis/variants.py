"""Learning curves of several seeds a variant: medians, and how far the seeds lie apart."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Scores = npt.NDArray[np.float64]


def variant_bands(curves: pd.DataFrame, x: str = "frames") -> pd.DataFrame:
    """Sum up the seeds of each variant at each point of its curves.

    Parameters
    ----------
    curves : DataFrame
        variant, seed, score and the column `x`; points of one seed in order.
    x : str
        What curves run along.

    Returns
    -------
    DataFrame
        scheduler (the variant), at (median of `x`), median, low, high (lowest and highest seed), n_seeds; in the order
        of the variants.
    """
    numbered = curves.assign(point=curves.groupby(["variant", "seed"], sort=False).cumcount())
    points = numbered.groupby(["variant", "point"], sort=False)
    bands = points.agg(
        at=(x, "median"),
        median=("score", "median"),
        low=("score", "min"),
        high=("score", "max"),
        n_seeds=("seed", "nunique"),
    )
    return bands.reset_index().rename(columns={"variant": "scheduler"}).drop(columns="point")


def final_scores(curves: pd.DataFrame) -> pd.DataFrame:
    """Give the last score of every seed of every variant: variant, seed, frames, score."""
    last = curves.groupby(["variant", "seed"], sort=False).tail(1)
    return last[["variant", "seed", "frames", "score"]].reset_index(drop=True)


def score_table(runs: pd.DataFrame) -> Scores:
    """Lay the scores of one variant's seeds out as a table, [seeds, phases]."""
    return runs.pivot(index="seed", columns="phase", values="score").to_numpy(float)


def worst_falls(scores: Scores, *, as_share: bool) -> Scores:
    """Give how far each run's score falls below its best so far, at the worst, [runs].

    Parameters
    ----------
    scores : array of float, [runs, phases]
    as_share : bool
        Of the best so far, which has to be above 0; otherwise in the scores' own unit.
    """
    best = np.maximum.accumulate(scores, axis=1)
    falls: Scores = ((best - scores) / (best if as_share else 1.0)).max(axis=1)
    return falls


def split(table: pd.DataFrame, column: str) -> dict[Any, pd.DataFrame]:
    """Part a table by the values of a column, in the order of their first rows."""
    return dict(list(table.groupby(column, sort=False)))
