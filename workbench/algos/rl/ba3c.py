"""Distributed BA3C: ranks that each play and take a gradient, and one update from their mean (1801.02852, Sec. 2).

::

    rank 0   play ▸ batch ▸ gradient ─┐                                ┌─▶ new weights ▸ play …
    rank 1   play ▸ batch ▸ gradient ─┼─▶ mean of the first k ▸ Adam ─┼─▶ new weights ▸ play …
    rank n-1 play ▸ batch ▸ gradient ─┘   (later ones are dropped)     └─▶ new weights ▸ play …

A rank is a process with environments of its own; between updates it plays and predicts in turn, in one thread. With
k = n the mean is an all-reduce and every rank takes the same Adam step (`exchange.py`); with k < n, and in the
asynchronous variant, rank 0 keeps the weights and the others fetch them there (`parameter_server.py`).
"""

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch

from workbench.algos.rl.envs import find_game
from workbench.algos.rl.episodes import Episodes
from workbench.algos.rl.evaluate import BA3C_PROTOCOL, evaluate
from workbench.algos.rl.exchange import MAX_LAG, N_STATS, AllReduce, Stats, flat, open_store_socket, unflat
from workbench.algos.rl.learner import Update
from workbench.algos.rl.meter import Reading
from workbench.algos.rl.model import ActorCritic
from workbench.algos.rl.optim import SharedAdam
from workbench.algos.rl.parameter_server import Client, Contribution, ParameterServer, Weights
from workbench.algos.rl.rollout import Rollout
from workbench.algos.rl.settings import Settings, _check, _is_int
from workbench.algos.rl.trial import PROGRESS_S, Trial, derived
from workbench.algos.rl.wire import Door, Wire, knock
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Config, Progress, Trainable

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
        from workbench.algos.rl.local_gang import LocalGang

        return LocalGang(self, config, seed)

    def rank(self, config: Config, seed: int, rank: int) -> "BA3CTrial":
        """Build one rank of a trial, for an executor that brings a gang together."""
        return BA3CTrial(self.with_config(config), seed, rank)

    @property
    def awaited(self) -> int:
        """Gradients an update is made of."""
        return (self.n_awaited or self.n_ranks) if self.synchronous else 1

    @property
    def has_server(self) -> bool:
        """Whether rank 0 keeps the weights for all; else each has its own copy, and the gradients are all-reduced."""
        return self.awaited < self.n_ranks


class BA3CTrial(Trial):
    """One rank of a trial; a `GangTrainable`.

    Attributes
    ----------
    rank : int
    dropped : int
        Gradients that came too late, so far; known to rank 0.
    """

    settings: BA3C

    def __init__(self, settings: BA3C, seed: int, rank: int = 0) -> None:
        super().__init__(replace(settings, n_groups=1), seed)
        self.rank, self.dropped, self.eval_score = rank, 0, float("nan")
        if rank:  # weights are the trial's; games and actions are this rank's own
            self.seed = derived(seed, 4, rank)
            self._generators = [np.random.default_rng([self.seed, 1, 0])]
        self._own = Episodes(settings.n_agents, settings.score_window)  # `episodes` are all ranks'
        self._played = 0  # by all ranks, as far as an update has told
        self._told_steps = self._told_episodes = 0
        self._pool: list[Rollout] = []  # played, not trained on yet
        self._acting: ActorCritic = self.model
        self._host, self._address = "", ""
        self._door: Door | None = None
        self._wires: list[Wire] = []
        self._reduce: AllReduce | None = None

    # -- the gang ---------------------------------------------------------------------------------------------

    def listen(self, host: str) -> str:
        """Open the door for the others; see `GangTrainable`."""
        self.leave()
        self._host, self._door = host, Door(host)
        return self._door.address

    def join(self, address: str) -> None:
        """Note where rank 0 is."""
        self.leave()
        self._address = address

    def leave(self) -> None:
        """Hang up."""
        if self._reduce is not None:
            self._reduce.close()
        for wire in self._wires:
            wire.close()
        if self._door is not None:
            self._door.close()
        self._reduce, self._wires, self._door, self._address = None, [], None, ""

    def close(self) -> None:
        """Hang up, and close the environments."""
        self.leave()
        super().close()
        self._pool, self._told_steps = [], 0

    @property
    def steps(self) -> int:
        """Transitions played so far, by all agents of all ranks, as far as an update has told."""
        return self._played

    def load(self, path: Any) -> None:
        """Go on from a checkpoint; see `Trial.load`."""
        super().load(path)
        self._played = self._steps_before

    # -- a phase ----------------------------------------------------------------------------------------------

    def _optimizer(self, model: ActorCritic) -> SharedAdam:
        s = self.settings
        return SharedAdam(
            model.parameters(),
            s.learning_rate,
            beta1=s.beta1,
            beta2=s.beta2,
            eps=s.adam_eps,
            max_average_norm=s.max_average_norm,
        )

    def _open(self) -> None:
        super()._open()
        self._free = list(range(self._segments.n))

    def _open_group(self, n_agents: int) -> None:
        super()._open_group(n_agents)
        self._groups[-1].episodes = self._own

    def _run(self, progress: Progress) -> None:
        self._progress, self._shown = progress, time.monotonic()
        self._ended = self.episodes.finished
        try:
            self._assemble()
            self._agree()
            self._held = self.learner.updates
            self._evaluated = self._held // (self.settings.evaluate_every or 1)
            self._before |= {"episodes": self._ended, "steps": self._played, "updates": self.learner.updates}
            if self.settings.has_server:
                if self.rank == 0:
                    self._run_by_server()
                else:
                    self._run_by_client()
            else:
                self._run_by_all_reduce()
        except BaseException:
            self.leave()
            raise

    def _assemble(self) -> None:
        """Wait until all ranks have a wire to rank 0."""
        s = self.settings
        if s.n_ranks == 1 or self._wires:
            return
        if self.rank == 0:
            if self._door is None:
                raise InvalidInput(f"one rank of {s.n_ranks} cannot train alone: call listen(), or set n_ranks=1")
            self._wires = self._door.admit(s.n_ranks, self._alive, s.peer_timeout_s)
            self._door.close()
        else:
            self._wires = [knock(self._address, self.rank, s.peer_timeout_s)]

    def _agree(self) -> None:
        """Give all ranks rank 0's weights, statistics and counters, and bring the process group about."""
        optimizer = self.learner.optimizer
        assert isinstance(optimizer, SharedAdam)
        state = [*(p.data for p in self.model.parameters()), *optimizer.mean, *optimizer.square, optimizer.steps]
        store: tuple[str, int] | None = None
        sock = None
        if self.rank == 0:
            if not self.settings.has_server and self._reduce is None and self._wires:
                sock, port = open_store_socket(self._host)
                store = (self._host, port)
            agreed = {"updates": self.learner.updates, "steps": self._played, "episodes": self._ended, "store": store}
            for wire in self._wires:
                wire.send(agreed, flat(state))
        else:
            message, numbers = self._receive(self._wires[0])
            for own, theirs in zip(state, unflat(numbers.copy(), state), strict=True):
                own.copy_(theirs)
            self._played, self._ended = message["steps"], message["episodes"]
            self._start_anew(self.learner.updates, message["updates"])
            self.learner.updates, store = message["updates"], message["store"]
        if store is not None:
            host = self._host if self.rank == 0 else self._wires[0].host
            self._reduce = AllReduce(
                self.rank,
                self.settings.n_ranks,
                host,
                (store[0], store[1]),
                sock,
                self.learner.device,
                self.settings.peer_timeout_s,
            )

    def _start_anew(self, own: int, agreed: int) -> None:
        """A rank built anew in mid-trial must not play the games of the first phase again."""
        if own != agreed:
            super().close()
            self._pool, self._told_steps, self._steps_before = [], 0, self._played
            self._generators = [np.random.default_rng([self.seed, 1, 0, agreed])]
            self._open()

    def _run_by_all_reduce(self) -> None:
        """Average over all ranks; all take the same step, and know by the same sums when the phase is over."""
        over = False
        while not over:
            numbers = self._contribution()
            if self._reduce is not None:
                numbers = self._reduce.sum(numbers, self._alive)
            stats = Stats.of(numbers[-N_STATS:])
            self._step(numbers[:-N_STATS] / self.settings.n_ranks, stats)
            self._held = self.learner.updates
            self._played += int(stats.steps)
            self._ended += int(stats.episodes)
            over = self._is_over(stats.seconds)
            self._share_episodes(over)
            self._evaluate()

    def _run_by_server(self) -> None:
        """Rank 0: keep the weights, and play on a copy of them like everybody else."""
        self._acting = copy.deepcopy(self.model)
        s = self.settings
        server = ParameterServer(
            self._wires,
            self._weights(),
            n_awaited=s.awaited,
            synchronous=s.synchronous,
            update=self._update,
            hear=self._hear,
        )
        try:
            over = False
            while not over:
                version = self._held
                numbers = self._contribution()
                server.push(Contribution(0, version, numbers), self._news(version))
                while (weights := server.pull(version, PROGRESS_S)) is None:
                    self._alive()
                self._take(weights)
                self._evaluate()
                over = weights.over
            server.wait_for_clerks(self._alive)
        except BaseException:
            self.leave()  # wakes clerks that wait at their wires
            raise
        finally:
            server.close()
            self._acting = self.model

    def _run_by_client(self) -> None:
        """Other ranks: bring gradients, fetch weights."""
        client, over = Client(self._wires[0]), False
        while not over:
            numbers = self._contribution()
            weights = client.exchange(self._news(self._held), numbers, self._alive)
            self._take(weights)
            self.learner.updates, over = weights.version, weights.over

    # -- what the server calls, one thread at a time ------------------------------------------------------------

    def _hear(self, contribution: Contribution, message: dict[str, Any], dropped: bool) -> None:
        """Count what was played, whether its gradient is used or not."""
        stats = Stats.of(contribution.numbers[-N_STATS:])
        self._played += int(stats.steps)
        self._ended += int(stats.episodes)
        self.episodes.merge(message["returns"], message["lengths"])
        self.dropped += dropped

    def _update(self, contributions: Sequence[Contribution]) -> Weights:
        """Step along the mean of these gradients."""
        total = np.sum([c.numbers for c in contributions], axis=0)
        stats = Stats.of(total[-N_STATS:])
        stats.lags = np.sum([_aged(c, self.learner.updates) for c in contributions], axis=0)
        self._step(total[:-N_STATS] / len(contributions), stats)
        return self._weights(self._is_over(self._meter.seconds))

    def _weights(self, over: bool = False) -> Weights:
        return Weights(self.learner.updates, flat(list(self.model.parameters())), over)

    # -- parts ------------------------------------------------------------------------------------------------

    def _contribution(self) -> np.ndarray:
        """Play a batch; return its gradient and the stats, (P + N_STATS,)."""
        rollout = self._gather()
        grads, loss = self.learner.gradients(rollout, self._acting)
        n, steps = len(rollout), sum(group.steps for group in self._groups)
        stats = Stats(
            experiences=n,
            policy_loss=n * float(loss.policy),
            value_loss=n * float(loss.value),
            entropy=n * float(loss.entropy),
            steps=steps - self._told_steps,
            episodes=self._own.finished - self._told_episodes,
            seconds=self._meter.seconds if self.rank == 0 else 0.0,
            lags=np.bincount(np.minimum(self._held - rollout.versions, MAX_LAG), minlength=MAX_LAG + 1),
        )
        self._told_steps = steps
        return np.concatenate([flat(grads), stats.array()])

    def _gather(self) -> Rollout:
        """Play until there is a batch, exactly; what is too much opens the next one."""
        batch, group = self.settings.batch, self._groups[0]
        while sum(map(len, self._pool)) < batch:
            obs = group.observe()
            policy, values = self.learner.predict(obs, self._acting)
            self._meter.add_prediction(len(obs), 0)
            group.act(policy, values, self._held, self._keep)
            self._alive()
        joined = _joined(self._pool)
        self._pool = [_cut(joined, batch, len(joined))] if len(joined) > batch else []
        return _cut(joined, 0, batch)

    def _keep(self, finished: list[int], n: int) -> list[int]:
        """Copy finished segments into the pool, and give `n` free ones."""
        if finished:
            self._pool.append(self._segments.rollout(finished, self.settings.gamma))
        self._free += finished
        return [self._free.pop() for _ in range(n)]

    def _step(self, gradient: np.ndarray, stats: Stats) -> None:
        """Take one step along a mean gradient, (P,), and count it."""
        s, n = self.settings, stats.experiences
        policy, value, entropy = stats.policy_loss / n, stats.value_loss / n, stats.entropy / n
        loss = policy - s.entropy_beta * entropy + s.value_weight * value
        norm = self.learner.step(unflat(gradient, list(self.model.parameters())), loss)
        lags = np.repeat(np.arange(len(stats.lags)), stats.lags.astype(np.int64))
        self._meter.add_update(Update(lags, policy, value, entropy, norm), 0)

    @torch.no_grad()
    def _take(self, weights: Weights) -> None:
        """Act on these weights from now on."""
        params = list(self._acting.parameters())
        for own, new in zip(params, unflat(weights.numbers, params), strict=True):
            own.copy_(new)
        self._held = weights.version

    def _news(self, version: int) -> dict[str, Any]:
        """Say what rank 0 must know beside the numbers: the version of the gradient, and the episodes finished."""
        returns, lengths = self._own.since(self._told_episodes)
        self._told_episodes = self._own.finished
        return {"version": version, "returns": returns, "lengths": lengths}

    def _share_episodes(self, over: bool) -> None:
        """Bring the episodes of all ranks to rank 0; at the phase's end, wait for the last of them."""
        news = self._news(self.learner.updates) | {"over": over}
        if self.rank == 0:
            self.episodes.merge(news["returns"], news["lengths"])
            for wire in self._wires:
                ended = False
                while not ended and (over or wire.ready()):
                    told, _ = self._receive(wire)
                    self.episodes.merge(told["returns"], told["lengths"])
                    ended = told["over"]
        elif over or news["returns"]:
            self._wires[0].send(news)

    def _evaluate(self) -> None:
        """Rank 0: play greedy games on the newest weights, where it is time to."""
        s, updates = self.settings, self._held
        if self.rank or s.evaluate_every is None or updates // s.evaluate_every == self._evaluated:
            return
        self._evaluated = updates // s.evaluate_every
        self.eval_score = evaluate(
            self._acting,
            self.game,
            s.evaluate_games,
            greedy=BA3C_PROTOCOL.greedy,
            seed=derived(self.seed, 5, updates),
            noop_max=s.noop_max,
            max_episode_frames=s.max_episode_frames,
            n_threads=s.emulator_threads,
            meanwhile=self._alive,
        ).mean

    def _is_over(self, seconds: float) -> bool:
        before = self._before
        return self.settings.phase.spent(
            {
                "episodes": self._ended - before["episodes"],
                "frames": (self._played - before["steps"]) * self.game.frames_per_step,
                "updates": self.learner.updates - before["updates"],
                "seconds": seconds,
            }
        )

    def _receive(self, wire: Wire) -> tuple[dict[str, Any], np.ndarray]:
        """Wait for a message, showing life."""
        while not wire.ready(PROGRESS_S):
            self._alive()
        return wire.receive()

    def _alive(self) -> None:
        """Report progress if it is time to; raises what ends the phase."""
        now = time.monotonic()
        if now - self._shown >= PROGRESS_S:
            self._shown = now
            self._report(self._progress)

    def _metrics(self, reading: Reading, earlier: Reading | None) -> dict[str, float]:
        metrics = super()._metrics(reading, earlier)
        if not self.episodes.finished:
            metrics["score"] = self._own.score()
        seconds = max(reading.seconds - (earlier.seconds if earlier else 0.0), 1e-9)
        metrics["data_points_per_s"] = (
            reading.sums["trained"] - (earlier.sums["trained"] if earlier else 0.0)
        ) / seconds
        metrics["n_ranks"], metrics["dropped"] = self.settings.n_ranks, self.dropped
        if np.isfinite(self.eval_score):
            metrics["eval_score"] = self.eval_score
        return metrics


def _aged(contribution: Contribution, version: int) -> np.ndarray:
    """Give a contribution's lags as they are when weights of `version` are stepped."""
    lags, age = Stats.of(contribution.numbers[-N_STATS:]).lags, version - contribution.version
    aged = np.zeros_like(lags)
    age = min(age, len(lags) - 1)
    aged[age:] = lags[: len(lags) - age]
    aged[-1] += lags[len(lags) - age :].sum()
    return aged


def _joined(rollouts: Sequence[Rollout]) -> Rollout:
    return Rollout(
        *(np.concatenate([getattr(r, name) for r in rollouts]) for name in ("obs", "actions", "returns", "versions"))
    )


def _cut(rollout: Rollout, start: int, end: int) -> Rollout:
    return Rollout(
        rollout.obs[start:end], rollout.actions[start:end], rollout.returns[start:end], rollout.versions[start:end]
    )
