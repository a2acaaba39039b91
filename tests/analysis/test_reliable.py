import sys
from types import SimpleNamespace

import numpy as np
import pytest

from workbench.analysis.reliable import (
    interquartile_mean,
    performance_profile,
    performance_profiles,
    probability_of_improvement,
    stratified_interval,
)
from workbench.core.errors import InvalidInput
from workbench.viz.figures import bands


def test_statistics_by_hand() -> None:
    scores = [[0.0, 2.0], [1.0, 3.0], [5.0, 9.0], [2.0, 1.0]]  # in order 0 1 1 2 | 2 3 5 9
    assert interquartile_mean(scores) == (1 + 2 + 2 + 3) / 4
    assert interquartile_mean([1.0, 2.0, 6.0]) == 3.0
    assert performance_profile(scores, [0, 1, 9]).tolist() == [7 / 8, 5 / 8, 0.0]
    assert probability_of_improvement([1.0, 3.0], [2.0, 1.0]) == (0 + 0.5 + 1 + 1) / 4


def test_profiles_of_two_by_hand() -> None:
    """The second lies above the first wherever they differ; where all runs of a task are alike nothing moves."""
    frame = performance_profiles(
        {"a": [[0.0, 1.0], [0.0, 1.0]], "b": [[1.0, 1.0], [1.0, 1.0]]}, [-1, 0.5, 1], resamples=50
    )
    assert list(frame.columns) == ["scheduler", "at", "median", "low", "high"]
    assert frame["median"].tolist() == [1.0, 0.5, 0.0, 1.0, 1.0, 0.0]
    assert (frame[["low", "high"]].to_numpy() == frame[["median"]].to_numpy()).all()
    thirds = performance_profiles({"a": [0.0, 0.0, 1.0]}, [0.5])  # all three above: one draw in 27, more than 2.5 %
    assert thirds[["median", "low", "high"]].to_numpy()[0] == pytest.approx([1 / 3, 0.0, 1.0])
    narrower = performance_profiles({"a": [0.0, 0.0, 1.0]}, [0.5], confidence=0.8)
    assert narrower[["median", "low", "high"]].to_numpy()[0] == pytest.approx([1 / 3, 0.0, 2 / 3])
    noisy = performance_profiles({"a": np.random.default_rng(0).normal(size=(9, 3))}, resamples=200)
    assert len(noisy) == 51
    assert ((noisy["low"] <= noisy["median"]) & (noisy["median"] <= noisy["high"])).all()
    assert (noisy["high"] - noisy["low"]).max() > 0.1
    assert noisy["median"].iloc[-1] == 0  # nothing is above the highest
    assert bands(noisy, "Profiles", "score", "share of runs above").data
    with pytest.raises(InvalidInput, match="the same tasks, got 2 and 3"):
        performance_profiles({"a": np.zeros((4, 2)), "b": np.zeros((4, 3))})


@pytest.mark.parametrize(("scores", "got"), [([1.0, 2.0, 3.0, np.nan], "NaN"), ([], "none"), ([None, 1.0], "NaN")])
def test_runs_without_a_score_are_refused_for_they_would_count_as_the_best(scores, got) -> None:
    for statistic in (
        interquartile_mean,
        lambda given: performance_profile(given, [0.0]),
        lambda given: performance_profiles({"a": given}),
        lambda given: probability_of_improvement([1.0], given),
        lambda given: stratified_interval(interquartile_mean, given),
    ):
        with pytest.raises(InvalidInput, match=f"one number or more, got {got}: leave failed runs out"):
            statistic(scores)


def test_an_interval_draws_each_task_s_runs_apart() -> None:
    """Where every run of a task scores alike, drawing again changes nothing; where tasks were mixed it would."""
    same = np.repeat([[0.0, 10.0]], 6, axis=0)
    assert stratified_interval(interquartile_mean, same, resamples=200) == (5.0, 5.0, 5.0)
    mirrored = [[0.0, 1.0], [1.0, 0.0]]  # whole runs, drawn again, would always come to a half
    assert stratified_interval(interquartile_mean, mirrored, resamples=200) == (0.5, 0.0, 1.0)
    runs = np.random.default_rng(0).normal(size=(30, 3))
    found = stratified_interval(interquartile_mean, runs, resamples=500)
    assert found.low < found.value < found.high
    assert found == stratified_interval(interquartile_mean, runs, resamples=500)


def test_an_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    covered = 0
    for n in range(100):
        found = stratified_interval(interquartile_mean, rng.normal(size=(20, 2)), resamples=100, seed=n)
        covered += found.low <= 0 <= found.high
    assert 88 <= covered <= 99


def test_other_tasks_are_refused() -> None:
    with pytest.raises(InvalidInput, match="the same tasks, got 2 and 3"):
        probability_of_improvement(np.zeros((4, 2)), np.zeros((4, 3)))


@pytest.mark.parametrize("seed", range(5))
def test_statistics_equal_rliable_s(seed, monkeypatch) -> None:
    """Needs rliable 1.2.0. Of arch it takes a class for its bootstrap, not used here; arch fails beside pandas 3.1."""
    metrics = pytest.importorskip("rliable.metrics")
    rng = np.random.default_rng(seed)
    scores, others = rng.normal(size=(int(rng.integers(3, 20)), 4)), np.round(rng.normal(size=(7, 4)), 1)
    assert interquartile_mean(scores) == pytest.approx(metrics.aggregate_iqm(scores))
    rounded = np.round(scores, 1)
    assert probability_of_improvement(rounded, others) == pytest.approx(
        metrics.probability_of_improvement(rounded, others)
    )
    arch = SimpleNamespace(bootstrap=SimpleNamespace(IIDBootstrap=object, IndependentSamplesBootstrap=object))
    monkeypatch.setitem(sys.modules, "arch", arch)
    monkeypatch.setitem(sys.modules, "arch.bootstrap", arch.bootstrap)
    library = pytest.importorskip("rliable.library")
    at = np.linspace(-2, 2, 9)
    theirs = [library.run_score_deviation(rounded, tau) for tau in at]
    assert performance_profile(rounded, at) == pytest.approx(theirs)
