"""The baseline that shames: everything runs one phase, the best few run to the end (arXiv 2307.15422)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.algos.search.bracket import Bracket
from workbench.algos.search.rungs import Rung, phases_in_all, rung_words
from workbench.algos.search.searchers import Searched, searcher_of
from workbench.algos.search.trials import Trials
from workbench.core.checks import COUNT, check
from workbench.core.protocols import Decision, Report, Run
from workbench.core.showing import settings_html


@dataclass
class TopK:
    """Pause every trial after its first phases; then run the best `kept` to their end.

    Egele et al. (2023) found that one epoch is often enough to tell which networks are worth training. A multi-fidelity
    scheduler that is no better than this has earned nothing by its rungs.

    Parameters
    ----------
    searcher : Searcher, Space or dict of its dimensions
        Where configurations come from.
    n_trials, n_phases : int
    kept : int
        Trials that run to their end.
    after : int
        Phases each trial runs before.
    """

    searcher: Searched
    n_trials: int
    n_phases: int
    kept: int = 8
    after: int = 1
    _bracket: Bracket = field(init=False, repr=False, compare=False)
    _trials: Trials = field(init=False, repr=False, compare=False)

    explain = staticmethod(rung_words)
    _repr_html_ = settings_html

    def __post_init__(self) -> None:
        self.searcher = searcher_of(self, self.searcher)
        check(self, COUNT, "n_trials", "n_phases", "kept", "after")
        self._trials = Trials(self.searcher, self.n_trials)
        self.n_trials = n = self._trials.n_left
        first = [Rung(n, self.after)] if self.after < self.n_phases and self.kept < n else []
        self._bracket = Bracket([*first, Rung(min(int(self.kept), n) if first else n, self.n_phases)], self._trials)

    @property
    def expected_phases(self) -> float:
        """Phases that run if no trial fails: exact."""
        return phases_in_all(self._bracket.rungs, restart=False)

    def ask(self) -> Run | None:
        """Take up the best survivor that waits, or start a new configuration."""
        return self._bracket.ask()

    def tell(self, report: Report) -> Mapping[int, Decision]:
        """Let the reporter wait after its first phases; settle who goes on when it is the last."""
        self._trials.take(report)
        return self._bracket.tell(report)
