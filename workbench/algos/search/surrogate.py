"""What the scores of some configurations tell of others: a Gaussian process over hyperparameters."""

from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from workbench.core.protocols import Config
from workbench.core.space import CONFIG_ID

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

OWN = 0.3
"""Share of the variance of a configuration's worth that its hyperparameters do not explain."""

NOISE, EARLY_NOISE = 0.15, 1.0
"""Variance of what is seen of that worth at the end of a run, and what a run of one phase adds to it."""

_normal_score = lru_cache(maxsize=100_000)(NormalDist().inv_cdf)


def positions(configs: Sequence[Config]) -> Array:
    """Place configurations in a cube: each number by its rank among theirs, [configs, hyperparameters].

    Ranks make learning rates and batch sizes, whatever their scales, alike. Words, and whether a hyperparameter
    applies at all, become 0 or 1, a column each: any two words are as unlike as any other two. What never varies is
    left out.
    """
    columns: list[Array] = []
    for name in dict.fromkeys(name for config in configs for name in config if name != CONFIG_ID):
        values = [config.get(name) for config in configs]
        applies = np.array([value is not None for value in values])
        columns.append(applies.astype(float))
        kinds = list(dict.fromkeys(value for value in values if value is not None))
        if all(isinstance(kind, (int, float)) and not isinstance(kind, bool) for kind in kinds):
            ranks = np.full(len(values), 0.5)
            ranks[applies] = _ranks(np.array([value for value in values if value is not None], dtype=float))
            columns.append(ranks)
        else:
            told = kinds if len(kinds) > 1 + applies.all() else kinds[1:]  # of two that there can be one column tells
            columns += [np.array([value == kind for value in values], dtype=float) for kind in told]
    varying = [column for column in columns if np.ptp(column) > 0]
    return np.column_stack(varying) if varying else np.zeros((len(configs), 0))


def likeness(at: Array) -> Array:
    """Give the covariance of what hyperparameters explain, [n, n]: exp(-distance), averaged over hyperparameters.

    An average, not a product: each hyperparameter may matter by itself (Duvenaud et al., NeurIPS 2011), and in a dozen
    dimensions nothing is near anything. Without hyperparameters every configuration stands alone.
    """
    if not at.shape[1]:
        return np.eye(len(at))
    total = np.zeros((len(at), len(at)))
    for column in at.T:
        total += np.exp(-np.abs(column[:, None] - column[None]))
    return np.asarray(total / at.shape[1])


class Surrogate:
    """A Gaussian process over configurations, of the share of the others that each beats.

    Two configurations meet at the last phase that both have reported: what came further is not favoured for having
    learned longer. The shares, as normal scores, are what the process has seen of each configuration's worth; the noise
    falls with the phases. What was worked out is kept and mended, so that a report costs n² operations, not n³.

    Parameters
    ----------
    configs : sequence of Config
        All there will be.
    n_phases : int
    """

    def __init__(self, configs: Sequence[Config], n_phases: int) -> None:
        n = len(configs)
        self._like = (1 - OWN) * likeness(positions(configs)) + OWN * np.eye(n)
        self._curves = np.full((n, n_phases), np.nan)
        self._lengths = np.zeros(n, dtype=np.intp)
        self._arrived = np.zeros(n, dtype=np.intp)  # in this order; the two matrices below are in it too
        self._place = np.zeros(n, dtype=np.intp)
        self._beats = np.zeros((n, n))  # 1: row beats column; 0.5: they are equal
        self._inverse = np.zeros((n, n))  # of the covariance of what was seen
        self.n_seen = 0

    @property
    def seen(self) -> Indices:
        """Those that have reported, in the order of their first reports."""
        return self._arrived[: self.n_seen]

    def see(self, config: int, phase: int, score: float) -> None:
        """Take in the score of a configuration's next phase; one of -inf counts for all its phases."""
        before = self._lengths[config]
        if not before:
            self._arrived[self.n_seen] = config
            self._place[config] = self.n_seen
            self.n_seen += 1
        self._curves[config, phase] = score
        if score == -np.inf:
            self._curves[config] = score
        self._lengths[config] = phase + 1
        self._compare(config)
        if before:
            self._sharpen(config, EARLY_NOISE / (phase + 1) - EARLY_NOISE / before)
        else:
            self._extend(config, NOISE + EARLY_NOISE / (phase + 1))

    def shares(self) -> Array:
        """Give the share of all seen that each beats, itself and equals half counted, in the order of `seen`."""
        return np.asarray(self._beats[: self.n_seen, : self.n_seen].mean(axis=1))

    def means(self) -> Array:
        """Estimate the worth of all configurations, in normal scores, [n]; rounded, for machines to agree."""
        half = 0.5 / self.n_seen
        scores = [_normal_score(share) for share in np.clip(self.shares(), half, 1 - half).tolist()]
        return np.round(self._like[:, self.seen] @ (self._inverse[: self.n_seen, : self.n_seen] @ scores), 6)

    def spreads(self, configs: Sequence[int]) -> Array:
        """Give the standard deviations of some of these estimates, in the same unit."""
        cross = self._like[configs][:, self.seen]
        explained = (cross @ self._inverse[: self.n_seen, : self.n_seen] * cross).sum(axis=1)
        return np.asarray(np.sqrt(np.maximum(np.diag(self._like)[configs] - explained, 0.0)).round(6))

    def _compare(self, config: int) -> None:
        common = np.minimum(self._lengths[config], self._lengths[self.seen]) - 1
        own, others = self._curves[config, common], self._curves[self.seen, common]
        wins, place = (own > others) + 0.5 * (own == others), self._place[config]
        self._beats[place, : self.n_seen] = wins
        self._beats[: self.n_seen, place] = 1 - wins

    def _extend(self, config: int, noise: float) -> None:
        """Border the inverse by a row and a column."""
        m = self.n_seen - 1
        inverse, cross = self._inverse[:m, :m], self._like[config, self._arrived[:m]]
        weights = inverse @ cross
        rest = self._like[config, config] + noise - cross @ weights
        inverse += np.outer(weights, weights) / rest
        self._inverse[m, :m] = self._inverse[:m, m] = -weights / rest
        self._inverse[m, m] = 1 / rest

    def _sharpen(self, config: int, change: float) -> None:
        """Change one variance of the noise (Sherman and Morrison, 1950)."""
        inverse, place = self._inverse[: self.n_seen, : self.n_seen], self._place[config]
        column = inverse[:, place].copy()
        inverse -= np.outer(column, column) * (change / (1 + change * column[place]))


def _ranks(values: Array) -> Array:
    """Rank values from 0 to 1, equal ones alike."""
    ordered = np.sort(values)
    places = (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")) / 2
    return np.asarray(places / len(values))
