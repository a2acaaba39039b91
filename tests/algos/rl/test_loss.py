"""The loss against loops over single experiences."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.algos.rl.loss import actor_critic_loss


def slow_parts(logits, values, actions, returns, eps):
    """Sums of the policy's loss, the value's and the entropy."""
    sums = np.zeros(3)
    for row, value, action, target in zip(logits, values, actions, returns, strict=True):
        shifted = [math.exp(x - max(row)) for x in row]
        probs = [x / sum(shifted) for x in shifted]
        entropy = -sum(p * math.log(p + eps) for p in probs)
        advantage = target - value
        sums += -math.log(probs[action] + eps) * advantage, advantage**2, entropy
    return sums


@settings(max_examples=50)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 20),
    st.integers(2, 18),
    st.sampled_from(["mean", "sum"]),
    st.sampled_from([1e-6, 0.1]),
)
def test_agrees_with_the_slow_reference(seed, batch, n_actions, reduction, eps):
    rng = np.random.default_rng(seed)
    logits, values, returns = (rng.normal(size=s) for s in ((batch, n_actions), batch, batch))
    actions = rng.integers(0, n_actions, batch)
    loss = actor_critic_loss(
        torch.tensor(logits),
        torch.tensor(values),
        torch.tensor(actions),
        torch.tensor(returns),
        entropy_beta=0.02,
        value_weight=0.3,
        log_epsilon=eps,
        reduction=reduction,
    )
    parts = slow_parts(logits.tolist(), values, actions, returns, eps)
    expected = parts @ [1, 0.3, -0.02] / (batch if reduction == "mean" else 1)
    assert float(loss.total) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert [float(part) for part in loss[1:]] == pytest.approx(parts / batch, rel=1e-6, abs=1e-6)  # always means


def test_advantages_carry_no_gradient_into_the_value():
    values = torch.zeros(1, requires_grad=True, dtype=torch.float64)
    loss = actor_critic_loss(
        torch.zeros(1, 2, dtype=torch.float64), values, torch.tensor([0]), torch.tensor([2.0]), value_weight=0.5
    )
    (gradient,) = torch.autograd.grad(loss.total, values)
    assert float(gradient) == pytest.approx(-2.0)  # of 0.5 (2 - V)^2 alone


def test_an_impossible_action_has_a_finite_loss():
    loss = actor_critic_loss(
        torch.tensor([[0.0, 2000.0]]), torch.zeros(1), torch.tensor([0]), torch.tensor([1.0]), entropy_beta=0.0
    )
    assert float(loss.policy) == pytest.approx(-math.log(1e-6), rel=1e-3)
