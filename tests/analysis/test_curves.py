import pandas as pd
import pytest

from workbench.analysis import best_so_far, learning_curves, training_began


def _points(curves, trial):
    rows = curves[curves["trial"] == trial]
    return list(zip(rows["x"], rows["score"], strict=True))


def test_seconds_leave_out_lost_attempts(frames):
    curves = learning_curves(frames.phases, frames.metrics)
    assert _points(curves, 0) == [(5.0, 0.5), (10.0, 1.0), (20.0, 5.0)]
    assert _points(curves, 1) == [(3.0, 0.3), (6.0, 0.5)]  # the attempt lost at 4 s is gone
    assert _points(curves, 2) == []


def test_a_counter_that_starts_anew_is_summed_over_phases(frames):
    curves = learning_curves(frames.phases, frames.metrics, "frames", per_phase=True)
    assert _points(curves, 0) == [(50.0, 0.5), (100.0, 1.0), (200.0, 5.0)]


def test_a_counter_that_goes_on_is_taken_as_it_is(frames):
    phases = frames.phases.assign(frames=100.0 * (frames.phases["phase"] + 1))
    curves = learning_curves(phases, frames.metrics, "frames")
    assert _points(curves, 0) == [(50.0, 0.5), (100.0, 1.0), (200.0, 5.0)]


def test_seconds_leave_out_pauses(frames):
    phases = frames.phases.copy()
    phases.loc[(phases["trial"] == 0) & (phases["phase"] == 1), ["started_s", "ended_s"]] = [50.0, 60.0]
    assert _points(learning_curves(phases, frames.metrics), 0)[-1] == (20.0, 5.0)
    assert _points(learning_curves(phases, frames.metrics, "clock"), 0)[-1] == (60.0, 5.0)


def test_the_end_of_a_phase_is_no_report_by_which_its_beginning_is_told():
    """A trial that reports once, late in its phase, has trained all the while."""
    phases = pd.DataFrame({"trial": 0, "phase": [0, 1], "started_s": [0.0, 10.0], "ended_s": [10.0, 20.0]})
    late = [(0, 9.0), (0, 10.0), (1, 19.0), (1, 20.0)]
    metrics = pd.DataFrame(late, columns=["phase", "at_s"]).assign(trial=0, name="score", value=1.0)
    assert training_began(phases, metrics).tolist() == [0.0, 10.0]
    assert _points(learning_curves(phases.assign(score=2.0), metrics), 0) == [(9.0, 1), (10.0, 2), (19.0, 1), (20.0, 2)]


def test_training_begins_one_interval_before_the_first_report_and_no_sooner_than_its_phase():
    phases = pd.DataFrame({"trial": 0, "phase": [0, 1], "started_s": [0.0, 10.0], "ended_s": [10.0, 20.0]})
    reports = [(0, 5.0), (0, 7.0), (1, 12.0), (1, 17.0)]  # from 3 s on; 5 s before 12 the phase had not begun
    metrics = pd.DataFrame(reports, columns=["phase", "at_s"]).assign(trial=0)
    assert training_began(phases, metrics).tolist() == [3.0, 10.0]


HEIRS = pd.DataFrame({"trial": [0, 1, 2, 3], "parent": [pd.NA, 0, 1, 0], "parent_phase": [None, 0, 0, None]})
"""Trial 1 began with the weights of 0, and handed them on before its first phase had ended; 3 is a clone, with none."""


def _of_heirs():
    begun = [(0, 0, 0.0, 10.0), (0, 1, 10.0, 15.0), (1, 1, 20.0, 24.0), (2, 1, 20.0, 23.0), (2, 2, 30.0, 31.0)]
    rows = [*begun, (3, 0, 40.0, 41.0)]
    phases = pd.DataFrame(rows, columns=["trial", "phase", "started_s", "ended_s"]).assign(score=1.0, frames=100.0)
    return phases, pd.DataFrame(columns=["trial", "phase", "at_s", "name", "value"])


@pytest.mark.parametrize(
    ("x", "places"),
    [
        ({"x": "seconds"}, [[10, 15], [14], [13, 14], [1]]),
        ({"x": "frames", "per_phase": True}, [[100, 200], [200], [200, 300], [100]]),
        ({"x": "frames"}, [[100, 100], [100], [100, 100], [100]]),  # these go on with the weights, as they are told
        ({"x": "clock"}, [[10, 15], [24], [23, 31], [41]]),
    ],
)
def test_a_curve_goes_on_from_where_the_weights_that_it_began_with_stood(x, places):
    curves = learning_curves(*_of_heirs(), trials=HEIRS, **x)
    assert [group["x"].tolist() for _, group in curves.groupby("trial")] == places


def test_without_the_trials_every_curve_counts_from_its_own_beginning():
    curves = learning_curves(*_of_heirs())
    assert [group["x"].tolist() for _, group in curves.groupby("trial")] == [[10, 15], [4], [3, 4], [1]]


def test_phase_ends_are_told_apart(frames):
    curves = learning_curves(frames.phases, frames.metrics)
    assert curves["phase_end"].tolist() == [False, True, True, False, True]


def test_without_metrics_a_point_a_phase(frames):
    curves = learning_curves(frames.phases, frames.metrics.iloc[:0])
    assert curves["score"].tolist() == [1.0, 5.0, 0.5]


@pytest.mark.parametrize("x", ["seconds", "clock", "frames", "unheard_of"])
def test_nothing_yet(nothing, x):
    assert learning_curves(nothing.phases, nothing.metrics, x).empty
    assert best_so_far(nothing.phases).empty


def test_best_so_far_keeps_improvements_only(frames):
    equalled = frames.phases.assign(score=frames.phases["score"].replace(0.5, 1.0))  # at 11 s, by trial 1
    for phases in (frames.phases, equalled):
        assert best_so_far(phases).to_numpy().tolist() == [[10.0, 1.0, 0, 0], [20.0, 5.0, 0, 1]]


def test_of_losses_the_best_so_far_is_the_lowest(frames):
    assert best_so_far(frames.phases, "min").to_numpy().tolist() == [[10.0, 1.0, 0, 0], [11.0, 0.5, 1, 0]]


def test_seconds_of_a_trial_are_those_of_all_its_phases_whenever_they_began():
    began = pd.Series([5.0, 20.0, 40.0])
    phases = pd.DataFrame({"trial": 0, "phase": range(3), "started_s": began, "ended_s": began + 10, "score": 1.0})
    none = pd.DataFrame(columns=["trial", "phase", "at_s", "name", "value"])
    assert learning_curves(phases, none)["x"].tolist() == [10.0, 20.0, 30.0]
