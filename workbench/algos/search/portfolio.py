"""Several HyperTricks side by side, balancing breadth and depth as Hyperband does (HyperTrick paper, Sec. 6)."""

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from typing import Any

from workbench.algos.search.full import FullRuns
from workbench.algos.search.hyperband import bracket_completion, bracket_table
from workbench.algos.search.hypertrick import HyperTrick, eviction_rate_for
from workbench.algos.search.searchers import Searched, searcher_of
from workbench.algos.search.trials import Trials
from workbench.core.checks import COUNT, DECAY, SEED, check, check_each
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Config, Decision, Expectation, Report, Run, Verdict
from workbench.core.showing import settings_html, so_many


@dataclass
class Portfolio:
    """Run HyperTricks of different sizes and eviction rates in one study, each judging its own trials alone.

    A free node starts a trial of the HyperTrick that has started the smallest share of its own; which configuration
    goes to which thus depends on nothing but the sizes.

    Parameters
    ----------
    searcher : Searcher, Space or dict of its dimensions
        Where configurations come from, for all.
    n_phases : int
        Np of each.
    sizes : sequence of int
        W0 of each.
    eviction_rates : sequence of float
        r of each, in [0, 1); with 0 all of its trials run to the end.
    seed : int
        Of the generators that order equal scores; member i has one of seed + i.
    """

    searcher: Searched
    n_phases: int
    sizes: Sequence[int]
    eviction_rates: Sequence[float]
    seed: int = 0
    _trials: Trials = field(init=False, repr=False, compare=False)
    _members: "list[_Component]" = field(init=False, repr=False, compare=False)
    _place_of: "dict[int, tuple[_Component, int]]" = field(init=False, default_factory=dict, repr=False, compare=False)

    _repr_html_ = settings_html

    def __post_init__(self) -> None:
        check(self, SEED, "seed")
        self.searcher = searcher_of(self, self.searcher, self.seed)
        check(self, COUNT, "n_phases")
        check_each(self, COUNT, "sizes")
        check_each(self, DECAY, "eviction_rates")
        if not self.sizes or len(self.sizes) != len(self.eviction_rates):
            raise InvalidInput(
                "Portfolio needs a size and an eviction rate for each HyperTrick, "
                f"got {so_many(len(self.sizes), 'size')} and {so_many(len(self.eviction_rates), 'rate')}"
            )
        if isinstance(self.searcher, Sized) and len(self.searcher) < sum(self.sizes):
            raise InvalidInput(
                f"Portfolio needs {sum(self.sizes)} configurations, the searcher has {len(self.searcher)}: "
                "make the sizes smaller"
            )
        self._members = [
            _Component(i, size, rate, self.n_phases, self.seed + i)
            for i, (size, rate) in enumerate(zip(self.sizes, self.eviction_rates, strict=True))
        ]
        self._trials = Trials(self.searcher, self.n_trials)

    @property
    def n_trials(self) -> int:
        """Trials of all members."""
        return sum(self.sizes)

    @property
    def expected_phases(self) -> float:
        """W0 Np E[alpha] (Eq. 9), summed over the members."""
        return sum(member.rule.expected_phases for member in self._members)

    def expectation(self) -> Expectation:
        """Say how many trials of all members begin each phase; see `HyperTrick.expectation`."""
        expectations = [member.rule.expectation() for member in self._members]
        return Expectation(
            began=[sum(counts) for counts in zip(*(t.began for t in expectations), strict=True)],
            fewest=[sum(counts) for counts in zip(*(t.fewest for t in expectations), strict=True)],
        )

    @staticmethod
    def explain(reason: Mapping[str, Any]) -> str:
        """Put a reason into its member's words."""
        words = HyperTrick.explain({key: value for key, value in reason.items() if key != "member"})
        return f"{words}, of HyperTrick {reason['member']}" if "member" in reason else words

    def ask(self) -> Run | None:
        """Start the next configuration, if any is left, for the member that is furthest behind."""
        run = self._trials.new()
        if run is None:
            return None
        member = min(self._members, key=lambda m: (m.started / m.size, m.index))
        self._place_of[run.trial] = (member, member.start(run.config))
        return run

    def tell(self, report: Report) -> Mapping[int, Decision]:
        """Let the reporter's own HyperTrick judge it."""
        self._trials.take(report)
        member, number = self._place_of[report.trial]
        (decision,) = member.rule.tell(replace(report, trial=number)).values()
        if decision.verdict is Verdict.STOP:
            self._trials.end(report.trial)
        return {report.trial: Decision(decision.verdict, {**decision.reason, "member": member.index})}


class _Component:
    """One HyperTrick, which numbers its trials for itself and is its own searcher."""

    def __init__(self, index: int, size: int, eviction_rate: float, n_phases: int, seed: int) -> None:
        self.index, self.size, self.started = index, size, 0
        self.rule: HyperTrick | FullRuns = (
            HyperTrick(self, size, n_phases, eviction_rate, seed) if eviction_rate else FullRuns(self, size, n_phases)
        )

    def start(self, config: Config) -> int:
        """Start a trial with a given configuration; return its number in here."""
        self._config = config
        run = self.rule.ask()
        assert run is not None  # a member that has started all is never the furthest behind
        self.started += 1
        return run.trial

    def suggest(self, trial: int) -> Config | None:
        """Pass on the configuration the portfolio chose."""
        return self._config

    def observe(self, report: Report) -> None:
        """Learn nothing: the portfolio tells the searcher."""


def like_hyperband(
    n_phases: int, eta: float = 3, formula: str = "hypertrick"
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Give sizes and eviction rates: the configurations, and the alpha, that each of Hyperband's brackets has.

    Each rate solves Eq. 9 for its bracket's completion rate, as the paper does for all brackets together.

    >>> sizes, rates = like_hyperband(27)
    >>> sizes, [round(r, 3) for r in rates]
    ((27, 9, 6, 4), [0.25, 0.106, 0.033, 0.0])
    """
    table = bracket_table(n_phases, eta, formula)
    alphas = [bracket_completion([rungs]) for rungs in table]
    rates = tuple(eviction_rate_for(alpha, n_phases) if alpha < 1 else 0.0 for alpha in alphas)
    return tuple(rungs[0].n_trials for rungs in table), rates
