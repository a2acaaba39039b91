import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.viz.figures.conftest import EVENTS, POINTS
from workbench.analysis import learning_curves
from workbench.core.protocols import Kind
from workbench.knowledge import frames_of
from workbench.knowledge.reader import POINT
from workbench.viz.dashboard.feed import FRAMES, NO_POINTS, SCORE
from workbench.viz.dashboard.live_curves import LiveCurves

OTHER = -1  # the name of a metric that the page does not show


def points(*rows):
    """Scores as a feed gives them, of (trial, phase, at_s, score)."""
    return np.array([(trial, phase, at, SCORE, score) for trial, phase, at, score in rows], POINT)


def take(curves, *rows):
    curves.take(points(*rows) if rows else NO_POINTS)


def begun():
    """Curves of a trial that has begun its first phase."""
    curves = LiveCurves()
    curves.start(0, 0, 0.0)
    return curves


def feed(curves, events):
    for event in events:
        if event.kind is Kind.PHASE_STARTED:
            curves.start(event.trial, event.phase, event.at)
        elif event.kind is Kind.PHASE_ENDED:
            curves.end(event.trial, event.phase, event.at, event.data["score"])


_PHASES = st.sampled_from([(0, 0), (0, 1), (1, 0), (2, 0), (3, 0)])
_LOSSES = st.lists(st.tuples(_PHASES, st.integers(0, 21)), max_size=30)


@pytest.mark.parametrize("looks", [[30.0], [7.0, 15.0, 30.0], np.arange(0.0, 30.0)])
@settings(max_examples=5)
@example([])
@given(_LOSSES)
def test_grown_curves_are_those_of_the_analysis(looks, losses):
    """Whatever a trial reports beside its scores tells when it began to train."""
    told = sorted([*POINTS, *((0, *phase, float(at), "loss", 1.0) for phase, at in losses)], key=lambda row: row[3])
    curves, since = LiveCurves(), -1.0
    for until in looks:
        feed(curves, [event for event in EVENTS if since < event.at <= until])
        new = [row[1:] for row in told if since < row[3] <= until]
        names = {"score": SCORE, "loss": OTHER}
        curves.take(np.array([(trial, phase, at, names[name], value) for trial, phase, at, name, value in new], POINT))
        since = until
    metrics = pd.DataFrame(told, columns=["seq", "trial", "phase", "at_s", "name", "value"])
    expected = learning_curves(frames_of(EVENTS).phases, metrics)[["trial", "x", "score", "phase_end"]]
    np.testing.assert_allclose(curves.all(1000)[:, :4], expected.astype(float), rtol=1e-6)


def test_a_restarted_phase_drops_what_was_sent():
    curves = begun()
    take(curves, (0, 0, 1.0, 0.25), (0, 0, 2.0, 0.5))
    assert curves.changes()[1][:, :4].tolist() == [[0, 1, 0.25, 0], [0, 2, 0.5, 0]]
    curves.start(0, 0, 5.0)  # it crashed
    take(curves, (0, 0, 4.0, 0.9), (0, 0, 7.0, 0.5), (0, 0, 9.0, 0.75))  # first a late word of the lost attempt
    dropped, rows = curves.changes()
    assert dropped == [0]
    assert rows[:, :4].tolist() == [[0, 2, 0.5, 0], [0, 4, 0.75, 0]]
    assert curves.changes()[1].shape == (0, 6)


def test_the_start_of_a_worker_is_no_training_time():
    curves = begun()
    take(curves, (0, 0, 30.0, 1.0))  # 28 s of importing and building
    assert len(curves.changes()[1]) == 0  # when it began is not known before the second report
    take(curves, (0, 0, 32.0, 2.0))
    assert curves.changes()[1][:, 1].tolist() == [2.0, 4.0]
    curves.end(0, 0, 36.0, 3.0)
    curves.start(0, 1, 50.0)
    take(curves, (0, 1, 51.0, 4.0), (0, 1, 52.0, 5.0))
    assert curves.changes()[1][:, 1].tolist() == [8.0, 9.0, 10.0]


def test_frames_stand_beside_the_scores_they_were_reported_with():
    curves = begun()
    told = [(0, 0, at, name, value) for at in (1.0, 2.0) for name, value in ((FRAMES, 100 * at), (SCORE, at))]
    curves.take(np.array([*told, (0, 0, 3.0, SCORE, 3.0)], POINT))
    curves.end(0, 0, 4.0, 9.0, 400.0)
    take(curves)
    np.testing.assert_equal(curves.changes()[1][:, 4], [100, 200, np.nan, 400])


def test_frames_are_found_though_other_metrics_stand_between():
    curves = begun()
    told = [(0, 0, at, name, at) for at in (1.0, 2.0) for name in (FRAMES, OTHER, SCORE)]
    curves.take(np.array(told, POINT))
    np.testing.assert_equal(curves.changes()[1][:, 4], [1, 2])


def test_a_dropped_curve_is_sent_again_with_the_phases_that_stand():
    curves = begun()
    curves.end(0, 0, 2.0, 1.0)
    curves.start(0, 1, 2.0)
    take(curves, (0, 1, 3.0, 5.0), (0, 1, 4.0, 5.0))
    curves.changes()
    curves.start(0, 1, 10.0)
    take(curves, (0, 1, 11.0, 6.0), (0, 1, 12.0, 6.0))
    assert curves.changes()[1][:, :4].tolist() == [[0, 2, 1, 1], [0, 3, 6, 0], [0, 4, 6, 0]]


def test_what_was_never_sent_need_not_be_dropped():
    curves = begun()
    take(curves, (0, 0, 1.0, 0.1))
    curves.start(0, 0, 5.0)
    take(curves)
    assert curves.changes()[0] == []


def test_a_score_that_has_diverged_keeps_a_place():
    curves = begun()
    curves.end(0, 0, 4.0, -1e60)
    assert np.isfinite(curves.all()[:, :3]).all()  # before there are points
    take(curves, (0, 0, 1.0, 1e40), (0, 0, 2.0, 0.5))
    largest = np.finfo(np.float32).max
    assert curves.all()[:, 2].tolist() == [largest, 0.5, -largest]


def test_seconds_go_on_over_phases():
    curves = begun()
    curves.end(0, 0, 10.0, 1.0)
    curves.start(0, 1, 50.0)  # it had been paused
    take(curves, (0, 1, 53.0, 2.0), (0, 1, 56.0, 2.0))
    assert curves.all()[:, 1].tolist() == [10.0, 13.0, 16.0]


def test_thinned_snapshots_keep_extremes_and_phase_ends():
    curves = begun()
    curves.end(0, 0, 1000.0, 1.0)
    take(curves, *((0, 0, float(k), 9.0 if k == 500 else 0.0) for k in range(1000)))
    rows = curves.all(20)
    assert len(rows) <= 20
    assert rows[:, 2].max() == 9.0
    assert rows[rows[:, 3] == 1, 1].tolist() == [1000.0]


def test_thinned_curves_keep_every_end_of_a_phase_however_many_there_are(monkeypatch):
    curves, thinned = LiveCurves(most=20), []
    real = curves._thinned
    monkeypatch.setattr(curves, "_thinned", lambda *given: thinned.append(1) or real(*given))
    n = 600
    for phase in range(n):
        curves.start(0, phase, float(phase))
        curves.end(0, phase, phase + 1.0, 1.0)
        take(curves, (0, phase, phase + 0.25, 0.0), (0, phase, phase + 0.5, 0.0))
        curves.changes()
    rows = curves.all()
    assert rows[rows[:, 3] == 1, 1].tolist() == [*range(1, n + 1)]  # a page counts phases by them
    assert len(rows) < n + 40
    assert len(thinned) < 20  # not at every look, though they alone are more than there is to be


def test_what_is_kept_stays_bounded_and_no_extreme_is_lost():
    rng = np.random.default_rng(0)
    curves = LiveCurves(most=100)
    for trial in (0, 1):
        curves.start(trial, 0, 0.0)
    high, low = 0.0, 0.0
    for look in range(300):
        scores = rng.normal(size=(10, 2))
        high, low = max(high, scores.max()), min(low, scores.min())
        take(curves, *((trial, 0, look + k / 20, scores[k, trial]) for k in range(10) for trial in (0, 1)))
        curves.changes()
    kept = curves.all()
    assert len(kept) <= 100
    assert (kept[:, 2].max(), kept[:, 2].min()) == (np.float32(high), np.float32(low))
    assert curves._n <= 4 * 100 + 20
    assert kept[:, 1].max() == np.float32(299.45)


def test_a_first_look_at_very_much_keeps_what_is_needed():
    curves = LiveCurves(most=100)
    curves.start(0, 0, 0.0)
    take(curves, *((0, 0, float(k), float(k % 977)) for k in range(10_000)))
    rows = curves.changes()[1]
    assert len(rows) <= 100
    assert (rows[:, 2].min(), rows[:, 2].max()) == (0, 976)
    assert (np.diff(rows[:, 1]) > 0).all()
