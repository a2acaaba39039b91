"""The median stopping rule (Golovin et al., "Google Vizier", KDD 2017, Sec. 3.2.2)."""

from bisect import insort
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from workbench.algos.search.lone import Lone
from workbench.algos.search.trials import comparable
from workbench.core.checks import COUNT, TRUTH, check
from workbench.core.protocols import Decision, Report, Verdict
from workbench.core.showing import four_digits, reason_text


@dataclass
class MedianStopping(Lone):
    """Stop a trial whose best score so far is below the median of the others' running averages at the same phase.

    Vizier compares with completed trials only. Here all that have reported the phase count unless `completed_only`:
    when as many nodes as trials start at once, none is completed in time for the rule ever to stop one. A trial is
    stopped only below the median, so that on a plateau, where all scores are equal, nobody is.

    Parameters
    ----------
    searcher : Searcher, Space or dict of its dimensions
        Where configurations come from.
    n_trials, n_phases : int
    grace_phases : int
        Nobody is stopped after fewer phases than these.
    min_reports : int
        Nobody is stopped by fewer running averages than these.
    completed_only : bool
        Compare with trials that ran all their phases.
    """

    grace_phases: int = 1
    min_reports: int = 3
    completed_only: bool = False
    _scores: dict[int, list[float]] = field(init=False, default_factory=dict, repr=False, compare=False)
    _averages: list[list[float]] = field(init=False, repr=False, compare=False)

    scores_in_reasons = ("best", "median")

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self, COUNT, "grace_phases", "min_reports")
        check(self, TRUTH, "completed_only")
        self._averages = [[] for _ in range(self.n_phases)]  # of each phase, sorted

    @property
    def expected_phases(self) -> float:
        """All of them: how many the rule saves is not known beforehand."""
        return self.n_trials * self.n_phases

    @staticmethod
    def explain(reason: Mapping[str, Any]) -> str:
        """Put a reason into words: how the trial's best stands to the median of the others' averages.

        >>> MedianStopping.explain({"mode": "selecting", "best": 2.0, "median": 3.0, "reported": 5})
        'compared: its best, 2, < the median of 5 running averages, 3'
        """
        mode = reason.get("mode")
        if mode == "collecting":
            return f"too early: {reason['reported']} running averages to compare with so far"
        if mode == "selecting":
            best, middle = reason["best"], reason["median"]
            sign = "<" if best < middle else "≥"
            if reason.get("minimised"):  # the study turned the scores back
                sign = ">" if best > middle else "≤"
            averages = f"{reason['reported']} running averages"
            return f"compared: its best, {four_digits(best)}, {sign} the median of {averages}, {four_digits(middle)}"
        return reason_text(reason)

    def _judge(self, report: Report) -> Decision:
        scores = self._scores.setdefault(report.trial, [])
        scores.append(comparable(report))
        others = self._averages[report.phase]
        best, n_others = max(scores), len(others)
        threshold = median(others) if others else None
        why = {"best": best, "median": threshold, "reported": n_others}
        finished = report.phase == self.n_phases - 1
        if not self.completed_only:
            insort(others, sum(scores) / len(scores))
        elif finished:
            for phase in range(self.n_phases):
                insort(self._averages[phase], sum(scores[: phase + 1]) / (phase + 1))
        if finished:
            return Decision(Verdict.STOP, {"mode": "finished", **why})
        if threshold is None or n_others < self.min_reports or report.phase + 1 < self.grace_phases:
            return Decision(Verdict.CONTINUE, {"mode": "collecting", **why})
        return Decision(Verdict.STOP if best < threshold else Verdict.CONTINUE, {"mode": "selecting", **why})
