"""What code of the user's own, named "module:name" in a study file or on the command line, is in a study."""

from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import partial
from typing import Any

from workbench.algos.function.factory import as_factory
from workbench.core.describe import Registry, bound_by_place, build, describe
from workbench.core.errors import InvalidInput, unknown
from workbench.core.imports import imported
from workbench.core.protocols import TrainableFactory
from workbench.core.registry import TRAINABLES


def with_own(described: Mapping[str, Any], registry: Registry) -> Registry:
    """Give the kinds of a registry that a file may name; the one described too, imported, if it is "module:name"."""
    kind = described.get("kind")
    if kind == "seeded":
        raise InvalidInput(
            "several seeds are no scheduler of their own: name the one that is to have them, and write seeds = N in "
            "[study], or [simulation]"
        )
    registry = {known: place for known, place in registry.items() if known != "seeded"}  # which records have
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
    if isinstance(thing, partial):  # what it binds by its place it cannot be given again, as a record does
        placed = describe(bound_by_place(thing))
        settings = {key: value for key, value in settings.items() if key not in placed or placed[key] != value}
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
