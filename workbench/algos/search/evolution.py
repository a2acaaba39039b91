"""A searcher that mixes the hyperparameters of fast learners (HyperTrick paper, Sec. 6)."""

import heapq
import math
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field

import numpy as np

from workbench.core.checks import check_share, check_size
from workbench.core.domains import Domain
from workbench.core.protocols import Config, Report, Scalar
from workbench.core.showing import settings_html
from workbench.core.space import Space


@dataclass
class EvolutionSearcher:
    """Breeds new configurations from the best so far: each hyperparameter from one of two parents, some mutated.

    A trial's fitness is the sum, over the phases it reported, of the share of that phase's reports so far that it beat
    (ties by half, itself included): it grows with every phase survived and with every rival beaten there, and scores
    of different phases are never compared. Learning fast is scoring high early.

    Parameters
    ----------
    space : Space
    seed : int
    warmup : int
        Configurations are drawn at random until so many trials have reported.
    parents : float
        Share of the trials that have reported which may become parents; two at least.
    mutation : float
        Probability for each hyperparameter to mutate: half the time ×0.8 or ×1.2, half the time drawn anew.
    random : float
        Probability for a configuration to be drawn at random all the same.
    """

    space: Space
    seed: int = 0
    warmup: int = 10
    parents: float = 0.25
    mutation: float = 0.2
    random: float = 0.1
    _configs: dict[int, Config] = field(init=False, default_factory=dict, repr=False, compare=False)
    _fitness: dict[int, float] = field(init=False, default_factory=dict, repr=False, compare=False)
    _scores: dict[int, list[float]] = field(init=False, default_factory=dict, repr=False, compare=False)

    _repr_html_ = settings_html

    def __post_init__(self) -> None:
        self.space = Space.of(self.space)
        check_size(self, warmup=self.warmup)
        check_share(self, parents=self.parents, mutation=self.mutation, random=self.random)
        self._rng = np.random.default_rng(self.seed)

    def suggest(self, trial: int) -> Config | None:
        """Breed a configuration, or draw one."""
        enough = len(self._fitness) >= max(self.warmup, 2)
        config = self._bred() if enough and self._rng.random() >= self.random else self.space.sample(self._rng)
        self._configs[trial] = config
        return config

    def adopt(self, trial: int, config: Config) -> None:
        """Hear of a trial that runs, or ran, a configuration of somebody else's."""
        self._configs[trial] = config

    def observe(self, report: Report) -> None:
        """Note how many of its phase's reports this one beats."""
        if report.failed or math.isnan(report.score):
            return
        scores = self._scores.setdefault(report.phase, [])
        insort(scores, report.score)
        beaten = (bisect_left(scores, report.score) + bisect_right(scores, report.score)) / 2 / len(scores)
        self._fitness[report.trial] = self._fitness.get(report.trial, 0.0) + beaten

    def _bred(self) -> dict[str, Scalar]:
        n = max(2, int(self.parents * len(self._fitness)))
        best = heapq.nlargest(n, self._fitness, key=lambda t: (self._fitness[t], -t))
        mother, father = (self._configs[best[int(i)]] for i in self._rng.choice(len(best), 2, replace=False))

        def inherited(name: str, domain: Domain) -> Scalar:
            one, other = (mother, father) if self._rng.random() < 0.5 else (father, mother)
            return one[name] if name in one else other[name] if name in other else domain.sample(self._rng)

        def mutated(name: str, domain: Domain) -> Scalar:
            if self._rng.random() >= self.mutation and name in child:
                return child[name]
            return moved[name] if self._rng.random() < 0.5 and name in moved else domain.sample(self._rng)

        child = self.space.point(inherited, instead=mother)
        moved = self.space.perturb(child, (0.8, 1.2), self._rng)
        return self.space.point(mutated, instead=child)
