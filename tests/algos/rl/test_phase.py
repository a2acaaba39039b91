"""When a phase is over, by its budget and its games, and how one that was cut short is gone on with."""

import json

import numpy as np
import pytest

from workbench.algos.rl.episodes import Episodes
from workbench.algos.rl.phase import Phase
from workbench.core.budget import Budget
from workbench.core.errors import InvalidInput


def begun(budget: Budget, steps: float = 0, **more) -> Phase:
    phase = Phase(budget, 2, 50, "Mine-v0", "cut it off", **more)
    phase.begin(counted(steps))
    return phase


def counted(steps: float, episodes: int = 0, updates: int = 0, seconds: float = 0.0) -> dict[str, float]:
    return {"steps": steps, "episodes": episodes, "updates": updates, "seconds": seconds}


def test_a_phase_ends_with_its_budget_and_its_games_and_waits_for_one_as_long_as_the_longest_take():
    phase = begun(Budget(frames=100))
    assert not phase.over(counted(90))  # the budget is not spent: nobody waits
    assert not phase.over(counted(99, 2))
    assert phase.over(counted(100, 2))
    phase.begin(counted(100, 2))
    assert not phase.over(counted(220, 3))
    assert not phase.over(counted(270, 3))  # 50 since the last game
    with pytest.raises(InvalidInput, match=r"no game of Mine-v0 has ended in 51 frames.*cut it off"):
        phase.over(counted(271, 3))


def test_a_budget_of_games_waits_for_the_first_no_longer():
    phase = begun(Budget(episodes=3))
    assert not phase.over(counted(50))
    with pytest.raises(InvalidInput, match="in 51 frames"):
        phase.over(counted(51))


def test_a_step_may_be_several_frames():
    phase = begun(Budget(frames=100), 1000, frames_per_step=4)
    assert phase.used(counted(1024, 2, 3, 0.5)) == {"frames": 96, "episodes": 2, "updates": 3, "seconds": 0.5}
    assert not phase.over(counted(1024, 2))
    assert phase.over(counted(1025, 2))


def test_a_phase_that_is_gone_on_with_in_new_environments_waits_for_their_games_as_long():
    stopped, phase = begun(Budget(frames=100)), begun(Budget(frames=100))
    assert not stopped.over(counted(20, 1))
    phase.load_state_dict(stopped.state_dict(0.0))
    phase.begin(counted(130, 1))
    assert not phase.over(counted(180, 1))
    with pytest.raises(InvalidInput, match="in 51 frames"):
        phase.over(counted(181, 1))


def test_a_phase_is_gone_on_with_only_if_it_was_cut_short():
    phase, again = begun(Budget(seconds=10), 500), begun(Budget(seconds=10))
    saved = json.loads(json.dumps(phase.state_dict(7.0)))
    again.load_state_dict(saved)
    assert again.state_dict(1.0) == saved  # saved again before it went on
    again.begin(counted(600))
    assert again.used(counted(600, seconds=2.0)) == {"frames": 100, "episodes": 0, "updates": 0, "seconds": 9.0}
    assert again.state_dict(2.0)["seconds"] == -9.0
    again.end()
    assert again.state_dict(3.0) is None
    again.begin(counted(700))
    assert again.used(counted(700))["frames"] == 0


@pytest.mark.parametrize(("games_an_agent", "low", "high"), [(1, 0.4, 0.7), (3, 0.85, 0.97)])
def test_in_environments_that_begin_together_the_first_games_to_end_are_the_shortest(games_an_agent, low, high):
    """Lengths from 50 to 550, 300 in the mean: a limitation, for which phases should hold three games an agent."""
    n, rng, scores = 32, np.random.default_rng(0), []
    for _ in range(6):
        phase = Phase(Budget(frames=n * 300 * games_an_agent), 10, 10**6, "Mine-v0", "")
        episodes, left, frames = Episodes(n, 100), rng.integers(50, 551, n), 0
        while not phase.over(counted(frames, episodes.finished)):
            left, frames = left - 1, frames + n
            episodes.add(np.arange(n), np.ones(n), left == 0)
            left = np.where(left == 0, rng.integers(50, 551, n), left)
        scores.append(episodes.means()["score"] / 300)
    assert low < np.mean(scores) < high
