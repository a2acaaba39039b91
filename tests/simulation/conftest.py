"""A small simulation, written down."""

import pytest

from workbench.core.toml import parsed
from workbench.simulation import scenario_from

FILE = """
[simulation]
name = "small"
[space]
learning_rate = {log_uniform = [1e-5, 1e-2]}
t_max = {log_uniform = [2, 100], step = 1}
[curves]
kind = "synthetic"
family = "crossing"
n_phases = 4
[cluster]
nodes = 3
speed_spread = 0.3
crash_rate = 0.02
[schedulers.hypertrick]
kind = "hypertrick"
n_trials = 12
[schedulers.all]
kind = "full"
n_trials = 12
"""


@pytest.fixture(scope="session")
def small():
    return scenario_from(parsed(FILE.encode(), "small"))
