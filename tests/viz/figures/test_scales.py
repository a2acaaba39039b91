import numpy as np
import pandas as pd
import pytest

from workbench.viz.figures.scales import positions, scale_of, shares, ticks


def test_log_linear_or_category():
    assert scale_of(pd.Series([1e-5, 1e-2])).kind == "log"
    assert scale_of(pd.Series([2, 100])).kind == "log"
    assert [scale_of(pd.Series([1.0, high])).kind for high in (20.0, 20.1)] == ["linear", "log"]
    assert scale_of(pd.Series([0.5, 0.9])).kind == "linear"
    assert scale_of(pd.Series([-1.0, 1000.0])).kind == "linear"
    assert scale_of(pd.Series(["b", "a", "b"])) == ("category", ["a", "b"])
    assert scale_of(pd.Series([True, False])) == ("category", ["False", "True"])
    assert scale_of(pd.Series([], dtype=object)).kind == "linear"


def test_discounts_near_one_are_spread():
    gammas = pd.Series([0.9, 0.99, 0.999, 0.9999, 0.99, 0.9])
    scale = scale_of(gammas)
    assert scale == ("category", ["0.9", "0.99", "0.999", "0.9999"])
    assert positions(gammas, scale).tolist() == [0, 1, 2, 3, 1, 0]


def test_what_has_no_end_is_a_category_and_the_last_of_them():
    clips = pd.Series([40.0, np.inf, 0.5, np.inf])
    scale = scale_of(clips)
    assert scale == ("category", ["0.5", "40", "inf"])
    assert shares(clips, scale).tolist() == [0.5, 1, 0, 1]
    assert ticks(clips, scale) == ([0, 0.5, 1], scale.order)


def test_shares_run_from_nothing_to_all():
    values = pd.Series([1e-4, 1e-2, 1e-3])
    assert shares(values, scale_of(values)).tolist() == pytest.approx([0, 1, 0.5])
    assert shares(pd.Series([7.0, 7.0]), scale_of(pd.Series([7.0, 7.0]))).tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("ends", "marks", "at"),
    [
        ([0, 10], ["0", "5", "10"], [0, 0.5, 1]),
        ([10, 40], ["10", "20", "30", "40"], [0, 1 / 3, 2 / 3, 1]),
        ([-5, 15], ["-5", "0", "5", "10", "15"], [0, 0.25, 0.5, 0.75, 1]),
        ([12, 27], ["15", "20", "25"], [0.2, 8 / 15, 13 / 15]),
        ([-0.5, -0.1], ["-0.5", "-0.4", "-0.3", "-0.2", "-0.1"], [0, 0.25, 0.5, 0.75, 1]),
        ([3], ["3"], [0.5]),
    ],
)
def test_ticks_are_round_and_lie_where_their_values_do(ends, marks, at):
    values = pd.Series(ends, dtype=float)
    places, labels = ticks(values, scale_of(values))
    assert labels == marks
    assert places == pytest.approx(at)


@pytest.mark.parametrize(
    ("ends", "marks"),
    [
        ([2, 90], ["2", "5", "10", "20", "50"]),
        ([1e-5, 1e-2], ["1e-05", "0.0001", "0.001", "0.01"]),
        ([0.004, 0.6], ["0.005", "0.01", "0.02", "0.05", "0.1", "0.2", "0.5"]),
        ([1e-9, 1e12], ["1e-09", "1e-06", "0.001", "1", "1000", "1e+06", "1e+09", "1e+12"]),
        ([1e-200, 1e200], ["1e-180", "1e-135", "1e-90", "1e-45", "1", "1e+45", "1e+90", "1e+135", "1e+180"]),
    ],
)
def test_marks_of_a_logarithmic_bar_are_by_decades_and_between_few_of_them(ends, marks):
    values = pd.Series(ends, dtype=float)
    places, labels = ticks(values, scale_of(values))
    assert labels == marks
    of_marks = shares(pd.Series([*ends, *map(float, marks)]), scale_of(values))
    assert places == pytest.approx(of_marks[2:].tolist())


def test_no_two_marks_or_categories_read_alike():
    scores = pd.Series([1e6 + 0.1, 1e6 + 0.9])
    labels = ticks(scores, scale_of(scores))[1]
    assert "1000000.5" in labels
    assert len(set(labels)) == len(labels) >= 7
    near = pd.Series([0.9, 0.9999999, 0.99999999, 0.9])
    assert scale_of(near) == ("category", ["0.9", "0.9999999", "0.99999999"])
    assert positions(near, scale_of(near)).tolist() == [0, 1, 2, 0]
