"""Games by their names, what a network must know of them, and the rules they are played by."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import ale_py.roms
import gymnasium
import numpy as np

from workbench.algos.rl.environment import Recipe, Wrapper, how_to_register, registered
from workbench.algos.rl.frames import SIDE, STACK
from workbench.algos.rl.playable import cutting_in, longest_of, readable
from workbench.core.errors import InvalidInput, unknown

RGB_PLANES = 3  # a frame in colour
ATARI_FRAMESKIP = 4  # emulator frames an agent step
ATARI_EPISODE_FRAMES = 108_000  # half an hour of play, the usual limit
_NOT_PLAYED = ("ale_py", "gymnasium.envs.mujoco")  # bare screens, and actions that are all continuous
NO_ARGUMENTS: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Game:
    """What a network and a recorder must know of a game.

    Attributes
    ----------
    name : str
        ROM name (``pong``) on Atari, Gymnasium id elsewhere, with its module if it was named with one.
    atari : bool
    obs_shape : tuple of int
        Of one observation: (4, 84, 84) on Atari, (12, 84, 84) in colour; elsewhere (features,), or the (channels,
        height, width) of a picture or a grid.
    obs_dtype : numpy.dtype
        uint8 on Atari and of pictures in bytes, float32 elsewhere.
    n_actions : int
    frames_per_step : int
        Emulator frames an agent step takes: 4 on Atari, 1 elsewhere.
    recipe : Recipe or None
        How the environment is made, where it is not Atari's.
    limit : int or None
        Steps after which that environment itself cuts an episode off.
    native : bool
        Whether its own vector form may stand for it: nothing is put around it.
    screen : tuple of int or None
        Height and width of an Atari game's screen, pixels.
    """

    name: str
    atari: bool
    obs_shape: tuple[int, ...]
    obs_dtype: np.dtype[Any]
    n_actions: int
    frames_per_step: int
    recipe: Recipe | None = None
    limit: int | None = None
    native: bool = False
    screen: tuple[int, int] | None = None

    def room(self, *shape: int) -> np.ndarray:
        """Make room for observations, (*shape, *obs_shape), of pictures with the channels last in memory.

        So layers read them fastest; NumPy and torch keep that order in what is copied, joined or chosen from it.
        """
        if len(self.obs_shape) != 3:
            return np.zeros((*shape, *self.obs_shape), self.obs_dtype)
        channels, height, width = self.obs_shape
        return np.moveaxis(np.zeros((*shape, height, width, channels), self.obs_dtype), -1, -3)


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
        return self.max_episode_frames or game.limit or ATARI_EPISODE_FRAMES


DEFAULT_RULES = Rules()


def find_game(
    name: str, rgb: bool = False, env_kwargs: Mapping[str, Any] = NO_ARGUMENTS, wrappers: Sequence[Wrapper] = ()
) -> Game:
    """Look a game up: ``Pong``, ``pong``, ``ALE/Pong-v5``, or a Gymnasium id: ``CartPole-v1``, ``my_module:Env-v0``.

    With `rgb`, an Atari game shows its colours: three planes a frame instead of one. `env_kwargs` and `wrappers` are of
    Gymnasium environments: see `Recipe`.

    Raises
    ------
    InvalidInput
        The game is not known or cannot be made, or its actions are not discrete, or no network can read it. Or it is an
        Atari game by Gymnasium's older names, ``PongNoFrameskip-v4``, whose frames nothing stacks. Or a wrapper cuts
        games into lives, or clips their rewards.
    """
    if not isinstance(name, str):
        raise InvalidInput(f"a game goes by its name, got {name!r}: gymnasium.register('Mine-v0', MyEnv) gives it one")
    if (":" in name or not name.startswith("ALE/")) and registered(name):
        return _gymnasium_game(Recipe(name, env_kwargs, wrappers))
    roms = {_folded(rom): rom for rom in ale_py.roms.get_all_rom_ids()}
    rom = roms.get(_folded(name.removeprefix("ALE/").removesuffix("-v5")))
    if rom is None:
        raise _unknown_game(name, roms.values())
    if env_kwargs or wrappers:
        raise InvalidInput(
            f"{name} is played by ale_py's own threads, which take no env_kwargs and no wrappers: leave them out, or "
            f"tune it by SB3, SB3('PPO', 'ALE/{''.join(part.title() for part in rom.split('_'))}-v5', …)"
        )
    return _atari_game(rom, rgb)


def _unknown_game(name: str, roms: Iterable[str]) -> InvalidInput:
    if ":" in name:
        return InvalidInput(how_to_register(name))
    others = [i for i, spec in gymnasium.registry.items() if not str(spec.entry_point).startswith(_NOT_PLAYED)]
    said = unknown("game", name, [*roms, *(i for i in others if "/" not in i)])
    return InvalidInput(f"{said}; {how_to_register(name)}")


@cache  # a fifth of a second otherwise, for all settings and trials that are made
def _atari_game(rom: str, rgb: bool) -> Game:
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)  # no banner on every worker
    ale = ale_py.ALEInterface()
    ale.loadROM(ale_py.roms.get_rom_path(rom))
    shape = (STACK * (RGB_PLANES if rgb else 1), SIDE, SIDE)
    n_actions, screen = len(ale.getMinimalActionSet()), tuple(ale.getScreenDims())
    return Game(rom, True, shape, np.dtype(np.uint8), n_actions, ATARI_FRAMESKIP, screen=screen)


def _folded(name: str) -> str:
    """Reduce a game's name to its letters and digits, so that ``MsPacman`` and ``ms_pacman`` meet."""
    return "".join(c for c in name.lower() if c.isalnum())


def _is_bare_atari(name: str) -> bool:
    """Tell whether an id is one of those by which Gymnasium itself steps Atari's games, ``PongNoFrameskip-v4``."""
    return str(gymnasium.registry[name].entry_point).startswith("ale_py")


def _gymnasium_game(recipe: Recipe) -> Game:
    """Make an environment once to read its spaces; refuse what the networks here cannot play."""
    plain = recipe.make()
    try:
        if (one := cutting_in(plain)) is not None:
            raise InvalidInput(
                f"scores are of whole games and raw rewards, and the wrapper {type(one).__name__} of {recipe.id} lets "
                "none through: leave it out (of AtariWrapper by clip_reward=False, terminal_on_life_loss=False; "
                "clip_rewards=True trains on clipped rewards), or tune it by SB3, which counts beneath it"
            )
        screen = plain.observation_space.shape or ()
        if _is_bare_atari(recipe.id.rpartition(":")[2]) and not recipe.wrappers and len(screen) > 1:
            raise InvalidInput(
                f"{recipe.id} shows Atari's bare screens, {screen} each and none before it, from which nobody learns: "
                "name the game alone, as in 'Pong', or put wrappers around it that shrink and stack its frames"
            )
        env = readable(plain, recipe.id)
        actions, obs = env.action_space, env.observation_space
        assert isinstance(actions, gymnasium.spaces.Discrete)
        assert obs.shape is not None
        picture = len(obs.shape) == 3 and obs.dtype == np.uint8
        dtype = np.dtype(np.uint8 if picture else np.float32)
        native = env is plain and not recipe.kwargs and not recipe.wrappers
        return Game(recipe.id, False, obs.shape, dtype, int(actions.n), 1, recipe, longest_of(env), native)
    finally:
        plain.close()
