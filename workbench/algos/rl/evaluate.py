"""Evaluation: whole games with fixed weights, apart from training's environments and generators."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from workbench.algos.rl.agents import sample
from workbench.algos.rl.envs import Envs, make_envs
from workbench.algos.rl.games import DEFAULT_RULES, Game, Rules
from workbench.algos.rl.model import ActorCritic
from workbench.core.checks import plain_seed, whole
from workbench.core.errors import InvalidInput
from workbench.core.seeds import derived

AT_ONCE = 32  # games played side by side
NOOP_MAX = 30  # of both papers: most random no-op actions at the start of a game


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Whole games that were played.

    Attributes
    ----------
    returns : ndarray of float, (n_episodes,)
        Raw, undiscounted.
    lengths : ndarray of int, (n_episodes,)
        Agent steps.
    """

    returns: np.ndarray
    lengths: np.ndarray

    @property
    def mean(self) -> float:
        """Mean return."""
        return float(self.returns.mean())

    @property
    def std(self) -> float:
        """Standard deviation of the returns."""
        return float(self.returns.std())

    def summary(self) -> dict[str, float]:
        """Mean, spread and extremes, in JSON's types."""
        return {
            "n_episodes": len(self.returns),
            "mean": _rounded(self.mean),
            "std": _rounded(self.std),
            "lowest": float(self.returns.min()),
            "highest": float(self.returns.max()),
            "mean_length": round(float(self.lengths.mean()), 1),
        }


def _rounded(score: float) -> float:
    """Round to three decimals, or to as many digits where it is smaller: rewards of one's own may be of any size."""
    return round(score, max(3, 2 - math.floor(math.log10(abs(score))))) if score else score


@dataclass(frozen=True, slots=True)
class EvaluationProtocol:
    """How a paper evaluated.

    Attributes
    ----------
    n_episodes : int
    greedy : bool
        The likeliest action instead of a drawn one.
    """

    n_episodes: int
    greedy: bool

    def play(
        self,
        model: ActorCritic,
        game: Game,
        rules: Rules = DEFAULT_RULES,
        seed: int = 0,
        n_threads: int | None = None,
    ) -> Evaluation:
        """Evaluate by this protocol, and otherwise by the rules the agent was trained by; see `evaluate`."""
        rules = replace(rules, noop_max=NOOP_MAX)
        return evaluate(model, game, self.n_episodes, rules, greedy=self.greedy, seed=seed, n_threads=n_threads)


GA3C_PROTOCOL = EvaluationProtocol(n_episodes=30, greedy=False)
"""GA3C's Table 3: 30 games, each from a random seed, actions drawn."""
BA3C_PROTOCOL = EvaluationProtocol(n_episodes=50, greedy=True)
"""Distributed BA3C's: 50 games, the likeliest action every time."""
PROTOCOLS = {"ga3c": GA3C_PROTOCOL, "ba3c": BA3C_PROTOCOL}


def evaluate(
    model: ActorCritic,
    game: Game,
    n_episodes: int = 30,
    rules: Rules = DEFAULT_RULES,
    *,
    greedy: bool = False,
    seed: int = 0,
    n_threads: int | None = None,
    meanwhile: Callable[[], object] = lambda: None,
) -> Evaluation:
    """Play `n_episodes` whole games.

    Every game that is begun is counted: playing on in the agents that finish first would favour short games.

    Parameters
    ----------
    model : ActorCritic
        Read only; on whichever device it is.
    game : Game
    n_episodes : int
    rules : Rules
        Of the games, best those it was trained by (`Settings.rules`, or `load_agent`'s).
    greedy : bool
        Take the likeliest action instead of drawing one.
    seed : int
        Of the games' starts and the actions drawn.
    n_threads
        See `make_envs`.
    meanwhile : callable
        Called at every step; what it raises ends the games.

    Raises
    ------
    InvalidInput
        A game does not end: it has no limit and is longer than Atari's longest. Or there are no games to play, or what
        is given as the seed is none.
    """
    if not whole(1).fits(n_episodes):
        raise InvalidInput(f"an evaluation plays n_episodes games, {whole(1).words}, got {n_episodes!r}")
    seed = plain_seed(seed)
    generator = np.random.default_rng([seed, 1])
    returns, lengths = [], []
    for first in range(0, n_episodes, AT_ONCE):
        n = min(AT_ONCE, n_episodes - first)
        start = derived(seed, 0, first)
        envs = make_envs(game, n, start, rules, n_threads=n_threads)
        try:
            played = _play_once(model, envs, rules.longest(game), greedy, generator, meanwhile)
        finally:
            envs.close()
        returns.append(played[0])
        lengths.append(played[1])
    return Evaluation(np.concatenate(returns), np.concatenate(lengths))


def _play_once(
    model: ActorCritic,
    envs: Envs,
    longest: int,
    greedy: bool,
    generator: np.random.Generator,
    meanwhile: Callable[[], object],
) -> tuple[np.ndarray, np.ndarray]:
    """Play one game an agent, all the way; returns and lengths, (n_envs,) each."""
    device = next(model.parameters()).device
    returns, lengths = np.zeros(envs.n_envs), np.zeros(envs.n_envs, np.int64)
    playing = np.ones(envs.n_envs, bool)
    while True:
        step = envs.recv()
        meanwhile()
        counted = playing[step.env_ids] & ~step.started
        returns[step.env_ids] += np.where(counted, step.rewards, 0)
        lengths[step.env_ids] += counted
        if lengths.max() > longest:
            raise InvalidInput(
                f"a game of {envs.game.name} has not ended in {longest} steps, and whole games are played: give it a "
                "limit, Rules(max_episode_frames=1000) or env_kwargs={'max_episode_steps': 1000}"
            )
        playing[step.env_ids[counted & (step.terminated | step.truncated)]] = False
        if not playing.any():
            return returns, lengths
        live = playing[step.env_ids]
        policy = np.full((len(live), envs.game.n_actions), 1 / envs.game.n_actions, np.float32)
        with torch.inference_mode():  # games that are over play on at random
            logits, _ = model(torch.from_numpy(step.obs[live]).to(device))
            policy[live] = torch.softmax(logits, 1).cpu().numpy()
        envs.send(policy.argmax(1) if greedy else sample(policy, generator))
