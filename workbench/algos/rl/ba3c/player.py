"""What a rank of Distributed BA3C does between two exchanges: play a batch, and take its gradient."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.algos.rl.agents import AgentGroup
from workbench.algos.rl.ba3c.ahead import Ahead
from workbench.algos.rl.ba3c.exchange import MAX_LAG, Stats, flat, put
from workbench.algos.rl.ba3c.settings import BA3CSettings
from workbench.algos.rl.ba3c.shard_server import Weights
from workbench.algos.rl.episodes import Episodes
from workbench.algos.rl.learner import Learner
from workbench.algos.rl.meter import Meter
from workbench.algos.rl.model import ActorCritic
from workbench.algos.rl.rollout import Pool, Rollout, Segments


@dataclass(frozen=True, slots=True)
class Played:
    """A batch, and what was played since the one before.

    Attributes
    ----------
    rollout : Rollout
    steps : int
        Transitions.
    returns, lengths : list
        Of the episodes that ended.
    """

    rollout: Rollout
    steps: int
    returns: list[float]
    lengths: list[int]


class Player:
    """A rank's agents, the weights they act with, and what they played that is not trained on yet.

    Parameters
    ----------
    settings : BA3CSettings
    learner : Learner
    segments : Segments
    alive : callable
        Called at every step, or while a batch is awaited that is played ahead; what it raises ends the phase.

    Attributes
    ----------
    acting : ActorCritic
        The weights that act: the learner's own, or a copy.
    version : int
        Updates they have seen.
    episodes : Episodes
        This rank's own.
    meter : Meter
        Of the phase.
    """

    def __init__(
        self, settings: BA3CSettings, learner: Learner, segments: Segments, alive: Callable[[], object]
    ) -> None:
        self.settings, self.learner = settings, learner
        self.acting: ActorCritic = learner.model
        self.version = 0
        window = max(settings.score_window, settings.batch + settings.n_agents)  # what ends in one batch, at least
        self.episodes = Episodes(settings.n_agents, window)
        self.pool = Pool()
        self.meter = Meter()
        self._group: AgentGroup | None = None
        self._segments, self._alive, self._between_steps = segments, alive, alive
        self._ahead: Ahead[Played] | None = None
        self._left: Played | None = None  # played ahead and not used in its phase
        self._ended: tuple[list[float], list[int]] = ([], [])  # episodes of the last contribution
        self._free = list(range(segments.n))
        self._counted_steps = self._counted_episodes = self._seen_steps = 0

    def open(self, group: AgentGroup) -> None:
        """Play in new environments; what was played in others and not trained on is forgotten."""
        self.episodes.abandon()
        self._group, self.pool, self._free = group, Pool(), list(range(self._segments.n))
        self._counted_steps, self._counted_episodes, self._left = 0, self.episodes.finished, None

    def gather(self) -> Rollout:
        """Play until there is a batch, exactly; what is too much opens the next one."""
        group = self._opened()
        while len(self.pool) < self.settings.batch:
            obs = group.observe()
            policy, values = self.learner.predict(obs, self.acting)
            self.meter.add_prediction(len(obs), 0)
            group.act(policy, values, self.version, self._keep)
            self._between_steps()
        return self.pool.take(self.settings.batch)

    def played(self) -> Played:
        """Play a batch, and tell with it what was played since the last one."""
        rollout, steps = self.gather(), self._opened().steps
        returns, lengths = self.episodes.since(self._counted_episodes)
        played = Played(rollout, steps - self._counted_steps, returns, lengths)
        self._counted_steps, self._counted_episodes = steps, self.episodes.finished
        return played

    @contextmanager
    def ahead(self) -> Iterator[None]:
        """Play on within this while a gradient is taken and exchanged, if that is set."""
        if not self.settings.plays_on:
            yield
            return
        self._ahead = Ahead(self.played, self._left)
        self._between_steps = self._ahead.check
        self._ahead.start()
        try:
            yield
        finally:
            self._left, self._ahead, self._between_steps = self._ahead.close(), None, self._alive

    def contribution(self, seconds: float) -> np.ndarray:
        """Play a batch; return its gradient and the stats, (P + N_STATS,), with the seconds of the phase so far."""
        played = self.played() if self._ahead is None else self._ahead.next(self._alive_if_playing)
        rollout, self._ended = played.rollout, (played.returns, played.lengths)
        grads, loss = self.learner.gradients(rollout, self.acting)
        n = len(rollout)
        stats = Stats(
            experiences=n,
            policy_loss=n * float(loss.policy),
            value_loss=n * float(loss.value),
            entropy=n * float(loss.entropy),
            steps=played.steps,
            episodes=len(played.returns),
            seconds=seconds,
            lags=np.bincount(np.minimum(self.version - rollout.versions, MAX_LAG), minlength=MAX_LAG + 1),
        )
        return np.concatenate([flat(grads), stats.array()])

    def summary(self) -> dict[str, Any]:
        """Say what rank 0 must know beside the numbers: the weights' version, and the episodes of the contribution."""
        returns, lengths = self._ended
        return {"version": self.version, "returns": returns, "lengths": lengths}

    def take(self, weights: Weights) -> None:
        """Act on these weights from now on."""
        put(list(self.acting.parameters()), weights.numbers)
        self.learner.settle()
        self.version = weights.version

    def _alive_if_playing(self) -> None:
        """Show life for the thread that plays: an environment that hangs in it is no sign of any."""
        if (steps := self._opened().steps) != self._seen_steps:
            self._seen_steps = steps
            self._alive()

    def _opened(self) -> AgentGroup:
        if self._group is None:
            raise RuntimeError("open must come before gather")
        return self._group

    def _keep(self, finished: list[int], n: int) -> list[int]:
        """Copy finished segments into the pool, and give `n` free ones."""
        if finished:
            self.pool.add(self._segments.rollout(finished, self.settings.gamma))
        self._free += finished
        return [self._free.pop() for _ in range(n)]
