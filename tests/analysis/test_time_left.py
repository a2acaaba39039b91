import math

import numpy as np
import pytest

from workbench.analysis import time_left


def test_nothing_is_said_of_fewer_than_three_phases_or_without_a_slot():
    assert time_left(np.array([10.0, 11.0]), np.array([]), (5, 5), 2) is None
    assert time_left(np.full(5, 10.0), np.array([]), (5, 5), 0) is None


def test_equal_phases_on_one_slot_are_known_exactly():
    assert time_left(np.full(4, 10.0), np.array([4.0]), (3, 3), 1) == (26.0, 26.0)
    assert time_left(np.full(4, 10.0), np.array([4.0]), (0, 0), 1) == (6.0, 6.0)  # one more than was expected runs


def test_of_very_many_phases_the_latest_tell():
    assert time_left(np.repeat([1.0, 10.0], 4096), np.array([]), (3, 3), 1) == (30.0, 30.0)


def test_between_the_fewest_and_the_most_phases_no_longer_than_the_study_may_take():
    assert time_left(np.full(4, 10.0), np.array([]), (2, 3), 1) == (20.0, 30.0)
    assert time_left(np.full(4, 10.0), np.array([]), (2, 3), 1, 25.0) == (20.0, 25.0)


def test_the_last_phases_cannot_be_shared():
    low, high = time_left(np.full(4, 10.0), np.array([0.0]), (1, 1), 4)
    assert (low, high) == (2.5, 10.0)  # one phase is left: it takes 10 s, however many slots there are


def test_the_interval_holds_the_truth_and_moves_by_small_steps():
    """300 phases of 5 to 15 s on 8 slots, one after another: what is told each second against what came."""
    rng = np.random.default_rng(0)
    takes, free, begun, over = rng.uniform(5, 15, 300), np.zeros(8), [], []
    for seconds in takes:
        slot = int(free.argmin())
        begun.append(free[slot])
        free[slot] += seconds
        over.append(free[slot])
    begun, over, end = np.array(begun), np.array(over), free.max()
    inside, middles = [], []
    for now in np.arange(30.0, end):
        done, open_ = over <= now, (begun <= now) & (over > now)
        low, high = time_left(takes[done], now - begun[open_], (float((~done).sum()),) * 2, 8)
        inside.append(low <= end - now <= high)
        middles.append((low + high) / 2)
    assert np.mean(inside) > 0.9
    assert np.abs(np.diff(middles)).max() < 0.05 * middles[0]  # the pace so far jumped by half


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_unlike_phases_on_many_slots_take_longer_than_those_that_ended_first(share):
    """200 phases of exponential length on 16 slots: the mean of those that have ended promised far too little."""
    rng, held = np.random.default_rng(0), []
    for _ in range(100):
        takes, free, begun = rng.exponential(10, 200), np.zeros(16), np.empty(200)
        for k, seconds in enumerate(takes):
            slot = int(free.argmin())
            begun[k] = free[slot]
            free[slot] += seconds
        over = begun + takes
        now = np.quantile(over, share)
        done, open_ = over <= now, (begun <= now) & (over > now)
        low, high = time_left(takes[done], now - begun[open_], (float((~done).sum()),) * 2, 16)
        held.append(low <= free.max() - now <= high)
    assert np.mean(held) > 0.6  # 1 to 8 % by the mean of those that have ended


def test_there_is_no_upper_end_while_phases_are_longer_than_any_that_has_ended():
    """Of 16 slots three have ended a phase, as the fast ones do first: how slow the others are nobody knows."""
    ended, open_ = np.array([2.0, 2.0, 3.0]), np.array([9.0] * 13 + [6.0, 6.0, 5.0])
    low, high = time_left(ended, open_, (197, 197), 16)
    assert 0 <= low < high == math.inf
    assert time_left(ended, open_, (197, 197), 16, 60.0)[1] == 60.0
    assert time_left(np.full(30, 2.0), np.array([9.0]), (20, 20), 1)[1] < math.inf  # one in thirty-one


@pytest.mark.parametrize("slots", [4, 16])
def test_what_is_told_before_the_slots_have_ended_their_first_phases_holds(slots):
    """When three of the first phases have ended, of those that all slots began at once; it was too short by half."""
    rng, held = np.random.default_rng(0), []
    for _ in range(100):
        takes = rng.exponential(10, 10 * slots)
        first = np.sort(takes[:slots])
        now, free = first[2], np.maximum(first, first[2])
        for seconds in takes[slots:]:
            free[free.argmin()] += seconds
        left = float(len(takes) - 3)
        low, high = time_left(first[:3], np.full(slots - 3, now), (left, left), slots)
        held.append(low <= free.max() - now <= high)
    assert np.mean(held) > 0.9


def test_a_phase_under_way_will_take_as_long_as_those_that_were_longer():
    """Of 1, 2 and 9 s, and one under way for 3, half take 9: it takes 6 more. Mean 5.25 s, deviation 4.61 s."""
    low, high = time_left(np.array([1.0, 9.0, 2.0]), np.array([3.0]), (1, 1), 1)
    assert low == 0.0
    assert high == pytest.approx(6 + 1.96 * 4.613 * (1 + 1 / 3) ** 0.5, rel=1e-3)
