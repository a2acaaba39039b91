"""The parameter server of Distributed BA3C: averages the first k of n gradients, or applies each as it comes.

There is no thread of the server's own. Each rank but the first has a handler here, a thread at its connection; whoever
brings the k-th gradient, a handler or rank 0 itself, makes the update. So nobody waits for a late rank, be it rank 0.

::

    rank 1 ──gradient──▶ handler 1 ─┐                     ┌─▶ handler 1 ──new weights──▶ rank 1
    rank 2 ──gradient──▶ handler 2 ─┼─▶ k are in: update ─┼─▶ handler 2 ──new weights──▶ rank 2
    rank 0 ──gradient───────────────┘                     └─▶ rank 0
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.algos.rl.ba3c.connection import ALIVE_S, Connection, receive
from workbench.core.errors import PeerLost


@dataclass(frozen=True, slots=True)
class Contribution:
    """What a rank brings.

    Attributes
    ----------
    rank : int
    version : int
        Of the weights its gradient is of.
    numbers : ndarray of float32
        The gradient and the stats behind it.
    """

    rank: int
    version: int
    numbers: np.ndarray


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights as they are handed out.

    Attributes
    ----------
    version : int
        Updates they have seen.
    numbers : ndarray of float32, (P,)
        Never written again.
    over : bool
        The phase is.
    steps, episodes : int
        Played and finished by all ranks by then.
    """

    version: int
    numbers: np.ndarray
    over: bool = False
    steps: int = 0
    episodes: int = 0

    def header(self) -> dict[str, Any]:
        """Return all but the numbers, in JSON's types."""
        return {"version": self.version, "over": self.over, "steps": self.steps, "episodes": self.episodes}


class ParameterServer:
    """The weights, and the rule by which gradients change them.

    Parameters
    ----------
    connections : sequence of Connection
        To ranks 1, 2, …
    weights : Weights
        To begin with.
    n_awaited : int
        Gradients an update waits for: k of the n ranks'. Those of the same version that come later are dropped. 1 in
        the asynchronous variant.
    synchronous : bool
        Whether a gradient of older weights is dropped; else it is applied all the same.
    update : callable
        ``(contributions, version) -> Weights``: makes the update; returns the new weights.
    count : callable
        ``(contribution, message, dropped)``: called with everything that comes in, before it is used.

    Notes
    -----
    `update` and `count` are called by one thread at a time.
    """

    def __init__(
        self,
        connections: Sequence[Connection],
        weights: Weights,
        *,
        n_awaited: int,
        synchronous: bool,
        update: Callable[[Sequence[Contribution]], Weights],
        count: Callable[[Contribution, dict[str, Any], bool], None],
    ) -> None:
        self.weights, self.n_awaited, self.synchronous = weights, n_awaited, synchronous
        self.failure: BaseException | None = None
        self._update, self._count = update, count
        self._pending: dict[int, Contribution] = {}
        self._changed = threading.Condition()
        self._closing = False
        self._handlers = [
            threading.Thread(target=self._serve, args=pair, daemon=True) for pair in enumerate(connections, 1)
        ]
        for handler in self._handlers:
            handler.start()

    def push(self, contribution: Contribution, message: dict[str, Any]) -> None:
        """Take a gradient in; it may be the one an update waits for."""
        with self._changed:
            late = self.synchronous and contribution.version != self.weights.version
            self._count(contribution, message, late)
            if late or self.weights.over:
                return
            self._pending[contribution.rank] = contribution
            if len(self._pending) < self.n_awaited:
                return
            ready = [self._pending[rank] for rank in sorted(self._pending)]  # so that k = n is reproducible
            self._pending.clear()
            try:
                self.weights = self._update(ready)
            finally:
                self._changed.notify_all()

    def pull(self, version: int, seconds: float) -> Weights | None:
        """Wait, at most that long, for weights newer than `version`, or the phase's end."""
        with self._changed:
            self._changed.wait_for(lambda: self._settled(version), seconds)
            if self.failure is not None:
                raise self.failure
            return self.weights if self._settled(version) else None

    def wait_for_handlers(self, alive: Callable[[], object]) -> None:
        """Wait until every rank knows that the phase is over: the slowest is awaited once a phase."""
        for handler in self._handlers:
            while handler.is_alive():
                alive()
                handler.join(ALIVE_S)
        if self.failure is not None:
            raise self.failure

    def close(self) -> None:
        """End the handlers: as soon as their connections are closed, or at once."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for handler in self._handlers:
            handler.join()

    def _settled(self, version: int) -> bool:
        return self.weights.version > version or self.weights.over or self._closing or self.failure is not None

    def _serve(self, rank: int, connection: Connection) -> None:
        """Handler: take a gradient, wait for newer weights, hand them out, until the phase is over."""
        try:
            while True:
                while not connection.ready(ALIVE_S):
                    if self._closing or self.failure is not None:
                        return
                message, numbers = connection.receive()
                self.push(Contribution(rank, message["version"], numbers), message)
                weights = None
                while weights is None:
                    weights = self.pull(message["version"], ALIVE_S)
                if self._closing:
                    return
                connection.send(weights.header(), weights.numbers)
                if weights.over:
                    return
        except BaseException as failure:  # noqa: BLE001 - raised again by the thread that runs the phase
            with self._changed:
                self.failure = self.failure or failure
                self._changed.notify_all()


class Client:
    """A rank's way to the parameter server."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def exchange(self, message: dict[str, Any], numbers: np.ndarray, alive: Callable[[], object]) -> Weights:
        """Hand in a gradient and wait for newer weights."""
        self._connection.send(message, numbers)
        header, weights = receive(self._connection, alive)
        if "version" not in header:
            raise PeerLost(f"rank 0 answered {header} instead of with weights")
        return Weights(numbers=weights, **header)
