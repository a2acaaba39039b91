"""One rank of Distributed BA3C: it plays, takes gradients, and exchanges them with the others by one of three ways."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from workbench.algos.rl.ba3c.connection import ALIVE_S
from workbench.algos.rl.ba3c.evaluations import Evaluations
from workbench.algos.rl.ba3c.exchange import N_STATS, Stats, flat, unflat
from workbench.algos.rl.ba3c.parameter_server import Client, Contribution, ParameterServer, Weights
from workbench.algos.rl.ba3c.peers import Peers
from workbench.algos.rl.ba3c.player import Player
from workbench.algos.rl.ba3c.settings import BA3CSettings
from workbench.algos.rl.evaluate import BA3C_PROTOCOL
from workbench.algos.rl.learner import Update
from workbench.algos.rl.meter import Reading
from workbench.algos.rl.optim import SharedAdam
from workbench.algos.rl.trial import Trial, derived


class BA3CTrial(Trial):
    """One rank of a trial; a `GangTrainable`.

    Attributes
    ----------
    rank : int
    player : Player
        Its agents.
    dropped : int
        Gradients that came too late, so far; known to rank 0.
    """

    settings: BA3CSettings

    def __init__(self, settings: BA3CSettings, seed: int, rank: int = 0) -> None:
        every_rank = settings.n_agents * settings.n_ranks
        super().__init__(replace(settings, start_from=None), seed, most_agents=every_rank, n_segments=settings.n_agents)
        self.rank, self.dropped = rank, 0
        if rank:  # weights are the trial's; games and actions are this rank's own
            self.seed = derived(seed, 4, rank)
            self._generators = [np.random.default_rng([self.seed, 1, 0])]
        self._steps = self._finished = 0  # of all ranks, as far as updates have told
        self.player = Player(settings, self.learner, self._segments, self._report_if_due)
        self._peers = Peers(rank, settings.n_ranks, settings.peer_timeout_s, self.learner.device)
        self._evaluations = Evaluations(
            None if rank else settings.evaluate_every,
            settings.evaluate_games,
            self.game,
            lambda updates: derived(seed, 5, updates),
            {"greedy": BA3C_PROTOCOL.greedy, "rules": settings.rules, "n_threads": settings.emulator_threads},
        )
        if settings.start_from is not None and rank == 0:  # the others get it from here
            self.load(settings.start_from)

    # -- the gang ---------------------------------------------------------------------------------------------

    def listen(self, host: str) -> str:
        """Let the others connect; see `GangTrainable`."""
        return self._peers.listen(host)

    def join(self, address: str) -> None:
        """Note where rank 0 is."""
        self._peers.join(address)

    def leave(self) -> None:
        """Close the connections."""
        self._peers.leave()

    def close(self) -> None:
        """Close the connections and the environments."""
        self.leave()
        super().close()

    @property
    def steps(self) -> int:
        """Transitions played so far, by all agents of all ranks, as far as updates have told."""
        return self._steps

    @property
    def finished(self) -> int:
        """Episodes finished so far, by all agents of all ranks, as far as updates have told."""
        return self._finished

    def load(self, path: Any) -> None:
        """Go on from a checkpoint; see `Trial.load`."""
        super().load(path)
        self._steps = self._steps_before

    # -- a phase ----------------------------------------------------------------------------------------------

    def _open(self) -> None:
        super()._open()
        self.player.open(self._groups[0])

    def _run(self) -> None:
        if self.rank == 0:
            self._finished = self.episodes.finished
        try:
            self._peers.assemble(self._report_if_due)
            self._agree()
            self._begin()
            self.player.meter, self.player.version = self._meter, self.learner.updates
            self._evaluations.start(self.learner.updates)
            if not self.settings.has_server:
                self._run_by_all_reduce()
            elif self.rank == 0:
                self._run_by_server()
            else:
                self._run_by_client()
        except BaseException:
            self.leave()  # wakes whoever waits for this rank
            raise

    def _agree(self) -> None:
        """Take over rank 0's weights, statistics and counters."""
        optimizer = self.learner.optimizer
        assert isinstance(optimizer, SharedAdam)
        state = [*(p.data for p in self.model.parameters()), *optimizer.mean, *optimizer.square, optimizer.steps]
        own = {"updates": self.learner.updates, "steps": self._steps, "episodes": self._finished}
        agreed = self._peers.agree(own, state, self._report_if_due, reduces=not self.settings.has_server)
        self._steps, self._finished = agreed["steps"], agreed["episodes"]
        if own["updates"] != agreed["updates"]:  # built anew in mid-trial: it must not play the first games again
            super().close()
            self._generators = [np.random.default_rng([self.seed, 1, 0, agreed["updates"]])]
            self._open()
        self.learner.updates = agreed["updates"]

    def _run_by_all_reduce(self) -> None:
        """Average over all ranks; all take the same step, and know by the same sums when the phase is over."""
        player, over = self.player, False
        while not over:
            seconds = 0.0 if self.rank else self._meter.seconds  # one clock counts
            numbers = self._peers.sum(player.contribution(seconds), self._report_if_due)
            stats = Stats.of(numbers[-N_STATS:])
            self._step(numbers[:-N_STATS] / self.settings.n_ranks, stats)
            player.version = self.learner.updates
            self._steps += int(stats.steps)
            self._finished += int(stats.episodes)
            over = self._is_over(stats.seconds)
            for summary in self._peers.collect(player.summary(), self._report_if_due, last=over):
                self.episodes.merge(summary["returns"], summary["lengths"])
            self._evaluations.play_if_due(player.version, player.acting, self._report_if_due)

    def _run_by_server(self) -> None:
        """Rank 0: keep the weights, and play on a copy of them like everybody else."""
        player, s = self.player, self.settings
        player.acting = copy.deepcopy(self.model)
        server = ParameterServer(
            self._peers.connections,
            self._weights(),
            n_awaited=s.awaited,
            synchronous=s.synchronous,
            update=self._update,
            count=self._count,
        )
        try:
            over = False
            while not over:
                version, numbers = player.version, player.contribution(self._meter.seconds)
                server.push(Contribution(0, version, numbers), player.summary())
                while (weights := server.pull(version, ALIVE_S)) is None:
                    self._report_if_due()
                player.take(weights)
                self._evaluations.play_if_due(player.version, player.acting, self._report_if_due)
                over = weights.over
            server.wait_for_handlers(self._report_if_due)
        except BaseException:
            self.leave()  # wakes the server's threads
            raise
        finally:
            server.close()
            player.acting = self.model

    def _run_by_client(self) -> None:
        """Other ranks: bring gradients, fetch weights."""
        client, over = Client(self._peers.connections[0]), False
        while not over:
            numbers = self.player.contribution(0.0)
            weights = client.exchange(self.player.summary(), numbers, self._report_if_due)
            self.player.take(weights)
            self.learner.updates, over = weights.version, weights.over
            self._steps, self._finished = weights.steps, weights.episodes

    # -- what the server calls, one thread at a time ------------------------------------------------------------

    def _count(self, contribution: Contribution, summary: dict[str, Any], dropped: bool) -> None:
        """Count what was played, whether its gradient is used or not."""
        stats = Stats.of(contribution.numbers[-N_STATS:])
        self._steps += int(stats.steps)
        self._finished += int(stats.episodes)
        self.episodes.merge(summary["returns"], summary["lengths"])
        self.dropped += dropped

    def _update(self, contributions: Sequence[Contribution]) -> Weights:
        """Step along the mean of these gradients."""
        total = np.sum([c.numbers for c in contributions], axis=0)
        stats = Stats.of(total[-N_STATS:])
        stats.lags = np.sum([_aged(c, self.learner.updates) for c in contributions], axis=0)
        self._step(total[:-N_STATS] / len(contributions), stats)
        return self._weights(self._is_over())

    def _weights(self, over: bool = False) -> Weights:
        weights = flat(list(self.model.parameters()))
        return Weights(self.learner.updates, weights, over, self._steps, self._finished)

    def _step(self, gradient: np.ndarray, stats: Stats) -> None:
        """Take one step along a mean gradient, (P,), and count it."""
        s, n = self.settings, stats.experiences
        policy, value, entropy = stats.policy_loss / n, stats.value_loss / n, stats.entropy / n
        loss = policy - s.entropy_beta * entropy + s.value_weight * value
        norm = self.learner.step(unflat(gradient, list(self.model.parameters())), loss)
        lags = np.repeat(np.arange(len(stats.lags)), stats.lags.astype(np.int64))
        self._meter.add_update(Update(lags, policy, value, entropy, norm), 0)

    def _metrics(self, reading: Reading, earlier: Reading | None) -> dict[str, float]:
        metrics = super()._metrics(reading, earlier)
        before = (earlier.seconds, earlier.sums["trained"]) if earlier else (0.0, 0.0)
        metrics["data_points_per_s"] = (reading.sums["trained"] - before[1]) / max(reading.seconds - before[0], 1e-9)
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
