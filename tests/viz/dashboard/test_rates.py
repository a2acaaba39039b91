import numpy as np
import pytest

from workbench.knowledge.reader import POINT
from workbench.viz.dashboard.feed import READ
from workbench.viz.dashboard.rates import MOST, NAMES, Rates

PPS, LAG, FRAMES = (1 + NAMES.index(name) for name in ("pps", "policy_lag_mean", "frames_per_s"))


def points(*rows):
    """Metrics as a feed gives them, of (trial, at_s, name, value)."""
    return np.array([(trial, 0, at, READ.index(name), value) for trial, at, name, value in rows], POINT)


def running(*trials):
    rates = Rates()
    for trial in trials:
        rates.join(trial)
    return rates


def test_rates_add_up_and_lags_are_averaged():
    rates = running(0, 1)
    told = [(0, 0.5, "pps", 100.0), (0, 0.5, "policy_lag_mean", 1.0), (1, 0.5, "pps", 50.0)]
    rates.take(points(*told, (1, 0.5, "policy_lag_mean", 3.0), (0, 2.0, "pps", 10.0)), 2.0)
    rates.drop(1, 3.5)
    rates.take(points(), 4.0)
    assert [(s[0], s[PPS], s[LAG]) for s in rates.samples] == [(1, 150, 2), (2, 150, 2), (3, 60, 2), (4, 10, 1)]


@pytest.mark.parametrize("at_once", [False, True])
def test_frames_become_a_pace_which_outlives_a_fall_back_to_a_checkpoint(at_once):
    rates = running(0)
    told = [(0, 0.5, "frames", 100.0), (0, 2.5, "frames", 300.0), (0, 4.5, "frames", 200.0), (0, 5.5, "frames", 250.0)]
    for rows in [told] if at_once else [[row] for row in told]:
        rates.take(points(*rows), rows[-1][1])
    rates.take(points(), 6.0)
    assert [(s[0], s[FRAMES]) for s in rates.samples] == [(3, 100), (4, 100), (5, 100), (6, 50)]
    assert rates.frames_per_s == 50
    rates.drop(0, 7.0)
    rates.take(points((0, 7.0, "frames", 300.0)), 8.0)
    assert rates.frames_per_s == 0


def test_a_late_word_of_a_trial_that_has_left_does_not_count():
    rates = running(0)
    rates.drop(0, 1.5)
    rates.take(points((0, 0.5, "pps", 5.0)), 2.0)
    rates.take(points((0, 1.0, "pps", 7.0)), 4.0)
    assert [(s[0], s[PPS]) for s in rates.samples] == [(1, 5), (2, None), (3, None), (4, None)]


def test_an_hour_in_which_nothing_ran_stays_empty_also_when_samples_are_thinned():
    rates = running(0)
    rates.take(points(*((0, at, "pps", 100.0) for at in range(100))), 100.0)
    rates.drop(0, 100.5)
    rates.take(points(), 101.0)
    rates.join(0)  # and in the news of one look an hour, and all that follows
    rates.take(points(*((0, at, "pps", 100.0) for at in range(3701, 3801))), 3800.0)
    told = {sample[0]: sample[PPS] for sample in rates.samples}
    assert {value for at, value in told.items() if at < 95 or at > 3715} == {100}
    assert {value for at, value in told.items() if 105 < at < 3685} == {None}
    assert len(told) > MOST / 4


@pytest.mark.parametrize("looks", [1, 2, 6])
def test_the_time_that_a_trial_waited_for_a_slot_slows_no_pace(looks):
    rates = running(0)
    rows = [(0, at, "frames", 100.0 * k) for k, at in enumerate((0.5, 1.5, 2.5, 100.5, 101.5, 102.5))]
    for part in np.array_split(np.arange(6), looks):
        if 3 in part:
            rates.drop(0, 2.75)
            rates.join(0)
        rates.take(points(*(rows[k] for k in part)), rows[part[-1]][1])
    told = {sample[0]: sample[FRAMES] for sample in rates.samples}
    assert {value for at, value in told.items() if 3 <= at <= 101} == {None}
    assert told[102.0] == rates.frames_per_s == 100


def test_what_never_tells_a_rate_takes_no_samples():
    rates = running(0)
    rates.take(points((0, 5.0, "score", 1.0)), 100.0)
    assert rates.samples == []


def test_samples_are_sent_once_and_again_when_they_are_thinned():
    rates = running(0)
    for second in range(1, 12):
        rates.take(points((0, second - 0.5, "tps", 1.0)), float(second))
    anew, samples = rates.changes()
    assert anew
    assert len(samples) == 11
    assert rates.changes() == (False, [])
    for second in range(12, 3 * MOST):
        rates.take(points((0, second - 0.5, "tps", 4.0)), float(second))
    anew, samples = rates.changes()
    assert anew
    assert MOST / 2 <= len(samples) <= MOST
    assert samples[-1][1 + NAMES.index("tps")] == 4.0
    assert 0 <= 3 * MOST - samples[-1][0] <= 8


def test_a_first_look_at_a_long_study_takes_no_more_samples():
    rates = running(0)
    rates.take(points(*((0, float(at), "pps", 1.0) for at in range(0, 400_000, 100))), 400_000.0)
    assert MOST / 4 <= len(rates.samples) <= MOST
    assert {sample[PPS] for sample in rates.samples} == {1.0}
