"""Sure: stop by surrogate and common phases, then repeat the best with fresh seeds."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from workbench.algos.search.rungs import check_eta
from workbench.algos.search.searchers import Searched, searcher_of
from workbench.algos.search.surrogate import Indices, Surrogate
from workbench.algos.search.trials import Trials, comparable
from workbench.core.checks import COUNT, PART, SEED, check, check_each
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Decision, Report, Run, Verdict
from workbench.core.rounding import ceiled
from workbench.core.seeds import scheduler_generator
from workbench.core.showing import reason_text, settings_html

MOST = 1000
"""Configurations; the surrogate holds each against each."""


@dataclass
class Sure:
    """Stop early by what a surrogate makes of noisy scores, then run the best again with fresh seeds.

    Asynchronous and without preemption, as HyperTrick is; everything else follows from the scores of reinforcement
    learning being noisy.

    - **Smoothed**: a trial's score is the mean of its last evaluations.
    - **Compared where both have been**: two trials meet at the last phase that both reported, so every trial is held
      against all that have reported, not against those of its rung.
    - **Estimated**: the shares of the others that each beats feed a Gaussian process over the hyperparameters, which
      moves a lucky score towards those of its neighbours (`Surrogate`). It also says which of the configurations
      still to come to start next: the one with the highest mean plus one standard deviation.
    - **Stopped** is a reporter whose estimate is not among the best 1/eta of those that have reported, once a tenth of
      the phases is over; not among the best 1/eta² once three tenths are. As many as there are finalists always stay.
    - **Repeated**: when all have been started, the best few are run again with other seeds, each once it has ended, and
      the mean over seeds decides. Those whose first trials still run are ranked among them: who ends first waits.

    To recommend where early scores tell; where the best rise last it stops them (`docs/comparisons.md` has both kinds).
    Where training diverged, or failed, the configuration ranks below all others. The searcher is asked for all
    configurations before the first report: one that learns is better used with another scheduler.

    Parameters
    ----------
    searcher : Searcher, Space or dict of its dimensions
        Where configurations come from.
    n_configs : int
        Configurations started in all, at most `MOST`.
    n_phases : int
        Phases of a trial that is never stopped.
    eta : float
        From rung to rung, the best 1/eta go on; 2 or more.
    rungs : sequence of float
        After which shares of the phases the next rung begins, rounded.
    smooth : float
        Share of the phases that a score is the mean of, rounded.
    finalists, seeds : int
        The best so many are run with so many seeds each; ``seeds=1`` repeats nothing.
    warmup : int
        Configurations started in the searcher's order, and judged by the shares alone, before the surrogate is asked.
    seed : int
        Of the draw that orders equal estimates.
    """

    searcher: Searched
    n_configs: int
    n_phases: int
    eta: float = 3
    rungs: Sequence[float] = (0.1, 0.3)
    smooth: float = 0.5
    finalists: int = 4
    seeds: int = 4
    warmup: int = 16
    seed: int = 0
    _trials: Trials = field(init=False, repr=False, compare=False)
    _candidates: "list[_Candidate]" = field(init=False, default_factory=list, repr=False, compare=False)
    _candidate_of: "dict[int, _Candidate]" = field(init=False, default_factory=dict, repr=False, compare=False)

    trials_in_reasons = ("leader", "repeats")
    _repr_html_ = settings_html

    def __post_init__(self) -> None:
        check(self, SEED, "seed")
        self.searcher = searcher_of(self, self.searcher, self.seed)
        check(self, COUNT, "n_configs", "n_phases")
        check(self, COUNT, "finalists", "seeds", "warmup")
        if self.n_configs > MOST:
            raise InvalidInput(f"Sure holds each configuration against each, {MOST} at most, got {self.n_configs}")
        check_eta(self.eta)
        check(self, PART, "smooth")
        check_each(self, PART, "rungs")
        if list(self.rungs) != sorted(self.rungs):
            raise InvalidInput(f"Sure needs rungs one after the other, got {self.rungs}: try (0.1, 0.3)")
        self._ends = [max(1, round(share * self.n_phases)) for share in self.rungs]
        self._window = max(1, round(self.smooth * self.n_phases))
        self._trials = Trials(self.searcher, self.n_configs)
        self.n_configs = self._trials.n_left
        self._orders = scheduler_generator(self.seed).random(self.n_configs)  # of equals: a plateau would stop none
        self._means = np.zeros(self.n_configs)
        self._surrogate: Surrogate | None = None  # until the first is asked for
        self._unstarted: list[int] = []
        self._under_way: list[int] = []  # whose first trial runs
        self._n_left = self.n_configs  # that have not been stopped early
        self._ended: list[_Candidate] = []  # with a trial that ran to its end

    @property
    def n_trials(self) -> int:
        """Most trials there can be: configurations, and repetitions of the finalists."""
        return self.n_configs + self._most_repeats

    @property
    def expected_phases(self) -> float:
        """As many as halving at these rungs would run, down to the finalists, and the repetitions."""
        ends, left = [0, *self._ends, self.n_phases], min(self.finalists, self.n_configs)
        kept = [max(self._kept(end, self.n_configs), left) for end in ends[:-1]]
        return float(sum(np.diff(ends) * kept) + self._most_repeats * self.n_phases)

    @property
    def _most_repeats(self) -> int:
        return min(self.finalists, self.n_configs) * (self.seeds - 1)

    @staticmethod
    def explain(reason: Mapping[str, Any]) -> str:
        """Put a reason into words: where the trial's estimate stands, and how many go on.

        >>> Sure.explain({"mode": "dropped", "place": 15, "reported": 40, "kept": 14, "leader": 3})
        'dropped: place 15 of 40, the first 14 go on; trial 3 leads'
        >>> Sure.explain({"mode": "repeating", "repeats": 3})
        'repeating: the configuration of trial 3, with another seed'
        """
        mode = reason.get("mode")
        if mode in ("dropped", "promoted"):
            return "{mode}: place {place} of {reported}, the first {kept} go on; trial {leader} leads".format(**reason)
        if mode == "left":
            return "left: place {place} of {reported}, but no more than the finalists are left".format(**reason)
        if mode == "repeating":
            return f"repeating: the configuration of trial {reason['repeats']}, with another seed"
        return reason_text(reason)

    def leader(self) -> int | None:
        """Name a trial of the configuration to take as things stand; ``None`` before the first report.

        While configurations are left to start it is the one with the best estimate, from then on the one whose ended
        trials have the best mean score; when no repetition runs, of those with at least half of the most seeds, for the
        best of many single seeds is a lucky one.
        """
        if self._ended and not self._unstarted:
            over = all(len(c.finals) == len(c.trials) for c in self._ended)
            most = max(len(c.finals) for c in self._ended) if over else 1
            return next(c for c in self._ended if 2 * len(c.finals) >= most).trials[0]
        if self._surrogate is None or not self._surrogate.n_seen:
            return None
        seen = self._surrogate.seen
        return self._candidates[int(seen[self._means[seen].argmax()])].trials[0]

    def ask(self) -> Run | None:
        """Start the most promising configuration; when none is left, repeat the best with another seed."""
        if self._surrogate is None:
            while self._trials.draw() is not None:
                self._candidates.append(_Candidate(len(self._candidates)))
            self._surrogate = Surrogate(self._trials.drawn, self.n_phases)
            self._unstarted = list(range(len(self._candidates)))
        if self._unstarted:
            number = self._most_promising(self._surrogate)
            self._unstarted.remove(number)
            self._under_way.append(number)
            return self._note(self._candidates[number], self._trials.begin(number))
        finalists = [c for c in self._finalists() if len(c.trials) < self.seeds]
        if not finalists or len(self._trials) >= self.n_trials:
            return None
        candidate = min(finalists, key=lambda c: len(c.trials))
        first = candidate.trials[0]
        return self._note(candidate, replace(self._trials.again(first), candidate=first))

    def tell(self, report: Report) -> Mapping[int, Decision]:
        """Stop the reporter unless its estimate is among the best; a repetition runs to its end."""
        self._trials.take(report)
        candidate = self._candidate_of[report.trial]
        assert self._surrogate is not None  # somebody was asked for
        self._take(candidate, report, self._surrogate)
        decision = self._judge(candidate, report, self._surrogate.seen)
        if decision.verdict is Verdict.STOP:
            self._trials.end(report.trial)
            if report.trial == candidate.trials[0]:
                self._under_way.remove(candidate.number)
                self._n_left -= decision.reason["mode"] != "finished"
        return {report.trial: decision}

    def _most_promising(self, surrogate: Surrogate) -> int:
        if surrogate.n_seen < self.warmup:
            return self._unstarted[0]
        hopes = self._means[self._unstarted] + surrogate.spreads(self._unstarted)
        return self._unstarted[int(hopes.argmax())]

    def _finalists(self) -> "list[_Candidate]":
        """Give the ended ones that would be among the best few if nothing changed until all first trials have ended."""
        under_way, best = self._means[self._under_way], enumerate(self._ended[: self.finalists])
        return [c for n, c in best if n + np.count_nonzero(under_way > self._means[c.number]) < self.finalists]

    def _note(self, candidate: "_Candidate", run: Run) -> Run:
        candidate.trials.append(run.trial)
        self._candidate_of[run.trial] = candidate
        return run

    def _take(self, candidate: "_Candidate", report: Report, surrogate: Surrogate) -> None:
        """Add a report to its candidate's scores, and estimate anew."""
        scores = candidate.scores.setdefault(report.trial, [])
        scores.append(comparable(report))
        smoothed = float(np.mean(scores[-self._window :]))
        if report.phase == self.n_phases - 1 and not report.failed:
            if not candidate.finals:
                self._ended.append(candidate)
            candidate.finals.append(smoothed)
        elif report.failed and report.trial != candidate.trials[0]:
            candidate.finals.append(-math.inf)
        if candidate.finals:
            self._ended.sort(key=lambda c: -sum(c.finals) / len(c.finals))
        if report.trial == candidate.trials[0]:
            surrogate.see(candidate.number, report.phase, smoothed)
            if surrogate.n_seen < self.warmup:
                self._means[surrogate.seen] = surrogate.shares()
            else:
                self._means = surrogate.means()

    def _judge(self, candidate: "_Candidate", report: Report, seen: Indices) -> Decision:
        leader = {"leader": self.leader()}
        if report.failed:
            return Decision(Verdict.STOP, {"mode": "failed", **leader})
        if report.phase == self.n_phases - 1:
            return Decision(Verdict.STOP, {"mode": "finished", **leader})
        if report.trial != candidate.trials[0]:
            return Decision(Verdict.CONTINUE, {"mode": "repeating", "repeats": candidate.trials[0], **leader})
        mean, order = self._means[candidate.number], self._orders[candidate.number]
        ahead = (self._means[seen] > mean) | ((self._means[seen] == mean) & (self._orders[seen] > order))
        place, kept = int(np.count_nonzero(ahead)) + 1, self._kept(report.phase + 1, len(seen))
        why = {"place": place, "reported": len(seen), "kept": kept, **leader}
        if place <= kept:
            return Decision(Verdict.CONTINUE, {"mode": "promoted", **why})
        if self._n_left <= self.finalists:
            return Decision(Verdict.CONTINUE, {"mode": "left", **why})
        return Decision(Verdict.STOP, {"mode": "dropped", **why})

    def _kept(self, phases: int, n: int) -> int:
        """How many of `n` configurations go on after so many phases, one at least."""
        rung = sum(end <= phases for end in self._ends)
        return max(1, ceiled(n / self.eta**rung))


@dataclass(eq=False)
class _Candidate:
    """A configuration and its trials: the first, which others are compared with, and its repetitions."""

    number: int  # in the order of drawing
    trials: list[int] = field(default_factory=list)
    scores: dict[int, list[float]] = field(default_factory=dict)  # of each trial, phase by phase
    finals: list[float] = field(default_factory=list)  # of the trials that ended, smoothed
