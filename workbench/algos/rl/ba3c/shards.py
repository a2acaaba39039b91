"""Slices of the weights, each of which a server of its own steps (Distributed BA3C, Sec. 2.3: 1/ps on each of ps).

Adam changes every number by itself, so a slice is stepped without the others. Clipping alone needs the norm of a whole
tensor, and a slice may begin in the midst of one: it tells the squared norm of its part, and is told the factor.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from workbench.algos.rl.ba3c.exchange import flat, put, unflat
from workbench.algos.rl.optim import SharedAdam


def cut(n: int, n_servers: int) -> list[slice]:
    """Cut `n` parameters into contiguous slices, one a server, whose lengths differ by 1 at most."""
    return [slice(*ends) for ends in pairwise(n * i // n_servers for i in range(n_servers + 1))]


def pieces(tensors: Sequence[Tensor], part: slice) -> dict[int, Tensor]:
    """Find what of tensors, joined, lies in a slice.

    Returns
    -------
    dict
        Index of a tensor → what the slice has of it, flat, on the tensor's memory; those it has nothing of are left
        out.
    """
    found, begins = {}, 0
    for i, tensor in enumerate(tensors):
        start, stop = max(part.start - begins, 0), min(part.stop - begins, tensor.numel())
        if start < stop:
            found[i] = tensor.data.view(-1)[start:stop]
        begins += tensor.numel()
    return found


class Shard:
    """A slice of the weights and of Adam's averages, on the memory of a learner's own.

    Parameters
    ----------
    adam : SharedAdam
        The learner's, of all weights.
    part : slice
        Of the weights, joined: S of P elements.
    """

    def __init__(self, adam: SharedAdam, part: slice) -> None:
        weights = pieces(adam.params, part)
        self.part, self._n_tensors, self._tensors = part, len(adam.params), list(weights)
        self._adam = SharedAdam(weights.values(), adam.lr, beta1=adam.beta1, beta2=adam.beta2, eps=adam.eps)
        self._adam.steps = adam.steps
        self._adam.mean, self._adam.square = (list(pieces(of, part).values()) for of in (adam.mean, adam.square))

    def squares(self, gradient: np.ndarray) -> list[float]:
        """Give the squared norm of a gradient's slice, (S,), tensor by tensor: (T,), 0 for those it has nothing of."""
        found = [0.0] * self._n_tensors
        for i, piece in zip(self._tensors, unflat(gradient, self._adam.params), strict=True):
            found[i] = float(torch.linalg.vector_norm(piece)) ** 2
        return found

    def step(self, gradient: np.ndarray, scales: Sequence[float]) -> None:
        """Step along a gradient's slice, (S,), of which each tensor's part is multiplied with its scale, (T,)."""
        cut_up = zip(self._tensors, unflat(gradient, self._adam.params), strict=True)
        self._adam.step([piece if scales[i] == 1 else piece * scales[i] for i, piece in cut_up])

    def weights(self) -> np.ndarray:
        """Copy the weights, float32, (S,)."""
        return flat(self._adam.params)

    def state(self) -> np.ndarray:
        """Copy the weights and both averages, float32, (3 S,)."""
        return flat(self._state())

    def load(self, state: np.ndarray) -> None:
        """Take over what `state` gave elsewhere."""
        put(self._state(), state)

    def _state(self) -> list[Tensor]:
        return [*self._adam.params, *self._adam.mean, *self._adam.square]


@contextmanager
def undone_if_cut_short(tensors: Sequence[Tensor]) -> Iterator[None]:
    """Put tensors back as they were, should what is done with them be ended by an error or from without."""
    before = flat(tensors)
    try:
        yield
    except BaseException:
        put(tensors, before)
        raise
