"""The Workbench: metaoptimization of deep reinforcement learning, in Jupyter.

>>> from workbench import GA3C, Budget, HyperTrick, RandomSearcher, Space, Study
"""

from importlib import import_module
from typing import Any

_WHERE = {
    "A3C": "workbench.algos.rl.a3c",
    "Budget": "workbench.core.budget",
    "Choice": "workbench.core.space",
    "FullRuns": "workbench.algos.search",
    "GA3C": "workbench.algos.rl.ga3c",
    "GridSearcher": "workbench.algos.search",
    "HyperTrick": "workbench.algos.search",
    "KnowledgeBase": "workbench.knowledge",
    "ListSearcher": "workbench.algos.search",
    "LogUniform": "workbench.core.space",
    "RandomSearcher": "workbench.algos.search",
    "Space": "workbench.core.space",
    "Study": "workbench.study",
    "Uniform": "workbench.core.space",
    "unique_name": "workbench.study",
    "watch": "workbench.algos.rl.watch",
}

__all__ = list(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'workbench' has no attribute {name!r}; it has {', '.join(sorted(_WHERE))}")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_WHERE])
