"""How a verdict comes about: the only rules that put ours beside the published.

A number that a formula gives is *exact* to the printed digits, or differs. What was fitted until it agreed, or cannot
come out otherwise, is so *by construction*. Everything else needs an interval over repetitions, which lies on the
criterion's side (*agrees*), on the other (*differs*), or across (*undecided*); without repetitions the criterion's own
false-positive rate is told, and above one in twenty nothing is decided; a miss decides where it is known to be as rare
if the claim is true. What was run on something else is *not comparable*, whatever its value.

A claim that something is better is not only contradicted where it is worse: else one that is merely untrue would stay
undecided for ever. It differs where the interval leaves no more than is taken for "nearly the same" elsewhere. Where
scores near the most that a game can bring leave no room for more, that is no contradiction, and being alike no proof.

Intervals of means are Student's and Welch's, of gains in per cent Fieller's, of shares Clopper and Pearson's, not
bootstraps: three seeds drawn again reach no further than their least and greatest, so that one side of 0 is met by
chance one time in four; Student's with 95 % keeps to one in twenty.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from workbench.analysis.bootstrap import Interval
from workbench.core.errors import InvalidInput
from workbench.paper.numbers import Origin, Ours, Pair, Published, Verdict

NEARLY = 10.0
"""Per cent: what "similar", "as fast" and "nearly identical" are taken for where a paper gives no number."""

CARTPOLE_MOST = 500.0
"""What a game of CartPole-v1 can bring."""

CONFIDENCE = 0.95
CHANCE = 0.05
_MOST_ORDERED = 9  # values whose orders are counted


def exact(number: Published, value: float, origin: Origin, why: str = "") -> Pair:
    """Compare what a formula gives with the digits that were printed; with derived ones it agrees by construction."""
    if number.value is None:
        raise ValueError(f"{number.what!r} is a claim in words: compare it with within, above or below")
    half_digit = 0.5 * 10.0 ** int(Decimal(f"{number.value:.10g}").as_tuple().exponent) * (1 + 1e-6)
    verdict: Verdict = "by construction" if number.derived else "exact"
    if not abs(value - number.value) <= half_digit:  # NaN is no number's equal
        verdict = "differs"
    return number, Ours(value, origin, verdict, why, number.unit)


def by_construction(number: Published, value: float, origin: Origin, why: str) -> Pair:
    """Show a number that was fitted, or ensured by the code: it agrees because it was made to, and says nothing."""
    return number, Ours(value, origin, "by construction", why, number.unit)


def not_comparable(
    number: Published, value: float, origin: Origin, why: str, unit: str = "", interval: Interval | None = None
) -> Pair:
    """Show what was found on something else, and what is else about it."""
    limits = None if interval is None else (interval.low, interval.high)
    return number, Ours(value, origin, "not comparable", why, unit or number.unit, limits)


def within(
    number: Published, measured: Interval, low: float, high: float, origin: Origin, why: str, unit: str = ""
) -> Pair:
    """Ask whether the whole interval lies from `low` to `high`; it differs if all of it lies outside, on one side."""
    verdict: Verdict = "undecided"
    if low <= measured.low and measured.high <= high:
        verdict = "agrees"
    elif measured.high < low or measured.low > high:
        verdict = "differs"
    bounds = f"from {low:g} to {high:g}" if math.isfinite(low + high) else f"above {low:g}"
    bounds = bounds if math.isfinite(low) else f"below {high:g}"
    why = f"{why}; agrees {bounds}"
    return number, Ours(measured.value, origin, verdict, why, unit or number.unit, (measured.low, measured.high))


def above(number: Published, measured: Interval, bound: float, origin: Origin, why: str, unit: str = "") -> Pair:
    """Ask whether all of the interval is above a bound; below it, it differs."""
    return within(number, measured, bound, math.inf, origin, why, unit)


def below(number: Published, measured: Interval, bound: float, origin: Origin, why: str, unit: str = "") -> Pair:
    """Ask whether all of the interval is below a bound; above it, it differs."""
    return within(number, measured, -math.inf, bound, origin, why, unit)


def better(
    number: Published,
    measured: Interval,
    origin: Origin,
    why: str,
    unit: str = "%",
    *,
    rival: npt.ArrayLike = -math.inf,
    most: float = CARTPOLE_MOST,
) -> Pair:
    """Ask whether there is a gain, by an interval in per cent: all above 0; it differs if all is below `NEARLY`.

    Over a rival that is near the `most` there is, of CartPole's score or another, no such gain is possible: it differs
    if all is below 0.
    """
    bound = 0.0 if (full := _full(rival, most)) else NEARLY
    verdict: Verdict = "agrees" if measured.low > 0 else "differs" if measured.high < bound else "undecided"
    why = f"{why}{full}; agrees above 0, differs below {bound:g}"
    return number, Ours(measured.value, origin, verdict, why, unit, (measured.low, measured.high))


def with_room(pair: Pair, *scores: npt.ArrayLike) -> Pair:
    """Leave undecided whether scores are alike that are all near the most of CartPole."""
    number, ours = pair
    if not all(full := [_full(of) for of in scores]):
        return pair
    return number, replace(ours, verdict="undecided", why=f"{ours.why}{full[0]}")


def where_needed(pair: Pair, gain: Interval, unshown: str = "without it they need be") -> Pair:
    """Leave undecided whether something makes another thing needless that nothing shows to be needed without it."""
    number, ours = pair
    if gain.low > 0:
        return pair
    verdict: Verdict = "undecided" if ours.verdict == "agrees" else ours.verdict
    return number, replace(ours, verdict=verdict, why=f"{ours.why}; but nothing shows that {unshown}")


def _full(scores: npt.ArrayLike, most: float = CARTPOLE_MOST) -> str:
    """Say so where scores are, on average, near the most there is."""
    near = float(np.mean(np.asarray(scores, float))) > (1 - NEARLY / 100) * most
    return f"; near {most:g}, the most there is" if near else ""


def met(
    number: Published,
    holds: bool,
    value: float,
    chance: float,
    origin: Origin,
    why: str,
    unit: str = "",
    *,
    miss: float = 1.0,
) -> Pair:
    """Tell whether a criterion without repetitions holds, and how often by chance; too often decides nothing.

    Nor does a miss, unless it is known how rarely one would be met with were the claim true (`miss`).
    """
    told: Verdict = "agrees" if holds else "differs"
    verdict: Verdict = told if (chance if holds else miss) <= CHANCE else "undecided"
    return number, Ours(value, origin, verdict, why, unit or number.unit, chance=chance)


def rising(number: Published, values: Sequence[float], origin: Origin, why: str) -> Pair:
    """Ask whether values, one measurement each, rise along their order (Kendall's tau, exact, one-sided at 5 %).

    Exact, with equal values among them too, is to count the orders that rise as much.

    Raises
    ------
    InvalidInput
        There are more than nine values, whose orders take long to count, or one is no number.
    """
    if len(values) > _MOST_ORDERED or not np.isfinite(values).all():
        raise InvalidInput(f"whether values rise is asked of {_MOST_ORDERED} numbers at most, got {list(values)}")
    tau = float(stats.kendalltau(range(len(values)), values).statistic)
    earlier, later = np.triu_indices(len(values), 1)
    orders = np.array(list(permutations(values)))  # [n!, n], theirs first
    rises = np.sign(orders[:, later] - orders[:, earlier]).sum(axis=1)
    up, down = np.mean(rises >= rises[0]), np.mean(rises <= rises[0])
    verdict: Verdict = "agrees" if up <= CHANCE else "differs" if down <= CHANCE else "undecided"
    return number, Ours(tau, origin, verdict, f"{why}; agrees if they rise, p ≤ 5 %", "tau", chance=CHANCE)


def least(gains: Sequence[Interval]) -> Interval:
    """Give limits of the least of several gains: all above a bound where every gain is, all below it where any is.

    So it agrees more rarely than one gain does, and differs more often: of three at the bound in one case of twenty.
    """
    return Interval(*(min(limits) for limits in zip(*((g.value, g.low, g.high) for g in gains), strict=True)))


def negated(interval: Interval) -> Interval:
    """Turn a fall into a gain."""
    return Interval(-interval.value, -interval.high, -interval.low)


def share_of(holds: npt.ArrayLike) -> Interval:
    """Tell in how many per cent of the runs something holds, with Clopper and Pearson's 95 % interval.

    Where it holds in all, that is no proof that it always does: of four runs the interval reaches down to 40 %.
    """
    runs = np.asarray(holds, bool)
    interval = stats.binomtest(int(runs.sum()), runs.size).proportion_ci(CONFIDENCE)
    return Interval(100 * float(runs.mean()), 100 * float(interval.low), 100 * float(interval.high))


def percent(values: npt.ArrayLike, others: npt.ArrayLike) -> Interval:
    """Tell by how many per cent the mean of `values` is above that of `others`, with a 95 % interval.

    Both means are uncertain: the interval is Fieller's. It leaves 0 out just where Welch's test tells a difference.
    """
    ours, theirs = np.asarray(values, float), np.asarray(others, float)
    if min(ours.size, theirs.size) < 2:
        return _more(float(ours.mean()), float(theirs.mean()))
    parts = np.array([ours.var(ddof=1) / ours.size, theirs.var(ddof=1) / theirs.size])
    below = float((parts**2 / [ours.size - 1, theirs.size - 1]).sum())
    freedom = float(parts.sum()) ** 2 / below if below else 1.0  # of runs that all came to the same any will do
    return _more(float(ours.mean()), float(theirs.mean()), np.diag(parts), freedom)


def paired_percent(values: npt.ArrayLike, others: npt.ArrayLike) -> Interval:
    """Tell the same of runs that are paired; it leaves 0 out just where Student's test tells a difference."""
    ours, theirs = np.asarray(values, float), np.asarray(others, float)
    if ours.size < 2:
        return _more(float(ours.mean()), float(theirs.mean()))
    return _more(float(ours.mean()), float(theirs.mean()), np.cov(ours, theirs) / ours.size, ours.size - 1)


def _more(ours: float, theirs: float, spread: npt.NDArray[Any] | None = None, freedom: float = 1) -> Interval:
    """Give by how many per cent one mean is above another, and Fieller's limits (1954), given the means' covariance.

    They hold every ratio r for which ours - r theirs may be 0. Where theirs may be 0 itself there is no limit away from
    a difference that is told, if theirs has the sign that it shows; and none at all where no difference is told.
    Of 0 there are no per cent.
    """
    if theirs == 0:
        return Interval(math.nan, -math.inf, math.inf)
    gap = 100 * (ours - theirs) / abs(theirs)
    if spread is None or not spread.any():  # that few runs are all equal is no certainty
        return Interval(gap, -math.inf, math.inf)
    (aa, ab), (_, bb) = float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom)) ** 2 * spread
    a, b, c = theirs**2 - bb, ours * theirs - ab, ours**2 - aa
    root = math.sqrt(max(0.0, b**2 - a * c))
    if a > 0:
        ratios = [(b - root) / a, (b + root) / a]
    elif a < 0 < a - 2 * b + c:  # not for r = 1
        q = b + math.copysign(root, b)
        least, most = sorted([q / a, c / q])
        ratios = [most, math.inf] if ours / theirs > 1 else [-math.inf, least]
    else:
        ratios = [-math.inf, math.inf]
    low, high = sorted(math.copysign(100, theirs) * (ratio - 1) for ratio in ratios)
    return Interval(gap, low, high)
