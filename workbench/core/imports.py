"""Code of the user's own, named "module:name": imported, or only named, where it is a knowledge base that names it.

Nothing that a knowledge base says is ever imported: only who writes a file or a command names code to run.
"""

import os
import sys
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import reduce
from importlib import import_module
from types import ModuleType
from typing import Any

from workbench.core.errors import InvalidInput, WorkbenchError, unknown
from workbench.core.extras import what_is_missing
from workbench.core.failures import place_of
from workbench.core.measured import one_line

AT_HAND = ("gymnasium", "ale_py", "stable_baselines3", "sb3_contrib", "torch")  # packages whose code may be named
_NAMING = ("game", "env", "wrappers", "hyperparameters")  # settings that may name code, "my_module:Name"


def imported(path: str) -> Any:
    """Import what "module:name" stands for, from the working directory too.

    Raises
    ------
    InvalidInput
        There is no such module or name, or it cannot be imported; with the line that fails.
    """
    module, _, name = path.rpartition(":")
    if not module:
        own = name if all(map(str.isidentifier, name.split("."))) else "fits"  # of a constraint written out, "lr < 3"
        raise InvalidInput(f"code is named by its module, 'my_module:{own}', got {path!r}")
    if module.endswith(".py") or "/" in module:
        meant = module.removesuffix(".py").rpartition("/")[2]
        raise InvalidInput(
            f"code is named by its module, '{meant}:{name}', which is sought in the working directory, and not by its "
            f"file, got {path!r}"
        )
    try:
        return reduce(getattr, name.split("."), imported_module(module))
    except AttributeError:
        raise unknown(f"name in module {module}", name, _public(sys.modules[module])) from None


def imported_module(name: str) -> ModuleType:
    """Import a module, from the working directory too.

    Raises
    ------
    InvalidInput
        As `imported`.
    """
    here = _import_from_here()
    try:
        return import_module(name)
    except ModuleNotFoundError as err:
        if err.name is None or not f"{name}.".startswith(f"{err.name}."):
            raise _refusal(name, str(err), err) from None
        nowhere = f"there is no module {err.name!r}, neither in {here} nor installed"
        raise InvalidInput(nowhere + what_is_missing(err)) from None
    except WorkbenchError:
        raise
    except (Exception, SystemExit) as err:  # noqa: BLE001  whatever the user's code does, ending itself among it
        raise _refusal(name, one_line(err), err) from None


def _refusal(name: str, why: str, err: BaseException) -> InvalidInput:
    place = f" ({where})" if (where := place_of(err)) else ""
    return InvalidInput(f"{name} cannot be imported: {why}{place}")


def _public(module: ModuleType) -> list[str]:
    return [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]


def _import_from_here() -> str:
    """Let modules of the working directory be imported, as a script's are, and name it.

    A command's own folder stands in its place; workers are given the driver's path.
    """
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    return here


def code_named(trainable: Mapping[str, Any], imported: Container[str] = sys.modules) -> list[str]:
    """Name the modules that the settings of a recorded trainable would have imported, and that nobody has yet."""
    modules = [module for setting in _NAMING for module in modules_to_import(trainable.get(setting), imported)]
    within = (part for part in trainable.values() if isinstance(part, Mapping))  # what is replayed, agents of several
    return modules + [module for part in within for module in code_named(part, imported)]


def modules_to_import(described: Any, imported: Container[str] = sys.modules) -> Iterator[str]:
    """Name the modules that a description out of a file would have imported, and that are not at hand.

    What is read from a database or a checkpoint may name code, but not make it run: only whoever has imported a module,
    or names it again, may.
    """
    if isinstance(described, Mapping):
        described = [*described, *described.values()]
    if isinstance(described, str):
        module = described.rpartition(":")[0]
        if module and module not in imported and module.partition(".")[0] not in AT_HAND:
            yield module
    elif isinstance(described, Sequence):
        for part in described:
            yield from modules_to_import(part, imported)
