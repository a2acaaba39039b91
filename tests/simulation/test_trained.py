"""Real trials in virtual time: weights travel by checkpoint, times are as told."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.support import SPACE, Deterministic, MemoryLog, score_of, virtual_executor
from workbench.algos.quadratic import Quadratic
from workbench.algos.search import FullRuns, ListSearcher, RandomSearcher
from workbench.core.drive import drive
from workbench.core.errors import InvalidInput, WorkbenchError
from workbench.core.protocols import Job, Kind
from workbench.core.seeds import trial_seed
from workbench.simulation import simulate
from workbench.simulation.cluster import Hazards, VirtualCluster
from workbench.simulation.trained import TrainedPhases


def test_trials_train_and_go_on_from_their_checkpoints(tmp_path) -> None:
    log = MemoryLog()
    executor = virtual_executor(TrainedPhases(Deterministic, tmp_path), 2)
    assert drive(FullRuns(RandomSearcher(SPACE), 3, 3), executor, log, seed=5)
    config = {e.trial: e.data["config"] for e in log if e.kind is Kind.RUN}
    ended = [e for e in log if e.kind is Kind.PHASE_ENDED]
    assert len(ended) == 9
    for e in ended:
        assert e.data["score"] == score_of(config[e.trial], trial_seed(5, e.trial), e.phase)
        assert e.data["metrics"]["phases_run"] == e.phase + 1


def test_a_lost_attempt_is_trained_again_from_the_same_checkpoint(tmp_path) -> None:
    cluster = VirtualCluster(2, hazards=Hazards(crash_rate=0.3, max_retries=50), seed=1)
    events: list = []
    outcome = simulate(
        FullRuns(RandomSearcher(SPACE), 3, 3), TrainedPhases(Deterministic, tmp_path), cluster, events=events
    )
    assert outcome.retries > 0
    assert all(e.data["metrics"]["phases_run"] == e.phase + 1 for e in events if e.kind is Kind.PHASE_ENDED)


def test_progress_inside_a_phase_comes_at_even_times(tmp_path) -> None:
    events: list = []
    scheduler = FullRuns(ListSearcher([{"h0": 1.0, "h1": 1.0}]), 1, 1)
    simulate(scheduler, TrainedPhases(Quadratic(), tmp_path, phase_s=8.0), VirtualCluster(1), events=events)
    points = [e for e in events if e.kind is Kind.PROGRESS]
    assert [e.at for e in points] == [2.0, 4.0, 6.0, 8.0]
    assert [e.data["metrics"]["updates"] for e in points] == [1, 2, 3, 4]
    q = [e.data["metrics"]["score"] for e in points]
    assert q == pytest.approx([1.2 - 2 * (0.9 * 0.96**n) ** 2 for n in (1, 2, 3, 4)])


def test_durations_are_fixed_spread_or_measured(tmp_path) -> None:
    scheduler = FullRuns(RandomSearcher(SPACE), 2, 2)
    spread = TrainedPhases(Deterministic, tmp_path, phase_s=2.0, spread=0.5)
    drawn = simulate(scheduler, spread)
    assert drawn.makespan == simulate(scheduler, spread).makespan != 4.0
    assert drawn.makespan != simulate(scheduler, replace(spread, seed=1)).makespan
    took = (drawn.busy_to_s - drawn.busy_from_s).round(9)
    assert len(set(took)) == 4  # by trial and by phase
    as_configurations = 2.0 * math.exp(0.5 * np.random.default_rng(0).normal())
    assert round(as_configurations, 9) not in took, "drawn from what the first configuration is drawn from"
    assert simulate(scheduler, TrainedPhases(Deterministic, tmp_path, phase_s=2.0)).makespan == 4.0
    assert simulate(scheduler, TrainedPhases(Deterministic, tmp_path, phase_s=None)).makespan > 0


CLOSED: list[int] = []


class Diverges(Deterministic):
    def train_phase(self, progress):
        raise FloatingPointError("loss is nan")

    def close(self) -> None:
        CLOSED.append(self.seed)


def test_training_that_diverges_fails_its_trial_alone_which_is_closed(tmp_path) -> None:
    CLOSED.clear()
    events: list = []
    simulate(FullRuns(RandomSearcher(SPACE), 2, 2), TrainedPhases(Diverges, tmp_path), events=events)
    assert [e.trial for e in events if e.kind is Kind.TRIAL_FAILED] == [0, 1]
    assert sorted(CLOSED) == sorted(trial_seed(0, trial) for trial in (0, 1))


class Scoreless(Deterministic):
    def train_phase(self, progress):
        return {"loss": 1.0}


def test_training_without_a_score_is_refused_in_one_line(tmp_path) -> None:
    with pytest.raises(WorkbenchError, match="train_phase returned no score"):
        simulate(FullRuns(RandomSearcher(SPACE), 1, 1), TrainedPhases(Scoreless, tmp_path))


@pytest.mark.parametrize("wrong", [{"phase_s": 0.0}, {"phase_s": math.inf}, {"phase_s": "1"}, {"spread": -1.0}])
def test_durations_that_cannot_be_are_refused(tmp_path, wrong) -> None:
    with pytest.raises(InvalidInput, match=r"TrainedPhases needs"):
        TrainedPhases(Deterministic, tmp_path, **wrong)


def test_a_phase_that_is_run_again_leaves_nothing_of_the_first_time(tmp_path) -> None:
    phases = TrainedPhases(Deterministic, tmp_path)
    job = Job(0, 0, RandomSearcher(SPACE).suggest(0), 0)
    phases.run(job)
    (folder,) = {path.parent for path in tmp_path.rglob("*") if path.is_file()}
    (folder / "left").touch()
    phases.run(job)
    assert not (folder / "left").exists()
