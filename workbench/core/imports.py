"""Code of the user's own, named "module:name", and imported for it.

Nothing that a knowledge base says is ever imported: only who writes a file or a command names code to run.
"""

import os
import sys
from functools import reduce
from importlib import import_module
from types import ModuleType
from typing import Any

from workbench.core.errors import InvalidInput, WorkbenchError, unknown
from workbench.core.failures import place_of


def imported(path: str) -> Any:
    """Import what "module:name" stands for, from the working directory too.

    Raises
    ------
    InvalidInput
        There is no such module or name, or it cannot be imported; with the line that fails.
    """
    module, _, name = path.rpartition(":")
    if not module:
        raise InvalidInput(f"code of your own is named by its module, 'my_module:{name}', got {path!r}")
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
        raise InvalidInput(f"there is no module {err.name!r}, neither in {here} nor installed") from None
    except WorkbenchError:
        raise
    except (Exception, SystemExit) as err:  # noqa: BLE001  whatever the user's code does, ending itself among it
        raise _refusal(name, " ".join(f"{type(err).__name__}: {err}".split()), err) from None


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
