"""Experiences to train on, as every system takes them."""

import numpy as np

from workbench.algos.rl.rollout import Rollout


def fixed_rollout(game, batch=24, seed=0) -> Rollout:
    """Experiences that nobody played."""
    rng = np.random.default_rng(seed)
    if game.atari:
        obs = rng.integers(0, 256, (batch, *game.obs_shape), dtype=np.uint8)
    else:
        obs = rng.normal(size=(batch, *game.obs_shape)).astype(np.float32)
    actions = rng.integers(0, game.n_actions, batch)
    return Rollout(obs, actions, rng.normal(size=batch).astype(np.float32), np.zeros(batch, np.int64))
