"""PPO: a clipped surrogate, several epochs of minibatches over one rollout (Schulman et al., arXiv 1707.06347)."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from workbench.algos.rl.learner import Learner, Update
from workbench.algos.rl.loss import Loss, Reduction, weighed
from workbench.algos.rl.rollout import Rollout


def clipped_loss(
    logits: Tensor,
    values: Tensor,
    actions: Tensor,
    returns: Tensor,
    advantages: Tensor,
    log_probs: Tensor,
    *,
    clip_ratio: float = 0.2,
    entropy_beta: float = 0.01,
    value_weight: float = 0.5,
    reduction: Reduction = "mean",
) -> Loss:
    """Clipped surrogate (Eq. 7), with the entropy bonus and the squared value error of Eq. 9.

    Per experience: ``-min(q A, clip(q, 1 - eps, 1 + eps) A) - beta H(pi) + w (R - V)^2``, where q is the probability of
    the action taken over its probability when it was drawn. At q = 1 its gradient is that of `actor_critic_loss`, but
    for the latter's log-epsilon, with A for (R - V).

    Parameters
    ----------
    logits : Tensor, (B, n_actions)
    values, returns, advantages, log_probs : Tensor, (B,)
        `log_probs` are of the actions when they were drawn.
    actions : Tensor of int64, (B,)
    clip_ratio, entropy_beta, value_weight : float
        eps, beta and w above.
    reduction : {"mean", "sum"}
        Over the batch.
    """
    log_policy = torch.log_softmax(logits, 1)
    ratio = torch.exp(log_policy.gather(1, actions[:, None])[:, 0] - log_probs)
    policy = -torch.minimum(ratio * advantages, ratio.clamp(1 - clip_ratio, 1 + clip_ratio) * advantages)
    entropy = -(log_policy.exp() * log_policy).sum(1)
    value = (returns - values).square()
    return weighed(policy, value, entropy, entropy_beta, value_weight, reduction)


def proximal_update(
    learner: Learner,
    rollout: Rollout,
    advantages: np.ndarray,
    log_probs: np.ndarray,
    *,
    generator: np.random.Generator,
    n_epochs: int,
    n_minibatches: int,
    clip_ratio: float,
) -> Update:
    """Make one update of several epochs, each of `n_minibatches` steps.

    Gradients are taken at the shared weights, wherever they are by then. If these are already ahead of the weights that
    acted, as HTS-RL's are by one update, the ratio in the loss accounts for it, and clips what they have moved in all.

    Parameters
    ----------
    learner : Learner
    rollout : Rollout, of B experiences
    advantages, log_probs : ndarray of float32, (B,)
        Log-probabilities under the weights that acted. Advantages are brought to mean 0 and deviation 1 within a
        minibatch.
    generator : numpy.random.Generator
        Shuffles the experiences, anew in each epoch.
    n_epochs, n_minibatches : int
        A minibatch holds two experiences or more, though there be fewer of them: the advantage of one, less its mean,
        is 0.
    clip_ratio : float

    Raises
    ------
    DivergenceError
        Loss or gradients are NaN or infinite.
    """
    lags = learner.updates - rollout.versions
    parts = min(n_minibatches, max(1, len(rollout) // 2))
    shuffled = (part for _ in range(n_epochs) for part in np.array_split(generator.permutation(len(rollout)), parts))
    sums = np.zeros(4)
    with learner.stream():
        columns = (rollout.obs, rollout.actions, rollout.returns, advantages, log_probs)
        batch = [learner.upload(column) for column in columns]
        for part in shuffled:
            loss = _loss(learner, [_rows(column, part) for column in batch], clip_ratio)
            grads = torch.autograd.grad(loss.total, list(learner.model.parameters()))
            norm = learner.descend(grads, float(loss.total.detach()))
            sums += [float(loss.policy), float(loss.value), float(loss.entropy), norm]
    learner.count()
    return Update(lags, *(float(mean) for mean in sums / (n_epochs * parts)))


def _rows(column: Tensor, numbers: np.ndarray) -> Tensor:
    """Choose rows; on a processor by NumPy, which is faster there, and keeps the order in memory."""
    if column.device.type == "cpu":
        return torch.from_numpy(column.numpy()[numbers])
    return column[torch.from_numpy(numbers)]


def _loss(learner: Learner, minibatch: Sequence[Tensor], clip_ratio: float) -> Loss:
    obs, actions, returns, advantages, log_probs = minibatch
    with learner.autocast():
        logits, values = learner.model(obs)
    return clipped_loss(
        logits,
        values,
        actions,
        returns,
        (advantages - advantages.mean()) / (advantages.std(correction=0) + 1e-8),
        log_probs,
        clip_ratio=clip_ratio,
        entropy_beta=learner.entropy_beta,
        value_weight=learner.value_weight,
        reduction=learner.reduction,
    )
