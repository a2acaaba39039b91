"""One model, its optimiser, and the two things done with it: predict and train."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from workbench.algos.rl.loss import Loss, Reduction, actor_critic_loss
from workbench.algos.rl.model import ActorCritic
from workbench.algos.rl.optim import Optimizer
from workbench.algos.rl.rollout import Rollout
from workbench.core.errors import WorkbenchError


class DivergenceError(WorkbenchError, FloatingPointError):
    """The loss or the gradients are no longer numbers: this trial is lost, others are not touched."""


@dataclass(frozen=True, slots=True)
class Update:
    """What one update did; losses are means over its experiences.

    Attributes
    ----------
    lags : ndarray of int64, (B,)
        Updates the weights saw between choosing an action and training on it (k of GA3C's Eq. 4).
    """

    lags: np.ndarray
    policy_loss: float
    value_loss: float
    entropy: float
    grad_norm: float


class Learner:
    """Predicts and trains with one copy of the weights, from any number of threads.

    Predictions may read weights while a trainer writes them, as in GA3C: there is no lock between the two.

    Attributes
    ----------
    updates : int
        Updates so far; also the version of the weights.
    """

    def __init__(
        self,
        model: ActorCritic,
        optimizer: Optimizer,
        device: torch.device,
        *,
        entropy_beta: float,
        value_weight: float,
        reduction: Reduction,
    ) -> None:
        self.model, self.optimizer, self.device = model, optimizer, device
        self.entropy_beta, self.value_weight, self.reduction = entropy_beta, value_weight, reduction
        self.updates = 0
        self._lock = threading.Lock()

    def predict(self, obs: np.ndarray, model: ActorCritic | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the policy, (B, n_actions), and the values, (B,), of observations (B, *obs_shape).

        They are those of `model`, an agent's own copy (A3C), or else of the shared weights (GA3C).
        """
        with torch.inference_mode():
            logits, values = (model or self.model)(torch.from_numpy(obs).to(self.device, non_blocking=True))
            return torch.softmax(logits, 1).cpu().numpy(), values.cpu().numpy()

    @torch.no_grad()
    def pull(self, model: ActorCritic) -> int:
        """Copy the shared weights into `model`; return their version."""
        version = self.updates
        for own, shared in zip(model.parameters(), self.model.parameters(), strict=True):
            own.copy_(shared)
        return version

    def train(self, rollout: Rollout, model: ActorCritic | None = None) -> Update:
        """Make one update from a rollout.

        Parameters
        ----------
        rollout : Rollout
        model : ActorCritic, optional
            Whose gradients are taken: an agent's own copy (A3C), or else the shared weights (GA3C). The step is
            always one of the shared weights.

        Raises
        ------
        DivergenceError
            Loss or gradients are NaN or infinite; the weights are left as they were.
        """
        lags = self.updates - rollout.versions
        grads, loss = self.gradients(rollout, model)
        norm = self.step(grads, float(loss.total.detach()))
        return Update(lags, float(loss.policy), float(loss.value), float(loss.entropy), norm)

    def gradients(self, rollout: Rollout, model: ActorCritic | None = None) -> tuple[tuple[Tensor, ...], Loss]:
        """Return the loss's gradients, in the order of the parameters, and the loss; nothing is changed."""
        obs = torch.from_numpy(rollout.obs).to(self.device, non_blocking=True)
        actions = torch.from_numpy(rollout.actions).to(self.device, non_blocking=True)
        returns = torch.from_numpy(rollout.returns).to(self.device, non_blocking=True)
        model = model or self.model
        logits, values = model(obs)
        loss = actor_critic_loss(
            logits,
            values,
            actions,
            returns,
            entropy_beta=self.entropy_beta,
            value_weight=self.value_weight,
            reduction=self.reduction,
        )
        return torch.autograd.grad(loss.total, list(model.parameters())), loss

    def step(self, grads: Sequence[Tensor], loss: float) -> float:
        """Step the shared weights along gradients; return their norm, before it is clipped.

        Raises
        ------
        DivergenceError
            As in `train`.
        """
        norm = self.optimizer.step(grads) if np.isfinite(loss) else float("nan")
        if not np.isfinite(norm):
            raise DivergenceError(
                f"training diverged at update {self.updates}: loss {loss:.3g}, gradient norm {norm:.3g} "
                f"at learning rate {self.optimizer.lr:g}; lower the learning rate or clip gradients (max_grad_norm)"
            )
        with self._lock:
            self.updates += 1
        return norm
