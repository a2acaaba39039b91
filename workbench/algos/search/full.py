"""Every trial runs to its end: plain grid or random search, the baseline with completion rate 1."""

from dataclasses import dataclass

from workbench.algos.search.lone import Lone
from workbench.core.protocols import Decision, Expectation, Report, Verdict


@dataclass
class FullRuns(Lone):
    """Run `n_trials` configurations for all `n_phases`, stopping none (HyperTrick paper, Fig. 9).

    With a `GridSearcher` this is grid search, with a `RandomSearcher` random search.

    Parameters
    ----------
    searcher : Searcher, Space or dict of its dimensions
        Where configurations come from.
    n_trials, n_phases : int
    """

    @property
    def expected_phases(self) -> float:
        """All of them."""
        return self.n_trials * self.n_phases

    def expectation(self) -> Expectation:
        """Say that every trial begins every phase."""
        all_of_them = [float(self.n_trials)] * self.n_phases
        return Expectation(began=all_of_them, fewest=all_of_them)

    def _judge(self, report: Report) -> Decision:
        if report.phase < self.n_phases - 1:
            return Decision(Verdict.CONTINUE, {"mode": "full"})
        return Decision(Verdict.STOP, {"mode": "finished"})
