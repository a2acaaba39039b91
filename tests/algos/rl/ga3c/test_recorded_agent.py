"""The agent that comes with the project plays as well as its recording says, checked from its checkpoint alone."""

import json

import pytest

from workbench.algos.rl.checkpoint import load_agent
from workbench.algos.rl.evaluate import PROTOCOLS
from workbench.core.places import DATA

AGENT = DATA / "pong-agent-slower"
RECORDED = json.loads((AGENT / "evaluation.json").read_text(encoding="utf-8"))


def test_the_recording_is_of_the_papers_protocol() -> None:
    assert (RECORDED["game"], RECORDED["protocol"], RECORDED["n_episodes"]) == ("pong", "ga3c", 30)
    assert RECORDED["mean"] >= 18


@pytest.mark.slow
def test_it_plays_as_recorded() -> None:
    played = PROTOCOLS["ga3c"].play(*load_agent(AGENT / "checkpoint"), seed=RECORDED["seed"])
    assert len(played.returns) == 30
    assert played.mean >= 18
    assert abs(played.mean - RECORDED["mean"]) < 1.5
