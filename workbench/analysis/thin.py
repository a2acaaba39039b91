"""Fewer points that look the same: curves thinned without losing their extremes."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]
Indices = npt.NDArray[np.intp]


def thin_curves(curve: npt.NDArray[np.integer], x: Floats, y: Floats, most: int) -> Indices:
    """Choose at most `most` points of each of many curves, the lowest and highest of each stretch among them.

    Stretches are equal in x. NaN is never chosen over a number.

    Parameters
    ----------
    curve : array of int, shape [n]
        Which curve a point is of; the points of a curve stand together.
    x, y : array, shape [n]
        The points; x ascends within a curve.
    most : int
        Points to keep of each curve, at least 4.

    Returns
    -------
    array of int, shape [m]
        Indices in ascending order; every curve's first and last point are kept, and all points of short curves.
    """
    n = len(y)
    if n == 0:
        return np.arange(0)
    first = np.flatnonzero(np.r_[True, curve[1:] != curve[:-1]])
    count = np.diff(np.r_[first, n])
    last = first + count - 1
    chosen = np.repeat(count <= most, count)
    if chosen.all():
        return np.arange(n)
    chosen[first] = chosen[last] = True
    stretches = max(1, (most - 2) // 2)
    begins, width = np.repeat(x[first], count), np.repeat(x[last] - x[first], count)
    along = np.divide(x - begins, width, out=np.zeros(n), where=width > 0)
    stretch = np.minimum((along * stretches).astype(np.intp), stretches - 1)
    edge = np.flatnonzero(np.r_[True, (curve[1:] != curve[:-1]) | (stretch[1:] != stretch[:-1])])
    sizes = np.diff(np.r_[edge, n])
    for bound, reduce in ((np.inf, np.minimum), (-np.inf, np.maximum)):
        values = np.where(np.isnan(y), bound, y)
        at_bound = np.flatnonzero(values == np.repeat(reduce.reduceat(values, edge), sizes))
        of = np.searchsorted(edge, at_bound, side="right")
        chosen[at_bound[np.r_[True, of[1:] != of[:-1]]]] = True  # the first of those that are equal
    return np.flatnonzero(chosen)
