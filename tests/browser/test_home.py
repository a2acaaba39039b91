"""Home and comparison in a browser, without a notebook; and what is exported and noted from a page."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.browser.lab import MISSING, chromium, faults
from tests.browser.standing import board_of, news, stand, stand_home, write_studies
from tests.browser.test_page import HEAR_KEYS, drawn, rows, state
from tests.events import begun, ended, judged, runs
from workbench.core.protocols import Event, Kind
from workbench.core.size import Size
from workbench.knowledge import StudyLog
from workbench.viz.dashboard.board import Board

pytestmark = pytest.mark.skipif(chromium() is None, reason=MISSING)


@pytest.fixture(scope="module")
def db(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("home") / "kb.db"
    write_studies(path, monday=1.0, tuesday=1.0, wednesday=0.6)
    return path


def test_a_click_opens_a_study_two_ticks_compare_and_words_filter(tab, db):
    stand_home(tab, db, "monday")
    assert tab.locator(".wb-studies tbody tr").count() == 3
    assert "abandoned" in tab.locator(".wb-studies tbody tr").first.text_content()
    tab.wait_for_selector(".wb-open .wb-leader")
    assert tab.locator(".wb-open .wb-title").text_content() == "monday"
    tab.get_by_role("button", name="tuesday").click()
    assert state(tab, "selected") == ["tuesday"]
    tab.get_by_role("checkbox", name="compare wednesday").check()
    assert state(tab, "selected") == ["tuesday", "wednesday"]
    assert tab.evaluate("document.activeElement.dataset.of") == "tick wednesday"
    tab.locator(".wb-home > .wb-filter input").fill("ended tues")
    assert tab.locator(".wb-studies tbody tr").count() == 1
    tab.evaluate("window.model.set('_shown', '')")
    tab.wait_for_selector(".wb-open .wb", state="detached")


# A study goes on: the kernel tells of the time that has passed.
GO_ON = """() => {
  window.told.studies.forEach((study) => (study.seconds += 2));
  window.model.tell(structuredClone(window.told), []);
}"""


def test_a_study_that_goes_on_takes_no_click_focus_or_selected_words(tab, db):
    stand_home(tab, db)
    for place, left in ((".wb-name", ["wednesday"]), ("input[type=checkbox]", [])):
        box = tab.locator(f".wb-studies {place}").first.bounding_box()
        tab.mouse.move(box["x"] + 4, box["y"] + 4)
        tab.mouse.down()
        before = tab.locator(".wb-studies td:nth-child(7)").first.text_content()
        tab.evaluate(GO_ON)
        assert tab.locator(".wb-studies td:nth-child(7)").first.text_content() != before
        tab.mouse.up()
        assert state(tab, "selected") == left
    tab.get_by_role("button", name="monday").focus()
    tab.evaluate("window.focused = 0; document.addEventListener('focusin', () => window.focused++)")
    tab.evaluate("getSelection().selectAllChildren(document.querySelector('.wb-studies .wb-name'))")
    tab.evaluate(GO_ON)
    assert tab.evaluate("[window.focused, String(getSelection())]") == [0, "wednesday"]


def test_no_key_pressed_on_home_reaches_the_notebook(tab, db):
    stand_home(tab, db)
    tab.evaluate(HEAR_KEYS)
    for place in ("input[type=checkbox]", "button.wb-name", "input[type=search]"):
        tab.locator(place).first.focus()
        tab.keyboard.press("x")
    assert tab.evaluate("window.reached") == []


def test_one_of_two_homes_keeps_the_focus(tab, db):
    stand_home(tab, db)
    tab.evaluate("""() => {
      const el = document.createElement("div");
      document.body.append(el);
      window.front.render({ model: window.model, el });
    }""")
    tab.wait_for_function("document.querySelectorAll('.wb-studies tbody').length === 2")
    tab.get_by_role("checkbox", name="compare monday").first.focus()
    tab.evaluate("window.model.set('filter', 'ended')")
    assert tab.evaluate("document.querySelector('.wb-studies').contains(document.activeElement)")
    assert tab.evaluate("document.activeElement.dataset.of") == "tick monday"


def test_studies_side_by_side_are_in_sight_where_there_is_little_room(tab, db):
    size = tab.viewport_size
    tab.set_viewport_size({"width": 700, "height": 900})
    stand_home(tab, db, "monday", "wednesday")
    tab.wait_for_selector(".wb-sides tbody tr")
    drawn(tab)
    right = "els => Math.max(...els.map((el) => el.getBoundingClientRect().right))"
    try:
        assert tab.locator(".wb-open :is(canvas, select, .wb-table, .wb-sides td)").evaluate_all(right) <= 700
        lines = """els => els.map((el) => {
          const range = document.createRange();
          range.selectNodeContents(el);
          return range.getClientRects().length;
        })"""
        numbers = tab.locator(".wb-sides td", has_text=re.compile(r"^[\d.]+$")).evaluate_all(lines)
        assert set(numbers) == {1}  # none is broken
    finally:
        tab.set_viewport_size(size)


def test_studies_of_one_beginning_are_told_apart_in_the_table_of_their_trials(tab, tmp_path):
    size = tab.viewport_size
    tab.set_viewport_size({"width": 1100, "height": 900})
    names = ["ms-pacman-hypertrick", "ms-pacman-hyperband"]
    write_studies(tmp_path / "kb.db", **dict.fromkeys(names, 1.0))
    try:
        stand_home(tab, tmp_path / "kb.db", *names)
        drawn(tab)
        for name in names:
            cell = tab.locator(".wb-open .wb-row > div", has_text=name).first
            assert cell.evaluate("(cell) => cell.scrollWidth <= cell.clientWidth"), name
    finally:
        tab.set_viewport_size(size)


def test_axes_side_by_side_have_the_whole_width_where_there_is_little_room(tab, db):
    size = tab.viewport_size
    tab.set_viewport_size({"width": 850, "height": 900})  # a notebook beside JupyterLab's list of files
    try:
        stand_home(tab, db, "monday", "tuesday")
        axes = tab.get_by_label("trials of all studies through their hyperparameters")
        assert axes.bounding_box()["width"] > 0.9 * tab.locator(".wb-open .wb-main").bounding_box()["width"]
    finally:
        tab.set_viewport_size(size)


def test_studies_side_by_side_are_brushed_together(tab, db):
    stand_home(tab, db, "monday", "wednesday")
    tab.wait_for_selector(".wb-sides tbody tr")
    drawn(tab)
    assert tab.locator(".wb-sides tbody tr").count() == 2
    heads = tab.locator(".wb-open h4").all_text_contents()
    for head in ("Learning curves", "Best score against node-hours", "Importance", "All trials"):
        assert any(words.startswith(head) for words in heads)
    canvas = tab.locator(".wb-open canvas").last
    box = canvas.bounding_box()
    tab.mouse.move(box["x"] + 40, box["y"] + 25)  # over the axis of studies, its upper half
    tab.mouse.down()
    tab.mouse.move(box["x"] + 45, box["y"] + box["height"] / 2, steps=3)
    tab.mouse.up()
    drawn(tab)
    visible = tab.evaluate("window.models[1].state.visible")
    assert visible
    assert len({number // 100_000 for number in visible}) == 1  # one study's trials are left, in every view
    assert rows(tab).first.locator("[role=gridcell]").nth(7).text_content() in ("monday", "wednesday")


def test_a_simulated_study_is_marked_and_goes_by_its_name(tab, tmp_path):
    db = tmp_path / "kb.db"
    write_studies(db, monday=1.0)
    StudyLog(db, "played", {"scheduler": {"kind": "full", "n_trials": 4, "n_phases": 2}, "simulated": True}).close()
    stand_home(tab, db, "monday", "played")
    tab.wait_for_selector(".wb-sides tbody tr")
    assert tab.locator(".wb-sides tbody strong").all_text_contents() == [" monday", " played (simulated)"]
    assert tab.locator(".wb-open .wb-title").text_content() == "monday, played (simulated)"
    tab.get_by_role("button", name="played (simulated)").click()
    assert state(tab, "selected") == ["played"]


def test_axe_finds_nothing_serious_in_home_and_comparison(tab, db):
    stand_home(tab, db, "monday", "wednesday")
    tab.wait_for_selector(".wb-sides tbody tr")
    drawn(tab)
    assert faults(tab, ".wb-home") == []


def test_home_says_that_its_kernel_has_died_and_that_it_is_back(tab, db):
    stand_home(tab, db)
    assert tab.locator(".wb-home > .wb-trouble").text_content() == ""
    tab.evaluate("clearInterval(window.beating)")
    tab.locator(".wb-home > .wb-trouble", has_text="no word from the kernel since").wait_for(timeout=20_000)
    tab.evaluate("window.model.tell({ type: 'beat', number: 0 }, [])")
    assert tab.locator(".wb-home > .wb-trouble").text_content() == ""


def test_notes_and_tags_are_asked_for_the_selected_trials_or_the_study(tab):
    said = {"by": "person", "accepted": True}
    more = (
        Event(Kind.INTERVENTION, 1.0, 3, data={"request": "a", "action": "tag", "tag": "good", **said}),
        Event(Kind.INTERVENTION, 1.0, 3, data={"request": "b", "action": "note", "text": "<b>late</b>", **said}),
    )
    stand(tab, board_of(12, 1.0, more=more), filter="tag:good")
    drawn(tab)
    assert state(tab, "visible") == [3]
    rows(tab).first.click()
    drawn(tab)
    assert tab.locator(".wb-notes li").all_text_contents() == ["<b>late</b>"]
    tab.get_by_role("textbox", name="add a tag").fill("seen")
    tab.keyboard.press("Enter")
    tab.get_by_role("button", name="good ×").click()
    tab.keyboard.press("Escape")
    drawn(tab)
    tab.get_by_role("textbox", name="add a note").fill("of the study")
    tab.keyboard.press("Enter")
    asked = [sent for sent in tab.evaluate("window.model.sent") if sent["type"] == "ask"]
    assert [(a["action"], a["trial"], a["words"]) for a in asked] == [
        ("tag", 3, "seen"), ("untag", 3, "good"), ("note", None, "of the study")]  # fmt: skip


def drawing(tab, heading: str) -> ElementTree.Element:
    """What the figure's SVG button gives."""
    drawn(tab)
    panel = tab.locator("section", has=tab.locator("h4", has_text=heading))
    panel.hover()
    with tab.expect_download() as kept:
        panel.get_by_role("button", name="SVG").click()
    return ElementTree.parse(kept.value.path()).getroot()


def test_every_figure_can_be_had_as_svg(tab):
    stand(tab, board_of(12, 0.8))
    for heading, word in {"Learning curves": "score", "Trials in each phase": "trials"}.items():
        found = drawing(tab, heading)
        assert len(found.findall(".//{*}path")) > 10
        assert word in {text.text for text in found.findall(".//{*}text")}
    lost = (Event(Kind.PHASE_FAILED, 1.0, 0, 0, 0, {"why": "exception", "error": "bad"}),)
    stand(tab, board_of(12, 0.05, more=lost))
    assert len(drawing(tab, "Slots over time").findall(".//{*}clipPath")) == 1  # what was lost is hatched


@pytest.mark.parametrize("axis", ["seconds", "phases"])
def test_a_copy_s_curve_goes_on_from_where_its_donor_s_ended(tab, axis):
    board = Board("heirs", Size())
    told = [runs(0.0, 0, {}), begun(0.0, 0, 0), ended(10.0, 0, 0, 0, 1.0), judged(10.0, 0, 0, "stop", "exploited")]
    told += [runs(10.0, 1, {}, phase=1, parent=0), begun(10.0, 1, 1), ended(14.0, 1, 1, 0, 2.0)]
    told += [
        Event(Kind.PROGRESS, at, *of, 0, {"metrics": {"score": at}})
        for of, ats in {(0, 0): (2.5, 5.0, 7.5), (1, 1): (11.0, 12.0, 13.0)}.items()
        for at in ats
    ]
    board.take(news(sorted(told, key=lambda event: event.at)))
    stand(tab, board)
    tab.get_by_label("axis of the learning curves").select_option(axis)
    drawn_at = [
        [float(at.split()[0]) for at in re.split("[ML]", path.get("d"))[1:]]
        for path in drawing(tab, "Learning curves").findall(".//{*}path")
    ]
    donor, heir = (places for places in drawn_at if len(places) == 4 and places == sorted({*places}))
    parts = [(place - donor[-1]) / (heir[-1] - donor[-1]) for place in heir]
    assert parts == pytest.approx([0.25, 0.5, 0.75, 1.0], abs=0.01)


def test_a_view_that_goes_takes_nothing_from_another(tab):
    """Two cells show one dashboard; the first is cleared."""
    stand(tab, board_of(12, 0.5))
    drawn(tab)
    tab.evaluate("""() => {
      const handle = { ...window.model, get: window.model.get }; // as a second view has one
      const el = document.createElement("div");
      document.body.append(el);
      window.front.render({ model: handle, el });
      window.leave();
    }""")
    assert tab.locator(".wb").count() == 1
    sent = tab.evaluate("window.model.sent.length")
    assert sent >= 2  # the one that stays has asked for what it missed
    tab.evaluate("window.model.tell({ ...window.told, state: 'paused' }, ['', ''])")
    tab.wait_for_function("document.querySelector('.wb-facts').textContent.startsWith('paused')")
