"""What a function hands over as its state, in a file that is read without running anything."""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from workbench.core.errors import CheckpointError, InvalidInput
from workbench.core.failures import short

_FILE = "state.pt"
_ARRAY = "array of numpy"  # marks one
_BYTES = "bytes"  # in place of a dtype
_PLAIN = (bool, int, float, complex, str, type(None))


def save_state(state: Any, folder: Path, name: str) -> None:
    """Write a state; `name` is that of the function, for errors.

    Raises
    ------
    InvalidInput
        Something in it is neither tensor, array, number, text, bytes nor a dict, list or tuple of these.
    """
    import torch

    torch.save(_packed(state, "state", name, (*_PLAIN, torch.Tensor, torch.dtype, torch.device)), folder / _FILE)


def load_state(folder: Path, name: str) -> Any:
    """Read a state, its tensors onto the CPU.

    Raises
    ------
    CheckpointError
        There is none, or it cannot be read.
    """
    file = folder / _FILE
    if not file.is_file():
        raise CheckpointError(f"{name} yielded no state there (yield score, state lets it go on)")
    import torch

    try:
        return _unpacked(torch.load(file, map_location="cpu", weights_only=True))
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as err:
        raise CheckpointError(f"the state in {file} cannot be read: {str(err).partition(chr(10))[0]}") from None


def _packed(state: Any, path: str, name: str, plain: tuple[type, ...]) -> Any:
    """Copy a state, numpy's arrays and numbers as plain data."""
    if isinstance(state, np.generic) and state.dtype.kind in "biufcU":
        return state.item()
    if isinstance(state, plain):
        return _bare(state)
    if isinstance(state, bytes):
        return {_ARRAY: _as_tensor(state), "dtype": _BYTES}
    if isinstance(state, np.ndarray) and state.dtype.kind in "biufcSUmM":
        return {_ARRAY: _as_tensor(state.tobytes()), "dtype": state.dtype.str, "shape": state.shape}
    if isinstance(state, Mapping):
        keys = [_packed(key, f"a key of {path}", name, plain) for key in state]
        values = [_packed(value, f"{path}[{key!r}]", name, plain) for key, value in state.items()]
        return dict(zip(keys, values, strict=True))
    if isinstance(state, (list, tuple)):
        items = [_packed(item, f"{path}[{i}]", name, plain) for i, item in enumerate(state)]
        return items if isinstance(state, list) else tuple(items)
    raise InvalidInput(
        f"{name}: {path} is {short(state)}, a {type(state).__name__}: a state holds tensors, arrays, numbers, text and "
        "bytes, and dicts, lists and tuples of them, such as model.state_dict() or pickle.dumps(model)"
    )


def _bare(state: Any) -> Any:
    """Strip a number or text of a class of its own, such as an enumeration's: only plain ones are read again."""
    if isinstance(state, str):
        return str.__str__(state)
    kinds: tuple[Any, ...] = (bool, int, float, complex)
    return next((kind(state) for kind in kinds if isinstance(state, kind)), state)


def _as_tensor(raw: bytes) -> Any:
    import torch

    return torch.from_numpy(np.frombuffer(raw, np.uint8).copy())


def _as_array(raw: bytes, dtype: str, shape: tuple[int, ...]) -> Any:
    return np.frombuffer(bytearray(raw), dtype).reshape(shape)


def _unpacked(state: Any) -> Any:
    if isinstance(state, dict):
        if _ARRAY in state:
            raw = state[_ARRAY].numpy().tobytes()
            return raw if state["dtype"] == _BYTES else _as_array(raw, state["dtype"], state["shape"])
        return {key: _unpacked(value) for key, value in state.items()}
    if isinstance(state, (list, tuple)):
        return type(state)(_unpacked(item) for item in state)
    return state
