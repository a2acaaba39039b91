"""Trials that need several workers: brought together on real worker processes, killed, hung, retried, and simulated."""

import re

import pytest

from tests.cluster.ba3c_gangs import InThreads, Mortal
from tests.cluster.conftest import stalls_once
from tests.cluster.gang import Gang
from tests.support import SPACE, MemoryLog, RandomTimes, score_of, until, virtual_executor
from workbench.algos.search import FullRuns, HyperTrick, ListSearcher, RandomSearcher
from workbench.analysis import occupancy
from workbench.core.budget import Budget
from workbench.core.domains import LogUniform
from workbench.core.drive import drive
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Job, Kind, Verdict
from workbench.core.space import Space
from workbench.knowledge.frames import frames_of
from workbench.simulation import simulate
from workbench.simulation.cluster import VirtualCluster
from workbench.simulation.trained import TrainedPhases
from workbench.study.study import Study

CONFIG = {"lr": 1e-3}
BRIEF = {"min_games": 1, "max_episode_frames": 10}  # some game ends in every phase, so phases have just their updates


@pytest.fixture(autouse=True)
def patient(monkeypatch) -> None:
    """On a loaded machine the death of a worker may become known late; what is asserted is its cause, not when."""
    monkeypatch.setattr("workbench.cluster.dask._CAUSE_S", 120.0)


def of(log, kind):
    return [e for e in log if e.kind is kind]


def test_workers_form_one_slot_and_each_holds_a_rank_of_the_trial(executor_of) -> None:
    log = MemoryLog()
    executor = executor_of(Gang())
    assert (executor.n_slots, executor.n_free) == (1, 1)
    assert drive(HyperTrick(RandomSearcher(SPACE), 4, 3), executor, log, seed=4)
    runs = {e.trial: e.data for e in of(log, Kind.RUN)}
    assert len(runs) == 4
    for event in of(log, Kind.PHASE_ENDED):
        run, metrics = runs[event.trial], event.data["metrics"]
        assert event.data["score"] == score_of(run["config"], run["seed"], event.phase)
        assert (metrics["ranks"], metrics["processes"]) == (2, 2)
        assert metrics["phases_run"] == event.phase + 1  # live, or from rank 0's checkpoint
    assert {(e.slot, e.data["node"], e.data["workers"]) for e in of(log, Kind.SLOT_JOINED)} == {(0, "0+1", 2)}


STALLED = r"rank {rank} of 2: no sign of progress for \d+ s on \S+; the worker was given up"


@pytest.mark.parametrize(
    ("what", "who", "why", "error"),
    [
        ("kill", 1, "crash", r"rank 1 of 2: the worker on \S+ died: killed by SIGKILL"),
        ("kill", 0, "crash", r"rank 0 of 2: the worker on \S+ died: killed by SIGKILL"),
        pytest.param("hang", 1, "stall", STALLED.format(rank=1), marks=pytest.mark.slow),
        pytest.param("stop_process", 0, "stall", STALLED.format(rank=0), marks=pytest.mark.slow),
        ("fail", 1, "exception", r"rank 1 of 2: OSError: the disk is on fire"),
    ],
)
def test_a_lost_rank_costs_one_attempt_with_one_clear_error(executor_of, tmp_path, what, who, why, error) -> None:
    once, log = tmp_path / "once", MemoryLog()
    executor = executor_of(Gang(once=str(once), what=what, who=who), stall_s=600.0)
    if why == "stall":
        stalls_once(executor, lambda: once.exists() and not of(log, Kind.PHASE_FAILED), stall_s=4.0)
    assert drive(FullRuns(RandomSearcher(SPACE), 2, 3), executor, log, seed=1)
    (failed,) = of(log, Kind.PHASE_FAILED)
    assert (failed.phase, failed.data["why"]) == (1, why)
    assert re.fullmatch(error, failed.data["error"]), failed.data["error"]
    ended = of(log, Kind.PHASE_ENDED)
    assert sorted((e.trial, e.phase) for e in ended) == [(t, p) for t in range(2) for p in range(3)]
    assert all(e.data["metrics"]["phases_run"] == e.phase + 1 for e in ended)  # it went on from its checkpoint
    assert len(of(log, Kind.SLOT_LOST)) == (why != "exception")
    assert {e.slot for e in of(log, Kind.SLOT_JOINED)} == {0}  # the same workers are the same slot again


def test_phases_that_rank_0_must_run_again_are_run_again_by_all(executor_of, tmp_path) -> None:
    def run_phase(executor, phase, checkpoint=None):
        executor.start(Job(0, phase, CONFIG, 0, checkpoint))
        (ended,) = of(until(executor, Kind.PHASE_ENDED), Kind.PHASE_ENDED)
        executor.apply(0, Verdict.PAUSE)
        return ended

    executor = executor_of(Gang())
    second = run_phase(executor, 1, run_phase(executor, 0).data["checkpoint"])
    (tmp_path / "checkpoints" / second.data["checkpoint"] / "phase.txt").write_text("7")
    third = run_phase(executor_of(Gang()), 2, second.data["checkpoint"])
    assert third.data["metrics"]["phases_run"] == 3
    assert "ran 1 phase again" in third.data["recovered"]


def test_a_dropped_gang_ends_on_every_worker_and_its_slot_serves_another(executor_of, tmp_path) -> None:
    executor = executor_of(Gang(once=str(tmp_path / "once"), what="go_on_for_ever", who=0, when=0))
    executor.start(Job(0, 0, CONFIG, 0))
    while not any(e.data["metrics"] for e in of(executor.wait(60), Kind.PROGRESS)):
        pass  # ranks are still on their way to each other
    executor.drop(0)
    assert executor.n_free == 1
    executor.start(Job(1, 0, CONFIG, 0))
    (ended,) = of(until(executor, Kind.PHASE_ENDED), Kind.PHASE_ENDED)
    assert ended.trial == 1


def test_too_few_workers_are_said_so_at_once(executor_of, tmp_path) -> None:
    with pytest.raises(InvalidInput, match="needs a gang of 3 workers, the cluster has 2"):
        executor_of(Gang(n_ranks=3))
    with pytest.raises(InvalidInput, match="needs a gang of 2 nodes, the study has 1"):
        Study("x", FullRuns(RandomSearcher(SPACE), 2, 1), Gang(), db=tmp_path / "kb.db", nodes=1)


def test_hypertrick_over_ba3c_gangs_on_cartpole(executor_of) -> None:
    from workbench.algos.rl.ba3c.trial import BA3C

    space = Space({"learning_rate": LogUniform(1e-4, 1e-2)})
    factory = BA3C("CartPole-v1", Budget(updates=5), n_ranks=2, n_agents=2, batch=8, evaluate_every=None, **BRIEF)
    log = MemoryLog()
    assert drive(HyperTrick(RandomSearcher(space), 3, 2), executor_of(factory), log, seed=2)
    ended = of(log, Kind.PHASE_ENDED)
    assert not of(log, Kind.PHASE_FAILED)
    assert len(ended) >= 4
    for event in ended:
        assert event.data["metrics"]["updates"] == 5 * (event.phase + 1)
        assert event.data["metrics"]["train_batch_mean"] == 16


SERVED = ({"n_awaited": 1}, {"synchronous": False}, {"n_awaited": 1, "n_servers": 2})
SLOW_HOWS = [pytest.param(how, marks=pytest.mark.slow) for how in SERVED]


@pytest.mark.parametrize("how", [{}, *SLOW_HOWS])
def test_a_killed_rank_of_ba3c_ends_the_phase_with_one_error_and_it_is_retried(executor_of, tmp_path, how) -> None:
    """Five updates a phase; rank 1 dies in the second, whose updates are counted on from the first's checkpoint."""
    once = tmp_path / "once"
    factory = Mortal(
        "CartPole-v1",
        phase=Budget(updates=5),
        n_ranks=2,
        n_agents=2,
        batch=8,
        evaluate_every=None,
        **BRIEF,
        once=str(once),
        **how,
    )
    log = MemoryLog()
    scheduler = FullRuns(ListSearcher([{"learning_rate": 1e-3}]), 1, 3)
    assert drive(scheduler, executor_of(factory), log, seed=1)
    assert once.exists()
    lost = of(log, Kind.PHASE_FAILED)
    assert len(lost) == 1, [(e.phase, e.data["why"], e.data["error"]) for e in lost]
    (failed,) = lost
    assert (failed.phase, failed.data["why"]) == (1, "crash")
    assert re.fullmatch(r"rank 1 of 2: the worker on \S+ died: killed by SIGKILL", failed.data["error"]), failed.data[
        "error"
    ]
    ended = {e.phase: e.data["metrics"]["updates"] for e in of(log, Kind.PHASE_ENDED)}
    assert ended == {0: 5, 1: 10, 2: 15}


# -- in virtual time ------------------------------------------------------------------------------------------------


class Steady:
    def phase(self, trial, phase, config, seed):
        return 1.0, 1.0


def simulated(speeds, n_ranks, n_trials=2, **settings) -> MemoryLog:
    log = MemoryLog()
    executor = virtual_executor(Steady(), VirtualCluster(len(speeds), speeds=speeds, n_ranks=n_ranks, **settings))
    assert drive(FullRuns(RandomSearcher(SPACE), n_trials, 1), executor, log)
    return log


def test_a_simulated_gang_is_as_fast_as_its_slowest_and_what_is_left_over_idles() -> None:
    log = simulated([1.0, 0.5, 4.0, 2.0, 8.0], 2)
    assert [(e.trial, e.at) for e in of(log, Kind.PHASE_ENDED)] == [(1, 0.5), (0, 2.0)]
    joined = [(e.slot, e.data["node"], e.data["workers"]) for e in of(log, Kind.SLOT_JOINED)]
    assert joined == [(0, "node-0+node-1", 2), (1, "node-2+node-3", 2)]
    assert "workers" not in of(simulated([1.0], 1), Kind.SLOT_JOINED)[0].data
    with pytest.raises(InvalidInput, match="gang of 3 workers, the cluster has 2"):
        VirtualCluster(nodes=2, n_ranks=3)


def test_hypertrick_over_ba3c_gangs_that_truly_train_in_virtual_time(tmp_path) -> None:
    """Four nodes are two gangs of two; the same again gives the same scores and the same verdicts."""
    space = Space({"learning_rate": LogUniform(1e-4, 1e-2)})
    factory = InThreads("CartPole-v1", Budget(updates=2), n_ranks=2, n_agents=2, batch=8, evaluate_every=None, **BRIEF)
    played = []
    for folder in ("a", "b"):
        events: list = []
        model = TrainedPhases(factory, tmp_path / folder, spread=0.3)
        cluster = VirtualCluster(nodes=4, n_ranks=2)
        outcome = simulate(HyperTrick(RandomSearcher(space), 6, 3, 0.4), model, cluster, seed=2, events=events)
        verdicts = [(e.trial, e.phase, e.data["verdict"]) for e in of(events, Kind.DECISION)]
        played.append((outcome.makespan, outcome.scores.tolist(), verdicts))
        for event in of(events, Kind.PHASE_ENDED):
            assert event.data["metrics"]["updates"] == 2 * (event.phase + 1)
            assert event.data["metrics"]["train_batch_mean"] == 16
    assert outcome.slots == 2
    assert 6 < outcome.phases < 18  # some were stopped early
    assert played[0] == played[1]


def test_occupancy_counts_a_gang_as_one_slot_and_so_is_that_of_its_workers() -> None:
    """Two gangs of two; the first works 2 s, the second 0.5 s of the study's 2: 2.5 of 4 gang-seconds."""
    frames = frames_of(simulated([1.0, 0.5, 4.0, 2.0], 2))
    assert occupancy(frames.spans, frames.slots, 2.0).share == pytest.approx(2.5 / 4)


def test_a_scheduler_decides_alike_over_gangs_and_over_single_workers_in_virtual_time() -> None:
    scheduler = HyperTrick(RandomSearcher(SPACE), 16, 3)
    gangs = simulate(scheduler, RandomTimes(), VirtualCluster(nodes=8, n_ranks=4), seed=1)
    single = simulate(scheduler, RandomTimes(), VirtualCluster(nodes=2), seed=1)
    assert (gangs.makespan, gangs.phases, gangs.slots) == (single.makespan, single.phases, single.slots)
    assert gangs.occupancy == single.occupancy


def test_gangs_decide_on_dask_as_they_do_in_the_simulator(executor_of) -> None:
    """One slot each: the order of reports is that of the trials, so the decisions must be the same."""

    class Scores:
        def __init__(self, log) -> None:
            self.scores = {(e.trial, e.phase): e.data["score"] for e in of(log, Kind.PHASE_ENDED)}

        def phase(self, trial, phase, config, seed):
            return 1.0, self.scores[trial, phase]

    def verdicts(log):
        return [(e.trial, e.phase, e.data["verdict"]) for e in of(log, Kind.DECISION)]

    configs = [{"lr": 10.0**-n} for n in (2, 3, 4, 5)]
    real, virtual = MemoryLog(), MemoryLog()
    assert drive(HyperTrick(ListSearcher(configs), 4, 2), executor_of(Gang()), real, seed=5)
    executor = virtual_executor(Scores(real), VirtualCluster(2, n_ranks=2))
    assert drive(HyperTrick(ListSearcher(configs), 4, 2), executor, virtual, seed=5)
    assert verdicts(virtual) == verdicts(real)
