"""PPO's loss against a slow reference and A2C's gradient; its update, and what it leaves alone."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.algos.rl.rollouts import fixed_rollout
from workbench.algos.rl.ga3c.trial import GA3C
from workbench.algos.rl.hts.ppo import clipped_loss, proximal_update
from workbench.algos.rl.loss import actor_critic_loss


def drawn(seed, batch, n_actions):
    rng = np.random.default_rng(seed)
    logits, others = rng.normal(size=(batch, n_actions)), rng.normal(size=(4, batch))
    return logits, rng.integers(0, n_actions, batch), *others


def slow_loss(logits, actions, values, returns, advantages, log_probs, clip, beta, weight):
    total = 0.0
    for row, a, v, target, advantage, old in zip(logits, actions, values, returns, advantages, log_probs, strict=True):
        probs = [math.exp(x) / sum(map(math.exp, row)) for x in row]
        ratio = probs[a] / math.exp(old)
        clipped = min(max(ratio, 1 - clip), 1 + clip)
        entropy = -sum(p * math.log(p) for p in probs)
        total += -min(ratio * advantage, clipped * advantage) - beta * entropy + weight * (target - v) ** 2
    return total


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), st.integers(1, 20), st.integers(2, 18), st.sampled_from(["mean", "sum"]))
def test_agrees_with_the_slow_reference(seed, batch, n_actions, reduction):
    logits, actions, values, returns, advantages, log_probs = drawn(seed, batch, n_actions)
    tensors = [torch.tensor(a) for a in (logits, values, actions, returns, advantages, log_probs)]
    loss = clipped_loss(*tensors, clip_ratio=0.3, entropy_beta=0.02, value_weight=0.4, reduction=reduction)
    expected = slow_loss(logits, actions, values, returns, advantages, log_probs, 0.3, 0.02, 0.4)
    assert float(loss.total) == pytest.approx(expected / (batch if reduction == "mean" else 1), rel=1e-6, abs=1e-6)


def test_at_the_weights_that_acted_its_gradient_is_that_of_a2c():
    logits, actions, values, returns, _, _ = (torch.tensor(a) for a in drawn(3, 12, 4))
    logits.requires_grad_()
    log_probs = torch.log_softmax(logits, 1).gather(1, actions[:, None])[:, 0].detach()
    ours = clipped_loss(logits, values, actions, returns, returns - values, log_probs)
    theirs = actor_critic_loss(logits, values, actions, returns, log_epsilon=0.0)
    one, other = (torch.autograd.grad(loss.total, logits)[0] for loss in (ours, theirs))
    torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("advantage", "old", "moves"), [(1.0, 0.2, False), (-1.0, 0.2, True), (-1.0, 0.9, False)])
def test_there_is_no_gradient_beyond_the_clip_where_it_would_gain(advantage, old, moves):
    """The action has probability 1/2 now: a ratio of 2.5 or 0.56."""
    logits = torch.zeros(1, 2, dtype=torch.float64, requires_grad=True)
    loss = clipped_loss(
        logits,
        torch.zeros(1),
        torch.tensor([0]),
        torch.zeros(1),
        torch.tensor([advantage]),
        torch.log(torch.tensor([old])),
        entropy_beta=0.0,
    )
    assert bool(torch.autograd.grad(loss.total, logits)[0].any()) is moves


def updated(seed=0, n_epochs=2, n_minibatches=3, ahead=0.0, likelier=0.0, clip_ratio=0.2, **settings):
    """Update from one rollout, by shared weights that are `ahead` of those that acted; half of it was `likelier`."""
    trial, acted = (GA3C("CartPole-v1", device="cpu", max_grad_norm=None, **settings)({}, 5) for _ in range(2))
    with torch.no_grad():
        for p in trial.model.parameters():
            p.add_(ahead)
    rollout = fixed_rollout(trial.game, 25)
    policy, values = trial.learner.predict(rollout.obs, acted.model)
    advantages = rollout.returns - values
    log_probs = np.log(policy[np.arange(len(rollout)), rollout.actions])
    log_probs[::2] += likelier
    generator = np.random.default_rng(seed)
    update = proximal_update(
        trial.learner,
        rollout,
        advantages,
        log_probs,
        generator=generator,
        n_epochs=n_epochs,
        n_minibatches=n_minibatches,
        clip_ratio=clip_ratio,
    )
    return trial, update, (rollout, advantages, log_probs)


@pytest.mark.parametrize("ahead", [0.0, 0.05])
def test_one_step_is_along_the_gradient_at_the_newest_weights(ahead):
    given = {"entropy_beta": 0.3, "value_weight": 0.2, "reduction": "sum"}
    trial, update, (rollout, advantages, log_probs) = updated(
        n_epochs=1, n_minibatches=1, ahead=ahead, likelier=0.1, clip_ratio=0.01, **given
    )
    fresh = GA3C("CartPole-v1", device="cpu")({}, 5).model
    with torch.no_grad():
        for p in fresh.parameters():
            p.add_(ahead)
    logits, values = fresh(torch.from_numpy(rollout.obs))
    normalised = (advantages - advantages.mean()) / advantages.std()
    columns = [torch.from_numpy(a) for a in (rollout.actions, rollout.returns, normalised, log_probs)]
    loss = clipped_loss(logits, values, *columns, clip_ratio=0.01, **given)
    grads = torch.autograd.grad(loss.total, list(fresh.parameters()))
    for grad, square in zip(grads, trial.learner.optimizer.square_avg, strict=True):
        torch.testing.assert_close(square, 0.01 * grad**2, rtol=1e-4, atol=1e-9)
    assert update.policy_loss == pytest.approx(float(loss.policy), abs=1e-6)


def test_an_update_counts_once_and_repeats_with_its_generator():
    trial, update, _ = updated()
    assert trial.learner.updates == 1
    assert (update.lags == 0).all()
    assert 0.5 < update.entropy <= math.log(2) + 1e-6
    again, other = updated()[0], updated(seed=1)[0]
    same = [torch.equal(a, b) for a, b in zip(trial.model.parameters(), again.model.parameters(), strict=True)]
    assert all(same)
    assert not all(torch.equal(a, b) for a, b in zip(trial.model.parameters(), other.model.parameters(), strict=True))


def test_minibatches_hold_two_experiences_at_least():
    """An advantage that is brought to mean 0 all alone is 0, and no policy is learned from it."""
    trial, update, (rollout, _, _) = updated(n_epochs=1, n_minibatches=1000)
    assert all(torch.isfinite(p).all() for p in trial.model.parameters())
    assert trial.learner.descents == len(rollout) // 2
    assert update.policy_loss != 0


def test_every_epoch_shuffles_all_experiences_anew_and_measures_advantages_within_a_minibatch(monkeypatch):
    taken = []

    def noting(logits, values, actions, returns, advantages, log_probs, **settings):
        taken.append((returns.tolist(), advantages.numpy()))
        return clipped_loss(logits, values, actions, returns, advantages, log_probs, **settings)

    monkeypatch.setattr("workbench.algos.rl.hts.ppo.clipped_loss", noting)
    _, _, (rollout, advantages, _) = updated(n_epochs=2, n_minibatches=3)
    number = {value: row for row, value in enumerate(rollout.returns.tolist())}
    rows = [[number[value] for value in returns] for returns, _ in taken]
    epochs = [np.concatenate(rows[:3]).tolist(), np.concatenate(rows[3:]).tolist()]
    assert [sorted(epoch) for epoch in epochs] == [list(range(25))] * 2
    assert epochs[0] != epochs[1]
    for mine, (_, told) in zip(rows, taken, strict=True):
        own = advantages[mine]
        np.testing.assert_allclose(told, (own - own.mean()) / own.std(), rtol=1e-4, atol=1e-5)
