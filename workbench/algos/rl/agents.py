"""A group of agents: plays, draws actions from the policies it is given, and records segments.

All bookkeeping is done on whole batches. There is no thread and no queue here: GA3C's agent threads, and its
deterministic mode in one thread, call the same two methods in turn.
"""

from collections.abc import Callable

import numpy as np

from workbench.algos.rl.envs import Envs, Step
from workbench.algos.rl.episodes import Episodes
from workbench.algos.rl.rollout import Segments

Exchange = Callable[[list[int], int], list[int]]
NONE = -1  # in the place of a segment's number: the agent records nothing now


class AgentGroup:
    """Agents that share one batch of environments.

    Parameters
    ----------
    envs : Envs
    segments : Segments
        Where experiences go.
    episodes : Episodes
    generator : numpy.random.Generator
        Draws the actions.
    clip_rewards : bool
        Train on rewards clipped to [-1, 1]; the episodes keep the raw ones.
    first_agent : int
        Number of the group's first agent among all agents of `episodes`.

    Attributes
    ----------
    steps : int
        Transitions played.
    """

    def __init__(
        self,
        envs: Envs,
        segments: Segments,
        episodes: Episodes,
        generator: np.random.Generator,
        *,
        clip_rewards: bool,
        first_agent: int = 0,
    ) -> None:
        self.envs, self.segments, self.episodes, self.first_agent = envs, segments, episodes, first_agent
        self.generator, self.clip_rewards = generator, clip_rewards
        self.steps = 0
        self._segment = np.full(envs.n_envs, NONE)  # number of each agent's unfinished segment
        self._t = np.zeros(envs.n_envs, np.int64)  # transitions in it
        self._step: Step | None = None

    def observe(self) -> np.ndarray:
        """Wait for the agents that are ready; record what their last actions led to.

        Returns
        -------
        ndarray, (B, *obs_shape)
            What a policy and a value are now needed for.
        """
        step = self._step = self.envs.recv()
        going = ~step.started
        ids, rewards = step.env_ids[going], step.rewards[going]
        trained = np.clip(rewards, -1, 1) if self.clip_rewards else rewards
        self.segments.rewards[self._segment[ids], self._t[ids]] = trained
        self._t[ids] += 1
        self.steps += len(ids)
        self.episodes.add(ids + self.first_agent, rewards, (step.terminated | step.truncated)[going])
        return step.obs

    def act(self, policy: np.ndarray, values: np.ndarray, version: int, exchange: Exchange) -> None:
        """Draw and send actions, and record them.

        Parameters
        ----------
        policy : ndarray, (B, n_actions)
        values : ndarray, (B,)
            Of the observations returned by `observe`.
        version : int
            Of the weights that gave them.
        exchange : callable
            Takes the numbers of finished segments (full ones, and those of episodes that ended) and gives as
            many free ones as asked for. It may wait for them.
        """
        step, store = self._observed(), self.segments
        actions = sample(policy, self.generator)
        self.envs.send(actions)  # first of all, so that the environments go on during the rest
        finished = self.finish(values)
        alive = ~((step.terminated | step.truncated) & ~step.started)  # an ended episode's last observation gets no
        ids, obs, chosen = step.env_ids, step.obs, actions  # action: the next step only resets
        if not alive.all():
            ids, obs, chosen = ids[alive], obs[alive], chosen[alive]
        fresh = ids[self._segment[ids] == NONE]
        if finished or len(fresh):
            self._t[fresh] = 0
            self._segment[fresh] = exchange(finished, len(fresh))
        at = self._segment[ids], self._t[ids]
        store.obs[at] = obs
        store.actions[at] = chosen
        store.versions[at] = version

    def finish(self, values: np.ndarray) -> list[int]:
        """Close the segments that are full or whose episode has ended, and return their numbers.

        `act` does this too; who must train before the next action is drawn calls it first.

        Parameters
        ----------
        values : ndarray, (B,)
            Of the observations returned by `observe`.
        """
        step, store = self._observed(), self.segments
        ids, ended = step.env_ids, step.terminated | step.truncated
        full = (ended | (self._t[ids] == store.t_max)) & ~step.started & (self._segment[ids] != NONE)
        done = ids[full]
        finished = self._segment[done]
        store.lengths[finished] = self._t[done]
        store.bootstrap[finished] = np.where(step.terminated, 0, values)[full]
        self._segment[done] = NONE
        return [int(segment) for segment in finished]

    def _observed(self) -> Step:
        if self._step is None:
            raise RuntimeError("act and finish must follow observe")
        return self._step

    def close(self) -> None:
        """Close the environments."""
        self.envs.close()


def sample(policy: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Draw one action a row from probabilities (B, n_actions), by inverting the cumulative distribution."""
    cumulative = policy.cumsum(1)
    drawn = generator.random((len(policy), 1), np.float32) * cumulative[:, -1:]
    actions: np.ndarray = np.minimum((drawn >= cumulative).sum(1), policy.shape[1] - 1)
    return actions
