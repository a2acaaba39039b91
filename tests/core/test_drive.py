"""The loop's own promises: barriers, pauses, deadlocks, and what is logged before what."""

import math
from dataclasses import replace

import pytest

from tests.simulated import Clocked
from tests.support import SPACE, MemoryLog, RandomTimes, virtual_executor
from workbench.algos.search import FullRuns, RandomSearcher
from workbench.cluster.attempts import Attempt
from workbench.core.drive import drive, replay
from workbench.core.errors import SchedulerError
from workbench.core.ledger import Ledger, TrialState
from workbench.core.protocols import Decision, Event, Job, Kind, Report, Run, Verdict
from workbench.simulation.cluster import Hazards, VirtualCluster
from workbench.simulation.executor import SimulatedExecutor


class Barrier:
    """Three trials, two phases; nobody begins the second before all have ended the first. `verdict` waits."""

    n_trials, n_phases, expected_phases = 3, 2, 6.0

    def __init__(self, verdict: Verdict, release: bool = True) -> None:
        self.verdict, self.release = verdict, release
        self.started, self.waiting, self.to_resume = 0, [], []

    def ask(self):
        if self.to_resume:
            trial = self.to_resume.pop(0)
            return Run(trial, {"x": trial}, parent=trial, phase=1)
        if self.started == 3:
            return None
        self.started += 1
        return Run(self.started - 1, {"x": self.started - 1})

    def tell(self, report: Report):
        if report.phase == 1:
            return {report.trial: Decision(Verdict.STOP, {"mode": "finished"})}
        self.waiting.append(report.trial)
        if len(self.waiting) < 3 or not self.release:
            return {report.trial: Decision(self.verdict, {"mode": "barrier"})}
        if self.verdict is Verdict.HOLD:
            return dict.fromkeys(self.waiting, Decision(Verdict.CONTINUE, {"mode": "released"}))
        self.to_resume = list(self.waiting)
        return {report.trial: Decision(Verdict.PAUSE, {"mode": "barrier"})}


def driven(scheduler, slots):
    log = MemoryLog()
    return drive(scheduler, virtual_executor(RandomTimes(1), slots), log), log


@pytest.mark.parametrize(("verdict", "slots"), [(Verdict.HOLD, 3), (Verdict.PAUSE, 3), (Verdict.PAUSE, 1)])
def test_a_barrier_is_held_whether_trials_keep_their_slots_or_not(verdict, slots) -> None:
    over, log = driven(Barrier(verdict), slots)
    assert over
    first_ended = max(e.at for e in log if e.kind is Kind.PHASE_ENDED and e.phase == 0)
    second_began = min(e.at for e in log if e.kind is Kind.PHASE_STARTED and e.phase == 1)
    assert second_began == first_ended
    assert sum(e.kind is Kind.PHASE_ENDED for e in log) == 6


def test_holding_with_too_few_slots_is_a_deadlock_and_said_so() -> None:
    with pytest.raises(
        SchedulerError, match=r"waits for ever: no trial runs, 2 are held and 0 paused on 2 slots; .* add nodes"
    ):
        driven(Barrier(Verdict.HOLD), slots=2)


class Late(SimulatedExecutor):
    """All slots but the first come one by one, long after trials on the others have ended their phase."""

    def open(self, at: float) -> None:
        super().open(at)
        for slot in self._book.seats.slots[1:]:
            self._lose(Attempt(Job(-1, 0, {}, 0), 0, slot, at, False, -1), "crash")
        self._agenda = [(100.0 * slot.index, *rest, slot, 100.0 * slot.index) for _, *rest, slot, _ in self._agenda]


@pytest.mark.parametrize("slots", [2, 3])
def test_trials_are_held_until_slots_come_for_those_that_they_wait_for(slots) -> None:
    log = MemoryLog()
    executor = virtual_executor(RandomTimes(1), slots, kind=Late)
    if slots == 3:
        assert drive(Barrier(Verdict.HOLD), executor, log)
        assert [e.at for e in log if e.kind is Kind.RUN] == [0.0, 100.0, 200.0]
        return
    with pytest.raises(SchedulerError, match="2 are held and 0 paused on 2 slots"):  # once there is none to come
        drive(Barrier(Verdict.HOLD), executor, log)


class Leaves(SimulatedExecutor):
    """Its slots all leave, for good, as the last phase of trial 1 ends, or have never come."""

    def wait(self, timeout_s=None):
        events = [*super().wait(timeout_s)]
        if any((e.kind, e.trial, e.phase) == (Kind.PHASE_ENDED, 1, 1) for e in events):
            self._book.out_of_reach(self.now)
        return [*events, *self._book.take_events()]


def test_a_study_is_over_once_nothing_could_use_a_slot_though_none_is_left() -> None:
    """On a cluster that adapts none would come: none is wanted."""
    log = MemoryLog()
    executor = virtual_executor(RandomTimes(1), 1, kind=Leaves)
    turns = iter(range(20))
    assert drive(FullRuns(RandomSearcher(SPACE), 2, 2), executor, log, stop=lambda: next(turns, None) is None)
    assert executor.n_slots == 0
    fresh = FullRuns(RandomSearcher(SPACE), 2, 2)
    ledger, executor = replay(fresh, log), Leaves(RandomTimes(1), VirtualCluster(1))  # taken up again: it is over
    assert drive(fresh, executor, log, ledger=ledger, stop=lambda: next(turns, None) is None)


def test_a_scheduler_that_never_resumes_what_it_paused_is_told_so() -> None:
    with pytest.raises(SchedulerError, match="0 are held and 3 paused"):
        driven(Barrier(Verdict.PAUSE, release=False), slots=2)


def test_a_stopped_drive_leaves_its_trials_running_in_the_ledger() -> None:
    log = MemoryLog()
    executor = virtual_executor(RandomTimes(1), 2)
    turns = iter([False, True])
    assert not drive(Barrier(Verdict.PAUSE), executor, log, stop=lambda: next(turns))
    assert Ledger(log).in_state(TrialState.RUNNING)


def test_what_happened_before_a_run_is_logged_before_it() -> None:
    log, executor = MemoryLog(), virtual_executor(RandomTimes(1), 1, kind=Clocked)
    assert drive(FullRuns(RandomSearcher(SPACE), 3, 2), executor, log)
    assert [e.kind for e in log[:3]] == [Kind.SLOT_JOINED, Kind.RUN, Kind.PHASE_STARTED]
    assert [e.at for e in log] == sorted(e.at for e in log)


def test_a_run_is_logged_before_the_executor_hears_of_it() -> None:
    log = MemoryLog()

    class Watched(SimulatedExecutor):
        def start(self, job):
            assert log[-1].kind is Kind.RUN
            assert log[-1].trial == job.trial
            super().start(job)

        def apply(self, trial, verdict):
            assert any(e.kind is Kind.DECISION and e.trial == trial for e in log)
            super().apply(trial, verdict)

    executor = Watched(RandomTimes(1), VirtualCluster(2))
    executor.open(0.0)
    assert drive(Barrier(Verdict.PAUSE), executor, log)


def test_the_cluster_is_asked_for_as_many_slots_as_trials_could_use_now() -> None:
    wanted, log = [], MemoryLog()
    executor = virtual_executor(RandomTimes(1), 1)
    executor.want = lambda slots: wanted.append((slots, Ledger(log).n_in(TrialState.PAUSED)))
    assert drive(Barrier(Verdict.PAUSE), executor, log)
    assert {(3, 0), (3, 1), (3, 2)} <= set(wanted)  # those that the scheduler has paused among them
    assert wanted[-1] == (1, 0)


def test_no_slot_is_wanted_for_a_trial_that_has_failed_though_its_scheduler_says_nothing_of_it() -> None:
    class Silent(Barrier):
        def tell(self, report):
            return {} if report.failed else {report.trial: Decision(Verdict.STOP, {"mode": "finished"})}

    class FirstDiverges(RandomTimes):
        def phase(self, trial, phase, config, seed):
            return (1.0, math.nan) if trial == 0 else (1.0 + trial, 0.0)

    wanted, log = [], MemoryLog()
    executor = virtual_executor(FirstDiverges(), 3)
    executor.want = wanted.append
    assert drive(Silent(Verdict.STOP), executor, log)
    assert wanted == [3, 2, 1]


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (Kind.RUN, {"trial": 1}),
        (Kind.RUN, {"phase": 1}),
        (Kind.RUN, {"slot": 2}),
        (Kind.RUN, {"data": {"config": {"x": 7}, "parent": None, "seed": 0}}),
        (Kind.RUN, {"data": {"config": {"x": 0}, "parent": 0, "seed": 0}}),
        (Kind.DECISION, {"trial": 2}),
        (Kind.DECISION, {"data": {"verdict": "stop", "mode": "barrier"}}),
    ],
)
def test_a_log_that_another_scheduler_left_is_refused_at_the_first_difference(kind, changes) -> None:
    _, log = driven(Barrier(Verdict.PAUSE), 2)
    replay(Barrier(Verdict.PAUSE), log)
    first = next(n for n, event in enumerate(log) if event.kind is kind)
    altered = [*log[:first], replace(log[first], **changes), *log[first + 1 :]]
    with pytest.raises(SchedulerError, match=f"replay differs at {log[first].at:.3f} s: "):
        replay(Barrier(Verdict.PAUSE), altered)


class Duel:
    """Two trials; the first pauses after its second phase, the second's first report settles its fate."""

    n_trials, n_phases, expected_phases = 2, 3, 3.0

    def __init__(self, verdict: Verdict) -> None:
        self.verdict, self.started = verdict, 0

    def ask(self):
        if self.started == 2:
            return None
        self.started += 1
        return Run(self.started - 1, {"x": self.started - 1})

    def tell(self, report: Report):
        if report.trial == 0:
            return {0: Decision(Verdict.PAUSE if report.phase else Verdict.CONTINUE, {"mode": "first"})}
        return {1: Decision(Verdict.STOP, {"mode": "finished"}), 0: Decision(self.verdict, {"mode": "judged"})}


def test_a_paused_trial_may_be_stopped_and_the_log_names_its_own_phase() -> None:
    over, log = driven(Duel(Verdict.STOP), slots=1)
    assert over
    assert [(e.trial, e.phase) for e in log if e.kind is Kind.DECISION] == [(0, 0), (0, 1), (1, 0), (0, 1)]
    assert Ledger(log).trials[0].state is TrialState.STOPPED
    replay(Duel(Verdict.STOP), log)


def test_a_paused_trial_cannot_be_told_to_continue() -> None:
    with pytest.raises(SchedulerError, match="answers for trial 0, which is on no slot: ask for it instead"):
        driven(Duel(Verdict.CONTINUE), slots=1)


def test_a_study_resumed_at_a_barrier_may_stop_whom_it_held() -> None:
    scheduler, log = Barrier(Verdict.HOLD), MemoryLog()
    executor = virtual_executor(RandomTimes(1), 3)
    drive(scheduler, executor, log, stop=lambda: any(e.kind is Kind.DECISION for e in log))
    ledger = Ledger(log)
    assert len(ledger.in_state(TrialState.HELD)) == 1
    held = ledger.in_state(TrialState.HELD)[0]
    last = next(e for e in log if e.kind is Kind.DECISION)
    scheduler.tell = lambda report: {t: Decision(Verdict.STOP, {"mode": "over"}) for t in {held, report.trial}}
    assert drive(scheduler, virtual_executor(RandomTimes(1), 3, last.at), log, ledger=ledger)
    assert ledger.in_state(TrialState.STOPPED) == [0, 1, 2]


def test_a_study_resumed_at_a_barrier_lets_nobody_go_on_whom_a_person_has_paused() -> None:
    scheduler, log = Barrier(Verdict.HOLD), MemoryLog()
    executor = virtual_executor(RandomTimes(1), 3)
    drive(scheduler, executor, log, stop=lambda: any(e.kind is Kind.DECISION for e in log))
    wish = {"action": "pause", "accepted": True}
    ended = next(n for n, e in enumerate(log) if e.kind is Kind.PHASE_ENDED)
    log[ended:ended] = [Event(Kind.INTERVENTION, 0.1, trial, data=wish) for trial in range(3)]
    ledger, turns = Ledger(log), iter(range(50))
    assert len(ledger.in_state(TrialState.HELD)) == 1
    executor = virtual_executor(RandomTimes(1), 3, ledger.at)
    drive(scheduler, executor, log, ledger=ledger, stop=lambda: next(turns, None) is None)
    assert ledger.in_state(TrialState.SET_ASIDE) == [0, 1, 2]
    assert not [e for e in log if e.kind is Kind.PHASE_STARTED and e.phase == 1]


class InPairs(SimulatedExecutor):
    """Tells what happens two moments at a time."""

    def wait(self, timeout_s=None):
        return [*super().wait(timeout_s), *super().wait(timeout_s)]


def test_a_slot_is_filled_before_the_next_report_is_heard_even_of_two_that_came_at_once() -> None:
    log = MemoryLog()
    executor = InPairs(RandomTimes(0), VirtualCluster(2))
    executor.open(0.0)
    assert drive(FullRuns(RandomSearcher(SPACE), 4, 1), executor, log)
    told = [str(e.kind) for e in log if e.kind in (Kind.RUN, Kind.PHASE_ENDED, Kind.DECISION)]
    assert told == ["run", "run", *["phase_ended", "decision", "run"] * 2, *["phase_ended", "decision"] * 2]


@pytest.mark.parametrize("slot_lost", [False, True])
def test_a_slot_that_a_failure_frees_is_filled_once_that_is_heard_though_another_report_came_with_it(slot_lost) -> None:
    """If the slot was lost with the trial, none is spared in its place."""

    class FirstFails(InPairs):
        def _end(self, attempt, result):
            if attempt.job.trial != 0:
                super()._end(attempt, result)
            elif slot_lost:
                self._lose(attempt, "crash")
            else:
                self._book.attempt_lost(attempt, "exception", "ValueError: no", self._now, retry=False)

    log = MemoryLog()
    executor = FirstFails(RandomTimes(0), VirtualCluster(2, hazards=Hazards(max_retries=0)))
    executor.open(0.0)
    assert drive(FullRuns(RandomSearcher(SPACE), 4, 1), executor, log)
    failed = [e.kind for e in log].index(Kind.TRIAL_FAILED)
    told = [(str(e.kind), e.trial) for e in log[:failed] if e.kind in (Kind.RUN, Kind.PHASE_ENDED)]
    assert told == [("run", 0), ("run", 1), ("phase_ended", 1), ("run", 2)]


def test_what_a_turn_costs_does_not_grow_with_the_study() -> None:
    class Unwalked(dict):
        def __iter__(self):
            raise AssertionError("somebody goes through all trials")

        keys = values = items = __iter__

    ledger = Ledger()
    ledger.trials = Unwalked()
    assert drive(Barrier(Verdict.PAUSE), virtual_executor(RandomTimes(1), 3), MemoryLog(), ledger=ledger)
    assert ledger.n_in(TrialState.STOPPED) == 3
    assert ledger.in_state(TrialState.STOPPED) == [0, 1, 2]


def test_no_reason_is_logged_in_place_of_the_verdict() -> None:
    class Wordy(Duel):
        def tell(self, report):
            decisions = super().tell(report)
            return {trial: Decision(d.verdict, {**d.reason, "verdict": "odd"}) for trial, d in decisions.items()}

    _, log = driven(Wordy(Verdict.STOP), slots=1)
    assert {e.data["verdict"] for e in log if e.kind is Kind.DECISION} <= {*map(str, Verdict)}
    replay(Wordy(Verdict.STOP), log)


def test_the_log_says_finished_and_failed_whatever_words_a_scheduler_has() -> None:
    class OwnWords(Duel):
        """Trial 1 fails, trial 0 waits for that at the end of its last phase, and is stopped."""

        n_phases = 2

        def tell(self, report):
            verdicts = {t: d.verdict for t, d in super().tell(report).items()}
            return {trial: Decision(verdict, {"mode": "mine", "word": "own"}) for trial, verdict in verdicts.items()}

    class SecondDiverges(RandomTimes):
        def phase(self, trial, phase, config, seed):
            return 1.0, math.nan if trial == 1 else 0.0

    log = MemoryLog()
    assert drive(OwnWords(Verdict.STOP), virtual_executor(SecondDiverges(), 1), log)
    modes = [(e.trial, e.data["mode"], e.data["word"]) for e in log if e.kind is Kind.DECISION]
    assert modes == [(0, "mine", "own"), (0, "mine", "own"), (1, "failed", "own"), (0, "finished", "own")]
    assert [trial.standing for trial in Ledger(log).trials.values()] == ["finished", "failed"]
    replay(OwnWords(Verdict.STOP), log)
