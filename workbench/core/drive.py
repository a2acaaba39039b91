"""The one loop: ask → run → report → tell, whatever the clock and the cluster."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from workbench.core.errors import SchedulerError
from workbench.core.protocols import Config, Decision, Event, Executor, Job, Kind, Log, Report, Run, Scheduler, Verdict
from workbench.core.seeds import trial_seed


class TrialState(StrEnum):
    """Where a trial stands."""

    RUNNING = "running"  # on a slot, or waiting for one after a crash
    HELD = "held"
    PAUSED = "paused"
    STOPPED = "stopped"
    FAILED = "failed"


_AFTER: Mapping[str, TrialState] = {  # by a verdict as it stands in the log
    Verdict.CONTINUE: TrialState.RUNNING,
    Verdict.HOLD: TrialState.HELD,
    Verdict.PAUSE: TrialState.PAUSED,
    Verdict.STOP: TrialState.STOPPED,
}


@dataclass(slots=True)
class _Trial:
    config: Config
    seed: int
    phase: int
    state: TrialState
    slot: int | None
    checkpoint: str | None


class Ledger:
    """What the events so far say of every trial: enough to start, go on with, or take up any of them."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._trials: dict[int, _Trial] = {}
        self._running: set[int] = set()
        self.at = 0.0
        for event in events:
            self.see(event)

    def see(self, event: Event) -> None:
        """Take in one more event."""
        kind = event.kind
        if event.at > self.at:
            self.at = event.at
        if event.trial is None or kind is Kind.PHASE_STARTED:
            return
        if kind is Kind.PHASE_ENDED:
            self._trials[event.trial].checkpoint = event.data.get("checkpoint")
        elif kind is Kind.DECISION:
            trial = self._trials[event.trial]
            if trial.state is TrialState.FAILED:
                return
            after = _AFTER[event.data["verdict"]]
            if after is not trial.state:
                self._enter(event.trial, after)
            if after is TrialState.RUNNING:
                trial.phase += 1
        elif kind is Kind.RUN:
            self._see_run(event.trial, event)
        elif kind is Kind.TRIAL_FAILED:
            self._enter(event.trial, TrialState.FAILED)

    def _see_run(self, number: int, event: Event) -> None:
        parent = event.data["parent"]
        checkpoint = None if parent is None else self._trials[parent].checkpoint
        self._trials[number] = _Trial(
            event.data["config"], event.data["seed"], event.phase or 0, TrialState.RUNNING, event.slot, checkpoint
        )
        self._running.add(number)

    def _enter(self, number: int, state: TrialState) -> None:
        self._trials[number].state = state
        (self._running.add if state is TrialState.RUNNING else self._running.discard)(number)

    def job(self, number: int) -> Job:
        """Say what an executor needs to run this trial's current phase."""
        t = self._trials[number]
        return Job(number, t.phase, t.config, t.seed, t.checkpoint, t.slot)

    def phase(self, number: int) -> int:
        """Tell which phase a trial is in, or ended last."""
        return self._trials[number].phase

    def state(self, number: int) -> TrialState:
        """Tell where a trial stands."""
        return self._trials[number].state

    def in_state(self, state: TrialState) -> list[int]:
        """List the trials that stand there."""
        if state is TrialState.RUNNING:
            return sorted(self._running)
        return [number for number, t in self._trials.items() if t.state is state]

    @property
    def n_running(self) -> int:
        """Trials on a slot or on their way to one."""
        return len(self._running)


def drive(
    scheduler: Scheduler,
    executor: Executor,
    log: Log,
    *,
    seed: int = 0,
    ledger: Ledger | None = None,
    stop: Callable[[], bool] = lambda: False,
    poll_s: float = 0.5,
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
    stop : callable
        Asked about every `poll_s`; true ends the loop with trials still under way.
    poll_s : float
        Longest wait for events, seconds of real time.

    Returns
    -------
    bool
        Whether the study came to its end.

    Raises
    ------
    SchedulerError
        When trials are held or paused, and nothing is left that could release them; or when the scheduler lets a
        paused trial continue instead of asking for it.
    """
    ledger = Ledger() if ledger is None else ledger
    detached = set(ledger.in_state(TrialState.HELD))  # held when an earlier driver ended: on no slot now
    backlog = ledger.in_state(TrialState.RUNNING)
    seated: set[int] = set()  # trials the executor holds
    while not stop():
        while backlog and executor.n_free > 0:
            seated.add(backlog[0])
            executor.start(ledger.job(backlog.pop(0)))
        if not backlog:
            for run in _asked(scheduler, executor):
                _record(log, ledger, [_run_event(run, seed, executor.now)])
                seated.add(run.trial)
                executor.start(ledger.job(run.trial))
        if not ledger.n_running and executor.n_slots:
            _refuse_deadlock(scheduler, executor, ledger)
            return True
        events = executor.wait(poll_s)
        batch, decisions = _told(scheduler, events, ledger)
        _record(log, ledger, batch)
        for trial, decision in decisions:
            if ledger.state(trial) is TrialState.FAILED:
                seated.discard(trial)  # the executor let go of it when it failed
            elif trial in seated:
                executor.apply(trial, decision.verdict)
                if decision.verdict in (Verdict.PAUSE, Verdict.STOP):
                    seated.remove(trial)
            elif decision.verdict is Verdict.CONTINUE:
                if trial not in detached:
                    raise SchedulerError(
                        f"{type(scheduler).__name__} lets trial {trial} continue, which is on no slot: "
                        "ask for it instead"
                    )
                detached.remove(trial)
                backlog.append(trial)
    return False


def _refuse_deadlock(scheduler: Scheduler, executor: Executor, ledger: Ledger) -> None:
    """Raise `SchedulerError` if trials are left that nothing can release, now that none runs or can be started."""
    held, paused = ledger.in_state(TrialState.HELD), ledger.in_state(TrialState.PAUSED)
    if held or paused:
        raise SchedulerError(
            f"{type(scheduler).__name__} waits for ever: no trial runs, {len(held)} are held and {len(paused)} paused "
            f"on {executor.n_slots} slots"
        )


def replay(scheduler: Scheduler, events: Iterable[Event]) -> Ledger:
    """Bring a fresh scheduler to where the log ends, checking that it answers as the log says.

    A report whose decisions are missing (it cannot happen while appends are whole) is an error, like any
    other difference.

    Raises
    ------
    SchedulerError
        The first answer that differs: the log belongs to another scheduler, or to other settings.
    """
    ledger = Ledger()
    expected: list[Event] = []
    for event in events:
        ledger.see(event)
        if event.kind is Kind.RUN:
            run = scheduler.ask()
            recorded = _run_of(event)
            if run is None or _plain(run) != _plain(recorded):
                raise SchedulerError(f"replay differs at {event.at:.3f} s: the log has {recorded}, the scheduler {run}")
        elif event.kind is Kind.DECISION:
            wanted = expected.pop(0) if expected else None
            if wanted is None or (wanted.trial, wanted.data["verdict"]) != (event.trial, event.data["verdict"]):
                raise SchedulerError(f"replay differs at {event.at:.3f} s: the log has {event}, the scheduler {wanted}")
        elif (report := event.report()) is not None:
            expected += _decision_events(scheduler.tell(report), report, event.at, ledger)
    return ledger


def _asked(scheduler: Scheduler, executor: Executor) -> Iterator[Run]:
    while executor.n_free > 0 and (run := scheduler.ask()) is not None:
        yield run


def _told(
    scheduler: Scheduler, events: Iterable[Event], ledger: Ledger
) -> tuple[list[Event], list[tuple[int, Decision]]]:
    batch: list[Event] = []
    decisions: list[tuple[int, Decision]] = []
    for event in events:
        batch.append(event)
        report = event.report()
        if report is not None:
            told = scheduler.tell(report)
            batch += _decision_events(told, report, event.at, ledger)
            decisions += told.items()
    return batch, decisions


def _decision_events(told: Mapping[int, Decision], report: Report, at: float, ledger: Ledger) -> list[Event]:
    """A decision names the phase its own trial has ended, which need not be the reporter's."""
    return [
        Event(
            Kind.DECISION,
            at,
            trial,
            report.phase if trial == report.trial else ledger.phase(trial),
            data={"verdict": str(d.verdict), **d.reason},
        )
        for trial, d in told.items()
    ]


def _run_event(run: Run, seed: int, at: float) -> Event:
    data = {"config": dict(run.config), "parent": run.parent, "seed": trial_seed(seed, run.trial)}
    return Event(Kind.RUN, at, run.trial, run.phase, run.slot, data)


def _run_of(event: Event) -> Run:
    assert event.trial is not None  # every run event names its trial
    return Run(event.trial, event.data["config"], event.data["parent"], event.phase or 0, event.slot)


def _plain(run: Run) -> tuple[object, ...]:
    return (run.trial, dict(run.config), run.parent, run.phase, run.slot)


def _record(log: Log, ledger: Ledger, events: list[Event]) -> None:
    if events:
        log.append(events)
        for event in events:
            ledger.see(event)
