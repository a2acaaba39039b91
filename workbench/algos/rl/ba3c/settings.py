"""Distributed BA3C: ranks that each play and take a gradient, and one update from their mean (1801.02852, Sec. 2).

::

    rank 0   play ▸ batch ▸ gradient ─┐                                ┌─▶ new weights ▸ play …
    rank 1   play ▸ batch ▸ gradient ─┼─▶ mean of the first k ▸ Adam ─┼─▶ new weights ▸ play …
    rank n-1 play ▸ batch ▸ gradient ─┘   (later ones are dropped)     └─▶ new weights ▸ play …

A rank is a process with environments of its own; between updates it plays and predicts in turn, in one thread. With
k = n the mean is an all-reduce and every rank takes the same Adam step (`exchange.py`); with k < n, and in the
asynchronous variant, rank 0 keeps the weights and the others fetch them there (`parameter_server.py`). Here are the
settings; what a rank does is in `ba3c_rank.py`, how ranks find each other in `peers.py`.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from workbench.algos.rl.envs import find_game
from workbench.algos.rl.evaluate import BA3C_PROTOCOL
from workbench.algos.rl.settings import Settings, _check, _is_int
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Config, Trainable

if TYPE_CHECKING:
    from workbench.algos.rl.ba3c.rank import BA3CTrial

PAPER_NETWORK = "ba3c-128"


@dataclass(frozen=True)
class BA3C(Settings):
    """Distributed BA3C as a study takes it: settings, and a factory of gangs.

    `n_groups`, `n_predictors`, `n_trainers`, `min_training_batch`, `training_queue`, `lockstep`, `max_grad_norm` and
    RMSProp's settings have no meaning here and are not read. The network is by default the paper's, on frames in
    colour; `n_agents` are those of one rank.

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
    n_agents: int = 10
    n_groups: int = 1

    tunable: ClassVar[tuple[str, ...]] = (
        "learning_rate",
        "gamma",
        "t_max",
        "batch",
        "entropy_beta",
        "value_weight",
        "adam_eps",
        "beta1",
        "beta2",
        "max_average_norm",
        "n_agents",
        "network",
        "init",
    )

    def __post_init__(self) -> None:
        if self.network == "auto" and find_game(self.game).atari:
            object.__setattr__(self, "network", PAPER_NETWORK)
        super().__post_init__()
        for name in ("n_ranks", "batch", "evaluate_games"):
            _check(self, name, "a whole number from 1", lambda v: _is_int(v) and v >= 1)
        _check(self, "evaluate_every", "a whole number from 1, or None", lambda v: v is None or (_is_int(v) and v >= 1))
        for name in ("adam_eps", "peer_timeout_s"):
            _check(self, name, "a number above 0", lambda v: 0 < v < float("inf"))
        for name in ("beta1", "beta2"):
            _check(self, name, "in [0, 1)", lambda v: 0 <= v < 1)
        _check(self, "max_average_norm", "a number above 0, or None", lambda v: v is None or v > 0)
        k, n = self.n_awaited, self.n_ranks
        if k is not None and not (_is_int(k) and 1 <= k <= n):
            raise InvalidInput(f"BA3C needs n_awaited from 1 to n_ranks, or None for all; got {k!r} of {n} ranks")
        if not self.synchronous and k is not None:
            raise InvalidInput("the asynchronous BA3C awaits nobody: leave n_awaited None, or set synchronous=True")
        if self.reduction != "mean":
            raise InvalidInput("BA3C averages gradients over experiences and ranks: leave reduction 'mean'")
        if self.adjust_every_s is not None:
            raise InvalidInput("BA3C has no predictors and trainers to adjust: leave adjust_every_s None, or use GA3C")

    def __call__(self, config: Config, seed: int) -> Trainable:
        """Build a whole trial for this machine, its ranks 1, 2, … in processes of their own."""
        if self.n_ranks == 1:
            return self.rank(config, seed, 0)
        from workbench.algos.rl.ba3c.local_gang import LocalGang

        return LocalGang(self, config, seed)

    def rank(self, config: Config, seed: int, rank: int) -> "BA3CTrial":
        """Build one rank of a trial, for an executor that brings a gang together."""
        from workbench.algos.rl.ba3c.rank import BA3CTrial  # it needs the settings

        return BA3CTrial(self.with_config(config), seed, rank)

    @property
    def awaited(self) -> int:
        """Gradients an update is made of."""
        return (self.n_awaited or self.n_ranks) if self.synchronous else 1

    @property
    def has_server(self) -> bool:
        """Whether rank 0 keeps the weights for all; else each has its own copy, and the gradients are all-reduced."""
        return self.awaited < self.n_ranks
