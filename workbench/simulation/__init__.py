"""Studies in virtual time: one, and schedulers compared over many paired ones.

A simulated cluster runs what a real one would, on curves or on trials that truly train, and leaves the same log.
"""

from workbench.core.size import full_runs
from workbench.simulation.comparison import Comparison, arrival_bias, compare, regrets, wins_and_losses
from workbench.simulation.held_out import HeldOut, compare_held_out
from workbench.simulation.outcome import Outcome
from workbench.simulation.run import keep, simulate
from workbench.simulation.scenario import Repetition, Scenario, preset, presets, scenario_from

__all__ = [
    "Comparison",
    "HeldOut",
    "Outcome",
    "Repetition",
    "Scenario",
    "arrival_bias",
    "compare",
    "compare_held_out",
    "full_runs",
    "keep",
    "preset",
    "presets",
    "regrets",
    "scenario_from",
    "simulate",
    "wins_and_losses",
]
