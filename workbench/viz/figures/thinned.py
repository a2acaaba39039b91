"""What a figure has room for: each point has words and bytes, and a browser draws it by itself."""

import numpy as np
import pandas as pd

MOST_POINTS = 2000
"""Scores that a figure points at: of more some of each phase."""


def thin_groups(group: pd.Series, item: pd.Series, y: pd.Series, most: int) -> "pd.Series[bool]":
    """Choose about `most` points: as many of each group, its lowest, its highest and others at random.

    Parameters
    ----------
    group : Series
        Which group a point is of, such as the phase.
    item : Series of int
        What a point is of, such as the trial, from 0: the same ones are drawn in every group that they are in.
    y : Series
        The points' height.
    most : int
        So many points are all kept.

    Returns
    -------
    Series of bool
        Which are kept; of each group two at least.
    """
    if len(y) <= most:
        return pd.Series(True, index=y.index)
    drawn = pd.Series(np.random.default_rng(0).permutation(item.max() + 1)[item.to_numpy(int)], index=y.index)
    place, rank = drawn.groupby(group).rank(), y.groupby(group).rank(method="first")
    others = max(0, most // group.nunique() - 2)
    return (place <= others) | (rank == 1) | (rank == rank.groupby(group).transform("max"))


def halved(values: pd.Series) -> pd.Series:
    """Give numbers in half the bytes of a page, unless a screen shows the difference, as of 1e12 and 1e12 + 1."""
    most = float(np.finfo(np.float32).max)
    small = values.clip(-most, most).astype("float32")
    off, span = (small.astype(float) - values).abs().max(), values.max() - values.min()
    return small if off <= span / 10_000 else values


def some_of(title: str, n: int, of: int, what: str) -> str:
    """Say in a title that not all is drawn.

    >>> some_of("Scores", 1000, 13122, "scores"), some_of("Scores", 7, 7, "scores")
    ('Scores: 1000 of 13122 scores, drawn at random', 'Scores')
    """
    return title if n == of else f"{title}: {n} of {of} {what}, drawn at random"
