"""Population Based Training (Jaderberg et al., arXiv 1711.09846)."""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.algos.search.searchers import Searched, searcher_of
from workbench.algos.search.trials import Trials, comparable
from workbench.core.checks import COUNT, FROM_ZERO, PART, POSITIVE, SEED, TRUTH, check, check_each, check_named, whole
from workbench.core.errors import InvalidInput, SchedulerError
from workbench.core.protocols import Config, Decision, Report, Run, Verdict
from workbench.core.rounding import floored
from workbench.core.seeds import scheduler_generator
from workbench.core.showing import reason_text, settings_html
from workbench.core.space import Space, space_of

EXPLOITS = ("truncation", "t-test", "tournament", "none")


@dataclass
class PBT:
    """Train a population; after each phase a weak member copies a strong one and changes its hyperparameters.

    A config never changes under a trial: the loser's trial is stopped, and the member goes on as a new trial whose
    parent is the donor's and whose first phase is the member's next one. The log thus holds every lineage. Members are
    judged asynchronously, each against the latest scores of the others (Algorithm 1). The paper evaluates a copy at
    once; here its first phase does: until it has reported, none is held against it and none copies it. With its
    donor's score it would hand on for ever a lucky one that no weights came to again. As many copy as in the paper's
    algorithm where scores rise or differences between members last; where they are noise alone, up to twice as many.

    The paper says nothing of equal scores. The latest copy ranks higher, then the lower number: on a plateau, where all
    are equal, ``truncation`` copies at its usual rate, in turns; ``t-test`` and ``tournament`` copy nobody.

    Where there are fewer nodes than members, members take turns: one that ends a phase is paused while another waits
    that is behind it. A copy is made when the member goes on: where its donor went on meanwhile, of the newer weights.

    Parameters
    ----------
    searcher : Searcher, Space or dict of its dimensions
        Where the first configurations come from.
    population : int
        Members; the paper takes 10 to 80 and advises 20 or more.
    n_phases : int
        Phases of every member; each ends with exploit and explore, the last excepted. The paper's `ready`.
    exploit : str
        ``truncation``: a member in the bottom `share` copies one drawn from the top `share`. ``t-test``: it copies a
        member drawn at random if that one's mean is higher and Welch's t-test rejects equality at `level`.
        ``tournament``: it copies a member drawn at random if that one's score is higher. ``none``: nobody copies; the
        ablation "explore only". Whatever the rule, a member whose score is not a number is the weakest, and copies.
    explore : bool
        Change the hyperparameters; false is the ablation "exploit only".
    share : float
        Of those whose score is of their own weights, for ``truncation``; at most a half. At least one member once all
        have reported.
    level : float
        Of the t-test.
    last_scores : int
        Of each member, what the t-test compares: its last 10 *episode returns*, as in the paper, where reports carry
        them (`Measured`), a copy inheriting its donor's. Where either of two members has fewer than two, it is the
        scores of so many last phases of the weights' own history: they hold the progress made meanwhile, which widens
        their spread and makes the test more cautious than the paper's.
    factors : sequence of float
        Each hyperparameter is multiplied by one of them, drawn at random; in the paper 0.8 and 1.2, for GANs 0.5 and 2.
    noise : float
        Above 0, each hyperparameter is instead moved by Gaussian noise of this standard deviation, in shares of its
        domain (see `Space.shift`). A product leaves a 0 without a step where it is; this does not.
    resample : float
        Probability for each hyperparameter to be drawn anew from the space instead.
    copy_config : bool
        Copy weights and hyperparameters; false copies the weights alone, and the member changes its own
        hyperparameters, as in the paper's toy problem (Fig. 2).
    copy_weights : bool
        False copies the hyperparameters alone, and the member goes on with its own weights (Fig. 5c).
    burn_in : int
        First phases of every member after which nobody copies or changes: early scores tell little.
    space : Space, optional
        What hyperparameters may become; the searcher's, if it has one.
    seed : int
        Of the generator of all draws but the first configurations.
    """

    searcher: Searched
    population: int
    n_phases: int
    exploit: str = "truncation"
    explore: bool = True
    share: float = 0.2
    level: float = 0.05
    last_scores: int = 10
    factors: Sequence[float] = (0.8, 1.2)
    noise: float = 0.0
    resample: float = 0.0
    copy_config: bool = True
    copy_weights: bool = True
    burn_in: int = 0
    space: Space | None = None
    seed: int = 0
    _trials: Trials = field(init=False, repr=False, compare=False)
    _members: "list[Member]" = field(init=False, repr=False, compare=False)
    _member_of: "dict[int, Member]" = field(init=False, default_factory=dict, repr=False, compare=False)
    _waiting: "list[Member]" = field(init=False, repr=False, compare=False)  # for a node, the longest first
    _past: dict[int, tuple[list[float], list[float]]] = field(
        init=False, default_factory=dict, repr=False, compare=False
    )  # trial → the last scores and returns of the weights that it trained

    trials_in_reasons = ("donor", "config_of")
    _repr_html_ = settings_html

    def __post_init__(self) -> None:
        check(self, SEED, "seed")
        self.searcher = searcher_of(self, self.searcher, self.seed)
        check(self, COUNT, "population", "n_phases", "last_scores")
        check(self, TRUTH, "explore", "copy_config", "copy_weights")
        check(self, FROM_ZERO, "burn_in")
        check_named(self, "exploit", EXPLOITS)
        if self.exploit == "t-test":
            check(self, whole(2), "last_scores")  # of one there is no spread, and nobody would ever copy
        check(self, PART, "share", "level", "resample", "noise")
        if not 0 < self.share <= 0.5:
            raise InvalidInput(f"PBT needs 0 < share <= 0.5, got {self.share}: top and bottom may not overlap")
        if not (self.copy_config or self.copy_weights):
            raise InvalidInput("PBT copies weights, hyperparameters or both: for neither, set exploit='none'")
        self.space = None if self.space is None else Space.of(self.space)
        space = space_of(self)
        if space is None:
            raise InvalidInput("PBT changes hyperparameters within a space, and this searcher has none: pass space=…")
        check_each(self, POSITIVE, "factors")
        if not self.factors:
            raise InvalidInput("PBT needs one or more positive factors, got none: try (0.8, 1.2)")
        self._space: Space = space
        self._rng = scheduler_generator(self.seed)
        self._trials = Trials(self.searcher, self.population)
        self._members = [Member(i) for i in range(self._trials.n_left)]
        self._waiting = list(self._members)

    @property
    def moves_weights(self) -> bool:
        """Whether weights go on under other hyperparameters than they were trained with."""
        return self.explore or (self.exploit != "none" and not (self.copy_config and self.copy_weights))

    @property
    def n_trials(self) -> int:
        """Most trials there can be: a new one for every member and phase."""
        return len(self._members) * self.n_phases

    @property
    def expected_phases(self) -> float:
        """All phases of all members; fewer only if trials fail."""
        return len(self._members) * self.n_phases

    @staticmethod
    def explain(reason: Mapping[str, Any]) -> str:
        """Put a reason into words: where the member stands, and whom it copies.

        >>> PBT.explain({"mode": "exploited", "place": 9, "reported": 10, "member": 3, "donor": 7})
        'exploited: member 3, place 9 of 10, copies trial 7'
        """
        mode = str(reason.get("mode") or "")
        if "donor" not in reason and "place" not in reason:
            return reason_text(reason)
        parts = [f"member {reason['member']}"] if "member" in reason else []
        parts += [f"place {reason['place']} of {reason['reported']}"] if "place" in reason else []
        parts += [f"p = {reason['p_value']:.3g}"] if "p_value" in reason else []
        if mode == "explored":
            parts.append("goes on with other hyperparameters")
        elif "config_of" in reason:
            parts.append(f"copies the hyperparameters of trial {reason['config_of']}")
        elif "donor" in reason:
            parts.append(f"copies trial {reason['donor']}")
        return f"{mode}: {', '.join(parts)}"

    def ask(self) -> Run | None:
        """Take up the member that is furthest behind; among equals the one that has waited longest."""
        if not self._waiting:
            return None
        member = min(self._waiting, key=lambda waiting: waiting.phase)
        self._waiting.remove(member)
        if member.heir is not None:
            run = self._trials.child(*member.heir, member.phase)
            member.scores, member.returns = self._past[member.heir[1]]
            member.heir, member.since = None, member.phase
        elif member.trial is not None:
            run = self._trials.resume(member.trial)
        elif (first := self._trials.new()) is not None:
            run = first
            self._space.validate(run.config)
        else:
            raise SchedulerError(
                f"the searcher ran out before all {len(self._members)} members had begun: "
                "one that can run out needs a length"
            )
        member.trial = run.trial
        self._member_of[run.trial] = member
        return run

    def tell(self, report: Report) -> Mapping[int, Decision]:
        """Judge the reporter against the population as it stands."""
        self._trials.take(report)
        member = self._member_of[report.trial]
        member.phase = report.phase + 1
        if report.failed:
            return {report.trial: self._replace_failed(member)}
        score = comparable(report)
        member.scores = [*member.scores, score][-max(self.last_scores, 2) :]  # a rise takes two
        member.returns = [*member.returns, *report.returns][-self.last_scores :]
        member.weights = report.trial
        self._past[report.trial] = member.scores, member.returns
        self._learn(member)
        if member.phase == self.n_phases:
            self._trials.end(report.trial)
            return {report.trial: Decision(Verdict.STOP, {"mode": "finished"})}
        if not self._ready(member):
            return {report.trial: self._go_on(member, {"mode": "not ready"})}
        donor, why = self._donor(member)
        if donor is not None:
            decision = self._copy(member, donor, {"mode": "exploited", **why})
        elif self.exploit == "none" and self.explore:
            decision = self._copy(member, member, {"mode": "explored"})
        else:
            decision = self._go_on(member, {"mode": "kept", **why})
        return {report.trial: decision}

    def _learn(self, member: "Member") -> None:
        """What a variant that models progress learns from a member's latest score."""

    def _ready(self, member: "Member") -> bool:
        """The paper's `ready`: whether a member may copy and change after the phase it has ended."""
        return member.phase > self.burn_in

    def _go_on(self, member: "Member", why: Mapping[str, Any]) -> Decision:
        """Continue, unless a member that is behind waits for a node."""
        if all(waiting.phase >= member.phase for waiting in self._waiting):
            return Decision(Verdict.CONTINUE, why)
        assert member.trial is not None  # it has just reported
        self._trials.rest(member.trial)
        self._waiting.append(member)
        return Decision(Verdict.PAUSE, why)

    def _copy(self, member: "Member", donor: "Member", why: Mapping[str, Any]) -> Decision:
        """Stop the member's trial; it goes on with the donor's weights under a config of its own."""
        assert member.trial is not None
        assert donor.weights is not None  # it has reported
        config = self._trials.configs[donor.weights if self._takes_config(member, donor) else member.trial]
        self._trials.end(member.trial)
        why = {**why, "member": member.index}
        source = donor
        if not self.copy_weights and member.weights is not None:  # one that failed at once has none of its own
            source, why["config_of"] = member, donor.weights
        assert source.weights is not None
        member.scores, member.returns = self._past[source.weights]
        member.weights = source.weights
        member.heir = (self._changed(member, config) if self.explore else config, source.weights)
        self._waiting.append(member)
        return Decision(Verdict.STOP, {**why, "donor": source.weights})

    def _takes_config(self, member: "Member", donor: "Member") -> bool:
        """Whether a member copies hyperparameters with the weights."""
        return self.copy_config

    def _replace_failed(self, member: "Member") -> Decision:
        """A failed member counts as the worst; it loses the phase, and copies one of the top."""
        self._waiting = [other for other in self._waiting if other is not member]  # a person may stop who waits
        saviours = self._saviours(member)
        ranked = [other for other in saviours if self._measured(other)] or saviours
        top = ranked[: max(1, floored(self.share * len(ranked)))]
        if not top or self.exploit == "none" or member.phase >= self.n_phases:
            member.over, member.scores, member.returns = True, [], []
            return Decision(Verdict.STOP, {"mode": "failed", "member": member.index})
        return self._copy(member, _one_of(top, self._rng), {"mode": "failed"})

    # -- exploit and explore -----------------------------------------------------------------------------------

    def _rivals(self, member: "Member") -> "list[Member]":
        """Those a member is judged with, itself among them: all."""
        return self._members

    def _measured(self, member: "Member") -> bool:
        """Whether its score is that of its weights, and not of those that it is yet to train."""
        trained = member.weights == member.trial and member.heir is None
        return bool(member.scores) and (trained or not self.copy_weights)

    def _saviours(self, member: "Member") -> "list[Member]":
        """Whom one that has lost its weights or its score may copy, best first: rivals; all if none has a score."""
        rivals = self._rivals(member)
        healthy = any(m is not member and self._measured(m) and m.scores[-1] != -math.inf for m in rivals)
        others = [m for m in (rivals if healthy else self._members) if m is not member and m.scores]
        kept = not self.copy_weights and member.weights is not None  # its own weights, and only the rest is copied
        return _best_first([m for m in others if not kept or self._takes_config(member, m)])

    def _donor(self, member: "Member") -> "tuple[Member | None, dict[str, Any]]":
        """Whom to copy, if anybody, and why."""
        ranked = _best_first([rival for rival in self._rivals(member) if self._measured(rival)])
        why = {"place": ranked.index(member) + 1, "reported": len(ranked)}
        if self.exploit == "none":
            return None, why
        n_top = self._n_top(member, len(ranked))
        if member.scores[-1] == -math.inf:  # it has lost its score, and copies whatever the rule
            saviours = [m for m in self._saviours(member) if self._measured(m) and m.scores[-1] != -math.inf]
            if self.exploit == "truncation":
                saviours = saviours[: max(n_top, 1)]
            return (_one_of(saviours, self._rng) if saviours else None), why
        if len(ranked) == 1:
            return None, why
        if self.exploit == "truncation":
            bottom = ranked[len(ranked) - n_top :]
            return (_one_of(ranked[:n_top], self._rng) if member in bottom else None), why
        other = _one_of([m for m in ranked if m is not member], self._rng)
        if self.exploit == "tournament":
            return (other if other.scores[-1] > member.scores[-1] else None), why
        p = _p_value(other, member)
        return (other if p is not None and p < self.level else None), why if p is None else {**why, "p_value": p}

    def _n_top(self, member: "Member", n_ranked: int) -> int:
        """How many of those ranked are the top, and the bottom: a share, one at least once all have reported."""
        n = floored(self.share * n_ranked)
        all_reported = all(rival.scores or rival.over for rival in self._rivals(member))
        return min(max(n, 1) if all_reported else n, n_ranked // 2)

    def _changed(self, member: "Member", config: Config) -> Config:
        """Perturb every hyperparameter, or draw it anew (Sec. 4.1.1)."""
        if self.noise:
            changed = self._space.shift(config, self.noise, self._rng)
        else:
            changed = self._space.perturb(config, self.factors, self._rng)
        return self._space.redraw(changed, self.resample, self._rng) if self.resample else changed


@dataclass(eq=False)
class Member:
    index: int
    trial: int | None = None  # the one it runs, or ran last
    phase: int = 0  # next to run
    scores: list[float] = field(default_factory=list)  # of its weights' history, the last few
    returns: list[float] = field(default_factory=list)  # of its weights' last episodes, if they are reported
    weights: int | None = None  # trial whose last checkpoint holds its weights
    heir: tuple[Config, int] | None = None  # config and parent of the trial it goes on as
    since: int = 0  # the phase in which the trial that it runs began
    over: bool = False  # failed, and not replaced


def _best_first(members: list[Member]) -> list[Member]:
    """Sort by score; of equal ones the latest copy comes first, then the lower number."""
    return sorted(members, key=lambda member: (-member.scores[-1], -member.since, member.index))


def _p_value(other: Member, member: Member) -> float | None:
    """Of Welch's t-test (Biometrika 34, 1947); ``None``: too little to test, or no higher a mean."""
    from scipy.stats import ttest_ind  # takes most of a second to import

    a, b = other.returns, member.returns
    if min(len(a), len(b)) < 2:
        a, b = ([s for s in m.scores if math.isfinite(s)] for m in (other, member))
    if min(len(a), len(b)) < 2 or np.mean(a) <= np.mean(b):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # neither varies: p is 0, as it should be
        return float(ttest_ind(a, b, equal_var=False).pvalue)


def _one_of(members: list[Member], rng: np.random.Generator) -> Member:
    return members[int(rng.integers(len(members)))]
