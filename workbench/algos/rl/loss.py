"""The actor-critic loss every system here trains with (GA3C, Eqs. 1, 2 and the log-epsilon of Sec. 4.4)."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

Reduction = Literal["sum", "mean"]


class Loss(NamedTuple):
    """Scalars; all but `total` are detached means over the batch, for the log."""

    total: Tensor
    policy: Tensor
    value: Tensor
    entropy: Tensor


def actor_critic_loss(
    logits: Tensor,
    values: Tensor,
    actions: Tensor,
    returns: Tensor,
    *,
    entropy_beta: float = 0.01,
    value_weight: float = 0.5,
    log_epsilon: float = 1e-6,
    reduction: Reduction = "mean",
) -> Loss:
    """Policy-gradient loss with a learned baseline, an entropy bonus and a squared value error.

    Per experience: ``-log(pi(a|s) + eps) (R - V) - beta H(pi) + w (R - V)^2``, where the first (R - V) is held
    constant and ``H = -sum pi log(pi + eps)``.

    Parameters
    ----------
    logits : Tensor, (B, n_actions)
    values : Tensor, (B,)
    actions : Tensor of int64, (B,)
    returns : Tensor, (B,)
    entropy_beta, value_weight, log_epsilon : float
        beta, w and eps above. The authors add eps instead of clipping the probabilities.
    reduction : {"mean", "sum"}
        Over the batch. The authors sum, so that a larger batch takes a larger step. Here batches vary from a
        few experiences to hundreds as t_max is tuned over [2, 100]; with the mean, a learning rate means the
        same at any batch size, and t_max's effect is not mixed with the step size.
    """
    probs = torch.softmax(logits, 1)
    chosen = probs.gather(1, actions[:, None])[:, 0]
    errors = returns - values
    policy = -torch.log(chosen + log_epsilon) * errors.detach()
    entropy = -(probs * torch.log(probs + log_epsilon)).sum(1)
    value = errors.square()
    return weighed(policy, value, entropy, entropy_beta, value_weight, reduction)


def weighed(
    policy: Tensor, value: Tensor, entropy: Tensor, entropy_beta: float, value_weight: float, reduction: Reduction
) -> Loss:
    """Put the parts of a loss together, each (B,); entropy is a gain."""
    each = policy - entropy_beta * entropy + value_weight * value
    total = each.sum() if reduction == "sum" else each.mean()
    return Loss(total, policy.detach().mean(), value.detach().mean(), entropy.detach().mean())
