"""The other ranks of a gang, as a rank reaches them: connections to rank 0, and the all-reduce between all.

Rank 0 listens until all have connected. At every phase's start it then sends all of them its state, and where the
process group of the all-reduce meets, if there is to be one.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from workbench.algos.rl.ba3c.connection import Connection, Listener, connect, receive
from workbench.algos.rl.ba3c.exchange import AllReduce, flat, open_store_socket, unflat
from workbench.core.errors import InvalidInput

Alive = Callable[[], object]
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
    connections : list of Connection
        Rank 0's to ranks 1, 2, …; any other's only one, to rank 0.
    """

    def __init__(self, rank: int, n_ranks: int, timeout_s: float, device: torch.device) -> None:
        self.rank, self.n_ranks, self.timeout_s = rank, n_ranks, timeout_s
        self.connections: list[Connection] = []
        self._device = device
        self._host, self._address = "", ""
        self._listener: Listener | None = None
        self._reduce: AllReduce | None = None

    def listen(self, host: str) -> str:
        """Rank 0: let the others connect; return what they must know."""
        self.leave()
        self._host, self._listener = host, Listener(host)
        return self._listener.address

    def join(self, address: str) -> None:
        """Other ranks: note where rank 0 is."""
        self.leave()
        self._address = address

    def assemble(self, alive: Alive) -> None:
        """Wait until all ranks are connected to rank 0."""
        if self.n_ranks == 1 or self.connections:
            return
        if self.rank:
            self.connections = [connect(self._address, self.rank, self.timeout_s, alive)]
            return
        if self._listener is None:
            raise InvalidInput(f"one rank of {self.n_ranks} cannot train alone: call listen(), or set n_ranks=1")
        self.connections = self._listener.accept(self.n_ranks, alive, self.timeout_s)
        self._listener.close()

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
            if reduces and self._reduce is None and self.connections:
                sock, port = open_store_socket(self._host)
                store = (self._host, port)
            for connection in self.connections:
                connection.send(counters | {"store": store}, flat(state))
        else:
            counters, numbers = receive(self.connections[0], alive)
            for own, theirs in zip(state, unflat(numbers.copy(), state), strict=True):
                own.copy_(theirs)
            store = counters["store"]
        if store is not None:
            host = self._host if self.rank == 0 else self.connections[0].host
            where = (str(store[0]), int(store[1]))
            self._reduce = AllReduce(self.rank, self.n_ranks, host, where, sock, self._device, self.timeout_s)
        return counters

    def sum(self, numbers: np.ndarray, alive: Alive) -> np.ndarray:
        """Sum over all ranks, the same bits on every rank."""
        return numbers if self._reduce is None else self._reduce.sum(numbers, alive)

    def collect(self, summary: dict[str, Any], alive: Alive, *, last: bool) -> list[dict[str, Any]]:
        """Bring what every rank says of its episodes to rank 0, as it comes in; if `last`, wait for all of it.

        Parameters
        ----------
        summary : dict
            This rank's: ``returns`` and ``lengths`` of the episodes finished.
        alive : callable
        last : bool
            It is the phase's last.
        """
        if self.rank:
            if last or summary["returns"]:
                self.connections[0].send(summary | {"last": last})
            return []
        summaries = [summary]
        for connection in self.connections:
            ended = False
            while not ended and (last or connection.ready()):
                summaries.append(receive(connection, alive)[0])
                ended = summaries[-1]["last"]
        return summaries

    def leave(self) -> None:
        """Close the connections; what others send or await of this rank fails."""
        if self._reduce is not None:
            self._reduce.close()
        for connection in self.connections:
            connection.close()
        if self._listener is not None:
            self._listener.close()
        self._reduce, self.connections, self._listener, self._address = None, [], None, ""
