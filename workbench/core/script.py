"""What the script that is run defines: how it travels to another process, and what a record calls it.

In a process that multiprocessing has spawned the script is a module of another name, which nobody else can import.
"""

import sys
from typing import Any

_SPAWNED = "__mp_main__"


def pickled(thing: Any) -> bytes:
    """Pickle for another process, whole, what is defined in a notebook's cell or in the script."""
    import cloudpickle  # not for who only imports the workbench

    script = sys.modules.get(_SPAWNED)
    if script is not None and script.__name__ == _SPAWNED:  # elsewhere it is __main__, which travels whole by itself
        cloudpickle.register_pickle_by_value(script)
    raw: bytes = cloudpickle.dumps(thing)
    return raw


def code_path(code: Any) -> str:
    """Name a class or function, ``module:name``, alike in every process that runs its script."""
    module = "__main__" if code.__module__ == _SPAWNED else code.__module__
    return f"{module}:{code.__qualname__}"
