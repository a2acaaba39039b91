"""Checkpoint directories: read safely, told apart, and turned back into an agent that can play."""

import json
import pickle
from pathlib import Path
from typing import Any, NamedTuple

import torch

from workbench.algos.rl.environment import registered
from workbench.algos.rl.games import Game, Rules, find_game
from workbench.algos.rl.model import ActorCritic, make_model, network_name, networks_of, reads_rgb
from workbench.core.errors import InvalidInput, first_line
from workbench.core.imports import modules_to_import

CHECKPOINT = "trial.pt"


def read_checkpoint(path: str | Path, device: str | torch.device = "cpu") -> dict[str, Any]:
    """Read what `Trial.save` wrote into a directory, or what a trial around one, of `Replay` say, put below it.

    Returns
    -------
    dict
        ``model`` and ``optimizer``: tensors on `device`; ``counters``: the rest, as plain data.

    Raises
    ------
    InvalidInput
        There is no checkpoint, or there are several, or it cannot be read.
    """
    file = _file_in(Path(path))
    if not file.is_file():
        raise InvalidInput(f"there is no checkpoint in {path}: expected a directory with a file {CHECKPOINT}")
    try:
        state: dict[str, Any] = torch.load(file, map_location=device, weights_only=True)
        if "parameters" in state:
            raise InvalidInput(
                f"the checkpoint {file} is of Stable-Baselines3: its own trial loads it, trial.load(path), and "
                "trial.model plays"
            )
        counters = {**json.loads(state["counters"]), **state.get("recipe", {})}  # until 0.2 among the counters
        _check(state, counters)
        return state | {"counters": counters}
    except InvalidInput:
        raise
    except (
        OSError,
        RuntimeError,
        EOFError,
        AttributeError,
        KeyError,
        TypeError,
        ValueError,
        pickle.UnpicklingError,
    ) as err:
        raise InvalidInput(f"the checkpoint {file} cannot be read, it may be cut short: {first_line(err)}") from None


def _file_in(path: Path) -> Path:
    """Name the file of the agent in a directory or, where none lies there, of the one in a directory below."""
    below = sorted(path.glob(f"*/{CHECKPOINT}"))
    if (file := path / CHECKPOINT).is_file() or not below:
        return file
    if len(below) > 1:
        names = [one.parent.name for one in below]
        raise InvalidInput(
            f"{path} holds {len(below)} agents, {', '.join(names[:5])}{', …' if names[5:] else ''}: name the directory "
            f"of one, such as {below[0].parent}"
        )
    return below[0]


_COUNTERS = {
    "game": str, "network": str, "rules": dict, "seed": int, "steps": int, "began_at": int, "updates": int,
    "episodes": dict, "generators": list, "kept": dict,
}  # fmt: skip


def _check(state: dict[str, Any], counters: dict[str, Any]) -> None:
    """Raise `TypeError` for what no trial saves."""
    odd = [name for name, kind in _COUNTERS.items() if type(counters.get(name)) is not kind]
    if not odd and not _are_episodes(counters["episodes"]):
        odd.append("episodes")
    if not all(isinstance(tensor, torch.Tensor) for tensor in state["model"].values()):
        odd.append("model")
    if odd:
        raise TypeError(f"{odd[0]} is not as a trial saves it")


def _are_episodes(saved: dict[str, Any]) -> bool:
    lists = [saved.get(name) for name in ("returns", "lengths")]
    return type(saved.get("finished")) is int and all(
        type(found) is list and all(type(number) in (int, float) for number in found) for found in lists
    )


def holds_statistics(path: str | Path, name: str) -> bool:
    """Tell whether a checkpoint has an optimiser's statistics of this name; one that cannot be read has none."""
    try:
        return name in read_checkpoint(path)["optimizer"]
    except (InvalidInput, KeyError):
        return False


def load_weights(model: ActorCritic, state: dict[str, Any], wanted: str, path: str | Path) -> None:
    """Copy a checkpoint's weights into `model`, or say whose they are.

    Parameters
    ----------
    model : ActorCritic
    state : dict
        From `read_checkpoint`.
    wanted, path : str
        The model in words, and the checkpoint, for the error.
    """
    shapes = {name: tensor.shape for name, tensor in state["model"].items()}
    if shapes != {name: tensor.shape for name, tensor in model.state_dict().items()}:
        counters, head = state["counters"], state["model"].get("head.weight")
        actions = "" if head is None else f", {len(head) - 1} actions"
        raise InvalidInput(
            f"the checkpoint in {path} is of another network: it holds {counters['network']} for {counters['game']}"
            f"{actions}; this one is {wanted}, {len(model.head.weight) - 1} actions. Pass the game and the network it "
            "was trained with"
        )
    model.load_state_dict(state["model"])


def check_fits(path: str | Path, game: Game, network: str) -> None:
    """Refuse a checkpoint whose weights a network for a game cannot take; of one that is not here nothing is said.

    Raises
    ------
    InvalidInput
        It is of another network, or of a game with other observations or actions; or it cannot be read.
    """
    if not _file_in(Path(path)).is_file():
        return
    state, wanted = read_checkpoint(path), network_name(game, network)
    if (state["counters"]["game"], state["counters"]["network"]) != (game.name, wanted):
        load_weights(make_model(game, wanted), state, f"{wanted} for {game.name}", path)


class Agent(NamedTuple):
    """What can play: weights, the game they are of, and the rules they were trained by."""

    model: ActorCritic
    game: Game
    rules: Rules


def load_agent(path: str | Path, game: str | Game | None = None) -> Agent:
    """Build the network of a checkpoint, with its weights.

    Parameters
    ----------
    path : str or Path
        A directory written by `Trial.save`.
    game : str or Game, optional
        Another game to play, with as many actions; as `find_game` gives it, where it takes arguments or wrappers. The
        name that the checkpoint has, with a module before it or without, stands for its game with the arguments and
        wrappers it was trained with; a module that is named here is imported.

    Raises
    ------
    InvalidInput
        The game is not known, or was made with what no checkpoint holds; or the checkpoint's network for it does not
        have these weights.
    """
    state = read_checkpoint(path)
    counters = state["counters"]
    if game is None or (isinstance(game, str) and _plain(game) == _plain(counters["game"])):
        env = _game_of(counters, path, game)
    else:
        env = find_game(game) if isinstance(game, str) else game
    network = counters["network"]
    if env.atari and reads_rgb(network):
        env = find_game(env.name, rgb=True)
    if game is not None and network not in networks_of(env):
        raise InvalidInput(
            f"the agent in {path} was trained on {counters['game']}, and its network {network!r} cannot read "
            f"{env.name}'s {env.obs_shape} observations: name no game, or one like its own"
        )
    model = make_model(env, network)
    load_weights(model, state, f"{network} for {env.name}", path)
    return Agent(model, env, Rules(**counters["rules"]))


def _plain(name: str) -> str:
    """Leave out the module of an environment's name."""
    return name.rpartition(":")[2]


def _game_of(counters: dict[str, Any], path: str | Path, named: str | None) -> Game:
    """Find the game that a checkpoint says it plays; nothing is imported that a person has not named or imported."""
    name, kwargs, wrappers = named or counters["game"], counters.get("env_kwargs"), counters.get("wrappers")
    if lost := counters.get("unrecorded"):
        raise InvalidInput(
            f"the agent in {path} was trained on {name} with {lost}, which no checkpoint holds: make the game again, "
            f"in Python, and pass it, game=find_game({name!r}, env_kwargs=…, wrappers=…)"
        )
    if named and ":" in named:
        registered(named)
    for module in modules_to_import([wrappers or (), *([] if named else [name])]):
        again = f", or name the game as well: --game {name}, game={name!r}" if module == name.rpartition(":")[0] else ""
        raise InvalidInput(
            f"the checkpoint in {path} plays {name} with code of {module}, which a file alone may not have run: "
            f"import {module} first{again}"
        )
    return find_game(name, env_kwargs=kwargs or {}, wrappers=wrappers or ())
