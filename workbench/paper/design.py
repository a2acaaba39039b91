"""PBT's design space (arXiv 1711.09846, Fig. 5): what each choice gains over random search, ours and the paper's."""

import math

import pandas as pd

from workbench.analysis import bootstrap_interval
from workbench.paper.published import PBT_TABLE_1, pbt_gain

COLUMNS = ["group", "name", "value", "low", "high", "source"]


def improvements(rows: pd.DataFrame, measure: str = "final", source: str = "simulated") -> pd.DataFrame:
    """Give every choice's score over random search's, the mean of the repetitions' ratios, for `viz.estimates`.

    Parameters
    ----------
    rows : DataFrame
        The recording ``pbt-design``: design, value, and the column `measure` beside ``random_`` and its name.
    measure : {"final", "mean", "over_time"}
    source : str
        What the rows are, for the figure.

    Returns
    -------
    DataFrame
        group (the design), name, value, low, high (95 % bootstrap interval), source.
    """
    ratio = rows[measure] / rows[f"random_{measure}"]
    found = [
        (design, value, *bootstrap_interval(part.to_numpy(), "mean"), source)
        for (design, value), part in ratio.groupby([rows["design"], rows["value"]], sort=False)
    ]
    return pd.DataFrame(found, columns=COLUMNS)


def published_improvements() -> pd.DataFrame:
    """Give Fig. 5(a) as it follows from the paper's Table 1: FuN on four Atari games, by size of the population."""
    sizes = next(iter(PBT_TABLE_1.values()))
    rows = [("population", f"{size}, FuN on Atari", pbt_gain(size), math.nan, math.nan, "published") for size in sizes]
    return pd.DataFrame(rows, columns=COLUMNS)
