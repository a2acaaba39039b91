"""One rank of Distributed BA3C: it plays, takes gradients, and exchanges them with the others by one of three ways."""

import copy
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from workbench.algos.rl.ba3c.evaluations import Evaluations
from workbench.algos.rl.ba3c.exchange import MAX_LAG, N_STATS, Stats, flat, unflat
from workbench.algos.rl.ba3c.parameter_server import Client, Contribution, ParameterServer, Weights
from workbench.algos.rl.ba3c.peers import Peers, receive
from workbench.algos.rl.ba3c.settings import BA3C
from workbench.algos.rl.episodes import Episodes
from workbench.algos.rl.evaluate import BA3C_PROTOCOL
from workbench.algos.rl.learner import Update
from workbench.algos.rl.meter import Reading
from workbench.algos.rl.model import ActorCritic
from workbench.algos.rl.optim import SharedAdam
from workbench.algos.rl.rollout import Pool, Rollout
from workbench.algos.rl.trial import PROGRESS_S, Trial, derived
from workbench.core.protocols import Progress


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
        super().__init__(replace(settings, n_groups=1, start_from=None), seed)
        self.rank, self.dropped = rank, 0
        if rank:  # weights are the trial's; games and actions are this rank's own
            self.seed = derived(seed, 4, rank)
            self._generators = [np.random.default_rng([self.seed, 1, 0])]
        window = max(settings.score_window, settings.batch + settings.n_agents)  # what ends in one batch, at least
        self._own = Episodes(settings.n_agents, window)  # `episodes` are all ranks'
        self._played = 0  # by all ranks, as far as an update has told
        self._told_steps = self._told_episodes = 0
        self._pool = Pool()  # played, not trained on yet
        self._acting: ActorCritic = self.model
        self._peers = Peers(rank, settings.n_ranks, settings.peer_timeout_s, self.learner.device)
        self._evaluations = Evaluations(
            None if rank else settings.evaluate_every,
            settings.evaluate_games,
            self.game,
            lambda updates: derived(seed, 5, updates),
            {"greedy": BA3C_PROTOCOL.greedy, "rules": settings.rules, "n_threads": settings.emulator_threads},
        )
        if settings.start_from is not None and rank == 0:  # it tells the others
            self.load(settings.start_from)

    # -- the gang ---------------------------------------------------------------------------------------------

    def listen(self, host: str) -> str:
        """Open the door for the others; see `GangTrainable`."""
        return self._peers.listen(host)

    def join(self, address: str) -> None:
        """Note where rank 0 is."""
        self._peers.join(address)

    def leave(self) -> None:
        """Hang up."""
        self._peers.leave()

    def close(self) -> None:
        """Hang up, and close the environments."""
        self.leave()
        super().close()
        self._pool, self._told_steps = Pool(), 0

    def _most_agents(self) -> int:
        return self.settings.n_agents * self.settings.n_ranks

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
            self._peers.assemble(self._alive)
            self._agree()
            self._held = self.learner.updates
            self._evaluations.start(self._held)
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

    def _agree(self) -> None:
        """Take over rank 0's weights, statistics and counters."""
        optimizer = self.learner.optimizer
        assert isinstance(optimizer, SharedAdam)
        state = [*(p.data for p in self.model.parameters()), *optimizer.mean, *optimizer.square, optimizer.steps]
        own = {"updates": self.learner.updates, "steps": self._played, "episodes": self._ended}
        agreed = self._peers.agree(own, state, self._alive, reduces=not self.settings.has_server)
        self._played, self._ended = agreed["steps"], agreed["episodes"]
        self._start_anew(own["updates"], agreed["updates"])
        self.learner.updates = agreed["updates"]

    def _start_anew(self, own: int, agreed: int) -> None:
        """A rank built anew in mid-trial must not play the games of the first phase again."""
        if own != agreed:
            super().close()
            self._pool, self._told_steps, self._steps_before = Pool(), 0, self._played
            self._generators = [np.random.default_rng([self.seed, 1, 0, agreed])]
            self._open()

    def _run_by_all_reduce(self) -> None:
        """Average over all ranks; all take the same step, and know by the same sums when the phase is over."""
        over = False
        while not over:
            numbers = self._peers.sum(self._contribution(), self._alive)
            stats = Stats.of(numbers[-N_STATS:])
            self._step(numbers[:-N_STATS] / self.settings.n_ranks, stats)
            self._held = self.learner.updates
            self._played += int(stats.steps)
            self._ended += int(stats.episodes)
            over = self._all_over(stats.seconds)
            self._share_episodes(over)
            self._evaluations.play_if_due(self._held, self._acting, self._alive)

    def _run_by_server(self) -> None:
        """Rank 0: keep the weights, and play on a copy of them like everybody else."""
        self._acting = copy.deepcopy(self.model)
        s = self.settings
        server = ParameterServer(
            self._peers.wires,
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
                self._evaluations.play_if_due(self._held, self._acting, self._alive)
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
        client, over = Client(self._peers.wires[0]), False
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
        return self._weights(self._all_over(self._meter.seconds))

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
        while len(self._pool) < batch:
            obs = group.observe()
            policy, values = self.learner.predict(obs, self._acting)
            self._meter.add_prediction(len(obs), 0)
            group.act(policy, values, self._held, self._keep)
            self._alive()
        return self._pool.take(batch)

    def _keep(self, finished: list[int], n: int) -> list[int]:
        """Copy finished segments into the pool, and give `n` free ones."""
        if finished:
            self._pool.add(self._segments.rollout(finished, self.settings.gamma))
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
            for wire in self._peers.wires:
                ended = False
                while not ended and (over or wire.ready()):
                    told, _ = receive(wire, self._alive)
                    self.episodes.merge(told["returns"], told["lengths"])
                    ended = told["over"]
        elif over or news["returns"]:
            self._peers.wires[0].send(news)

    def _all_over(self, seconds: float) -> bool:
        before = self._before
        return self._is_enough(
            {
                "episodes": self._ended - before["episodes"],
                "frames": (self._played - before["steps"]) * self.game.frames_per_step,
                "updates": self.learner.updates - before["updates"],
                "seconds": seconds,
            }
        )

    def _alive(self) -> None:
        """Report progress if it is time to; raises what ends the phase."""
        now = time.monotonic()
        if now - self._shown >= PROGRESS_S:
            self._shown = now
            self._report(self._progress)

    def _metrics(self, reading: Reading, earlier: Reading | None) -> dict[str, float]:
        metrics = super()._metrics(reading, earlier)
        seconds = max(reading.seconds - (earlier.seconds if earlier else 0.0), 1e-9)
        metrics["data_points_per_s"] = (
            reading.sums["trained"] - (earlier.sums["trained"] if earlier else 0.0)
        ) / seconds
        metrics["n_ranks"], metrics["dropped"] = self.settings.n_ranks, self.dropped
        if np.isfinite(self._evaluations.score):
            metrics["eval_score"] = self._evaluations.score
        return metrics


def _aged(contribution: Contribution, version: int) -> np.ndarray:
    """Give a contribution's lags as they are when weights of `version` are stepped."""
    lags, age = Stats.of(contribution.numbers[-N_STATS:]).lags, version - contribution.version
    aged = np.zeros_like(lags)
    age = min(age, len(lags) - 1)
    aged[age:] = lags[: len(lags) - age]
    aged[-1] += lags[len(lags) - age :].sum()
    return aged
