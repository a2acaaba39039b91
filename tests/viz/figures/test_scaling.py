import pandas as pd
import pytest

from workbench.viz.figures import scaling

COLUMNS = ["series", "source", "x", "value", "low", "high"]


def test_what_was_measured_modelled_and_published_looks_different():
    rows = [
        ("Pong", "measured", 2, 190.0, 180.0, 210.0),
        ("Pong", "measured", 1, 100.0, 90.0, 105.0),
        ("ring <", "model", 64, 5000.0, None, None),
        ("the paper", "published", 64, 40.6, None, None),
        ("the paper", "linear", 64, 6400.0, None, None),
    ]
    fig = scaling(pd.DataFrame(rows, columns=COLUMNS), "Fig. 8", "data points/s")
    looks = {trace.name: (trace.mode, trace.line.dash, trace.marker.symbol) for trace in fig.data}
    assert looks == {
        "Pong, measured": ("lines+markers", None, "circle"),
        "ring &lt;, model": ("lines", "dash", None),
        "the paper, published": ("markers", None, "diamond-open"),
        "the paper, linear": ("lines", "dot", None),
    }
    measured = fig.data[0]
    assert (list(measured.x), list(measured.y)) == ([1, 2], [100, 190])
    assert list(measured.error_y.arrayminus) == pytest.approx([10, 10])
    assert fig.data[1].error_y.array is None
    assert (fig.layout.xaxis.type, fig.layout.yaxis.type) == ("log", "log")


def test_nothing_measured():
    fig = scaling(pd.DataFrame(columns=COLUMNS), "", "")
    assert fig.layout.annotations[0].text == "nothing was measured"
