"""RMSProp and Adam, each with statistics shared by several threads (GA3C, Eq. 3; Distributed BA3C, Eqs. 2 to 6)."""

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar

import torch
from torch import Tensor

# Weights of a silent feature have a gradient of 0: in some thousand steps their mean of squares would be too small for
# a normal float32, with which processors take many times as long. The root of this adds nothing to eps. Adam's mean of
# gradients comes there sooner, and is 0 below it.
_LEAST_SQUARE = 1e-30
_LEAST_NORMAL = torch.finfo(torch.float32).tiny
_NO_CORRECTION = 1e9  # steps after which Adam's corrections of bias are none


class Optimizer(ABC):
    """What steps the weights; safe from several threads.

    Weights are changed in place behind autograd's back (through ``.data``, which leaves the version counters
    alone): with several trainers, one may step between another's forward and backward pass. That is GA3C's
    asynchrony, and is measured as policy lag; autograd would take it for an error.

    Parameters
    ----------
    params : iterable of Tensor
    lr : float
        Learning rate.

    Attributes
    ----------
    clipped_by : str
        The setting that clips gradients, as trials have it.
    """

    clipped_by: ClassVar[str]

    def __init__(self, params: Iterable[Tensor], lr: float) -> None:
        self.params = list(params)
        self.lr = lr
        self._weights = [p.data for p in self.params]
        self._lock = threading.Lock()
        self._long_ago = [torch.full((), _NO_CORRECTION, device=w.device) for w in self._weights]
        self._passes = 0

    @torch.no_grad()
    def step(self, grads: Sequence[Tensor]) -> float:
        """Take one step along `grads`, in the order of the parameters; they may be scaled in place.

        Returns
        -------
        float
            The gradients' Euclidean norm, before they are clipped. Where it is not finite, no step was taken.
        """
        grads = [grad.contiguous() for grad in grads]
        norm = float(torch.linalg.vector_norm(torch.stack(torch._foreach_norm(grads))))
        if math.isfinite(norm):
            with self._lock:
                self._apply(grads, norm)
        return norm

    @abstractmethod
    def _apply(self, grads: list[Tensor], norm: float) -> None:
        """Change statistics and weights; one thread at a time."""

    def _in_one_pass(
        self,
        grads: list[Tensor],
        mean: list[Tensor],
        square: list[Tensor],
        lr: float,
        beta1: float,
        beta2: float,
        eps: float,
        scale: float = 1.0,
    ) -> None:
        """Take Adam's step without correction of bias along ``scale d``, reading weights and statistics once each.

        With `beta1` 0 the means become the gradients. This is what ``torch.optim.Adam(fused=True)`` ends in.
        """
        decays = [decay for decay in (beta1, beta2) if decay > 0]
        if self._passes % min(map(_passes_until_tiny, decays), default=1) == 0:
            # in the first, too: statistics may be a checkpoint's
            torch._foreach_clamp_min_(square, _LEAST_SQUARE)
            for one in mean if beta1 else ():
                torch.hardshrink(one, _LEAST_SQUARE, out=one)
        torch._fused_adam_(
            self._weights,
            grads,
            mean,
            square,
            [],
            self._long_ago,
            lr=lr,
            beta1=beta1,
            beta2=beta2,
            weight_decay=0.0,
            eps=eps,
            amsgrad=False,
            maximize=False,
            grad_scale=None if scale == 1 else torch.full((), 1 / scale, device=self._weights[0].device),
        )

    @abstractmethod
    def state_dict(self) -> dict[str, list[Tensor]]:
        """Return the statistics; settings such as the learning rate belong to the trial's config."""

    def load_state_dict(self, state: dict[str, list[Tensor]]) -> None:
        """Take over statistics saved by `state_dict`; those of another kind of optimiser are left out."""
        own = self.state_dict()
        if own.keys() != state.keys():
            return
        with self._lock:
            for name, tensors in own.items():
                for mine, saved in zip(tensors, state[name], strict=True):
                    mine.copy_(saved)


class SharedRMSProp(Optimizer):
    """Non-centred RMSProp without momentum.

    ``g = decay g + (1 - decay) d^2``, then ``w -= lr d / sqrt(g + eps)`` (Eq. 3), or, with
    `eps_inside_root` off, torch's ``w -= lr d / (sqrt(g) + eps)``.

    Parameters
    ----------
    params : iterable of Tensor
    lr : float
        Eta of Eq. 3.
    decay : float
        alpha of Eq. 3.
    eps : float
    eps_inside_root : bool
    initial_square : float
        What g starts at: 0 in torch, where the first step moves every weight by ten learning rates; 1 in TensorFlow 1,
        where the first steps are small.
    max_norm : float, optional
        Gradients of a greater Euclidean norm, all together, are scaled down to it.
    """

    clipped_by = "max_grad_norm"

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float,
        *,
        decay: float = 0.99,
        eps: float = 1e-5,
        eps_inside_root: bool = False,
        initial_square: float = 0.0,
        max_norm: float | None = None,
    ) -> None:
        super().__init__(params, lr)
        self.decay, self.eps, self.eps_inside_root, self.max_norm = decay, eps, eps_inside_root, max_norm
        self.square_avg = [torch.full_like(w, initial_square) for w in self._weights]

    def _apply(self, grads: list[Tensor], norm: float) -> None:
        scale = 1.0 if self.max_norm is None or norm <= self.max_norm else self.max_norm / norm
        if not self.eps_inside_root:  # Adam whose mean of gradients is the last one: they may lie in one place
            self._in_one_pass(grads, grads, self.square_avg, self.lr, 0.0, self.decay, self.eps, scale)
            self._passes += 1
            return
        # the scale goes into the scalars: every pass over all weights costs as much as training on an experience
        torch._foreach_mul_(self.square_avg, self.decay)
        torch._foreach_addcmul_(self.square_avg, grads, grads, (1 - self.decay) * scale**2)
        torch._foreach_clamp_min_(self.square_avg, _LEAST_SQUARE)
        inverse_root = torch._foreach_add(self.square_avg, self.eps)
        torch._foreach_rsqrt_(inverse_root)
        torch._foreach_addcmul_(self._weights, grads, inverse_root, -self.lr * scale)

    def state_dict(self) -> dict[str, list[Tensor]]:
        """Return the running mean of the squared gradients."""
        return {"square_avg": self.square_avg}


class SharedAdam(Optimizer):
    """Adam as TensorFlow has it (Distributed BA3C, Eqs. 5 and 6).

    ``m = b1 m + (1 - b1) d``, ``v = b2 v + (1 - b2) d^2``, then
    ``w -= lr sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + eps)``: eps is not scaled with the bias correction of v, as it
    is in torch's. Where eps is large, as the single-node BA3C's 1e-3, that makes a difference in the first steps.

    Parameters
    ----------
    params : iterable of Tensor
    lr : float
    beta1, beta2 : float
        Decay a step of the averages, in [0, 1).
    eps : float
    max_average_norm : float, optional
        Gradients are clipped to it, tensor by tensor, by `clip_by_average_norm`.
    """

    clipped_by = "max_average_norm"

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        max_average_norm: float | None = None,
    ) -> None:
        super().__init__(params, lr)
        self.beta1, self.beta2, self.eps, self.max_average_norm = beta1, beta2, eps, max_average_norm
        self.steps = torch.zeros((), device=self._weights[0].device)  # what ranks agree on is joined
        self.mean = [torch.zeros_like(w) for w in self._weights]
        self.square = [torch.zeros_like(w) for w in self._weights]

    def _apply(self, grads: list[Tensor], norm: float) -> None:
        if self.max_average_norm is not None:
            grads = [clip_by_average_norm(grad, self.max_average_norm) for grad in grads]
        self.steps += 1
        t = float(self.steps)
        rate = self.lr * math.sqrt(1 - self.beta2**t) / (1 - self.beta1**t)
        self._passes = int(t) - 1  # the same on all ranks, also on one that came later
        self._in_one_pass(grads, self.mean, self.square, rate, self.beta1, self.beta2, self.eps)

    def scales(self, norms: Sequence[float]) -> list[float]:
        """Give what each tensor's gradient is multiplied with, where these are their norms, (T,)."""
        most = self.max_average_norm
        if most is None:
            return [1.0] * len(self.params)
        return [average_norm_scale(norm, p.numel(), most) for norm, p in zip(norms, self.params, strict=True)]

    def state_dict(self) -> dict[str, list[Tensor]]:
        """Return the number of steps and the averages."""
        return {"steps": [self.steps], "mean": self.mean, "square": self.square}


def _passes_until_tiny(decay: float) -> int:
    """Count the steps in which `_LEAST_SQUARE` decays to what is hardly a normal float32."""
    return max(1, int(math.log(_LEAST_NORMAL / _LEAST_SQUARE) / math.log(decay)))


def clip_by_average_norm(grad: Tensor, most: float) -> Tensor:
    """Scale a tensor down where its Euclidean norm, divided by its number of elements, exceeds `most`.

    TensorFlow's function of this name, which Distributed BA3C applies to every tensor of the gradient with 0.1.
    """
    scale = average_norm_scale(float(torch.linalg.vector_norm(grad)), grad.numel(), most)
    return grad if scale == 1 else grad * scale


def average_norm_scale(norm: float, n: int, most: float) -> float:
    """Give what `clip_by_average_norm` multiplies a tensor of `n` elements and this norm with."""
    average = norm / n
    return 1.0 if average <= most else most / average
