"""HTS-RL: the delayed gradient, its lag, determinism under any schedule, phases, failures, learning."""

import json
import math
import os
import pickle
import subprocess
import sys
import threading
import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from tests.algos.rl.rollouts import fixed_rollout
from tests.support import breaking, silent
from workbench.algos.rl.a3c.trial import A3C
from workbench.algos.rl.evaluate import evaluate
from workbench.algos.rl.ga3c.trial import GA3C
from workbench.algos.rl.hts.ppo import proximal_update
from workbench.algos.rl.hts.storage import Storage
from workbench.algos.rl.hts.trial import HTS
from workbench.algos.rl.learner import DivergenceError
from workbench.core.budget import Budget
from workbench.core.describe import build, describe
from workbench.core.errors import InvalidInput
from workbench.core.registry import TRAINABLES

TINY = HTS(game="CartPole-v1", phase=Budget(updates=10), n_agents=4, sync_interval=6, min_games=1, device="cpu")


def tiny(**settings):
    return replace(TINY, **settings)


def weights(model):
    return [p.detach().clone() for p in model.parameters()]


def equal(ones, others):
    return all(torch.equal(a.cpu(), b.cpu()) for a, b in zip(ones, others, strict=True))


@pytest.fixture(autouse=True)
def no_thread_left():
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) == before


# --- the delayed gradient


@pytest.mark.parametrize("game", ["Pong", "CartPole-v1"])
def test_one_rollout_gives_the_gradients_of_ga3c_and_a3c_at_its_delayed_weights(game):
    """The newest weights are elsewhere; the step is the one the others take at the weights that acted."""
    config = {"max_grad_norm": 0.1}
    ours, ga3c, a3c = (
        kind(game=game, device="cpu", n_agents=2, precision="float32")(config, 5) for kind in (HTS, GA3C, A3C)
    )
    ours._open()
    a3c._open()
    rollout = fixed_rollout(ours.game, 25)
    with torch.no_grad():
        for p in ours.model.parameters():
            p.add_(0.05)
    before = {trial: weights(trial.model) for trial in (ours, ga3c, a3c)}
    updates = [ours.learner.train(rollout, ours._delayed), ga3c.learner.train(rollout)]
    updates.append(a3c.learner.train(rollout, a3c._copies[1]))
    for theirs, update in ((ga3c, updates[1]), (a3c, updates[2])):
        assert updates[0].grad_norm == pytest.approx(update.grad_norm, rel=1e-6)
        assert updates[0].policy_loss == pytest.approx(update.policy_loss, abs=1e-6)
        for a, b in zip(ours.learner.optimizer.square_avg, theirs.learner.optimizer.square_avg, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-9)  # (1 - decay) times the squared gradients
        for own, old, other, other_old in zip(
            ours.model.parameters(), before[ours], theirs.model.parameters(), before[theirs], strict=True
        ):
            torch.testing.assert_close(own - old, other - other_old, rtol=0, atol=1e-6)
    ours.close()
    a3c.close()


def record_weights(trial):
    """Note the newest weights before and after every update, and the weights its gradient was taken at."""
    seen, update = [], trial._update

    def noting():
        before, delayed = weights(trial.model), weights(trial._delayed)
        update()
        seen.append((before, delayed, weights(trial.model)))

    trial._update = noting
    return seen


def test_the_gradient_is_taken_at_the_weights_of_one_update_before():
    trial = tiny()({}, 0)
    seen = record_weights(trial)
    trial.train_phase(silent)
    trial.close()
    assert equal(seen[0][0], seen[0][1])  # nothing to lag behind yet
    for (earlier, _, newer), (before, delayed, _) in pairwise(seen):
        assert equal(before, newer)
        assert equal(delayed, earlier)
        assert not equal(delayed, before)


def test_ppo_knows_how_likely_its_actions_were_for_the_weights_that_acted():
    trial = tiny(method="ppo")({"learning_rate": 1e-3}, 0)  # policies stay apart from 0 and 1
    distances, update = [], trial._update

    def comparing():
        store = trial._learning
        for model in (trial._delayed, trial.model):
            policy, _ = trial.learner.predict(store.obs.reshape(-1, 4), model)
            chosen = policy[np.arange(len(policy)), store.actions.reshape(-1)]
            distances.append(np.abs(np.log(chosen) - store.log_probs.reshape(-1)).max())
        update()

    trial._update = comparing
    trial.train_phase(silent)
    trial.close()
    assert max(distances[::2]) < 1e-5
    assert min(distances[3::2]) > 1e-4  # the newest weights are others, but for the first update


@pytest.mark.parametrize(("method", "name"), [("a2c", "rollout"), ("ppo", "advantages")])
def test_what_follows_an_interval_is_valued_by_the_weights_that_acted_and_returns_are_as_set(method, name, monkeypatch):
    config = {"gamma": 0.9, "t_max": 3, "gae_lambda": 0.7}
    trial, off, real = (
        tiny(method=method, clip_rewards=True, phase=Budget(updates=4), **config)({}, 0),
        [],
        getattr(Storage, name),
    )

    def noting(store, last_values, **told):
        of = "t_max" if method == "a2c" else "gae_lambda"
        assert told == {"gamma": 0.9, "clip_rewards": True, of: config[of]}
        values = [trial.learner.predict(store.last_obs, model)[1] for model in (trial._delayed, trial.model)]
        off.append([float(np.abs(last_values - value).max()) for value in values])
        return real(store, last_values, **told)

    monkeypatch.setattr(Storage, name, noting)
    trial.train_phase(silent)
    trial.close()
    of_acting, of_newest = zip(*off, strict=True)
    assert max(of_acting) == 0 < max(of_newest)


def test_ppo_is_told_its_settings(monkeypatch):
    told = {"n_epochs": 3, "n_minibatches": 2, "clip_ratio": 0.3}
    trial = tiny(method="ppo", phase=Budget(updates=2), **told)({}, 0)

    def noting(*given, generator, **settings):
        assert settings == told
        return proximal_update(*given, generator=generator, **settings)

    monkeypatch.setattr("workbench.algos.rl.hts.trial.proximal_update", noting)
    trial.train_phase(silent)
    trial.close()
    assert trial.learner.descents == 2 * 3 * 2


def test_every_executor_has_step_times_of_its_own():
    trial = tiny(step_time_mean_s=1e-3, step_time_cv=1.0)({}, 0)
    trial._open()
    assert len({executor.envs._generator.random() for executor in trial._groups}) == 4
    trial.close()


def test_the_synchronous_baseline_takes_it_at_the_newest_weights():
    trial = tiny(concurrent=False)({}, 0)
    seen = record_weights(trial)
    trial.train_phase(silent)
    trial.close()
    assert len(seen) == 10
    assert all(equal(before, delayed) for before, delayed, _ in seen)


@pytest.mark.parametrize(("concurrent", "lag"), [(True, 1), (False, 0)])
def test_the_policy_lag_is_exactly_one_update(concurrent, lag):
    trial = tiny(concurrent=concurrent)({}, 0)
    first = trial.train_phase(silent)
    assert np.flatnonzero(trial._meter.reading().lags).max() == lag
    assert first["policy_lag_p95"] == lag
    second = trial.train_phase(silent)
    assert second["policy_lag_mean"] == lag
    assert np.flatnonzero(trial._meter.reading().lags).tolist() == [lag]
    assert trial._meter.reading().lags.sum() > 0
    trial.close()


@pytest.mark.parametrize("method", ["a2c", "ppo"])
@pytest.mark.parametrize("concurrent", [True, False])
def test_an_interval_of_resets_alone_has_nothing_to_learn_from(method, concurrent):
    trial = tiny(
        max_episode_frames=2, sync_interval=1, n_agents=2, method=method, concurrent=concurrent, phase=Budget(updates=6)
    )({}, 0)
    metrics = trial.train_phase(silent)
    trial.close()
    assert (metrics["updates"], metrics["train_batch_mean"]) == (6, 2)


def test_a_broken_promise_of_lag_is_an_error():
    trial = tiny()({}, 0)
    trial.train_phase(silent)
    trial._learning.versions -= 1
    with pytest.raises(RuntimeError, match=r"promises a policy lag of 1, found \[2\]"):
        trial.train_phase(silent)
    trial.close()


# --- determinism


def delayed_at_random(trial):
    """Let every prediction take between 0 and 2 ms longer, as no seed says."""
    predict, generator = trial.learner.predict, np.random.default_rng()

    def slowly(*given):
        time.sleep(generator.uniform(0, 2e-3))
        return predict(*given)

    trial.learner.predict = slowly


def trajectory(settings, seed=3, delays=True, phases=2):
    trial = settings({}, seed)
    if delays:
        delayed_at_random(trial)
    scores = [trial.train_phase(silent)["score"] for _ in range(phases)]
    stores = [trial._recording, trial._learning]
    trial.close()
    arrays = [getattr(store, name).copy() for store in stores for name in ("obs", "actions", "rewards", "values")]
    return weights(trial.model), arrays, scores, list(trial.episodes.returns), list(trial.episodes.lengths)


def same(one, other):
    return equal(one[0], other[0]) and all(map(np.array_equal, one[1], other[1])) and one[2:] == other[2:]


@pytest.mark.parametrize("method", ["a2c", "ppo"])
def test_actors_and_their_delays_change_nothing_in_the_deterministic_mode(method):
    """One observation a forward pass: the same trajectories and weights, bit for bit."""
    short = {"method": method, "phase": Budget(updates=3)}
    runs = [trajectory(tiny(n_actors=n, **short)) for n in (1, 7)]
    runs.append(trajectory(tiny(**short), delays=False))
    runs.append(trajectory(tiny(step_time_mean_s=1e-3, step_time_cv=1.0, **short)))
    assert all(same(runs[0], run) for run in runs[1:])
    assert not same(runs[0], trajectory(tiny(**short), seed=4, delays=False))


@pytest.mark.parametrize(("settings", "alone"), [({}, True), ({"deterministic": False}, False)])
def test_actors_serve_one_executor_at_a_time_unless_told_otherwise(settings, alone):
    trial = tiny(n_actors=1, **settings)({}, 0)
    delayed_at_random(trial)  # meanwhile the others come to wait
    found = trial.train_phase(silent)
    trial.close()
    assert (found["predict_batch_mean"] == 1) is alone


def test_so_it_is_with_pixels():
    settings = [
        HTS("Pong", Budget(updates=3), n_agents=2, sync_interval=5, n_actors=n, max_episode_frames=20, min_games=1)
        for n in (1, 4)
    ]
    assert same(*(trajectory(s, phases=1) for s in settings))


def test_the_synchronous_baseline_repeats_as_well():
    assert same(*(trajectory(tiny(concurrent=False, n_executors=n)) for n in (4, 4)))


WEIGHTS = """
from hashlib import sha256
from workbench import HTS, Budget
trial = HTS("CartPole-v1", phase=Budget(updates=30), n_agents=6, torch_threads=1, device="cpu")({}, seed=4)
trial.train_phase(lambda metrics: None)
print(sha256(b"".join(weight.detach().numpy().tobytes() for weight in trial.model.parameters())).hexdigest())
trial.close()
"""


@pytest.mark.slow
def test_its_threads_compute_on_as_many_cores_as_it_is_told_whatever_the_environment_says():
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    assert len({out_of(WEIGHTS, environment | threads) for threads in ({}, {"OMP_NUM_THREADS": "1"})}) == 1


def out_of(script, environment):
    return subprocess.run([sys.executable, "-c", script], env=environment, check=True, capture_output=True).stdout


def test_stopping_anywhere_and_going_on_changes_nothing(monkeypatch):
    whole = tiny(phase=Budget(updates=40))
    trial = whole({}, 0)
    trial.train_phase(silent)
    trial.close()
    monkeypatch.setattr("workbench.algos.rl.trial.PROGRESS_S", 0.005)

    class StoppedError(Exception):
        pass

    def stop(metrics):
        if broken.steps > began:
            raise StoppedError

    broken, stops = whole({}, 0), 0
    while broken.learner.updates < 40:
        left, began = 40 - broken.learner.updates, broken.steps
        broken.settings = replace(broken.settings, phase=Budget(updates=left))
        try:
            broken.train_phase(stop)
        except StoppedError:
            stops += 1
    broken.close()
    assert stops > 3
    assert equal(weights(trial.model), weights(broken.model))
    assert list(trial.episodes.returns)[:5] == list(broken.episodes.returns)[:5]


# --- phases, checkpoints, failures


@pytest.mark.parametrize("concurrent", [True, False])
@pytest.mark.parametrize("phase", [Budget(episodes=20), Budget(frames=500), Budget(updates=20), Budget(seconds=0.3)])
def test_a_phase_spends_its_budget_and_no_more(phase, concurrent):
    trial = HTS("CartPole-v1", phase=phase, n_agents=4, sync_interval=6, concurrent=concurrent)({}, 0)
    for number in (1, 2):
        metrics = trial.train_phase(silent)
        if phase.unit != "seconds":  # it ends at a barrier, where games are counted
            assert [executor.t for executor in trial._groups] == [0] * len(trial._groups)
        spent = metrics["seconds"] if phase.unit == "seconds" else metrics[phase.unit] / number
        assert phase.amount <= spent <= phase.amount * 1.3 + 40
        assert math.isfinite(metrics["score"])
    trial.close()


def test_metrics_of_a_phase():
    trial = HTS("CartPole-v1", phase=Budget(frames=2000), n_agents=8, n_actors=2)({}, 0)
    metrics = trial.train_phase(silent)
    trial.close()
    assert metrics["frames"] == metrics["steps"] >= 2000
    assert 1 <= metrics["predict_batch_mean"] <= 8
    assert 8 * 16 * 0.8 < metrics["train_batch_mean"] < 8 * 16  # rows that only reset are not trained on
    assert metrics["train_batch_mean"] * (metrics["updates"] + 1) == pytest.approx(metrics["steps"], rel=0.05)
    assert 0 < metrics["entropy"] <= math.log(2) + 1e-6
    assert 0 < metrics["learning_s"] < metrics["seconds"]
    assert all(isinstance(v, int | float) for k, v in metrics.items() if k != "returns")


def test_seconds_of_learning_are_those_of_one_update_of_this_phase():
    trial = TINY({}, 0)
    for _ in range(2):
        trial.train_phase(silent)
        assert trial._learnings == 10
    trial._learning_s = 5.0
    assert trial.measured()["learning_s"] == 0.5
    trial.close()


def test_phases_of_one_interval_that_begin_from_checkpoints_train(tmp_path):
    made = HTS("CartPole-v1", Budget(frames=12), n_agents=4, sync_interval=6, max_episode_frames=4, min_games=1)
    for number in (1, 2, 3):
        trial = made({}, 0)
        if number > 1:
            trial.load(tmp_path)
        assert trial.train_phase(silent)["updates"] == number
        trial.save(tmp_path)
        trial.close()
    trial = made({}, 0)
    assert [trial.train_phase(silent)["updates"] for _ in range(3)] == [1, 2, 3]  # it goes on in its environments
    trial.close()


@pytest.mark.parametrize("concurrent", [True, False])
@pytest.mark.parametrize("phase", [Budget(episodes=5), Budget(frames=4)])
def test_games_that_are_much_shorter_than_an_interval_are_not_taken_for_endless(phase, concurrent):
    made = HTS("CartPole-v1", phase, n_agents=2, sync_interval=24, max_episode_frames=4, concurrent=concurrent)
    trial = made({}, 0)
    assert trial.train_phase(silent)["score"] == 4
    trial.close()


def test_executors_may_step_several_environments():
    trial = tiny(n_agents=5, n_executors=2)({}, 0)
    metrics = trial.train_phase(silent)
    assert [executor.envs.n_envs for executor in trial._groups] == [3, 2]
    assert 2 <= metrics["predict_batch_mean"] <= 5
    trial.close()


@pytest.mark.parametrize("concurrent", [True, False])
def test_progress_is_called_and_may_end_the_phase(concurrent):
    seen = []

    class EnoughError(Exception):
        pass

    def progress(metrics):
        seen.append(metrics)
        if len(seen) > 1 and {"learning_s", "score"} <= set(metrics):
            raise EnoughError

    trial = tiny(phase=Budget(seconds=600), concurrent=concurrent)({}, 0)
    with pytest.raises(EnoughError):
        trial.train_phase(progress)
    assert {"score", "frames", "pps", "tps", "policy_lag_mean", "learning_s"} <= set(seen[-1])
    assert seen[-1]["frames"] > seen[0]["frames"]
    trial.settings = replace(trial.settings, phase=Budget(updates=5))
    assert trial.train_phase(silent)["updates"] > 5  # the trial itself is unharmed
    trial.close()


@pytest.mark.parametrize("method", ["a2c", "ppo"])
def test_save_and_load_go_on_from_where_it_was(method, tmp_path):
    first = tiny(method=method)({"learning_rate": 1e-3}, 7)
    before = first.train_phase(silent)
    first.save(tmp_path)
    second = tiny(method=method)({"learning_rate": 1e-4}, 7)
    second.load(tmp_path)
    assert equal(weights(first.model), weights(second.model))
    assert equal(first.learner.optimizer.square_avg, second.learner.optimizer.square_avg)
    assert second.learner.optimizer.lr == 1e-4  # the config is its own
    assert [g.bit_generator.state for g in first._generators] == [g.bit_generator.state for g in second._generators]
    after = second.train_phase(silent)
    assert after["updates"] == before["updates"] + 10
    assert after["steps"] > before["steps"]
    assert after["episodes"] >= before["episodes"]
    first.close()
    second.close()


@pytest.mark.parametrize("n_executors", [2, 4])
def test_the_order_of_minibatches_goes_on_from_a_checkpoint_of_the_same_seed(n_executors, tmp_path):
    first = tiny(method="ppo")({}, 7)
    first.train_phase(silent)
    first.save(tmp_path)
    then = tiny(method="ppo", n_executors=n_executors, start_from=str(tmp_path))
    same, other = then({}, 7), then({}, 8)
    assert same._shuffle.bit_generator.state == first._shuffle.bit_generator.state
    drawn = [generator.bit_generator.state for generator in first._generators]
    assert [generator.bit_generator.state for generator in same._generators] == drawn[:n_executors]
    assert other._shuffle.bit_generator.state == np.random.default_rng([8, 3]).bit_generator.state
    first.close()


def test_a_checkpoint_passes_from_and_to_ga3c(tmp_path):
    ours = TINY({}, 0)
    ours.train_phase(silent)
    ours.save(tmp_path)
    ours.close()
    other = GA3C(game="CartPole-v1")({}, 1)
    other.load(tmp_path)
    assert equal(weights(ours.model), weights(other.model))
    other.save(tmp_path)
    back = TINY({}, 2)
    back.load(tmp_path)
    assert back.train_phase(silent)["updates"] == 20
    back.close()


@pytest.mark.parametrize("concurrent", [True, False])
@pytest.mark.parametrize("method", ["a2c", "ppo"])
def test_weights_that_are_no_numbers_fail_the_trial_with_a_reason(method, concurrent):
    trial = tiny(method=method, concurrent=concurrent)({}, 0)
    with torch.no_grad():
        trial.model.head.weight[0, 0] = math.nan
    with pytest.raises(DivergenceError, match=r"training diverged at update 0.*learning rate 0\.001"):
        trial.train_phase(silent)
    with pytest.raises(RuntimeError, match="has failed"):
        trial.train_phase(silent)
    trial.close()


@pytest.mark.parametrize("concurrent", [True, False])
def test_an_environment_that_breaks_ends_the_phase_with_its_error(concurrent):
    trial = tiny(concurrent=concurrent)({}, 0)
    trial.train_phase(silent)
    trial._groups[1].envs.recv = breaking("emulator gone")
    with pytest.raises(OSError, match="emulator gone"):
        trial.train_phase(silent)
    with pytest.raises(RuntimeError, match="has failed"):
        trial.train_phase(silent)
    trial.close()
    trial.close()


def test_executors_waiting_for_a_dead_actor_are_let_go():
    trial = TINY({}, 0)
    trial.learner.predict = breaking("device gone")
    with pytest.raises(OSError, match="device gone"):
        trial.train_phase(silent)
    trial.close()


def test_pong_from_pixels_runs_a_short_phase():
    trial = HTS(
        "Pong",
        phase=Budget(frames=600),
        n_agents=2,
        n_executors=2,
        sync_interval=10,
        n_actors=2,
        max_episode_frames=100,
        min_games=3,
    )({}, 1)
    metrics = trial.train_phase(silent)
    trial.close()
    assert metrics["frames"] >= 600
    assert metrics["updates"] >= 5
    assert -21 <= metrics["score"] <= 21


# --- settings


def test_it_is_pickled_and_described_in_json():
    assert pickle.loads(pickle.dumps(TINY)) == TINY
    assert build("trainable", json.loads(json.dumps(describe(TINY))), TRAINABLES) == TINY


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"sync_interval": 0}, "HTS needs sync_interval a whole number from 1, got 0"),
        ({"n_actors": 1.5}, "n_actors"),
        ({"n_executors": 17}, "n_executors a whole number from 1 to n_agents, 16, or None, got 17"),
        ({"method": "pg"}, "unknown method 'pg'"),
        ({"gae_lambda": 1.2}, r"gae_lambda in \[0, 1\]"),
        ({"clip_ratio": 0}, r"clip_ratio in \(0, 1\), got 0"),
        ({"step_time_law": "weibull"}, "unknown law of step times 'weibull'"),
        ({"step_time_cv": -1}, "cv a number from 0"),
        (
            {"method": "ppo", "sync_interval": 1, "n_agents": 1},
            "a rollout of one experience.*teaches its policy nothing",
        ),
    ],
)
def test_settings_are_checked(setting, message):
    with pytest.raises(InvalidInput, match=message):
        HTS(game="CartPole-v1", **setting)


def test_configs_are_checked_before_anything_starts():
    a2c, ppo = (HTS("CartPole-v1", method=method) for method in ("a2c", "ppo"))
    a2c.check(["learning_rate", "gamma", "t_max", "sync_interval"])
    ppo.check(["learning_rate", "clip_ratio"])
    a2c.check(["method", "t_max", "clip_ratio"])  # each is of one of the methods that are searched
    with pytest.raises(InvalidInput, match="unknown hyperparameter of HTS 'n_trainers'"):
        a2c.check(["n_trainers"])
    with pytest.raises(InvalidInput, match="clip_ratio changes nothing in HTS with method='a2c': take it out"):
        a2c.check(["learning_rate", "clip_ratio"])
    with pytest.raises(InvalidInput, match="t_max changes nothing in HTS with method='ppo'"):
        ppo({"t_max": 2}, 0)
    with pytest.raises(InvalidInput, match="init changes nothing in HTS with start_from='there'"):
        replace(ppo, start_from="there").check(["init"])


# --- learning


@pytest.mark.slow  # BA3C, of the same gradient, learns among the quick tests
@pytest.mark.parametrize(
    ("settings", "config"),
    [
        ({"method": "a2c", "sync_interval": 5}, {"learning_rate": 3e-3, "t_max": 5}),
        ({"method": "ppo", "sync_interval": 64}, {"n_epochs": 10, "n_minibatches": 8, "gamma": 0.98}),
    ],
)
def test_it_learns_cartpole(settings, config):
    """Random play scores about 22; within 60 000 frames the mean of 20 whole games is above 120. It repeats exactly."""
    made = HTS("CartPole-v1", phase=Budget(frames=10_000), n_executors=2, device="cpu", **settings)
    trial = made({"init": "orthogonal", **config}, 0)
    means = []
    while len(means) < 6 and max(means, default=0) < 120:
        trial.train_phase(silent)
        means.append(evaluate(trial.model, trial.game, 20, seed=9).mean)
    trial.close()
    assert means[-1] >= 120, means
