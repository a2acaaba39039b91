import pandas as pd

from workbench.viz import figures

ROWS = [("rate", 1e-4, 1.0), ("rate", 1e-2, 2.0), ("kind", "a", 0.5), ("kind", "<b>", 0.7)]
TABLE = pd.DataFrame(ROWS, columns=["hyperparameter", "value", "score"]).assign(low=0.1, high=3.0)


def test_a_panel_a_hyperparameter_with_its_band_and_its_scale() -> None:
    fig = figures.partial_dependence(TABLE, "")
    assert [axis.title.text for axis in fig.select_xaxes()] == ["rate", "kind"]
    assert fig.layout.xaxis.type == "log"
    assert list(fig.layout.xaxis2.ticktext) == ["&lt;b&gt;", "a"]
    lines = [trace for trace in fig.data if trace.mode == "lines+markers"]
    assert [list(line.y) for line in lines] == [[1.0, 2.0], [0.5, 0.7]]
    assert [list(line.x) for line in lines] == [[1e-4, 1e-2], [1.0, 0.0]]
    assert sum(trace.fill == "tonexty" for trace in fig.data) == 2


def test_a_score_is_told_with_the_value_that_it_is_predicted_for(pointed):
    fig = figures.partial_dependence(TABLE.assign(score=[12345.6, 2.0, 0.5, 0.7]), "")
    assert pointed(fig, 2) == "predicted score 12346 / 95 %: 0.1 to 3 / rate = 0.0001"
    assert pointed(fig, 5) == "predicted score 0.5 / 95 %: 0.1 to 3 / kind = a"


def test_values_that_crowd_stand_apart_though_each_comes_once() -> None:
    table = pd.DataFrame({"hyperparameter": "gamma", "value": [0.9, 0.95, 0.99, 0.999], "score": 1.0})
    fig = figures.partial_dependence(table.assign(low=0.9, high=1.1), "")
    assert list(fig.layout.xaxis.ticktext) == ["0.9", "0.95", "0.99", "0.999"]
    assert {trace.mode for trace in fig.data} == {"lines", "lines+markers"}, "bounds are no estimates"


def test_without_numbers_it_says_why() -> None:
    fig = figures.partial_dependence(TABLE.iloc[:0], "no importance: 3 trials with a score, 20 are needed")
    assert "20 are needed" in fig.layout.annotations[0].text
