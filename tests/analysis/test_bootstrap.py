import math

import numpy as np
import pytest
from scipy import stats

from workbench.analysis import bootstrap_interval, mean_of, median_of
from workbench.analysis.bootstrap import percentile_interval


@pytest.mark.parametrize(
    "of",
    [
        lambda runs, seed: bootstrap_interval(runs, resamples=100, seed=seed),
        lambda runs, seed: bootstrap_interval(runs, "mean", seed=seed),
    ],
)
def test_the_same_seed_gives_the_same_interval_and_another_seed_another(of):
    runs = list(np.random.default_rng(0).normal(size=50))
    assert of(runs, 7) == of(runs, 7) != of(runs, 8)


def test_the_mean_of_many_normal_runs_has_the_textbook_interval():
    runs = np.random.default_rng(1).normal(10.0, 2.0, 400)
    value, low, high = bootstrap_interval(runs, "mean")
    half = 1.96 * runs.std() / 20
    assert value == pytest.approx(runs.mean())
    assert (low, high) == pytest.approx((value - half, value + half), abs=0.02)


def test_an_interval_leaves_out_as_much_at_either_end_as_it_is_asked_to():
    assert percentile_interval(7.0, np.arange(101.0), 0.5) == (7.0, 25.0, 75.0)
    assert percentile_interval(7.0, np.arange(101.0), 0.9) == pytest.approx((7.0, 5.0, 95.0))


@pytest.mark.parametrize("n", [5, 6, 7, 8, 20])
def test_the_interval_of_a_median_is_the_sign_test_s(n) -> None:
    """It leaves a number out just where the test says that the median is another."""
    runs = np.random.default_rng(n).permutation(n) + 1.0
    value, low, high = median_of([*runs, math.nan, math.inf])
    assert value == (n + 1) / 2
    for other in np.arange(n + 1) + 0.5:
        told = stats.binomtest(int((runs > other).sum()), n).pvalue <= 0.05
        assert told is not (low <= other <= high)


def test_of_runs_too_few_for_the_sign_test_the_range_is_given_to_whom_asks_for_it() -> None:
    few = [3.0, 1.0, 2.0, 5.0, math.nan, 4.0]
    assert median_of(few) == (3, -math.inf, math.inf)
    assert median_of(few, or_range=True) == (3, 1, 5)
    many = np.random.default_rng(0).normal(size=30)
    assert median_of(many, or_range=True) == median_of(many)
    assert all(math.isnan(part) for part in median_of([], or_range=True))


def test_intervals_of_the_means_of_few_runs_are_student_s() -> None:
    # t(0.975, 2) = 4.3027; the deviation is 1
    assert mean_of([1.0, 2.0, 3.0]) == pytest.approx((2, 2 - 4.3027 / 3**0.5, 2 + 4.3027 / 3**0.5), abs=1e-3)
    assert mean_of([2.0, 2.0]) == (2, -math.inf, math.inf), "that two are equal is no certainty"
    assert mean_of([2.0]) == (2, -math.inf, math.inf)
    assert mean_of([2.0, math.inf]) == (math.inf, -math.inf, math.inf)


def test_with_three_seeds_one_interval_in_twenty_errs_as_the_page_says() -> None:
    drawn = np.random.default_rng(0).normal(10, 1, size=(400, 3))
    wrong = [not low <= 10 <= high for _, low, high in map(mean_of, drawn)]
    assert np.mean(wrong) == pytest.approx(0.05, abs=0.03)  # a bootstrap's: more than 0.2


def test_failed_runs_are_left_out():
    assert all(math.isnan(part) for part in median_of([math.nan]))
    assert bootstrap_interval([2.0, math.nan, 2.0]) == (2.0, 2.0, 2.0)
    assert all(math.isnan(part) for part in bootstrap_interval([math.nan]))


@pytest.mark.parametrize("n", [1, 2, 7, 10])
def test_the_median_of_a_draw_is_the_median_of_what_was_drawn(n) -> None:
    runs = np.sort(np.random.default_rng(n).normal(size=n))
    draw = np.random.default_rng(3).integers(n, size=(200, n))
    low, high = np.quantile(np.median(runs[draw], axis=1), [0.025, 0.975])
    for values in (runs, runs[::-1]):  # whatever order they came in
        assert bootstrap_interval(values, resamples=200, seed=3) == (np.median(runs), low, high)
