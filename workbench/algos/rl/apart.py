"""Environments of one agent each, for who adds and lets go of single agents while the others play on."""

from collections.abc import Callable
from contextlib import ExitStack
from itertools import islice

import numpy as np

from workbench.algos.rl.envs import Envs, Step
from workbench.algos.rl.games import Game


class EnvsApart:
    """As many environments as there may be agents, of which the first `playing` play; an `Envs`.

    One is started when its agent first plays. An agent that is let go rests where it is: what its last action led to is
    handed out when it plays again.

    Parameters
    ----------
    game : Game
    n_envs : int
        Agents there may be.
    start : callable
        Gives an `Envs` of a single environment, from the agent's number.

    Attributes
    ----------
    playing : int
        Agents that the next `recv` waits for; may be set at any time, by any thread.
    """

    def __init__(self, game: Game, n_envs: int, start: Callable[[int], Envs]) -> None:
        self.game, self.n_envs, self.playing = game, n_envs, 1
        self._start = start
        self._envs: list[Envs] = []
        self._seen = 0  # agents of the last `recv`

    def recv(self) -> Step:
        """Wait for the next observations of the agents that play."""
        n = self._seen = self.playing
        while len(self._envs) < n:
            self._envs.append(self._start(len(self._envs)))
        steps = [env.recv() for env in islice(self._envs, n)]
        return Step(
            np.arange(n),
            np.concatenate([step.obs for step in steps]),
            np.concatenate([step.rewards for step in steps]),
            np.concatenate([step.terminated for step in steps]),
            np.concatenate([step.truncated for step in steps]),
            np.concatenate([step.started for step in steps]),
        )

    def send(self, actions: np.ndarray) -> None:
        """Give the agents of the last `recv` an action each."""
        for env, action in zip(self._envs, np.split(actions, self._seen), strict=False):
            env.send(action)

    def close(self) -> None:
        """Close the environments."""
        envs, self._envs = self._envs, []
        with ExitStack() as all_of_them:
            for env in envs:
                all_of_them.callback(env.close)
