"""A model of Stable-Baselines3 and its environments, made; what SB3 refuses is one line."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize

from workbench.algos.rl.device import torch_device
from workbench.algos.rl.environment import Opened, all_or_none
from workbench.algos.rl.episodes import Episodes
from workbench.algos.rl.playable import by_the_interface, check_finite, counted_from_zero, cutting_in, sb3_plays
from workbench.algos.rl.sb3.settings import SB3Settings, algorithm_class
from workbench.core.errors import InvalidInput, WorkbenchError
from workbench.core.failures import short
from workbench.core.measured import one_line
from workbench.core.showing import so_many

_FLATTEN = "put wrappers=['gymnasium.wrappers:FlattenObservation'] around it, which makes a vector of them"
_YOUR_OWN = "put a wrapper around it that makes a vector of them, wrappers=['my_module:MyWrapper']"
_READ = "Box of one axis at least, MultiBinary, and Discrete and MultiDiscrete of one axis that are counted from 0"
_CONVOLVE, _PIXELS = ("Cnn", "MultiInput"), 36  # the policies whose network for pictures it is, and its least side
_DIVIDE_BY_DEVIATION = ("A2C", "MaskablePPO", "RecurrentPPO")  # also one alone; SB3's PPO does not, TRPO refuses it


class Counted(gymnasium.Wrapper):
    """Counts raw returns of whole games into `episodes`; refuses what is no number, in the environment's name."""

    def __init__(self, env: gymnasium.Env, episodes: Episodes, name: str) -> None:
        super().__init__(env)
        self._episodes, self._name = episodes, name

    def reset(self, **settings: Any) -> Any:
        """Begin a game; one that had not ended does not count."""
        self._total, self._steps = 0.0, 0
        with by_the_interface(self._name):
            obs, info = self.env.reset(**settings)
            self._check(obs)
        return obs, info

    def step(self, action: Any) -> Any:
        """Play on."""
        with by_the_interface(self._name):
            obs, reward, terminated, truncated, info = self.env.step(action)
            self._check(obs)
            check_finite(self._name, "a reward", np.asarray(reward))
            self._total += float(reward)
        self._steps += 1
        if terminated or truncated:
            self._episodes.merge([self._total], [self._steps])
        return obs, reward, terminated, truncated, info

    def _check(self, obs: Any) -> None:
        space = self.observation_space
        if isinstance(space, spaces.Box) and np.shape(obs) != space.shape:
            raise ValueError(f"an observation of shape {np.shape(obs)}, of {space}")
        if isinstance(space, spaces.Dict) and not (isinstance(obs, Mapping) and space.keys() <= obs.keys()):
            raise ValueError(f"an observation {short(obs)}, of {space}")
        parts = (
            [(inner, obs[key]) for key, inner in space.items()] if isinstance(space, spaces.Dict) else [(space, obs)]
        )
        for inner, part in parts:
            if not _within(part, inner):
                raise ValueError(f"an observation {short(part)}, of {inner}")
            if isinstance(part, np.ndarray):
                check_finite(self._name, "an observation", part)


def _within(shown: Any, space: spaces.Space[Any]) -> bool:
    """Tell whether numbers are those of a space that counts them: SB3 encodes another as any of these, or fails."""
    match space:
        case spaces.Discrete():
            first, n = space.start, space.n
        case spaces.MultiDiscrete():
            first, n = space.start, space.nvec
        case spaces.MultiBinary():
            first, n = 0, 2
        case _:
            return True
    numbers = np.asarray(shown) - first
    return bool(((numbers >= 0) & (numbers < n)).all())


def counted(env: gymnasium.Env, episodes: Episodes, name: str) -> gymnasium.Env:
    """Count an environment's games into `episodes`, within what cuts them into lives and clips their rewards."""
    if (above := cutting_in(env)) is None:
        return Counted(env, episodes, name)
    above.env = Counted(above.env, episodes, name)
    return env


def make_environments(settings: SB3Settings, episodes: Episodes) -> VecEnv:
    """Make the environments of a trial, whose games are counted into `episodes`."""
    with _readable(settings), all_or_none() as opened:
        env: VecEnv = DummyVecEnv([lambda: _game(settings, episodes, opened)] * settings.n_envs)
        if settings.normalize:
            env = VecNormalize(env, gamma=settings.hyperparameters.get("gamma", 0.99))
        return env


def _game(settings: SB3Settings, episodes: Episodes, opened: Opened) -> gymnasium.Env:
    """Make one environment; SB3 counts actions from 0, and asks no space where it begins."""
    env = counted(opened(settings.recipe.make()), episodes, settings.env)
    _refuse_spaces(settings, env)
    return counted_from_zero(env)


def _refuse_spaces(settings: SB3Settings, env: gymnasium.Env) -> None:
    """Refuse what SB3 cannot read or play, by the space: of some it tells late, in words that help nobody, or never."""
    shown, actions = env.observation_space, env.action_space
    parts = shown.values() if isinstance(shown, spaces.Dict) else [shown]
    wrong = next((part for part in parts if not _encoded(part, settings.normalize)), None)
    if wrong is not None:
        kinds = "Box with normalize=True" if settings.normalize else _READ
        flat = shown.is_np_flattenable and spaces.flatdim(shown)
        raise InvalidInput(
            f"{settings.algorithm} cannot play {settings.env}: it shows {short(wrong)}"
            f"{'' if wrong is shown else ' within a Dict'}, and SB3 reads {kinds}, alone or in a Dict: "
            f"{_FLATTEN if flat else _YOUR_OWN}"
        )
    if not sb3_plays(actions):
        raise InvalidInput(
            f"{settings.algorithm} cannot play {settings.env}: it has actions {short(actions)}, and SB3 plays Box of "
            "floats, Discrete, and MultiDiscrete or MultiBinary of one axis: make one of these of them by a wrapper, "
            "wrappers=['my_module:MyWrapper']"
        )


def _encoded(space: spaces.Space[Any], normalize: bool) -> bool:
    """Tell whether SB3 encodes what a space shows; its running means are of Box alone, and numbers begin at 0."""
    match space:
        case spaces.Box():
            return bool(space.shape) and 0 not in space.shape
        case spaces.Discrete():
            return not normalize and space.start == 0
        case spaces.MultiDiscrete():
            return not normalize and space.nvec.ndim == 1 and not space.start.any()
    return not normalize and isinstance(space, spaces.MultiBinary)


def make_model(settings: SB3Settings, env: VecEnv, seed: int, **given: Any) -> BaseAlgorithm:
    """Make the model; what SB3 refuses is one line."""
    algorithm = algorithm_class(settings.algorithm)
    arguments = settings.arguments()
    noise = arguments.get("action_noise")
    if isinstance(noise, int | float):
        shape = env.action_space.shape or ()
        arguments["action_noise"] = NormalActionNoise(np.zeros(shape), np.full(shape, float(noise)))
    with _readable(settings):
        device = torch_device(settings.device)
        policy = settings.policy or _fitting_policy(algorithm, env)
        if policy.startswith(_CONVOLVE) and "features_extractor_class" not in arguments.get("policy_kwargs", {}):
            _refuse_small_pictures(settings, env.observation_space)
        made: BaseAlgorithm = algorithm(policy, env, seed=seed, device=device, verbose=0, **arguments, **given)
    _refuse_lone_advantages(settings, made)
    return made


def _refuse_small_pictures(settings: SB3Settings, shown: spaces.Space[Any]) -> None:
    """Refuse pictures that SB3's convolutions do not fit into: it would as a trial builds its network, no sooner."""
    for part in shown.values() if isinstance(shown, spaces.Dict) else [shown]:
        if is_image_space(part) and sorted(part.shape or ())[-2] < _PIXELS:  # the channels are the least, or too many
            raise InvalidInput(
                f"{settings.algorithm} cannot play {settings.env}: it shows pictures of shape {part.shape}, and SB3's "
                f"network for pictures reads {_PIXELS} pixels a side at least: {_FLATTEN}, or one that enlarges them, "
                "or bring a network for them, policy_kwargs={'features_extractor_class': 'my_module:Extractor'}"
            )


def _refuse_lone_advantages(settings: SB3Settings, model: Any) -> None:
    """Refuse batches of one experience where advantages are divided by their deviation, which one alone has not."""
    if settings.algorithm not in _DIVIDE_BY_DEVIATION or not model.normalize_advantage:
        return
    played = model.n_steps * settings.n_envs
    batch = getattr(model, "batch_size", played)
    if (played % batch or min(batch, played)) == 1:
        raise InvalidInput(
            f"{settings.algorithm} divides advantages by their deviation within a batch, and of "
            f"{so_many(played, 'experience')} (n_steps × n_envs) in batches of {batch} one stands alone, which has "
            "none: choose other sizes, or normalize_advantage=False"
        )


def _fitting_policy(algorithm: Any, env: VecEnv) -> str:
    """Name the policy that reads an environment's observations."""
    space = env.observation_space
    start = "MultiInput" if isinstance(space, spaces.Dict) else "Cnn" if is_image_space(space) else "Mlp"
    names: list[str] = list(algorithm.policy_aliases)
    fitting = [name for name in names if name.startswith(start)]
    if not fitting:
        told = f"{algorithm.__name__} has no policy that reads {short(space)}, only {', '.join(names)}"
        raise InvalidInput(f"{told}: {_FLATTEN}")
    return fitting[0]


@contextmanager
def _readable(settings: SB3Settings) -> Generator[None, None, None]:
    """Say in one line what SB3 refuses, and of which algorithm and environment."""
    try:
        yield
    except WorkbenchError:
        raise
    except (AssertionError, ValueError, TypeError, NotImplementedError, KeyError, RuntimeError, AttributeError) as err:
        why = one_line(err)
        raise InvalidInput(f"{settings.algorithm} cannot play {settings.env} with these settings: {why}") from None
