"""How sure a median or a mean of few runs is: bootstrap intervals, seeded, and others that keep to their confidence."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt


class Interval(NamedTuple):
    """A statistic and its interval, all in the values' unit; NaN if there were no values."""

    value: float
    low: float
    high: float

    def written(self, number: str) -> str:
        """Write the three as ``value [low, high]``, each in a format such as ``.3f``; ``none`` is no limit."""
        low, high = (f"{limit:{number}}" if math.isfinite(limit) else "none" for limit in (self.low, self.high))
        return f"{self.value:{number}} [{low}, {high}]"

    def columns(self, name: str) -> dict[str, float]:
        """Give the three as columns of a table: `name`, and with ``_low`` and ``_high`` behind it."""
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}


_OF_NONE = Interval(float("nan"), float("nan"), float("nan"))


def bootstrap_interval(
    values: Sequence[float] | npt.NDArray[np.floating],
    statistic: Literal["median", "mean"] = "median",
    *,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """Estimate how far a statistic would move if the runs were drawn again (percentile bootstrap, Efron 1979).

    Parameters
    ----------
    values : array of float, shape [n]
        Independent runs, some thousands at most (memory is 8·n·`resamples` bytes); NaN (a failed run) is left out.
    statistic : {"median", "mean"}
    confidence : float
        Coverage aimed at, in (0, 1). With fewer than about ten values the interval is too narrow: say n with it, or
        take `median_of` or `mean_of`.
    resamples : int
        Draws of n values with replacement.
    seed : int
        The same seed gives the same interval.
    """
    runs = np.asarray(values, dtype=float)
    runs = runs[np.isfinite(runs)]
    if runs.size == 0:
        return _OF_NONE
    draw = np.random.default_rng(seed).integers(runs.size, size=(resamples, runs.size))
    of = np.median if statistic == "median" else np.mean
    again = of((np.sort(runs) if statistic == "median" else runs)[draw], axis=1)
    return percentile_interval(float(of(runs)), again, confidence)


def median_of(
    values: Sequence[float] | npt.NDArray[np.floating], confidence: float = 0.95, *, or_range: bool = False
) -> Interval:
    """Give the median of runs, and between which two of them it lies: the sign test's interval, exact for few, too.

    Parameters
    ----------
    values : array of float, shape [n]
        Independent runs; NaN and infinite ones (a failed run) are left out.
    confidence : float
        Coverage at least, in (0, 1).
    or_range : bool
        Of runs that are too few for it, give the range: say so, for of two runs it holds the median one time in two,
        of three in 75 % of cases, of four in 87.5 %, of five in 94 %.

    Returns
    -------
    Interval
        Without limits (infinite) where so few runs have none: fewer than six at 95 %, for all of five lie on one side
        of the median one time in 16. NaN of none.
    """
    from scipy import stats

    runs = np.sort(np.asarray(values, dtype=float))
    runs = runs[np.isfinite(runs)]
    if runs.size == 0:
        return _OF_NONE
    place = int(stats.binom.ppf((1 - confidence) / 2, runs.size, 0.5))  # so many are left out at either end, less one
    place = max(place, int(or_range))
    low, high = (runs[place - 1], runs[-place]) if place else (-np.inf, np.inf)
    return Interval(float(np.median(runs)), float(low), float(high))


def mean_of(values: npt.ArrayLike, confidence: float = 0.95) -> Interval:
    """Give the mean of runs, shape [n], with Student's interval, which keeps to its confidence where they are few.

    Without limits (infinite) of one run, of equal ones, for that is no certainty, and where one is NaN or infinite: the
    mean then is, too, for to leave a failed run out would flatter it. NaN of none.
    """
    from scipy import stats

    runs = np.asarray(values, float)
    if runs.size == 0:
        return _OF_NONE
    mean = float(runs.mean())
    if runs.size < 2 or not np.isfinite(runs).all() or np.ptp(runs) == 0:
        return Interval(mean, -np.inf, np.inf)
    interval = stats.ttest_1samp(runs, 0.0).confidence_interval(confidence)
    return Interval(mean, float(interval.low), float(interval.high))


def percentile_interval(value: float, again: npt.NDArray[np.floating], confidence: float) -> Interval:
    """Set a statistic between the quantiles of what it came to where the runs were drawn again."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(again, [tail, 1 - tail])
    return Interval(value, float(low), float(high))
