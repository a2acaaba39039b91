"""Step times: their laws, and environments that sleep for as long and play the same game."""

import math

import numpy as np
import pytest

from workbench.algos.rl.envs import make_envs
from workbench.algos.rl.games import find_game
from workbench.algos.rl.hts.step_time import LAWS, SlowEnvs, StepTime
from workbench.core.errors import InvalidInput


@pytest.mark.parametrize("law", [law for law in LAWS if law != "constant"])
@pytest.mark.parametrize("cv", [0.2, 1.0, 3.0])
def test_mean_and_variation_are_as_asked(law, cv):
    found = StepTime(0.02, cv, law).distribution()
    assert found.mean() == pytest.approx(0.02)
    assert found.std() == pytest.approx(0.02 * cv, rel=1e-6)


@pytest.mark.parametrize("law", [law for law in LAWS if law != "constant"])
def test_draws_follow_the_distribution(law):
    step_time = StepTime(2.0, 0.8, law)
    drawn = np.sort(step_time.draw(np.random.default_rng(0), 20_000))
    ranks = (np.arange(len(drawn)) + 0.5) / len(drawn)
    assert np.abs(step_time.distribution().cdf(drawn) - ranks).max() < 1.95 / math.sqrt(len(drawn))  # Kolmogorov, 0.1 %


def test_a_gamma_law_of_variation_one_is_exponential():
    assert StepTime(2.0, 1.0).distribution().sf(3.0) == pytest.approx(math.exp(-1.5))


def test_a_constant_is_drawn_without_a_distribution():
    assert StepTime(0.5, 0.0).draw(np.random.default_rng(0), (2, 3)).tolist() == [[0.5] * 3] * 2
    with pytest.raises(InvalidInput, match="no distribution"):
        StepTime(0.5, 0.0, "constant").distribution()


def test_slow_environments_sleep_for_their_slowest_and_play_the_same(monkeypatch):
    slept = []
    monkeypatch.setattr("workbench.algos.rl.hts.step_time.time.sleep", slept.append)
    step_time, game = StepTime(0.01, 1.0), find_game("CartPole-v1")
    plain, slow = make_envs(game, 3, 7), SlowEnvs(make_envs(game, 3, 7), step_time, np.random.default_rng(5))
    for _ in range(30):
        one, other = plain.recv(), slow.recv()
        assert (one.obs == other.obs).all()
        assert (one.started == other.started).all()
        for envs in (plain, slow):
            envs.send(np.ones(3, np.int64))
    generator = np.random.default_rng(5)
    assert slept == [step_time.draw(generator, 3).max() for _ in range(29)]  # not before the first observation
    plain.close()
    slow.close()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"law": "weibull"}, "unknown law of step times"),
        ({"mean_s": -1}, "mean_s from 0"),
        ({"mean_s": "1"}, "mean_s from 0, got '1'"),
        ({"cv": math.inf}, "cv a number from 0"),
        ({"cv": None}, "cv a number from 0"),
        ({"law": "constant", "cv": 1.0}, "0 if constant"),
    ],
)
def test_what_is_no_law_is_refused(given, message):
    with pytest.raises(InvalidInput, match=message):
        StepTime(**{"mean_s": 1.0, **given})
