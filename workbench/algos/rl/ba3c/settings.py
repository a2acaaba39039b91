"""What Distributed BA3C reads beside every system's settings: its ranks, its batch, Adam."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from workbench.algos.rl.evaluate import BA3C_PROTOCOL
from workbench.algos.rl.optim import SharedAdam
from workbench.algos.rl.settings import Settings
from workbench.core.checks import DECAY, POSITIVE, check, whole
from workbench.core.errors import InvalidInput

PAPER_NETWORK = "ba3c-128"


@dataclass(frozen=True)
class BA3CSettings(Settings):
    """Settings of Distributed BA3C.

    The network is by default the paper's, on frames in colour; `n_agents` are those of one rank.

    Attributes
    ----------
    n_ranks : int
        Processes of one trial; each takes a worker of the cluster.
    n_awaited : int or None
        k: an update is made from the first k of the n gradients, later ones are dropped. None waits for all.
    synchronous : bool
        False: the paper's asynchronous variant (Sec. 2.3.2), which applies every gradient when it comes, however old.
    batch : int
        Experiences a rank takes a gradient of; the effective batch is k times as large.
    adam_eps, beta1, beta2, max_average_norm
        See `SharedAdam`.
    evaluate_every : int or None
        Updates between evaluations (the paper's 1000), by rank 0, while the others wait; None makes none. The newest
        result is the metric ``eval_score``; the trial's score stays the online one.
    evaluate_games : int
        Greedy games an evaluation plays.
    peer_timeout_s : float
        Longest wait for another rank, seconds; longer than an evaluation takes.
    plays_on : bool
        A rank plays on, one batch ahead, in a thread of its own while its gradient is taken and exchanged, as the
        paper's nodes do; else it plays and trains in turn, and the same seed gives the same where all are awaited.
    n_servers : int
        Ranks that keep a slice of the weights each, where there are parameter servers (the paper's 4).
    """

    n_ranks: int = 2
    n_awaited: int | None = None
    synchronous: bool = True
    batch: int = 32
    adam_eps: float = 1e-8
    beta1: float = 0.8
    beta2: float = 0.75
    max_average_norm: float | None = 0.1
    evaluate_every: int | None = 1000
    evaluate_games: int = BA3C_PROTOCOL.n_episodes
    peer_timeout_s: float = 1800.0
    n_servers: int = 1
    plays_on: bool = False
    n_agents: int = 10

    tunable: ClassVar[tuple[str, ...]] = (
        *Settings.tunable,
        *("batch", "adam_eps", "beta1", "beta2", "max_average_norm"),
    )

    def __post_init__(self) -> None:
        if self.network == "auto" and self.found_game().atari:
            object.__setattr__(self, "network", PAPER_NETWORK)
        super().__post_init__()
        check(self, whole(1), "n_ranks", "n_servers", "batch", "evaluate_games")
        check(self, whole(1).or_none(), "evaluate_every")
        check(self, POSITIVE, "adam_eps", "peer_timeout_s")
        check(self, POSITIVE.or_none(), "max_average_norm")
        check(self, DECAY, "beta1", "beta2")
        k, n = self.n_awaited, self.n_ranks
        if k is not None and not (whole(1).fits(k) and k <= n):
            raise InvalidInput(f"BA3C needs n_awaited from 1 to n_ranks, or None for all; got {k!r} of {n} ranks")
        if not self.synchronous and k is not None:
            raise InvalidInput("the asynchronous BA3C awaits nobody: leave n_awaited None, or set synchronous=True")
        if self.n_servers > n:
            raise InvalidInput(
                f"BA3C's servers are ranks: n_servers is 1 to n_ranks, got {self.n_servers} of {n} ranks"
            )
        if self.n_servers > 1 and not self.has_server:
            raise InvalidInput(
                f"BA3C that awaits all {n} gradients has an all-reduce and no servers: got n_servers={self.n_servers}, "
                "leave it 1, or set n_awaited below n_ranks, or synchronous=False"
            )
        if self.reduction != "mean":
            raise InvalidInput("BA3C averages gradients over experiences and ranks: leave reduction 'mean'")

    def make_optimizer(self, params: Iterable[Tensor]) -> SharedAdam:
        """Make what steps the weights."""
        return SharedAdam(
            params,
            self.learning_rate,
            beta1=self.beta1,
            beta2=self.beta2,
            eps=self.adam_eps,
            max_average_norm=self.max_average_norm,
        )

    @property
    def awaited(self) -> int:
        """Gradients an update is made of."""
        return (self.n_awaited or self.n_ranks) if self.synchronous else 1

    @property
    def has_server(self) -> bool:
        """Whether servers keep the weights for all; else each rank has a copy, and gradients are all-reduced."""
        return self.awaited < self.n_ranks

    @property
    def repeatable(self) -> bool:
        """Where all ranks are awaited, and play and train in turn."""
        return not self.has_server and not self.plays_on
