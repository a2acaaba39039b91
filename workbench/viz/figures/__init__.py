"""Frame → figure: what the frames and their analyses hold, drawn; and a report of it.

Pure functions that give Plotly figures; colours and scales have one home, `theme` and `scales`.
"""

from workbench.viz.figures.bands import bands
from workbench.viz.figures.compare import (
    best_and_nodes,
    compare_best,
    compare_curves,
    compare_importance,
    compare_survival,
    compare_time_to_best,
)
from workbench.viz.figures.curves import best_so_far, learning_curves
from workbench.viz.figures.dependence import partial_dependence
from workbench.viz.figures.export import write_figure
from workbench.viz.figures.front import objectives
from workbench.viz.figures.hyperparameters import score_by_hyperparameter
from workbench.viz.figures.importance import hyperparameter_importance
from workbench.viz.figures.landscape import landscape
from workbench.viz.figures.lineage import member_lineage, phylogenetic_tree
from workbench.viz.figures.occupancy import node_occupancy, occupancy_over_time
from workbench.viz.figures.papers import adjustment, beside, estimates, sweep
from workbench.viz.figures.parallel import parallel_coordinates
from workbench.viz.figures.pbt_toy import toy_problem
from workbench.viz.figures.phases import score_by_phase, space_by_phase
from workbench.viz.figures.population import hyperparameters_over_time, population_curves
from workbench.viz.figures.report import report_html, write_report
from workbench.viz.figures.scaling import scaling
from workbench.viz.figures.speedup import speedup_by_variance
from workbench.viz.figures.survival import phase_survival

__all__ = [
    "adjustment",
    "bands",
    "beside",
    "best_and_nodes",
    "best_so_far",
    "compare_best",
    "compare_curves",
    "compare_importance",
    "compare_survival",
    "compare_time_to_best",
    "estimates",
    "hyperparameter_importance",
    "hyperparameters_over_time",
    "landscape",
    "learning_curves",
    "member_lineage",
    "node_occupancy",
    "objectives",
    "occupancy_over_time",
    "parallel_coordinates",
    "partial_dependence",
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
