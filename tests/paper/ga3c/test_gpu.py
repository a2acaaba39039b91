"""Trials side by side on one device."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from workbench.algos.rl.ga3c.trial import GA3C
from workbench.core.errors import InvalidInput
from workbench.paper.ga3c import gpu

NOWHERE = {"game": "Pong", "n_agents": 2, "n_groups": 1, "device": "meta9"}


@pytest.mark.parametrize("trials", [1, 2])
def test_what_keeps_a_trial_from_beginning_is_told(monkeypatch, trials) -> None:
    """In threads, for a process would be two seconds in coming."""
    all_up = threading.Barrier(trials + 1)
    monkeypatch.setattr(gpu, "_all_up", all_up)
    with ThreadPoolExecutor(trials) as pool, pytest.raises(InvalidInput, match="device"):
        gpu._Players(pool, all_up, trials).play(GA3C, NOWHERE, 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("trials", [1, 2])
def test_a_process_that_cannot_begin_its_trial_tells_why(trials) -> None:
    with gpu._players(trials) as players, pytest.raises(InvalidInput, match="device"):
        players.play(GA3C, NOWHERE, 0.1)
