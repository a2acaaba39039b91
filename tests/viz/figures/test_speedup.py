import math

import pandas as pd
import pytest

from workbench.viz.figures import speedup_by_variance

COLUMNS = ["law", "cv", "speedup", "low", "high", "expected"]


def test_a_curve_expected_and_marks_measured_for_each_law():
    rows = [("gamma", 1.0, 3.1, 2.9, 3.4, 3.0), ("gamma", 0.1, 1.4, 1.3, 1.5, 1.2), ("p<", 2.0, math.nan, 0, 0, 2.5)]
    fig = speedup_by_variance(pd.DataFrame(rows, columns=COLUMNS))
    drawn = {trace.name: (list(trace.x), list(trace.y)) for trace in fig.data}
    assert drawn == {
        "gamma, expected": ([0.1, 1.0], [1.2, 3.0]),
        "gamma, measured": ([0.1, 1.0], [1.4, 3.1]),
        "p&lt;, expected": ([2.0], [2.5]),
    }
    bars = fig.data[1].error_y
    assert list(bars.array) == pytest.approx([0.1, 0.3])
    assert list(bars.arrayminus) == pytest.approx([0.1, 0.2])


def test_nothing_measured():
    fig = speedup_by_variance(pd.DataFrame(columns=COLUMNS))
    assert fig.layout.annotations[0].text == "nothing was measured"


def test_published_speedups_are_lines_across():
    fig = speedup_by_variance(pd.DataFrame([("gamma", 1.0, 3, 3, 3, 3.0)], columns=COLUMNS), published={"high >": 5})
    line = fig.layout.shapes[1]
    assert (line.y0, line.y1, line.xref) == (5, 5, "x domain")
    assert fig.layout.annotations[0].text == "published: high &gt; 5"
