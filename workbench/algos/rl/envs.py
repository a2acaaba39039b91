"""Environments behind one interface: Atari's own threads, or any discrete-action Gymnasium environment.

An `Envs` batch is asked and answered in turn: `recv` hands out observations of the agents that are
ready, `send` gives those same agents an action each. On Atari the agents that are not in the batch keep
playing meanwhile, in C++ threads.

Resets
------
Every environment here runs in Gymnasium's NEXT_STEP mode: the step that ends an episode returns the
episode's true last observation (what a truncated episode bootstraps from); the next step ignores its action,
resets, and returns the first observation of the next episode with a void reward. `Step.started` marks
those, so a reader never has to know: where it is set there is an observation, and no transition before it.
"""

import warnings
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium
import numpy as np
import torch
from ale_py.vector_env import AtariVectorEnv
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from workbench.algos.rl.emulators import keep_emulators, open_emulators
from workbench.algos.rl.environment import all_or_none
from workbench.algos.rl.frames import SCREEN, SIDE, STACK, Frames, own_frames_pay
from workbench.algos.rl.games import ATARI_FRAMESKIP, DEFAULT_RULES, Game, Rules
from workbench.algos.rl.playable import by_the_interface, check_finite, readable
from workbench.core.errors import InvalidInput, first_line
from workbench.core.machine import cores_a_slot


@dataclass(frozen=True, slots=True)
class Step:
    """What `Envs.recv` hands out, for the B agents that are ready.

    Attributes
    ----------
    env_ids : ndarray of int, (B,)
    obs : ndarray, (B, *obs_shape)
        Never written again, by the environment or by the receiver. Atari's lie with channels last in memory.
    rewards : ndarray of float32, (B,)
        Raw, of the transition that led to `obs`.
    terminated, truncated : ndarray of bool, (B,)
        `obs` is the last of an episode that came to its end / was cut off.
    started : ndarray of bool, (B,)
        `obs` is the first of an episode; reward and ends are void.
    """

    env_ids: np.ndarray
    obs: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    started: np.ndarray


class Envs(Protocol):
    """A batch of environments, asked and answered in turn."""

    game: Game
    n_envs: int

    def recv(self) -> Step:
        """Wait for the next observations; call in turn with `send`, beginning here."""

    def send(self, actions: np.ndarray) -> None:
        """Give the agents of the last `recv` an action each, (B,) ints."""

    def close(self) -> None:
        """Stop threads and free the emulators. Safe to call twice."""


def make_envs(
    game: Game,
    n_envs: int,
    seed: int,
    rules: Rules = DEFAULT_RULES,
    *,
    batch_size: int | None = None,
    n_threads: int | None = None,
) -> Envs:
    """Start `n_envs` environments.

    Parameters
    ----------
    game : Game
        From `find_game`.
    n_envs : int
    seed : int
        Each environment gets its own seed, derived from this one.
    rules : Rules
    batch_size : int, optional
        Agents a `recv` waits for, Atari only; all by default.
    n_threads : int, optional
        Emulator threads, Atari only; one a core by default.
    """
    if not game.atari:
        return GymnasiumEnvs(game, n_envs, seed, rules.max_episode_frames)
    grey = game.obs_shape[0] == STACK
    frames = Frames(n_envs) if grey and game.screen == SCREEN and own_frames_pay() else None
    height, width, stack = (SIDE, SIDE, STACK) if frames is None else (*SCREEN, 1)
    env = open_emulators(
        game.name,
        n_envs,
        batch_size=batch_size or n_envs,
        num_threads=min(n_envs, n_threads or cores_a_slot()),
        max_num_frames_per_episode=rules.longest(game),
        repeat_action_probability=rules.repeat_action_probability,
        autoreset_mode=AutoresetMode.NEXT_STEP,
        img_height=height,
        img_width=width,
        grayscale=grey,
        stack_num=stack,
        frameskip=ATARI_FRAMESKIP,
        noop_max=rules.noop_max,
        episodic_life=False,
        reward_clipping=False,  # the score needs raw rewards; training clips its own copy
        use_fire_reset=rules.fire_on_reset,
    )
    return AtariEnvs(game, env, seed, frames)


class AtariEnvs:
    """Atari games stepped by `ale_py` in C++ threads; batches may hold only the agents that are ready.

    With `frames` the library gives whole screens, of which these make what a network sees.
    """

    def __init__(self, game: Game, env: AtariVectorEnv, seed: int, frames: Frames | None = None) -> None:
        self.game, self.n_envs, self._frames = game, env.num_envs, frames
        self._env: AtariVectorEnv | None = env
        self._fresh = np.ones(self.n_envs, bool)  # the next observation is the first of an episode
        seeds = np.random.SeedSequence(seed).generate_state(self.n_envs) >> 1
        obs, info = env.reset(seed=seeds.astype(np.int64))
        size = len(obs)
        no = np.zeros(size, bool)
        self._first: tuple[Any, ...] | None = (obs, np.zeros(size, np.int32), no, no, info)
        self._size, self._asked = size, False

    def recv(self) -> Step:
        """Wait for the next observations, without holding the interpreter's lock."""
        if self._env is None:
            raise RuntimeError("these environments are closed")
        if self._first is not None:
            (obs, rewards, terminated, truncated, info), self._first = self._first, None
        else:
            obs, rewards, terminated, truncated, info = self._env.recv()
            self._asked = False
        ids = info["env_id"]
        started = self._fresh[ids]
        self._fresh[ids] = (terminated | truncated) & ~started
        self._size = len(ids)
        if self._frames is not None:
            obs = self._frames.show(obs[:, 0], ids, started)
        elif obs.ndim == 5:  # in colour: (B, stack, side, side, 3)
            obs = np.moveaxis(obs.transpose(0, 2, 3, 1, 4).reshape(*obs.shape[:1], *obs.shape[2:4], -1), -1, 1)
        else:
            obs = torch.from_numpy(obs).contiguous(memory_format=torch.channels_last).numpy()
        return Step(ids, obs, rewards.astype(np.float32), terminated, truncated, started)

    def send(self, actions: np.ndarray) -> None:
        """Give the agents of the last `recv` an action each; they play on in the background."""
        if self._env is None:
            raise RuntimeError("these environments are closed")
        self._env.send(checked_actions(actions, self._size, self.game.n_actions))
        self._asked = True

    def close(self) -> None:
        """Let go of the emulators; they may be kept for who wants the same."""
        if self._env is not None:
            if self._asked:
                self._env.recv()
            keep_emulators(self._env)
        self._env = self._first = None


class GymnasiumEnvs:
    """Any discrete-action Gymnasium environment, stepped in the caller's thread when it calls `recv`."""

    def __init__(self, game: Game, n_envs: int, seed: int, max_episode_frames: int | None) -> None:
        self.game, self.n_envs = game, n_envs
        self._fresh = np.ones(n_envs, bool)
        self._ids = np.arange(n_envs)
        self._actions: np.ndarray | None = None
        with all_or_none() as opened:
            self._env: VectorEnv | None = opened(_vector_env(game, n_envs, max_episode_frames))
            with by_the_interface(game.name):
                self._first: np.ndarray | None = self._env.reset(seed=seed)[0]

    def recv(self) -> Step:
        """Step every environment with the actions sent before."""
        if self._env is None:
            raise RuntimeError("these environments are closed")
        if self._first is not None:
            obs, self._first = self._first, None
            rewards, terminated = np.zeros(self.n_envs), np.zeros(self.n_envs, bool)
            truncated = terminated
        else:
            with by_the_interface(self.game.name):
                obs, rewards, terminated, truncated, _ = self._env.step(self._actions)
        started = self._fresh
        self._fresh = (terminated | truncated) & ~started
        with np.errstate(over="ignore"):  # which is refused next
            obs, rewards = np.asarray(obs, self.game.obs_dtype), np.asarray(rewards, np.float32)
        check_finite(self.game.name, "an observation", obs)
        check_finite(self.game.name, "a reward", rewards)
        return Step(self._ids, obs, rewards, terminated, truncated, started)

    def send(self, actions: np.ndarray) -> None:
        """Keep the actions for the next `recv`."""
        self._actions = checked_actions(actions, self.n_envs, self.game.n_actions)

    def close(self) -> None:
        """Close the environments."""
        if self._env is not None:
            self._env.close()
        self._env = None


class _Untold(gymnasium.Wrapper):
    """Leaves the infos out, which nobody here reads: Gymnasium makes arrays of a batch's, and not all are alike."""

    def reset(self, **settings: Any) -> Any:
        obs, _ = self.env.reset(**settings)
        return obs, {}

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, _ = self.env.step(action)
        return obs, reward, terminated, truncated, {}


def checked_actions(actions: np.ndarray, n: int, n_actions: int) -> np.ndarray:
    """Pass `actions` on as int64 if there are `n` in [0, n_actions): `ale_py` hangs for ever on others."""
    actions = np.asarray(actions)
    if actions.shape != (n,) or actions.dtype.kind not in "iu":
        raise InvalidInput(f"send needs {n} integer actions, got {actions.dtype} of shape {actions.shape}")
    if n and (actions.min() < 0 or actions.max() >= n_actions):
        raise InvalidInput(f"actions must be in 0..{n_actions - 1}, got {actions.min()}..{actions.max()}")
    return actions.astype(np.int64, copy=False)


def _vector_env(game: Game, n_envs: int, max_episode_frames: int | None) -> VectorEnv:
    """Make `n_envs` copies, by the environment's native vector form where it has one in NEXT_STEP mode.

    One that cannot be made as it is registered, say because it takes no limit of steps, or wrappers are registered with
    it, or it needs what is not installed, is left with a warning: copies of the single form play.
    """
    recipe = game.recipe
    assert recipe is not None
    name = recipe.id.rpartition(":")[2]
    if game.native and gymnasium.spec(name).vector_entry_point is not None and max_episode_frames is None:
        try:
            env = gymnasium.make_vec(name, n_envs, vectorization_mode="vector_entry_point")
        except Exception as err:  # noqa: BLE001  whatever the environment's code raises
            warnings.warn(f"{name} plays one by one: its vector form cannot be made ({first_line(err)})", stacklevel=2)
        else:
            if env.metadata.get("autoreset_mode") == AutoresetMode.NEXT_STEP:
                return env
            env.close()
    with all_or_none() as opened:
        return SyncVectorEnv(
            [lambda: _Untold(readable(opened(recipe.make(max_episode_frames)), recipe.id))] * n_envs,
            autoreset_mode=AutoresetMode.NEXT_STEP,
        )
