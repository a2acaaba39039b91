import itertools
import math

import pandas as pd
import pytest

from workbench.viz.figures import score_by_hyperparameter, space_by_phase
from workbench.viz.figures.hyperparameters import scored_points


def test_a_panel_a_hyperparameter_with_its_axis(frames):
    fig = score_by_hyperparameter(frames.phases, frames.trials, ["lr", "net"])
    assert fig.layout.xaxis.type == "log"
    assert fig.layout.xaxis.title.text == "lr"
    assert list(fig.layout.xaxis2.ticktext) == ["&lt;script&gt;alert(1)&lt;/script&gt;", "large", "small"]


@pytest.mark.parametrize("name", ["wide", "narrow"])
def test_a_logarithmic_axis_has_numbers_enough_to_be_read_and_no_more_than_it_has_room_for(drawn, name):
    """Of 18 decades each had a number, one upon the other; of 1.4 decades, with one power of ten, none else had."""
    values = {"wide": [1e-15, 1e-6, 1e3], "narrow": [0.034, 0.5, 0.89]}
    trials = pd.DataFrame({"trial": range(3), "state": "finished", **values, "a": 1, "b": 2})
    phases = pd.DataFrame({"trial": range(3), "phase": 0, "ended_s": 1.0, "score": [0.0, 1.0, 2.0]})
    tab = drawn(score_by_hyperparameter(phases, trials, [name, *"ab"]))
    boxes = [number.bounding_box() for number in tab.locator(".xtick text").all()]
    lefts = sorted((box["x"], box["width"], box["height"]) for box in boxes)
    assert 3 <= len(lefts) <= 7
    assert all(x + width < after for (x, width, _), (after, *_) in itertools.pairwise(lefts))
    assert all(height < 25 for _, _, height in lefts), "no number is turned"


def test_points_by_phase_with_stopped_trials_marked(frames):
    first = score_by_hyperparameter(frames.phases, frames.trials, ["lr"]).data[0]
    assert first.name == "phase 0"
    assert list(first.x) == [1e-4, 1e-3, 1e-2]
    assert list(first.y) == [1.0, 0.5, 3.0]
    assert list(first.marker.symbol) == ["circle", "x", "circle"]


def test_of_many_hyperparameters_a_point_tells_its_panel_s_alone(frames):
    """With every name in every panel, a report of 100 trials with 20 hyperparameters had 7 MB of such words."""
    names = [f"h{k}" for k in range(9)]
    trials = frames.trials.assign(**{name: float(k) for k, name in enumerate(names)})
    fig = score_by_hyperparameter(frames.phases, trials, names)
    told = [trace.hovertext[0] for trace in fig.data if trace.name == "phase 0"]
    assert told == [f"trial 0 (finished), phase 0<br>score 1<br>h{k} = {k}" for k in range(9)]


def test_of_thousands_of_scores_some_of_each_phase_are_drawn_and_it_says_so() -> None:
    """A study of 3000 trials had 13 MB of points in one figure; which are crosses is still asked of all."""
    n, n_phases = 600, 4
    phases = pd.DataFrame({"trial": list(range(n)) * n_phases, "ended_s": 1.0, "score": range(n * n_phases)})
    phases["phase"] = [k // n for k in range(len(phases))]
    trials = pd.DataFrame({"trial": range(n), "state": "stopped", "lr": range(1, n + 1)})
    fig = score_by_hyperparameter(phases, trials, ["lr"])
    drawn = sum(len(trace.x) for trace in fig.data[:n_phases])
    assert fig.layout.title.text == f"Score against each hyperparameter: {drawn} of 2400 scores, drawn at random"
    assert 1980 < drawn <= 2000
    for phase, trace in enumerate(fig.data[:n_phases]):
        assert {min(trace.y), max(trace.y)} == {phase * n, phase * n + n - 1}
        assert set(trace.marker.symbol) == {"x" if phase == n_phases - 1 else "circle"}


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


NAMES = ["a network of three layers", "one with recurrent layers", "residual, of 32 features"]
LONGEST = 6 * max(map(len, NAMES))  # px of a figure, about


def of_words(**others):
    """Phases and trials, one a name, with these hyperparameters besides."""
    trials = pd.DataFrame({"trial": range(3), "state": "finished", "net": NAMES, **others})
    return pd.DataFrame({"trial": range(3), "phase": 0, "ended_s": 1.0, "score": [0.0, 1.0, 2.0]}), trials


def test_long_words_are_turned_below_a_panel_and_upright_beside_it():
    fig = space_by_phase(*of_words(lr=[1e-4, 1e-3, 1e-2]), ["lr", "net"])
    assert (fig.layout.yaxis.tickangle, fig.layout.yaxis.ticklabeloverflow) == (0, "allow")
    assert space_by_phase(*of_words(lr=[1e-4, 1e-3, 1e-2]), ["net", "lr"]).layout.xaxis.tickangle == -40


def test_turned_words_have_room_above_the_next_row():
    more = {name: [1.0, 2.0, 3.0] for name in "abcd"}
    fig, plain = (score_by_hyperparameter(*of_words(**more), [name, *"bcd"]) for name in ("net", "a"))
    gaps = [(f.layout.height - 124) * (f.layout.yaxis.domain[0] - f.layout.yaxis4.domain[1]) for f in (fig, plain)]
    assert gaps[0] - gaps[1] == pytest.approx(LONGEST * math.sin(math.radians(40)), abs=2)
    assert fig.layout.height - plain.layout.height == pytest.approx(2 * (gaps[0] - gaps[1]), abs=2)
