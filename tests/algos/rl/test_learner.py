"""Predicting and training: in float32, in bfloat16, and on a GPU where there is one."""

import numpy as np
import pytest
import torch

from tests.algos.rl.rollouts import fixed_rollout
from workbench.algos.rl.ga3c.trial import GA3C
from workbench.algos.rl.games import find_game
from workbench.algos.rl.learner import DivergenceError
from workbench.algos.rl.loss import actor_critic_loss
from workbench.core.budget import Budget
from workbench.core.errors import InvalidInput

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")


def learner(**settings):
    return GA3C("Pong", Budget(updates=1), **{"device": "cpu", "precision": "float32"} | settings)({}, seed=3).learner


def rollout(n=24):
    return fixed_rollout(find_game("Pong"), n, seed=5)


def change(trained) -> torch.Tensor:
    """What one update did to the weights of a learner made by `learner`."""
    return torch.cat(
        [
            (new.cpu() - old).flatten()
            for new, old in zip(trained.model.parameters(), learner().model.parameters(), strict=True)
        ]
    )


def test_a_policy_and_a_value_for_every_observation():
    policy, values = learner().predict(rollout(7).obs)
    assert policy.shape == (7, 6)
    assert values.shape == (7,)
    assert np.allclose(policy.sum(1), 1, atol=1e-6)


def cartpole(seed=3, **settings):
    trial = GA3C("CartPole-v1", device="cpu", **settings)({}, seed)
    return trial.learner, fixed_rollout(trial.game)


def test_a_learner_takes_the_gradient_of_the_loss_that_its_settings_say():
    given = {"entropy_beta": 0.3, "value_weight": 0.2, "log_epsilon": 0.1, "reduction": "sum"}
    shared, batch = cartpole(**given)
    columns = [torch.from_numpy(column) for column in (batch.actions, batch.returns)]
    loss = actor_critic_loss(*shared.model(torch.from_numpy(batch.obs)), *columns, **given)
    wanted = torch.autograd.grad(loss.total, list(shared.model.parameters()))
    for found, grad in zip(shared.gradients(batch)[0], wanted, strict=True):
        torch.testing.assert_close(found, grad)


def test_a_prediction_is_of_the_weights_that_are_asked_and_by_default_of_the_shared_ones():
    (shared, batch), (other, _) = cartpole(3), cartpole(4)
    found, wanted, by_default = (
        shared.predict(batch.obs, other.model),
        other.predict(batch.obs),
        shared.predict(batch.obs),
    )
    for one, same, differs in zip(found, wanted, by_default, strict=True):
        assert np.array_equal(one, same)
        assert not np.array_equal(one, differs)


def test_an_update_tells_its_lags_and_the_norm_before_it_is_clipped():
    shared, batch = cartpole(max_grad_norm=1e-3)
    norm = torch.cat([grad.flatten() for grad in shared.gradients(batch)[0]]).norm().item()
    shared.updates, batch.versions[:] = 7, np.arange(len(batch)) % 5
    update = shared.train(batch)
    assert update.lags.tolist() == [7 - version for version in batch.versions]
    assert update.grad_norm == pytest.approx(norm, rel=1e-5)
    assert norm > 0.1


def test_a_loss_that_is_no_number_steps_nothing():
    shared, batch = cartpole()
    before = [weights.clone() for weights in shared.model.parameters()]
    with pytest.raises(DivergenceError, match="loss nan"):
        shared.step(shared.gradients(batch)[0], float("nan"))
    assert all(map(torch.equal, before, shared.model.parameters()))
    assert shared.updates == 0


def test_the_logarithm_s_epsilon_is_the_setting_s():
    told = {eps: learner(log_epsilon=eps).train(rollout()).entropy for eps in (1e-6, 1.0)}
    assert told[1e-6] > 1.7 > 0 > told[1.0]  # of six actions, nearly alike; log(pi + 1) is above 0


def test_bfloat16_is_near_float32_and_leaves_the_weights_in_float32():
    exact, near = learner(), learner(precision="bfloat16")
    for one, other in zip(exact.predict(rollout().obs), near.predict(rollout().obs), strict=True):
        assert not np.array_equal(one, other)
        assert np.allclose(one, other, atol=0.02)
    exact.train(rollout()), near.train(rollout())
    assert {p.dtype for p in near.model.parameters()} == {torch.float32}
    assert torch.cosine_similarity(change(exact), change(near), 0) > 0.95


def test_an_unknown_precision_is_refused():
    with pytest.raises(InvalidInput, match=r"unknown precision 'float8'.*bfloat16"):
        GA3C("Pong", Budget(updates=1), precision="float8")


@needs_gpu
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_gpu_predicts_and_trains_as_the_processor_does(precision):
    gpu, cpu = learner(device="cuda", precision=precision), learner()
    for one, other in zip(gpu.predict(rollout().obs), cpu.predict(rollout().obs), strict=True):
        assert np.allclose(one, other, atol=0.02)
    gpu.train(rollout()), cpu.train(rollout())
    assert torch.cosine_similarity(change(gpu), change(cpu), 0) > 0.95
