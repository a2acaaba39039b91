"""The chief of Distributed BA3C's parameter servers: averages the first k of n gradients, or applies each as it comes.

It has no thread of its own that decides. Whoever brings the k-th gradient, a handler or rank 0 itself, makes the
update. So nobody waits for a late rank, be it rank 0. Other servers, if there are any, do what it announces.

::

    rank 1 ──gradient──▶ handler 1 ─┐                     ┌─▶ handler 1 ──new weights──▶ rank 1
    rank 2 ──gradient──▶ handler 2 ─┼─▶ k are in: update ─┼─▶ handler 2 ──new weights──▶ rank 2
    rank 0 ──gradient───────────────┘      ▲       │      └─▶ rank 0
                                 ‖slice‖² ─┘       └─▶ whose gradients; by what to scale them
                                  followers, each with a handler a rank for its slice
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from workbench.algos.rl.ba3c.connection import ALIVE_S, Alive, Connection, receive
from workbench.algos.rl.ba3c.shard_server import Contribution, ShardServer, Step, Weights
from workbench.algos.rl.ba3c.shards import Shard
from workbench.core.errors import PeerLost


class ParameterServer(ShardServer):
    """The first slice of the weights, and the rule by which gradients change all of them.

    Parameters
    ----------
    connections, shard, version
        See `ShardServer`.
    followers : sequence of Connection
        To the servers of the other slices.
    n_awaited : int
        Gradients an update waits for: k of the n ranks'. Those of the same version that come later are dropped. 1 in
        the asynchronous variant.
    synchronous : bool
        Whether a gradient of older weights is dropped; else it is applied all the same, until the phase is over.
    update : callable
        ``(contributions, squares) -> Step``: counts the update of these gradients, whose mean has these squared norms,
        (T,), tensor by tensor; raises if it must not be made.
    count : callable
        ``(contribution, message, dropped)``: called with everything that comes in, before it is used.

    Notes
    -----
    `update` and `count` are called by one thread at a time.
    """

    def __init__(
        self,
        connections: Mapping[int, Connection],
        shard: Shard,
        version: int,
        followers: Sequence[Connection] = (),
        *,
        n_awaited: int,
        synchronous: bool,
        update: Callable[[Sequence[Contribution], np.ndarray], Step],
        count: Callable[[Contribution, dict[str, Any], bool], None],
    ) -> None:
        self.n_awaited, self.synchronous = n_awaited, synchronous
        self._followers, self._update, self._count = followers, update, count
        self._pending: dict[int, Contribution] = {}
        self._turn = threading.Lock()  # held from a decision until it is carried out here
        super().__init__(connections, shard, version)

    def push(self, contribution: Contribution, message: dict[str, Any], alive: Alive) -> None:
        """Take a gradient in; it may be the one an update waits for. `alive` is called while others are awaited."""
        while not self._turn.acquire(timeout=ALIVE_S):
            alive()
        try:
            super().push(contribution, message, alive)
            self._decide(contribution, message, alive)
        finally:
            self._turn.release()

    def pull(self, rank: int, seconds: float) -> Weights | None:
        """Wait, at most that long, for the answer to what `rank` brought last; see `ShardServer.pull`."""
        answer = super().pull(rank, seconds)
        alone = not self._followers  # then who comes late for its answer may have still newer weights
        return self.weights if alone and answer is not None else answer

    def collect(self, shards: Sequence[Shard], alive: Alive) -> None:
        """Take over the followers' slices, at the end of a phase."""
        for follower, shard in zip(self._followers, shards, strict=True):
            shard.load(receive(follower, alive)[1])

    def _decide(self, contribution: Contribution, message: dict[str, Any], alive: Alive) -> None:
        unused = self.weights.over or (self.synchronous and contribution.version != self.weights.version)
        self._count(contribution, message, unused)
        if unused:
            self._announce({"late": True, "ranks": [contribution.rank]})
            self.dismiss([contribution.rank])
            return
        self._pending[contribution.rank] = contribution
        if len(self._pending) >= self.n_awaited:
            ready = [self._pending[rank] for rank in sorted(self._pending)]  # so that k = n is reproducible
            self._pending.clear()
            self._make(ready, alive)

    def _make(self, ready: Sequence[Contribution], alive: Alive) -> None:
        """Make the update of these gradients, at all servers."""
        ranks = [contribution.rank for contribution in ready]
        self._announce({"late": False, "ranks": ranks})
        squares = [self.average(ranks), *(receive(line, alive)[0]["squares"] for line in self._followers)]
        step = self._update(ready, np.sum(squares, axis=0))
        self._announce(asdict(step))
        self.step(step, ranks)

    def _announce(self, message: dict[str, Any]) -> None:
        for follower in self._followers:
            follower.send(message)


class Client:
    """A rank's ways to the servers.

    Parameters
    ----------
    rank : int
    ways : sequence of Connection or ShardServer
        To each server, the chief first; to one in this process, the server itself.
    parts : sequence of slice
        Theirs of the weights.
    """

    def __init__(self, rank: int, ways: Sequence[Connection | ShardServer], parts: Sequence[slice]) -> None:
        self._rank, self._ways, self._parts = rank, ways, parts

    def exchange(self, message: dict[str, Any], numbers: np.ndarray, alive: Alive) -> Weights:
        """Hand in a gradient, slice by slice, and wait for weights.

        Parameters
        ----------
        message : dict
            For the chief; its ``version`` is for all.
        numbers : ndarray of float32, (P + N_STATS,)
            The gradient, and the stats, for the chief.
        alive : callable

        Raises
        ------
        PeerLost
            A server is gone.
        """
        for way, part in list(zip(self._ways, self._parts, strict=True))[1:]:
            self._hand_in(way, {"version": message["version"]}, numbers[part], alive)
        # the chief's is the last: what it accepts is with the other servers, or on the way to them
        first, behind = self._parts[0], self._parts[-1].stop
        own = numbers if len(self._ways) == 1 else np.concatenate([numbers[first], numbers[behind:]])
        self._hand_in(self._ways[0], message, own, alive)
        slices = [self._fetch(way, alive) for way in self._ways]
        if len({weights.version for weights in slices}) > 1:
            raise RuntimeError(f"servers handed out weights of versions {[weights.version for weights in slices]}")
        return (
            slices[0] if len(slices) == 1 else replace(slices[0], numbers=np.concatenate([w.numbers for w in slices]))
        )

    def _hand_in(
        self, way: Connection | ShardServer, message: dict[str, Any], numbers: np.ndarray, alive: Alive
    ) -> None:
        if isinstance(way, ShardServer):
            way.push(Contribution(self._rank, message["version"], numbers), message, alive)
        else:
            way.send(message, numbers, alive)

    def _fetch(self, way: Connection | ShardServer, alive: Alive) -> Weights:
        if isinstance(way, ShardServer):
            while (weights := way.pull(self._rank, ALIVE_S)) is None:
                alive()
            return weights
        header, numbers = receive(way, alive)
        if "version" not in header:
            raise PeerLost(f"{way.other} answered {header} instead of with weights")
        return Weights(numbers=numbers, **header)
