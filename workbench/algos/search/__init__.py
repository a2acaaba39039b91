"""The metaoptimizers: pure state machines that decide which trial runs, goes on, waits or stops.

And the searchers that propose configurations. No clock, no thread, no input or output.
"""

from workbench.algos.search.asha import ASHA
from workbench.algos.search.cost_aware import CostAwareSearcher
from workbench.algos.search.evolution import EvolutionSearcher
from workbench.algos.search.full import FullRuns
from workbench.algos.search.halving import SuccessiveHalving
from workbench.algos.search.hyperband import Hyperband
from workbench.algos.search.hypertrick import HyperTrick
from workbench.algos.search.informed import InformedSearcher
from workbench.algos.search.median import MedianStopping
from workbench.algos.search.mfpbt import MFPBT
from workbench.algos.search.optuna import OptunaSearcher
from workbench.algos.search.pasha import PASHA
from workbench.algos.search.pb2 import PB2
from workbench.algos.search.pbt import PBT
from workbench.algos.search.portfolio import Portfolio
from workbench.algos.search.searchers import GridSearcher, ListSearcher, RandomSearcher
from workbench.algos.search.seeded import Seeded
from workbench.algos.search.smac import SMACSearcher
from workbench.algos.search.sure import Sure
from workbench.algos.search.topk import TopK

__all__ = [
    "ASHA",
    "MFPBT",
    "PASHA",
    "PB2",
    "PBT",
    "CostAwareSearcher",
    "EvolutionSearcher",
    "FullRuns",
    "GridSearcher",
    "HyperTrick",
    "Hyperband",
    "InformedSearcher",
    "ListSearcher",
    "MedianStopping",
    "OptunaSearcher",
    "Portfolio",
    "RandomSearcher",
    "SMACSearcher",
    "Seeded",
    "SuccessiveHalving",
    "Sure",
    "TopK",
]
