"""Every trial runs to its end: plain grid or random search, the baseline with completion rate 1."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.algos.search.searchers import Searched, searcher_of
from workbench.algos.search.trials import Trials
from workbench.core.checks import COUNT, check
from workbench.core.protocols import Decision, Expectation, Report, Run, Verdict
from workbench.core.showing import settings_html


@dataclass
class FullRuns:
    """Run `n_trials` configurations for all `n_phases`, stopping none (HyperTrick paper, Fig. 9).

    With a `GridSearcher` this is grid search, with a `RandomSearcher` random search.

    Parameters
    ----------
    searcher : Searcher, Space or dict of its dimensions
        Where configurations come from.
    n_trials, n_phases : int
    """

    searcher: Searched
    n_trials: int
    n_phases: int
    _trials: Trials = field(init=False, repr=False, compare=False)

    _repr_html_ = settings_html

    def __post_init__(self) -> None:
        self.searcher = searcher_of(self, self.searcher)
        check(self, COUNT, "n_trials", "n_phases")
        self._trials = Trials(self.searcher, self.n_trials)
        self.n_trials = self._trials.n_left

    @property
    def expected_phases(self) -> float:
        """All of them."""
        return self.n_trials * self.n_phases

    def expectation(self) -> Expectation:
        """Say that every trial begins every phase."""
        all_of_them = [float(self.n_trials)] * self.n_phases
        return Expectation(began=all_of_them, fewest=all_of_them)

    def grow(self, n_trials: int) -> None:
        """Let there be more trials."""
        self.n_trials = self._trials.grow(n_trials)

    def ask(self) -> Run | None:
        """Start the next configuration, if any is left."""
        return self._trials.new()

    def tell(self, report: Report) -> Mapping[int, Decision]:
        """Let the reporter go on until its last phase."""
        self._trials.take(report)
        if not report.failed and report.phase < self.n_phases - 1:
            return {report.trial: Decision(Verdict.CONTINUE, {"mode": "full"})}
        self._trials.end(report.trial)
        return {report.trial: Decision(Verdict.STOP, {"mode": "failed" if report.failed else "finished"})}
