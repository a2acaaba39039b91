"""The Workbench: metaoptimization of deep reinforcement learning, in Jupyter.

>>> from workbench import GA3C, Budget, HyperTrick, RandomSearcher, Space, Study
"""

from importlib import import_module
from typing import Any

_WHERE = {
    "A3C": "workbench.algos.rl.a3c.trial",
    "ASHA": "workbench.algos.search",
    "AttachedStudy": "workbench.study.attached",
    "BA3C": "workbench.algos.rl.ba3c.settings",
    "Budget": "workbench.core.budget",
    "Choice": "workbench.core.space",
    "DigitsClassifier": "workbench.algos.digits.classifier",
    "DigitsGAN": "workbench.algos.digits.gan",
    "EvolutionSearcher": "workbench.algos.search",
    "Explorer": "workbench.study.explore",
    "FullRuns": "workbench.algos.search",
    "GA3C": "workbench.algos.rl.ga3c.trial",
    "GridSearcher": "workbench.algos.search",
    "HTS": "workbench.algos.rl.hts.trial",
    "HyperTrick": "workbench.algos.search",
    "Hyperband": "workbench.algos.search",
    "KnowledgeBase": "workbench.knowledge",
    "ListSearcher": "workbench.algos.search",
    "LogUniform": "workbench.core.space",
    "MedianStopping": "workbench.algos.search",
    "OptunaSearcher": "workbench.algos.search",
    "PBT": "workbench.algos.search",
    "Portfolio": "workbench.algos.search",
    "RandomSearcher": "workbench.algos.search",
    "Recording": "workbench.knowledge",
    "Replay": "workbench.algos.replay",
    "Results": "workbench.study.results",
    "Space": "workbench.core.space",
    "Study": "workbench.study.study",
    "SuccessiveHalving": "workbench.algos.search",
    "Uniform": "workbench.core.space",
    "unique_name": "workbench.study.study",
    "watch": "workbench.algos.rl.watch",
}

__all__ = list(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'workbench' has no attribute {name!r}; it has {', '.join(sorted(_WHERE))}")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_WHERE])
