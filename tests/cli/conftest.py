"""Small studies, written down, and what a command that is refused says."""

import sys

from workbench.cli.main import main

# What checks notebooks makes a grammar of all that may be an address, for seconds, if it finds this; they have none.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
STUDY = """
[study]
name = "tiny"
nodes = 2
[space]
learning_rate = {log_uniform = [1e-4, 1e-2]}
[scheduler]
kind = "hypertrick"
n_trials = 3
n_phases = 2
[trainable]
kind = "ga3c"
game = "CartPole-v1"
phase = {frames = 1000}
"""
QUICK = """
[study]
name = "tiny"
nodes = 2
[space]
h0 = {uniform = [0, 1]}
h1 = {uniform = [0, 1]}
[scheduler]
kind = "hypertrick"
n_trials = 3
n_phases = 2
[trainable]
kind = "quadratic"
"""


def refused(capsys, *argv) -> str:
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    return line
