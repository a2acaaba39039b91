"""What the script that is run defines: how it travels to another process, and what a record calls it.

In a process that multiprocessing has spawned the script is a module of another name, which nobody else can import.
"""

import sys
from collections.abc import Callable, Mapping
from functools import _lru_cache_wrapper, lru_cache
from io import BytesIO
from typing import Any

_SPAWNED = "__mp_main__"
SCRIPT = ("__main__", _SPAWNED)
"""Names of modules that are another script, or none, in another process."""


def pickled(thing: Any) -> bytes:
    """Pickle for another process, whole, what is defined in a notebook's cell or in the script."""
    import cloudpickle  # not for who only imports the workbench

    script = sys.modules.get(_SPAWNED)
    if script is not None and script.__name__ == _SPAWNED:  # elsewhere it is __main__, which travels whole by itself
        cloudpickle.register_pickle_by_value(script)

    class Whole(cloudpickle.Pickler):  # type: ignore[misc]
        """Takes apart what `functools.cache` has made, which cloudpickle only names, where the name is of no use."""

        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, _lru_cache_wrapper) and not _is_found(obj):
                return _cached, (obj.__wrapped__, obj.cache_parameters())
            return super().reducer_override(obj)

    Whole(raw := BytesIO()).dump(thing)
    return raw.getvalue()


def _is_found(cached: Any) -> bool:
    """Tell whether another process finds by its name what is cached, and not what is cached by another name."""
    found = None if cached.__module__ in SCRIPT else sys.modules.get(cached.__module__)
    for name in getattr(cached, "__qualname__", "").split("."):
        found = getattr(found, name, None)
    return found is cached


def _cached(function: Callable[..., Any], parameters: Mapping[str, Any]) -> Any:
    return lru_cache(**parameters)(function)


def code_path(code: Any) -> str:
    """Name a class or function, ``module:name``, alike in every process that runs its script."""
    module = "__main__" if code.__module__ == _SPAWNED else code.__module__
    return f"{module}:{code.__qualname__}"
