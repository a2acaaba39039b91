"""Code of the user's own, named "module:name" in a study file or on the command line, and imported for it.

Nothing that a knowledge base says is ever imported: only who writes a file or a command names code to run.
"""

import sys
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import partial, reduce
from importlib import import_module
from types import ModuleType
from typing import Any

from workbench.algos.function.factory import as_factory
from workbench.core.describe import Registry, build
from workbench.core.errors import InvalidInput, WorkbenchError, unknown
from workbench.core.failures import place_of
from workbench.core.places import import_from_here
from workbench.core.protocols import TrainableFactory
from workbench.core.registry import TRAINABLES


def with_own(described: Mapping[str, Any], registry: Registry) -> Registry:
    """Add the kind that is described to those of a registry if it is written "module:name", and import it."""
    kind = described.get("kind")
    if not isinstance(kind, str) or ":" not in kind:
        return registry
    thing = imported(kind)
    if not (isinstance(thing, type) and is_dataclass(thing)):
        raise InvalidInput(
            f"{kind!r} is {thing!r}: in a study file it has to be a dataclass, whose fields are settings"
        )
    return {**registry, kind: kind}


def trainable_from(described: Mapping[str, Any]) -> TrainableFactory:
    """Build what is trained from a table: of a kind in the registry, or "module:name" and its settings.

    A name may stand for a generator function or a class with the four methods, whose keyword arguments the settings
    are; for a dataclass whose objects build trials; or for an object that does.
    """
    kind = described.get("kind") if isinstance(described, Mapping) else None
    if not isinstance(kind, str) or ":" not in kind:
        if isinstance(kind, str) and kind not in TRAINABLES:
            raise InvalidInput(f'{unknown("trainable", kind, TRAINABLES)}; code of your own is written "module:name"')
        factory: TrainableFactory = build("trainable", _with_own_within(described), TRAINABLES)
        return factory
    thing, settings = imported(kind), {key: value for key, value in described.items() if key != "kind"}
    if isinstance(thing, type) and is_dataclass(thing) and not hasattr(thing, "train_phase"):
        return as_factory(build("trainable", described, {kind: kind}))
    if settings and not callable(thing):
        raise InvalidInput(f"{kind!r} is {thing!r}: it takes no settings, got {', '.join(settings)}")
    return as_factory(partial(thing, **settings) if settings else thing)


def _with_own_within(described: Any) -> Any:
    """Build the code of one's own that a table names within, however deep: what is replayed, an agent of several."""
    if not isinstance(described, Mapping):
        return described
    return {
        key: trainable_from(value)
        if isinstance(value, Mapping) and ":" in str(value.get("kind"))
        else _with_own_within(value)
        for key, value in described.items()
    }


def imported(kind: str) -> Any:
    """Import what "module:name" stands for, from the working directory too.

    Raises
    ------
    InvalidInput
        There is no such module or name, or it cannot be imported; with the line that fails.
    """
    module, _, name = kind.partition(":")
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
    here = import_from_here()
    try:
        return import_module(name)
    except ModuleNotFoundError as err:
        if err.name is None or not f"{name}.".startswith(f"{err.name}."):
            raise InvalidInput(f"{name} cannot be imported: {err} ({place_of(err)})") from None
        raise InvalidInput(f"there is no module {err.name!r}, neither in {here} nor installed") from None
    except WorkbenchError:
        raise
    except (Exception, SystemExit) as err:  # noqa: BLE001  whatever the user's code does, ending itself among it
        error = " ".join(f"{type(err).__name__}: {err}".split())
        raise InvalidInput(f"{name} cannot be imported: {error} ({place_of(err)})") from None


def _public(module: ModuleType) -> list[str]:
    return [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
