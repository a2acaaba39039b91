"""What holds for trials of every system: budgets, checkpoints, failures, threads, and how old experiences may get."""

import math
import multiprocessing
import os
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
import torch

from tests.algos.rl.ba3c.gangs import cartpole, weights
from tests.support import breaking, silent
from workbench.algos.rl import trial as trial_module
from workbench.algos.rl.a3c.trial import A3C
from workbench.algos.rl.ba3c.trial import BA3C
from workbench.algos.rl.checkpoint import read_checkpoint
from workbench.algos.rl.envs import make_envs
from workbench.algos.rl.ga3c.trial import GA3C
from workbench.algos.rl.hts.trial import HTS
from workbench.algos.rl.learner import DivergenceError, Learner
from workbench.algos.rl.meter import Meter
from workbench.algos.rl.predictions import PredictionQueue
from workbench.algos.rl.trial import anneal
from workbench.core.budget import Budget

GA3C_8 = GA3C("CartPole-v1", Budget(updates=20), n_agents=8, emulator_threads=1)
HTS_4 = HTS(
    "CartPole-v1",
    Budget(updates=6),
    n_agents=4,
    n_executors=2,
    n_actors=2,
    sync_interval=6,
    n_epochs=2,
    n_minibatches=2,
    min_games=1,
    device="cpu",
)
IN_TURN_TOO = pytest.mark.parametrize(
    "factory",
    [GA3C_8, replace(GA3C_8, lockstep=True), HTS_4, replace(HTS_4, concurrent=False)],
    ids=["ga3c", "ga3c in turn", "hts", "hts in turn"],
)


class StoppedError(Exception):
    pass


def stop(metrics):
    raise StoppedError


def n_tasks(most):
    """Count the process's threads, Python's and others; one that has been joined may take a moment to disappear."""
    end = time.monotonic() + 60
    while (n := len(os.listdir("/proc/self/task"))) > most and time.monotonic() < end:
        pass
    return n


def left_behind(most=0):
    """Count threads, processes and mapped shared memory."""
    with open("/proc/self/maps") as maps:
        shared = sum("/dev/shm" in line for line in maps)
    return n_tasks(most), len(threading.enumerate()), len(multiprocessing.active_children()), shared


STOPPED = [
    (GA3C, "CartPole-v1", 10),
    (A3C, "CartPole-v1", 10),
    (HTS, "CartPole-v1", 10),
    (GA3C, "Pong", 3),  # the emulator's own threads as well
    *(pytest.param(kind, "CartPole-v1", 30, marks=pytest.mark.slow) for kind in (GA3C, A3C, HTS)),
    pytest.param(GA3C, "Pong", 20, marks=pytest.mark.slow),
    pytest.param(HTS, "Pong", 20, marks=pytest.mark.slow),
]


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads as Linux lists them")
@pytest.mark.parametrize(("kind", "game", "times"), STOPPED)
def test_stopping_in_mid_phase_leaves_nothing_behind(kind, game, times, monkeypatch):
    monkeypatch.setattr("workbench.algos.rl.trial.PROGRESS_S", 0.002)
    threads = {"n_predictors": 2, "n_trainers": 2} if kind is GA3C else {}
    settings = kind(game=game, phase=Budget(seconds=60), n_agents=2, noop_max=0, init="uniform", **threads)
    trial = settings({}, 0)
    baseline: tuple = ()
    for round_ in range(times):
        for _ in range(1 + round_ % 2):  # stopped, or paused and taken up again
            with pytest.raises(StoppedError):
                trial.train_phase(stop)
        trial.close()
        if round_ == 0:
            baseline = left_behind(min(n_tasks(10**6) for _ in range(1000)))  # long enough for threads that are ending
        assert all(now <= then for now, then in zip(left_behind(baseline[0]), baseline, strict=True))


@IN_TURN_TOO
@pytest.mark.parametrize(
    ("phase", "more"),
    [(Budget(episodes=10), 10), (Budget(frames=200), 40), (Budget(updates=8), 8), (Budget(seconds=0.1), 40)],
)
def test_a_phase_spends_its_budget_and_no_more(phase, more, factory, monkeypatch) -> None:
    monkeypatch.setattr("workbench.algos.rl.trial.PROGRESS_S", 0.05)  # HTS looks at the clock as often
    trial = replace(factory, phase=phase, min_games=1)({}, 0)
    for number in (1, 2):
        metrics = trial.train_phase(silent)
        if isinstance(factory, HTS) and phase.unit != "seconds":  # it ends at a barrier, where games are counted
            assert [executor.t for executor in trial._groups] == [0] * len(trial._groups)
        spent = metrics["seconds"] if phase.unit == "seconds" else metrics[phase.unit] / number
        assert phase.amount <= spent <= phase.amount * 1.3 + more
        assert math.isfinite(metrics["score"])
    trial.close()


QUICK_PONG = {"game": "Pong", "n_agents": 2, "max_episode_frames": 40, "min_games": 3, "init": "uniform"}


@pytest.mark.parametrize(
    ("factory", "updates"),
    [
        (A3C(**QUICK_PONG, phase=Budget(frames=320), t_max=5), 10),
        (GA3C(**QUICK_PONG, phase=Budget(frames=800), n_groups=1, agents_ready=0.5, t_max=3), 3),
        (HTS(**QUICK_PONG, phase=Budget(frames=400), sync_interval=10), 3),
    ],
    ids=["a3c", "ga3c", "hts"],
)
def test_pong_from_pixels_runs_a_short_phase(factory, updates) -> None:
    trial = factory({}, 1)
    metrics = trial.train_phase(silent)
    trial.close()
    assert metrics["frames"] >= factory.phase.amount
    assert metrics["updates"] >= updates
    assert -21 <= metrics["score"] <= 21


@IN_TURN_TOO
def test_progress_is_called_and_may_end_the_phase(factory, monkeypatch) -> None:
    monkeypatch.setattr("workbench.algos.rl.trial.PROGRESS_S", 0.05)
    seen, in_time = [], {"score", "policy_lag_mean"} | ({"learning_s"} if isinstance(factory, HTS) else set())

    def progress(metrics):
        seen.append(metrics)
        if len(seen) > 1 and in_time <= metrics.keys():
            raise StoppedError

    trial = replace(factory, phase=Budget(seconds=60))({}, 0)
    with pytest.raises(StoppedError):
        trial.train_phase(progress)
    assert {"frames", "pps", "tps"} <= seen[-1].keys()
    assert seen[-1]["frames"] > seen[0]["frames"]
    trial.settings = replace(trial.settings, phase=Budget(updates=5))
    assert trial.train_phase(silent)["updates"] > 5  # the trial itself is unharmed
    trial.close()


@pytest.mark.parametrize("factory", [GA3C_8, HTS_4, replace(HTS_4, method="ppo")], ids=["ga3c", "hts", "hts by ppo"])
def test_save_and_load_go_on_from_where_it_was(factory, tmp_path) -> None:
    first, second = factory({"learning_rate": 1e-3}, 7), factory({"learning_rate": 1e-4}, 7)
    before = first.train_phase(silent)
    first.save(tmp_path)
    second.load(tmp_path)
    assert np.array_equal(weights(first), weights(second))
    assert all(map(torch.equal, first.learner.optimizer.square_avg, second.learner.optimizer.square_avg))
    assert second.learner.optimizer.lr == 1e-4  # the config is its own
    assert [g.bit_generator.state for g in first._generators] == [g.bit_generator.state for g in second._generators]
    after = second.train_phase(silent)
    more = after["updates"] - before["updates"]
    assert more == 6 if isinstance(factory, HTS) else more >= 20
    assert after["frames"] == after["steps"] > before["steps"]
    assert after["episodes"] > before["episodes"]
    first.close()
    second.close()


@pytest.mark.parametrize(
    "factory",
    [A3C("CartPole-v1", Budget(updates=8), n_agents=3, min_games=1), cartpole(n_ranks=1), HTS_4],
    ids=["a3c", "ba3c", "hts"],
)
def test_a_checkpoint_passes_to_ga3c_and_back(factory, tmp_path) -> None:
    ours = factory({}, 0)
    ours.train_phase(silent)
    ours.save(tmp_path)
    ours.close()
    other = GA3C("CartPole-v1", Budget(updates=2), n_agents=2, lockstep=True)({}, 1)
    other.load(tmp_path)
    assert other.learner.updates == ours.learner.updates
    assert np.array_equal(weights(other), weights(ours))
    updates = other.train_phase(silent)["updates"]
    other.save(tmp_path)
    other.close()
    back = factory({}, 2)
    back.load(tmp_path)
    assert np.array_equal(weights(back), weights(other))
    if isinstance(factory, A3C):
        back._open()
        for own in back._copies:  # agents begin with these weights as well
            assert all(map(torch.equal, own.parameters(), back.model.parameters()))
    assert back.train_phase(silent)["updates"] >= updates + factory.phase.amount
    back.close()


@pytest.mark.parametrize(
    "factory",
    [
        A3C("CartPole-v1", Budget(frames=200), n_agents=3, lockstep=True, min_games=3),
        GA3C("CartPole-v1", Budget(updates=20), n_agents=6, lockstep=True, min_training_batch=20, min_games=3),
        GA3C(**QUICK_PONG, phase=Budget(updates=3), lockstep=True, min_training_batch=20),
    ],
    ids=["a3c", "ga3c", "ga3c from pixels"],
)
def test_lockstep_gives_the_same_trajectory_twice(factory) -> None:
    runs = []
    for _ in range(2):
        trial = factory({}, 3)
        metrics = trial.train_phase(silent)
        trial.close()
        counted = {k: metrics[k] for k in ("score", "frames", "episodes", "policy_loss", "entropy", "grad_norm")}
        runs.append((counted, weights(trial).tolist()))
    assert runs[0] == runs[1]


@pytest.mark.parametrize(
    "factory",
    [
        GA3C_8,
        replace(GA3C_8, lockstep=True),
        *(replace(HTS_4, method=method, concurrent=at_once) for method in ("a2c", "ppo") for at_once in (True, False)),
    ],
)
def test_weights_that_are_no_numbers_fail_the_trial_with_a_reason(factory) -> None:
    trial = factory({}, 0)
    with torch.no_grad():
        trial.model.head.weight[0, 0] = math.nan
    with pytest.raises(DivergenceError, match=r"training diverged at update 0.*learning rate 0\.001"):
        trial.train_phase(silent)
    with pytest.raises(RuntimeError, match="has failed"):
        trial.train_phase(silent)
    trial.close()


@pytest.mark.parametrize("factory", [GA3C_8, HTS_4], ids=["ga3c", "hts"])
def test_agents_waiting_for_a_dead_predictor_are_let_go(factory) -> None:
    trial = factory({}, 0)
    trial.learner.predict = breaking("device gone")
    with pytest.raises(OSError, match="device gone"):
        trial.train_phase(silent)
    trial.close()


@pytest.mark.parametrize("waiting", [1, 4, 16])
def test_the_training_queue_bounds_the_policy_lag(waiting):
    """While an agent records t_max steps and its segment waits, the others can only hand in so much."""
    n_agents, t_max = 4, 2
    trial = GA3C(
        game="CartPole-v1",
        phase=Budget(updates=80),
        n_agents=n_agents,
        n_groups=1,
        training_queue=waiting,
        min_training_batch=1,
    )({"t_max": t_max}, 0)
    metrics = trial.train_phase(silent)
    trial.close()
    lags = np.flatnonzero(trial._meter.reading().lags)
    assert lags.max() <= n_agents * t_max + waiting + n_agents
    assert metrics["policy_lag_p95"] <= lags.max()


def test_agents_wait_while_the_queue_is_full(monkeypatch):
    """A trainer that is held up: agents fill the queue and their own segments, and stop until it goes on."""
    monkeypatch.setattr("workbench.algos.rl.trial.PROGRESS_S", 0.02)
    trial = GA3C(game="CartPole-v1", phase=Budget(seconds=60), n_agents=4, n_groups=1, training_queue=3)(
        {"t_max": 5}, 0
    )
    gate, train, seen = threading.Event(), trial._train, []

    def held_up():
        gate.wait()
        train()

    def look():
        seen.append(trial.steps)
        if len(seen) > 5 and len(set(seen[-5:])) == 1:
            gate.set()
        if trial.learner.updates:
            raise StoppedError

    trial._train, trial._adjust = held_up, look
    held_up.__name__ = "train"
    with pytest.raises(StoppedError):
        trial.train_phase(silent)
    trial.close()
    assert seen[5] <= (4 + 3) * 5
    assert trial.steps > seen[5]


@pytest.mark.parametrize(
    "factory", [GA3C("CartPole-v1", n_agents=2), A3C("CartPole-v1", n_agents=2), HTS("CartPole-v1", n_agents=2)]
)
def test_a_game_that_hangs_in_its_thread_is_no_sign_of_life(factory, monkeypatch) -> None:
    """Looked at again and again while all games hang: what is silent for too long is replaced by the executor."""
    hanging, going_on, reports = threading.Barrier(2 + 1), threading.Event(), []
    looks = iter(range(20))

    def recv(agents):
        hanging.wait()
        going_on.wait()
        raise StoppedError

    def wait(workers, seconds):
        look = next(looks, None)
        if look == 0:
            hanging.wait()  # from here on nothing moves
        if look is not None:
            return False
        going_on.set()
        return workers._stop.wait()

    trial = factory({}, 0)
    trial._open()  # HTS's executors look at their games once before the phase begins
    monkeypatch.setattr("workbench.algos.rl.envs.GymnasiumEnvs.recv", recv)
    monkeypatch.setattr("workbench.algos.rl.workers.Workers.wait", wait)
    with pytest.raises(StoppedError):
        trial.train_phase(reports.append)
    trial.close()
    assert len(reports) == 1  # the one that says where the phase begins


@pytest.mark.parametrize(
    "factory",
    [
        GA3C("CartPole-v1", Budget(frames=200), n_agents=4, min_games=1),
        GA3C("CartPole-v1", Budget(frames=200), n_agents=4, min_games=1, lockstep=True),
        A3C("CartPole-v1", Budget(frames=200), n_agents=4, t_max=10, min_games=1),
        replace(HTS_4, phase=Budget(frames=200)),
    ],
)
def test_the_learning_rate_falls_to_0_over_the_frames_asked_for_and_stays_there(factory, tmp_path) -> None:
    config = {"learning_rate": 1e-3, "anneal_frames": 800}
    trial = factory(config, 0)
    rates, frames = [], []
    for _ in range(2):
        frames.append(trial.train_phase(silent)["frames"])
        rates.append(trial.learner.optimizer.lr)
    # at the last update, a segment a group before the phase's end or at it
    np.testing.assert_allclose(rates, [1e-3 * (1 - played / 800) for played in frames], atol=1e-4)
    trial.save(tmp_path)
    trial.close()
    again = factory(config, 0)
    again.load(tmp_path)
    while again.train_phase(silent)["frames"] < 800:
        pass
    before = [weights.clone() for weights in again.model.parameters()]
    again.train_phase(silent)
    assert again.learner.optimizer.lr == 0
    assert all(map(torch.equal, before, again.model.parameters()))
    again.close()


def test_a_trial_stopped_in_mid_phase_that_goes_back_to_a_phases_end_stands_there(tmp_path) -> None:
    factory = GA3C("CartPole-v1", Budget(frames=400), n_agents=4, n_groups=1, lockstep=True, min_games=1)
    trial = factory({}, 1)
    trial.train_phase(silent)
    trial.save(tmp_path)
    ended = trial.steps
    report = trial._report_if_due

    def stop() -> None:
        if trial.steps > ended:
            raise StoppedError

    trial._report_if_due = stop
    with pytest.raises(StoppedError):
        trial.train_phase(silent)
    trial._report_if_due = report
    trial.load(tmp_path)
    trial.save(tmp_path)
    trial.close()
    assert read_checkpoint(tmp_path)["counters"]["within"] is None


class Tens(gymnasium.Env):
    """Ten points a game, unless a step fails."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    fails: type[BaseException] | None = None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.t += 1
        if self.t == 7 and Tens.fails:
            raise Tens.fails
        return np.zeros(2, np.float32), 1.0, self.t == 10, False, {}


gymnasium.register("WorkbenchTens-v0", Tens)
TENS = {"game": "WorkbenchTens-v0", "phase": Budget(frames=60), "n_agents": 2, "min_games": 1, "device": "cpu"}


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize(
    "factory",
    [
        GA3C(**TENS),
        GA3C(**TENS, lockstep=True),
        A3C(**TENS),
        A3C(**TENS, lockstep=True),
        HTS(**TENS),
        HTS(**TENS, concurrent=False),
        BA3C(**TENS, n_ranks=1, evaluate_every=None),
    ],
    ids=["ga3c", "ga3c in turn", "a3c", "a3c in turn", "hts", "hts in turn", "ba3c"],
)
def test_after_a_phase_that_failed_a_trial_trains_no_more_and_after_one_that_progress_ended_it_goes_on(
    factory, failure, monkeypatch
) -> None:
    monkeypatch.setattr("workbench.algos.rl.trial.PROGRESS_S", 0.002)
    trial = replace(factory, phase=Budget(seconds=60))({}, 0)
    with pytest.raises(StoppedError):
        trial.train_phase(stop)
    trial.settings = factory
    assert trial.train_phase(silent)["score"] == 10
    monkeypatch.setattr(Tens, "fails", failure)
    with pytest.raises(failure):
        trial.train_phase(silent)
    monkeypatch.setattr(Tens, "fails", None)
    with pytest.raises(RuntimeError, match="this trial has failed; start a new one"):
        trial.train_phase(silent)
    trial.close()
    trial.close()


@pytest.mark.parametrize("factory", [GA3C(**TENS), A3C(**TENS), HTS(**TENS)], ids=["ga3c", "a3c", "hts"])
def test_ctrl_c_in_the_thread_that_waits_for_those_that_play_ends_a_phase_cleanly(factory, monkeypatch) -> None:
    trial = factory({}, 0)
    with monkeypatch.context() as patch:
        patch.setattr("workbench.algos.rl.trial.Workers.wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            trial.train_phase(silent)
    assert trial.train_phase(silent)["score"] == 10
    trial.close()


def interrupted(*_):
    raise KeyboardInterrupt


def test_environments_that_could_not_all_be_opened_are_not_played_in(monkeypatch) -> None:
    trial, made = A3C(**TENS, lockstep=True)({}, 0), []

    def make(*given, **told):
        made.append(given)
        if len(made) == 2:
            raise OSError("no more processes")
        return make_envs(*given, **told)

    monkeypatch.setattr(trial_module, "make_envs", make)
    for words in ("no more processes", "this trial has failed"):
        with pytest.raises((OSError, RuntimeError), match=words):
            trial.train_phase(silent)
    trial.close()


def test_environments_that_cannot_be_closed_leave_no_others_open(monkeypatch) -> None:
    settings = {"n_agents": 4, "n_groups": 2, "min_games": 1}
    trial = GA3C("CartPole-v1", Budget(frames=100), **settings)({}, 1)
    trial.train_phase(silent)
    first, second = trial._groups
    close, closed = first.close, []

    def stuck() -> None:
        close()
        raise OSError("the emulator hangs")

    monkeypatch.setattr(first, "close", stuck)
    monkeypatch.setattr(second, "close", lambda of=second.close: (of(), closed.append(2)))
    with pytest.raises(OSError, match="the emulator hangs"):
        trial.close()
    assert closed == [2]
    trial.close()  # there is nothing left to close


def test_a_trial_that_starts_from_anothers_weights_begins_its_own_phases_and_falling_rate(tmp_path) -> None:
    settings = {"n_agents": 4, "n_groups": 1, "lockstep": True, "min_games": 1}
    first = GA3C("CartPole-v1", Budget(frames=600), **settings)({}, 1)
    enough = iter(range(60))

    def in_mid_phase() -> None:
        if next(enough, None) is None:
            raise StoppedError

    first._report_if_due = in_mid_phase  # asked at every step
    with pytest.raises(StoppedError):
        first.train_phase(silent)
    first.save(tmp_path)
    steps, games = first.steps, first.finished
    first.close()
    again = GA3C("CartPole-v1", Budget(frames=600), **settings)({}, 1)
    again.load(tmp_path)
    again.save(tmp_path)  # it has not gone on, and stands within the phase as before
    again.load(tmp_path)
    assert again.train_phase(silent)["frames"] < steps + 600
    again.close()
    factory = GA3C("CartPole-v1", Budget(frames=600), start_from=str(tmp_path), anneal_frames=2400, **settings)
    second = factory({"learning_rate": 1e-4}, 2)
    assert np.array_equal(weights(second), weights(first))
    assert (second.learner.updates, second.steps) == (first.learner.updates, first.steps)
    metrics = second.train_phase(silent)
    assert metrics["frames"] - steps >= 600
    assert metrics["games"] == second.finished - games
    assert second.learner.optimizer.lr == pytest.approx(1e-4 * 0.75, rel=0.05)
    second.save(tmp_path)
    second.close()
    third = GA3C("CartPole-v1", Budget(frames=600), anneal_frames=2400, **settings)({}, 2)
    third.load(tmp_path)  # the same trial, or a copy of it, goes on with the rate
    third.train_phase(silent)
    assert third.learner.optimizer.lr == pytest.approx(third.settings.learning_rate * 0.5, rel=0.1)
    third.close()


class Losing(Tens):
    """Two steps, and 3 points are lost by each."""

    def step(self, action):
        self.t += 1
        return np.full(2, self.t, np.float32), -3.0, self.t == 2, False, {}


gymnasium.register("WorkbenchLosing-v0", Losing)
LOSING = {"game": "WorkbenchLosing-v0", "phase": Budget(updates=3), "n_agents": 2, "min_games": 1, "device": "cpu"}


@pytest.mark.parametrize("clip", [None, True])
@pytest.mark.parametrize(
    "factory",
    [
        GA3C(**LOSING),
        GA3C(**LOSING, lockstep=True),
        A3C(**LOSING, lockstep=True),
        HTS(**LOSING, sync_interval=6),
        HTS(**LOSING, sync_interval=6, method="ppo", gae_lambda=1.0),  # row 3 of a game resets
        BA3C(**LOSING, n_ranks=1, evaluate_every=None),
    ],
    ids=["ga3c", "ga3c in turn", "a3c", "hts", "hts by ppo", "ba3c"],
)
def test_every_system_learns_the_returns_of_its_own_gamma_of_rewards_clipped_or_not(factory, clip, monkeypatch) -> None:
    """Half of the loss at the end counts at the beginning: 3 + 3 / 2, or 1 + 1 / 2."""
    learned, gradients = [], Learner.gradients
    update = "workbench.algos.rl.hts.trial.proximal_update"

    def noting(learner, rollout, *given):
        learned.append(rollout.returns)
        return gradients(learner, rollout, *given)

    monkeypatch.setattr(Learner, "gradients", noting)
    monkeypatch.setattr(
        update, lambda learner, rollout, *given, **told: noting(learner, rollout) and learner.train(rollout)
    )
    trial = replace(factory, clip_rewards=clip)({"gamma": 0.5}, 0)
    metrics = trial.train_phase(silent)
    trial.close()
    assert set(np.concatenate(learned).round(4)) == ({-1, -1.5} if clip else {-3, -4.5})
    assert metrics["score"] == -6  # of raw rewards in any case


def test_on_atari_a_step_is_four_frames_and_rewards_are_clipped() -> None:
    quickly = {"n_agents": 1, "n_groups": 1, "init": "uniform", "precision": "float32", "device": "cpu"}
    trial = GA3C("Pong", Budget(frames=400), anneal_frames=1600, **quickly)({"learning_rate": 1e-3}, 0)
    trial._phase.begin(trial._counted(0.0))
    trial.episodes.merge([0.0] * 10, [1] * 10)
    trial._steps_before = 99
    assert not trial._is_over()
    trial._steps_before = 100
    assert trial._is_over()
    assert trial.measured()["frames"] == 400
    anneal(trial, trial.settings)
    assert trial.learner.optimizer.lr == pytest.approx(1e-3 * 3 / 4)
    assert trial.clips_rewards


def test_weights_actions_and_games_are_of_the_trials_seed_and_of_the_group(monkeypatch) -> None:
    seeds, make = [], trial_module.make_envs
    monkeypatch.setattr(
        trial_module, "make_envs", lambda *given, **told: seeds.append(given[2]) or make(*given, **told)
    )
    factory = GA3C("CartPole-v1", n_agents=4, n_groups=2)
    one, same, other = (factory({}, seed) for seed in (0, 0, 1))
    weights = [torch.cat([part.flatten() for part in trial.model.parameters()]) for trial in (one, same, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert len({generator.random() for trial in (one, other) for generator in trial._generators}) == 4
    for trial in (one, other):
        trial._open()
        trial.close()
    one._steps_before = 100  # as one that goes on from a checkpoint
    one._open()
    one.close()
    assert len(set(seeds)) == len(seeds) == 6
    same._open()
    same.close()
    assert seeds[6:] == seeds[:2]


def test_seconds_of_a_phase_that_was_cut_short_count_where_it_goes_on(tmp_path) -> None:
    factory = GA3C("CartPole-v1", Budget(seconds=10), n_agents=2, min_games=1)
    trial, again = factory({}, 0), factory({}, 0)
    trial._phase.begin(trial._counted(0.0))
    trial._meter = SimpleNamespace(seconds=7.0)
    trial.save(tmp_path)
    again.load(tmp_path)
    again._phase.begin(again._counted(0.0))
    assert 7 <= again.measured()["seconds"] <= 7 + again._meter.seconds
    again.episodes.merge([1.0], [1])
    assert not again._is_over(seconds=2.9)
    assert again._is_over(seconds=3.0)


def test_answers_are_of_the_clients_that_asked_and_of_the_version_before_they_were_computed() -> None:
    version = [3]

    class Predicting:
        def predict(self, obs, model):
            version[0] += 1  # a trainer steps the weights meanwhile
            return np.repeat(obs, 2, 1), obs[:, 0]

    queue, meter = PredictionQueue(2), Meter()
    for client, shown in ((1, [[5.0], [6.0]]), (0, [[7.0]])):
        queue._requests.put((client, np.array(shown)))
    queue.end_server()
    queue.serve(Predicting(), meter, lambda: (None, version[0]))
    answers = [queue._answers[client].get() for client in (0, 1)]
    assert [(policy.tolist(), values.tolist()) for policy, values, _ in answers] == [
        ([[7, 7]], [7]),
        ([[5, 5], [6, 6]], [5, 6]),
    ]
    assert [told for *_, told in answers] == [3, 3]
    assert meter.reading().since()["predict_batch_mean"] == 3
