"""Frame → frame: what a study's frames say, as further frames and numbers.

Pure functions. Draws nothing, and reads no database.
"""

from workbench.analysis.bootstrap import Interval, bootstrap_interval, mean_of, median_of
from workbench.analysis.completion import completion_rate
from workbench.analysis.confirmed import claims, confirmed, leader_of, searching, up_to
from workbench.analysis.curves import best_so_far, learning_curves, training_began
from workbench.analysis.dependence import partial_dependence
from workbench.analysis.failures import failure_lines, failures
from workbench.analysis.front import front
from workbench.analysis.importance import Importance, importance
from workbench.analysis.landscape import landscape
from workbench.analysis.lineage import ancestry, best_trial, lineage, phylogeny, schedule_of, schedules
from workbench.analysis.occupancy import Occupancy, node_seconds, occupancy, occupancy_over_time
from workbench.analysis.summary import summarise
from workbench.analysis.survival import phase_modes, survival
from workbench.analysis.thin import thin_curves
from workbench.analysis.time_left import time_left

__all__ = [
    "Importance",
    "Interval",
    "Occupancy",
    "ancestry",
    "best_so_far",
    "best_trial",
    "bootstrap_interval",
    "claims",
    "completion_rate",
    "confirmed",
    "failure_lines",
    "failures",
    "front",
    "importance",
    "landscape",
    "leader_of",
    "learning_curves",
    "lineage",
    "mean_of",
    "median_of",
    "node_seconds",
    "occupancy",
    "occupancy_over_time",
    "partial_dependence",
    "phase_modes",
    "phylogeny",
    "schedule_of",
    "schedules",
    "searching",
    "summarise",
    "survival",
    "thin_curves",
    "time_left",
    "training_began",
    "up_to",
]
