"""Objects made from settings, and settings read off objects.

Schedulers, searchers and trainables are dataclasses whose init fields are their settings, so that the log can
say what ran, a study file can say what to run, and a study can be resumed by its name alone.
"""

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import partial
from importlib import import_module
from pathlib import PurePath
from typing import Any, TypeVar

import numpy as np

from workbench.core.budget import Budget
from workbench.core.domains import scalar
from workbench.core.errors import InvalidInput, WorkbenchError, refuse_unknown, unknown
from workbench.core.failures import short
from workbench.core.protocols import Explain
from workbench.core.registry import REGISTRY, SCHEDULERS, SEARCHERS
from workbench.core.script import code_path
from workbench.core.showing import reason_text
from workbench.core.space import Space

Read = TypeVar("Read")
Registry = Mapping[str, str]
"""Kind → ``"module:Class"``; imported only when asked for."""
_PARTS: Mapping[str, Registry] = {"scheduler": SCHEDULERS, "searcher": SEARCHERS}
"""What schedulers and searchers are made of; a trainable's tables of these names are its own."""
_PLAIN = (bool, int, float, str)
_DIGITS = 12


class Settings(dict[str, Any]):
    """A kind and its settings; `usual` names those that stand as the code has them, so that nobody need have given."""

    def __init__(self, settings: Mapping[str, Any], usual: Iterable[str]) -> None:
        super().__init__(settings)
        self.usual = frozenset(usual)


def describe(thing: Any) -> Any:
    """Turn an object into JSON's types; `build` turns it back. Paths become text, NumPy's numbers Python's.

    A class that is not in `REGISTRY` is described by its import path, as a record: `build` refuses it, because
    nothing read from a database may name code to run. A function's or a class's plain defaults are among its settings.

    Raises
    ------
    InvalidInput
        A mapping has keys that are no words: JSON has no others.
    """
    thing = inspect.unwrap(thing)  # a function's trials are those of the function
    if isinstance(thing, partial):
        inner, given, placed = describe(thing.func), describe(thing.keywords), describe(bound_by_place(thing))
        as_before = {key for key in inner.usual if given.get(key, inner[key]) == inner[key]}
        return Settings({**inner, **placed, **given}, as_before | placed.keys())  # records of before lack the latter
    if isinstance(thing, Space):
        return thing.to_json()
    if isinstance(thing, Budget):
        return {thing.unit: scalar(getattr(thing, thing.unit))}
    if isinstance(thing, (list, tuple)):
        return [describe(item) for item in thing]
    if isinstance(thing, Mapping):
        if wrong := [key for key in thing if not isinstance(key, str)]:
            raise InvalidInput(
                f"{short(thing)} among a study's settings has the key {short(wrong[0])}, which its record would give "
                "back as a word: make the keys words, and look up what they stand for"
            )
        return {key: describe(value) for key, value in thing.items()}
    if is_dataclass(thing) and not isinstance(thing, type):
        settings = {f.name: describe(getattr(thing, f.name)) for f in fields(thing) if f.init}
        kind = _kind(type(thing))
        usual = settings if kind in REGISTRY else (f.name for f in fields(thing) if _stands(f, thing))
        return Settings({"kind": kind, **settings}, usual)
    if isinstance(thing, PurePath):
        return str(thing)
    thing = scalar(thing)
    if thing is None or isinstance(thing, _PLAIN):
        return thing
    if hasattr(thing, "__qualname__"):
        defaults = _defaults(thing)
        return Settings({"kind": _kind(thing), **defaults}, defaults)
    told = _told_of(thing)
    return Settings({"kind": _kind(type(thing)), **told}, told)  # records of before tell the type alone


def _told_of(thing: object) -> dict[str, Any]:
    """Tell one object from others of its type: a member of an enumeration by its name, an array by its bytes."""
    if isinstance(thing, Enum):
        return {"name": thing.name}
    if isinstance(thing, np.ndarray) and not thing.dtype.hasobject:
        mark = hashlib.sha256(thing.tobytes()).hexdigest()[:_DIGITS]
        return {"dtype": str(thing.dtype), "shape": list(thing.shape), "sha256": mark}
    return {}


def _stands(setting: "Field[Any]", thing: Any) -> bool:
    """Tell whether a setting of an object is what its class gives it."""
    default = setting.default if setting.default_factory is MISSING else setting.default_factory()
    return default is not MISSING and describe(default) == describe(getattr(thing, setting.name))


def _defaults(called: Callable[..., Any]) -> dict[str, Any]:
    """Give the plain defaults of what a trial calls, but for the seed and the state, which it hands over.

    A generator function is handed these by name, all else the seed as its second argument.
    """
    try:
        takes = list(inspect.signature(called).parameters.values())
    except (TypeError, ValueError):  # of some that are written in C nothing is known
        return {}
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    own = takes[1 if inspect.isgeneratorfunction(called) else 2 :]
    given = {p.name: scalar(p.default) for p in own if p.kind in by_name and p.name not in ("kind", "seed", "state")}
    return {name: value for name, value in given.items() if value is None or isinstance(value, _PLAIN)}


def bound_by_place(given: "partial[Any]") -> dict[str, Any]:
    """Give what a `partial` binds by its place, under the names that the arguments have."""
    try:
        return dict(inspect.signature(given.func).bind_partial(*given.args).arguments)
    except (TypeError, ValueError):  # of some that are written in C nothing is known
        return {"arguments": given.args} if given.args else {}


def build(what: str, described: Mapping[str, Any], registry: Registry, **given: Any) -> Any:
    """Make the object a description stands for.

    Parameters
    ----------
    what : str
        Its role: "scheduler", "searcher", "trainable". Errors name it, and it says which tables within are parts.
    described : Mapping
        ``kind`` and the settings by name.
    registry : Registry
        The kinds allowed.
    **given
        Settings that come from elsewhere than the description.
    """
    if not isinstance(described, Mapping) or not isinstance(described.get("kind"), str):
        raise InvalidInput(f"a {what} is a table with a kind, one of {', '.join(sorted(registry))}; got {described!r}")
    kind = described["kind"]
    cls = _class(what, kind, registry)
    allowed = {f.name: f for f in fields(cls) if f.init}
    settings = {key: value for key, value in described.items() if key != "kind"} | given
    refuse_unknown(f"setting of {what} {kind!r}", settings, allowed)
    missing = [
        f.name
        for f in allowed.values()
        if f.default is MISSING and f.default_factory is MISSING and f.name not in settings
    ]
    if missing:
        raise InvalidInput(f"{what} {kind!r} needs {', '.join(missing)}: add {'it' if len(missing) == 1 else 'them'}")
    return made(f"{what} {kind!r}", cls, {key: _read(what, key, value) for key, value in settings.items()})


def made(what: str, cls: Callable[..., Any], settings: Mapping[str, Any]) -> Any:
    """Call a class with settings out of somebody's file, so that a value of a strange type is bad input, not a bug."""
    try:
        return cls(**settings)
    except WorkbenchError:
        raise
    except (TypeError, ValueError, AttributeError, OverflowError) as err:
        plain = {key: value for key, value in settings.items() if not is_dataclass(value)}
        raise InvalidInput(f"{what} cannot be made of {plain}: {err}") from None


def read_back(cls: type[Read], described: Mapping[str, Any]) -> Read:
    """Make a dataclass of what the log keeps of it; what a later version added is passed over."""
    known = {f.name for f in fields(cls)}  # type: ignore[arg-type]
    return cls(**{key: value for key, value in described.items() if key in known})


def settings_of(what: str, described: Mapping[str, Any], registry: Registry) -> set[str]:
    """Name the settings that the kind described has; none if it names no kind."""
    kind = described.get("kind")
    return {f.name for f in fields(_class(what, kind, registry)) if f.init} if isinstance(kind, str) else set()


def explain_of(described: object) -> Explain:
    """Find the words of a recorded scheduler's decisions by its kind.

    A scheduler that has none of its own is explained by `reason_text`; so is one of the user's own where its module
    has not been imported, for nothing read from a database may name code to run.
    """
    kind, inner = _scheduler_in(described)
    module, _, name = kind.partition(":")
    own = getattr(sys.modules.get(module), name, None)
    cls = _class("scheduler", kind, REGISTRY) if kind in REGISTRY else own
    explain: Callable[..., str] = getattr(cls, "explain", reason_text)
    if isinstance(inner, Mapping) and "words" in inspect.signature(explain).parameters:  # it runs the other's trials
        return partial(explain, words=explain_of(inner))
    return explain


def hands_on_weights(described: object) -> bool:
    """Tell whether a recorded scheduler may have a trial start from another's checkpoint.

    One whose reasons name donors may, and one of the user's own.
    """
    kind, inner = _scheduler_in(described)
    if kind not in SCHEDULERS or "donor" in getattr(_class("scheduler", kind, SCHEDULERS), "trials_in_reasons", ()):
        return True
    return isinstance(inner, Mapping) and hands_on_weights(inner)


def why(decision: Mapping[str, Any], explain: Explain = reason_text) -> str:
    """Write a decision's reason as a person would say it, from the log's data, in its scheduler's words.

    Where these fail, in those of `reason_text`.

    >>> why({"verdict": "stop", "mode": "below", "place": 3}, lambda reason: f"it has {reason['score']}")
    'below: place 3'
    """
    reason = {key: value for key, value in decision.items() if key != "verdict"}
    try:
        return str(explain(reason))
    except Exception:  # noqa: BLE001  it may be anybody's, and the log an older one: a view must outlive it
        return reason_text(reason)


def _scheduler_in(described: object) -> tuple[str, object]:
    """Give a recorded scheduler's kind, and the scheduler whose trials it runs, if it does."""
    known = described if isinstance(described, Mapping) else {}
    return str(known.get("kind")), known.get("scheduler")


def _class(what: str, kind: str, registry: Registry) -> Any:
    if kind not in registry:
        raise unknown(what, kind, registry)
    module, _, name = registry[kind].partition(":")
    return getattr(import_module(module), name)


def _read(what: str, key: str, value: Any) -> Any:
    """Budgets, spaces, and what draws configurations or runs the trials are the settings written as tables."""
    if key == "space" and isinstance(value, Mapping) and not isinstance(value, Space):
        return Space.from_json(value)
    if {what, key} <= _PARTS.keys() and isinstance(value, Mapping) and not isinstance(value, Space):
        return build(key, value, _PARTS[key])
    if key == "phase" and isinstance(value, Mapping):
        return Budget(**value)
    return tuple(value) if isinstance(value, list) else value


def _kind(cls: Any) -> str:
    path = code_path(cls)
    return next((kind for kind, target in REGISTRY.items() if target == path), path)
