"""The cluster in virtual time: its costs, its accidents, and that it decides as the real one does."""

import time
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import SPACE, Deterministic, MemoryLog, RandomTimes
from workbench.algos.search import FullRuns, HyperTrick, ListSearcher, RandomSearcher
from workbench.algos.search.hypertrick import expected_completion_rate
from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.dask import DaskExecutor
from workbench.cluster.models import SyntheticCurves
from workbench.cluster.simulated import Hazards, SimulatedExecutor
from workbench.cluster.virtual import VirtualCluster
from workbench.core.drive import Ledger, TrialState, drive
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Job, Kind, Verdict
from workbench.knowledge.frames import frames_of
from workbench.simulation import simulate


class Steady:
    """Every phase takes a second."""

    def __init__(self, score=1.0) -> None:
        self.score = score

    def phase(self, trial, phase, config, seed):
        return 1.0, self.score


def driven(scheduler, model, speeds, **settings) -> MemoryLog:
    log = MemoryLog()
    executor = SimulatedExecutor(model, speeds, **settings)
    executor.open(0.0)
    assert drive(scheduler, executor, log)
    return log


def full(n_trials, n_phases) -> FullRuns:
    return FullRuns(RandomSearcher(SPACE), n_trials, n_phases)


def times(log, kind) -> list[tuple]:
    return [(e.trial, e.phase, e.at) for e in log if e.kind is kind]


def test_starting_costs_once_and_a_faster_slot_takes_less() -> None:
    log = driven(full(2, 2), Steady(), [1.0, 2.0], startup_s=0.5)
    assert times(log, Kind.PHASE_ENDED) == [(1, 0, 1.0), (0, 0, 1.5), (1, 1, 1.5), (0, 1, 2.5)]


def test_coming_back_from_a_pause_costs_the_switch() -> None:
    executor = SimulatedExecutor(Steady(), [1.0], startup_s=0.5, switch_s=0.25)
    executor.open(0.0)
    executor.start(Job(0, 0, {}, 0))
    ended = executor.wait()[-1]
    executor.apply(0, Verdict.PAUSE)
    executor.start(Job(0, 1, {}, 0, ended.data["checkpoint"]))
    assert executor.wait()[-1].at == 1.5 + 1.25


def test_slots_of_a_node_share_its_name() -> None:
    executor = VirtualCluster(2, slots_per_node=2, speeds=[1.0, 3.0]).executor(Steady())
    executor.open(0.0)
    assert executor.speeds == [1.0, 1.0, 3.0, 3.0]
    executor.start(Job(0, 0, {}, 0))
    joined = [e for e in executor.wait() if e.kind is Kind.SLOT_JOINED]
    assert [e.data["node"] for e in joined] == ["node-0", "node-0", "node-1", "node-1"]


def test_a_bound_trial_takes_its_slot_if_that_is_free() -> None:
    executor = SimulatedExecutor(Steady(), [1.0] * 3)
    executor.open(0.0)
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


@settings(max_examples=60, deadline=None)
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
    assert {ledger.state(trial) for trial in trials} <= {TrialState.STOPPED, TrialState.FAILED}
    assert max(Counter((e.trial, e.phase) for e in log if e.kind is Kind.PHASE_ENDED).values(), default=1) == 1
    assert [e.at for e in log] == sorted(e.at for e in log)
    assert 0 < outcome.occupancy <= 1 + 1e-9
    _nobody_runs_twice_at_once(log)
    _no_slot_idles_while_there_is_work(log)


def _nobody_runs_twice_at_once(log) -> None:
    spans = frames_of(log).spans
    for by in ("trial", "slot"):
        for _, own in spans.groupby(by):
            own = own.sort_values("started_s")
            assert (own["started_s"].to_numpy()[1:] >= own["ended_s"].to_numpy()[:-1] - 1e-9).all()


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


def test_the_completion_rate_of_hypertrick_is_that_of_eq_9_when_scores_are_stationary() -> None:
    rates = []
    for seed in range(40):
        model = SyntheticCurves.family("unrelated", SPACE, 5, seed=seed)
        scheduler = HyperTrick(RandomSearcher(SPACE, seed), 100, 5, 0.25)
        rates.append(simulate(scheduler, model, VirtualCluster(10)).completion_rate)
    assert np.mean(rates) == pytest.approx(expected_completion_rate(0.25, 5), abs=4 * np.std(rates) / 40**0.5 + 0.01)


@pytest.mark.parametrize(
    "bad",
    [
        {"nodes": 0},
        {"nodes": 2, "speeds": [1.0]},
        {"nodes": 1, "speeds": [1.0], "speed_spread": 0.1},
        {"speed_spread": -1},
        {"slots_per_node": 0},
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


# -- simulated and real agree -------------------------------------------------------------------------------------

CONFIGS = [
    {"lr": 10.0 ** -(2 + n / 4), "gamma": 0.9, "pause_s": pause}
    for n, pause in enumerate([0.15, 0.40, 0.26, 0.33, 0.21, 0.47, 0.18, 0.29])
]


class Sleeps(Deterministic):
    """Takes as long as its configuration says."""

    def train_phase(self, progress):
        time.sleep(self.config["pause_s"])
        return super().train_phase(progress)


class Recorded:
    """What a log says of every phase, which lasts from the end of the one before it on its slot: gaps count too."""

    def __init__(self, log) -> None:
        self.known, free = {}, defaultdict(float)
        for e in log:
            if e.kind is Kind.PHASE_ENDED:
                self.known[e.trial, e.phase] = (e.at - free[e.slot], e.data["score"])
                free[e.slot] = e.at

    def phase(self, trial, phase, config, seed):
        return self.known[trial, phase]


def decisions(log) -> list[tuple]:
    return [(e.trial, e.phase, dict(e.data)) for e in log if e.kind is Kind.DECISION]


def placed(log) -> dict[int, list[int]]:
    slots = defaultdict(list)
    for event in log:
        if event.kind is Kind.PHASE_STARTED:
            slots[event.slot].append((event.trial, event.phase))
    return dict(slots)


def test_the_simulator_decides_as_the_real_cluster_did(client, tmp_path) -> None:
    def scheduler() -> HyperTrick:
        return HyperTrick(ListSearcher(CONFIGS), len(CONFIGS), 3, 0.25)

    executor = DaskExecutor(client, Sleeps, CheckpointStore(str(tmp_path)))
    executor.open(0.0)
    real = MemoryLog()
    assert drive(scheduler(), executor, real, seed=3)
    executor.close()
    virtual = driven(scheduler(), Recorded(real), [1.0, 1.0])
    assert decisions(virtual) == decisions(real)
    assert sorted(placed(virtual).values()) == sorted(placed(real).values())
    runs = [(e.trial, e.data["config"]) for e in real if e.kind is Kind.RUN]
    assert [(e.trial, e.data["config"]) for e in virtual if e.kind is Kind.RUN] == runs
