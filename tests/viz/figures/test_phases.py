import pandas as pd
import pytest

from workbench.viz.figures import score_by_hyperparameter, score_by_phase, space_by_phase


def _study(n_phases):
    """Two trials: one ends all phases, its score that of its phase; the other is stopped after the first."""
    trials = pd.DataFrame({"trial": [0, 1], "state": ["finished", "stopped"], "lr": [1e-4, 1e-2], "gamma": [0.9, 0.99]})
    rows = [(0, phase, float(phase), 10.0) for phase in range(n_phases)] + [(1, 0, -1.0, 10.0)]
    return pd.DataFrame(rows, columns=["trial", "phase", "score", "ended_s"]), trials.assign(t_max=[2, 100])


def test_a_box_a_phase_every_score_and_how_many(frames):
    fig = score_by_phase(frames.phases, frames.trials)
    box, points, crosses = fig.data
    assert list(zip(box.x, box.y, strict=True)) == [(0, 1.0), (0, 0.5), (0, 3.0), (1, 5.0)]
    assert list(points.y) == list(box.y)
    assert [round(x) for x in points.x] == list(box.x)  # beside each other, but within their phase
    assert len(set(points.x)) == 4
    assert list(points.marker.symbol) == ["circle", "x", "circle", "circle"]
    assert [note.text for note in fig.layout.annotations] == ["3", "1", "trials"]
    assert crosses.name == "last score of a stopped or failed trial"


def test_of_hundreds_of_phases_some_are_labelled_and_no_trace_is_one_phase() -> None:
    """A trace or a label a phase would take plotly many minutes."""
    phases, trials = _study(500)
    labels = score_by_phase(phases, trials).layout.annotations
    assert [note.text for note in labels[:2]] == ["2", "1"]
    assert len(labels) < 40
    names = ["lr", "gamma"]
    drawn = score_by_hyperparameter(phases, trials, names).data
    assert len(drawn) < 6
    first = drawn[0]
    assert len(first.x) == len(first.marker.color) == 501
    assert first.marker.color[0] != first.marker.color[-1]


def test_boxes_and_counts_are_of_all_scores_where_some_are_points() -> None:
    phases = pd.DataFrame({"trial": range(2400), "phase": 0, "ended_s": 1.0, "score": range(2400)})
    trials = pd.DataFrame({"trial": range(2400), "state": "finished", "lr": 0.1, "gamma": 0.9})
    fig = score_by_phase(phases, trials)
    box, points = fig.data[:2]
    assert len(box.y) == 2400
    assert 1998 <= len(points.y) <= 2000
    assert fig.layout.annotations[0].text == "2400"
    space = space_by_phase(phases, trials, ["lr", "gamma"])
    assert space.layout.annotations[0].text == "phase 0: 2400 trials"
    assert len(space.data[0].x) == len(points.y)
    words = f": {len(points.y)} of 2400 scores, drawn at random"
    assert [figure.layout.title.text.endswith(words) for figure in (fig, space)] == [True, True]


def test_a_lone_score_stands_in_the_middle_of_its_phase(frames):
    assert score_by_phase(frames.phases, frames.trials).data[1].x[-1] == 1


def test_panels_hold_the_trials_that_ended_the_phase():
    phases, trials = _study(3)
    fig = space_by_phase(phases, trials, ["lr", "gamma", "t_max"])
    first, second, third = fig.data[:3]
    assert [list(panel.x) for panel in (first, second, third)] == [[1e-4, 1e-2], [1e-4], [1e-4]]
    assert list(first.y) == [0.9, 0.99]
    assert list(first.marker.color) == [0.0, -1.0]
    assert list(first.marker.symbol) == ["circle", "x"]
    assert list(first.marker.size) == [6, 16]
    assert [note.text for note in fig.layout.annotations] == [
        "phase 0: 2 trials",
        "phase 1: 1 trial",
        "phase 2: 1 trial",
    ]
    assert fig.layout.xaxis.type == fig.layout.xaxis3.type == "log"
    assert "size: t_max, 2 to 100" in [trace.name for trace in fig.data]


def test_hyperparameters_may_be_called_as_the_figure_calls_its_own() -> None:
    phases, trials = _study(3)
    plain, odd = ["lr", "gamma", "t_max"], ["size", "cut", "hover"]
    renamed = trials.rename(columns=dict(zip(plain, odd, strict=True)))
    for draw in (space_by_phase, score_by_hyperparameter):
        ours, theirs = draw(phases, renamed, odd), draw(phases, trials, plain)
        for one, other in zip(ours.data, theirs.data, strict=True):
            assert [str(part) for part in (one.x, one.y, one.marker.size)] == [
                str(part) for part in (other.x, other.y, other.marker.size)
            ]
        assert "<br>size = 0.0001<br>cut = 0.9<br>hover = 2" in str(ours.data[0].hovertext)


@pytest.mark.parametrize(
    ("third", "words"),
    [(["sgd", "<adam>"], "&lt;adam&gt; to sgd"), ([None, "sgd"], "sgd to sgd"), ([True, False], "False to True")],
)
def test_the_third_hyperparameter_may_be_a_word(third, words):
    phases, trials = _study(2)
    fig = space_by_phase(phases, trials.assign(t_max=pd.Series(third, dtype=object)), ["lr", "gamma", "t_max"])
    assert f"size: t_max, {words}" in [trace.name for trace in fig.data]


def test_of_many_phases_the_first_the_last_and_some_between():
    phases, trials = _study(9)
    shown = space_by_phase(phases, trials, ["lr", "gamma"], most_panels=3).layout.annotations
    assert [note.text.partition(":")[0] for note in shown] == ["phase 0", "phase 4", "phase 8"]


def test_names_and_words_below_panels_have_the_room_of_one():
    phases, trials = _study(9)
    trials = trials.rename(columns={"lr": "l" * 30 + "r" * 30})
    fig = space_by_phase(phases, trials, ["l" * 30 + "r" * 30, "gamma"])
    assert [axis.title.text for axis in fig.select_xaxes()] == ["l" * 7 + "…" + "r" * 8] * 4
    trials["net"] = ["s" * 17 if k % 2 else "l" * 17 for k in range(len(trials))]
    assert {axis.tickangle for axis in space_by_phase(phases, trials, ["net", "gamma"]).select_xaxes()} == {-40}
    assert space_by_phase(phases, trials, ["net", "gamma"], most_panels=2).layout.xaxis.tickangle == 0


def test_a_word_from_the_log_is_an_axis_and_escaped(frames):
    fig = space_by_phase(frames.phases, frames.trials, ["lr", "net"])
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in fig.layout.yaxis.ticktext


def test_panels_over_words_leave_their_vertical_axis_to_the_values(frames):
    """Plotly gives it no range where horizontal axes match and have ranges of their own: no point was seen."""
    fig = space_by_phase(frames.phases, frames.trials, ["net", "lr"])
    axes = list(fig.select_xaxes())
    assert {axis.matches for axis in axes} == {None}
    assert len({tuple(axis.range) for axis in axes}) == 1
    other = space_by_phase(frames.phases, frames.trials, ["lr", "net"])
    assert {axis.matches for axis in other.select_xaxes()} == {"x"}


@pytest.mark.parametrize("names", [["lr"], ["lr", "net"]])
def test_nothing_to_draw_is_told(names, nothing):
    trials = nothing.trials.assign(lr=[], net=[])
    told = space_by_phase(nothing.phases, trials, names).layout.annotations[0].text
    assert told == ("no phase has ended yet" if len(names) > 1 else "two hyperparameters are needed to draw a space")
    assert score_by_phase(nothing.phases, trials).layout.annotations[0].text == "no phase has ended yet"
