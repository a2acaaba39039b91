"""How an environment is made, as a checkpoint holds it: plain data, which is read without running anything."""

from collections.abc import Mapping
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from workbench.algos.rl.environment import Recipe, Wrapper
from workbench.core.failures import short
from workbench.core.script import code_path

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_HOLDING = (list, tuple, set)


class _NotPlain(Exception):
    """Something that no checkpoint gives back as it was."""


def recipe_record(recipe: Recipe) -> dict[str, Any]:
    """Describe in plain data how an environment is made, as far as it is not by its id alone.

    Returns
    -------
    dict
        ``env_kwargs`` and ``wrappers``; or ``unrecorded`` alone, in words, what of them no file would give back as it
        was: an environment made without it, or with its text, would be another.
    """
    kwargs, wrappers, lost = {}, [], []
    for name, value in recipe.kwargs.items():
        try:
            kwargs[name] = _plain(value)
        except _NotPlain:
            lost.append(f"env_kwargs[{name!r}], {short(value)}")
    for wrapper in recipe.wrappers:
        try:
            wrappers.append(_wrapper_record(wrapper))
        except _NotPlain:
            lost.append(f"the wrapper {short(wrapper)}")
    record = {"unrecorded": " and ".join(lost)} if lost else {"env_kwargs": kwargs, "wrappers": wrappers}
    return {name: value for name, value in record.items() if value}


def _plain(value: Any) -> Any:
    """Copy what is of Python's own types alone, NumPy's numbers as Python's.

    Raises
    ------
    _NotPlain
        Something in it is not: of a subclass, too, only the part would come back that it inherits.
    """
    if isinstance(value, np.number | np.bool_ | np.character):
        value = value.item()
    if type(value) in _PLAIN:
        return value
    if type(value) in _HOLDING:
        return type(value)(map(_plain, value))
    if type(value) is dict:
        return {_plain(key): _plain(item) for key, item in value.items()}
    raise _NotPlain


def _wrapper_record(wrapper: Wrapper) -> Any:
    """Name a wrapper, with its arguments if it has any.

    Raises
    ------
    _NotPlain
        It cannot be imported by a name, or its arguments are not plain.
    """
    code: Any = wrapper
    arguments: Mapping[str, Any] = {}
    if isinstance(code, Mapping):
        ((code, arguments),) = code.items()
    if isinstance(code, partial) and not code.args:
        code, arguments = code.func, {**code.keywords, **arguments}
    name = code if isinstance(code, str) else _name(code)
    return {name: _plain(dict(arguments))} if arguments else name


def _name(code: Any) -> str:
    if not isinstance(code, type | FunctionType) or "<" in code.__qualname__:  # <lambda>, f.<locals>.g
        raise _NotPlain
    return code_path(code)
