"""GA3C's default beside Stable-Baselines3's A2C: the same emulators, trunk, batch and optimiser settings.

The systems:

- ``default``: GA3C as it comes, its threads running freely in two groups
- ``before``: with the network, start and RMSProp of 0.1.0: one trunk, uniform, epsilon inside the root, squares from 0
- ``a2c``: Stable-Baselines3's, as many experiences an update (``min_training_batch / t_max`` environments, ``t_max``
  steps of each), with GA3C's learning rate, discount, entropy bonus, value weight, clipping and RMSProp

Policy and value have the same layers in ``default`` and ``a2c``; only `CRITIC_SCALE`, on vectors, is GA3C's alone.
"""

from collections import deque
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from workbench.algos.rl.ga3c.trial import GA3C
from workbench.algos.rl.games import find_game
from workbench.core.budget import Budget
from workbench.core.errors import WorkbenchError
from workbench.core.extras import how_to_get
from workbench.paper.experiment import Rows, each

WINDOW = 100  # games
BEFORE = {"init": "uniform", "eps_inside_root": True, "initial_square": 0.0}
Curve = list[tuple[int, float, int]]  # frames, score, games the score is the mean of


@dataclass(frozen=True)
class Against:
    """Trials of every system with every seed.

    Attributes
    ----------
    game : str
    frames : int
        Of each trial, with `points` on its curve.
    seeds, first_seed : int
    systems : tuple of str
        ``default``, ``before`` (the old default) and ``a2c``.
    processes : int
        Trials at once: they change seconds, which are not told, and the policy lag a little.
    """

    game: str = "CartPole-v1"
    frames: int = 150_000
    seeds: int = 3
    first_seed: int = 0
    systems: tuple[str, ...] = ("default", "before", "a2c")
    points: int = 15
    processes: int = 2


def against_sb3(settings: Against) -> Rows:
    """Train every system with every seed.

    Returns
    -------
    rows
        One a system, seed and point: game, system, seed, frames, score (mean raw return of the last 100 games, read in
        the same way from every system), games.

    Raises
    ------
    WorkbenchError
        Stable-Baselines3 is missing.
    """
    if "a2c" in settings.systems and not find_spec("stable_baselines3"):
        get = how_to_get("stable_baselines3")
        raise WorkbenchError(f"no Stable-Baselines3, whose A2C stands beside GA3C: {get}")
    seeds = range(settings.first_seed, settings.first_seed + settings.seeds)
    names = [(system, seed) for seed in seeds for system in settings.systems]
    jobs = [(system, settings.game, seed, settings.frames, settings.points) for system, seed in names]
    return [
        {"game": settings.game, "system": system, "seed": seed, "frames": frames, "score": score, "games": games}
        for (system, seed), curve in zip(names, each(curve_of, jobs, settings.processes), strict=True)
        for frames, score, games in curve
    ]


def curve_of(system: str, game: str, seed: int, frames: int, points: int) -> Curve:
    """Train once."""
    return (a2c_curve if system == "a2c" else ga3c_curve)(settings_of(system, game), seed, frames, points)


def settings_of(system: str, game: str) -> GA3C:
    """Return a system's settings; A2C reads the default's."""
    before = BEFORE | ({} if find_game(game).atari else {"network": "mlp"}) if system == "before" else {}
    base: dict[str, Any] = {"game": game, "device": "cpu", "learning_rate": 7e-4, "t_max": 5, "score_window": WINDOW}
    return GA3C(**(base | before))


def ga3c_curve(settings: GA3C, seed: int, frames: int, points: int) -> Curve:
    """Train GA3C once."""
    trial = replace(settings, phase=Budget(frames=frames // points))({}, seed)
    curve: Curve = []
    for _ in range(points):
        trial.train_phase(lambda metrics: None)
        curve.append(point(trial.steps * trial.game.frames_per_step, trial.episodes.returns))
    trial.close()
    return curve


def a2c_curve(settings: GA3C, seed: int, frames: int, points: int) -> Curve:
    """Train Stable-Baselines3's A2C once."""
    from stable_baselines3 import A2C
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecEnv

    from workbench.paper.ga3c.sb3_peer import AtariVecEnv, SmallNetwork

    game, s = find_game(settings.game), settings
    returns: deque[float] = deque(maxlen=WINDOW)
    curve: Curve = []

    class Reader(BaseCallback):
        def _on_step(self) -> bool:
            returns.extend(info["episode"]["r"] for info in self.locals["infos"] if "episode" in info)
            if self.num_timesteps * game.frames_per_step >= (len(curve) + 1) * (frames // points):
                curve.append(point(self.num_timesteps * game.frames_per_step, returns))
            return len(curve) < points

    torch.set_num_threads(s.torch_threads)
    n_envs = s.min_training_batch // s.t_max
    env: VecEnv = (
        AtariVecEnv(game.name, n_envs, seed=seed) if game.atari else make_vec_env(game.name, n_envs, seed=seed)
    )
    network: dict[str, Any] = {"features_extractor_class": SmallNetwork, "net_arch": []} if game.atari else {}
    model = A2C(
        "CnnPolicy" if game.atari else "MlpPolicy", env, seed=seed, device="cpu", policy_kwargs=network or None,
        learning_rate=s.learning_rate, gamma=s.gamma, n_steps=s.t_max, ent_coef=s.entropy_beta, vf_coef=s.value_weight,
        max_grad_norm=s.max_grad_norm or float("inf"), rms_prop_eps=s.rmsprop_eps,
    )  # fmt: skip
    model.learn(10**9, callback=Reader())
    env.close()
    return curve


def point(frames: int, returns: deque[float]) -> tuple[int, float, int]:
    """Return a point of a curve; the score is 0 before any game has finished."""
    return frames, round(float(np.mean(returns or [0])), 1), len(returns)
