"""Hyperband: Successive Halving at several trades of breadth against depth (Li et al., JMLR 2018)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from workbench.algos.search.bracket import Bracket, nodes_that_count
from workbench.algos.search.rungs import Rung, phases_in_all, rung_ends, rung_words
from workbench.algos.search.searchers import Searched, searcher_of
from workbench.algos.search.trials import Trials
from workbench.core.checks import COUNT, TRUTH, check, check_named
from workbench.core.errors import InvalidInput, unknown
from workbench.core.protocols import Decision, Report, Run
from workbench.core.rounding import ceiled, floored
from workbench.core.showing import settings_html

FORMULAS = ("hypertrick", "journal")
ORDERS = ("parallel", "sequence")
ALLOCATIONS = ("dynamic", "none")


@dataclass
class Hyperband:
    """Run the brackets of `bracket_table`, each a Successive Halving of its own (HyperTrick paper, Sec. 5.2.4).

    The configurations a bracket gets are the same whatever happens: the n-th to be started is the searcher's n-th.

    Parameters
    ----------
    searcher : Searcher, Space or dict of its dimensions
        Where configurations come from; it must have enough of them.
    n_phases : int
        The paper's R: phases of a trial that survives every rung.
    eta : float
        Of each rung one in `eta` survives, and runs `eta` times as many phases; 2 or more.
    formula : str
        Sizes of the brackets: ``hypertrick`` (46 configurations at R = 27, eta = 3) or ``journal`` (49).
    order : str
        ``parallel``: a node that finds nothing to do in one bracket works for the next; ``sequence``: a bracket begins
        when the one before is over.
    allocation : str
        ``dynamic``: trials are paused at barriers. ``none``: no preemption, they hold their nodes.
    restart : bool
        Survivors run each rung from the beginning, as new trials; the paper's setting. There are then more trials than
        configurations: 65 for the 46.
    n_nodes : int, optional
        Slots of the cluster; needed for ``none`` unless `restart`. ``None`` where it plays no part.
    rounds : int
        Times that all brackets are run, each time with new configurations. The algorithm goes on like this for as long
        as there is time; one round of it is small where R is.
    """

    searcher: Searched
    n_phases: int
    eta: float = 3
    formula: str = "hypertrick"
    order: str = "parallel"
    allocation: str = "dynamic"
    restart: bool = False
    n_nodes: int | None = None
    rounds: int = 1
    _trials: Trials = field(init=False, repr=False, compare=False)
    _brackets: list[Bracket] = field(init=False, repr=False, compare=False)
    _bracket_of: dict[int, Bracket] = field(init=False, default_factory=dict, repr=False, compare=False)

    trials_in_reasons = ("repeats",)
    explain = staticmethod(rung_words)
    _repr_html_ = settings_html

    def __post_init__(self) -> None:
        self.searcher = searcher_of(self, self.searcher)
        check(self, COUNT, "n_phases", "rounds")
        check(self, TRUTH, "restart")
        for name, allowed in (("order", ORDERS), ("allocation", ALLOCATIONS)):
            check_named(self, name, allowed)
        once = bracket_table(self.n_phases, self.eta, self.formula)
        table = once * self.rounds
        sizes = [rungs[0].n_trials for rungs in table]
        at_once = sum(sizes) if self.order == "parallel" else max(sizes)
        self.n_nodes = nodes_that_count(self, at_once, self.n_nodes, self.allocation, self.restart)
        self._trials = Trials(self.searcher, sum(sizes))
        if self._trials.n_left < sum(sizes):
            raise InvalidInput(
                f"Hyperband(n_phases={self.n_phases}, eta={self.eta}) needs {sum(sizes)} configurations, "
                f"the searcher has {self._trials.n_left}"
            )
        hold = self.allocation == "none"
        self._brackets = [
            Bracket(
                rungs, self._trials, hold=hold, restart=self.restart, tag=self._tag(*divmod(i, len(once)), len(once))
            )
            for i, rungs in enumerate(table)
        ]

    @property
    def n_configs(self) -> int:
        """Configurations in all brackets."""
        return sum(bracket.rungs[0].n_trials for bracket in self._brackets)

    @property
    def n_trials(self) -> int:
        """Trials asked for in all: the configurations, and with `restart` their repetitions."""
        if not self.restart:
            return self.n_configs
        return sum(rung.n_trials for bracket in self._brackets for rung in bracket.rungs)

    @property
    def expected_phases(self) -> float:
        """Phases that run if no trial fails: exact."""
        return sum(phases_in_all(bracket.rungs, restart=self.restart) for bracket in self._brackets)

    def ask(self) -> Run | None:
        """Take the first bracket, the broadest first, that has something to run."""
        for bracket in self._brackets:
            run = bracket.ask()
            if run is not None:
                self._bracket_of[run.trial] = bracket
                return run
            if self.order == "sequence" and not bracket.over:
                return None
        return None

    def tell(self, report: Report) -> Mapping[int, Decision]:
        """Let the reporter's bracket answer."""
        self._trials.take(report)
        return self._bracket_of[report.trial].tell(report)

    def _tag(self, turn: int, i: int, n: int) -> dict[str, int]:
        """Name a bracket in its decisions: by its s, and by its round if there are several."""
        return {"bracket": n - 1 - i} | ({"round": turn} if self.rounds > 1 else {})


def bracket_table(n_phases: int, eta: float = 3, formula: str = "hypertrick") -> list[list[Rung]]:
    """Rungs of every bracket, the broadest (s = s_max) first; B = (s_max + 1) R.

    A bracket s begins with n_s trials at R eta^-s phases; its rung i keeps floor(n_s eta^-i). ``hypertrick`` takes
    n_s = ceil(floor(B/R/(s+1)) eta^s), which gives the 46 configurations of the HyperTrick paper's Table 2;
    ``journal`` takes n_s = ceil(B/R eta^s / (s+1)), Hyperband's Algorithm 1, which gives 49.

    Examples
    --------
    >>> [[(r.n_trials, r.phases) for r in rungs] for rungs in bracket_table(9)]
    [[(9, 1), (3, 3), (1, 9)], [(3, 3), (1, 9)], [(3, 9)]]
    """
    if formula not in FORMULAS:
        raise unknown("formula", formula, FORMULAS)
    ends = rung_ends(n_phases, eta)
    s_max = len(ends) - 1
    table = []
    for s in range(s_max, -1, -1):
        share = (s_max + 1) // (s + 1) if formula == "hypertrick" else (s_max + 1) / (s + 1)
        n = ceiled(share * eta**s)
        table.append([Rung(max(1, floored(n / eta**i)), ends[s_max - s + i]) for i in range(s + 1)])
    return table


def bracket_completion(brackets: Sequence[Sequence[Rung]]) -> float:
    """Alpha: phases that run, as a share of all configurations running to the end (HyperTrick paper, Table 2).

    The paper counts a survivor's earlier phases again in every rung, since it restarts them.
    """
    run = sum(phases_in_all(rungs, restart=True) for rungs in brackets)
    return run / sum(rungs[0].n_trials * rungs[-1].phases for rungs in brackets)
