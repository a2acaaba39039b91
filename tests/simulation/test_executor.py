"""The cluster in virtual time: its costs and its accidents."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import SPACE, MemoryLog, RandomTimes, virtual_executor
from workbench.algos.search import FullRuns, HyperTrick, RandomSearcher
from workbench.algos.search.hypertrick import expected_completion_rate
from workbench.core.drive import Ledger, TrialState, drive
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Job, Kind, Verdict
from workbench.knowledge.frames import frames_of
from workbench.simulation import simulate
from workbench.simulation.cluster import Hazards, VirtualCluster
from workbench.simulation.executor import Ran
from workbench.simulation.models import SyntheticCurves


class Steady:
    """Every phase takes a second."""

    def __init__(self, score=1.0) -> None:
        self.score = score

    def phase(self, trial, phase, config, seed):
        return 1.0, self.score


def driven(scheduler, model, speeds, **settings) -> MemoryLog:
    log = MemoryLog()
    assert drive(scheduler, virtual_executor(model, VirtualCluster(len(speeds), speeds=speeds, **settings)), log)
    return log


def full(n_trials, n_phases) -> FullRuns:
    return FullRuns(RandomSearcher(SPACE), n_trials, n_phases)


def times(log, kind) -> list[tuple]:
    return [(e.trial, e.phase, e.at) for e in log if e.kind is kind]


def test_starting_costs_once_and_a_faster_slot_takes_less() -> None:
    log = driven(full(2, 2), Steady(), [1.0, 2.0], startup_s=0.5, switch_s=0.25)
    assert times(log, Kind.PHASE_ENDED) == [(1, 0, 1.0), (0, 0, 1.5), (1, 1, 1.5), (0, 1, 2.5)]


def test_coming_back_from_a_pause_costs_the_switch() -> None:
    executor = virtual_executor(Steady(), VirtualCluster(1, startup_s=0.5, switch_s=0.25))
    executor.start(Job(0, 0, {}, 0))
    ended = executor.wait()[-1]
    executor.apply(0, Verdict.PAUSE)
    executor.start(Job(0, 1, {}, 0, ended.data["checkpoint"]))
    assert executor.wait()[-1].at == 1.5 + 1.25


def test_a_gang_is_as_slow_as_its_slowest_and_has_as_many_accidents_as_all_of_its_workers() -> None:
    assert VirtualCluster(4, speeds=[1.0, 2.0, 4.0, 0.5], n_ranks=2).slot_speeds() == [1.0, 0.5]
    assert VirtualCluster(3, speeds=[1.0, 2.0, 4.0], n_ranks=2).slot_speeds() == [1.0]  # the third is left over
    assert VirtualCluster(2, slots_per_node=2, n_ranks=4).n_slots == 1
    for hazards in (Hazards(crash_rate=0.1), Hazards(hang_rate=0.1)):
        alone, gang = (hazards.draw(np.random.default_rng(0), n_ranks)[0] for n_ranks in (1, 4))
        assert gang == pytest.approx(alone / 4)
        clusters = [VirtualCluster(4, hazards=hazards, n_ranks=n_ranks) for n_ranks in (1, 4)]
        alone, gang = (cluster.accident(trial=0, phase=0, attempt=0)[0] for cluster in clusters)
        assert gang == pytest.approx(alone / 4)
    both, rng = Hazards(crash_rate=0.1, hang_rate=0.05), np.random.default_rng(0)
    assert np.mean([both.draw(rng, 8)[0] for _ in range(4000)]) == pytest.approx(1 / (8 * 0.15), rel=0.1)


class Telling(Steady):
    """Shows progress 3 times, the last time at the very end of a phase."""

    def __init__(self, seconds=7.76) -> None:
        self.seconds = seconds

    def run(self, job):
        return Ran(self.seconds, {"score": 0.0}, [{"frames": float(n)} for n in range(3)])


def test_the_last_progress_is_told_before_its_phase_has_ended() -> None:
    """With these numbers, 0.76 + (0.76 + 7.76 - 0.76) * 3 / 3 is rounded to more than 0.76 + 7.76."""
    executor = virtual_executor(Telling(), VirtualCluster(1, startup_s=0.76))
    executor.start(Job(0, 0, {}, 0))
    kinds = [event.kind for _ in range(4) for event in executor.wait()]
    assert kinds == [Kind.SLOT_JOINED, Kind.PHASE_STARTED, *[Kind.PROGRESS] * 3, Kind.PHASE_ENDED]


@pytest.mark.parametrize(("what", "found_s"), [("crash", 5.0), ("stall", 12.0)])
@pytest.mark.parametrize(("lasts", "told"), [(5.0, [0.0, 1.0]), (0.5, [])])
def test_an_attempt_that_is_lost_has_told_what_came_until_then(monkeypatch, what, found_s, lasts, told) -> None:
    """Points come after 1 + 2, 1 + 4 and 1 + 6 s: what goes wrong after 5 s leaves two, and while it starts none."""
    monkeypatch.setattr(VirtualCluster, "accident", lambda self, trial, phase, attempt: (lasts, what))
    cluster = VirtualCluster(1, startup_s=1.0, hazards=Hazards(crash_rate=1.0, stall_s=7.0, max_retries=0))
    executor = virtual_executor(Telling(seconds=6.0), cluster)
    executor.start(Job(0, 0, {}, 0))
    events = [event for _ in range(4) for event in executor.wait()]
    assert [e.data["metrics"]["frames"] for e in events if e.kind is Kind.PROGRESS] == told
    assert [e.at for e in events if e.kind is Kind.PROGRESS] == [3.0, 5.0][: len(told)]
    assert [e.at for e in events if e.kind is Kind.TRIAL_FAILED] == [found_s - 5.0 + lasts]


def test_drawn_speeds_are_as_unequal_as_was_asked_for() -> None:
    logarithms = np.log(VirtualCluster(4000, speed_spread=0.3).node_speeds())
    assert (logarithms.mean(), logarithms.std()) == pytest.approx((0.0, 0.3), abs=0.02)


def test_speeds_may_be_an_array() -> None:
    cluster = VirtualCluster(3, speeds=np.linspace(1, 2, 3))
    assert cluster.speeds == (1.0, 1.5, 2.0)
    assert cluster.slot_speeds() == [1.0, 1.5, 2.0]


def test_slots_of_a_node_share_its_name() -> None:
    executor = virtual_executor(Steady(), VirtualCluster(2, slots_per_node=2, speeds=[1.0, 3.0]))
    assert executor.speeds == [1.0, 1.0, 3.0, 3.0]
    executor.start(Job(0, 0, {}, 0))
    joined = [e for e in executor.wait() if e.kind is Kind.SLOT_JOINED]
    assert [e.data["node"] for e in joined] == ["node-0", "node-0", "node-1", "node-1"]
    gangs = virtual_executor(Steady(), VirtualCluster(3, slots_per_node=2, n_ranks=3))
    assert [e.data["node"] for e in gangs.wait()] == ["node-0+node-1", "node-1+node-2"]


def test_of_a_trial_that_was_dropped_nothing_happens_and_the_others_end_in_their_order() -> None:
    class Takes:
        def phase(self, trial, phase, config, seed):
            return (1.0, 5.0, 2.0, 6.0, 7.0, 3.0, 4.0)[trial], 0.0

    executor = virtual_executor(Takes(), 7)
    for trial in range(7):
        executor.start(Job(trial, 0, {}, 0))
    executor.drop(0)
    ended = [(e.trial, e.at) for _ in range(6) for e in executor.wait() if e.kind is Kind.PHASE_ENDED]
    assert ended == [(2, 2.0), (5, 3.0), (6, 4.0), (1, 5.0), (3, 6.0), (4, 7.0)]


def test_a_bound_trial_takes_its_slot_if_that_is_free() -> None:
    executor = virtual_executor(Steady(), 3)
    for trial in range(3):
        executor.start(Job(trial, 0, {}, 0, slot=2 if trial < 2 else None))
    started = [(e.trial, e.slot) for e in executor.wait() if e.kind is Kind.PHASE_STARTED]
    assert started == [(0, 2), (1, 0), (2, 1)]


@pytest.mark.parametrize(("what", "found_after"), [("crash", 0.0), ("hang", 5.0)])
def test_an_accident_costs_one_attempt_and_the_slot_comes_back(what, found_after) -> None:
    hazards = Hazards(**{f"{what}_rate": 0.4}, stall_s=5.0, restart_s=2.0, max_retries=50)
    log = driven(full(3, 3), Steady(), [1.0, 1.0], hazards=hazards)
    lost = [e for e in log if e.kind is Kind.PHASE_FAILED]
    assert lost
    assert {e.data["why"] for e in lost} == {"crash" if what == "crash" else "stall"}
    assert len(times(log, Kind.PHASE_ENDED)) == 9
    for event in lost:
        started = max(e.at for e in log if e.kind is Kind.PHASE_STARTED and e.trial == event.trial and e.at < event.at)
        assert found_after < event.at - started < found_after + 1
        back = [e.at for e in log if e.kind is Kind.SLOT_JOINED and e.slot == event.slot and e.at > event.at]
        assert back[0] == pytest.approx(event.at + 2.0) if back else log[-1].at < event.at + 2.0


def test_after_the_last_retry_the_trial_fails_alone() -> None:
    log = driven(full(20, 2), Steady(), [1.0] * 3, hazards=Hazards(crash_rate=1.0, max_retries=1))
    failed = {e.trial for e in log if e.kind is Kind.TRIAL_FAILED}
    assert 0 < len(failed) < 20
    for trial in failed:
        assert [e.data["attempt"] for e in log if e.trial == trial and "attempt" in e.data][-1] == 1
    ended = Counter(trial for trial, _, _ in times(log, Kind.PHASE_ENDED))
    assert all(ended[trial] == 2 for trial in set(range(20)) - failed)


def test_a_score_that_is_no_number_fails_the_trial_without_a_retry() -> None:
    log = driven(full(2, 2), Steady(float("nan")), [1.0])
    assert [e.kind for e in log if e.kind in (Kind.PHASE_FAILED, Kind.TRIAL_FAILED)] == [Kind.TRIAL_FAILED] * 2


@settings(max_examples=25, deadline=None)
@given(
    nodes=st.integers(1, 12),
    per_node=st.integers(1, 3),
    speeds=st.floats(0, 1),
    crash=st.floats(0, 0.5),
    hang=st.floats(0, 0.2),
    retries=st.integers(0, 3),
    restart=st.floats(0, 3),
    seed=st.integers(0, 10_000),
)
def test_whatever_goes_wrong_every_study_ends_in_order(
    nodes, per_node, speeds, crash, hang, retries, restart, seed
) -> None:
    hazards = Hazards(crash, hang, 2.0, restart, retries)
    cluster = VirtualCluster(nodes, per_node, None, speeds, 0.1, 0.1, hazards, seed)
    log: list = []
    outcome = simulate(HyperTrick(RandomSearcher(SPACE), 15, 4), RandomTimes(seed), cluster, events=log)
    ledger = Ledger(log)
    trials = {e.trial for e in log if e.kind is Kind.RUN}
    assert len(trials) == outcome.trials == 15
    assert {ledger.trials[trial].state for trial in trials} <= {TrialState.STOPPED, TrialState.FAILED}
    assert max(Counter((e.trial, e.phase) for e in log if e.kind is Kind.PHASE_ENDED).values(), default=1) == 1
    assert [e.at for e in log] == sorted(e.at for e in log)
    assert 0 < outcome.occupancy <= 1 + 1e-9
    _nobody_runs_twice_at_once(log)
    _no_slot_idles_while_there_is_work(log)


def _nobody_runs_twice_at_once(log) -> None:
    spans = frames_of(log).spans
    for by in ("trial", "slot"):
        own = spans.sort_values([by, "started_s"])
        same = own[by].to_numpy()[1:] == own[by].to_numpy()[:-1]
        assert (own["started_s"].to_numpy()[1:] >= own["ended_s"].to_numpy()[:-1] - 1e-9)[same].all()


def _no_slot_idles_while_there_is_work(log) -> None:
    """Between two moments at which something happens: all slots that are up run something, until all has started."""
    last = max(e.at for e in log if e.kind is Kind.RUN)
    up, running = set(), {}
    for event, following in zip(log, [*log[1:], None], strict=True):
        if event.kind is Kind.SLOT_JOINED:
            up.add(event.slot)
        elif event.kind is Kind.SLOT_LOST:
            up.discard(event.slot)
        elif event.kind is Kind.PHASE_STARTED:
            running[event.slot] = event.trial
        elif event.kind in (Kind.PHASE_ENDED, Kind.PHASE_FAILED, Kind.TRIAL_FAILED):
            running.pop(event.slot)
        if following is not None and following.at > event.at and following.at <= last:
            assert set(running) == up


@settings(max_examples=4, deadline=None)
@given(
    nodes=st.integers(1, 40),
    speeds=st.floats(0, 1),
    rate=st.sampled_from([0.05, 0.1, 0.25, 0.5]),
    n_phases=st.integers(2, 8),
    first=st.integers(0, 1000),
)
def test_the_completion_rate_of_hypertrick_is_that_of_eq_9_when_scores_are_stationary(
    nodes, speeds, rate, n_phases, first
) -> None:
    """On any cluster; what is tolerated beside chance is that ranks among few come in steps."""
    alphas = []
    for seed in range(first, first + 12):
        model = SyntheticCurves.family("unrelated", SPACE, n_phases, seed=seed)
        scheduler = HyperTrick(RandomSearcher(SPACE, seed), 100, n_phases, rate)
        cluster = VirtualCluster(nodes, speed_spread=speeds, seed=seed)
        alphas.append(simulate(scheduler, model, cluster).completion_rate)
    error = np.std(alphas, ddof=1) / math.sqrt(len(alphas))
    assert np.mean(alphas) == pytest.approx(expected_completion_rate(rate, n_phases), abs=4 * error + 0.02)


@pytest.mark.parametrize(
    "bad",
    [
        {"nodes": 0},
        {"nodes": 2, "speeds": [1.0]},
        {"nodes": 2, "speeds": [1.0, 0.0]},
        {"startup_s": -1.0},
        {"switch_s": math.inf},
        {"nodes": 1, "speeds": [1.0], "speed_spread": 0.1},
        {"speed_spread": -1},
        {"slots_per_node": 0},
        {"nodes": 2, "slots_per_node": 2, "n_ranks": 5},
    ],
)
def test_senseless_clusters_are_refused(bad) -> None:
    with pytest.raises(InvalidInput):
        VirtualCluster(**bad)


@pytest.mark.parametrize(
    "bad", [{"crash_rate": -1.0}, {"stall_s": 0.0}, {"max_retries": -1}, {"restart_s": float("inf")}]
)
def test_senseless_hazards_are_refused(bad) -> None:
    with pytest.raises(InvalidInput):
        Hazards(**bad)


def test_accidents_share_no_draws_with_configurations_and_node_speeds() -> None:
    """A list of numbers loses its last zeros as a seed, and the first attempts of all are made of zeros."""
    hazards = Hazards(crash_rate=1.0)
    for seed in range(20):
        accidents = {VirtualCluster(1, hazards=hazards, seed=seed).accident(trial=0, phase=0, attempt=0)[0]}
        for others in (seed, [seed, 0], [seed, 2], [seed, 0, 0, 1]):
            assert hazards.draw(np.random.default_rng(others), 1)[0] not in accidents


def test_every_attempt_at_every_phase_of_every_trial_has_an_accident_of_its_own() -> None:
    cluster = VirtualCluster(1, hazards=Hazards(crash_rate=1.0))

    def crash(*attempt: int) -> float:
        return cluster.accident(*attempt)[0]

    attempts = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    assert len({crash(*attempt) for attempt in attempts}) == 4
    assert crash(0, 1, 0) == crash(0, 1, 0)
