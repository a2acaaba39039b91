"""The agents that come with the project play as well as their recordings say, checked from their checkpoints alone."""

import pytest

from workbench.algos.rl.checkpoint import load_agent
from workbench.algos.rl.evaluate import PROTOCOLS
from workbench.core.places import DATA
from workbench.paper.evaluated import evaluations_of

# Recording → game, the score asked of it beforehand, and how far another processor's rounding may lead 30 games.
AGENTS = {"pong-longer": ("pong", 18, 1.5), "boxing-longer": ("boxing", 85, 3.0)}


@pytest.mark.parametrize("name", AGENTS)
def test_the_recording_is_of_the_papers_protocol(name) -> None:
    game, asked, _ = AGENTS[name]
    every = evaluations_of(DATA / name)
    for evaluation in every:
        assert (evaluation["game"], evaluation["protocol"], evaluation["n_episodes"]) == (game, "ga3c", 30)
    assert every[0]["mean"] >= asked


@pytest.mark.slow
@pytest.mark.parametrize("name", AGENTS)
def test_it_plays_as_recorded(name) -> None:
    _, asked, off = AGENTS[name]
    recorded = evaluations_of(DATA / name)[0]  # of several seeds the first, whose checkpoint is kept
    played = PROTOCOLS["ga3c"].play(*load_agent(DATA / name / "checkpoint"), seed=recorded["seed"])
    assert len(played.returns) == 30
    assert played.mean >= asked
    assert abs(played.mean - recorded["mean"]) < off
