"""Environments behind one interface: Atari's own threads, or any discrete-action Gymnasium environment.

An `Agents` batch is asked and answered in turn: `recv` hands out observations of the agents that are
ready, `send` gives those same agents an action each. On Atari the agents that are not in the batch keep
playing meanwhile, in C++ threads.

Resets
------
Every environment here runs in Gymnasium's NEXT_STEP mode: the step that ends an episode returns the
episode's true last observation (what a truncated episode bootstraps from); the next step ignores its action,
resets, and returns the first observation of the next episode with a void reward. `Step.started` marks
those, so a reader never has to know: where it is set there is an observation, and no transition before it.
"""

import os
from dataclasses import dataclass
from typing import Any, Protocol

import ale_py.roms
import gymnasium
import numpy as np
from ale_py.vector_env import AtariVectorEnv
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from workbench.core.errors import InvalidInput, unknown

ATARI_STACK = 4  # frames an observation shows
ATARI_SIDE = 84  # pixels
RGB_PLANES = 3  # a frame in colour
ATARI_FRAMESKIP = 4  # emulator frames an agent step
ATARI_EPISODE_FRAMES = 108_000  # half an hour of play, the usual limit


@dataclass(frozen=True, slots=True)
class Game:
    """What a network and a recorder must know of a game.

    Attributes
    ----------
    name : str
        ROM name (``pong``) on Atari, Gymnasium id elsewhere.
    atari : bool
    obs_shape : tuple of int
        Of one observation: (4, 84, 84) on Atari, (12, 84, 84) in colour, (features,) elsewhere.
    obs_dtype : numpy.dtype
        uint8 on Atari, float32 elsewhere.
    n_actions : int
    frames_per_step : int
        Emulator frames an agent step takes: 4 on Atari, 1 elsewhere.
    """

    name: str
    atari: bool
    obs_shape: tuple[int, ...]
    obs_dtype: np.dtype[Any]
    n_actions: int
    frames_per_step: int


@dataclass(frozen=True, slots=True)
class Step:
    """What `Agents.recv` hands out, for the B agents that are ready.

    Attributes
    ----------
    env_ids : ndarray of int, (B,)
    obs : ndarray, (B, *obs_shape)
        Owned by the receiver; never written again by the environment.
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


@dataclass(frozen=True, slots=True)
class Rules:
    """How a game begins, is played, and is cut off; an agent is evaluated by the rules it was trained by.

    Attributes
    ----------
    noop_max : int
        Most random no-op actions at an episode's start, Atari only.
    max_episode_frames : int or None
        Where episodes are truncated; by default at 108 000 frames on Atari, at the environment's own limit elsewhere.
    repeat_action_probability : float
        Of the emulator repeating the last action instead ("sticky actions"), Atari only.
    fire_on_reset : bool
        Press FIRE when an episode starts, Atari only.
    """

    noop_max: int = 30
    max_episode_frames: int | None = None
    repeat_action_probability: float = 0.0
    fire_on_reset: bool = False

    def longest(self, game: Game) -> int:
        """Return the frames of the longest game there can be, or of Atari's where there is no limit."""
        spec_limit = None if game.atari else gymnasium.spec(game.name).max_episode_steps
        return self.max_episode_frames or spec_limit or ATARI_EPISODE_FRAMES


DEFAULT_RULES = Rules()


class Agents(Protocol):
    """A batch of environments, asked and answered in turn."""

    game: Game
    n_envs: int

    def recv(self) -> Step:
        """Wait for the next observations; call in turn with `send`, beginning here."""

    def send(self, actions: np.ndarray) -> None:
        """Give the agents of the last `recv` an action each, (B,) ints."""

    def close(self) -> None:
        """Stop threads and free the emulators. Safe to call twice."""


def find_game(name: str, rgb: bool = False) -> Game:
    """Look a game up: ``Pong``, ``pong``, ``ALE/Pong-v5``, or a Gymnasium id such as ``CartPole-v1``.

    With `rgb`, an Atari game shows its colours: three planes a frame instead of one.

    Raises
    ------
    InvalidInput
        The game is not known, or its actions are not discrete, or its observations are no plain vector.
    """
    if name in gymnasium.registry and not name.startswith("ALE/"):
        return _gymnasium_game(name)
    roms = {_folded(rom): rom for rom in ale_py.roms.get_all_rom_ids()}
    rom = roms.get(_folded(name.removeprefix("ALE/").removesuffix("-v5")))
    if rom is None:
        raise unknown("game", name, [*roms.values(), *(i for i in gymnasium.registry if "/" not in i)])
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)  # no banner on every worker
    ale = ale_py.ALEInterface()
    ale.loadROM(ale_py.roms.get_rom_path(rom))
    shape = (ATARI_STACK * (RGB_PLANES if rgb else 1), ATARI_SIDE, ATARI_SIDE)
    return Game(rom, True, shape, np.dtype(np.uint8), len(ale.getMinimalActionSet()), ATARI_FRAMESKIP)


def make_agents(
    game: Game,
    n_envs: int,
    seed: int,
    rules: Rules = DEFAULT_RULES,
    *,
    batch_size: int | None = None,
    n_threads: int | None = None,
) -> Agents:
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
        return GymnasiumAgents(game, n_envs, seed, rules.max_episode_frames)
    env = AtariVectorEnv(
        game.name,
        n_envs,
        batch_size=batch_size or n_envs,
        num_threads=min(n_envs, n_threads or available_cores()),
        max_num_frames_per_episode=rules.longest(game),
        repeat_action_probability=rules.repeat_action_probability,
        autoreset_mode=AutoresetMode.NEXT_STEP,
        img_height=ATARI_SIDE,
        img_width=ATARI_SIDE,
        grayscale=game.obs_shape[0] == ATARI_STACK,
        stack_num=ATARI_STACK,
        frameskip=ATARI_FRAMESKIP,
        noop_max=rules.noop_max,
        episodic_life=False,
        reward_clipping=False,  # the score needs raw rewards; training clips its own copy
        use_fire_reset=rules.fire_on_reset,
    )
    return AtariAgents(game, env, seed)


class AtariAgents:
    """Atari games stepped by `ale_py` in C++ threads; batches may hold only the agents that are ready."""

    def __init__(self, game: Game, env: AtariVectorEnv, seed: int) -> None:
        self.game, self.n_envs = game, env.num_envs
        self._env: AtariVectorEnv | None = env
        self._fresh = np.ones(self.n_envs, bool)  # the next observation is the first of an episode
        seeds = np.random.SeedSequence(seed).generate_state(self.n_envs) >> 1
        obs, info = env.reset(seed=seeds.astype(np.int64))
        size = len(obs)
        no = np.zeros(size, bool)
        self._first: tuple[Any, ...] | None = (obs, np.zeros(size, np.int32), no, no, info)
        self._size = size

    def recv(self) -> Step:
        """Wait for the next observations, without holding the interpreter's lock."""
        if self._env is None:
            raise RuntimeError("these environments are closed")
        if self._first is not None:
            (obs, rewards, terminated, truncated, info), self._first = self._first, None
        else:
            obs, rewards, terminated, truncated, info = self._env.recv()
        ids = info["env_id"]
        started = self._fresh[ids]
        self._fresh[ids] = (terminated | truncated) & ~started
        self._size = len(ids)
        if obs.ndim == 5:  # in colour: (B, stack, side, side, 3)
            obs = np.ascontiguousarray(obs.transpose(0, 1, 4, 2, 3)).reshape(len(ids), *self.game.obs_shape)
        return Step(ids, obs, rewards.astype(np.float32), terminated, truncated, started)

    def send(self, actions: np.ndarray) -> None:
        """Give the agents of the last `recv` an action each; they play on in the background."""
        if self._env is None:
            raise RuntimeError("these environments are closed")
        self._env.send(checked_actions(actions, self._size, self.game.n_actions))

    def close(self) -> None:
        """Stop the emulator's threads and free it."""
        self._env = self._first = None


class GymnasiumAgents:
    """Any discrete-action Gymnasium environment, stepped in the caller's thread when it calls `recv`."""

    def __init__(self, game: Game, n_envs: int, seed: int, max_episode_frames: int | None) -> None:
        self.game, self.n_envs = game, n_envs
        self._env: VectorEnv | None = _vector_env(game.name, n_envs, max_episode_frames)
        self._fresh = np.ones(n_envs, bool)
        self._ids = np.arange(n_envs)
        self._actions: np.ndarray | None = None
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
            obs, rewards, terminated, truncated, _ = self._env.step(self._actions)
        started = self._fresh
        self._fresh = (terminated | truncated) & ~started
        obs = np.asarray(obs, self.game.obs_dtype)
        return Step(self._ids, obs, np.asarray(rewards, np.float32), terminated, truncated, started)

    def send(self, actions: np.ndarray) -> None:
        """Keep the actions for the next `recv`."""
        self._actions = checked_actions(actions, self.n_envs, self.game.n_actions)

    def close(self) -> None:
        """Close the environments."""
        if self._env is not None:
            self._env.close()
        self._env = None


def checked_actions(actions: np.ndarray, n: int, n_actions: int) -> np.ndarray:
    """Pass `actions` on as int64 if there are `n` in [0, n_actions): `ale_py` hangs for ever on others."""
    actions = np.asarray(actions)
    if actions.shape != (n,) or actions.dtype.kind not in "iu":
        raise InvalidInput(f"send needs {n} integer actions, got {actions.dtype} of shape {actions.shape}")
    if n and (actions.min() < 0 or actions.max() >= n_actions):
        raise InvalidInput(f"actions must be in 0..{n_actions - 1}, got {actions.min()}..{actions.max()}")
    return actions.astype(np.int64, copy=False)


def available_cores() -> int:
    """Count the cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _folded(name: str) -> str:
    """Reduce a game's name to its letters and digits, so that ``MsPacman`` and ``ms_pacman`` meet."""
    return "".join(c for c in name.lower() if c.isalnum())


def _gymnasium_game(name: str) -> Game:
    """Read the spaces of a Gymnasium environment and refuse what the networks here cannot play."""
    env = gymnasium.make(name)
    actions, obs = env.action_space, env.observation_space
    env.close()
    if not isinstance(actions, gymnasium.spaces.Discrete) or actions.start != 0:
        raise InvalidInput(
            f"{name} has actions {actions}, discrete ones counted from 0 are needed: choose another game"
        )
    if not isinstance(obs, gymnasium.spaces.Box) or len(obs.shape) != 1:
        raise InvalidInput(f"{name} has observations {obs}, a vector (Box of one dimension) is needed: wrap it first")
    return Game(name, False, obs.shape, np.dtype(np.float32), int(actions.n), 1)


def _vector_env(name: str, n_envs: int, max_episode_frames: int | None) -> VectorEnv:
    """Make `n_envs` copies, by the environment's native vector form where it has one in NEXT_STEP mode."""
    if gymnasium.spec(name).vector_entry_point is not None and max_episode_frames is None:
        env = gymnasium.make_vec(name, n_envs, vectorization_mode="vector_entry_point")
        if env.metadata.get("autoreset_mode") == AutoresetMode.NEXT_STEP:
            return env
        env.close()
    return SyncVectorEnv(
        [lambda: gymnasium.make(name, max_episode_steps=max_episode_frames)] * n_envs,
        autoreset_mode=AutoresetMode.NEXT_STEP,
    )
