"""A3C: copies of the weights and their lag, learning, what it refuses."""

import numpy as np
import pytest
import torch

from tests.support import silent
from workbench.algos.rl.a3c.trial import A3C
from workbench.core.budget import Budget
from workbench.core.errors import InvalidInput


def test_agents_learn_on_their_own_copy_and_take_the_shared_weights_after_each_segment():
    trial = A3C(game="CartPole-v1", phase=Budget(updates=5), n_agents=3, lockstep=True, min_games=1)({"t_max": 4}, 0)
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
    trial = A3C(game="CartPole-v1", phase=Budget(updates=12), n_agents=2, lockstep=True, min_games=1)({"t_max": 2}, 0)
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
    trial = A3C(game="CartPole-v1", phase=Budget(updates=30), n_agents=3, lockstep=True, min_games=1)({"t_max": 5}, 0)
    metrics = trial.train_phase(silent)
    assert 1 <= metrics["train_batch_mean"] <= 5
    assert 0 < metrics["policy_lag_mean"] <= 10  # in turns: at most every other agent's few updates meanwhile
    assert metrics["predict_batch_mean"] == 1
    trial.close()


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
