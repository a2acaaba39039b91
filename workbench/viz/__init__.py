"""Frame → figure: pure functions that draw what the frames and their analyses hold, and a report of them."""

from workbench.viz.bands import bands
from workbench.viz.compare import compare_best, compare_survival
from workbench.viz.curves import best_so_far, learning_curves
from workbench.viz.hyperparameters import score_by_hyperparameter
from workbench.viz.importance import hyperparameter_importance
from workbench.viz.lineage import member_lineage, phylogenetic_tree
from workbench.viz.occupancy import node_occupancy, occupancy_over_time
from workbench.viz.population import hyperparameters_over_time, population_curves
from workbench.viz.report import report_html, write_report
from workbench.viz.survival import phase_survival
from workbench.viz.toy import toy_problem

__all__ = [
    "bands",
    "best_so_far",
    "compare_best",
    "compare_survival",
    "hyperparameter_importance",
    "hyperparameters_over_time",
    "learning_curves",
    "member_lineage",
    "node_occupancy",
    "occupancy_over_time",
    "phase_survival",
    "phylogenetic_tree",
    "population_curves",
    "report_html",
    "score_by_hyperparameter",
    "toy_problem",
    "write_report",
]
