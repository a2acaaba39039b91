import json
import re
from html.parser import HTMLParser

import pandas as pd
import plotly.graph_objects as go
import pytest

from workbench.viz.figures import node_occupancy, report, report_html, score_by_hyperparameter, write_report

HOSTILE = "<script>alert(1)</script>"


class _Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.opened = []

    def handle_starttag(self, tag, attrs):
        self.opened.append((tag, dict(attrs)))


def _elements(page):
    parser = _Elements()
    parser.feed(page)
    return parser.opened


@pytest.fixture
def page(frames):
    figures = {
        HOSTILE: node_occupancy(frames.spans, frames.slots, frames.wall_s),
        "scores": score_by_hyperparameter(frames.phases, frames.trials, frames.hyperparameters),
    }
    tables = {"Trials": frames.trials, HOSTILE: frames.decisions}
    return report_html(HOSTILE, {HOSTILE: HOSTILE, "best": {HOSTILE: 1.0}}, figures, tables, note=HOSTILE)


def test_hostile_words_stay_words(page):
    assert HOSTILE not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 6
    scripts = [attrs for tag, attrs in _elements(page) if tag == "script"]
    assert [attrs.get("type") for attrs in scripts] == ["application/json"] * 2 + [None, None]


def test_nothing_is_loaded_from_anywhere(page):
    for tag, attrs in _elements(page):
        assert tag not in ("link", "img", "iframe", "object", "embed")
        assert "src" not in attrs
    assert "default-src 'none'" in page
    assert "@import" not in report._STYLE
    assert "url(" not in report._STYLE


def test_figures_can_be_read_back(page, frames):
    found = re.findall(r'<script type="application/json" id="figure-\d+-data">(.*?)</script>', page)
    assert len(found) == 2
    assert json.loads(found[0])["layout"]["title"]["text"] == "Slots over time"


def test_plotly_comes_once_and_only_with_figures(page):
    assert page.count("Plotly.newPlot(holder") == 1
    assert len(page) > 1_000_000
    assert len(report_html("none", {}, {})) < 10_000


def test_light_and_dark(page):
    assert "prefers-color-scheme: dark" in page


def test_cells():
    table = report.table_html(pd.DataFrame({"a": [1.23456, None], "b": ["<i>", None], "c": [{"k": 0.5}, {}]}))
    assert '<td class="number">1.235</td><td>&lt;i&gt;</td><td>k = 0.5</td>' in table
    assert '<td class="number">–</td><td>–</td><td>–</td>' in table


def test_a_long_table_is_cut_and_says_so(monkeypatch):
    monkeypatch.setattr(report, "MOST_ROWS", 3)
    page = report_html("long", {}, {}, {"rows": pd.DataFrame({"n": range(10)})})
    assert "The first 3 of 10 rows." in page
    assert page.count("<tr>") == 1 + 3


def test_an_empty_study_has_a_report(nothing):
    figures = {"slots": node_occupancy(nothing.spans, nothing.slots, 0.0)}
    assert "Nothing yet." in report_html("empty", {}, figures, {"Trials": nothing.trials})


def test_write_replaces_whole(tmp_path):
    target = tmp_path / "new" / "report.html"
    assert write_report(target, "one", {}, {}) == target
    write_report(target, "two", {}, {})
    assert "<h1>two</h1>" in target.read_text(encoding="utf-8")
    assert [path.name for path in target.parent.iterdir()] == ["report.html"]


def test_a_failed_write_leaves_the_old_report(tmp_path, monkeypatch):
    target = write_report(tmp_path / "report.html", "old", {}, {})

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(report.os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report(target, "new", {}, {"": go.Figure()})
    assert "<h1>old</h1>" in target.read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
