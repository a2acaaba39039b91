import pandas as pd

from workbench.viz import adjustment, beside, sweep


def test_ours_and_the_published_stand_side_by_side_and_look_different():
    fig = beside(["small", "large"], {"GA3C": [1, 2], "A3C": [3, 4]}, {"GA3C": [5, 6]}, "Table <2>", "PPS", log=True)
    assert [trace.name for trace in fig.data] == ["GA3C, ours", "GA3C, published", "A3C, ours"]
    ours, published, _ = fig.data
    assert (list(ours.y), list(published.y)) == ([1, 2], [5, 6])
    assert published.marker.pattern.shape == "/"
    assert ours.marker.pattern.shape is None
    assert fig.layout.yaxis.type == "log"
    assert "&lt;2&gt;" in fig.layout.title.text


def test_a_sweep_keeps_the_order_of_its_values():
    rows = pd.DataFrame({"value": ["1", "16", "4"], "pps": [10.0, 30.0, 20.0]})
    line = sweep(rows, "pps", "Fig. 3", "agents", "predictions a second").data[0]
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
