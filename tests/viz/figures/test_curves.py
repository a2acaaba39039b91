import numpy as np
import pandas as pd
import pytest

from workbench.viz.figures import best_so_far, learning_curves, theme
from workbench.viz.figures.curves import config_lines, joined_lines, phase_ends


def test_one_joined_line_a_state(frames, curves):
    fig = learning_curves(curves, frames.trials)
    lines = {trace.name: trace for trace in fig.data if trace.mode == "lines"}
    assert list(lines) == ["finished", "running", "held", "stopped"]
    np.testing.assert_array_equal(lines["finished"].x, [5.0, 10.0, 20.0, np.nan])
    np.testing.assert_allclose(lines["running"].y, [0.2, 0.4, np.nan], rtol=1e-6)  # drawn in single precision


@pytest.mark.parametrize("scores", [1e12 + np.arange(7.0), 10.0 ** np.arange(36, 43)])
def test_lines_go_through_the_ends_of_phases_whatever_the_size_of_scores(frames, curves, scores):
    fig = learning_curves(curves.assign(score=scores), frames.trials)
    on_lines = np.concatenate([np.asarray(trace.y, float) for trace in fig.data if trace.mode == "lines"])
    ends = next(trace for trace in fig.data if trace.name == "end of a phase" and trace.hovertext is not None)
    off = np.nanmin(np.abs(np.subtract.outer(np.asarray(ends.y), on_lines)), axis=1)
    assert (off < np.ptp(scores) / 1000).all()


def test_a_break_after_every_trial(curves):
    joined = joined_lines(curves)
    assert joined["x"].isna().sum() == 4
    assert joined["trial"].is_monotonic_increasing


def test_phase_ends_tell_config_and_why(frames, curves):
    ends = phase_ends(curves, frames.trials, ["lr", "net"], frames.decisions).set_index(["trial", "phase"])
    assert ends.loc[(1, 0), "hover"] == (
        "trial 1 (stopped), phase 0<br>score 0.5<br>lr = 0.001<br>net = &lt;script&gt;alert(1)&lt;/script&gt;"
        "<br>stop: selecting: rank 0.25"
    )
    told = phase_ends(curves, frames.trials, [], frames.decisions, lambda reason: f"<b>{reason['rank']}").iloc[-2]
    assert told["hover"].endswith("<br>stop: &lt;b&gt;0.25")
    assert ends["last"].to_dict() == {(0, 0): False, (0, 1): False, (1, 0): True, (2, 0): False}
    failed = frames.trials.assign(state=frames.trials["state"].replace("stopped", "failed"))
    assert phase_ends(curves, failed, [], None)["last"].tolist() == ends["last"].tolist()


def test_of_thousands_of_phase_ends_some_are_points_and_it_says_so() -> None:
    """Each tells its configuration and why its trial went on: of 3000 trials that was 3 MB."""
    curves = pd.DataFrame({"trial": range(2400), "phase": 0, "x": 1.0, "score": np.arange(2400.0), "phase_end": True})
    trials = pd.DataFrame({"trial": range(2400), "state": "stopped"})
    fig = learning_curves(curves, trials)
    ends = next(trace for trace in fig.data if trace.name == "end of a phase" and trace.hovertext is not None)
    assert 1998 <= len(ends.y) <= 2000
    assert {0.0, 2399.0} <= set(ends.y)
    assert set(ends.marker.symbol) == {"x"}
    assert fig.layout.title.text == f"Learning curves: {len(ends.y)} of 2400 phase ends, drawn at random"


def test_whole_numbers_are_told_in_full_and_what_does_not_apply_not_at_all():
    config = {"width": 65536.0, "lr": 0.00012346, "momentum": float("nan"), "net": None, "deep": True}
    assert config_lines(config, list(config)) == "<br>width = 65536<br>lr = 0.0001235<br>deep = True"


def test_coloured_by_a_hyperparameter_on_a_log_scale(frames, curves):
    fig = learning_curves(curves, frames.trials, color="lr", x_title="frames <i>")
    colors = [trace.line.color for trace in fig.data if trace.mode == "lines"]
    assert len(set(colors)) == len(colors) == 4  # four decades, four colours
    assert list(fig.data[-1].marker.colorbar.ticktext) == ["1e-05", "0.0001", "0.001", "0.01"]
    assert list(fig.data[-1].marker.colorbar.tickvals) == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert fig.layout.xaxis.title.text == "frames &lt;i&gt;"


def test_hours_of_training_are_told_in_hours(frames, curves):
    fig = learning_curves(curves.assign(x=curves["x"] * 1800), frames.trials)
    assert fig.layout.xaxis.title.text == "training time [h]"
    ends = next(trace for trace in fig.data if trace.customdata is not None)
    finished = next(trace for trace in fig.data if trace.name == "finished")
    assert max(ends.x) == np.nanmax(finished.x) == 10.0
    assert learning_curves(curves, frames.trials).layout.xaxis.title.text == "training time [s]"


def test_trials_to_which_a_hyperparameter_does_not_apply_are_drawn_too(frames, curves):
    trials = frames.trials.assign(lr=frames.trials["lr"].where(frames.trials["trial"] != 0))
    lines = [trace for trace in learning_curves(curves, trials, color="lr").data if trace.mode == "lines"]
    assert len(lines) == 4
    assert lines[0].line.color == theme.GREY


def test_coloured_by_a_word(frames, curves):
    fig = learning_curves(curves, frames.trials, color="net")
    ticks = list(fig.data[-1].marker.colorbar.ticktext)
    assert ticks == ["&lt;script&gt;alert(1)&lt;/script&gt;", "large", "small"]


def test_best_so_far_reaches_to_now():
    best = pd.DataFrame({"at_s": [10.0, 20.0], "best_score": [1.0, 5.0], "trial": [0, 0], "phase": [0, 1]})
    fig = best_so_far(best, until_s=60.0)
    assert list(fig.data[0].x) == [10.0, 20.0, 60.0]
    assert list(fig.data[0].y) == [1.0, 5.0, 5.0]
    assert list(fig.data[1].customdata) == [0, 0]


@pytest.mark.parametrize("color", ["state", "lr"])
def test_nothing_yet(nothing, curves, color):
    fig = learning_curves(curves.iloc[:0], nothing.trials.assign(lr=[]), color=color)
    assert fig.layout.annotations[0].text == "no score has been reported yet"
    empty = pd.DataFrame(columns=["at_s", "best_score", "trial", "phase"])
    assert best_so_far(empty).layout.annotations[0].text == "no phase has ended yet"
