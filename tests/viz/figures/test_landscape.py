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
    assert [one.z.tolist() for one in maps] == [[[p + 1e-4, p + 1e-2], [p + 1.0, p + 1.0]] for p in (0, 50)]
    assert {(tuple(one.x), tuple(one.y)) for one in maps} == {((1e-4, 1e-2), (0.0, 1.0))}
    assert [(star.x[0], star.y[0]) for star in stars] == [(1e-4, 1.0)] * 2


def test_a_cell_says_what_it_is_of_in_the_words_of_other_figures() -> None:
    hover = figures.landscape(TABLE, "").data[0].hovertext
    assert hover[0][1] == "predicted score 0.01<br>rate = 0.01<br>net = &lt;b&gt;"


def test_values_of_many_decades_have_a_cell_each(drawn) -> None:
    """Given columns, a browser took those below 1e-5 for one, and painted over all but the last."""
    rates = [1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 1.0]
    rows = [(0, 30, rate, net, k) for k, rate in enumerate(rates) for net in ("a", "b")]
    fig = figures.landscape(pd.DataFrame(rows, columns=TABLE.columns), "")
    cells = drawn(fig).evaluate("document.querySelector('.js-plotly-plot').calcdata[0][0].z.map((row) => [...row])")
    assert cells == [[*range(6)]] * 2


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
