"""The rules by which a verdict comes about, on numbers worked by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from workbench.analysis.bootstrap import Interval
from workbench.core.errors import InvalidInput
from workbench.paper import verdicts
from workbench.paper.numbers import Origin, Ours, Published, claims_of, find, numbers_of

FROM = Origin("measured", "workbench reproduce some", "minutes")
CLAIM = Published("A paper", "Sec. 1", "ours is better")


def number(value: float) -> Published:
    return Published("A paper", "Table 1", "a number", value, "%")


def verdict(pair) -> str:
    return pair[1].verdict


@pytest.mark.parametrize(
    ("printed", "value", "found"),
    [
        (37.75, 37.747, "exact"),
        (37.75, 37.745, "exact"),  # half a digit, though their difference comes out a hair above it
        (37.75, 37.744, "differs"),
        (46, 46.6, "differs"),
        (61, 61.75, "differs"),
        (0.4, 0.39, "exact"),
        (332_295, 332_296, "differs"),
        (1, math.nan, "differs"),
        (1e-5, 1.4e-5, "exact"),
        (1e-5, 2e-5, "differs"),
    ],
)
def test_a_formula_is_exact_to_the_printed_digits_or_differs(printed, value, found) -> None:
    assert verdict(verdicts.exact(number(printed), value, FROM)) == found


def test_a_claim_in_words_has_no_digits() -> None:
    with pytest.raises(ValueError, match="is a claim in words"):
        verdicts.exact(CLAIM, 1.0, FROM)


def test_what_was_fitted_and_what_was_run_on_something_else_never_agrees() -> None:
    assert verdict(verdicts.by_construction(number(1), 1, FROM, "searched for")) == "by construction"
    assert verdict(verdicts.not_comparable(number(1), 1, FROM, "no GPU")) == "not comparable"


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [(1.1, 2.0, "agrees"), (0.2, 0.9, "differs"), (0.9, 2.0, "undecided"), (-math.inf, math.inf, "undecided")],
)
def test_an_interval_on_one_side_of_a_bound_decides(low, high, found) -> None:
    interval = Interval(1.0, low, high)
    pair = verdicts.above(CLAIM, interval, 1, FROM, "a ratio")
    assert verdict(pair) == found
    assert pair[1].interval == (low, high)
    assert pair[1].why == "a ratio; agrees above 1"
    opposite = {"agrees": "differs", "differs": "agrees"}.get(found, found)
    assert verdict(verdicts.below(CLAIM, interval, 1, FROM, "")) == opposite


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [(-9, 9, "agrees"), (-9, 11, "undecided"), (-50, 50, "undecided"), (11, 50, "differs"), (-50, -11, "differs")],
)
def test_alike_needs_the_whole_interval_so_that_a_wide_one_proves_nothing(low, high, found) -> None:
    pair = verdicts.within(CLAIM, Interval(0, low, high), -10, 10, FROM, "a gap")
    assert verdict(pair) == found
    assert pair[1].why == "a gap; agrees from -10 to 10"


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [
        (1, 30, "agrees"),
        (1, 5, "agrees"),
        (0, 0, "differs"),
        (0, 11, "undecided"),
        (-5, 5, "differs"),
        (-30, -1, "differs"),
        (-5, 11, "undecided"),
    ],
)
def test_a_gain_that_is_nearly_none_contradicts_as_a_loss_does(low, high, found) -> None:
    assert verdict(verdicts.better(CLAIM, Interval(0, low, high), FROM, "")) == found


@pytest.mark.parametrize(
    ("holds", "chance", "found"), [(True, 0.01, "agrees"), (True, 0.06, "undecided"), (False, 0.01, "undecided")]
)
def test_without_repetitions_the_false_positive_rate_is_told_and_a_high_one_decides_nothing(
    holds, chance, found
) -> None:
    pair = verdicts.met(CLAIM, holds, 1.0, chance, FROM, "")
    assert (verdict(pair), pair[1].chance) == (found, chance)


@pytest.mark.parametrize(("miss", "found"), [(0.0, "differs"), (0.05, "differs"), (0.06, "undecided")])
def test_a_miss_contradicts_only_where_it_would_be_rare_were_the_claim_true(miss, found) -> None:
    assert verdict(verdicts.met(CLAIM, False, 1.0, 0.01, FROM, "", miss=miss)) == found


@pytest.mark.parametrize(
    ("low", "high", "rival", "found"),
    [(-16, 5, 460, "undecided"), (-16, 5, 440, "differs"), (-16, -1, 500, "differs"), (1, 5, 480, "agrees")],
)
def test_a_rival_that_has_nearly_all_there_is_leaves_no_room_for_a_gain(low, high, rival, found) -> None:
    gap = Interval((low + high) / 2, low, high)
    pair = verdicts.better(CLAIM, gap, FROM, "ours less theirs", rival=[rival, rival])
    assert verdict(pair) == found
    assert ("near 500, the most there is" in pair[1].why) == (rival > 450)
    busy = verdicts.better(CLAIM, gap, FROM, "ours less theirs", "points", rival=rival / 5, most=100)
    assert verdict(busy) == found
    assert ("near 100, the most there is" in busy[1].why) == (rival > 450)


def test_being_alike_where_all_have_nearly_all_there_is_proves_nothing() -> None:
    alike = verdicts.within(CLAIM, Interval(0, -1, 1), -10, 10, FROM, "ours less theirs", "%")
    assert verdict(alike) == "agrees"
    assert verdict(verdicts.with_room(alike, [490, 500], 470)) == "undecided"
    assert verdict(verdicts.with_room(alike, [490, 500], 300)) == "agrees"


def test_what_is_not_needed_without_it_is_not_made_needless() -> None:
    free = verdicts.above(CLAIM, Interval(5, 1, 9), -10, FROM, "free less clipped", "%")
    worse = verdicts.above(CLAIM, Interval(-50, -60, -40), -10, FROM, "free less clipped", "%")
    gained, not_gained = Interval(5, 1, 9), Interval(5, -1, 9)
    assert [verdict(verdicts.where_needed(free, gain)) for gain in (gained, not_gained)] == ["agrees", "undecided"]
    assert [verdict(verdicts.where_needed(worse, gain)) for gain in (gained, not_gained)] == ["differs", "differs"]


def test_values_rise_in_order_or_do_not() -> None:
    found = [verdict(verdicts.rising(CLAIM, v, FROM, "")) for v in ([1, 2, 3, 4, 5], [5, 4, 3, 2, 1], [1, 3, 2, 5, 4])]
    assert found == ["agrees", "differs", "undecided"]
    assert verdict(verdicts.rising(CLAIM, [1, 2, 3], FROM, "")) == "undecided"  # by chance one time in six
    assert verdict(verdicts.rising(CLAIM, [0, 0, 0, 1, 1], FROM, "")) == "undecided"  # in ten, with as many equals
    for values in ([1, 2, math.nan, 3, 4, 5], list(range(10))):
        with pytest.raises(InvalidInput, match="asked of 9 numbers at most, got"):
            list(verdicts.rising(CLAIM, values, FROM, ""))


def test_nothing_agrees_without_an_interval_or_a_false_positive_rate() -> None:
    with pytest.raises(ValueError, match="neither an interval nor a false-positive rate"):
        Ours(1.0, FROM, "agrees", "looks alike")
    assert Ours(1.0, FROM, "agrees", interval=(0.9, 1.1)).verdict == "agrees"


def test_what_holds_in_all_of_a_few_runs_need_not_hold_in_most() -> None:
    assert verdicts.share_of([True] * 6) == pytest.approx((100, 100 * 0.025 ** (1 / 6), 100))  # 54 %
    assert verdicts.share_of([True] * 4) == pytest.approx((100, 100 * 0.025 ** (1 / 4), 100))  # 40 %
    assert verdicts.share_of([True, False]) == pytest.approx((50, 100 * (1 - 0.975**0.5), 100 * 0.975**0.5))


def test_gains_are_told_in_per_cent_of_the_other_s_mean() -> None:
    ours, theirs = [11.0, 12.0, 13.0], [9.0, 10.0, 11.0]
    # variances of the means 1/3, t(0.975, 4)^2 = 7.7086; so a = 100 - 2.5695, b = 120, c = 144 - 2.5695
    root = (120**2 - 97.4305 * 141.4305) ** 0.5
    limits = [100 * ((120 + sign * root) / 97.4305 - 1) for sign in (-1, 1)]
    assert verdicts.percent(ours, theirs) == pytest.approx((20, *limits), abs=1e-2)
    below = verdicts.percent(np.negative(ours), np.negative(theirs))  # as scores of Pong
    assert below == pytest.approx((-20, -limits[1], -limits[0]), abs=1e-2)
    assert verdicts.negated(Interval(1, 0, 3)) == (-1, -3, 0)


def test_gains_of_what_does_not_vary_and_of_single_runs() -> None:
    assert verdicts.paired_percent([3.0, 3.3, 3.6], [2.0, 2.2, 2.4]) == pytest.approx((50, 50, 50))
    for gain in (verdicts.percent, verdicts.paired_percent):
        assert gain([3.0], [2.0]) == gain([3.0, 3.0], [2.0, 2.0]) == (50, -math.inf, math.inf)
        assert gain([3.0, 4.0], [0.5, 9.0])[1:] == (-math.inf, math.inf), "each may be 0"


@pytest.mark.parametrize("gain", [verdicts.percent, verdicts.paired_percent])
@pytest.mark.parametrize("others", [[0.0, 0.0], [1.0, -1.0]])
def test_of_nothing_there_are_no_per_cent(gain, others) -> None:
    value, *limits = gain([1.0, 2.0], others)
    assert math.isnan(value)
    assert limits == [-math.inf, math.inf]
    assert verdict(verdicts.better(CLAIM, gain([1.0, 2.0], others), FROM, "")) == "undecided"


def test_over_what_may_be_next_to_nothing_a_gain_has_no_upper_limit() -> None:
    ours, theirs = [490.0, 500.0, 495.0], [10.0, 60.0, 110.0]
    _, low, high = verdicts.percent(ours, theirs)
    assert low > 0
    assert high == math.inf
    assert verdicts.percent(np.negative(ours), np.negative(theirs))[1:] == (-math.inf, -low)


def test_over_what_may_be_next_to_nothing_no_gain_is_told_where_no_difference_is() -> None:
    ours, theirs = [0.82, 0.17, 1.08, 0.53, 0.61, 2.07], [-0.18, 0.25, 0.70, -0.01, 0.41, 1.89]
    assert verdicts.paired_percent(ours, theirs)[1:] == (-math.inf, math.inf)
    gap, low, high = verdicts.paired_percent([1, 5.2, -3, 2.1], [0.5, 4.6, -3.6, 1.6])  # 0.5 to 0.6 more each
    assert 0 < low < gap < high == math.inf


@pytest.mark.parametrize(
    ("gain", "test"),
    [
        (verdicts.percent, lambda ours, theirs: stats.ttest_ind(ours, theirs, equal_var=False)),
        (verdicts.paired_percent, stats.ttest_rel),
    ],
)
def test_a_gain_leaves_0_out_just_where_the_test_of_the_difference_does_and_errs_as_rarely(gain, test) -> None:
    draw, wrong = np.random.default_rng(0), []
    for k in range(240):
        alike, their_mean = draw.normal(0, 10, 5), 100 if k % 2 else 10  # which of 10 may be 0
        ours, theirs = draw.normal(1.5 * their_mean, 30, 5) + alike, draw.normal(their_mean, 20, 5) + alike
        value, low, high = gain(ours, theirs)
        assert low <= value <= high
        assert (low <= 0 <= high) == (test(ours, theirs).pvalue >= 0.05)
        wrong += [not low <= 50 <= high] if k % 2 else []
    assert np.mean(wrong) == pytest.approx(0.05, abs=0.025)


def test_numbers_and_claims_are_named_and_found() -> None:
    listed = numbers_of("A paper", "Table 1", "score", {"plain": 1.0, "spread": (2.0, 0.1)}, why_not="no time")
    assert [(n.value, n.spread, n.why_not) for n in listed] == [(1.0, None, "no time"), (2.0, 0.1, "no time")]
    (claim,) = claims_of("A paper", "Sec. 2", "it works")
    assert (claim.value, find([*listed, claim], "Sec. 2", "it works")) == (None, claim)
    with pytest.raises(KeyError):
        find(listed, "Table 2", "plain")
