"""Fewer points that look the same: a curve thinned without losing its extremes."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt


def thin(y: npt.NDArray[np.floating], most: int) -> npt.NDArray[np.intp]:
    """Choose at most `most` points of a curve, the lowest and highest of each stretch among them.

    Parameters
    ----------
    y : array, shape [n]
        The curve's values in the order of x; NaN is never chosen over a number.
    most : int
        Points to keep, at least 4.

    Returns
    -------
    array of int, shape [m], m <= `most`, or all n if they are no more
        Indices in ascending order; the first and the last point are always kept.
    """
    n = len(y)
    if n <= most:
        return np.arange(n)
    stretches = max(1, (most - 2) // 2)
    edges = np.linspace(0, n, stretches + 1).astype(int)
    low = np.where(np.isnan(y), np.inf, y)
    high = np.where(np.isnan(y), -np.inf, y)
    kept = {0, n - 1}
    for start, end in pairwise(edges):
        kept.add(start + int(np.argmin(low[start:end])))
        kept.add(start + int(np.argmax(high[start:end])))
    return np.array(sorted(kept), dtype=np.intp)
