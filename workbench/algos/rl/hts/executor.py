"""HTS-RL's executors: they step environments, and draw the actions themselves."""

import numpy as np

from workbench.algos.rl.agents import sample
from workbench.algos.rl.envs import Envs
from workbench.algos.rl.hts.storage import Storage


class Executor:
    """Some agents, stepped together by one thread; it draws their actions from its own generator.

    That the actions are drawn here, and not where the policies are computed, is what makes a trajectory independent of
    which actor served it, and when.

    Parameters
    ----------
    envs : Envs
        All of them answer every `recv`.
    generator : numpy.random.Generator
    first_agent : int
        Number of the first of these agents among all.

    Attributes
    ----------
    t : int
        Rows written in this interval.
    steps : int
        Transitions played.
    """

    def __init__(self, envs: Envs, generator: np.random.Generator, first_agent: int) -> None:
        self.envs, self.generator, self.first_agent = envs, generator, first_agent
        self.t = self.steps = 0
        self._seen = envs.recv()

    @property
    def obs(self) -> np.ndarray:
        """What a policy and a value are now needed for, (B, *obs_shape)."""
        return self._seen.obs

    def step(self, policy: np.ndarray, values: np.ndarray, version: int, storage: Storage) -> None:
        """Draw actions, wait for what they lead to, and record both in the next row of `storage`.

        Parameters
        ----------
        policy : ndarray, (B, n_actions)
            For `obs`.
        values : ndarray, (B,)
        version : int
            Of the weights that gave them.
        storage : Storage
        """
        seen, t = self._seen, self.t
        actions = sample(policy, self.generator)
        self.envs.send(actions)
        agents = self.first_agent + seen.env_ids
        storage.write(t, agents, seen, actions, policy, values)
        storage.versions[t, agents] = version
        self._seen = self.envs.recv()
        storage.write_outcome(t, self.first_agent + self._seen.env_ids, self._seen)
        self.steps += int(np.count_nonzero(~self._seen.started))
        self.t += 1

    def close(self) -> None:
        """Close the environments."""
        self.envs.close()
