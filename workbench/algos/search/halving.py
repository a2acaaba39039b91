"""Successive Halving: rungs with a barrier, after each of which only the best go on (Jamieson & Talwalkar, 2016)."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.algos.search.hypertrick import check_rate
from workbench.algos.search.searchers import Searched, searcher_of
from workbench.algos.search.trials import Trials
from workbench.core.checks import check_one_of, check_size
from workbench.core.errors import InvalidInput, SchedulerError
from workbench.core.protocols import Decision, Report, Run, Verdict
from workbench.core.showing import reason_text, settings_html

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
        Of each rung one in `eta` survives, and runs `eta` times as many phases; 2 or more.
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
        Slots of the cluster; needed for ``static`` and ``none``.
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

    _repr_html_ = settings_html

    def __post_init__(self) -> None:
        self.searcher = searcher_of(self, self.searcher)
        check_size(self, n_trials=self.n_trials, n_phases=self.n_phases, min_phases=self.min_phases)
        check_one_of(self, "allocation", self.allocation, ALLOCATIONS)
        if self.n_configs is None:
            self.n_configs = self.n_trials
        check_size(self, n_configs=self.n_configs)
        self._trials = Trials(self.searcher, self.n_configs)
        self.n_configs = n = self._trials.n_left
        if self.eviction_rate is None:
            check_eta(self, self.eta)
            rungs = rungs_by_eta(n, self.n_phases, self.eta, self.min_phases)
        else:
            check_rate(self.eviction_rate)
            if self.min_phases != 1:
                raise InvalidInput("SuccessiveHalving with an eviction_rate has a rung a phase: leave min_phases out")
            rungs = rungs_by_rate(n, self.n_phases, self.eviction_rate)
        self.n_trials = sum(rung.n_trials for rung in rungs) if self.restart else self.n_configs
        check_nodes(self, n, self.n_nodes, self.allocation, self.restart)
        places = _Places(n, self.n_nodes) if self.allocation == "static" and self.n_nodes else None
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

    @staticmethod
    def explain(reason: Mapping[str, Any]) -> str:
        """Put a reason into words; see `rung_words`."""
        return rung_words(reason)

    def ask(self) -> Run | None:
        """Take up the best survivor that waits, or start a new configuration in the first rung."""
        return self._bracket.ask()

    def tell(self, report: Report) -> Mapping[int, Decision]:
        """Let the reporter run on inside its rung, and wait at the end; settle the rung when it is the last."""
        self._trials.take(report)
        return self._bracket.tell(report)


@dataclass(frozen=True)
class Rung:
    """`n_trials` run until they have ended `phases` phases."""

    n_trials: int
    phases: int


class Bracket:
    """One Successive Halving over given rungs: the part that Hyperband shares.

    Parameters
    ----------
    rungs : sequence of Rung
    trials : Trials
        Where trials come from; several brackets may share it. Reports are taken in by the owner.
    hold : bool
        Trials wait on their nodes.
    restart : bool
        Survivors are repeated as new trials.
    places : _Places, optional
        Binds each trial to a slot.
    tag : mapping
        Put into every decision's reason.
    """

    def __init__(
        self,
        rungs: Sequence[Rung],
        trials: Trials,
        *,
        hold: bool = False,
        restart: bool = False,
        places: "_Places | None" = None,
        tag: Mapping[str, Any] | None = None,
    ) -> None:
        self.rungs = list(rungs)
        self._trials, self._hold, self._restart, self._places = trials, hold, restart, places
        self._tag = dict(tag or {})
        self._at = 0
        self._unstarted = rungs[0].n_trials
        self._members = self._awaited = rungs[0].n_trials  # of this rung; of them, those not at its end yet
        self._scores: dict[int, float] = {}  # of the trials that have arrived there
        self._survivors: deque[int] = deque()  # to be taken up, best first
        self._first: dict[int, int] = {}  # repeat → the trial that had its configuration first

    @property
    def over(self) -> bool:
        """Whether nothing is left to run."""
        return self._awaited == 0

    def ask(self) -> Run | None:
        """Start or take up the next trial; ``None`` if nobody may run now."""
        run = self._begin() if self._unstarted else self._take_up()
        if run is not None and self._places is not None:
            self._places.enter(run.trial)
        return run

    def _begin(self) -> Run | None:
        slot = None if self._places is None else self._places.bind(len(self._trials))
        if self._places is not None and slot is None:
            return None
        run = self._trials.new(slot)
        if run is None:
            raise SchedulerError(
                f"the searcher ran out with {self._unstarted} trials of the first rung to come: "
                "one that can run out needs a length"
            )
        self._unstarted -= 1
        return run

    def _take_up(self) -> Run | None:
        places = self._places
        trial = next((t for t in self._survivors if places is None or places.vacant(t)), None)
        if trial is None:
            return None
        self._survivors.remove(trial)
        slot = None if places is None else places.slot[trial]
        if not self._restart:
            return self._trials.resume(trial, slot)
        run = self._trials.again(trial, slot)
        self._first[run.trial] = self._first.get(trial, trial)
        if places is not None:
            places.slot[run.trial] = places.slot[trial]
        return run

    def tell(self, report: Report) -> dict[int, Decision]:
        """Answer for the reporter, and at the barrier for all who wait there."""
        rung, trial = self.rungs[self._at], report.trial
        if trial in self._scores:  # a person stopped it while it waited at the barrier: it had been counted
            del self._scores[trial]
            self._carry_out(trial, Verdict.STOP)
            return {trial: self._decision(Verdict.STOP, "failed", trial)}
        if trial in self._survivors:  # or on its way to the next rung
            self._survivors.remove(trial)
        if not report.failed and report.phase < rung.phases - 1:
            return {trial: self._decision(Verdict.CONTINUE, "rung", trial)}
        self._awaited -= 1
        if not report.failed:
            self._scores[trial] = -math.inf if math.isnan(report.score) else report.score
        decisions = {trial: self._at_the_end(report)}
        if self._awaited == 0 and self._at < len(self.rungs) - 1:
            decisions |= self._settle(trial)
        for number, decision in decisions.items():
            self._carry_out(number, decision.verdict)
        return decisions

    def _at_the_end(self, report: Report) -> Decision:
        """The reporter's verdict while others are missing."""
        reported = self._members - self._awaited
        if report.failed:
            return self._decision(Verdict.STOP, "failed", report.trial)
        if self._at == len(self.rungs) - 1:
            return self._decision(Verdict.STOP, "finished", report.trial)
        if self._restart:
            return self._decision(Verdict.STOP, "rung ended", report.trial, reported=reported)
        waits = Verdict.HOLD if self._hold else Verdict.PAUSE
        return self._decision(waits, "waiting", report.trial, reported=reported)

    def _settle(self, reporter: int) -> dict[int, Decision]:
        """Drop the worst, and open the next rung."""
        ranked = sorted(self._scores, key=lambda t: (-self._scores[t], self._first.get(t, t)))
        kept = min(self.rungs[self._at + 1].n_trials, len(ranked))
        decisions: dict[int, Decision] = {}
        for i, trial in enumerate(ranked):
            goes_on = Verdict.CONTINUE if self._hold or trial == reporter else Verdict.PAUSE
            verdict, mode = (goes_on, "promoted") if i < kept else (Verdict.STOP, "dropped")
            decisions[trial] = self._decision(verdict, mode, trial, place=i + 1, reported=len(ranked), kept=kept)
        self._at += 1
        self._members, self._awaited, self._scores = kept, kept, {}
        self._survivors.extend(t for t in ranked[:kept] if self._restart or decisions[t].verdict is Verdict.PAUSE)
        return {} if self._restart else decisions

    def _carry_out(self, trial: int, verdict: Verdict) -> None:
        """Keep the books on who runs, who waits, and which slots are taken."""
        if verdict is Verdict.STOP:
            self._trials.end(trial)
        elif verdict is Verdict.CONTINUE:
            self._trials.release(trial)
        else:
            self._trials.rest(trial)
        if self._places is not None and verdict in (Verdict.STOP, Verdict.PAUSE):
            self._places.leave(trial)

    def _decision(self, verdict: Verdict, mode: str, trial: int, **why: int) -> Decision:
        repeats = {"repeats": self._first[trial]} if trial in self._first else {}
        return Decision(verdict, {"mode": mode, **self._tag, "rung": self._at, **why, **repeats})


class _Places:
    """A static plan: each trial on one slot, each slot with an equal share of the trials."""

    def __init__(self, n_trials: int, n_nodes: int) -> None:
        self._room = [len(range(slot, n_trials, n_nodes)) for slot in range(n_nodes)]
        self._on: dict[int, int] = {}  # slot → trial on it
        self.slot: dict[int, int] = {}

    def bind(self, trial: int) -> int | None:
        """Bind a new trial to the first free slot that has room for one more; ``None`` if there is none."""
        slot = next((s for s, room in enumerate(self._room) if room and s not in self._on), None)
        if slot is not None:
            self._room[slot] -= 1
            self.slot[trial] = slot
        return slot

    def vacant(self, trial: int) -> bool:
        """Tell whether the trial's slot is free."""
        return self.slot[trial] not in self._on

    def enter(self, trial: int) -> None:
        """Note that a trial is on its slot."""
        self._on[self.slot[trial]] = trial

    def leave(self, trial: int) -> None:
        """Note that a trial is on its slot no more."""
        if self._on.get(self.slot[trial]) == trial:
            del self._on[self.slot[trial]]


def rung_words(reason: Mapping[str, Any]) -> str:
    """Put a rung's decision into words: Successive Halving's, Hyperband's and ASHA's.

    >>> rung_words({"mode": "dropped", "rung": 0, "place": 4, "reported": 9, "kept": 3, "bracket": 2})
    'dropped: place 4 of 9 in rung 0 of bracket 2, where 3 go on'
    """
    mode = str(reason.get("mode") or "")
    if "rung" not in reason:
        return reason_text(reason)
    where = " of ".join(f"{name} {reason[name]}" for name in ("rung", "bracket", "round") if name in reason)
    if mode == "rung":
        words = f"in a rung: not at the end of {where} yet"
    elif "place" in reason:
        words = f"{mode}: place {reason['place']} of {reason['reported']} in {where}"
        words += f", where {reason['kept']} go on" if "kept" in reason and mode != "finished" else ""
    elif "reported" in reason:
        words = f"{mode}: {reason['reported']} at the end of {where} so far"
    else:
        words = f"{mode}: {where}"
    return words + (f"; it repeats trial {reason['repeats']}" if "repeats" in reason else "")


def rung_ends(n_phases: int, eta: float, min_phases: int = 1) -> list[int]:
    """Phases at which rungs end: R, R/eta, R/eta², … down to `min_phases`, rounded down, in rising order."""
    ends = [float(n_phases)]
    while ends[-1] / eta >= min_phases - 1e-9:
        ends.append(ends[-1] / eta)
    return [int(end + 1e-9) for end in reversed(ends)]


def rungs_by_eta(n_trials: int, n_phases: int, eta: float, min_phases: int = 1) -> list[Rung]:
    """n_i = floor(n / eta^i) trials, one at least, at the phases of `rung_ends` (Hyperband, Li et al., 2018, Alg. 1).

    >>> [(r.n_trials, r.phases) for r in rungs_by_eta(27, 27, 3)]
    [(27, 1), (9, 3), (3, 9), (1, 27)]
    """
    ends = rung_ends(n_phases, eta, min_phases)
    return [Rung(max(1, int(n_trials / eta**i + 1e-9)), end) for i, end in enumerate(ends)]


def rungs_by_rate(n_trials: int, n_phases: int, eviction_rate: float) -> list[Rung]:
    """W_p = W0 (1-r)^p trials, rounded to the nearest and one at least, in every phase p (HyperTrick paper, Eq. 1).

    >>> [r.n_trials for r in rungs_by_rate(16, 4, 0.25)]
    [16, 12, 9, 7]
    """
    expected = [n_trials * (1 - eviction_rate) ** p for p in range(n_phases)]
    return [Rung(max(1, math.floor(n + 0.5)), p + 1) for p, n in enumerate(expected)]


def phases_in_all(rungs: Sequence[Rung], *, restart: bool) -> int:
    """Phases a bracket runs when nothing fails: survivors go on from where they were, or run every rung anew."""
    before = [0, *(rung.phases for rung in rungs[:-1])]
    return sum(rung.n_trials * (rung.phases - (0 if restart else b)) for rung, b in zip(rungs, before, strict=True))


def check_eta(scheduler: object, eta: float) -> None:
    """Raise `InvalidInput` unless eta >= 2: below, rungs would fall on the same phase."""
    if isinstance(eta, bool) or not isinstance(eta, (int, float)) or not 2 <= eta < math.inf:
        raise InvalidInput(f"{type(scheduler).__name__} needs a number eta >= 2, got {eta!r}: 3 is usual")


def check_nodes(scheduler: object, needed: int, n_nodes: int | None, allocation: str, restart: bool) -> None:
    """Raise `InvalidInput` if a plan without free preemption has not the nodes it needs."""
    name = f"{type(scheduler).__name__}(allocation={allocation!r})"
    if n_nodes is not None:
        check_size(scheduler, n_nodes=n_nodes)
    if allocation == "dynamic" or (allocation == "none" and restart):  # who restarts never waits
        return
    if n_nodes is None:
        raise InvalidInput(f"{name} needs to know the cluster: pass n_nodes, or allocation='dynamic'")
    if allocation == "none" and n_nodes < needed:
        raise InvalidInput(
            f"{name} needs {needed} nodes, the cluster has {n_nodes}: add workers or pass allocation='dynamic'"
        )
