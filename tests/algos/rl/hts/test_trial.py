"""HTS-RL: the delayed gradient, its lag, determinism under any schedule, phases, learning."""

import math
import os
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from tests.support import silent
from workbench.algos.rl.evaluate import evaluate
from workbench.algos.rl.hts.ppo import proximal_update
from workbench.algos.rl.hts.storage import Storage
from workbench.algos.rl.hts.trial import HTS
from workbench.core.budget import Budget
from workbench.core.errors import InvalidInput

TINY = HTS(
    "CartPole-v1", Budget(updates=4), n_agents=4, n_actors=2, sync_interval=6, n_epochs=2, min_games=1, device="cpu"
)


def tiny(**settings):
    return replace(TINY, **settings)


def weights(model):
    return [p.detach().clone() for p in model.parameters()]


def equal(ones, others):
    return all(torch.equal(a.cpu(), b.cpu()) for a, b in zip(ones, others, strict=True))


# --- the delayed gradient


def record_weights(trial):
    """Note the newest weights before and after every update, and the weights its gradient was taken at."""
    seen, train = [], trial.learner.train

    def noting(rollout, model):
        before, delayed = weights(trial.model), weights(model)
        update = train(rollout, model)
        seen.append((before, delayed, weights(trial.model)))
        return update

    trial.learner.train = noting
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
    assert len(seen) == 4
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
    short = tiny(method=method, n_minibatches=2)
    runs = [trajectory(replace(short, n_actors=n), phases=1) for n in (1, 7)]
    runs.append(trajectory(short, delays=False, phases=1))
    runs.append(trajectory(replace(short, step_time_mean_s=1e-3, step_time_cv=1.0), phases=1))
    assert all(same(runs[0], run) for run in runs[1:])
    assert not same(runs[0], trajectory(short, seed=4, delays=False, phases=1))


@pytest.mark.parametrize(("settings", "alone"), [({}, True), ({"deterministic": False}, False)])
def test_actors_serve_one_executor_at_a_time_unless_told_otherwise(settings, alone):
    trial = tiny(n_actors=1, **settings)({}, 0)
    delayed_at_random(trial)  # meanwhile the others come to wait
    found = trial.train_phase(silent)
    trial.close()
    assert (found["predict_batch_mean"] == 1) is alone


def test_so_it_is_with_pixels():
    quick = {"n_agents": 2, "sync_interval": 5, "max_episode_frames": 20, "min_games": 1, "init": "uniform"}
    settings = [HTS("Pong", Budget(updates=3), n_actors=n, **quick) for n in (1, 4)]
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
    whole = tiny(phase=Budget(updates=12))
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
    while broken.learner.updates < 12:
        left, began = 12 - broken.learner.updates, broken.steps
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


def test_metrics_of_a_phase():
    trial = HTS("CartPole-v1", phase=Budget(frames=600), n_agents=8, n_actors=2)({}, 0)
    metrics = trial.train_phase(silent)
    trial.close()
    assert metrics["frames"] == metrics["steps"] >= 600
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
        assert trial._learnings == 4
    trial._learning_s = 2.0
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


@pytest.mark.parametrize("n_executors", [2, 4])
def test_the_order_of_minibatches_goes_on_from_a_checkpoint_of_the_same_seed(n_executors, tmp_path):
    ppo = {"method": "ppo", "phase": Budget(updates=1)}
    first = tiny(**ppo)({}, 7)
    first.train_phase(silent)
    first.save(tmp_path)
    then = tiny(**ppo, n_executors=n_executors, start_from=str(tmp_path))
    same, other = then({}, 7), then({}, 8)
    assert same._shuffle.bit_generator.state == first._shuffle.bit_generator.state
    drawn = [generator.bit_generator.state for generator in first._generators]
    assert [generator.bit_generator.state for generator in same._generators] == drawn[:n_executors]
    assert other._shuffle.bit_generator.state == np.random.default_rng([8, 3]).bit_generator.state
    first.close()


# --- settings


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
