"""RMSProp with statistics shared by several trainer threads (GA3C, Eq. 3)."""

import math
import threading
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor


class SharedRMSProp:
    """Non-centred RMSProp without momentum.

    ``g = decay g + (1 - decay) d^2``, then ``w -= lr d / sqrt(g + eps)`` (Eq. 3), or, with
    `eps_inside_root` off, torch's ``w -= lr d / (sqrt(g) + eps)``.

    Weights are changed in place behind autograd's back (through ``.data``, which leaves the version counters
    alone): with several trainers, one may step between another's forward and backward pass. That is GA3C's
    asynchrony, and is measured as policy lag; autograd would take it for an error.

    Parameters
    ----------
    params : iterable of Tensor
    lr : float
        Learning rate, eta of Eq. 3.
    decay : float
        alpha of Eq. 3.
    eps : float
    eps_inside_root : bool
    initial_square : float
        What g starts at: 0 in torch, 1 in TensorFlow 1, where the first steps are therefore small.
    max_norm : float, optional
        Gradients of a greater Euclidean norm, all together, are scaled down to it.
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float,
        *,
        decay: float = 0.99,
        eps: float = 1e-5,
        eps_inside_root: bool = True,
        initial_square: float = 0.0,
        max_norm: float | None = None,
    ) -> None:
        self.params = list(params)
        self.lr, self.decay, self.eps = lr, decay, eps
        self.eps_inside_root, self.max_norm = eps_inside_root, max_norm
        self._weights = [p.data for p in self.params]
        self.square_avg = [torch.full_like(w, initial_square) for w in self._weights]
        self._lock = threading.Lock()

    @torch.no_grad()
    def step(self, grads: Sequence[Tensor]) -> float:
        """Take one step along `grads`, in the order of the parameters; safe from several threads.

        Returns
        -------
        float
            The gradients' Euclidean norm, before it is clipped. Where it is not finite, no step was taken.
        """
        grads = list(grads)
        norm = float(torch.linalg.vector_norm(torch.stack(torch._foreach_norm(grads))))
        if not math.isfinite(norm):
            return norm
        # the scale goes into the scalars below: every pass over all weights costs as much as training on an experience
        scale = 1.0 if self.max_norm is None or norm <= self.max_norm else self.max_norm / norm
        with self._lock:
            torch._foreach_mul_(self.square_avg, self.decay)
            torch._foreach_addcmul_(self.square_avg, grads, grads, (1 - self.decay) * scale**2)
            if self.eps_inside_root:
                inverse_root = torch._foreach_add(self.square_avg, self.eps)
                torch._foreach_rsqrt_(inverse_root)
                torch._foreach_addcmul_(self._weights, grads, inverse_root, -self.lr * scale)
            else:
                root = torch._foreach_sqrt(self.square_avg)
                torch._foreach_add_(root, self.eps)
                torch._foreach_addcdiv_(self._weights, grads, root, -self.lr * scale)
        return norm

    def state_dict(self) -> dict[str, list[Tensor]]:
        """Return the statistics; settings such as the learning rate belong to the trial's config."""
        return {"square_avg": self.square_avg}

    def load_state_dict(self, state: dict[str, list[Tensor]]) -> None:
        """Take over statistics saved by `state_dict`."""
        with self._lock:
            for own, saved in zip(self.square_avg, state["square_avg"], strict=True):
                own.copy_(saved)
