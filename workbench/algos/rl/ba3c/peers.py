"""A rank's ties to the other ranks of its gang: wires to rank 0, and the all-reduce between all.

Rank 0 opens a door and waits until all have come; the others knock. At every phase's start rank 0 then tells all its
state, and where the process group of the all-reduce meets, if there is to be one.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from workbench.algos.rl.ba3c.exchange import AllReduce, flat, open_store_socket, unflat
from workbench.algos.rl.ba3c.wire import ALIVE_S, Door, Wire, knock
from workbench.core.errors import InvalidInput

Alive = Callable[[], None]
"""Called while others are awaited; raises what ends the phase."""


class Peers:
    """The other ranks, as one rank sees them.

    Parameters
    ----------
    rank, n_ranks : int
    timeout_s : float
        Longest wait for another rank.
    device : torch.device
        Where gradients are averaged.

    Attributes
    ----------
    wires : list of Wire
        Rank 0's to ranks 1, 2, …; any other's only one, to rank 0.
    """

    def __init__(self, rank: int, n_ranks: int, timeout_s: float, device: torch.device) -> None:
        self.rank, self.n_ranks, self.timeout_s = rank, n_ranks, timeout_s
        self.wires: list[Wire] = []
        self._device = device
        self._host, self._address = "", ""
        self._door: Door | None = None
        self._reduce: AllReduce | None = None

    def listen(self, host: str) -> str:
        """Rank 0: open the door; return what the others must know."""
        self.leave()
        self._host, self._door = host, Door(host)
        return self._door.address

    def join(self, address: str) -> None:
        """Other ranks: note where rank 0 is."""
        self.leave()
        self._address = address

    def assemble(self, alive: Alive) -> None:
        """Wait until all ranks have a wire to rank 0."""
        if self.n_ranks == 1 or self.wires:
            return
        if self.rank:
            self.wires = [knock(self._address, self.rank, self.timeout_s)]
            return
        if self._door is None:
            raise InvalidInput(f"one rank of {self.n_ranks} cannot train alone: call listen(), or set n_ranks=1")
        self.wires = self._door.admit(self.n_ranks, alive, self.timeout_s)
        self._door.close()

    def agree(
        self, counters: dict[str, Any], state: Sequence[Tensor], alive: Alive, *, reduces: bool
    ) -> dict[str, Any]:
        """Give all ranks rank 0's counters and tensors, these in place; return the counters.

        Parameters
        ----------
        counters : dict
            In JSON's types.
        state : sequence of Tensor
        alive : callable
        reduces : bool
            Whether gradients are to be all-reduced: then the process group is brought about, if there is none yet.
        """
        store: Sequence[Any] | None = None
        sock = None
        if self.rank == 0:
            if reduces and self._reduce is None and self.wires:
                sock, port = open_store_socket(self._host)
                store = (self._host, port)
            for wire in self.wires:
                wire.send(counters | {"store": store}, flat(state))
        else:
            counters, numbers = receive(self.wires[0], alive)
            for own, theirs in zip(state, unflat(numbers.copy(), state), strict=True):
                own.copy_(theirs)
            store = counters["store"]
        if store is not None:
            host = self._host if self.rank == 0 else self.wires[0].host
            where = (str(store[0]), int(store[1]))
            self._reduce = AllReduce(self.rank, self.n_ranks, host, where, sock, self._device, self.timeout_s)
        return counters

    def sum(self, numbers: np.ndarray, alive: Alive) -> np.ndarray:
        """Sum over all ranks, the same bits on every rank."""
        return numbers if self._reduce is None else self._reduce.sum(numbers, alive)

    def leave(self) -> None:
        """Hang up; what others send or await of this rank fails."""
        if self._reduce is not None:
            self._reduce.close()
        for wire in self.wires:
            wire.close()
        if self._door is not None:
            self._door.close()
        self._reduce, self.wires, self._door, self._address = None, [], None, ""


def receive(wire: Wire, alive: Alive) -> tuple[dict[str, Any], np.ndarray]:
    """Wait for a message, showing life."""
    while not wire.ready(ALIVE_S):
        alive()
    return wire.receive()
