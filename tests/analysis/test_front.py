"""Two objectives: which trials are on the front, on numbers worked by hand."""

import math

import pandas as pd
import pytest

from workbench.analysis import front
from workbench.viz.figures import objectives

ROWS = [  # trial, phase, score, size
    (0, 0, 9.0, 1.0),  # not its last phase
    (0, 1, 5.0, 50.0),
    (1, 0, 4.0, 20.0),
    (2, 0, 4.0, 60.0),  # as good as 1, and larger
    (3, 0, 3.0, 20.0),  # as small as 1, and worse
    (4, 0, 1.0, 5.0),
    (5, 0, 4.0, 20.0),  # equals 1
    (7, 0, 4.0, 30.0),  # as good as 1, and larger, if not as large as 0
    (6, 0, 9.0, 1.0),  # what it was before says nothing of its last phase
    (6, 1, 8.0, float("nan")),
]
ALONE = {"last_score": 1.0, "confirms": False, "state": "finished", "mode": "finished"}
PHASES = pd.DataFrame(ROWS, columns=["trial", "phase", "score", "size"]).assign(ended_s=1.0)


def on_front(**modes) -> list[int]:
    found = front(PHASES, "size", **modes)
    return found.loc[found["on_front"], "trial"].tolist()


def test_nobody_beats_those_on_the_front_in_both() -> None:
    assert on_front(second_mode="min") == [0, 1, 5, 4]
    assert on_front() == [0, 2]
    assert on_front(mode="min", second_mode="min") == [4]
    assert on_front(mode="min") == [4, 3, 2]


@pytest.mark.parametrize(("second_mode", "worst"), [("min", math.inf), ("max", -math.inf)])
def test_the_best_score_is_on_the_front_however_bad_its_metric(second_mode, worst) -> None:
    rows = [(0, 0, 3.0, worst), (1, 0, 3.0, worst), (2, 0, 2.0, worst), (3, 0, 1.0, 0.0)]
    phases = pd.DataFrame(rows, columns=["trial", "phase", "score", "size"]).assign(ended_s=1.0)
    found = front(phases, "size", second_mode=second_mode)
    assert found["on_front"].tolist() == [True, True, False, True]


@pytest.mark.parametrize(
    ("judged_by", "first", "last"), [("mean", (4.0, 3.0), (3.0, 3.0)), ("median", (2.0, 3.0), (3.0, 2.0))]
)
def test_of_several_seeds_a_configuration_is_on_the_front_and_no_lucky_one_of_them(judged_by, first, last) -> None:
    rows = [(0, 0, 2.0, 1.0), (1, 0, 9.0, 3.0), (2, 0, 1.0, 5.0), (3, 1, 3.0, 2.0), (4, 1, 3.0, 2.0), (5, 1, 3.0, 5.0)]
    phases = pd.DataFrame([*rows, (6, 0, 99.0, 0.0)], columns=["trial", "phase", "score", "size"]).assign(ended_s=1.0)
    trials = pd.DataFrame({"trial": range(7), "candidate": [0, 0, 0, 3, 3, 3, 3], **ALONE})
    trials["state"] = ["finished"] * 6 + ["failed"]
    found = front(phases, "size", second_mode="min", trials=trials, judged_by=judged_by)
    assert {row.trial: (row.score, row.second) for row in found.itertuples()} == {0: first, 3: last}
    assert found["phase"].tolist() == ([0, 1] if judged_by == "mean" else [1, 0])
    alone = front(PHASES, "size", trials=pd.DataFrame({"trial": range(8), "candidate": range(8), **ALONE}))
    assert alone.equals(front(PHASES, "size"))


def test_a_metric_that_no_trial_has_is_no_front() -> None:
    assert front(PHASES, "cost").empty
    assert (
        "no phase has ended with a metric cost" in objectives(front(PHASES, "cost"), "cost").layout.annotations[0].text
    )


def test_the_figure_joins_the_front() -> None:
    fig = objectives(front(PHASES, "size", second_mode="min"), "size <b>")
    assert sorted(fig.data[1].x) == list(fig.data[1].x) == [5.0, 20.0, 20.0, 50.0]
    assert set(fig.data[0].customdata) == {2, 3, 7}
    assert fig.layout.xaxis.title.text == "size &lt;b&gt;"
    assert "score 4<br>size &lt;b&gt; 30" in fig.data[0].hovertext[0]


def test_a_second_objective_over_decades_has_a_logarithmic_axis() -> None:
    sizes = front(PHASES, "size", second_mode="min")
    assert objectives(sizes, "size").layout.xaxis.type is None
    for size, kind in ((1e6, "log"), (float("inf"), None)):
        wide = sizes.assign(second=sizes["second"].replace(50.0, size))
        assert objectives(wide, "size").layout.xaxis.type == kind


def test_between_two_points_of_the_front_stands_what_one_of_them_attains() -> None:
    """What is seen there: of the right one where more is better, of the left one where less."""
    for second_mode, shape in (("max", "vh"), ("min", "hv")):
        fig = objectives(front(PHASES, "size", second_mode=second_mode), "size", second_mode)
        assert fig.data[1].line.shape == shape
