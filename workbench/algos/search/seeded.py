"""Several seeds for each configuration, judged together, under any scheduler."""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from workbench.core.answers import check_scheduler
from workbench.core.checks import COUNT, check, check_named
from workbench.core.errors import InvalidInput, SchedulerError
from workbench.core.ledger import FOR_SEEDS
from workbench.core.protocols import (
    Config,
    Decision,
    Expectation,
    Explain,
    Report,
    Run,
    Scheduler,
    Verdict,
    expectation_of,
)
from workbench.core.seeds import JUDGES
from workbench.core.showing import reason_text, settings_html
from workbench.core.size import full_runs


@dataclass
class Seeded:
    """Run every configuration with several seeds; `scheduler` judges what they come to together.

    To `scheduler` a configuration is one trial, a *candidate*; in the study it is `seeds` trials, which differ in their
    seed alone. When the last of them has ended a phase, their scores are joined into one report, and the verdict is
    for all. Until then those that ended it earlier are paused, each with its checkpoint, and their slots go to others:
    a candidate's trials meet only among themselves, and no slot waits.

    A trial that fails is judged no more; the candidate goes on with the others, and fails with the last of them.

    Parameters
    ----------
    scheduler : Scheduler
        Of candidates. One that binds trials to slots is refused when it asks for such a trial.
    seeds : int
        Trials of each candidate.
    judged_by : {"mean", "median", "iqm"}
        What joins their scores; ``iqm`` is the mean of the middle half (Agarwal et al., NeurIPS 2021).
    """

    scheduler: Scheduler
    seeds: int = 3
    judged_by: str = "mean"
    _candidates: "list[_Candidate]" = field(init=False, default_factory=list, repr=False, compare=False)
    _candidate_of: "dict[int, _Candidate]" = field(init=False, default_factory=dict, repr=False, compare=False)
    _due: "deque[_Due]" = field(init=False, default_factory=deque, repr=False, compare=False)  # to ask for, in order

    _repr_html_ = settings_html

    def __post_init__(self) -> None:
        check_scheduler(self.scheduler)
        check(self, COUNT, "seeds")
        check_named(self, "judged_by", tuple(JUDGES))

    @property
    def n_phases(self) -> int:
        """Those of a candidate."""
        return self.scheduler.n_phases

    @property
    def n_trials(self) -> int:
        """Trials of all candidates."""
        return self.scheduler.n_trials * self.seeds

    @property
    def n_configs(self) -> int:
        """Runs to the end that a completion rate of 1 stands for."""
        return full_runs(self.scheduler) * self.seeds

    @property
    def expected_phases(self) -> float:
        """Phases expected of all candidates' trials."""
        return self.scheduler.expected_phases * self.seeds

    @property
    def scores_in_reasons(self) -> tuple[str, ...]:
        """Those of the candidates' scheduler."""
        return tuple(getattr(self.scheduler, "scores_in_reasons", ()))

    def expectation(self) -> Expectation | None:
        """Say how many trials begin each phase: as many times more as there are seeds."""
        of_candidates = expectation_of(self.scheduler)
        if of_candidates is None:
            return None
        return Expectation(
            began=[n * self.seeds for n in of_candidates.began],
            fewest=[n * self.seeds for n in of_candidates.fewest],
        )

    @staticmethod
    def explain(reason: Mapping[str, Any], words: Explain = reason_text) -> str:
        """Put a reason into words, those of the candidates' scheduler where it judged.

        >>> Seeded.explain({"mode": "seeds", "reported": 2, "seeds": 3, "candidate": 0})
        'seeds: 2 of 3 have ended this phase of candidate 0'
        """
        if reason.get("mode") == FOR_SEEDS:
            return "{mode}: {reported} of {seeds} have ended this phase of candidate {candidate}".format(**reason)
        return words({key: value for key, value in reason.items() if key != "candidate"})

    def ask(self) -> Run | None:
        """Name a trial of a candidate that has begun, or begin the next candidate."""
        if not self._due and (run := self.scheduler.ask()) is not None:
            self._take_in(run)
        if not self._due:
            return None
        due = self._due.popleft()
        return due.candidate.resume(due.trial) if due.trial is not None else self._start(due.candidate, due.parent)

    def tell(self, report: Report) -> Mapping[int, Decision]:
        """Join the report to those of its candidate; the last one of a phase settles it for all."""
        candidate = self._take(report)
        number = candidate.logged_as
        answers: dict[int, Decision] = {}
        failed: dict[str, Any] = {"mode": "failed", "candidate": number}
        if candidate.settled:
            last = candidate.n_alive == 0
            for judged, decision in self.scheduler.tell(candidate.joined(JUDGES[self.judged_by], self.seeds)).items():
                answers |= self._carry_out(self._candidates[judged], decision, report.trial)
                if last and judged == candidate.inner:  # the candidate's reason is that of its last trial
                    failed = {**self._of_trial(0, decision.reason), **failed}
        if report.failed:
            answers[report.trial] = Decision(Verdict.STOP, failed)
        elif report.trial not in answers:
            why = {
                "mode": FOR_SEEDS,
                "reported": len(candidate.reports),
                "seeds": candidate.n_alive,
                "candidate": number,
            }
            answers[report.trial] = Decision(Verdict.PAUSE, why)
        return answers

    def _take(self, report: Report) -> "_Candidate":
        """Accept a report, or raise `SchedulerError` if its trial is unknown, over, or in another phase."""
        candidate, trial = self._candidate_of.get(report.trial), report.trial
        if candidate is None or not candidate.expects(report):
            where = "is not running" if candidate is None else candidate.standing(trial)
            raise SchedulerError(f"a report of trial {trial}, phase {report.phase}, came, but that trial {where}")
        if report.failed:
            self._due = deque(due for due in self._due if due.trial != trial)
        candidate.take(report)
        return candidate

    def _take_in(self, run: Run) -> None:
        """Line up the trials of a candidate that its scheduler wants on a slot."""
        if run.slot is not None:
            raise InvalidInput(
                f"{type(self.scheduler).__name__} binds trials to slots, which several seeds of a configuration cannot "
                "share: leave out seeds, or choose an allocation that binds none"
            )
        if run.parent == run.trial:
            self._line_up(self._candidates[run.trial])
            return
        logged_as = run.trial if run.candidate is None else run.candidate
        candidate = _Candidate(run.trial, logged_as, run.config, run.phase, int(self.seeds))
        self._candidates.append(candidate)
        parents = [None] * self.seeds if run.parent is None else self._candidates[run.parent].donors(self.seeds)
        self._due.extend(_Due(candidate, None, parent) for parent in parents)

    def _line_up(self, candidate: "_Candidate", but: int | None = None) -> None:
        """Let a candidate begin its next phase: all its trials wait to be asked for, save one that keeps its slot."""
        candidate.begin_next()
        self._due.extend(_Due(candidate, trial) for trial in candidate.alive if trial != but)

    def _start(self, candidate: "_Candidate", parent: int | None) -> Run:
        trial = len(self._candidate_of)
        self._candidate_of[trial] = candidate
        candidate.start(trial)
        return Run(trial, candidate.config, parent, candidate.phase, candidate=candidate.logged_as)

    def _carry_out(self, candidate: "_Candidate", decision: Decision, reporter: int) -> dict[int, Decision]:
        """Apply a verdict on a candidate to its trials: the reporter may keep its slot, the others are paused."""
        verdict, trials = decision.verdict, list(candidate.alive)
        told = {
            trial: Decision(verdict, {**self._of_trial(i, decision.reason), "candidate": candidate.logged_as})
            for i, trial in enumerate(trials)
        }
        if verdict is Verdict.CONTINUE:
            self._line_up(candidate, but=reporter)
            if reporter not in trials:
                return {}
            candidate.running.add(reporter)
            return {reporter: told[reporter]}
        if verdict is Verdict.STOP:
            candidate.end()
            return told
        return {trial: Decision(Verdict.PAUSE, decision.reason) for trial, decision in told.items()}

    def _of_trial(self, place: int, reason: Mapping[str, Any]) -> Mapping[str, Any]:
        """Name the trials of candidates that a reason is about: whose weights the trial in this place of a copy has."""
        names = set(getattr(self.scheduler, "trials_in_reasons", ())) & reason.keys()
        of = {name: self._candidates[reason[name]] for name in names if reason[name] is not None}
        return {**reason, **{name: candidate.donors(place + 1)[place] for name, candidate in of.items()}}


@dataclass(eq=False)
class _Candidate:
    """One configuration's trials, which are in the same phase.

    The life of a phase: `take` collects the trials' reports; once `settled`, the scheduler is told what `joined` makes
    of them; by its verdict, which may come with another candidate's report, the candidate will `begin_next` or `end`.
    A trial that fails in between is no news, unless it was the last.
    """

    inner: int  # its scheduler's trial
    logged_as: int  # the same, or of a repetition that of the candidate it repeats
    config: Config
    phase: int
    unstarted: int
    alive: list[int] = field(default_factory=list)  # started and not failed; none once it has been stopped
    judged: list[int] = field(default_factory=list)  # those whose scores the scheduler has heard last
    running: set[int] = field(default_factory=set)  # those a report of this phase may come from
    reports: dict[int, Report] = field(default_factory=dict)  # of this phase
    told: bool = False  # the scheduler has heard of this phase

    @property
    def n_alive(self) -> int:
        return len(self.alive) + self.unstarted

    @property
    def settled(self) -> bool:
        """Whether there is news for the scheduler: all that can end this phase have, or none is left that can."""
        alive = self.n_alive
        return len(self.reports) == alive and (not self.told or alive == 0)

    def donors(self, n: int) -> list[int | None]:
        """Name the trials whose weights `n` trials of a copy start from, in turn."""
        known = self.judged or self.alive
        return [known[i % len(known)] if known else None for i in range(n)]

    def start(self, trial: int) -> None:
        self.unstarted -= 1
        self.alive.append(trial)
        self.running.add(trial)

    def resume(self, trial: int) -> Run:
        self.running.add(trial)
        return Run(trial, self.config, parent=trial, phase=self.phase, candidate=self.logged_as)

    def begin_next(self) -> None:
        self.phase += 1
        self.reports, self.told = {}, False

    def expects(self, report: Report) -> bool:
        if report.failed:
            return report.trial in self.alive
        return report.trial in self.running and report.phase == self.phase

    def standing(self, trial: int) -> str:
        return f"reports phase {self.phase} next" if trial in self.running else "is not running"

    def take(self, report: Report) -> None:
        self.running.discard(report.trial)
        if report.failed:
            self.alive.remove(report.trial)
            self.reports.pop(report.trial, None)
        else:
            self.reports[report.trial] = report

    def joined(self, judge: Callable[[Sequence[float]], float], seeds: int) -> Report:
        """Join the trials' reports of this phase into the candidate's, a failure if there is none.

        It takes the seconds of all its `seeds`: for one that failed the others stand, or a configuration that makes
        some fail would be the cheaper for it.
        """
        self.told = True
        if not self.reports:
            return Report(self.inner, self.phase, math.nan, failed=True)
        self.judged = sorted(self.reports)
        reports = [self.reports[trial] for trial in self.judged]  # whoever reported first
        # the latest of each first: so that the last few, which PBT compares, are of all
        latest = zip_longest(*(reversed(report.returns) for report in reports))
        returns = tuple(value for some in reversed(list(latest)) for value in some if value is not None)
        seconds = sum([report.seconds for report in reports]) * (seeds / len(reports))
        return Report(self.inner, self.phase, judge([report.score for report in reports]), False, returns, seconds)

    def end(self) -> None:
        self.alive, self.unstarted = [], 0
        self.running.clear()


@dataclass(eq=False)
class _Due:
    """A trial to ask for: a new one of a candidate, or one that was paused."""

    candidate: _Candidate
    trial: int | None
    parent: int | None = None
