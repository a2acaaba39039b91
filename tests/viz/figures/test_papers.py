import pandas as pd
import pytest

from workbench.viz.figures import adjustment, beside, estimates, sweep


def test_ours_and_the_published_stand_side_by_side_and_look_different():
    fig = beside(["small", "large"], {"GA3C": [1, 2], "A3C": [3, 4]}, {"GA3C": [5, 6]}, "Table <2>", "PPS", log=True)
    assert [trace.name for trace in fig.data] == ["GA3C, ours", "GA3C, published", "A3C, ours"]
    ours, published, _ = fig.data
    assert (list(ours.y), list(published.y)) == ([1, 2], [5, 6])
    assert published.marker.pattern.shape == "/"
    assert ours.marker.pattern.shape is None
    assert (fig.layout.xaxis.type, fig.layout.yaxis.type) == ("category", "log")
    assert "&lt;2&gt;" in fig.layout.title.text


def test_a_sweep_keeps_the_order_of_its_values():
    rows = pd.DataFrame({"value": ["1", "16", "4"], "pps": [10.0, 30.0, 20.0]})
    fig = sweep(rows, "pps", "Fig. 3", "agents", "predictions a second")
    line = fig.data[0]
    assert not fig.layout.showlegend  # the axis tells what it is
    assert list(line.x) == ["1", "16", "4"]
    assert list(line.y) == [10, 30, 20]
    assert sweep(rows[:0], "pps", "", "", "").layout.annotations[0].text == "nothing was measured"


def test_adjustment_draws_what_changed_and_what_it_gave():
    path = pd.DataFrame({"n_agents": [16, 32], "n_predictors": [1, 1], "n_trainers": [1, 2], "tps": [50.0, 70.0]})
    drawn = {trace.name: (list(trace.y), trace.yaxis) for trace in adjustment(path, "Fig. 2").data}
    assert drawn == {
        "agents": ([16, 32], None),
        "predictors": ([10, 10], None),
        "trainers": ([10, 20], None),
        "updates a second": ([50, 70], "y2"),
    }


def test_adjustment_has_round_numbers_at_both_sides(drawn):
    path = pd.DataFrame({"n_agents": [16, 32], "n_predictors": [1, 1], "n_trainers": [1, 2], "tps": [26.3, 88.1]})
    tab = drawn(adjustment(path, "Fig. 2"))
    assert tab.locator(".y2tick text").all_text_contents() == [str(n) for n in range(30, 100, 10)]


def test_estimates_have_a_colour_a_group_and_published_ones_are_hollow():
    rows = [("size", "10 <", 1.1, 1.0, 1.3, "measured"), ("size", "80", 1.4, float("nan"), float("nan"), "published")]
    rows.append(("exploit", "none", 0.9, 0.8, 1.0, "measured"))
    columns = ["group", "name", "value", "low", "high", "source"]
    fig = estimates(pd.DataFrame(rows, columns=columns), "Fig. 5", "ratio", reference=1)
    assert [(trace.name, trace.y, trace.marker.symbol) for trace in fig.data] == [
        ("size, measured", ("size: 10 &lt;",), "circle"),
        ("size, published", ("size: 80",), "diamond-open"),
        ("exploit, measured", ("exploit: none",), "circle"),
    ]
    assert list(fig.data[0].error_x.array) == pytest.approx([0.2])
    assert list(fig.data[0].error_x.arrayminus) == pytest.approx([0.1])
    assert fig.data[0].marker.color == fig.data[1].marker.color != fig.data[2].marker.color
    assert fig.layout.shapes[0].x0 == 1
    assert estimates(pd.DataFrame(columns=columns), "", "").layout.annotations[0].text == "nothing was measured"
