"""What a function hands over as its state, in files that are read without running anything."""

import io
import pickle
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from workbench.core.errors import CheckpointError, InvalidInput, NoState, first_line
from workbench.core.failures import short

_FILE = "state.pickle"
_TENSORS = "tensors.pt"  # beside it, if it holds any
_BEFORE = "state.pt"  # all of it, until 0.2
_ARRAY = "array of numpy"  # marks one
_BYTES = "bytes"  # in place of a dtype, until 0.2
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_WIDER = (np.longdouble, np.clongdouble)  # than any number of Python's: their item() is NumPy's still
_UNREADABLE = (OSError, RuntimeError, EOFError, ValueError, LookupError, AttributeError, TypeError, pickle.PickleError)


def save_state(state: Any, folder: Path, name: str) -> None:
    """Write a state; `name` is that of the function, for errors.

    A state without tensors needs no torch, whose import takes a worker seconds.

    Raises
    ------
    InvalidInput
        Something in it is neither tensor, array, number, text, bytes nor a dict, list or tuple of these, or it holds
        itself, or has the key that marks an array.
    """
    try:
        packed = _packed(state, "state", name, (*_PLAIN, *_of_torch()))
    except RecursionError:
        raise InvalidInput(f"{name}: the state holds itself, or is nested too deep: a file holds neither") from None
    with (folder / _FILE).open("wb") as file:
        writer = _Writer(file)
        writer.dump(packed)
    if writer.tensors:
        import torch

        torch.save(writer.tensors, folder / _TENSORS)


def load_state(folder: Path, name: str) -> Any:
    """Read a state, its tensors onto the CPU.

    Raises
    ------
    NoState
        There is none.
    CheckpointError
        It cannot be read.
    """
    file = next((folder / known for known in (_FILE, _BEFORE) if (folder / known).is_file()), None)
    if file is None:
        raise NoState(f"{name} yielded no state in {folder} (yield score, state lets it go on)")
    try:
        return _unpacked(_tensors(file) if file.name == _BEFORE else _Reader(file).load())
    except _UNREADABLE as err:
        raise CheckpointError(f"the state in {file} cannot be read: {first_line(err)}") from None


class _Writer(pickle.Pickler):
    """Keeps what is torch's aside, in `tensors`."""

    def __init__(self, file: Any) -> None:
        super().__init__(file, protocol=5)
        self.tensors: list[Any] = []
        self._kinds = _of_torch()

    def persistent_id(self, obj: Any) -> int | None:
        if not isinstance(obj, self._kinds):
            return None
        self.tensors.append(_bare_tensor(obj))
        return len(self.tensors) - 1


class _Reader(pickle.Unpickler):
    """Makes plain data, and nothing else."""

    def __init__(self, file: Path) -> None:
        super().__init__(io.BytesIO(file.read_bytes()))
        self._beside = file.with_name(_TENSORS)
        self._read: list[Any] | None = None

    def persistent_load(self, pid: int) -> Any:
        self._read = _tensors(self._beside) if self._read is None else self._read
        return self._read[pid]

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("builtins", "complex"):
            return complex
        raise pickle.UnpicklingError(f"it names {module}.{name}, which no state does")


def _tensors(file: Path) -> Any:
    import torch

    return torch.load(file, map_location="cpu", weights_only=True)


def _of_torch() -> tuple[type, ...]:
    """Give torch's types, of which there are values only where it was imported."""
    torch = sys.modules.get("torch")
    return () if torch is None else (torch.Tensor, torch.dtype, torch.device)


def _bare_tensor(obj: Any) -> Any:
    """Strip a tensor of a class of its own, which is not read again, and a view of what it does not show."""
    import torch

    if not isinstance(obj, torch.Tensor) or obj.layout is not torch.strided:
        return obj
    if not isinstance(obj, torch.nn.Parameter):
        obj = obj.as_subclass(torch.Tensor)
    return obj.detach().clone() if obj.untyped_storage().nbytes() > obj.nbytes else obj


def _packed(state: Any, path: str, name: str, plain: tuple[type, ...]) -> Any:
    """Copy a state, numpy's arrays and numbers as plain data."""
    if isinstance(state, np.generic) and state.dtype.kind in "biufcU" and not isinstance(state, _WIDER):
        return state.item()
    if isinstance(state, plain):
        return _bare(state)
    if isinstance(state, np.ndarray) and state.dtype.kind in "biufcSUmM" and not isinstance(state, np.ma.MaskedArray):
        return {_ARRAY: state.tobytes(), "dtype": state.dtype.str, "shape": state.shape}
    if isinstance(state, Mapping):
        keys = [_packed(key, f"a key of {path}", name, plain) for key in state]
        if _ARRAY in keys:
            raise InvalidInput(f"{name}: {path} has a key {_ARRAY!r}, which marks arrays in the file: choose another")
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
    """Strip a number, text or bytes of a class of its own, such as an enumeration's: only plain ones are read again."""
    if isinstance(state, str):
        return str.__str__(state)
    kinds: tuple[Any, ...] = (bool, int, float, complex, bytes)
    return next((kind(state) for kind in kinds if isinstance(state, kind)), state)


def _as_array(raw: bytes, dtype: str, shape: tuple[int, ...]) -> Any:
    return np.frombuffer(bytearray(raw), dtype).reshape(shape)


def _unpacked(state: Any) -> Any:
    if isinstance(state, dict):
        if _ARRAY in state:
            raw = state[_ARRAY] if isinstance(state[_ARRAY], bytes) else state[_ARRAY].numpy().tobytes()
            return raw if state["dtype"] == _BYTES else _as_array(raw, state["dtype"], state["shape"])
        return {key: _unpacked(value) for key, value in state.items()}
    if isinstance(state, (list, tuple)):
        return type(state)(_unpacked(item) for item in state)
    return state
