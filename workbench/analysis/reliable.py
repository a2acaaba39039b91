"""How sure a comparison over few seeds is: the statistics of Agarwal et al., NeurIPS 2021 (arXiv 2108.13264).

Pure functions of score matrices [n_runs, n_tasks], one run a seed; `rliable` gives the same numbers. Scores that are
NaN, as of runs that failed, are refused: sorted, they stand above all others.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from workbench.analysis.bootstrap import Interval, percentile_interval
from workbench.core import seeds
from workbench.core.errors import InvalidInput

if TYPE_CHECKING:
    import pandas as pd

Scores = npt.NDArray[np.float64]


def interquartile_mean(scores: npt.ArrayLike) -> float:
    """Give the mean of the middle half of all scores: a quarter, rounded down, is left out at either end (Sec. 4.3)."""
    return seeds.interquartile_mean(_known(scores))


def probability_of_improvement(scores: npt.ArrayLike, others: npt.ArrayLike) -> float:
    """Give how likely a run beats another's on a task drawn at random, ties counting half (Sec. 4.3).

    Parameters
    ----------
    scores, others : array of float, [n_runs, n_tasks]
        The same tasks; the numbers of runs may differ.
    """
    ours, theirs = _matrix(scores), _matrix(others)
    _check_tasks(ours, theirs)
    gaps = ours[:, None, :] - theirs[None, :, :]
    return float(np.mean((gaps > 0) + (gaps == 0) / 2))


def performance_profile(scores: npt.ArrayLike, thresholds: npt.ArrayLike) -> Scores:
    """Give the share of runs that score above each threshold (Sec. 4.2, Eq. 3), [n_thresholds]."""
    values = np.sort(_known(scores), axis=None)
    return 1 - np.searchsorted(values, np.asarray(thresholds, dtype=float), "right") / values.size


def performance_profiles(
    scores: Mapping[str, npt.ArrayLike],
    thresholds: npt.ArrayLike | None = None,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> "pd.DataFrame":
    """Give the profiles of several agents, configurations or schedulers over the same tasks, with pointwise intervals.

    Where one lies above another at every threshold it is better whatever is asked of it (stochastic dominance,
    Sec. 4.2).

    Parameters
    ----------
    scores : Mapping
        Name → scores, array of float [n_runs, n_tasks], normalised to be comparable between tasks.
    thresholds : array of float, optional
        By default 51 from the lowest to the highest of all scores.
    confidence, resamples, seed
        As of `stratified_interval`.

    Returns
    -------
    DataFrame
        A row a name and threshold, as `workbench.viz.figures.bands` draws it: scheduler (the name), at (the threshold),
        median (the share of runs above it), low, high.
    """
    import pandas as pd

    matrices = {name: _matrix(each) for name, each in scores.items()}
    for matrix in matrices.values():
        _check_tasks(next(iter(matrices.values())), matrix)
    ends = [end for matrix in matrices.values() for end in (matrix.min(), matrix.max())]
    at = np.linspace(min(ends), max(ends), 51) if thresholds is None else np.asarray(thresholds, dtype=float)
    tails = (1 - confidence) / 2, (1 + confidence) / 2
    parts = []
    for name, matrix in matrices.items():
        generator = np.random.default_rng(seed)
        again = [performance_profile(_redrawn(matrix, generator), at) for _ in range(resamples)]
        low, high = np.quantile(again, tails, axis=0)
        columns = {"scheduler": name, "at": at, "median": performance_profile(matrix, at), "low": low, "high": high}
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def stratified_interval(
    statistic: Callable[..., float],
    *scores: npt.ArrayLike,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Estimate how far a statistic would move if the runs of every task were drawn again (Sec. 4.1).

    Parameters
    ----------
    statistic : callable
        Of as many matrices as are given, such as `interquartile_mean` or `probability_of_improvement`.
    *scores : array of float, [n_runs, n_tasks]
        Each task's runs are drawn with replacement apart from the others'.
    confidence : float
        Coverage aimed at, in (0, 1). With fewer than about ten runs the interval is too narrow: say n with it.
    resamples, seed : int
        The same seed gives the same interval.
    """
    matrices = [_matrix(each) for each in scores]
    generator = np.random.default_rng(seed)
    again = np.empty(resamples)
    for draw in range(resamples):
        again[draw] = statistic(*[_redrawn(matrix, generator) for matrix in matrices])
    return percentile_interval(statistic(*matrices), again, confidence)


def _redrawn(matrix: Scores, generator: np.random.Generator) -> Scores:
    """Draw every task's runs again, apart from the other tasks'."""
    return np.take_along_axis(matrix, generator.integers(len(matrix), size=matrix.shape), axis=0)


def _matrix(scores: npt.ArrayLike) -> Scores:
    """Read scores as [n_runs, n_tasks]; those of one task may be given as [n_runs]."""
    values = _known(scores)
    return values[:, None] if values.ndim == 1 else values


def _known(scores: npt.ArrayLike) -> Scores:
    """Read scores, one or more, each a number."""
    values = np.asarray(scores, dtype=float)
    if not values.size or np.isnan(values).any():
        got = "NaN" if values.size else "none"
        raise InvalidInput(f"scores are one number or more, got {got}: leave failed runs out, or give them a score")
    return values


def _check_tasks(ours: Scores, theirs: Scores) -> None:
    if ours.shape[1] != theirs.shape[1]:
        raise InvalidInput(f"runs are compared on the same tasks, got {ours.shape[1]} and {theirs.shape[1]}")
