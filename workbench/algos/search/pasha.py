"""PASHA: ASHA with no more rungs than it takes for ranks to settle (Bohdal et al., ICLR 2023, arXiv 2207.06940)."""

import math
from dataclasses import dataclass, field
from itertools import combinations, pairwise

import numpy as np

from workbench.algos.search.asha import ASHA
from workbench.algos.search.trials import comparable
from workbench.core.checks import Rule, check, is_number
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Report

_PERCENTILE = Rule("in [0, 100]", lambda value: is_number(value) and 0 <= value <= 100)


@dataclass
class PASHA(ASHA):
    """ASHA that begins with two rungs, and opens the next only when the top rung ranks trials as the one below did not.

    Two ranks count as one if the scores of the rung below lie within a noise of each other. The noise is measured: of
    all pairs of trials in the top rung whose curves cross and cross back, the 90th percentile of how far apart they are
    at the end. A study whose ranks settle early thus never runs a trial to its end: the best of the top rung is the
    result.

    Parameters
    ----------
    searcher, n_trials, n_phases, eta, min_phases, seed
        As `ASHA`'s; `variant` stays ``promotion``.
    percentile : float
        Of the noise; the paper's 90.
    """

    percentile: float = 90.0
    _curves: dict[int, dict[int, float]] = field(init=False, default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variant != "promotion":
            raise InvalidInput(f"PASHA pauses and promotes: leave variant at 'promotion', got {self.variant!r}")
        check(self, _PERCENTILE, "percentile")
        self._closed = self._rungs[2:]
        self._rungs = self._rungs[:2]

    def _hear(self, report: Report) -> None:
        """Keep the score, and open the next rung if it disturbs the ranks."""
        if report.failed:
            return
        self._curves.setdefault(report.trial, {})[report.phase] = comparable(report)
        if self._closed and report.phase == self._rungs[-1].phases - 1 and not self._ranks_hold():
            self._rungs.append(self._closed.pop(0))

    def _ranks_hold(self) -> bool:
        """Whether who is ranked where in the top rung was so, within the noise, in the rung below (Algorithm 1)."""
        top, below = self._rungs[-1].phases - 1, self._rungs[-2].phases - 1
        there = [trial for trial, curve in self._curves.items() if top in curve]
        now = sorted(there, key=lambda trial: -self._curves[trial][top])
        before = sorted(there, key=lambda trial: -self._curves[trial][below])
        noise = self._noise(there, top)
        gaps = [
            abs(self._curves[a][below] - self._curves[b][below]) for a, b in zip(now, before, strict=True) if a != b
        ]
        return all(gap <= noise for gap in gaps)

    def _noise(self, trials: list[int], top: int) -> float:
        """Measure the noise by curves that cross and cross back (Sec. 4.2)."""
        apart = []
        for one, other in combinations(trials, 2):
            ahead = [self._curves[one][p] - self._curves[other][p] for p in range(top + 1)]
            signs = [math.copysign(1, gap) for gap in ahead if gap and not math.isnan(gap)]
            if sum(a != b for a, b in pairwise(signs)) >= 2:
                apart.append(abs(ahead[-1]))
        return float(np.percentile(apart, self.percentile)) if apart else 0.0
