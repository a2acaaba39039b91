import numpy as np
import pandas as pd

from tests.viz.conftest import EVENTS, POINTS
from workbench.analysis import learning_curves
from workbench.core.protocols import Kind
from workbench.knowledge import frames_of
from workbench.viz.live.curves import Curves
from workbench.viz.live.feed import MetricPoint, merged


def test_grown_curves_are_those_of_the_analysis():
    curves = Curves()
    rows = [MetricPoint(trial, phase, at, name, value) for _, trial, phase, at, name, value in POINTS]
    for item in merged(EVENTS, rows):
        if isinstance(item, MetricPoint):
            curves.add(item.trial, item.phase, item.at, item.value)
        elif item.kind is Kind.PHASE_STARTED:
            curves.start(item.trial, item.phase, item.at)
        elif item.kind is Kind.PHASE_ENDED:
            curves.end(item.trial, item.phase, item.at, item.data["score"])
    metrics = pd.DataFrame(POINTS, columns=["seq", "trial", "phase", "at_s", "name", "value"])
    expected = learning_curves(frames_of(EVENTS).phases, metrics)[["trial", "x", "score", "phase_end"]]
    np.testing.assert_allclose(curves.all(1000), expected.astype(float))


def test_a_restarted_phase_drops_what_was_sent():
    curves = Curves()
    curves.start(0, 0, 0.0)
    curves.add(0, 0, 1.0, 0.1)
    assert curves.changes()[1].tolist() == [[0, 1, np.float32(0.1), 0]]
    curves.start(0, 0, 5.0)  # it crashed
    curves.add(0, 0, 4.0, 0.9)  # a late word of the lost attempt
    curves.add(0, 0, 7.0, 0.2)
    dropped, points = curves.changes()
    assert dropped == [0]
    assert points.tolist() == [[0, 2, np.float32(0.2), 0]]
    assert curves.changes()[1].shape == (0, 4)


def test_what_was_never_sent_need_not_be_dropped():
    curves = Curves()
    curves.start(0, 0, 0.0)
    curves.add(0, 0, 1.0, 0.1)
    curves.start(0, 0, 5.0)
    assert curves.changes()[0] == []


def test_seconds_go_on_over_phases():
    curves = Curves()
    curves.start(0, 0, 0.0)
    curves.end(0, 0, 10.0, 1.0)
    curves.start(0, 1, 50.0)  # it had been paused
    curves.add(0, 1, 53.0, 2.0)
    assert [point.x for point in curves.of(0)] == [10.0, 13.0]


def test_thinned_snapshots_keep_extremes_and_phase_ends():
    curves = Curves()
    curves.start(0, 0, 0.0)
    for k in range(1000):
        curves.add(0, 0, float(k), 9.0 if k == 500 else 0.0)
    curves.end(0, 0, 1000.0, 1.0)
    points = curves.all(20)
    assert len(points) <= 20
    assert points[:, 2].max() == 9.0
    assert points[points[:, 3] == 1, 1].tolist() == [1000.0]
