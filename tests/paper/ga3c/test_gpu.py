"""Trials side by side on one device."""

import pytest

from workbench.algos.rl.ga3c.trial import GA3C
from workbench.core.errors import InvalidInput
from workbench.paper.ga3c.gpu import _players


@pytest.mark.parametrize("trials", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_what_keeps_a_trial_from_beginning_is_told(trials) -> None:
    given = {"game": "Pong", "n_agents": 2, "n_groups": 1, "device": "meta9"}
    with _players(trials) as players, pytest.raises(InvalidInput, match="device"):
        players.play(GA3C, given, 0.1)
