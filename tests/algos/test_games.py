"""Trials over several games, on toy problems whose scores are known."""

import re

import numpy as np
import pytest
import torch

from tests.own import Climber
from workbench.algos.games import Games
from workbench.core.errors import InvalidInput, WorkbenchError

TWO = {
    "slow": lambda config, seed: Climber(config, seed, 1.0),
    "fast": lambda config, seed: Climber(config, seed, 10.0),
}


def test_the_score_is_the_mean_of_normalised_scores_and_each_is_reported() -> None:
    trial = Games(TWO, {"slow": (0, 1), "fast": (-1, 3)})({"lr": 0.1}, 0)
    heard: list[dict] = []
    found = trial.train_phase(heard.append)
    assert found == {
        "slow/score": 0.1, "fast/score": 1.0, "score": 0.3,
        "slow/updates": 1, "fast/updates": 1, "updates": 2,
    }  # fmt: skip
    assert heard == [{"slow/updates": 1}, {"fast/updates": 1}]


def test_an_agent_may_be_a_function() -> None:
    def rising(config):
        yield from (1.0, 2.0)

    trial = Games({"one": rising}, {"one": (0, 4)})({}, 0)
    assert [trial.train_phase(lambda metrics: None)["score"] for _ in range(2)] == [0.25, 0.5]
    trial.close()


class Measuring(Climber):
    """Gives back what it was told to."""

    def train_phase(self, progress):
        return self.rate


def test_numbers_of_any_library_are_reported_of_each_game() -> None:
    agent = Measuring({}, 0)
    agent.rate = {"score": torch.tensor(1.0, requires_grad=True), "loss": np.float32(0.5), "returns": [1.0, 2.0]}
    trial = Games({"one": lambda config, seed: agent}, {"one": (0, 2)})({}, 0)
    measured = trial.train_phase(lambda metrics: None)
    assert measured == {"one/score": 1.0, "one/loss": 0.5, "score": 0.5}
    assert all(type(value) is float for value in measured.values())


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (None, "one: train_phase returns a dict of metrics, {'score': …} at least, got None"),
        ({"loss": 1.0}, "one: train_phase returned no score, only ['loss']"),
        ({"score": "high"}, "one: every metric is one number, got {'score': 'high'}: "),
        ({"score": 1.0, "returns": 3.0}, "one: metrics['returns'] holds the returns"),
    ],
)
def test_an_agent_without_a_number_for_a_score_is_named(found, said) -> None:
    agent = Measuring({}, 0)
    agent.rate = found
    with pytest.raises(WorkbenchError, match=re.escape(said)):
        Games({"one": lambda config, seed: agent}, {"one": (0, 2)})({}, 0).train_phase(lambda metrics: None)


def test_each_game_starts_from_a_seed_of_its_own() -> None:
    seeds = []
    watched = {name: lambda config, seed: (seeds.append(seed), Climber(config, seed))[1] for name in ("a", "b")}
    Games(watched, {"a": (0, 1), "b": (0, 1)})({}, 7)
    assert len(set(seeds)) == 2


def test_an_agent_that_cannot_be_built_leaves_none_open() -> None:
    closed = []

    class Watched(Climber):
        def close(self) -> None:
            closed.append(self)

    def broken(config, seed):
        raise RuntimeError("no such emulator")

    with pytest.raises(RuntimeError, match="no such emulator"):
        Games({"a": Watched, "b": broken}, {"a": (0, 1), "b": (0, 1)})({}, 0)
    assert len(closed) == 1


def test_an_agent_that_cannot_be_closed_leaves_none_open() -> None:
    closed = []

    class Watched(Climber):
        def close(self) -> None:
            closed.append(self)

    class Stuck(Climber):
        def close(self) -> None:
            raise OSError("the emulator hangs")

    trial = Games({"a": Stuck, "b": Watched, "c": Stuck}, dict.fromkeys("abc", (0, 1)))({}, 0)
    with pytest.raises(OSError, match="the emulator hangs"):
        trial.close()
    assert len(closed) == 1


@pytest.mark.parametrize(
    ("agents", "between", "said"),
    [
        ({}, {}, "what is trained on which game"),
        (TWO, {"slow": (0, 1)}, "the scores that count as 0 and 1 for each of slow, fast"),
        (TWO, {"slow": (0, 1), "fast": (1, 1)}, "between, fast: two numbers, low < high"),
        ({"a/b": Climber}, {"a/b": (0, 1)}, "a word without a slash"),
        ({"a": 3}, {"a": (0, 1)}, "a: pass what is trained"),
        (
            {"a": {"kind": "ba3c", "game": "Pong", "phase": {"updates": 1}, "n_ranks": 2}},
            {"a": (0, 1)},
            "on one worker",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(agents, between, said) -> None:
    with pytest.raises(InvalidInput, match=said):
        Games(agents, between)
