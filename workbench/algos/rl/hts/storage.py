"""What HTS-RL's executors write in one interval, and what its learner reads in the next: dense, a row a step."""

import numpy as np

from workbench.algos.rl.envs import Step
from workbench.algos.rl.games import Game
from workbench.algos.rl.returns import generalised_advantages, n_step_returns
from workbench.algos.rl.rollout import Rollout


class Storage:
    """Room for T steps of N agents, allocated once. An executor writes the columns of its own agents.

    A row's step may only have reset an environment (see `workbench.algos.rl.envs`): it is no transition, and nobody
    trains on it. The value written there is that of the ended episode's last observation.

    Attributes
    ----------
    obs : ndarray, (T, N, *obs_shape)
        What was acted on.
    actions, versions : ndarray of int64, (T, N)
        `versions` are of the weights that acted.
    log_probs, values : ndarray of float32, (T, N)
        Of the action drawn, and of `obs`, under the weights that acted.
    rewards : ndarray of float32, (T, N)
        Raw.
    terminated, truncated : ndarray of bool, (T, N)
        The step ended its episode.
    played : ndarray of bool, (T, N)
        The step was a transition.
    last_obs : ndarray, (N, *obs_shape)
        What the last row's step led to.
    """

    def __init__(self, game: Game, n_steps: int, n_agents: int) -> None:
        shape = (n_steps, n_agents)
        self.obs = game.room(*shape)
        self.actions, self.versions = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self.log_probs, self.values, self.rewards = (np.zeros(shape, np.float32) for _ in range(3))
        self.terminated, self.truncated, self.played = (np.zeros(shape, bool) for _ in range(3))
        self.last_obs = game.room(n_agents)

    def __len__(self) -> int:
        return len(self.actions)

    def write(
        self, t: int, agents: np.ndarray, seen: Step, actions: np.ndarray, policy: np.ndarray, values: np.ndarray
    ) -> None:
        """Write what `agents`, (B,), saw and did in row `t`: a policy (B, n_actions), and values (B,)."""
        self.obs[t, agents] = seen.obs
        self.actions[t, agents] = actions
        chosen = policy[np.arange(len(actions)), actions]
        self.log_probs[t, agents] = np.log(np.maximum(chosen, np.finfo(np.float32).tiny))
        self.values[t, agents] = values

    def write_outcome(self, t: int, agents: np.ndarray, step: Step) -> None:
        """Write what row `t` led to, for `agents`, (B,)."""
        self.rewards[t, agents] = np.where(step.started, 0, step.rewards)
        self.terminated[t, agents] = step.terminated & ~step.started
        self.truncated[t, agents] = step.truncated & ~step.started
        self.played[t, agents] = ~step.started
        if t == len(self) - 1:
            self.last_obs[agents] = step.obs

    def rollout(self, last_values: np.ndarray, *, t_max: int, gamma: float, clip_rewards: bool) -> Rollout:
        """Return all transitions with their n-step returns, (T N,) less the rows that only reset.

        Parameters
        ----------
        last_values : ndarray, (N,)
            Of `last_obs`.
        t_max : int
            Most rewards a return sums; it is cut every `t_max` rows.
        gamma : float
        clip_rewards : bool
            To [-1, 1].
        """
        steps = np.arange(1, len(self) + 1)[:, None]
        cuts = self._ends() | (steps % t_max == 0)
        returns = n_step_returns(self._trained_on(clip_rewards), cuts, self._following(last_values), gamma)
        return self._chosen(returns)

    def advantages(
        self, last_values: np.ndarray, *, gamma: float, gae_lambda: float, clip_rewards: bool
    ) -> tuple[Rollout, np.ndarray, np.ndarray]:
        """Return all transitions as `rollout` does, with lambda-returns, their advantages and log-probabilities."""
        advantages = generalised_advantages(
            self._trained_on(clip_rewards), self.values, self._following(last_values), self._ends(), gamma, gae_lambda
        )
        return self._chosen(advantages + self.values), advantages[self.played], self.log_probs[self.played]

    def _chosen(self, returns: np.ndarray) -> Rollout:
        kept = self.played
        return Rollout(self.obs[kept], self.actions[kept], returns[kept], self.versions[kept])

    def _trained_on(self, clip_rewards: bool) -> np.ndarray:
        return np.clip(self.rewards, -1, 1) if clip_rewards else self.rewards

    def _ends(self) -> np.ndarray:
        """Tell where nothing recorded follows, (T, N): at an episode's end, and in the last row."""
        ends = self.terminated | self.truncated
        ends[-1] = True
        return ends

    def _following(self, last_values: np.ndarray) -> np.ndarray:
        """Give the value of what each step led to, (T, N): 0 of a terminal, but not of a truncated episode's end."""
        following = np.concatenate([self.values[1:], last_values[None]])
        return np.where(self.terminated, 0, following)
