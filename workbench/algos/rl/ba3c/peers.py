"""The other ranks of a gang, as a rank reaches them: connections to rank 0 and other servers, or the all-reduce.

Rank 0 listens until all have connected. So does then each further rank that serves a slice of the weights, if any does;
where it listens the others learn by rank 0. At every phase's start rank 0 sends all of them its state, and where the
process group of the all-reduce meets, if there is to be one.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from workbench.algos.rl.ba3c.connection import Alive, Connection, Listener, connect, receive
from workbench.algos.rl.ba3c.exchange import AllReduce, flat, open_store_socket, put
from workbench.core.errors import InvalidInput


class Peers:
    """The other ranks, as one rank sees them.

    Parameters
    ----------
    rank, n_ranks : int
    timeout_s : float
        Longest wait for another rank.
    n_servers : int
        Ranks 0, 1, … that serve.

    Attributes
    ----------
    connections : list of Connection
        Rank 0's to ranks 1, 2, …; any other's only one, to rank 0.
    servers : dict of int to Connection
        This rank's to the servers of ranks 1, 2, …, but itself.
    clients : dict of int to Connection
        To the ranks that this one serves; rank 0's are its `connections`.
    announcements : list of Connection
        Rank 0's to servers 1, 2, …; such a server's only one, to rank 0.
    """

    def __init__(self, rank: int, n_ranks: int, timeout_s: float, n_servers: int = 1) -> None:
        self.rank, self.n_ranks, self.timeout_s, self.n_servers = rank, n_ranks, timeout_s, n_servers
        self.connections: list[Connection] = []
        self.servers: dict[int, Connection] = {}
        self.clients: dict[int, Connection] = {}
        self.announcements: list[Connection] = []
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
        """Wait until all ranks are connected to rank 0, and to the other servers."""
        if self.n_ranks == 1 or self.connections:
            return
        if self.rank:
            self.connections = [connect(self._address, self.rank, self.timeout_s, alive)]
        elif self._listener is None:
            raise InvalidInput(f"one rank of {self.n_ranks} cannot train alone: call listen(), or set n_ranks=1")
        else:
            self.connections = self._listener.accept(self.n_ranks, alive, self.timeout_s)
            self._listener.close()
            self.clients = dict(enumerate(self.connections, 1))
        if self.n_servers > 1:
            self._meet_servers(alive)

    def _meet_servers(self, alive: Alive) -> None:
        """Connect all ranks with the other servers, one server after the other; nobody goes on before all have met."""

        def watch() -> None:
            alive()
            for connection in self.connections:
                connection.check()  # who is lost here may be awaited elsewhere

        if self.rank == 0:
            told = [receive(connection, watch)[0] for connection in self.connections[: self.n_servers - 1]]
            addresses = [message["serves"] for message in told]
            for connection in self.connections:
                connection.send({"servers": addresses})
            self._connect_to_servers(addresses, watch)
            for connection in self.connections:
                receive(connection, watch)
            return
        chief = self.connections[0]
        if self.rank < self.n_servers:
            self._listener = Listener(chief.host)
            chief.send({"serves": self._listener.address})
        self._connect_to_servers(receive(chief, watch)[0]["servers"], watch)
        chief.send({"met": True})

    def _connect_to_servers(self, addresses: Sequence[str], alive: Alive) -> None:
        for server, address in enumerate(addresses, 1):
            if server == self.rank:
                assert self._listener is not None
                numbers = [number for number in range(self.n_ranks + 1) if number != self.rank]
                accepted = self._listener.accept_from(numbers, self.n_ranks, alive, self.timeout_s)
                self._listener.close()
                self.announcements = [accepted.pop(self.n_ranks)]
                self.clients = accepted
                continue
            self.servers[server] = connect(address, self.rank, self.timeout_s, alive, server)
            if self.rank == 0:
                self.announcements.append(connect(address, self.n_ranks, self.timeout_s, alive, server))

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
            put(state, numbers)
            store = counters["store"]
        if store is not None:
            host = self._host if self.rank == 0 else self.connections[0].host
            where = (str(store[0]), int(store[1]))
            self._reduce = AllReduce(self.rank, self.n_ranks, host, where, sock, self.timeout_s)
        return counters

    def sum(self, numbers: np.ndarray, alive: Alive) -> np.ndarray:
        """Sum over all ranks, the same bits on every rank."""
        return numbers if self._reduce is None else self._reduce.sum(numbers, alive)

    def collect(self, summary: dict[str, Any], alive: Alive) -> list[dict[str, Any]]:
        """Bring what every rank says of its episodes to rank 0, in their order, at every update.

        All have just left the all-reduce, so hardly anybody is waited for; and rank 0 scores what the same seed played,
        however quick messages are.

        Parameters
        ----------
        summary : dict
            This rank's: ``returns`` and ``lengths`` of the episodes finished.
        alive : callable
        """
        if self.rank:
            self.connections[0].send(summary)
            return []
        return [summary, *(receive(connection, alive)[0] for connection in self.connections)]

    def leave(self) -> None:
        """Close the connections; what others send or await of this rank fails."""
        if self._reduce is not None:
            self._reduce.close()
        for connection in (*self.connections, *self.servers.values(), *self.clients.values(), *self.announcements):
            connection.close()
        if self._listener is not None:
            self._listener.close()
        self._reduce, self.connections, self._listener, self._address = None, [], None, ""
        self.servers, self.clients, self.announcements = {}, {}, []
