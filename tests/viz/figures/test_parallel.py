import numpy as np

from tests.viz.figures.conftest import HOSTILE
from workbench.viz.figures import parallel_coordinates


def test_a_line_a_trial_from_its_values_to_its_score(frames):
    fig = parallel_coordinates(frames.trials, frames.hyperparameters)
    assert list(fig.layout.xaxis.ticktext) == ["lr", "net", "last score"]  # the third was not varied
    lines = {}
    for trace in fig.data:
        for trial, y in zip(np.reshape(trace.customdata, (-1, 4)), np.reshape(trace.y, (-1, 4)), strict=True):
            lines[int(trial[0])] = y
    assert sorted(lines) == [0, 1, 2]  # trial 3 has no score yet
    np.testing.assert_allclose(lines[0][[0, 2]], [0.0, 1.0])  # the smallest lr, the best score
    np.testing.assert_allclose(lines[1][[0, 2]], [0.5, 0.0])
    np.testing.assert_allclose(lines[2][[0, 2]], [1.0, (3.0 - 0.5) / 4.5])
    words = " ".join(a.text for a in fig.layout.annotations) + " ".join(
        t for trace in fig.data for t in trace.hovertext
    )
    assert HOSTILE not in words
    assert "&lt;script&gt;" in words


def test_the_best_is_drawn_over_the_others(frames):
    over = {m: parallel_coordinates(frames.trials, frames.hyperparameters, m).data[-1] for m in ("max", "min")}
    assert {mode: set(trace.customdata) for mode, trace in over.items()} == {"max": {0}, "min": {1}}


def test_nothing_to_draw_is_said(frames, nothing):
    assert "ended" in parallel_coordinates(nothing.trials, []).layout.annotations[0].text
    assert "varied" in parallel_coordinates(frames.trials, []).layout.annotations[0].text
