import pandas as pd
import pytest

from workbench.viz.figures import score_by_hyperparameter
from workbench.viz.figures.hyperparameters import scored_points


def test_a_panel_a_hyperparameter_with_its_axis(frames):
    fig = score_by_hyperparameter(frames.phases, frames.trials, ["lr", "net"])
    assert fig.layout.xaxis.type == "log"
    assert fig.layout.xaxis.title.text == "lr"
    assert list(fig.layout.xaxis2.ticktext) == ["&lt;script&gt;alert(1)&lt;/script&gt;", "large", "small"]


def test_points_by_phase_with_stopped_trials_marked(frames):
    first = score_by_hyperparameter(frames.phases, frames.trials, ["lr"]).data[0]
    assert first.name == "phase 0"
    assert list(first.x) == [1e-4, 1e-3, 1e-2]
    assert list(first.y) == [1.0, 0.5, 3.0]
    assert list(first.marker.symbol) == ["circle", "x", "circle"]


@pytest.mark.parametrize(("n_phases", "entries"), [(5, 6), (6, 1)])
def test_more_phases_than_a_legend_has_room_for_beside_the_crosses_get_a_colour_bar(n_phases, entries):
    phases = pd.DataFrame({"trial": 0, "phase": range(n_phases), "ended_s": 1.0, "score": 0.0})
    trials = pd.DataFrame({"trial": [0], "state": ["stopped"], "lr": [1e-3]})
    fig = score_by_hyperparameter(phases, trials, ["lr"])
    assert len([trace for trace in fig.data if trace.showlegend is not False]) == entries
    assert [trace.marker.colorbar.title.text for trace in fig.data if trace.marker.showscale] == ["phase"] * (
        entries == 1
    )


def test_only_the_last_score_of_a_stopped_trial_is_cut(frames):
    points = scored_points(frames.phases, frames.trials, ["lr"])
    assert points.loc[points["cut"], ["trial", "phase"]].to_numpy().tolist() == [[1, 0]]


def test_nothing_yet(nothing, frames):
    empty = score_by_hyperparameter(nothing.phases, nothing.trials.assign(lr=[]), ["lr"])
    assert empty.layout.annotations[0].text == "no phase has ended yet"
    assert score_by_hyperparameter(frames.phases, frames.trials, []).layout.annotations[0].text == "nothing was varied"
