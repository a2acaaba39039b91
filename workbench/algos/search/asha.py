"""ASHA: Successive Halving without barriers (Li et al., MLSys 2020, arXiv 1810.05934)."""

from bisect import bisect_left, insort
from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.algos.search.rungs import phases_in_all, rung_ends, rung_words, rungs_by_eta
from workbench.algos.search.searchers import Searched, searcher_of
from workbench.algos.search.trials import Trials, comparable
from workbench.core.checks import COUNT, SEED, check, check_named, whole
from workbench.core.protocols import Decision, Report, Run, Verdict
from workbench.core.rounding import floored
from workbench.core.seeds import scheduler_generator
from workbench.core.showing import settings_html

VARIANTS = ("promotion", "stopping")


@dataclass
class ASHA:
    """Promote a trial as soon as it is among the best of its rung so far, without waiting for the rung to fill.

    ``promotion`` (Algorithm 2): a trial that ends a rung is paused; a free node takes the best trial that is in the top
    1/eta of the highest rung that has such a trial and goes on with it, or else starts a new configuration.
    ``stopping``: a trial that ends a rung goes on if it is in the top 1/eta of those that ended it so far, the best
    of them always, and is stopped otherwise; it needs no preemption.

    The paper says nothing of equal scores. In ``promotion`` the earlier report ranks higher, and a rung's top 1/eta
    is as large as ever. In ``stopping`` a draw orders them: if the earlier ranked higher, nobody but the first would go
    on over a plateau, where all scores are equal.

    Parameters
    ----------
    searcher : Searcher, Space or dict of its dimensions
        Where configurations come from.
    n_trials : int
        Trials started in all.
    n_phases : int
        The paper's R: phases of a trial that passes every rung.
    eta : float
        Rungs lie a factor `eta` apart; 2 or more.
    min_phases : int
        Fewest phases of the first rung; it lies at R eta^-k for the largest k that allows it.
    variant : str
        ``promotion`` or ``stopping``.
    seed : int
        Of the generator that orders equal scores in ``stopping``.
    """

    searcher: Searched
    n_trials: int
    n_phases: int
    eta: float = 3
    min_phases: int = 1
    variant: str = "promotion"
    seed: int = 0
    _trials: Trials = field(init=False, repr=False, compare=False)
    _rungs: "list[_Rung]" = field(init=False, repr=False, compare=False)
    _rung_of: dict[int, int] = field(init=False, default_factory=dict, repr=False, compare=False)
    _paused: set[int] = field(init=False, default_factory=set, repr=False, compare=False)

    explain = staticmethod(rung_words)
    _repr_html_ = settings_html

    def __post_init__(self) -> None:
        check(self, SEED, "seed")
        self.searcher = searcher_of(self, self.searcher, self.seed)
        check(self, COUNT, "n_trials", "n_phases")
        check(self, whole(1, self.n_phases), "min_phases")
        check_named(self, "variant", VARIANTS)
        self._trials = Trials(self.searcher, self.n_trials)
        self.n_trials = self._trials.n_left
        self._rng = scheduler_generator(self.seed)
        self._rungs = [_Rung(end, self.eta) for end in rung_ends(self.n_phases, self.eta, self.min_phases)]

    @property
    def expected_phases(self) -> float:
        """As in Successive Halving over the same rungs, where `promotion` need not leave anybody for the last ones.

        Early trials are promoted more easily than that; how many more go on depends on the order of the scores.
        """
        fewest = int(self.variant == "stopping")
        rungs = rungs_by_eta(self.n_trials, self.n_phases, self.eta, self.min_phases, fewest)
        return phases_in_all(rungs, restart=False)

    def grow(self, n_trials: int) -> None:
        """Let there be more trials."""
        self.n_trials = self._trials.grow(n_trials)

    def ask(self) -> Run | None:
        """Go on with the best trial that may be promoted, or start a new configuration."""
        at = self._promotable()
        if at is None:
            return self._trials.new()
        trial = self._rungs[at].promote()
        self._paused.remove(trial)
        self._rung_of[trial] = at + 1
        return self._trials.resume(trial)

    def tell(self, report: Report) -> Mapping[int, Decision]:
        """Let the reporter run on inside its rung; at its end pause, promote or stop it."""
        self._trials.take(report)
        self._hear(report)
        trial, at = report.trial, self._rung_of.setdefault(report.trial, 0)
        rung = self._rungs[at]
        if report.failed:
            if trial in self._paused:  # a person stopped it while it waited
                self._paused.remove(trial)
                rung.drop(trial)
            else:
                rung.add_failed()
            return {trial: Decision(Verdict.STOP, {"mode": "failed"})} | self._close()
        if report.phase < rung.phases - 1:
            return {trial: Decision(Verdict.CONTINUE, {"mode": "rung", "rung": at})}
        stopping = self.variant == "stopping"
        place = rung.add(trial, comparable(report), float(self._rng.random()) if stopping else rung.n)
        why = {"rung": at, "place": place, "reported": rung.n, "kept": max(rung.n_top, int(stopping))}
        if rung.phases == self.n_phases:
            self._trials.end(trial)
            return {trial: Decision(Verdict.STOP, {"mode": "finished", **why})} | self._close()
        if stopping:
            return {trial: self._pass_or_stop(trial, at, why)}
        if self._promotable() == at and rung.best == trial:
            rung.promote()
            self._rung_of[trial] = at + 1
            return {trial: Decision(Verdict.CONTINUE, {"mode": "promoted", **why})}
        self._trials.rest(trial)
        self._paused.add(trial)
        return {trial: Decision(Verdict.PAUSE, {"mode": "waiting", **why})} | self._close()

    def _hear(self, report: Report) -> None:
        """What a variant with rungs of its own learns from a report, before it is judged."""

    def _pass_or_stop(self, trial: int, at: int, why: Mapping[str, int]) -> Decision:
        if why["place"] <= why["kept"]:
            self._rung_of[trial] = at + 1
            return Decision(Verdict.CONTINUE, {"mode": "promoted", **why})
        self._trials.end(trial)
        return Decision(Verdict.STOP, {"mode": "dropped", **why})

    def _promotable(self) -> int | None:
        """The highest rung below the last whose best waiting trial is in its top 1/eta."""
        if self.variant == "stopping":
            return None
        return next((at for at in range(len(self._rungs) - 2, -1, -1) if self._rungs[at].may_promote), None)

    def _close(self) -> dict[int, Decision]:
        """Stop all who wait once nothing can change their places any more."""
        if self._trials.n_running or self._promotable() is not None or self._trials.more_to_come:
            return {}
        for trial in self._paused:
            self._trials.end(trial)
        decisions = {
            trial: Decision(Verdict.STOP, {"mode": "dropped", "rung": self._rung_of[trial]})
            for trial in sorted(self._paused)
        }
        self._paused.clear()
        for rung in self._rungs:
            rung.close()
        return decisions


class _Rung:
    """The trials that have ended a rung, by score; equal scores stand in the order given with them, lowest first."""

    def __init__(self, phases: int, eta: float) -> None:
        self.phases = phases
        self._eta = eta
        self._keys: list[tuple[float, float]] = []  # (-score, order) of all, best first
        self._waiting: list[tuple[float, float, int]] = []  # the same and the trial, of those not promoted
        self.n = 0

    @property
    def n_top(self) -> int:
        """Trials that are the top 1/eta of those here so far."""
        return floored(self.n / self._eta)

    @property
    def best(self) -> int | None:
        """The best trial that waits."""
        return self._waiting[0][2] if self._waiting else None

    @property
    def may_promote(self) -> bool:
        """Whether the best trial that waits is in the top 1/eta."""
        return bool(self._waiting) and bisect_left(self._keys, self._waiting[0][:2]) < self.n_top

    def add(self, trial: int, score: float, order: float) -> int:
        """Let a trial arrive; return its place, 1 for the best."""
        key = (-score, order)
        self.n += 1
        insort(self._keys, key)
        insort(self._waiting, (*key, trial))
        return bisect_left(self._keys, key) + 1

    def add_failed(self) -> None:
        """Count a trial that failed on its way here: it ranks below all others and is never promoted."""
        self.n += 1

    def drop(self, trial: int) -> None:
        """Take out a trial that waits and was stopped: as one that failed, it still counts, below all others."""
        entry = next(entry for entry in self._waiting if entry[2] == trial)
        self._waiting.remove(entry)
        self._keys.remove(entry[:2])

    def promote(self) -> int:
        """Take out the best trial that waits."""
        return self._waiting.pop(0)[2]

    def close(self) -> None:
        """Take out all who wait; their scores stay, for others to be ranked with."""
        self._waiting.clear()
