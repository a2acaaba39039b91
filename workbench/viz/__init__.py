"""Frame → figure: pure functions that draw what the frames and their analyses hold, and a report of them."""

from workbench.viz.bands import bands
from workbench.viz.compare import compare_best, compare_survival
from workbench.viz.curves import best_so_far, learning_curves
from workbench.viz.hyperparameters import score_by_hyperparameter
from workbench.viz.importance import hyperparameter_importance
from workbench.viz.occupancy import node_occupancy, occupancy_over_time
from workbench.viz.report import report_html, write_report
from workbench.viz.survival import phase_survival
from workbench.viz.toy import toy_problem

__all__ = [
    "bands",
    "best_so_far",
    "compare_best",
    "compare_survival",
    "hyperparameter_importance",
    "learning_curves",
    "node_occupancy",
    "occupancy_over_time",
    "phase_survival",
    "report_html",
    "score_by_hyperparameter",
    "toy_problem",
    "write_report",
]
