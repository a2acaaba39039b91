"""What every scheduler must do, whatever it decides."""

import copy
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import SPACE, MemoryLog, RandomTimes, simulate
from workbench.algos.search import FullRuns, GridSearcher, HyperTrick, RandomSearcher
from workbench.cluster.simulated import SimulatedExecutor
from workbench.core.drive import drive, replay
from workbench.core.errors import SchedulerError
from workbench.core.ledger import Ledger, TrialState
from workbench.core.protocols import Kind, Report, Verdict

SCHEDULERS = {
    "random": lambda: FullRuns(RandomSearcher(SPACE), 7, 3),
    "grid": lambda: FullRuns(GridSearcher(SPACE, 3), 20, 3),
    "hypertrick": lambda: HyperTrick(RandomSearcher(SPACE), 12, 4, 0.25),
    "hypertrick-grid": lambda: HyperTrick(GridSearcher(SPACE, 4), 100, 3, 0.5),
}


@pytest.fixture(params=SCHEDULERS)
def scheduler(request):
    return SCHEDULERS[request.param]()


@settings(max_examples=25, deadline=None)
@given(
    slots=st.integers(1, 20), seed=st.integers(0, 1000), spread=st.floats(0, 2), name=st.sampled_from(list(SCHEDULERS))
)
def test_every_study_ends_with_every_trial_over(slots, seed, spread, name) -> None:
    log = simulate(SCHEDULERS[name](), RandomTimes(seed, spread), slots)
    ledger = Ledger(log)
    runs = [e for e in log if e.kind is Kind.RUN]
    assert runs
    assert {ledger.state(e.trial) for e in runs} <= {TrialState.STOPPED, TrialState.FAILED}


def test_no_phase_runs_twice_or_out_of_order(scheduler) -> None:
    ended = [(e.trial, e.phase) for e in simulate(scheduler) if e.kind is Kind.PHASE_ENDED]
    assert max(Counter(ended).values()) == 1
    for trial in {t for t, _ in ended}:
        phases = [p for t, p in ended if t == trial]
        assert phases == list(range(len(phases)))
        assert len(phases) <= scheduler.n_phases


def test_no_slot_idles_while_a_trial_could_start(scheduler) -> None:
    """Slots are filled as soon as they fall free: idle time only when nothing is left to start."""
    log = simulate(scheduler, slots=3)
    last_start = max(e.at for e in log if e.kind is Kind.RUN)
    starts = sorted((e.at, 1) for e in log if e.kind is Kind.RUN)
    ends = sorted((e.at, -1) for e in log if e.kind is Kind.DECISION and e.data["verdict"] == "stop")
    busy, at = 0, 0.0
    for when, change in sorted(starts + ends, key=lambda x: (x[0], x[1])):
        if when > at and at < last_start:
            assert busy == 3
        busy, at = busy + change, when


def test_every_report_is_answered_with_a_verdict_and_a_reason(scheduler) -> None:
    log = simulate(scheduler)
    for event in log:
        if event.kind is Kind.DECISION:
            assert event.data["verdict"] in set(Verdict)
            assert event.data["mode"]
    reported = [(e.trial, e.phase) for e in log if e.kind is Kind.PHASE_ENDED]
    answered = [(e.trial, e.phase) for e in log if e.kind is Kind.DECISION]
    assert sorted(reported) == sorted(answered)


def test_replaying_the_log_gives_the_same_answers(scheduler) -> None:
    fresh = copy.deepcopy(scheduler)
    log = simulate(scheduler)
    replay(fresh, log)
    assert fresh.ask() is None


def test_replay_of_a_log_that_is_not_its_own_is_refused(scheduler) -> None:
    fresh = copy.deepcopy(scheduler)
    log = simulate(scheduler)
    flip = {"stop": "continue", "continue": "stop"}
    at = next(i for i, e in enumerate(log) if e.kind is Kind.DECISION)
    object.__setattr__(log[at], "data", {**log[at].data, "verdict": flip[log[at].data["verdict"]]})
    with pytest.raises(SchedulerError, match="replay differs"):
        replay(fresh, log)


def test_a_study_cut_anywhere_goes_on_to_the_same_decisions(scheduler) -> None:
    """Cut at every event of an undisturbed study, on one slot so that the order of reports is fixed."""
    whole = simulate(copy.deepcopy(scheduler), slots=1)
    verdicts = [(e.trial, e.phase, e.data["verdict"]) for e in whole if e.kind is Kind.DECISION]
    for cut in _cuts(whole):
        log = MemoryLog(whole[:cut])
        fresh = copy.deepcopy(scheduler)
        ledger = replay(fresh, log)
        executor = SimulatedExecutor(RandomTimes(0), [1.0])
        executor.open(ledger.at)
        assert drive(fresh, executor, log, ledger=ledger)
        assert [(e.trial, e.phase, e.data["verdict"]) for e in log if e.kind is Kind.DECISION] == verdicts


def _cuts(log: MemoryLog) -> list[int]:
    """Places a driver may have died: anywhere but between a report and its decision, which are logged as one."""
    return [i for i in range(len(log) + 1) if i == 0 or log[i - 1].kind is not Kind.PHASE_ENDED]


def test_asking_when_there_is_nothing_to_start_changes_nothing(scheduler) -> None:
    runs = []
    while (run := scheduler.ask()) is not None:
        runs.append(run)
    assert scheduler.ask() is None
    scheduler.tell(Report(runs[0].trial, 0, 1.0))


def test_a_failed_trial_is_stopped_and_nobody_else_is_touched(scheduler) -> None:
    first, second = scheduler.ask(), scheduler.ask()
    told = scheduler.tell(Report(first.trial, 0, float("nan"), failed=True))
    assert told[first.trial].verdict is Verdict.STOP
    assert second.trial not in told
    scheduler.tell(Report(second.trial, 0, 1.0))


@pytest.mark.parametrize("bad", [Report(99, 0, 1.0), Report(0, 1, 1.0)])
def test_senseless_reports_are_refused(scheduler, bad) -> None:
    scheduler.ask()
    with pytest.raises(SchedulerError, match="came, but"):
        scheduler.tell(bad)
