import json
import os
import re
import tomllib
from html import unescape
from html.parser import HTMLParser
from unittest import mock

import pandas as pd
import plotly.graph_objects as go
import pytest

from tests.browser.standing import events_of
from workbench.analysis import importance
from workbench.core.describe import describe
from workbench.core.errors import InvalidInput
from workbench.core.places import is_device
from workbench.core.protocols import Event, Kind
from workbench.core.size import size_of
from workbench.knowledge import Controls, StudyLog
from workbench.study.results import Results
from workbench.viz.figures import node_occupancy, report, report_html, score_by_hyperparameter, write_report

# Titles of figures that touch the legend of the same figure.
UNDER = """() => [...document.querySelectorAll('.plot')].flatMap((plot) => {
  const [title, legend] = ['.gtitle', '.legend'].map((name) => plot.querySelector(name)?.getBoundingClientRect());
  if (!title?.width || !legend?.width) return [];
  const apart = title.right <= legend.left || legend.right <= title.left;
  return apart || title.bottom <= legend.top || legend.bottom <= title.top ? [] : [plot.textContent.slice(0, 60)];
})"""
HOSTILE = "<script>alert(1)</script>"
SETTINGS = {"seed": 0, "scheduler": {"kind": HOSTILE, "rates": [0.5, 1.0]}}


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
    told = {HOSTILE: HOSTILE, "best": {HOSTILE: 1.0}}
    return report_html(HOSTILE, told, figures, tables, note=HOSTILE, settings=SETTINGS)


def test_hostile_words_stay_words(page):
    assert HOSTILE not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 6
    scripts = [attrs for tag, attrs in _elements(page) if tag == "script"]
    assert [attrs.get("type") for attrs in scripts] == ["application/json"] * 2 + [None, None, None]


def test_nothing_is_loaded_from_anywhere(page):
    for tag, attrs in _elements(page):
        assert tag not in ("link", "img", "iframe", "object", "embed")
        assert "src" not in attrs
    assert "default-src 'none'; script-src 'unsafe-inline';" in page
    assert "@import" not in report._STYLE
    assert "url(" not in report._STYLE


def test_contents_lead_to_every_part(page):
    ids = {attrs["id"] for _, attrs in _elements(page) if "id" in attrs}
    links = [attrs["href"] for tag, attrs in _elements(page) if tag == "a"]
    assert links == ["#figure-0", "#figure-1", "#table-0", "#table-1", "#settings"]
    assert {link[1:] for link in links} <= ids
    assert ">Slots over time</a>" in page


def test_settings_are_toml(page):
    told = re.search(r'id="settings">Settings</h2><pre>(.*?)</pre>', page, re.DOTALL)[1]
    assert tomllib.loads(unescape(told)) == SETTINGS


def test_the_library_is_shared_by_the_reports_of_a_folder(tmp_path, frames):
    figures = {"": node_occupancy(frames.spans, frames.slots, frames.wall_s)}
    for name in ("one", "two"):
        path = write_report(tmp_path / f"{name}.html", name, {}, figures)
        assert path.stat().st_size < 100_000
        assert path.read_text().count(f'<script src="{report.LIBRARY}"></script>') == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one.html", report.LIBRARY, "two.html"]
    assert (tmp_path / report.LIBRARY).stat().st_size > 1_000_000
    assert write_report(tmp_path / "whole.html", "", {}, figures, whole=True).stat().st_size > 1_000_000


def test_it_is_read_in_a_browser_and_its_tables_are_sorted(tmp_path, frames, tab):
    rows = pd.DataFrame({"n": [2.0, None, 10.0], "word": ["b", "a", "c"]})
    figures = {"": node_occupancy(frames.spans, frames.slots, frames.wall_s)}
    path = write_report(tmp_path / "one.html", "one", {}, figures, {"Rows": rows})
    tab.goto(path.as_uri())
    tab.wait_for_selector(".plot .main-svg")  # the library beside it is found, the policy lets it in
    words = lambda: tab.locator("table.sortable tbody td:first-child").all_text_contents()  # noqa: E731
    for wanted in (["2", "10", "–"], ["10", "2", "–"], ["2", "–", "10"]):
        tab.get_by_role("button", name="n", exact=True).click()
        assert words() == wanted
    assert tab.complaints == []
    (tmp_path / report.LIBRARY).unlink()
    tab.reload()
    tab.wait_for_selector("#missing", state="visible")


def test_on_a_narrow_screen_figures_are_scrolled_and_not_squeezed(tmp_path, frames, tab):
    figures = {"slots": node_occupancy(frames.spans, frames.slots, frames.wall_s)}
    tab.set_viewport_size({"width": 320, "height": 700})
    tab.goto(write_report(tmp_path / "one.html", "one", {}, figures).as_uri())
    tab.wait_for_selector(".plot .main-svg")
    assert tab.locator(".plot .main-svg").first.bounding_box()["width"] >= 600
    assert tab.evaluate("document.documentElement.scrollWidth") == 320  # only they
    tab.set_viewport_size({"width": 1400, "height": 900})


def test_numbers_are_sorted_by_all_their_digits_and_by_infinity(tmp_path, tab):
    scores = [0.999962, float("inf"), 0.999961, -float("inf"), 0.99997, float("nan")]
    rows = pd.DataFrame({"score": scores, "trial": range(6)})
    path = write_report(tmp_path / "one.html", "one", {}, {}, {"Rows": rows})
    tab.goto(path.as_uri())
    for wanted in (["3", "2", "0", "4", "1", "5"], ["1", "4", "0", "2", "3", "5"]):
        tab.get_by_role("button", name="score", exact=True).click()
        assert tab.locator("table.sortable tbody td:last-child").all_text_contents() == wanted
    assert tab.complaints == []


@pytest.fixture(scope="module")
def of_a_hundred(tmp_path_factory):
    """The report of a study of a hundred trials, as a person writes it."""
    place = tmp_path_factory.mktemp("report")
    scheduler, events = events_of(100)
    spec = {"scheduler": describe(scheduler), "trainable": {"kind": "synthetic"}, "seed": 0}
    log = StudyLog(place / "kb.db", "hundred", spec)
    log.append([Event(Kind.STUDY_STARTED, 0.0, data={"size": size_of(scheduler).to_json()}), *events])
    log.append([Event(Kind.STUDY_ENDED, events[-1].at)])
    log.close()
    Controls(place / "kb.db", "hundred").tag("promising", 3)

    def few_forests(results):
        frames = results.frames
        return importance(frames.trials, frames.phases, frames.hyperparameters, forests=1, resamples=2)

    with mock.patch.object(Results, "importance", few_forests):
        return Results.open(place / "kb.db", "hundred").write_report(place / "report.html")


def test_a_hundred_trials_take_under_a_megabyte_and_reasons_are_words(of_a_hundred):
    assert of_a_hundred.stat().st_size < 1_000_000
    page = of_a_hundred.read_text(encoding="utf-8")
    assert "collecting_reports" not in page  # in the tables and where a point is looked at
    words = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert re.search(r"selecting|collecting", words)
    assert words.count("promising") == 1  # in the table of trials
    assert ">confirms<" not in words  # where no trial does
    assert "over synthetic; seed 0" in words


def test_no_title_lies_under_a_legend(of_a_hundred, tab):
    tab.goto(of_a_hundred.as_uri())
    tab.wait_for_function("document.querySelectorAll('.plot .main-svg .gtitle').length > 5")
    tab.wait_for_function("[...document.querySelectorAll('.plot')].every((plot) => plot.querySelector('.main-svg'))")
    assert tab.evaluate(UNDER) == []


def test_figures_can_be_read_back(page):
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
    assert '<td class="number" data-value="1.23456">1.235</td><td>&lt;i&gt;</td><td>k = 0.5</td>' in table
    assert '<td class="number">–</td><td>–</td><td>–</td>' in table
    assert ">1048576<" in report.table_html(pd.DataFrame({"batch": [1048576.0, None]}))
    assert '<td class="number">0.25</td>' in report.table_html(pd.DataFrame({"score": [0.25]}))  # told in full
    assert ">-inf<" in report.table_html(pd.DataFrame({"score": [float("-inf"), 1.0]}))


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


def test_the_report_of_another_study_is_not_replaced(tmp_path):
    target = write_report(tmp_path / "one.html", "old", {}, {})
    write_report(target, "one", {}, {}, identity="first")  # what has no mark is taken for its own
    before = target.read_bytes()
    with pytest.raises(
        InvalidInput, match=r"^/.*/one\.html is the report of another study: choose another name, or re"
    ):
        write_report(target, "one", {}, {}, identity="second")
    assert target.read_bytes() == before
    write_report(target, "one again", {}, {}, identity="first")
    assert "<h1>one again</h1>" in target.read_text(encoding="utf-8")


def test_a_pipe_and_what_stdout_is_are_written_to(tmp_path):
    kept, ends = tmp_path / "page.html", os.pipe()
    with kept.open("w") as file, os.fdopen(ends[0]) as out, os.fdopen(ends[1], "w") as into:
        for opened in (file, into):
            place = f"/dev/fd/{opened.fileno()}"
            assert is_device(place)
            write_report(place, "one", {}, {})
        into.close()
        assert "<h1>one</h1>" in kept.read_text() == out.read()
    assert list(tmp_path.iterdir()) == [kept]
    assert not is_device(kept)


@pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o600), (0o022, 0o644), (0o002, 0o664)])
def test_who_may_read_a_report_is_the_umask_s_to_say(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        path = write_report(tmp_path / "one.html", "one", {}, {"": go.Figure()})
        assert [file.stat().st_mode & 0o777 for file in (path, path.with_name(report.LIBRARY))] == [mode, mode]
    finally:
        os.umask(before)


def test_a_folder_or_a_pdf_is_no_place_for_a_page(tmp_path):
    with pytest.raises(InvalidInput, match="is a folder: give a name in it"):
        write_report(tmp_path, "one", {}, {})
    with pytest.raises(InvalidInput, match=r"a page of HTML, got one\.pdf: end its name in \.html"):
        write_report(tmp_path / "one.pdf", "one", {}, {})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("whole", [True, False])
def test_a_place_that_takes_no_report_is_told_by_its_own_name(whole):
    with pytest.raises(InvalidInput, match=r"^/proc/page\.html cannot be written: [A-Z][a-z ]+$"):
        write_report("/proc/page.html", "one", {}, {"": go.Figure()}, whole=whole)


def test_a_failed_write_leaves_the_old_report(tmp_path, monkeypatch):
    target = write_report(tmp_path / "report.html", "old", {}, {})

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(InvalidInput, match="disk full"):
        write_report(target, "new", {}, {"": go.Figure()})
    assert "<h1>old</h1>" in target.read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
