"""HyperTrick: asynchronous early stopping without preemption (Heinrich & Frosio, arXiv 1902.02725)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sortedcontainers import SortedList

from workbench.algos.search.lone import Lone
from workbench.algos.search.trials import comparable
from workbench.core.checks import SEED, check, is_number
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Decision, Expectation, Report, Verdict
from workbench.core.rounding import ceiled
from workbench.core.seeds import scheduler_generator
from workbench.core.showing import reason_text, so_many


@dataclass
class HyperTrick(Lone):
    """Stop a trial that reports in the lower quantile of its phase, once enough trials have reported there.

    A phase begins in Data Collection Mode: the first `collecting_reports` (Eq. 2) trials to report it go on
    whatever their score. Then it is in Worker Selection Mode: a reporter whose score ranks in the lower
    sqrt(r) quantile of those reported so far is stopped, and its slot goes to a new configuration. Nobody
    waits for anybody, and a crash concerns its trial alone.

    Equal scores are ordered by a draw, so that a plateau, where nobody learns, costs as many trials as Eq. 1 says. A
    score that is not a number ranks with the lowest.

    Parameters
    ----------
    searcher : Searcher, Space or dict of its dimensions
        Where configurations come from.
    n_trials : int
        The paper's W0: trials started in all; no more than a searcher that has a length can give.
    n_phases : int
        The paper's Np: phases a trial runs if never stopped.
    eviction_rate : float
        The paper's r, in (0, 1): expected share of trials stopped after each phase.
    seed : int
        Of the generator that orders equal scores.
    """

    eviction_rate: float = 0.25
    seed: int = 0
    _scores: "list[SortedList[tuple[float, float]]]" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check(self, SEED, "seed")
        super().__post_init__()
        check_rate(self.eviction_rate)
        self._rng = scheduler_generator(self.seed)
        self._scores = [SortedList() for _ in range(self.n_phases)]  # of each phase: (score, draw)
        self._threshold = math.sqrt(self.eviction_rate)
        self._plan()

    @property
    def expected_phases(self) -> float:
        """W0 Np E[alpha] (Eq. 9)."""
        return self.n_trials * self.n_phases * expected_completion_rate(self.eviction_rate, self.n_phases)

    def expectation(self) -> Expectation:
        """Say how many trials begin each phase: Eq. 1, and at least those collected in the phase before, Eq. 2."""
        n, r, phases = self.n_trials, self.eviction_rate, range(self.n_phases)
        return Expectation(
            began=[expected_trials(n, r, p) for p in phases],
            fewest=[float(n), *(float(collecting_reports(n, r, p)) for p in phases[:-1])],
        )

    @staticmethod
    def explain(reason: Mapping[str, Any]) -> str:
        """Put a reason into the paper's words: DCM is Data Collection Mode, WSM Worker Selection Mode.

        >>> HyperTrick.explain({"mode": "collecting", "reported": 3, "collecting_reports": 6})
        'DCM: report 3 of the 6 that all go on'
        >>> HyperTrick.explain({"mode": "selecting", "rank": 0.4, "threshold": 0.5, "reported": 10})
        'WSM: rank 0.40 < 0.50 among 10 reports'
        """
        mode = reason.get("mode")
        if mode == "collecting":
            return f"DCM: report {reason['reported']} of the {reason['collecting_reports']} that all go on"
        if mode == "selecting":
            rank, threshold = reason["rank"], reason["threshold"]
            kept = "<" if rank < threshold else "≥"
            return f"WSM: rank {rank:.2f} {kept} {threshold:.2f} among {so_many(reason['reported'], 'report')}"
        return reason_text(reason)

    def grow(self, n_trials: int) -> None:
        """Let there be more trials: selection in the reports to come follows the larger number."""
        super().grow(n_trials)
        self._plan()

    def _plan(self) -> None:
        n, r = self.n_trials, self.eviction_rate
        self._collecting = [collecting_reports(n, r, phase) for phase in range(self.n_phases)]

    def _judge(self, report: Report) -> Decision:
        """By the share of the reports of its phase so far that are below, its own counted in the total."""
        scores = self._scores[report.phase]
        score = comparable(report)
        place = (score, float(self._rng.random()))
        below = scores.bisect_left(place)
        scores.add(place)
        reported, collecting, threshold = len(scores), self._collecting[report.phase], self._threshold
        rank = below / reported
        why = {"rank": rank, "threshold": threshold, "reported": reported, "collecting_reports": collecting}
        if report.phase == self.n_phases - 1:
            return Decision(Verdict.STOP, {"mode": "finished", **why})
        if reported <= collecting:
            return Decision(Verdict.CONTINUE, {"mode": "collecting", **why})
        verdict = Verdict.STOP if rank < threshold else Verdict.CONTINUE
        return Decision(verdict, {"mode": "selecting", **why})


def check_rate(eviction_rate: float) -> None:
    """Raise `InvalidInput` unless 0 < r < 1."""
    if not is_number(eviction_rate) or not 0 < eviction_rate < 1:
        raise InvalidInput(f"eviction_rate is a share between 0 and 1, both excluded, got {eviction_rate!r}: try 0.25")


def expected_trials(n_trials: int, eviction_rate: float, phase: int) -> float:
    """E[W_p] = W0 (1-r)^p: trials expected to begin phase p (Eq. 1)."""
    return float(n_trials * (1 - eviction_rate) ** phase)


def collecting_reports(n_trials: int, eviction_rate: float, phase: int) -> int:
    """W_DCM,p = (1 - sqrt(r)) E[W_p]: reports of phase p before selection begins (Eq. 2), rounded up.

    The paper's toy problem has "the minimum number of workers allowed to continue" at 6, 5 and 4, where Eq. 2 gives 6,
    4.5 and 3.375. Rounded down, or left as it is, Eq. 2 would stop more trials than Eq. 1 expects.

    Examples
    --------
    >>> [collecting_reports(12, 0.25, p) for p in range(3)]
    [6, 5, 4]
    """
    return ceiled((1 - math.sqrt(eviction_rate)) * expected_trials(n_trials, eviction_rate, phase))


def expected_completion_rate(eviction_rate: float, n_phases: int) -> float:
    """E[alpha] = (1 - (1-r)^Np) / (r Np): expected share of the W0 Np phases that run (Eq. 9)."""
    return (1 - (1 - eviction_rate) ** n_phases) / (eviction_rate * n_phases)


def minimum_completion_rate(eviction_rate: float, n_phases: int) -> float:
    """(1 - sqrt(r)) E[alpha]: the paper's minimum of alpha, when selection stops everyone it may (Eq. 8).

    It counts those let on after each phase (Eq. 2), not those who run it: the phase in which a trial is stopped is left
    out. So no run comes as low; what can run is the sum of `HyperTrick.expectation().fewest`.
    """
    return (1 - math.sqrt(eviction_rate)) * expected_completion_rate(eviction_rate, n_phases)


def eviction_rate_for(completion_rate: float, n_phases: int) -> float:
    """Give the r whose E[alpha] is `completion_rate`: Eq. 9 solved by bisection, as in Sec. 5.2.4.

    Parameters
    ----------
    completion_rate : float
        Share of the W0 Np phases, between 1/Np (nobody passes the first phase, r = 1) and 1 (nobody is stopped, r = 0),
        both excluded.
    n_phases : int
        The paper's Np.

    Examples
    --------
    >>> round(eviction_rate_for(405 / 1242, 27), 4)
    0.1085
    """
    if n_phases < 2 or not 1 / n_phases < completion_rate < 1:
        raise InvalidInput(
            f"over {so_many(n_phases, 'phase')} the completion rate lies between {1 / n_phases:.4g} and 1, both "
            f"excluded, got {completion_rate!r}"
        )
    low, high = 0.0, 1.0
    while (middle := (low + high) / 2) not in (low, high):
        if expected_completion_rate(middle, n_phases) > completion_rate:
            low = middle
        else:
            high = middle
    return middle
