import pandas as pd

from workbench.viz.figures import bands


def test_a_line_and_a_band_for_each_scheduler():
    frame = pd.DataFrame(
        [("a", 1, 5, 4, 6), ("a", 2, 3, 2, 4), ("b<", 1, 7, 6, 8), ("b<", 2, 1, 0, 2)],
        columns=["scheduler", "at", "median", "low", "high"],
    )
    fig = bands(frame, "Regret", "time", "regret")
    lines = {trace.name: list(trace.y) for trace in fig.data if trace.name}
    assert lines == {"a": [5, 3], "b&lt;": [7, 1]}
    assert [list(trace.y) for trace in fig.data if not trace.name] == [[4, 2, 4, 6], [6, 0, 2, 8]]


def test_scores_of_thousands_are_told_in_full(pointed):
    frame = pd.DataFrame([("a", 250_012, 10_894, 1, 2)], columns=["scheduler", "at", "median", "low", "high"])
    assert pointed(bands(frame, "Scores", "frames", "score"), 1) == "a: 10894 at 250012"


def test_more_lines_than_colours_are_told_apart_and_the_legend_has_room_for_all():
    frame = pd.DataFrame(
        [(f"s{n}", 1, n, n, n) for n in range(16)], columns=["scheduler", "at", "median", "low", "high"]
    )
    fig = bands(frame, "Regret", "time", "regret")
    lines = [(trace.line.color, trace.line.dash) for trace in fig.data if trace.name]
    assert len(set(lines)) == 16
    assert fig.layout.height > bands(frame[:8], "Regret", "time", "regret").layout.height > 400


def test_nothing_compared():
    empty = pd.DataFrame(columns=["scheduler", "at", "median", "low", "high"])
    assert bands(empty, "Regret", "time", "regret").layout.annotations[0].text == "nothing was compared"
