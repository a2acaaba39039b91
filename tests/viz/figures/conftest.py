"""A small study with everything a figure must draw: a crash, a held trial, a running one, and hostile words.

node "<b>n</b>" has slots 0 and 1, node "m" slot 2. Trial 0 runs on slot 0, trial 1 crashes once on slot 1 and is
stopped, trial 2 is held on slot 2, trial 3 runs on slot 1 to no end; the clock stands at 20 s.
"""

import pandas as pd
import pytest
from plotly.offline import get_plotlyjs

from tests.browser.lab import MISSING, browser_page, chromium
from tests.events import begun, ended, judged, runs
from workbench.core.protocols import Event, Kind
from workbench.knowledge import Frames, frames_of

HOSTILE = "<script>alert(1)</script>"


def _runs(at: float, trial: int, lr: float, net: str) -> Event:
    return runs(at, trial, {"lr": lr, "net": net, HOSTILE: 1}, seed=trial)


EVENTS = [
    Event(Kind.STUDY_STARTED, 0.0),
    Event(Kind.SLOT_JOINED, 0.0, slot=0, data={"node": "<b>n</b>"}),
    Event(Kind.SLOT_JOINED, 0.0, slot=1, data={"node": "<b>n</b>"}),
    Event(Kind.SLOT_JOINED, 2.0, slot=2, data={"node": "m"}),
    _runs(0.0, 0, 1e-4, "small"),
    _runs(0.0, 1, 1e-3, HOSTILE),
    _runs(2.0, 2, 1e-2, "small"),
    begun(0.0, 0, 0, 0),
    begun(0.0, 1, 0, 1),
    begun(2.0, 2, 0, 2),
    Event(Kind.PHASE_FAILED, 4.0, 1, 0, 1, {"error": HOSTILE}),
    begun(5.0, 1, 0, 1),
    ended(8.0, 2, 0, 2, 3.0, frames=100),
    judged(8.0, 2, 0, "hold", "rung", rank=0.25),
    ended(10.0, 0, 0, 0, 1.0, frames=100),
    judged(10.0, 0, 0, "continue", "collecting", rank=0.25),
    begun(10.0, 0, 1, 0),
    ended(11.0, 1, 0, 1, 0.5, frames=100),
    judged(11.0, 1, 0, "stop", "selecting", rank=0.25),
    _runs(12.0, 3, 1e-5, "large"),
    begun(12.0, 3, 0, 1),
    ended(20.0, 0, 1, 0, 5.0, frames=100),
    judged(20.0, 0, 1, "stop", "finished", rank=0.25),
]

POINTS = [(1, 0, 0, 5.0, "score", 0.5), (2, 3, 0, 14.0, "score", 0.2), (3, 3, 0, 16.0, "score", 0.4)]


@pytest.fixture
def frames() -> Frames:
    return frames_of(EVENTS, pd.DataFrame(POINTS, columns=["seq", "trial", "phase", "at_s", "name", "value"]))


@pytest.fixture
def nothing() -> Frames:
    """A study of which nothing has been logged yet."""
    return frames_of([])


@pytest.fixture
def curves() -> pd.DataFrame:
    """The curves of that study, as the analysis gives them."""
    rows = [(0, 0, 5.0, 5.0, 0.5, False), (0, 0, 10.0, 10.0, 1.0, True), (0, 1, 20.0, 20.0, 5.0, True)]
    rows += [(1, 0, 11.0, 6.0, 0.5, True), (2, 0, 8.0, 6.0, 3.0, True)]
    rows += [(3, 0, 14.0, 2.0, 0.2, False), (3, 0, 16.0, 4.0, 0.4, False)]
    return pd.DataFrame(rows, columns=["trial", "phase", "at_s", "x", "score", "phase_end"])


@pytest.fixture
def survival() -> pd.DataFrame:
    """What became of its trials, as the analysis gives it."""
    rows = [(0, 4, 3, 1, 1, 1, 0, 0, 1, "selecting"), (1, 1, 1, 0, 0, 0, 1, 0, 0, "finished")]
    names = ["phase", "began", "completed", "continued", "waiting", "stopped", "finished", "failed", "running", "mode"]
    return pd.DataFrame(rows, columns=names)


@pytest.fixture(scope="module")
def browser():
    if chromium() is None:
        pytest.skip(MISSING)
    with browser_page() as tab:
        yield tab


@pytest.fixture
def tab(browser):
    """The page of a browser that the tests share; it has not complained yet."""
    browser.complaints.clear()
    return browser


_DRAW = """fig => {
  const { data, layout } = JSON.parse(fig);
  const place = document.createElement("div");
  place.style = "height: 100%; width: 100%";
  document.querySelectorAll(".js-plotly-plot").forEach(Plotly.purge);
  document.body.replaceChildren(place);
  return Plotly.newPlot(place, data, layout, { responsive: true }).then(() => null);
}"""


@pytest.fixture
def drawn(tab):
    """Draw a figure in the page, 1000 pixels wide, and give the page, which reads plotly.js once."""

    def draw(fig):
        tab.set_viewport_size({"width": 1000, "height": 800})
        if not tab.evaluate("'draws' in document.body.dataset"):
            tab.set_content("<!doctype html><body data-draws></body>")
            tab.add_script_tag(content=get_plotlyjs())
        tab.evaluate(_DRAW, fig.to_json())
        return tab

    return draw


_POINT = """curve => {
  const plot = document.querySelector(".js-plotly-plot");
  const { xaxis = "x", yaxis = "y" } = plot.data[curve];
  Plotly.Fx.hover(plot, [{ curveNumber: curve, pointNumber: 0 }], xaxis + yaxis);
}"""


def _lines_of(words):
    return words.locator("tspan.line").all_text_contents() or [words.text_content()]


@pytest.fixture
def pointed(drawn):
    """Draw a figure, point at the first point of one of its traces, and give the words that come."""

    def point(fig, curve):
        tab = drawn(fig)
        tab.evaluate(_POINT, curve)
        return " / ".join(line for words in tab.locator(".hoverlayer text").all() for line in _lines_of(words))

    return point
