"""One model, its optimiser, and the two things done with it: predict and train."""

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from workbench.algos.rl.graphs import Graphs
from workbench.algos.rl.loss import Loss, Reduction, actor_critic_loss
from workbench.algos.rl.model import ActorCritic
from workbench.algos.rl.optim import Optimizer
from workbench.algos.rl.rollout import Rollout
from workbench.core.errors import WorkbenchError

Precision = Literal["float32", "bfloat16"]


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

    Parameters
    ----------
    precision : {"float32", "bfloat16"}
        What layers compute in; the weights, the losses and the optimiser are float32 in any case.

    Attributes
    ----------
    updates : int
        Updates so far; also the version of the weights.
    descents : int
        Steps along gradients in this process, of which an update of PPO makes many: a sign of life.
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
        log_epsilon: float = 1e-6,
        precision: Precision = "float32",
    ) -> None:
        self.model, self.optimizer, self.device = model, optimizer, device
        self.precision = precision
        self.entropy_beta, self.value_weight, self.reduction = entropy_beta, value_weight, reduction
        self.log_epsilon = log_epsilon
        self.updates = self.descents = 0
        self._lock = threading.Lock()
        self._streams = threading.local()
        self._graphs = Graphs(partial(_answers, precision), device) if device.type == "cuda" else None

    def predict(self, obs: np.ndarray, model: ActorCritic | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the policy, (B, n_actions), and the values, (B,), of observations (B, *obs_shape).

        They are those of `model`, an agent's own copy (A3C), or else of the shared weights (GA3C).
        """
        model = model or self.model
        with torch.inference_mode():
            if self._graphs is not None:
                answer = self._graphs(model, obs)
            else:
                answer = _answers(self.precision, model, self.upload(obs)).numpy()
            return answer[:, :-1], answer[:, -1]

    @torch.no_grad()
    def pull(self, model: ActorCritic) -> int:
        """Copy the shared weights into `model`; return their version."""
        version = self.updates
        for own, shared in zip(model.parameters(), self.model.parameters(), strict=True):
            own.copy_(shared)
        self.settle()
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
        with self.stream():
            grads, loss = self.gradients(rollout, model)
            norm = self.step(grads, float(loss.total.detach()))
            policy, value, entropy = torch.stack(loss[1:]).tolist()  # a GPU is waited for: the step is made
            return Update(lags, policy, value, entropy, norm)

    def gradients(self, rollout: Rollout, model: ActorCritic | None = None) -> tuple[tuple[Tensor, ...], Loss]:
        """Return the loss's gradients, in the order of the parameters, and the loss; nothing is changed."""
        obs, actions, returns = (self.upload(part) for part in (rollout.obs, rollout.actions, rollout.returns))
        model = model or self.model
        with self.autocast():
            logits, values = model(obs)
        loss = actor_critic_loss(
            logits,
            values,
            actions,
            returns,
            entropy_beta=self.entropy_beta,
            value_weight=self.value_weight,
            log_epsilon=self.log_epsilon,
            reduction=self.reduction,
        )
        return torch.autograd.grad(loss.total, list(model.parameters())), loss

    def step(self, grads: Sequence[Tensor], loss: float) -> float:
        """Make an update of gradients: step along them and count it; see `descend`."""
        norm = self.descend(grads, loss)
        self.count()
        return norm

    def descend(self, grads: Sequence[Tensor], loss: float) -> float:
        """Step the shared weights along gradients; return their norm, before it is clipped.

        Raises
        ------
        DivergenceError
            Loss or gradients are NaN or infinite; the weights are left as they were.
        """
        norm = self.optimizer.step(grads) if np.isfinite(loss) else float("nan")
        self.refuse_divergence(loss, norm)
        self.descents += 1
        return norm

    def refuse_divergence(self, loss: float, norm: float) -> None:
        """Raise `DivergenceError` where a loss, or the norm of its gradient, is NaN or infinite."""
        if not (np.isfinite(loss) and np.isfinite(norm)):
            raise DivergenceError(
                f"training diverged at update {self.updates}: loss {loss:.3g}, gradient norm {norm:.3g} "
                f"at learning rate {self.optimizer.lr:g}; lower the learning rate or clip gradients "
                f"({self.optimizer.clipped_by})"
            )

    def count(self) -> None:
        """Count an update: the shared weights are a new version."""
        with self._lock:
            self.updates += 1

    def autocast(self) -> AbstractContextManager[object]:
        """Layers in bfloat16 if that was asked for; weights, losses and the optimiser stay in float32."""
        return _autocast(self.precision, self.device)

    def upload(self, array: np.ndarray) -> torch.Tensor:
        """Bring an array to the device; to a GPU out of pinned memory, so that the transfer needs no processor."""
        tensor = torch.from_numpy(array)
        if self.device.type == "cuda":
            tensor = tensor.pin_memory()
        return tensor.to(self.device, non_blocking=True)

    def settle(self) -> None:
        """Wait for what this thread has asked of a GPU: others, on streams of their own, are to find the weights so."""
        if self.device.type == "cuda":
            torch.cuda.current_stream(self.device).synchronize()
            if hasattr(self._streams, "own"):
                self._streams.own.synchronize()

    def stream(self) -> AbstractContextManager[object]:
        """Give each thread that trains a CUDA stream of its own: predictions do not queue behind it."""
        if self.device.type != "cuda":
            return nullcontext()
        if not hasattr(self._streams, "own"):
            _allow_streams_of_threads()
            self._streams.own = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
            # the weights were made on the default stream
            self._streams.own.wait_stream(torch.cuda.default_stream(self.device))
        return torch.cuda.stream(self._streams.own)


def _answers(precision: Precision, model: ActorCritic, obs: Tensor) -> Tensor:
    """Give policies and values side by side, (B, n_actions + 1)."""
    with _autocast(precision, obs.device):
        logits, values = model(obs)
        return torch.cat([torch.softmax(logits, 1), values[:, None]], 1)


def _autocast(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """Lower layers to bfloat16, or do nothing: torch's context takes as long as small layers even switched off."""
    return torch.autocast(device.type, torch.bfloat16) if precision == "bfloat16" else nullcontext()


@cache
def _allow_streams_of_threads() -> None:
    """Have torch not warn, where it would, that the same weights are trained on several streams: that is meant."""
    if hasattr(torch.autograd.graph, "set_warn_on_accumulate_grad_stream_mismatch"):
        torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
