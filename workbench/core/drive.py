"""The one loop: ask → run → report → tell, whatever the clock and the cluster."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from workbench.core.answers import answered, asked, same_config
from workbench.core.errors import SchedulerError
from workbench.core.interventions import Request, judge
from workbench.core.ledger import RAN_OUT, Ledger, TrialState
from workbench.core.protocols import Config, Decision, Event, Executor, Kind, Log, Report, Run, Scheduler, Verdict
from workbench.core.seeds import trial_seed
from workbench.core.showing import so_many
from workbench.core.space import space_of


def drive(
    scheduler: Scheduler,
    executor: Executor,
    log: Log,
    *,
    seed: int = 0,
    ledger: Ledger | None = None,
    inbox: Callable[[], Sequence[Request]] = tuple,
    stop: Callable[[], bool] = lambda: False,
    poll_s: float = 0.5,
    only_confirm: bool = False,
) -> bool:
    """Run a study until the scheduler has nothing left to start and nothing runs.

    Every event is in the log before it is acted on, and a report is logged in one piece with the decisions
    it caused; so the log alone is enough to go on after a crash at any point.

    Parameters
    ----------
    scheduler, executor, log
    seed : int
        The study's seed; each trial's own is derived from it.
    ledger : Ledger, optional
        What an earlier driver of this study left behind; its running trials are taken up first.
    inbox : callable
        Gives the people's requests that have come in; asked about every `poll_s`.
    stop : callable
        Asked about every `poll_s`; true ends the loop with trials still under way.
    poll_s : float
        Longest wait for events, seconds of real time.
    only_confirm : bool
        Run trials that confirm others and no more: the scheduler is asked for nothing, its trials stay as they are.

    Returns
    -------
    bool
        Whether the study came to its end.

    Raises
    ------
    SchedulerError
        When trials are held or paused, and nothing is left that could release them, nor a slot to come for others that
        might; or when the scheduler asks for or answers what makes no sense (see `core/answers.py`), such as that a
        paused trial continues.
    """
    driver = _Driver(scheduler, executor, log, seed, Ledger() if ledger is None else ledger, only_confirm)
    while True:
        driver.answer(inbox())
        if stop():  # which one of them may have asked for
            return False
        driver.take_caused()
        driver.fill()
        if driver.is_over():
            return True
        executor.want(driver.could_use())
        driver.collect(poll_s)


class _Driver:
    """The loop's memory between turns: who sits on a slot, who waits for one.

    The ledger says where a trial stands; with whether it is `seated` that tells what is owed to it:

    | state | seated | not seated |
    |---|---|---|
    | running | its report is waited for; of one in `deferred`, a phase when the study goes on | a slot: in `backlog` |
    | held | what its scheduler decides | a slot, once let go on: it was held when an earlier driver ended |
    | paused | | nothing until its scheduler asks for it |
    | set aside | in `deferred`: to lose its slot when the study goes on | nothing until a person resumes it |
    | stopped, failed | | nothing, unless a person extends it |
    """

    def __init__(
        self, scheduler: Scheduler, executor: Executor, log: Log, seed: int, ledger: Ledger, only_confirm: bool
    ) -> None:
        self.scheduler, self.executor, self.log, self.seed, self.ledger = scheduler, executor, log, seed, ledger
        self.only_confirm = only_confirm
        self.seated: set[int] = set()  # trials the executor holds
        under_way = ledger.in_state(TrialState.RUNNING)
        self.backlog = deque(filter(self._may_run, under_way))  # trials to seat before any new one
        self.deferred: list[int] = []  # trials let go on while the study is paused, on their slots

    def answer(self, requests: Iterable[Request]) -> None:
        """Judge what people ask, log the answers, and carry out what was accepted."""
        for request in requests:
            if request.id in self.ledger.requests:
                continue
            self.take_caused()
            events = judge(
                request,
                self.ledger,
                at=self.executor.now,
                first_clone=self.scheduler.n_trials,
                n_phases=self.scheduler.n_phases,
                study_seed=self.seed,
                scale=self.executor.scale,
                space=space_of(self.scheduler),
            )
            resumed = request.action == "resume" and self._is_set_aside(request.trial)
            batch: list[Event] = []
            decisions: dict[int, Decision] = {}
            for event in events:
                batch.append(event)
                if (report := event.report()) is not None:
                    decisions |= self._hear(report, event.at, batch)
            self._record(batch)
            if events[0].data["accepted"]:
                self._carry_out(request, events, resumed=resumed)
            self._apply(decisions)

    def _carry_out(self, request: Request, events: Sequence[Event], *, resumed: bool) -> None:
        trial = request.trial
        if trial is not None and (request.action == "extend" or resumed):
            if trial not in self.seated:  # set aside while the study is paused, it still has its slot
                self.backlog.append(trial)
        elif request.action == "clone":
            self.backlog += [event.trial for event in events if event.kind is Kind.RUN and event.trial is not None]
        elif request.action == "resume study":
            for let_go in self.deferred:
                self._let_go_on(let_go)
            self.deferred = []
        elif request.action == "stop" and trial is not None:
            if trial in self.seated:
                self.seated.remove(trial)
                self.executor.drop(trial)
            self.deferred = [other for other in self.deferred if other != trial]
            self.backlog = deque(other for other in self.backlog if other != trial)

    def fill(self, spared: int = 0) -> None:
        """Seat trials on free slots but some: first those that were under way, then what the scheduler asks for."""
        executor = self.executor
        while executor.n_free > spared and (self.only_confirm or not self.ledger.paused):
            if self.backlog:
                self._seat(self.backlog.popleft())
            elif not self.only_confirm and (run := _asked(self.scheduler, self.ledger)) is not None:
                self._record([_run_event(run, self.seed, executor.now)])
                if not self._is_set_aside(run.trial):
                    self._seat(run.trial)
            else:
                return

    def could_use(self) -> int:
        """Count the slots that could be used now, now that every slot is filled that can be.

        Trials that were never asked for, and paused ones, count where no slot was free to ask for them, and where the
        scheduler is asked at all.
        """
        ledger = self.ledger
        n = len(self.seated) + len(self.backlog)
        if self.only_confirm or ledger.paused or self.executor.n_free:
            return n
        return n + max(self.scheduler.n_trials - ledger.n_asked, 0) + ledger.n_in(TrialState.PAUSED)

    def is_over(self) -> bool:
        """Tell whether the study has come to its end, now that every slot is filled that can be."""
        ledger, executor = self.ledger, self.executor
        if self.only_confirm:
            return not (self.seated or self.backlog)
        if ledger.n_in(TrialState.RUNNING) or ledger.n_in(TrialState.SET_ASIDE):
            return False
        if ledger.paused or (not executor.n_slots and self.could_use()):
            return False
        held, paused = ledger.n_in(TrialState.HELD), ledger.n_in(TrialState.PAUSED)
        if not (held or paused):
            return True
        if not executor.n_free and executor.want(self.could_use()):
            return False
        raise waits_for_ever(self.scheduler, held, paused, executor.n_slots)

    def take_caused(self) -> None:
        """Log what calls have caused since the last events before what comes next: an answer to a person, or a run."""
        while caused := self.executor.caused():
            self._take(caused)

    def collect(self, poll_s: float) -> None:
        """Wait for events, log them with the decisions they cause, and carry these out."""
        self._take(self.executor.wait(poll_s))

    def _take(self, events: Iterable[Event]) -> None:
        """Log events with the decisions they cause, and carry these out.

        One report at a time, slots it frees being filled before the next is heard, even where several came at once: so
        what is decided depends on their order alone, and is the same in real and in virtual time. A trial that failed
        has left its slot by then: one is spared until that is heard.
        """
        events = list(events)
        lost = {event.slot for event in events if event.kind is Kind.SLOT_LOST}
        spared = [event.kind is Kind.TRIAL_FAILED and event.slot not in lost for event in events]
        batch: list[Event] = []
        report = None
        unheard = sum(spared)
        for event, is_spared in zip(events, spared, strict=True):
            if report is not None:
                self.fill(unheard)
            unheard -= is_spared
            batch.append(event)
            report = event.report()
            if report is not None:
                decisions = self._hear(report, event.at, batch)
                self._record(batch)
                if report.failed:
                    self.seated.discard(report.trial)  # the executor has let go of it
                self._apply(decisions)
                batch = []
        self._record(batch)

    def _hear(self, report: Report, at: float, batch: list[Event]) -> Mapping[int, Decision]:
        """Have the scheduler decide on a report; its decisions join the report's event in the batch to be logged."""
        decisions = _tell(self.scheduler, report, self.ledger)
        batch += _decision_events(decisions, report, at, self.ledger, self.scheduler.n_phases)
        return decisions

    def _apply(self, decisions: Mapping[int, Decision]) -> None:
        for trial, decision in decisions.items():
            verdict = decision.verdict
            if trial in self.seated:
                self._apply_seated(trial, verdict)
            elif verdict is Verdict.CONTINUE and self._state(trial) is TrialState.RUNNING and self._may_run(trial):
                self.backlog.append(trial)  # held when an earlier driver ended, it is on no slot now

    def _apply_seated(self, trial: int, verdict: Verdict) -> None:
        if verdict is Verdict.CONTINUE:
            if self.ledger.paused and not self.only_confirm:
                self.deferred.append(trial)
            else:
                self._let_go_on(trial)
            return
        self.executor.apply(trial, verdict)
        if verdict in (Verdict.PAUSE, Verdict.STOP):
            self.seated.remove(trial)

    def _let_go_on(self, trial: int) -> None:
        """Run a seated trial's next phase, unless a person has set it aside."""
        if self._is_set_aside(trial):
            self.executor.apply(trial, Verdict.PAUSE)
            self.seated.remove(trial)
        else:
            self.executor.apply(trial, Verdict.CONTINUE)

    def _seat(self, trial: int) -> None:
        self.seated.add(trial)
        self.executor.start(self.ledger.job(trial))

    def _may_run(self, trial: int) -> bool:
        """Tell whether a trial is one of those that this driver runs."""
        return not self.only_confirm or self.ledger.trials[trial].own  # for a person: those that confirm, or add phases

    def _state(self, trial: int) -> TrialState | None:
        return _state_in(self.ledger, trial)

    def _is_set_aside(self, trial: int | None) -> bool:
        return trial is not None and self._state(trial) is TrialState.SET_ASIDE

    def _record(self, events: list[Event]) -> None:
        if events:
            self.log.append(events)
            for event in events:
                self.ledger.see(event)


def replay(scheduler: Scheduler, events: Iterable[Event]) -> Ledger:
    """Bring a fresh scheduler to where the log ends, checking that it answers as the log says.

    That decisions are missing at the end of the log cannot be: a report and what it causes are appended as one.

    Raises
    ------
    SchedulerError
        The first answer that differs: the log belongs to another scheduler, or to other settings.
    """
    ledger = Ledger()
    expected: list[Event] = []
    for event in events:
        if event.kind is Kind.RUN and event.data.get("by") != "person":
            run, recorded = _asked(scheduler, ledger), _run_of(event)
            if run is None or _numbers(run) != _numbers(recorded) or not same_config(run.config, recorded.config):
                raise SchedulerError(f"replay differs at {event.at:.3f} s: the log has {recorded}, the scheduler {run}")
        elif event.kind is Kind.DECISION:
            wanted = expected.pop(0) if expected else None
            if wanted is None or (wanted.trial, wanted.data["verdict"]) != (event.trial, event.data["verdict"]):
                raise SchedulerError(f"replay differs at {event.at:.3f} s: the log has {event}, the scheduler {wanted}")
        elif (report := event.report()) is not None:
            decisions = _tell(scheduler, report, ledger)
            expected += _decision_events(decisions, report, event.at, ledger, scheduler.n_phases)
        elif event.kind is Kind.STUDY_RESUMED and "n_trials" in event.data:
            scheduler.grow(event.data["n_trials"])  # type: ignore[attr-defined]
        ledger.see(event)
    return ledger


def waits_for_ever(scheduler: Scheduler, held: int, paused: int, n_slots: int) -> SchedulerError:
    """Say that nothing is left that could release the trials that wait."""
    name = type(scheduler).__name__
    do = "; those that are held keep their slots, and others have none: add nodes" if held else ""
    return SchedulerError(
        f"{name} waits for ever: no trial runs, {held} are held and {paused} paused on {so_many(n_slots, 'slot')}{do}"
    )


def _asked(scheduler: Scheduler, ledger: Ledger) -> Run | None:
    return asked(scheduler, partial(_state_in, ledger), partial(_paused_in, ledger))


def _tell(scheduler: Scheduler, report: Report, ledger: Ledger) -> Mapping[int, Decision]:
    """Hand a report to the scheduler; of trials that run for a person it does not hear, the loop answers itself."""
    trial = ledger.trials[report.trial]
    if not trial.own:
        scores = getattr(scheduler, "scores_in_reasons", ())
        decisions = answered(scheduler, ledger.aim.inward(report), partial(_state_in, ledger))
        return (
            {number: ledger.aim.outward(decision, scores) for number, decision in decisions.items()}
            if scores
            else decisions
        )
    if report.failed or trial.own_phases <= 1:
        return {report.trial: Decision(Verdict.STOP, {"mode": "failed" if report.failed else "extended"})}
    return {report.trial: Decision(Verdict.CONTINUE, {"mode": "extended", "phases_left": trial.own_phases - 1})}


def _decision_events(
    decisions: Mapping[int, Decision], report: Report, at: float, ledger: Ledger, n_phases: int
) -> list[Event]:
    """A decision names the phase its own trial has ended, which need not be the reporter's.

    That a trial has failed, or has run all its phases, is a fact, whatever mode its scheduler has a word for.
    """
    events = []
    for trial, decision in decisions.items():
        reports = trial == report.trial
        phases = report.phase + 1 if reports else ledger.trials[trial].phases
        reason = {key: value for key, value in decision.reason.items() if key != "verdict"}
        if reports and report.failed:
            reason["mode"] = "failed"
        elif decision.verdict is Verdict.STOP and phases == n_phases and reason.get("mode") not in RAN_OUT:
            reason["mode"] = "finished"
        phase = report.phase if reports else ledger.trials[trial].phase
        events.append(Event(Kind.DECISION, at, trial, phase, data={"verdict": str(decision.verdict), **reason}))
    return events


def _run_event(run: Run, seed: int, at: float) -> Event:
    data = {
        "config": dict(run.config),
        "parent": run.parent,
        "seed": trial_seed(seed, run.trial),
    }
    if run.candidate is not None:
        data["candidate"] = run.candidate
    return Event(Kind.RUN, at, run.trial, run.phase, run.slot, data)


def _run_of(event: Event) -> Run:
    assert event.trial is not None  # every run event names its trial
    return Run(event.trial, event.data["config"], event.data["parent"], event.phase or 0, event.slot)


def _numbers(run: Run) -> tuple[int | None, ...]:
    return (run.trial, run.parent, run.phase, run.slot)


def _paused_in(ledger: Ledger, trial: int) -> tuple[int, Config]:
    return ledger.trials[trial].due, ledger.trials[trial].config


def _state_in(ledger: Ledger, trial: int) -> TrialState | None:
    return ledger.trials[trial].state if trial in ledger else None
