"""PASHA: ASHA with no more rungs than it takes for ranks to settle (Bohdal et al., ICLR 2023, arXiv 2207.06940)."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from workbench.algos.search.asha import ASHA
from workbench.algos.search.trials import comparable
from workbench.core.checks import Rule, check, is_number
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Report

Array = npt.NDArray[np.float64]

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
    _arrived: list[Array] = field(init=False, default_factory=list, repr=False, compare=False)  # in the top rung
    _apart: list[Array] = field(init=False, default_factory=list, repr=False, compare=False)  # pairs of them there

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
        if not self._closed or report.phase < self._rungs[-1].phases - 1:
            return
        self._arrive(report.trial)
        if not self._ranks_hold():
            self._rungs.append(self._closed.pop(0))
            self._arrived, self._apart = [], []  # nobody has come so far

    def _ranks_hold(self) -> bool:
        """Whether who is ranked where in the top rung was so, within the noise, in the rung below (Algorithm 1)."""
        top, below = self._rungs[-1].phases - 1, self._rungs[-2].phases - 1
        there = [trial for trial, curve in self._curves.items() if top in curve]
        now = sorted(there, key=lambda trial: -self._curves[trial][top])
        before = sorted(there, key=lambda trial: -self._curves[trial][below])
        gaps = [
            abs(self._curves[a][below] - self._curves[b][below]) for a, b in zip(now, before, strict=True) if a != b
        ]
        if not any(gaps):
            return True  # whatever the noise
        noise = self._noise()
        return all(gap <= noise for gap in gaps)

    def _noise(self) -> float:
        """Measure the noise by curves that cross and cross back (Sec. 4.2)."""
        apart = np.concatenate(self._apart)
        return float(np.percentile(apart, self.percentile)) if apart.size else 0.0

    def _arrive(self, trial: int) -> None:
        """Hold a trial that ends the top rung against those that have: all pairs each time would stall."""
        curve = np.array([self._curves[trial][phase] for phase in range(self._rungs[-1].phases)])
        earlier = np.reshape(self._arrived, (-1, len(curve)))
        crossings, ahead = np.zeros(len(earlier), dtype=int), np.zeros(len(earlier))
        with np.errstate(invalid="ignore"):  # two scores that are no numbers are none apart
            gaps = earlier - curve
        for gap in gaps.T:
            now = np.nan_to_num(np.sign(gap))
            crossings += now * ahead < 0
            ahead = np.where(now, now, ahead)
        self._arrived.append(curve)
        self._apart.append(np.abs(gaps[crossings >= 2, -1]))
