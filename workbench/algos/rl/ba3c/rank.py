"""One rank of Distributed BA3C: it plays, takes gradients, and exchanges them with the others by one of three ways."""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from workbench.algos.rl.ba3c.connection import Connection
from workbench.algos.rl.ba3c.exchange import N_STATS, Stats, unflat
from workbench.algos.rl.ba3c.parameter_server import Client, ParameterServer
from workbench.algos.rl.ba3c.peers import Peers
from workbench.algos.rl.ba3c.player import Player
from workbench.algos.rl.ba3c.settings import BA3CSettings
from workbench.algos.rl.ba3c.shard_server import Contribution, Follower, ShardServer, Step
from workbench.algos.rl.ba3c.shards import Shard, cut, undone_if_cut_short
from workbench.algos.rl.evaluate import BA3C_PROTOCOL, evaluate
from workbench.algos.rl.learner import Learner, Update
from workbench.algos.rl.meter import Reading
from workbench.algos.rl.model import ActorCritic
from workbench.algos.rl.optim import SharedAdam
from workbench.algos.rl.trial import Trial
from workbench.core.errors import PeerLost
from workbench.core.seeds import derived

_SCORE, _EVALUATED = "eval_score", "evaluated_at"  # what is kept of the last evaluation, and the updates by then
_DROPPED = "dropped"  # gradients that came too late since the trial began; rank 0 knows of them


class BA3CTrial(Trial):
    """One rank of a trial; a `GangTrainable`.

    Attributes
    ----------
    rank : int
    player : Player
        Its agents.
    """

    settings: BA3CSettings

    def __init__(self, settings: BA3CSettings, seed: int, rank: int = 0) -> None:
        every_rank = settings.n_agents * settings.n_ranks
        super().__init__(replace(settings, start_from=None), seed, most_agents=every_rank, n_segments=settings.n_agents)
        self.rank = rank
        if rank:  # weights are the trial's; games and actions are this rank's own
            self.seed = derived(seed, 4, rank)
            self._generators = [np.random.default_rng([self.seed, 1, 0])]
        self._steps = self._finished = 0  # of all ranks, as far as updates have told
        self._loads = 0  # checkpoints that rank 0 has gone on from, as far as this rank knows
        self._copy: ActorCritic | None = None  # what acts in the place of weights that are served
        self.player = Player(settings, self.learner, self._segments, self._report_if_due)
        self._own_episodes = self.player.episodes
        self._peers = Peers(rank, settings.n_ranks, settings.peer_timeout_s, settings.n_servers)
        if settings.start_from is not None and rank == 0:  # the others get it from here
            self._start_from(Path(settings.start_from))

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
        self._steps, self._finished = self._steps_before, self.episodes.finished
        self._loads += 1

    # -- a phase ----------------------------------------------------------------------------------------------

    def _open(self) -> None:
        super()._open()
        self.player.open(self._groups[0])

    def _run(self) -> None:
        try:
            self._peers.assemble(self._report_if_due)
            self._agree()
            self.player.meter, self.player.version = self._meter, self.learner.updates
            self._evaluate_if_due(self.learner.updates)  # what was left during an evaluation makes up for it
            if self._is_over(0.0):  # as all ranks find alike; none leaves while another still joins the group
                self._peers.sum(np.zeros(1, np.float32), self._report_if_due)
                return
            with _undone_if_cut_short(self), self.player.ahead():
                if self.settings.has_server:
                    self._run_by_servers()
                else:
                    self._run_by_all_reduce()
        except BaseException as end:
            if isinstance(end, PeerLost):  # another rank's end: the next phase begins with what all agree on
                self._clean_end = end
            self.leave()  # wakes whoever waits for this rank
            raise

    def _agree(self) -> None:
        """Take over rank 0's weights, statistics and counters, also of where the phase began."""
        state = _state(self.learner)
        own: dict[str, Any] = {"updates": self.learner.updates, "steps": self._steps, "episodes": self._finished}
        own |= {"before": self._phase.before, "loads": self._loads}
        agreed = self._peers.agree(own, state, self._report_if_due, reduces=not self.settings.has_server)
        self._steps, self._finished = agreed["steps"], agreed["episodes"]
        self._phase.load_state_dict(agreed["before"])
        self._phase.begin(self._counted(0.0))
        # what it has played is of other weights; and one built anew in mid-trial must not play the first games again
        if any(own[name] != agreed[name] for name in ("updates", "loads")):
            super().close()
            self._generators = [np.random.default_rng([self.seed, 1, 0, agreed["updates"]])]
            self._open()
        self.learner.updates, self._loads = agreed["updates"], agreed["loads"]

    def _run_by_all_reduce(self) -> None:
        """Average over all ranks; all take the same step, and know by the same sums when the phase is over."""
        player, over = self.player, False
        while not over:
            seconds = 0.0 if self.rank else self._meter.seconds  # one clock counts
            numbers = self._peers.sum(player.contribution(seconds), self._report_if_due)
            for summary in self._peers.collect(player.summary(), self._report_if_due):
                self.episodes.merge(summary["returns"], summary["lengths"])
            stats = Stats.of(numbers[-N_STATS:])
            mean = unflat(numbers[:-N_STATS] / self.settings.n_ranks, list(self.model.parameters()))
            self._make(stats, partial(self.learner.step, mean))
            self.learner.settle()
            player.version = self.learner.updates
            self._steps += int(stats.steps)
            self._finished += int(stats.episodes)
            over = self._is_over(stats.seconds)
            self._evaluate_if_due(player.version)

    def _run_by_servers(self) -> None:
        """Bring gradients and fetch weights, as every rank; and serve a slice of them, if that is this rank's duty."""
        player, peers = self.player, self._peers
        parts = cut(sum(p.numel() for p in self.model.parameters()), self.settings.n_servers)
        shards = [Shard(_adam(self.learner), part) for part in parts]
        with self._serving(shards) as server:

            def alive() -> None:
                if server is not None:
                    server.check()
                self._report_if_due()

            ways: dict[int, Connection | ShardServer] = {**peers.servers}
            ways |= {0: peers.connections[0]} if server is None else {0: peers.connections[0], self.rank: server}
            client, over = Client(self.rank, [ways[n] for n in range(len(parts))], parts), False
            while not over:
                numbers = player.contribution(0.0 if self.rank else self._meter.seconds)
                weights = client.exchange(player.summary(), numbers, alive)
                player.take(weights)
                if self.rank:
                    self.learner.updates, self._steps, self._finished = weights.version, weights.steps, weights.episodes
                self._evaluate_if_due(player.version)
                over = weights.over
            if server is not None:
                server.wait_until_over(alive)
            if isinstance(server, ParameterServer):
                server.collect(shards[1:], alive)

    def _evaluate_if_due(self, updates: int) -> None:
        """Play whole games with what acts if it is time to, as rank 0; of what a server's rank slept over, once."""
        s = self.settings
        last = max(self.kept.get(_EVALUATED, 0), int(self._phase.before["updates"]))
        if self.rank or s.evaluate_every is None or updates // s.evaluate_every == last // s.evaluate_every:
            return
        played = evaluate(
            self.player.acting,
            self.game,
            s.evaluate_games,
            s.rules,
            greedy=BA3C_PROTOCOL.greedy,
            seed=derived(self.seed, 5, updates),
            n_threads=s.emulator_threads,
            meanwhile=self._report_if_due,
        )
        self.kept |= {_SCORE: played.mean, _EVALUATED: updates}

    @contextmanager
    def _serving(self, shards: Sequence[Shard]) -> Iterator[ShardServer | None]:
        """Serve this rank's slice, if it has one, while it plays on a copy of the weights like everybody else."""
        peers, s, version = self._peers, self.settings, self.learner.updates
        server: ShardServer | None = None
        if self.rank < s.n_servers:
            self._copy = self._copy or copy.deepcopy(self.model)  # one for all phases: graphs on a GPU hold networks
            self.learner.pull(self._copy)
            self.player.acting = self._copy
        if self.rank == 0:
            server = ParameterServer(
                peers.clients,
                shards[0],
                version,
                peers.announcements,
                n_awaited=s.awaited,
                synchronous=s.synchronous,
                update=self._update,
                count=self._count,
            )
        elif self.rank < s.n_servers:
            shard, chief = shards[self.rank], peers.announcements[0]
            server = Follower(peers.clients, shard, version, chief=chief, n_ranks=s.n_ranks)
        try:
            yield server
        except BaseException:
            self.leave()  # wakes the server's threads
            raise
        finally:
            if server is not None:
                server.close()
            self.player.acting = self.model

    # -- what the server calls, one thread at a time ------------------------------------------------------------

    def _count(self, contribution: Contribution, summary: dict[str, Any], dropped: bool) -> None:
        """Count what was played, whether its gradient is used or not."""
        stats = Stats.of(contribution.numbers[-N_STATS:])
        self._steps += int(stats.steps)
        self._finished += int(stats.episodes)
        self.episodes.merge(summary["returns"], summary["lengths"])
        self.kept[_DROPPED] = self.kept.get(_DROPPED, 0) + dropped

    def _update(self, contributions: Sequence[Contribution], squares: np.ndarray) -> Step:
        """Count the update along the mean of these gradients, whose tensors have these squared norms, (T,)."""
        stats = Stats.of(np.sum([c.numbers[-N_STATS:] for c in contributions], axis=0))
        stats.lags = np.sum([_aged(c, self.learner.updates) for c in contributions], axis=0)

        def checked(loss: float) -> float:
            norm = float(np.sqrt(squares.sum()))
            self.learner.refuse_divergence(loss, norm)
            self.learner.count()
            return norm

        self._make(stats, checked)
        scales = _adam(self.learner).scales(np.sqrt(squares).tolist())
        return Step(scales, self.learner.updates, self._is_over(), self._steps, self._finished)

    def _make(self, stats: Stats, step: Callable[[float], float]) -> None:
        """Make an update by `step`, loss → the norm of its gradient, and note what it did."""
        s, n = self.settings, stats.experiences
        policy, value, entropy = stats.policy_loss / n, stats.value_loss / n, stats.entropy / n
        norm = step(policy - s.entropy_beta * entropy + s.value_weight * value)
        lags = np.repeat(np.arange(len(stats.lags)), stats.lags.astype(np.int64))
        self._meter.add_update(Update(lags, policy, value, entropy, norm), 0)

    def _metrics(self, reading: Reading, earlier: Reading | None) -> dict[str, float]:
        metrics = super()._metrics(reading, earlier)
        before = (earlier.seconds, earlier.sums["trained"]) if earlier else (0.0, 0.0)
        metrics["data_points_per_s"] = (reading.sums["trained"] - before[1]) / max(reading.seconds - before[0], 1e-9)
        metrics["n_ranks"], metrics[_DROPPED] = self.settings.n_ranks, self.kept.get(_DROPPED, 0)
        if self.settings.evaluate_every and _SCORE in self.kept:
            metrics[_SCORE] = self.kept[_SCORE]
        return metrics


def _adam(learner: Learner) -> SharedAdam:
    assert isinstance(learner.optimizer, SharedAdam)
    return learner.optimizer


def _state(learner: Learner) -> list[Tensor]:
    """List what ranks must agree on: the weights, and all that Adam remembers."""
    adam = _adam(learner)
    return [*(p.data for p in learner.model.parameters()), *adam.mean, *adam.square, adam.steps]


@contextmanager
def _undone_if_cut_short(trial: BA3CTrial) -> Iterator[None]:
    """Put rank 0's weights back as they were if a phase does not end in order: slices of the newest are elsewhere."""
    if trial.rank or trial.settings.n_servers == 1:
        yield
        return
    updates, steps, finished = trial.learner.updates, trial._steps, trial._finished
    episodes, kept = trial.episodes.state_dict(), dict(trial.kept)
    try:
        with undone_if_cut_short(_state(trial.learner)):
            yield
    except BaseException:
        trial.learner.updates, trial._steps, trial._finished = updates, steps, finished
        trial.episodes.load_state_dict(episodes)
        trial.kept = kept  # of what is no more nothing is told
        Trial.close(trial)  # experiences of weights that are no more are not trained on
        raise


def _aged(contribution: Contribution, version: int) -> np.ndarray:
    """Give a contribution's lags as they are when weights of `version` are stepped."""
    lags, age = Stats.of(contribution.numbers[-N_STATS:]).lags, version - contribution.version
    aged = np.zeros_like(lags)
    age = min(age, len(lags) - 1)
    aged[age:] = lags[: len(lags) - age]
    aged[-1] += lags[len(lags) - age :].sum()
    return aged
