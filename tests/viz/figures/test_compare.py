import itertools

import numpy as np
import pandas as pd

from workbench import analysis
from workbench.analysis.importance import COLUMNS
from workbench.viz.figures import (
    best_and_nodes,
    compare_best,
    compare_curves,
    compare_importance,
    compare_survival,
    compare_time_to_best,
    hyperparameter_importance,
    theme,
)

HOSTILE = "<script>alert(1)</script>"


def test_studies_share_a_clock_and_are_escaped(frames, nothing):
    best = {HOSTILE: analysis.best_so_far(frames.phases), "empty": analysis.best_so_far(nothing.phases)}
    fig = compare_best(best, {HOSTILE: 25.0, "empty": 0.0})
    (line,) = fig.data
    assert line.name == "&lt;script&gt;alert(1)&lt;/script&gt;"
    assert list(line.x) == [8.0, 20.0, 25.0]  # the last level reaches to now
    assert list(line.y) == [3.0, 5.0, 5.0]
    assert fig.layout.xaxis.title.text.endswith("[s]")


def test_a_phase_has_one_grey_in_all_studies_and_one_line_in_the_legend(frames):
    """The first study stopped after its first phase."""
    short = frames.spans[frames.spans["phase"] == 0]
    best = dict.fromkeys(("short", "long"), analysis.best_so_far(frames.phases))
    spans, until = {"short": short, "long": frames.spans}, dict.fromkeys(best, 25.0)
    fig = best_and_nodes(best, spans, dict.fromkeys(best, frames.slots), until)
    colors = {}
    for trace in fig.data:
        if trace.name and trace.name.startswith("phase "):
            colors.setdefault(trace.name, set()).add(str(trace.marker.color))
    assert all(len(of_phase) == 1 for of_phase in colors.values())
    assert len(colors) == frames.spans["phase"].nunique() > 1
    named = [trace.name for trace in fig.data if trace.showlegend is not False]
    assert len(named) == len(set(named))
    assert set(colors) <= set(named)


def test_survival_is_a_share(survival):
    (line,) = compare_survival({"one": survival, "none": pd.DataFrame(columns=["phase", "began"])}).data
    assert list(line.y) == [1.0, 0.25]


def test_no_phase_has_a_number_that_no_study_has(survival, drawn):
    """Beside thirty phases there stood a phase -1, and one after the last."""
    tab = drawn(compare_survival({"one": survival, "many": pd.DataFrame({"phase": range(30), "began": 4})}))
    assert tab.locator(".xtick text").all_text_contents() == [str(phase) for phase in range(30)]


def test_of_many_phases_only_some_have_their_number(survival):
    many = pd.DataFrame({"phase": range(200), "began": 4})
    assert compare_survival({"one": survival, "many": many}).layout.xaxis.dtick == 7
    assert compare_survival({"one": survival}).layout.xaxis.dtick == 1


def test_nothing_to_compare_is_said():
    assert "ended" in compare_best({}, {}).layout.annotations[0].text
    assert "begun" in compare_survival({}).layout.annotations[0].text


def test_curves_are_one_line_a_study(curves):
    fig = compare_curves({HOSTILE: curves, "none": curves.iloc[:0]})
    (line,) = fig.data
    assert line.name == "&lt;script&gt;alert(1)&lt;/script&gt;"
    assert np.isnan(line.x).sum() == curves["trial"].nunique()  # a gap after each trial
    assert "reported" in compare_curves({}).layout.annotations[0].text


def test_importance_stands_beside_the_words_of_those_that_have_none():
    table = pd.DataFrame([["lr", 0.7, 0.5, 0.8, 0.1, 0.0, 0.2]], columns=COLUMNS)
    fig = compare_importance({"one": table, "two": table[:0]}, {"one": "R² 0.5", "two": f"no skill {HOSTILE}"})
    (bar,) = fig.data
    assert (list(bar.x), list(bar.y)) == ([0.7], ["lr"])
    assert np.allclose([bar.error_x.array[0], bar.error_x.arrayminus[0]], [0.1, 0.2])
    assert "two: no skill &lt;script" in fig.layout.xaxis.title.text
    assert "no skill" in compare_importance({"two": table[:0]}, {"two": "no skill"}).layout.annotations[0].text


def test_a_study_has_its_colour_though_another_has_no_importance():
    table = pd.DataFrame([["lr", 0.7, 0.5, 0.8, 0.1, 0.0, 0.2]], columns=COLUMNS)
    (bar,) = compare_importance({"one": table[:0], "two": table}, {"one": "no skill", "two": "R² 0.5"}).data
    assert bar.marker.color == theme.STUDY_COLORS[1]


def test_a_lone_study_is_named_in_the_legend(curves):
    fig = compare_curves({"monday": curves})
    assert [trace.name for trace in fig.data] == ["monday"]
    assert fig.layout.showlegend


def test_many_studies_have_a_line_each(curves):
    lines = [trace.line for trace in compare_curves({f"study {k}": curves for k in range(30)}).data]
    assert len({(line.color, line.dash) for line in lines}) == 30
    assert [line.dash for line in lines[:2]] == ["solid", "6px,3px"]


def test_time_to_best_stands_within_the_whole(frames, nothing):
    best = {"one": analysis.best_so_far(frames.phases), "empty": analysis.best_so_far(nothing.phases)}
    whole, until = compare_time_to_best(best, {"one": 25.0, "empty": 0.0}).data
    assert (list(whole.x), list(until.x), list(until.text)) == ([25.0], [20.0], ["5 (trial 0)"])
    assert "ended" in compare_time_to_best({}, {}).layout.annotations[0].text


def test_the_time_of_a_whole_study_is_told_with_its_unit(frames, pointed):
    best = {"one": analysis.best_so_far(frames.phases)}
    assert pointed(compare_time_to_best(best, {"one": 1500.0}), 0) == "one: 25.0 min in all"


def test_names_that_read_as_numbers_or_dates_are_names(frames):
    best = {"2026-11-26": analysis.best_so_far(frames.phases)}
    table = pd.DataFrame([["1", 0.7, 0.5, 0.8, 0.1, 0.0, 0.2]], columns=COLUMNS)
    drawn = [compare_time_to_best(best, {"2026-11-26": 25.0}), hyperparameter_importance(table, "R² 0.5")]
    drawn.append(compare_importance({"2026-11-26": table}, {"2026-11-26": "R² 0.5"}))
    assert [fig.layout.yaxis.type for fig in drawn] == ["category"] * 3


def test_the_best_score_stands_above_the_nodes_on_one_clock(frames):
    best = {name: analysis.best_so_far(frames.phases) for name in ("<b>", "b")}
    spans, slots = ({name: getattr(frames, what) for name in best} for what in ("spans", "slots"))
    until = {"<b>": frames.wall_s, "b": 2 * frames.wall_s}
    fig = best_and_nodes(best, spans, slots, until)
    axes = [fig.layout[name] for name in ("xaxis", "xaxis2", "xaxis3")]
    assert {tuple(axis.range) for axis in axes} == {(0.0, 2 * frames.wall_s)}
    assert {axis.matches or "x3" for axis in axes} == {"x3"}
    rooms = [fig.layout[name].domain for name in ("yaxis3", "yaxis2", "yaxis")]  # from below
    assert all(below[1] < above[0] for below, above in itertools.pairwise(rooms))
    bars = [trace for trace in fig.data if trace.type == "bar" and trace.customdata is not None]
    assert {trace.texttemplate for trace in bars} == {"%{customdata}"}
    ended = max(base + x for trace in fig.data if trace.xaxis == "x2" and trace.base is not None
                for base, x in zip(trace.base, trace.x, strict=True) if x is not None)  # fmt: skip
    assert ended <= frames.wall_s  # no bar of the shorter study reaches into the longer one's time
    assert "<b>" not in "".join(note.text for note in fig.layout.annotations)
    assert best_and_nodes({}, {}, {}, {}).layout.title.text
