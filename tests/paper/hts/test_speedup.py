"""The expectations behind HTS-RL's speed-up, against closed forms and draws."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from workbench.algos.rl.hts.step_time import StepTime
from workbench.algos.rl.hts.trial import HTS
from workbench.core.budget import Budget
from workbench.core.errors import InvalidInput
from workbench.paper.hts.speedup import (
    expected_longest_step,
    expected_longest_sum,
    expected_speedup,
    fingerprints,
    speedups,
    swept,
)


def harmonic(n):
    return sum(1 / k for k in range(1, n + 1))


@pytest.mark.parametrize("n", [1, 2, 16, 256])
def test_the_longest_of_exponential_steps_is_the_harmonic_number(n):
    assert expected_longest_step(StepTime(0.5, 1.0), n) == pytest.approx(0.5 * harmonic(n), rel=1e-6)


@pytest.mark.parametrize("n", [1, 3, 16])
def test_the_longest_of_pareto_steps_has_a_closed_form(n):
    """E max = x_m n B(n, 1 - 1/a)."""
    index = 1 + math.sqrt(1 + 2.0**-2)
    scale = (index - 1) / index
    beta = math.gamma(n) * math.gamma(1 - 1 / index) / math.gamma(n + 1 - 1 / index)
    assert expected_longest_step(StepTime(1.0, 2.0, "pareto"), n) == pytest.approx(scale * n * beta, rel=1e-5)


def test_two_sums_of_two_exponential_steps():
    """Of two gamma variables of shape 2: E max = 2 · 2 - E min, and E min = ∫ (1 + x)² e^-2x dx = 5/4."""
    assert expected_longest_sum(StepTime(1.0, 1.0), 2, 2) == pytest.approx(2.75, rel=1e-6)


def test_a_constant_time_leaves_only_the_learning_to_gain():
    constant = StepTime(0.01, 0.0)
    assert expected_speedup(constant, 16, 128).speedup == 1
    gained = expected_speedup(constant, 16, 10, learning_s=0.05)
    assert gained.synchronous_s == pytest.approx(0.015)
    assert gained.concurrent_s == pytest.approx(0.01)
    assert gained.speedup == pytest.approx(1.5)
    assert expected_speedup(constant, 16, 10, learning_s=0.2).concurrent_s == pytest.approx(0.02)  # learning is longer


def test_one_environment_waits_for_nobody():
    for law in ("gamma", "lognormal", "pareto"):
        assert expected_longest_step(StepTime(0.3, 1.5, law), 1) == pytest.approx(0.3, rel=1e-5)
    assert expected_speedup(StepTime(1.0, 2.0), 1, 64).speedup == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize(("law", "cv"), [("gamma", 0.3), ("gamma", 2.0), ("lognormal", 1.0), ("pareto", 0.3)])
def test_steps_and_sums_agree_with_draws(law, cv):
    step_time = StepTime(1.0, cv, law)
    drawn = step_time.draw(np.random.default_rng(1), (20_000, 8, 5))
    assert (drawn > 0).all()
    for found, draws in (
        (expected_longest_step(step_time, 8), drawn[:, :, 0].max(1)),
        (expected_longest_sum(step_time, 8, 5, n_draws=20_000), drawn.sum(2).max(1)),
    ):
        assert found == pytest.approx(draws.mean(), abs=6 * draws.std() / math.sqrt(len(draws)))


def test_more_variance_and_longer_intervals_gain_more():
    by_cv = [expected_speedup(StepTime(1.0, cv), 16, 128).speedup for cv in (0.1, 0.5, 1.0, 2.0, 3.0)]
    assert by_cv == sorted(by_cv)
    by_interval = [expected_speedup(StepTime(1.0, 1.0), 16, alpha).speedup for alpha in (1, 4, 16, 64, 256)]
    assert by_interval == sorted(by_interval)
    assert by_interval[0] == pytest.approx(1, rel=1e-6)
    assert by_interval[-1] < harmonic(16)  # the limit


def test_what_cannot_be_is_refused():
    with pytest.raises(InvalidInput, match="n_steps must be a whole number from 1, got 0"):
        expected_longest_sum(StepTime(1.0), 2, 0)


def test_the_deterministic_mode_comes_to_the_same_weights_with_any_number_of_actors():
    tiny = {"game": "CartPole-v1", "phase": Budget(updates=5), "n_agents": 3, "sync_interval": 4, "device": "cpu"}
    tiny |= {"max_episode_frames": 5}
    variants = {f"{n} actors": HTS(**tiny, n_actors=n) for n in (1, 4)}
    variants["slow steps"] = HTS(**tiny, step_time_mean_s=1e-3, step_time_cv=1.0)
    torch.set_num_threads(2)  # as in a fresh process: the first trial's weights are drawn like the others'
    found = fingerprints(variants, {"learning_rate": 1e-2})
    assert found["variant"].tolist() == ["1 actors", "4 actors", "slow steps"]
    assert found["updates"].tolist() == [5, 5, 5]
    assert found["weights"].nunique() == 1
    other = fingerprints({"another seed": variants["1 actors"]}, {"learning_rate": 1e-2}, seed=1)
    assert other["weights"].tolist() != found["weights"].tolist()[:1]


def test_runs_are_summed_up_beside_what_is_expected():
    """Constant steps of 10 ms, 5 of them an interval, updates of 25 ms: 15 ms a step in turn, 10 ms at once."""
    shown = {"law": "gamma", "cv": 0.0, "n_agents": 4, "sync_interval": 5, "mean_ms": 10.0}
    runs = [
        shown
        | {"speedup": ratio, "hts_return": ours, "synchronous_return": theirs, "synchronous_learning_s": 0.025}
        | {"hts_step_ms": 10.0, "hts_steps": 300, "synchronous_step_ms": 10 * ratio, "synchronous_steps": 200}
        for ratio, ours, theirs in ((1.4, 200.0, 190.0), (1.5, 210.0, 230.0), (1.6, 220.0, 210.0))
    ]
    (row,) = speedups(pd.DataFrame(runs)).to_dict("records")
    assert (row["law"], row["cv"], row["n"], row["speedup"]) == ("gamma", 0.0, 3, 1.5)
    assert (row["low"], row["high"]) == (1.4, 1.6)
    assert row["updates"] == pytest.approx(1.0)  # of HTS-RL's three intervals it trained on two
    assert (row["updates_low"], row["updates_high"]) == (pytest.approx(1.4 / 1.5), pytest.approx(1.6 / 1.5))
    assert (row["expected"], row["expected_with_learning"]) == (1.0, pytest.approx(1.5))
    assert row["difference"] == pytest.approx(0.0)
    assert row["difference_low"] < 0 < row["difference_high"]


def test_a_sweep_is_summed_up_beside_the_longest_sum_of_an_interval():
    """Exponential steps of 10 ms, 2 environments: the longer of two is 15 ms; of two sums of 4 it is 51 ms."""
    shown = {"setting": "interval", "n_agents": 2, "mean_ms": 10.0, "learning_s": 0.008}
    runs = [
        shown | {"value": alpha, "sync_interval": alpha, "step_ms": took, "return": 100.0 + took}
        for alpha, times in ((1, (16.0, 17.0, 18.0)), (4, (13.0, 14.0, 15.0)))
        for took in times
    ]
    one, four = swept(pd.DataFrame(runs)).to_dict("records")
    assert (one["value"], one["n"], one["step_ms"], one["step_ms_low"], one["step_ms_high"]) == (1, 3, 17, 16, 18)
    assert one["expected_ms"] == pytest.approx(15)
    draws = np.random.default_rng(0).gamma(4, 10.0, (100_000, 2)).max(1)
    assert four["expected_ms"] == pytest.approx(draws.mean() / 4, rel=0.01)
    assert (one["learning_ms"], four["learning_ms"]) == (8.0, 2.0)
    assert four["return"] == pytest.approx(114)
