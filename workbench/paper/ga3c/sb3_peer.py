"""Stable-Baselines3 on the same emulators and the same network, so that only the data flow differs."""

from typing import Any

import gymnasium
import numpy as np
import torch
from ale_py.vector_env import AtariVectorEnv
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnv
from torch import nn

from workbench.core.machine import cores


class AtariVecEnv(VecEnv):
    """`ale_py`'s environments as Stable-Baselines3 reads them: clipped rewards, raw returns in a game's last info."""

    def __init__(self, rom: str, n_envs: int, n_threads: int = 0, seed: int = 0) -> None:
        self.ale = AtariVectorEnv(
            rom, n_envs, num_threads=n_threads or min(n_envs, cores()), use_fire_reset=False,
            reward_clipping=False, autoreset_mode=AutoresetMode.SAME_STEP,
        )  # fmt: skip
        self._first_seed = seed
        self._returns, self._lengths = np.zeros(n_envs), np.zeros(n_envs, np.int64)
        super().__init__(n_envs, self.ale.single_observation_space, self.ale.single_action_space)

    def reset(self) -> np.ndarray:
        seeds = np.random.SeedSequence(self._first_seed).generate_state(self.num_envs) >> 1
        obs: np.ndarray = self.ale.reset(seed=seeds.astype(np.int64))[0]
        return obs

    def step_async(self, actions: np.ndarray) -> None:
        self.ale.send(actions.astype(np.int64))

    def step_wait(self) -> Any:
        obs, rewards, terminated, truncated, info = self.ale.recv()
        self._returns += rewards
        self._lengths += 1
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(terminated | truncated):
            infos[i] = {"terminal_observation": info["final_obs"][i], "TimeLimit.truncated": bool(truncated[i])}
            infos[i]["episode"] = {"r": float(self._returns[i]), "l": int(self._lengths[i])}  # as Monitor tells it
            self._returns[i] = self._lengths[i] = 0
        return obs, np.clip(rewards, -1, 1).astype(np.float32), terminated | truncated, infos

    def close(self) -> None:
        self.ale = None

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        raise NotImplementedError

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError


class SmallNetwork(BaseFeaturesExtractor):
    """Convolutions 16 8×8 stride 4 and 32 4×4 stride 2, then 256 features."""

    def __init__(self, observation_space: gymnasium.Space[Any]) -> None:
        super().__init__(observation_space, 256)
        self.layers = nn.Sequential(
            nn.Conv2d(4, 16, 8, 4), nn.ReLU(), nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.Flatten(),
            nn.Linear(2592, 256), nn.ReLU(),
        )  # fmt: skip

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = self.layers(obs)
        return features
