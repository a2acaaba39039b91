"""Successive Halving: rungs with a barrier, after each of which only the best go on (Jamieson & Talwalkar, 2016)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.algos.search.bracket import Bracket, Places, nodes_that_count
from workbench.algos.search.hypertrick import check_rate
from workbench.algos.search.rungs import Rung, phases_in_all, rung_words, rungs_by_eta, rungs_by_rate
from workbench.algos.search.searchers import Searched, searcher_of
from workbench.algos.search.trials import Trials
from workbench.core.checks import COUNT, TRUTH, check, check_named, whole
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Decision, Report, Run
from workbench.core.showing import settings_html, so_many

ALLOCATIONS = ("dynamic", "static", "none")


@dataclass
class SuccessiveHalving:
    """Run all trials to a rung, keep the best, run those to the next, and so on (HyperTrick paper, Figs 3 and 8).

    Who survives a rung depends on the scores alone: on the sum of what all of its trials reported, never on who came
    first, on how many nodes there are, or on how trials are put on them. Of equal scores the earlier trial survives;
    a failed trial ranks below all others, and nobody waits for it.

    Parameters
    ----------
    searcher : Searcher, Space or dict of its dimensions
        Where configurations come from.
    n_trials : int
        Trials of the first rung. With `restart` the later rungs add trials of their own, and a scheduler once made
        counts them here.
    n_phases : int
        Phases of a trial that survives every rung.
    eta : float
        Of each rung one in `eta` survives, and runs `eta` times as many phases; 2 or more. Not with an `eviction_rate`.
    eviction_rate : float, optional
        If given: a share r is dropped after *every* phase instead, as in the HyperTrick paper's toy problem; the
        trials of phase p are W0 (1-r)^p, rounded, and one at least.
    min_phases : int
        Fewest phases of the first rung, when the rungs are `eta` apart.
    allocation : str
        What becomes of a trial at the barrier. ``dynamic``: it is paused, its node is free, and it goes on wherever
        there is room. ``static``: it is paused, and goes on only on the slot it began on; slots get equal shares of
        the trials. ``none``: no preemption, it waits holding its node, which takes as many nodes as trials.
    restart : bool
        Survivors run each rung from the beginning, as new trials with the same configuration.
    n_nodes : int, optional
        Slots of the cluster; needed for ``static``, and for ``none`` unless `restart`. ``None`` where it plays no part.
    n_configs : int, optional
        Configurations in the first rung, should `n_trials` count repetitions: a scheduler once made says both.
    """

    searcher: Searched
    n_trials: int
    n_phases: int
    eta: float = 3
    eviction_rate: float | None = None
    min_phases: int = 1
    allocation: str = "dynamic"
    restart: bool = False
    n_nodes: int | None = None
    n_configs: int | None = None
    _bracket: "Bracket" = field(init=False, repr=False, compare=False)
    _trials: Trials = field(init=False, repr=False, compare=False)

    trials_in_reasons = ("repeats",)
    explain = staticmethod(rung_words)
    _repr_html_ = settings_html

    def __post_init__(self) -> None:
        self.searcher = searcher_of(self, self.searcher)
        check(self, COUNT, "n_trials", "n_phases")
        check(self, whole(1, self.n_phases), "min_phases")
        check(self, TRUTH, "restart")
        check_named(self, "allocation", ALLOCATIONS)
        given = self.n_configs
        if self.n_configs is None:
            self.n_configs = self.n_trials
        check(self, COUNT, "n_configs")
        self._trials = Trials(self.searcher, self.n_configs)
        self.n_configs = n = self._trials.n_left
        if self.eviction_rate is None:
            rungs = rungs_by_eta(n, self.n_phases, self.eta, self.min_phases)
        else:
            check_rate(self.eviction_rate)
            kind = type(self)  # whose defaults stand in the log of a study where they were left out
            if (self.eta, self.min_phases) != (kind.eta, kind.min_phases):
                raise InvalidInput(
                    "SuccessiveHalving with an eviction_rate has a rung a phase, each of which drops that share: leave "
                    "eta and min_phases out"
                )
            rungs = rungs_by_rate(n, self.n_phases, self.eviction_rate)
        total = sum(rung.n_trials for rung in rungs) if self.restart else n
        if given is not None and self.n_trials not in (given, total):
            raise InvalidInput(
                f"SuccessiveHalving of {so_many(n, 'configuration')} has {so_many(total, 'trial')}, not "
                f"{self.n_trials}: leave n_configs out"
            )
        self.n_trials = total
        self.n_nodes = nodes_that_count(self, n, self.n_nodes, self.allocation, self.restart)
        places = Places(n, self.n_nodes) if self.allocation == "static" and self.n_nodes else None
        self._bracket = Bracket(
            rungs, self._trials, hold=self.allocation == "none", restart=self.restart, places=places
        )

    @property
    def rungs(self) -> "list[Rung]":
        """Trials and phases of every rung."""
        return self._bracket.rungs

    @property
    def expected_phases(self) -> float:
        """Phases that run if no trial fails: exact."""
        return phases_in_all(self.rungs, restart=self.restart)

    def ask(self) -> Run | None:
        """Take up the best survivor that waits, or start a new configuration in the first rung."""
        return self._bracket.ask()

    def tell(self, report: Report) -> Mapping[int, Decision]:
        """Let the reporter run on inside its rung, and wait at the end; settle the rung when it is the last."""
        self._trials.take(report)
        return self._bracket.tell(report)
