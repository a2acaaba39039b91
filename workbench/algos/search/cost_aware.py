"""A searcher that looks for better scores at every cost: a front, as CARBS does (arXiv 2306.08055)."""

import math
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from workbench.algos.search.surrogate import NOISE, OWN, likeness, positions
from workbench.algos.search.warmup import LearningSearcher
from workbench.core.checks import COUNT, FROM_ZERO, check
from workbench.core.protocols import Config, Report

Array = npt.NDArray[np.float64]

MOST = 1000
"""Trials to learn from, besides the front: each is held against each, and the cube of them is worked with."""

_normal = NormalDist()


@dataclass
class CostAwareSearcher(LearningSearcher):
    """Moves on from the front of score and cost, towards what promises to lie beyond it.

    A configuration's cost is the mean duration of its phases, its worth the share of the others that it beats, each at
    the last phase that both have reported, as a normal score. Those that none beats in both are the front. A new
    configuration is the best of some drawn around members of the front, each of which is taken alike, whatever it
    costs: the one whose worth promises most improvement on the front at the cost that is expected of it. Gaussian
    processes over the hyperparameters expect the worth and the logarithm of the cost (the covariance of `Surrogate`).
    They learn from the latest `MOST` trials and from the front.

    After CARBS (Fetterman et al., 2023), without its limits of cost, its restarts and its scaling laws.

    Parameters
    ----------
    space : Space
    seed : int
    warmup : int
        Configurations are drawn at random until so many trials have reported.
    draws : int
        Configurations to choose from, for each one suggested.
    spread : float
        Standard deviation of their moves from the front, in shares of a hyperparameter's range; a choice, and a value
        with a step, stays as it is where the move is less than half a step.
    random : float
        Probability for a configuration to be drawn at random all the same.
    """

    learns_costs: ClassVar[bool] = True  # a warm start tells it what earlier phases took

    draws: int = 100
    spread: float = 0.2
    _scores: dict[int, dict[int, float]] = field(init=False, default_factory=dict, repr=False, compare=False)
    _seconds: dict[int, list[float]] = field(init=False, default_factory=dict, repr=False, compare=False)
    _front: set[int] = field(init=False, default_factory=set, repr=False, compare=False)  # as it last was

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self, COUNT, "draws")
        check(self, FROM_ZERO, "spread")

    def observe(self, report: Report) -> None:
        """Keep the score and the duration; a phase that failed has neither."""
        if report.failed or math.isnan(report.score):
            return
        self._scores.setdefault(report.trial, {})[report.phase] = report.score  # a trial may begin anew
        if report.seconds > 0:
            self._seconds.setdefault(report.trial, []).append(report.seconds)

    def front(self) -> dict[int, tuple[float, float]]:
        """Give the trials of the front, the cheapest first: trial → (seconds a phase, share of the others it beats)."""
        trials = list(self._scores)
        if not trials:
            return {}
        costs, shares = self._costs(trials), self._shares(trials)
        return {trials[k]: (float(costs[k]), float(shares[k])) for k in _front(costs, shares)}

    def _costs(self, trials: list[int]) -> Array:
        """Mean seconds a phase [trials]; where none is known, the median of the others."""
        costs = np.array([np.mean(self._seconds[t]) if t in self._seconds else np.nan for t in trials])
        return np.where(np.isnan(costs), np.nanmedian(costs) if np.isfinite(costs).any() else 1.0, costs)

    def _shares(self, trials: list[int]) -> Array:
        """Share of all that each beats at the last phase both have reported [trials].

        Itself, equals, and those that it shares no phase with count by half.
        """
        last = np.array([max(self._scores[t]) for t in trials])
        curves = np.full((len(trials), last.max() + 1), np.nan)
        for row, trial in zip(curves, trials, strict=True):
            for phase, score in sorted(self._scores[trial].items()):
                row[phase:] = score
        own = np.take_along_axis(curves, np.minimum(last[:, None], last[None]), axis=1)
        even = (own == own.T) | np.isnan(own) | np.isnan(own.T)
        return np.asarray(((own > own.T) + 0.5 * even).mean(axis=1))

    def _reported(self) -> int:
        return len(self._scores)

    def _known(self) -> list[int]:
        """Give the trials to learn from; of more than `MOST`, earlier ones only where they are of the front."""
        trials = list(self._scores)
        if len(trials) <= MOST:
            return trials
        front = self._front or self.front()
        return [trial for trial in trials[:-MOST] if trial in front] + trials[-MOST:]

    def _learned(self) -> Config:
        """Take the most promising of some draws around the front."""
        trials = self._known()
        seconds, shares = self._costs(trials), self._shares(trials)
        front = [trials[k] for k in _front(seconds, shares)]
        self._front = set(front)
        starts = self._rng.integers(len(front), size=self.draws)
        drawn: list[Config] = [
            self.space.shift(self._configs[front[k]], self.spread, self._rng, least=0) for k in starts
        ]
        half = 0.5 / len(trials)
        worth = np.array([_normal.inv_cdf(share) for share in np.clip(shares, half, 1 - half)])
        costs = np.log(seconds)
        cost, spread_of_costs = costs.mean(), costs.std() or 1.0
        at = likeness(positions([*(self._configs[t] for t in trials), *drawn]))
        like = (1 - OWN) * at + OWN * np.eye(len(at))
        covariance = like[: len(trials), : len(trials)] + NOISE * np.eye(len(trials))
        cross = like[len(trials) :, : len(trials)]
        solved = np.linalg.solve(covariance, np.column_stack([worth, (costs - cost) / spread_of_costs, cross.T]))
        expected, at_cost = cross @ solved[:, 0], cross @ solved[:, 1] * spread_of_costs + cost
        spreads = np.sqrt(np.maximum(1 - (cross * solved[:, 2:].T).sum(axis=1), 1e-12))
        gains = [
            _improvement(mean, spread, _reached(worth, costs, limit))
            for mean, spread, limit in zip(expected, spreads, at_cost, strict=True)
        ]
        return drawn[int(np.argmax(np.round(gains, 9)))]


def _front(costs: Array, shares: Array) -> list[int]:
    """Give which none beats in both, the cheapest first."""
    front: list[int] = []
    for k in np.lexsort((-shares, costs)).tolist():
        if not front or shares[k] > shares[front[-1]]:
            front.append(k)
    return front


def _reached(worth: Array, costs: Array, limit: float) -> float:
    """Give the best worth there is at this cost or a lower one; below all costs, the lowest worth of all."""
    return float(worth[costs <= limit].max(initial=worth.min()))


def _improvement(mean: float, spread: float, best: float) -> float:
    """Expected improvement on `best` (Jones et al., 1998)."""
    z = (mean - best) / spread
    return (mean - best) * _normal.cdf(z) + spread * _normal.pdf(z)
