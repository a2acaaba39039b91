"""What of an environment can be played: its wrappers, what it shows and takes, and by whom.

Networks here read one array and play discrete actions counted from 0; Stable-Baselines3 reads and plays more.
"""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import FlattenObservation, TimeLimit, TransformAction, TransformObservation

from workbench.core.errors import InvalidInput, WorkbenchError
from workbench.core.failures import place_of, short
from workbench.core.measured import one_line

_RUNNING = ("obs_rms", "return_rms")  # of NormalizeObservation and NormalizeReward, and of those made after them
_CUTTING = {"EpisodicLifeEnv", "ClipRewardEnv", "ClipReward"}  # SB3's, which need not be installed, and Gymnasium's

SMALLEST_PICTURE = 20  # pixels a side: below, an array is a grid of things, and needs no stride
SMALLEST_GRID = 5  # cells a side: two convolutions of 3 × 3 leave one


def wrappers_of(env: gymnasium.Env) -> Iterator[gymnasium.Wrapper]:
    """Give the wrappers around an environment, the outermost first."""
    while isinstance(env, gymnasium.Wrapper):
        yield env
        env = env.env


def longest_of(env: gymnasium.Env) -> int | None:
    """Return the steps after which an environment, or a wrapper around it, cuts an episode off."""
    return min((one._max_episode_steps for one in wrappers_of(env) if isinstance(one, TimeLimit)), default=None)


def cutting_in(env: gymnasium.Env) -> gymnasium.Wrapper | None:
    """Find the innermost wrapper that cuts games into lives or clips rewards: scores are of what is beneath it."""
    return next(
        (one for one in reversed([*wrappers_of(env)]) if _CUTTING & {c.__name__ for c in type(one).__mro__}), None
    )


def refuse_wrappers(env: gymnasium.Env, name: str) -> None:
    """Refuse those by which an agent sees one thing in training and another once loaded, or nobody can count games."""
    for one in wrappers_of(env):
        if vars(one).get("terminal_on_life_loss"):  # Gymnasium's AtariPreprocessing: beneath it frames are not skipped
            raise InvalidInput(
                f"the wrapper {type(one).__name__} of environment {name} ends games by lives: leave out its "
                "terminal_on_life_loss; under SB3, its EpisodicLifeEnv may stand around it"
            )
        running = getattr(one, "update_running_mean", True)
        if running and not vars(one).keys().isdisjoint(_RUNNING):
            raise InvalidInput(
                f"the wrapper {type(one).__name__} of environment {name} keeps running means, which would be in no "
                "checkpoint: use SB3(…, normalize=True), whose are, or a wrapper of fixed numbers"
            )


def check_finite(name: str, what: str, given: np.ndarray) -> None:
    """Refuse what an environment gives if it is no number: it would be told of training as if that had diverged.

    Raises
    ------
    InvalidInput
        It is NaN or infinite, or too large for float32, by which agents learn.
    """
    if given.dtype.kind != "f":
        return
    with np.errstate(over="ignore"):
        learned = np.asarray(given, np.float32)
    if not np.isfinite(learned).all():
        raise InvalidInput(
            f"{name} has given {what} that is NaN or infinite, or too large for float32: mend its step() or reset(), "
            "no agent can learn from it"
        )


@contextmanager
def by_the_interface(name: str) -> Iterator[None]:
    """Say what an environment is to give where what it gives cannot be taken; errors of its own code stay as they are.

    Raises
    ------
    InvalidInput
        As older versions of Gym it gives fewer things, or its observations are not of its space, or a whole number is
        beyond any float.
    """
    try:
        yield
    except (TypeError, ValueError, LookupError, OverflowError, AssertionError) as err:
        if isinstance(err, WorkbenchError) or place_of(err) or (type(err) is AssertionError and not _of_a_form(err)):
            raise
        raise InvalidInput(
            f"what {name} gives cannot be taken ({one_line(err)}): reset() gives (obs, info), step() (obs, reward, "
            "terminated, truncated, info), obs as its observation_space says; gymnasium.utils.env_checker.check_env "
            "tells more"
        ) from None


def _of_a_form(err: AssertionError) -> bool:
    """Tell whether Gymnasium asserts it: a wrapper from elsewhere asserts what it likes, such as a package."""
    *_, (frame, _) = traceback.walk_tb(err.__traceback__)
    return str(frame.f_globals.get("__name__")).partition(".")[0] == "gymnasium"


def readable(env: gymnasium.Env, name: str) -> gymnasium.Env:
    """Wrap an environment, asked for by this name, with Gymnasium's own wrappers so that the networks here can play it.

    Observations become a vector, or a picture or grid with its channels first; actions are counted from 0. An
    environment that needs nothing comes back as it is.

    Raises
    ------
    InvalidInput
        Its actions are not discrete, or its observations cannot be flattened.
    """
    actions, space = env.action_space, env.observation_space
    if not isinstance(actions, spaces.Discrete):
        raise InvalidInput(
            f"{name} has actions {short(actions)}, discrete ones are needed here: "
            + (f"tune it by SB3, SB3('PPO', {name!r}), or " if sb3_plays(actions) else "")
            + "make them discrete by a wrapper, wrappers=['my_module:MyWrapper']"
        )
    env = counted_from_zero(env)
    if isinstance(space, spaces.Box) and len(space.shape) == 1:
        return env
    if isinstance(space, spaces.Box) and (channels := _channel_axis(space)) is not None:
        return _channels_first(env, space, channels)
    with suppress(NotImplementedError):
        env = FlattenObservation(env)
    flat = env.observation_space
    if not isinstance(flat, spaces.Box) or len(flat.shape) != 1:
        raise InvalidInput(
            f"{name} has observations {space}, which Gymnasium cannot flatten into a vector: put a wrapper around it "
            "that does, wrappers=['my_module:MyWrapper']"
        )
    return env


def sb3_plays(actions: spaces.Space[Any]) -> bool:
    """Tell whether there is an algorithm of SB3's for such actions: it plays a Box by floats, and one row of others."""
    match actions:
        case spaces.Box():
            return actions.dtype.kind == "f"
        case spaces.MultiDiscrete() | spaces.MultiBinary():
            return len(actions.shape) == 1
    return isinstance(actions, spaces.Discrete)


def counted_from_zero(env: gymnasium.Env) -> gymnasium.Env:
    """Wrap an environment whose actions are counted from another number, so that 0 is the first of them.

    So is one that takes whole numbers of another kind than those given to it: its space does not contain larger ones.
    One that needs nothing comes back as it is.
    """
    actions = env.action_space
    match actions:
        case spaces.Discrete():
            counted: spaces.Space[Any] = spaces.Discrete(int(actions.n))
        case spaces.MultiDiscrete():
            counted = spaces.MultiDiscrete(actions.nvec)
        case _:
            return env
    first, kind = actions.start, actions.dtype
    if not np.any(first) and kind == counted.dtype:
        return env
    return TransformAction(env, lambda action: (action + first).astype(kind), counted)


def _channel_axis(space: spaces.Box) -> int | None:
    """Tell which axis of a picture or a grid counts its channels: -1 where there is none; `None` if it is neither.

    Beside two of one length that are neighbours it is the third: a grid may have more channels than cells a side.
    """
    shape = space.shape
    if len(shape) == 2:
        return -1 if space.dtype == np.uint8 and min(shape) >= SMALLEST_PICTURE else None
    if len(shape) != 3:
        return None
    first, middle, last = shape
    axis = 0 if first != middle and (middle == last or first < last) else 2
    return axis if min(shape[:axis] + shape[axis + 1 :]) >= SMALLEST_GRID else None


def _channels_first(env: gymnasium.Env, space: spaces.Box, axis: int) -> gymnasium.Env:
    if axis == 0:
        return env

    def turned(obs: Any) -> np.ndarray:
        return np.asarray(obs)[None] if axis < 0 else np.moveaxis(np.asarray(obs), axis, 0)

    return TransformObservation(env, turned, spaces.Box(turned(space.low), turned(space.high), dtype=space.dtype.type))
