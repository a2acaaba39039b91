"""What schedulers share that judge a trial when it reports, and decide of nobody else."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.algos.search.searchers import Searched, searcher_of
from workbench.algos.search.trials import Trials
from workbench.core.checks import COUNT, check
from workbench.core.protocols import Decision, Report, Run, Verdict
from workbench.core.showing import settings_html


@dataclass
class Lone(ABC):
    """Start configurations in turn, and end a trial that failed or that `_judge` stops."""

    searcher: Searched
    n_trials: int
    n_phases: int
    _trials: Trials = field(init=False, repr=False, compare=False)

    _repr_html_ = settings_html

    def __post_init__(self) -> None:
        self.searcher = searcher_of(self, self.searcher, getattr(self, "seed", 0))
        check(self, COUNT, "n_trials", "n_phases")
        self._trials = Trials(self.searcher, self.n_trials)
        self.n_trials = self._trials.n_left

    def grow(self, n_trials: int) -> None:
        """Let there be more trials; nothing decided is taken back."""
        self.n_trials = self._trials.grow(n_trials)

    def ask(self) -> Run | None:
        """Start the next configuration, if any is left."""
        return self._trials.new()

    def tell(self, report: Report) -> Mapping[int, Decision]:
        """Let the reporter go on or stop it; one that failed is stopped."""
        self._trials.take(report)
        decision = Decision(Verdict.STOP, {"mode": "failed"}) if report.failed else self._judge(report)
        if decision.verdict is Verdict.STOP:
            self._trials.end(report.trial)
        return {report.trial: decision}

    @abstractmethod
    def _judge(self, report: Report) -> Decision:
        """Decide of a trial that did not fail."""
