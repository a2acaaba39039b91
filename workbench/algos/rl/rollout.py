"""Experiences: what agents record step by step, and what trainers are given.

A *segment* is what GA3C's agents submit: up to t_max successive transitions of one agent within one episode,
"sometimes smaller for experiences collected at the end of an episode" (GA3C, Sec. 4.1).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.algos.rl.games import Game
from workbench.algos.rl.returns import n_step_returns


@dataclass(frozen=True, slots=True)
class Rollout:
    """B experiences, ready for one update.

    Attributes
    ----------
    obs : ndarray, (B, *obs_shape)
        uint8 pixels or float32 features.
    actions : ndarray of int64, (B,)
    returns : ndarray of float32, (B,)
        n-step returns, R_t of GA3C's Eq. 1.
    versions : ndarray of int64, (B,)
        How many updates the weights had seen when each action was chosen; the policy lag k of Eq. 4 is the
        number seen at training less this.
    """

    obs: np.ndarray
    actions: np.ndarray
    returns: np.ndarray
    versions: np.ndarray

    def __len__(self) -> int:
        return len(self.actions)


class Segments:
    """Room for `n` segments, allocated once. Who holds a segment's number may write or read it.

    Attributes
    ----------
    obs : ndarray, (n, t_max, *obs_shape)
    actions, versions : ndarray of int64, (n, t_max)
    rewards : ndarray of float32, (n, t_max)
        As trained on: clipped on Atari.
    lengths : ndarray of int64, (n,)
        Transitions recorded, at least 1 in a finished segment.
    bootstrap : ndarray of float32, (n,)
        Value of what follows the last transition: 0 after a terminal.
    """

    def __init__(self, game: Game, n: int, t_max: int) -> None:
        self.n, self.t_max = n, t_max
        self.obs = game.room(n, t_max)
        self.actions = np.zeros((n, t_max), np.int64)
        self.versions = np.zeros((n, t_max), np.int64)
        self.rewards = np.zeros((n, t_max), np.float32)
        self.lengths = np.zeros(n, np.int64)
        self.bootstrap = np.zeros(n, np.float32)

    def rollout(self, ids: Sequence[int], gamma: float) -> Rollout:
        """Copy the finished segments `ids` into one rollout, in that order."""
        index = np.asarray(ids)
        lengths = self.lengths[index]
        longest = int(lengths.max())
        steps = np.arange(longest)[:, None]  # (T, 1) against (S,)
        rewards = self.rewards[index, :longest].T
        returns = n_step_returns(rewards, steps == lengths - 1, self.bootstrap[index], gamma)
        kept = (steps < lengths).T  # (S, T): drops what lies behind a short segment's end
        return Rollout(
            np.concatenate([self.obs[i, :n] for i, n in zip(ids, lengths.tolist(), strict=True)]),
            self.actions[index, :longest][kept],
            returns.T[kept],
            self.versions[index, :longest][kept],
        )


class Pool:
    """Experiences played and not yet trained on, taken out in batches of an exact size, oldest first."""

    def __init__(self) -> None:
        self._rollouts: list[Rollout] = []

    def __len__(self) -> int:
        return sum(map(len, self._rollouts))

    def add(self, rollout: Rollout) -> None:
        """Put experiences behind the others."""
        self._rollouts.append(rollout)

    def take(self, n: int) -> Rollout:
        """Take the oldest `n`; what is left opens the next batch."""
        if len(self._rollouts) == 1 and len(self) == n:
            return self._rollouts.pop()  # nothing to copy
        names = ("obs", "actions", "returns", "versions")
        joined = [np.concatenate([getattr(rollout, name) for rollout in self._rollouts]) for name in names]
        self._rollouts = [Rollout(*(part[n:] for part in joined))] if len(self) > n else []
        return Rollout(*(part[:n] for part in joined))
