"""Frame → figure: pure functions that draw what the frames and their analyses hold, and a report of them."""

from workbench.viz.bands import bands
from workbench.viz.compare import (
    compare_best,
    compare_curves,
    compare_importance,
    compare_survival,
    compare_time_to_best,
)
from workbench.viz.curves import best_so_far, learning_curves
from workbench.viz.export import write_figure
from workbench.viz.hyperparameters import score_by_hyperparameter
from workbench.viz.importance import hyperparameter_importance
from workbench.viz.lineage import member_lineage, phylogenetic_tree
from workbench.viz.occupancy import node_occupancy, occupancy_over_time
from workbench.viz.papers import adjustment, beside, estimates, sweep
from workbench.viz.parallel import parallel_coordinates
from workbench.viz.phases import score_by_phase, space_by_phase
from workbench.viz.population import hyperparameters_over_time, population_curves
from workbench.viz.report import report_html, write_report
from workbench.viz.scaling import scaling
from workbench.viz.speedup import speedup_by_variance
from workbench.viz.survival import phase_survival
from workbench.viz.toy import toy_problem

__all__ = [
    "adjustment",
    "bands",
    "beside",
    "best_so_far",
    "compare_best",
    "compare_curves",
    "compare_importance",
    "compare_survival",
    "compare_time_to_best",
    "estimates",
    "hyperparameter_importance",
    "hyperparameters_over_time",
    "learning_curves",
    "member_lineage",
    "node_occupancy",
    "occupancy_over_time",
    "parallel_coordinates",
    "phase_survival",
    "phylogenetic_tree",
    "population_curves",
    "report_html",
    "scaling",
    "score_by_hyperparameter",
    "score_by_phase",
    "space_by_phase",
    "speedup_by_variance",
    "sweep",
    "toy_problem",
    "write_figure",
    "write_report",
]
