"""What ranks give each other at every update, and the all-reduce that averages it (Distributed BA3C, Sec. 2.3).

A contribution is one array: the gradient, and behind it the sums that the gang's bookkeeping needs (`Stats`), so that
one message carries both and what is summed over ranks is summed for both.
"""

import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed
from torch import Tensor

from workbench.algos.rl.ba3c.connection import ALIVE_S, Alive, listening
from workbench.core.errors import PeerLost, first_line

dist: Any = torch.distributed  # in part untyped
_MEET_S = 60.0  # for ranks that are all there already
MAX_LAG = 63  # updates; an experience that lags more is counted here
N_STATS = 7 + MAX_LAG + 1


@dataclass
class Stats:
    """What one rank played and trained on since its last contribution, or the sum over ranks.

    Attributes
    ----------
    experiences : float
        Trained on.
    policy_loss, value_loss, entropy : float
        Sums over the experiences.
    steps, episodes : float
        Transitions played, episodes finished.
    seconds : float
        Of the phase so far: rank 0's, 0 elsewhere.
    lags : ndarray of float32, (MAX_LAG + 1,)
        Experiences by the updates between their action and the weights whose gradient is taken.
    """

    experiences: float
    policy_loss: float
    value_loss: float
    entropy: float
    steps: float
    episodes: float
    seconds: float
    lags: np.ndarray

    def array(self) -> np.ndarray:
        """Return the numbers, float32, (N_STATS,); counts stay exact up to 2^24."""
        numbers = (self.experiences, self.policy_loss, self.value_loss, self.entropy)
        return np.concatenate([[*numbers, self.steps, self.episodes, self.seconds], self.lags]).astype(np.float32)

    @classmethod
    def of(cls, array: np.ndarray) -> "Stats":
        """Read what `array` returned, or a sum of such."""
        experiences, policy, value, entropy, steps, episodes, seconds = (float(number) for number in array[:7])
        return cls(experiences, policy, value, entropy, steps, episodes, seconds, array[7:])


def flat(tensors: Sequence[Tensor]) -> np.ndarray:
    """Join tensors into one float32 array, (P,)."""
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors]).cpu().numpy().astype(np.float32, copy=False)


def unflat(array: np.ndarray, like: Sequence[Tensor]) -> list[Tensor]:
    """Cut an array of `flat` into tensors shaped, and placed, as `like`."""
    parts = torch.split(torch.from_numpy(np.require(array, requirements="W")), [tensor.numel() for tensor in like])
    return [part.view_as(tensor).to(tensor.device) for part, tensor in zip(parts, like, strict=True)]


@torch.no_grad()
def put(tensors: Sequence[Tensor], numbers: np.ndarray) -> None:
    """Write an array of `flat` back into the tensors."""
    for own, new in zip(tensors, unflat(numbers, tensors), strict=True):
        own.copy_(new)


def open_store_socket(host: str) -> tuple[socket.socket, int]:
    """Bind, on `host` alone, the socket for the store by which a process group meets; and its port."""
    sock = listening(host)
    return sock, sock.getsockname()[1]


class AllReduce:
    """Averages over all ranks, with torch.distributed's gloo, also where ranks train on GPUs: several may share one.

    It reduces in a ring (or a tree) of equal shares: every rank receives, sums and hands on 1/n of the gradient and
    then gathers the other shares. That is a parameter server with as many shards as ranks, without its bottleneck.

    Parameters
    ----------
    rank, n_ranks : int
    host : str
        This machine's address, which gloo is bound to.
    store : tuple of str and int
        Where rank 0's store listens.
    master : socket, optional
        Rank 0's: what it listens with.
    timeout_s : float
        Longest wait for the others.
    """

    def __init__(
        self,
        rank: int,
        n_ranks: int,
        host: str,
        store: tuple[str, int],
        master: socket.socket | None,
        timeout_s: float,
    ) -> None:
        self._options = dist.AllreduceOptions()
        self._options.timeout = timedelta(seconds=timeout_s)
        limit = timedelta(seconds=min(timeout_s, _MEET_S))
        fd = {} if master is None else {"master_listen_fd": master.detach()}
        where = (*store, n_ranks, rank == 0)
        try:
            met = dist.TCPStore(*where, timeout=limit, wait_for_workers=False, **fd)
            self._group: Any = _process_group(met, rank, n_ranks, host, limit)
        except RuntimeError as err:
            raise PeerLost(f"the process group did not come about: {first_line(err)}") from None

    def sum(self, array: np.ndarray, alive: Alive) -> np.ndarray:
        """Return the sum over ranks, the same bits on every rank; `alive` is called while others are awaited."""
        tensor = torch.from_numpy(array)
        done = threading.Event()
        try:
            work = self._group.allreduce([tensor], self._options)
            work.get_future().add_done_callback(lambda _: done.set())
            while not done.wait(ALIVE_S):
                alive()
            work.wait()
        except RuntimeError as err:
            raise PeerLost(f"a rank was lost in the all-reduce: {first_line(err)}") from None
        return tensor.numpy()

    def close(self) -> None:
        """Part; the others' pending sums fail."""
        self._group = None


def _process_group(store: Any, rank: int, n_ranks: int, host: str, limit: timedelta) -> Any:
    """Make a group of this trial's own: torch's global one would tie together what lives in one process."""
    gloo = dist.ProcessGroupGloo._Options()
    gloo._devices = [dist.ProcessGroupGloo.create_device(hostname=host)]  # by itself it may take another network
    gloo._timeout = limit
    return dist.ProcessGroupGloo(store, rank, n_ranks, gloo)
