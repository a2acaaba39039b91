"""What every server of Distributed BA3C does, and the servers that follow the first.

A server has a handler, a thread, for each rank of another process: it takes the rank's slice of a gradient, waits until
the rank is answered, and sends it its slice of the weights. Whose gradients are used, and who is answered with which
weights, is not for a handler to decide: the chief, rank 0's server, decides, and announces it to the others, its
followers, in one stream each. So all slices of an update are of the same ranks' gradients, and all slices of weights
that a rank gets are of one version.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.algos.rl.ba3c.connection import ALIVE_S, Alive, Connection, receive
from workbench.algos.rl.ba3c.shards import Shard
from workbench.algos.rl.workers import Halted, Workers


@dataclass(frozen=True, slots=True)
class Contribution:
    """What a rank brings to a server.

    Attributes
    ----------
    rank : int
    version : int
        Of the weights its gradient is of.
    numbers : ndarray of float32
        The server's slice of the gradient; to the chief also, behind it, the stats.
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
    numbers : ndarray of float32
        A slice, or all, (P,); never written again.
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


@dataclass(frozen=True, slots=True)
class Step:
    """What the chief tells of an update before it is made.

    Attributes
    ----------
    scales : list of float
        What each tensor of the gradient is multiplied with, (T,).
    version, over, steps, episodes
        Of the weights that come of it; see `Weights`.
    """

    scales: list[float]
    version: int
    over: bool = False
    steps: int = 0
    episodes: int = 0


class ShardServer:
    """A slice of the weights, and the ranks' way to it.

    Parameters
    ----------
    connections : mapping of int to Connection
        To the ranks of other processes. This process's own rank calls `push` and `pull`.
    shard : Shard
    version : int
        Of the weights to begin with.

    Attributes
    ----------
    weights : Weights
        The newest.
    """

    def __init__(self, connections: Mapping[int, Connection], shard: Shard, version: int) -> None:
        self.shard, self.weights = shard, Weights(version, shard.weights())
        self._gradients: dict[int, np.ndarray] = {}  # handed in and not used yet: at most one a rank
        self._answers: dict[int, Weights] = {}  # not fetched yet
        self._mean = np.zeros(0, np.float32)
        self._changed = threading.Condition()
        self._workers = Workers(self._wake)
        for rank, connection in connections.items():
            self._workers.start(self._serve, rank, connection)

    @property
    def failure(self) -> BaseException | None:
        """What ended one of the threads; `check` and `pull` raise it."""
        return self._workers.failure

    def push(self, contribution: Contribution, message: dict[str, Any], alive: Alive) -> None:
        """Take a slice of a gradient in; `message` and `alive` are of use to the chief."""
        with self._changed:
            self._gradients[contribution.rank] = contribution.numbers
            self._changed.notify_all()

    def pull(self, rank: int, seconds: float) -> Weights | None:
        """Wait, at most that long, for the answer to what `rank` brought last."""
        with self._changed:
            self._changed.wait_for(lambda: rank in self._answers or self._workers.stopping, seconds)
            if self.failure is not None:
                raise self.failure
            return self._answers.pop(rank, None)

    def average(self, ranks: Sequence[int]) -> list[float]:
        """Average what these ranks brought, or are about to; return the mean's squared norms, tensor by tensor."""
        gradients = self._take(ranks)
        self._mean = np.sum(gradients, axis=0) / len(gradients)
        return self.shard.squares(self._mean)

    def step(self, step: Step, ranks: Sequence[int]) -> None:
        """Step along the mean, and answer the ranks whose it was."""
        self.shard.step(self._mean, step.scales)
        self.weights = Weights(step.version, self.shard.weights(), step.over, step.steps, step.episodes)
        self._answer(ranks)

    def dismiss(self, ranks: Sequence[int]) -> None:
        """Leave what these ranks brought, or are about to, and answer them with the newest weights."""
        self._take(ranks)
        self._answer(ranks)

    def check(self) -> None:
        """Raise what has ended one of the threads."""
        if self.failure is not None:
            raise self.failure
        if self._workers.stopping:
            raise Halted

    def wait_until_over(self, alive: Alive) -> None:
        """Wait until every rank knows that the phase is over: the slowest is awaited once a phase."""
        self._workers.join(meanwhile=alive)
        self.check()

    def close(self) -> None:
        """End the threads: as soon as their connections are closed, or at once."""
        self._workers.stop()
        self._workers.join()

    def _take(self, ranks: Sequence[int]) -> list[np.ndarray]:
        """Remove what these ranks brought, waiting for what is on its way: they send to the chief last."""
        with self._changed:
            self._changed.wait_for(lambda: self._gradients.keys() >= set(ranks) or self._workers.stopping)
            self.check()
            n = self.shard.part.stop - self.shard.part.start
            return [self._gradients.pop(rank)[:n] for rank in ranks]

    def _answer(self, ranks: Sequence[int]) -> None:
        with self._changed:
            self._answers |= dict.fromkeys(ranks, self.weights)
            self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _serve(self, rank: int, connection: Connection) -> None:
        """Handler: take a gradient, wait for the answer, hand it out, until the phase is over."""
        over = False
        while not over:
            message, numbers = receive(connection, self.check)
            self.push(Contribution(rank, message["version"], numbers), message, self.check)
            while (weights := self.pull(rank, ALIVE_S)) is None:
                self.check()
            connection.send(weights.header(), weights.numbers)
            over = weights.over


class Follower(ShardServer):
    """A server that does as the chief announces; at the end of the phase it tells the chief its slice.

    Parameters
    ----------
    connections, shard, version
        See `ShardServer`.
    chief : Connection
        Announcements come by it, in the order in which they are to be followed, and nothing else.
    n_ranks : int
    """

    def __init__(
        self, connections: Mapping[int, Connection], shard: Shard, version: int, *, chief: Connection, n_ranks: int
    ) -> None:
        super().__init__(connections, shard, version)
        self._workers.start(self._follow, chief, n_ranks)

    def _follow(self, chief: Connection, n_ranks: int) -> None:
        home: set[int] = set()  # those that have been told that the phase is over
        while len(home) < n_ranks:
            announced, _ = receive(chief, self.check)
            ranks = announced["ranks"]
            if announced["late"]:
                self.dismiss(ranks)
            else:
                chief.send({"squares": self.average(ranks)})
                self.step(Step(**receive(chief, self.check)[0]), ranks)
            if self.weights.over:
                home |= set(ranks)
        chief.send({}, self.shard.state())
