"""Checkpoints of Stable-Baselines3's models, of plain data: SB3's own files are pickles, which may run anything."""

import json
import pickle
from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import NStepReplayBuffer
from stable_baselines3.common.vec_env import VecNormalize
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

from workbench.algos.rl.checkpoint import CHECKPOINT
from workbench.core.errors import InvalidInput, first_line

_LEARNED = ("log_ent_coef",)  # other variables are hyperparameters, and those are a trial's own
_STATISTICS = ("mean", "var", "count")


def write(
    path: Path, model: BaseAlgorithm, counters: Mapping[str, Any], draws: Mapping[str, Any], replay: bool
) -> None:
    """Write what a model has learned into a directory, with its replay buffer if it has one and `replay` is set."""
    variables = [name for name in model._get_torch_save_params()[1] if name in _LEARNED]
    state = {
        "parameters": model.get_parameters(),
        "variables": {name: attrgetter(name)(model).detach().cpu() for name in variables},
        "statistics": _statistics(model),
        "counters": json.dumps(counters),
        "draws": draws,
    }
    buffer = getattr(model, "replay_buffer", None)
    if replay and buffer is not None:
        state["replay"] = _kept(buffer)
    torch.save(state, path / CHECKPOINT)


def read(path: Path, model: BaseAlgorithm, algorithm: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what `write` wrote into `model`, which keeps its own hyperparameters.

    Returns
    -------
    tuple
        The counters and the states of the generators.

    Raises
    ------
    InvalidInput
        There is no checkpoint, it cannot be read, or it is of another algorithm or network.
    """
    try:
        state = torch.load(path / CHECKPOINT, map_location="cpu", weights_only=True)
        counters: dict[str, Any] = json.loads(state["counters"])
        if counters["algorithm"] != algorithm:
            raise InvalidInput(f"the checkpoint in {path} is of {counters['algorithm']}, not of {algorithm}")
        _take_weights(path, model, state)
        for name, value in state["variables"].items():
            own = getattr(model, name, None)
            if isinstance(own, torch.Tensor):  # `None` where this trial's own coefficient is fixed
                own.data.copy_(value)
        for rms, saved in zip(_running(model).values(), state["statistics"].values(), strict=True):
            for part in _STATISTICS:
                kept = saved[part]
                setattr(rms, part, kept.numpy() if isinstance(kept, torch.Tensor) else kept)
        _empty(getattr(model, "replay_buffer", None))  # a trial that has played holds its own steps
        if "replay" in state:
            _refill(path, model, state["replay"])
    except InvalidInput:
        raise
    except (OSError, RuntimeError, KeyError, ValueError, TypeError, EOFError, pickle.UnpicklingError) as err:
        raise InvalidInput(f"no checkpoint of {algorithm} can be read in {path}: {first_line(err)}") from None
    return counters, state["draws"]


def _take_weights(path: Path, model: BaseAlgorithm, state: Mapping[str, Any]) -> None:
    for name, saved in state["parameters"].items():
        part = attrgetter(name)(model) if getattr(model, name.partition(".")[0], None) is not None else None
        if isinstance(part, torch.optim.Optimizer):
            own = [{k: v for k, v in group.items() if k != "params"} for group in part.param_groups]
            part.load_state_dict(saved)
            for group, settings in zip(part.param_groups, own, strict=True):
                group.update(settings)
        elif isinstance(part, torch.nn.Module):
            try:
                part.load_state_dict(saved)
            except RuntimeError:
                raise InvalidInput(
                    f"the checkpoint in {path} is of another network than this trial's: where a scheduler copies "
                    "weights, leave policy_kwargs out of the search space"
                ) from None
    if hasattr(model, "weights"):  # ARS keeps them as one vector beside
        model.weights = torch.nn.utils.parameters_to_vector(model.policy.parameters()).detach().clone()


def _running(model: BaseAlgorithm) -> dict[str, Any]:
    """Give the running means that `VecNormalize` keeps, by name."""
    env = model.get_vec_normalize_env()
    if not isinstance(env, VecNormalize):
        return {}
    obs = env.obs_rms if isinstance(env.obs_rms, dict) else {"": env.obs_rms}
    return {**{f"obs.{key}": rms for key, rms in obs.items()}, "returns": env.ret_rms}


def _statistics(model: BaseAlgorithm) -> dict[str, Any]:
    return {
        name: {part: torch.as_tensor(getattr(rms, part)) for part in _STATISTICS[:2]} | {"count": float(rms.count)}
        for name, rms in _running(model).items()
    }


# -- replay buffers -------------------------------------------------------------------------------------------


def _arrays(buffer: Any) -> dict[str, np.ndarray]:
    """Give the arrays that a replay buffer keeps a row a step in, by name; of dict observations one a key."""
    tables = {name: value for name, value in vars(buffer).items() if isinstance(value, dict)}
    arrays = {f"{name}/{key}": array for name, table in tables.items() for key, array in table.items()} | vars(buffer)
    return {
        name: array
        for name, array in arrays.items()
        if isinstance(array, np.ndarray) and array.dtype != object and array.shape[:1] == (buffer.buffer_size,)
    }


def _kept(buffer: Any) -> dict[str, Any]:
    """Copy the filled part of a replay buffer."""
    if getattr(buffer, "copy_info_dict", False):
        raise InvalidInput("a checkpoint cannot hold copies of infos: leave copy_info_dict out, or keep_replay=False")
    filled = buffer.buffer_size if buffer.full else buffer.pos
    if buffer.optimize_memory_usage and not buffer.full:
        filled = min(filled + 1, buffer.buffer_size)  # the next observation stands in the next row
    kept: dict[str, Any] = {"pos": buffer.pos, "full": buffer.full, "size": buffer.buffer_size}
    if isinstance(buffer, HerReplayBuffer):
        kept["current"] = torch.from_numpy(buffer._current_ep_start.copy())
    kept["arrays"] = {name: torch.from_numpy(array[:filled].copy()) for name, array in _arrays(buffer).items()}
    return kept


def _empty(buffer: Any) -> None:
    """Forget the steps in a replay buffer, if there is one; its rows stay, and are not read before they are written."""
    if buffer is not None:
        buffer.reset()
    if isinstance(buffer, HerReplayBuffer):  # it knows of games by these alone
        for row in (buffer.ep_start, buffer.ep_length, buffer._current_ep_start):
            row[:] = 0


def _refill(path: Path, model: BaseAlgorithm, kept: Mapping[str, Any]) -> None:
    """Fill a model's replay buffer; one of another size takes the newest steps that fit."""
    buffer: Any = getattr(model, "replay_buffer", None)
    own = _arrays(buffer)
    saved = {name: array.numpy() for name, array in kept["arrays"].items()}
    if own.keys() != saved.keys() or any(own[n].shape[1:] != saved[n].shape[1:] for n in own):
        raise InvalidInput(f"the checkpoint in {path} has another kind of replay buffer, or of another number of envs")
    if kept["size"] == buffer.buffer_size:
        for name, array in saved.items():
            own[name][: len(array)] = array
        buffer.pos, buffer.full = int(kept["pos"]), bool(kept["full"])
    elif isinstance(buffer, HerReplayBuffer):
        raise InvalidInput(
            f"the checkpoint in {path} has a buffer of {kept['size']} steps: buffer_size must be the same"
        )
    else:
        rows = np.arange(kept["pos"] - (kept["size"] if kept["full"] else kept["pos"]), kept["pos"]) % kept["size"]
        rows = rows[-buffer.buffer_size :]
        for name, array in saved.items():
            own[name][: len(rows)] = array[rows]
        buffer.pos, buffer.full = len(rows) % buffer.buffer_size, len(rows) == buffer.buffer_size
    _cut(buffer, kept)


def _cut(buffer: Any, kept: Mapping[str, Any]) -> None:
    """End the games that were under way: the environments begin new ones."""
    if isinstance(buffer, HerReplayBuffer):
        buffer._current_ep_start[:] = kept["current"].numpy()
        if (buffer._current_ep_start != buffer.pos).any():
            buffer.truncate_last_trajectory()
    elif not (buffer.full or buffer.pos):
        return
    elif buffer.optimize_memory_usage:
        buffer.dones[buffer.pos - 1] = True
    elif isinstance(buffer, NStepReplayBuffer):
        buffer.timeouts[buffer.pos - 1] = 1 - buffer.dones[buffer.pos - 1]
