"""A searcher that mixes the hyperparameters of fast learners (HyperTrick paper, Sec. 6)."""

import heapq
import math
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field

from workbench.algos.search.warmup import LearningSearcher
from workbench.core.checks import PART, check
from workbench.core.domains import Domain
from workbench.core.protocols import Config, Report, Scalar


@dataclass
class EvolutionSearcher(LearningSearcher):
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

    parents: float = 0.25
    mutation: float = 0.2
    _fitness: dict[int, float] = field(init=False, default_factory=dict, repr=False, compare=False)
    _scores: dict[int, list[float]] = field(init=False, default_factory=dict, repr=False, compare=False)
    _heard: set[tuple[int, int]] = field(init=False, default_factory=set, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self, PART, "parents", "mutation")

    def observe(self, report: Report) -> None:
        """Note how many of its phase's reports this one beats."""
        if report.failed or math.isnan(report.score) or (report.trial, report.phase) in self._heard:
            return  # a trial that begins anew survives no phase twice
        self._heard.add((report.trial, report.phase))
        scores = self._scores.setdefault(report.phase, [])
        insort(scores, report.score)
        beaten = (bisect_left(scores, report.score) + bisect_right(scores, report.score)) / 2 / len(scores)
        self._fitness[report.trial] = self._fitness.get(report.trial, 0.0) + beaten

    def _reported(self) -> int:
        return len(self._fitness)

    def _learned(self) -> Config:
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
