import pandas as pd

from workbench.viz import figures

ROWS = [
    (p, 30, rate, net, p * 10 + s) for p in (0, 5) for rate in (1e-4, 1e-2) for net, s in (("a", 1.0), ("<b>", rate))
]
TABLE = pd.DataFrame(ROWS, columns=["phase", "trials", "rate", "net", "score"])


def test_a_panel_a_phase_with_a_star_on_its_best() -> None:
    fig = figures.landscape(TABLE, "")
    assert [note.text for note in fig.layout.annotations] == [
        "phase 0: 30 configurations",
        "phase 5: 30 configurations",
    ]
    assert fig.layout.xaxis.type == "log"
    assert list(fig.layout.yaxis.ticktext) == ["&lt;b&gt;", "a"]
    assert fig.layout.xaxis2.matches == "x"
    maps, stars = [t for t in fig.data if t.type == "heatmap"], [t for t in fig.data if t.type == "scatter"]
    assert [list(one.z) for one in maps] == [list(TABLE.loc[TABLE["phase"] == phase, "score"]) for phase in (0, 5)]
    assert [(star.x[0], star.y[0]) for star in stars] == [(1e-4, 1.0)] * 2


def test_panels_over_words_leave_their_vertical_axis_to_the_values() -> None:
    fig = figures.landscape(TABLE[["phase", "trials", "net", "rate", "score"]], "")
    assert {axis.matches for axis in fig.select_xaxes()} == {None}
    assert {tuple(axis.range) for axis in fig.select_xaxes()} == {(-0.5, 1.5)}


def test_the_star_is_on_the_lowest_where_low_scores_are_good() -> None:
    stars = [t for t in figures.landscape(TABLE, "", "min").data if t.type == "scatter"]
    assert [(star.x[0], star.y[0]) for star in stars] == [(1e-4, 0.0)] * 2


def test_without_numbers_it_says_why() -> None:
    fig = figures.landscape(TABLE.iloc[:0], "no importance: 3 trials with a score, 20 are needed")
    assert "20 are needed" in fig.layout.annotations[0].text
