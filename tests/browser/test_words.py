"""What the page itself puts into words, run in a browser."""

from importlib.resources import files

import pytest

from tests.browser.lab import MISSING, chromium

FRONT = files("workbench.viz.dashboard").joinpath("front")


@pytest.mark.skipif(chromium() is None, reason=MISSING)
def test_only_hypertrick_s_phases_have_hypertrick_s_modes(tab) -> None:
    hypertrick = {"mode": "collecting", "reported": 3, "collecting_reports": 6}
    median = {"mode": "selecting", "reported": 3, "collecting_reports": None}
    phases = [hypertrick, {**hypertrick, "mode": "selecting"}, median, {**median, "mode": "collecting"}]
    phases += [{**hypertrick, "mode": "finished"}, {**median, "mode": "promoted"}]
    parts = "\n".join(FRONT.joinpath(name).read_text() for name in ("paint.js", "views.js"))
    said = f"(phases) => {{ {parts}; return phases.map((p) => [modeOf(p, true), nextIn(p).join()]); }}"
    told = tab.evaluate(said, phases)
    assert [short for short, _ in told] == ["DCM 3/6", "WSM", "selecting", "collecting", "last", "promoted"]
    assert told[0][1] == "collecting (DCM): 3 of 6 reports"
    assert told[1][1] == "selecting (WSM): the next report is ranked among 3"
    assert {words for _, words in told[2:]} == {""}
