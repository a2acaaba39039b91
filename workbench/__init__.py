"""The Workbench: metaoptimization of deep reinforcement learning, in Jupyter.

>>> from workbench import GA3C, Budget, HyperTrick, RandomSearcher, Space, Study

Everything public is listed once, in ``__init__.pyi``, for type checkers and for the lazy import below alike.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

_STUB = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
_WHERE = {a.name: node.module for node in _STUB.body if isinstance(node, ast.ImportFrom) for a in node.names}

__all__ = list(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'workbench' has no attribute {name!r}; it has {', '.join(sorted(_WHERE))}")
    return getattr(import_module(str(_WHERE[name])), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_WHERE])
