"""A3C: the same gradients as GA3C, learning, determinism, what it refuses."""

import numpy as np
import pytest
import torch

from tests.algos.rl.rollouts import fixed_rollout
from tests.support import breaking, silent
from workbench.algos.rl.a3c.trial import A3C
from workbench.algos.rl.ga3c.trial import GA3C
from workbench.core.budget import Budget
from workbench.core.errors import InvalidInput


@pytest.mark.parametrize("game", ["Pong", "CartPole-v1"])
def test_one_rollout_gives_the_gradients_and_the_step_of_ga3c(game):
    config = {"max_grad_norm": 0.1}
    ours, theirs = (kind(game=game, device="cpu", n_agents=4, precision="float32")(config, 5) for kind in (A3C, GA3C))
    rollout = fixed_rollout(ours.game, 25)
    ours._open()
    one = ours.learner.train(rollout, ours._copies[3])
    two = theirs.learner.train(rollout)
    assert one.grad_norm == pytest.approx(two.grad_norm, rel=1e-6)
    assert one.policy_loss == pytest.approx(two.policy_loss, abs=1e-6)
    for a, b in zip(ours.learner.optimizer.square_avg, theirs.learner.optimizer.square_avg, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-9)  # (1 - decay) times the squared gradients
    for a, b in zip(ours.model.parameters(), theirs.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-6)
    ours.close()


def test_agents_learn_on_their_own_copy_and_take_the_shared_weights_after_each_segment():
    trial = A3C(game="CartPole-v1", phase=Budget(updates=5), n_agents=3, lockstep=True)({"t_max": 4}, 0)
    trial.train_phase(silent)
    newest = trial._versions.index(max(trial._versions))
    same = [
        all(torch.equal(a, b) for a, b in zip(own.parameters(), trial.model.parameters(), strict=True))
        for own in trial._copies
    ]
    assert same[newest]
    assert trial._versions[newest] == trial.learner.updates
    assert not all(same)  # the others still act on what they had
    trial.close()


def test_an_agent_takes_gradients_of_its_own_copy_and_acts_by_the_weights_it_then_has():
    trial = A3C(game="CartPole-v1", phase=Budget(updates=12), n_agents=2, lockstep=True)({"t_max": 2}, 0)
    trial._open()
    taken, gradients = [], trial.learner.gradients
    trial.learner.gradients = lambda rollout, model: taken.append(model) or gradients(rollout, model)

    def watched(act, group, own):
        def acting(policy, *given):
            assert np.array_equal(policy, trial.learner.predict(group._observed().obs, own)[0])
            act(policy, *given)

        return acting

    for group, own in zip(trial._groups, trial._copies, strict=True):
        group.act = watched(group.act, group, own)
    trial.train_phase(silent)
    trial.close()
    assert {id(model) for model in taken} == {id(own) for own in trial._copies}


def test_every_update_is_one_segment_and_its_lag_is_the_other_agents_updates():
    trial = A3C(game="CartPole-v1", phase=Budget(updates=60), n_agents=3, lockstep=True)({"t_max": 5}, 0)
    metrics = trial.train_phase(silent)
    assert 1 <= metrics["train_batch_mean"] <= 5
    assert 0 < metrics["policy_lag_mean"] <= 10  # in turns: at most every other agent's few updates meanwhile
    assert metrics["predict_batch_mean"] == 1
    trial.close()


def test_lockstep_gives_the_same_weights_twice():
    runs = []
    for _ in range(2):
        trial = A3C(game="CartPole-v1", phase=Budget(frames=600), n_agents=3, lockstep=True)({}, 3)
        trial.train_phase(silent)
        runs.append([p.detach().clone() for p in trial.model.parameters()])
        trial.close()
    assert all(torch.equal(a, b) for a, b in zip(*runs, strict=True))


def test_pong_from_pixels_runs_a_short_phase():
    trial = A3C(game="Pong", phase=Budget(frames=600), n_agents=2, max_episode_frames=40)({"t_max": 5}, 1)
    metrics = trial.train_phase(silent)
    trial.close()
    assert metrics["frames"] >= 600
    assert metrics["updates"] > 20


def test_a_broken_agent_ends_the_phase_with_its_error():
    trial = A3C(game="CartPole-v1", phase=Budget(seconds=60), n_agents=3)({}, 0)
    trial._open()
    trial._groups[1].observe = breaking("emulator gone")
    with pytest.raises(OSError, match="emulator gone"):
        trial.train_phase(silent)
    trial.close()


def test_a_checkpoint_passes_between_the_two_systems(tmp_path):
    asynchronous = A3C(game="CartPole-v1", phase=Budget(updates=20), n_agents=3)({}, 0)
    asynchronous.train_phase(silent)
    asynchronous.save(tmp_path)
    asynchronous.close()
    other = GA3C(game="CartPole-v1", device="cpu")({}, 1)
    other.load(tmp_path)
    assert other.learner.updates == asynchronous.learner.updates
    assert all(
        torch.equal(a, b) for a, b in zip(asynchronous.model.parameters(), other.model.parameters(), strict=True)
    )
    again = A3C(game="CartPole-v1", n_agents=2)({}, 1)
    again.load(tmp_path)
    again._open()
    for own in again._copies:  # agents begin with these weights as well
        assert all(torch.equal(a, b) for a, b in zip(own.parameters(), other.model.parameters(), strict=True))
    again.close()


def test_what_has_no_meaning_is_refused():
    with pytest.raises(InvalidInput, match="unknown hyperparameter of A3C 'n_trainers'"):
        A3C("CartPole-v1").check(["n_trainers"])
    with pytest.raises(InvalidInput, match="A3C needs t_max a whole number from 1"):
        A3C(t_max=0)


@pytest.mark.slow  # BA3C, of the same gradients, learns among the quick tests
def test_it_learns_cartpole():
    """Random play scores about 22; within 160 000 frames the mean of the last 100 games is above 120."""
    trial = A3C(game="CartPole-v1", phase=Budget(frames=20_000), n_agents=4)({"learning_rate": 2e-3, "t_max": 10}, 0)
    scores = []
    while len(scores) < 8 and max(scores, default=0) < 120:
        scores.append(trial.train_phase(silent)["score"])
    trial.close()
    assert scores[-1] >= 120, scores
