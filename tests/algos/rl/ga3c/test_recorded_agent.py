"""The agent that comes with the project plays as well as its recording says, checked from its checkpoint alone."""

import pytest

from workbench.algos.rl.checkpoint import load_agent
from workbench.algos.rl.evaluate import PROTOCOLS
from workbench.core.places import DATA
from workbench.paper.evaluated import evaluations_of

AGENT = DATA / "pong-longer"
EVERY = evaluations_of(AGENT)
RECORDED = EVERY[0]  # of three seeds the first, whose checkpoint is kept


def test_the_recording_is_of_the_papers_protocol() -> None:
    for evaluation in EVERY:
        assert (evaluation["game"], evaluation["protocol"], evaluation["n_episodes"]) == ("pong", "ga3c", 30)
    assert RECORDED["mean"] >= 18


@pytest.mark.slow
def test_it_plays_as_recorded() -> None:
    played = PROTOCOLS["ga3c"].play(*load_agent(AGENT / "checkpoint"), seed=RECORDED["seed"])
    assert len(played.returns) == 30
    assert played.mean >= 18
    assert abs(played.mean - RECORDED["mean"]) < 1.5
