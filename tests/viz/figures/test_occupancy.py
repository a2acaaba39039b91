import pandas as pd
import pytest

from workbench.viz.figures import node_occupancy, occupancy_over_time
from workbench.viz.figures.occupancy import slot_rows, span_bars


def _drawn(fig):
    return {trace.name: trace for trace in fig.data if trace.x is not None and trace.x[0] is not None}


def test_one_trace_a_phase_and_one_for_idle(frames):
    fig = node_occupancy(frames.spans, frames.slots, frames.wall_s)
    assert list(_drawn(fig)) == ["idle", "phase 0", "phase 1"]
    bars = _drawn(fig)["phase 0"]
    assert list(bars.base) == [0.0, 0.0, 2.0, 5.0, 8.0, 12.0]
    assert list(bars.x) == [10.0, 4.0, 6.0, 6.0, 12.0, 8.0]  # the last two run to the clock's 20 s


def test_held_and_lost_are_hatched(frames):
    bars = _drawn(node_occupancy(frames.spans, frames.slots, frames.wall_s))["phase 0"]
    assert list(bars.marker.pattern.shape) == ["", "x", "", "", "/", ""]
    names = {trace.name for trace in node_occupancy(frames.spans, frames.slots, frames.wall_s).data}
    assert {"held", "lost"} <= names


def test_slots_of_a_node_stand_together(frames):
    rows = slot_rows(frames.slots, frames.spans)
    assert rows["label"].tolist() == ["&lt;b&gt;n&lt;/b&gt; · 0", "&lt;b&gt;n&lt;/b&gt; · 1", "m"]
    assert rows["y"].tolist() == [0.0, 1.0, 2.0]


def test_a_gap_parts_nodes_of_several_slots():
    slots = pd.DataFrame({"slot": [0, 1, 2, 3], "node": ["a", "b", "a", "b"], "joined_s": 0.0, "lost_s": float("nan")})
    assert slot_rows(slots, pd.DataFrame(columns=["slot", "node"]))["y"].tolist() == [0.0, 1.0, 2.5, 3.5]


def test_hover_tells_trial_phase_times_and_outcome(frames):
    bars = span_bars(frames.spans, slot_rows(frames.slots, frames.spans), frames.wall_s)
    crash = bars.loc[bars["outcome"] == "lost", "hover"].item()
    assert crash == "trial 1 · phase 0<br>&lt;b&gt;n&lt;/b&gt; · slot 1<br>0.0–4.0 s (4.0 s)<br>lost"


def test_the_title_says_how_much_was_used(frames):
    fig = node_occupancy(frames.spans, frames.slots, frames.wall_s, occupancy=0.4567)
    assert fig.layout.title.text == "Slots over time: 45.7% occupied"
    assert fig.layout.xaxis.title.text == "time since the study began [s]"


def test_many_phases_get_a_colour_bar():
    spans = pd.DataFrame({"slot": 0, "node": "a", "trial": 0, "phase": range(15), "outcome": "ended"})
    spans = spans.assign(started_s=range(15), ended_s=range(1, 16))
    slots = pd.DataFrame({"slot": [0], "node": ["a"], "joined_s": [0.0], "lost_s": [float("nan")]})
    fig = node_occupancy(spans, slots, 15.0)
    assert [trace.name for trace in fig.data if trace.showlegend is not False] == ["idle"]
    _, bars, colorbar = fig.data
    assert [color for _, color in colorbar.marker.colorscale] == list(dict.fromkeys(bars.marker.color))
    assert (colorbar.marker.cmin, colorbar.marker.cmax, len(set(bars.marker.color))) == (0, 14, 15)
    assert colorbar.marker.colorbar.title.text == "phase"


def test_of_thousands_of_bars_each_tells_its_trial() -> None:
    spans = pd.DataFrame({"slot": 0, "node": "a", "trial": range(3001), "phase": 0, "outcome": "ended"})
    spans = spans.assign(started_s=range(3001), ended_s=range(1, 3002))
    slots = pd.DataFrame({"slot": [0], "node": ["a"], "joined_s": [0.0], "lost_s": [float("nan")]})
    some, all_of_them = (_drawn(node_occupancy(spans[:n], slots, 3001.0))["phase 0"] for n in (3000, 3001))
    assert some.hovertext[-1] == "trial 2999 · phase 0<br>a · slot 0<br>2999.0–3000.0 s (1.0 s)<br>ended"
    assert (all_of_them.hovertext, all_of_them.customdata[-1]) == (None, 3000)
    assert all_of_them.hovertemplate == "trial %{customdata}<extra></extra>"


def test_nothing_yet(nothing):
    fig = node_occupancy(nothing.spans, nothing.slots, nothing.wall_s, occupancy=float("nan"))
    assert fig.layout.title.text == "Slots over time"
    assert fig.layout.annotations[0].text == "no slot has joined yet"
    assert occupancy_over_time(pd.DataFrame(columns=["from_s", "to_s"])).layout.annotations


def test_occupancy_over_time_stacks_what_there_is():
    over = pd.DataFrame({"from_s": [0.0, 300.0], "to_s": [300.0, 600.0], "ran": [1.0, 2.0], "lost": 0.0, "held": 0.0})
    fig = occupancy_over_time(over.assign(idle=[1.0, 0.0]))
    assert [trace.name for trace in fig.data] == ["ran", "idle"]
    assert list(fig.data[0].x) == pytest.approx([0.0, 5.0, 10.0])  # minutes
    assert list(fig.data[0].y) == [1.0, 2.0, 2.0]


def test_the_time_that_is_pointed_at_has_its_unit(drawn):
    over = pd.DataFrame({"from_s": [0.0, 300.0], "to_s": [300.0, 600.0], "ran": 1.0, "lost": 0.0, "held": 0.0})
    tab = drawn(occupancy_over_time(over.assign(idle=0.0)))
    tab.evaluate("Plotly.Fx.hover(document.querySelector('.js-plotly-plot'), { xval: 5 })")
    assert tab.locator(".hoverlayer .legendtitletext").text_content() == "5.00 min"


def test_small_studies_have_their_trials_named_in_the_bars(frames):
    fig = node_occupancy(frames.spans, frames.slots, frames.wall_s, named=True)
    assert {trace.texttemplate for trace in fig.data if trace.customdata is not None} == {"%{customdata}"}
