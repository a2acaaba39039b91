"""The dashboard's page in a browser, without a notebook: what is seen, touched, and read out."""

import json
from pathlib import Path

import pytest

from tests.browser.lab import MISSING, chromium, faults
from tests.browser.standing import board_of, model_of, show, stand
from tests.events import begun, ended, judged, runs
from workbench.core.domains import Choice, LogUniform
from workbench.core.protocols import Event, Kind
from workbench.core.size import Size
from workbench.core.space import Space
from workbench.viz.dashboard.board import Board
from workbench.viz.dashboard.feed import News

pytestmark = pytest.mark.skipif(chromium() is None, reason=MISSING)


@pytest.fixture(scope="module")
def running():
    return board_of(40, 0.55)


LINES = """cells => cells.map((cell) => {
  const text = document.createRange();
  text.selectNodeContents(cell);
  return text.getClientRects().length;
})"""


def rows(page):
    return page.locator(".wb-body [role=row]:not([hidden])")


def state(page, name):
    return page.evaluate("name => window.model.state[name]", name)


def drawn(page):
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.wait_for_selector(".wb:not([data-drawing])")


def test_everything_at_a_glance(tab, running):
    stand(tab, running)
    assert tab.evaluate("document.documentElement.scrollHeight") <= 900  # figures have their room before they are drawn
    drawn(tab)
    assert tab.evaluate("document.documentElement.scrollHeight") <= 900
    facts = tab.locator(".wb-facts").text_content()
    assert "running" in facts
    assert "left" in facts
    assert "slots busy" in facts
    leader = tab.locator(".wb-leader").text_content()
    assert leader.startswith("▲ trial ")
    assert ": luckiest phase " in leader
    for heading in ("Learning curves", "Trials in each phase", "Slots in use", "Slots over time", "Latest verdicts"):
        assert tab.locator("h4", has_text=heading).bounding_box()["y"] < 700
    assert rows(tab).first.bounding_box()["height"] == 22


def test_a_cluster_is_asked_for_workers_those_that_live_unless_another_number_is_typed(tab, running):
    stand(tab, running)
    scale = tab.get_by_label("to workers")
    assert scale.input_value() == str(running.state()["workers"]) == "8"
    tab.get_by_role("button", name="Scale").click()
    assert tab.evaluate("window.model.sent.at(-1)") == {"type": "ask", "action": "scale", "nodes": 8}


def test_a_number_is_asked_for_as_it_is_typed(tab, running):
    finished = next(t["trial"] for t in running.snapshot()[0]["trials"] if t["state"] == "finished")
    for typed, number in (("2.5", 2.5), ("", 0)):  # which the kernel refuses in words
        stand(tab, running, selected=[finished])
        drawn(tab)
        for label, name, asked in (("by phases", "Extend", "phases"), ("to workers", "Scale", "nodes")):
            tab.get_by_label(label).fill(typed)
            tab.get_by_role("button", name=name).click()
            assert tab.evaluate("window.model.sent.at(-1)")[asked] == number


def test_of_what_configuration_a_trial_is_a_seed_is_told(tab):
    board = Board("seeds", Size())
    run = {"config": {"lr": 0.1}, "parent": None, "seed": 0}
    told = [{}, {"candidate": 0}, {"candidate": 0, "confirms": True}]
    board.take(News([Event(Kind.RUN, 0.0, k, 0, data=run | more) for k, more in enumerate(told)]))
    for trial, words in enumerate(["", "seed oftrial 0", "confirmstrial 0"]):
        stand(tab, board, selected=[trial])
        drawn(tab)
        shown = tab.locator(".wb-detail").text_content()
        assert words in shown
        assert shown.count("trial 0") == (trial > 0)


def test_of_a_population_as_many_trials_are_told_as_there_can_be_at_most(tab, running):
    stand(tab, Board("population", Size(100, 10, 10, 100.0)))
    assert "0 of at most 100 trials begun · 0 of about 100 phases ended" in tab.locator(".wb-facts").text_content()
    stand(tab, running)
    assert "at most" not in tab.locator(".wb-facts").text_content()


def test_numbers_are_in_sight_whatever_their_size_and_names(tab):
    config = {"name_" + "x" * 80: 1, **{f"learning_rate_{k}": 4.459e-10 for k in range(9)}}
    score = -2.659e-30
    board = Board("sizes", Size())
    board.take(News([
        Event(Kind.RUN, 0.0, 0, 0, data={"config": config, "parent": None, "seed": 0}),
        Event(Kind.PHASE_STARTED, 0.0, 0, 0, 0),
        Event(Kind.PHASE_ENDED, 9.0, 0, 0, 0, {"score": score}),
    ]))  # fmt: skip
    stand(tab, board, selected=[0])
    drawn(tab)
    cut = "cells => cells.filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent)"
    assert rows(tab).locator(".wb-number").evaluate_all(cut) == []
    values = tab.locator(".wb-detail td")
    assert values.nth(2).text_content() == "-2.659e-30"
    assert min(values.nth(k).bounding_box()["width"] for k in range(values.count())) >= 60
    assert tab.locator(".wb-detail").evaluate("detail => detail.scrollWidth <= detail.clientWidth")


def test_lists_and_forms_are_no_wider_than_their_place_whatever_the_names(tab):
    name = "name_" + "x" * 190
    board = Board("names", Size(), space=Space({name: LogUniform(1e-5, 1e-2)}))
    board.take(News([
        Event(Kind.RUN, 0.0, 0, 0, data={"config": {name: 1e-3}, "parent": None, "seed": 0}),
        Event(Kind.PHASE_STARTED, 0.0, 0, 0, 0),
        Event(Kind.PHASE_ENDED, 9.0, 0, 0, 0, {"score": 1.0}),
    ]))  # fmt: skip
    stand(tab, board, selected=[0])
    tab.get_by_role("tab", name="Score against").click()
    tab.get_by_role("button", name="Clone …").click()
    drawn(tab)
    for part in (".wb-tab:not([hidden])", ".wb-form"):
        assert tab.locator(part).evaluate("part => part.scrollWidth <= part.clientWidth"), part


def test_three_trials_are_in_sight_side_by_side_and_no_number_is_broken(tab, running):
    stand(tab, running, selected=[0, 12, 18])
    drawn(tab)
    facing = tab.locator(".wb-detail")
    assert facing.evaluate("detail => detail.scrollWidth <= detail.clientWidth")
    assert set(facing.locator("td").evaluate_all(LINES)) == {1}


def test_no_number_is_broken_beside_a_long_name(tab):
    board = Board("names", Size())
    name = "name_" + "x" * 190
    board.take(News([
        Event(Kind.RUN, 0.0, k, 0, data={"config": {"lr": 0.001545 - k * 1e-4} | {name: k}, "parent": None, "seed": 0})
        for k in range(2)
    ]))  # fmt: skip
    stand(tab, board, selected=[0, 1])
    drawn(tab)
    facing = tab.locator(".wb-detail")
    assert facing.evaluate("detail => detail.scrollWidth <= detail.clientWidth")
    assert set(facing.locator("td").evaluate_all(LINES)) == {1}


def test_one_filter_writes_what_is_visible(tab, running):
    stand(tab, running)
    tab.locator(".wb-filter input[type=search]").fill("state:stopped lr>1e-4")
    drawn(tab)
    numbers = state(tab, "visible")
    snapshot = {trial["trial"]: trial for trial in running.snapshot()[0]["trials"]}
    wanted = {n for n, t in snapshot.items() if t["state"] == "stopped" and t["config"]["learning_rate"] > 1e-4}
    assert set(numbers) == wanted
    assert wanted
    assert tab.locator(".wb-found").text_content() == f"{len(wanted)} of {len(snapshot)} trials"
    tab.evaluate("window.model.set('filter', 'nonsense>3')")
    drawn(tab)
    assert tab.locator(".wb-found").text_content() == "not understood: nonsense>3"


def test_columns_sort_and_the_order_is_told(tab, running):
    stand(tab, running)
    tab.get_by_role("columnheader", name="t_max").get_by_role("button").click()
    drawn(tab)
    configs = {t["trial"]: t["config"]["t_max"] for t in running.snapshot()[0]["trials"]}
    told = [configs[n] for n in state(tab, "visible")]
    assert told == sorted(configs.values())
    assert tab.locator("[aria-sort=ascending]").text_content().startswith("t_max")


def test_columns_are_sorted_by_keys(tab, running):
    stand(tab, running)
    drawn(tab)
    tab.locator(".wb-table").focus()
    for _ in range(2):
        tab.keyboard.press("Tab")
    for direction in ("ascending", "descending"):
        tab.keyboard.press("Enter")
        drawn(tab)
        assert tab.locator(f"[aria-sort={direction}]").text_content().startswith("trial")
        assert tab.evaluate("document.activeElement.title") == "sort by trial"  # it keeps the focus
    assert faults(tab, ".wb-table") == []
    tab.keyboard.press("ArrowDown")
    assert state(tab, "selected") == [state(tab, "visible")[0]]


def test_keys_select_clear_and_filter(tab, running):
    stand(tab, running)
    drawn(tab)
    rows(tab).first.click()
    first = state(tab, "selected")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Shift+ArrowDown")
    assert len(state(tab, "selected")) == 2
    assert first[0] not in state(tab, "selected")
    drawn(tab)
    assert tab.locator(".wb-detail h4").text_content() == "2 trials selected"
    assert tab.locator(".wb-beside tbody tr").count() >= 5  # where they differ
    assert tab.locator(".wb-body [aria-selected=true]").count() == 2
    tab.keyboard.press("Escape")
    assert state(tab, "selected") == []
    tab.keyboard.press("/")
    assert tab.evaluate("document.activeElement.type") == "search"


# Keys that come to the document, as to JupyterLab's shortcuts.
HEAR_KEYS = """() => {
  window.reached = [];
  document.onkeydown = (event) => window.reached.push(event.key);
}"""


def test_no_key_pressed_on_a_page_reaches_the_notebook(tab, running):
    stand(tab, running, selected=[0])
    drawn(tab)
    tab.evaluate(HEAR_KEYS)
    for place in (".wb-table", ".wb h4 select", ".wb-tabs button", ".wb-toggle input", ".wb-remarks input", ".wb-log"):
        tab.locator(place).first.focus()
        for key in ("x", "ArrowDown", "Shift+ArrowDown"):
            tab.keyboard.press(key)
    tab.get_by_label("smoothing").focus()
    tab.keyboard.press("ArrowDown")
    assert tab.get_by_label("smoothing").input_value() == "0.6"
    assert tab.evaluate("window.reached") == []
    tab.keyboard.press("Escape")
    assert tab.evaluate("window.reached") == ["Escape"]


def test_keys_faster_than_the_page_is_drawn_are_not_lost(tab, running):
    stand(tab, running)
    drawn(tab)
    rows(tab).first.click()
    drawn(tab)
    [first] = state(tab, "selected")
    tab.evaluate("""() => {
      const grid = document.querySelector(".wb-table");
      const press = (shiftKey) => grid.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", shiftKey }));
      press(false);
      press(true);
    }""")
    assert len(state(tab, "selected")) == 2
    assert first not in state(tab, "selected")


def wishes(tab):
    """What was asked of the kernel: actions with their trials."""
    asked = tab.evaluate("window.model.sent.filter((sent) => sent.type === 'ask')")
    return [(sent["action"], sent["trial"]) for sent in asked]


def at_once(tab, *steps):
    """Click things or have Python select trials, all within one frame, as on a page that is busy drawing."""
    act = "step => (Array.isArray(step) ? window.model.set('selected', step) : document.querySelector(step).click())"
    tab.evaluate(f"steps => steps.forEach({act})", list(steps))


def row_of(trial):
    return f".wb-body [data-trial='{trial}']"


def test_buttons_act_on_the_trial_selected_now(tab, running):
    stand(tab, running, filter="state:running")
    drawn(tab)
    first, second, third = (int(row.get_attribute("data-trial")) for row in rows(tab).all()[:3])
    stop = ".wb-controls button[title^=Stop]"
    rows(tab).first.click()
    drawn(tab)
    assert tab.locator(".wb-controls").first.text_content().startswith(f"trial {first}:")
    at_once(tab, row_of(second), stop, stop)  # twice: the second wish would only be refused
    assert wishes(tab) == [("stop", second)]
    drawn(tab)
    assert tab.locator(".wb-controls").first.text_content().startswith(f"trial {second}:")
    at_once(tab, [third], stop, [], stop)
    assert wishes(tab) == [("stop", second), ("stop", third)]


def test_a_tag_that_is_refused_is_in_its_field_to_be_corrected(tab, running):
    stand(tab, running)
    field = tab.get_by_label("add a tag")
    tell = "(answer) => window.model.tell({ request: 'r1', action: 'tag', trial: null, ...answer }, [])"
    for answer, stays in (({"type": "refused", "why": "one word"}, "two words"), ({"type": "asked"}, "")):
        field.fill("two words")
        field.press("Enter")
        assert field.input_value() == ""  # while nobody has heard of it, too: Enter again would ask twice
        tab.evaluate(tell, answer)
        assert field.input_value() == stays


def test_a_double_click_asks_once(tab, running):
    stand(tab, running, filter="state:finished")
    drawn(tab)
    rows(tab).first.click()
    drawn(tab)
    tab.get_by_role("button", name="Extend").dblclick()
    assert wishes(tab) == [("extend", state(tab, "selected")[0])]


def test_a_clone_s_form_is_the_selected_trial_s(tab, running):
    stand(tab, running, filter="state:running")
    drawn(tab)
    first, second = (int(row.get_attribute("data-trial")) for row in rows(tab).all()[:2])
    rows(tab).first.click()
    drawn(tab)
    at_once(tab, row_of(second), ".wb-controls button[title^='Start a trial']")
    drawn(tab)
    configs = {trial["trial"]: trial["config"] for trial in running.snapshot()[0]["trials"]}
    name = tab.locator(".wb-form input[data-name=learning_rate]")
    assert float(name.input_value()) == configs[second]["learning_rate"]
    name.fill("0.5")
    at_once(tab, [first], ".wb-form button")
    [sent] = tab.evaluate("window.model.sent.filter((sent) => sent.type === 'ask')")
    assert (sent["action"], sent["trial"], sent["config"]) == ("clone", second, {"learning_rate": "0.5"})


def test_a_clone_s_form_asks_for_what_applies_and_says_what_it_may_be(tab):
    space = Space(
        {"net": Choice(["small", "large"]), "width": LogUniform(8, 64, step=8), "lr": LogUniform(1e-5, 1e-2)},
        only_if={"width": {"net": "large"}},
    )
    board = Board("conditional", Size(4, 4, 2), space=space)
    started = Event(Kind.RUN, 0.0, 0, 0, data={"config": {"net": "small", "lr": 1e-3}, "parent": None, "seed": 1})
    board.take(News([Event(Kind.STUDY_STARTED, 0.0), started, Event(Kind.PHASE_STARTED, 1.0, 0, 0, 0)]))
    stand(tab, board, selected=[0])
    drawn(tab)
    tab.get_by_role("button", name="Clone …").click()
    form = tab.locator(".wb-form")
    width = form.locator("[data-name=width]")
    assert not width.is_visible()
    assert "1e-05 to 0.01" in form.text_content()
    form.locator("select[data-name=net]").select_option("large")
    width.fill("16")
    form.get_by_role("button", name="Start the clone").click()
    [sent] = tab.evaluate("window.model.sent.filter((sent) => sent.type === 'ask')")
    assert (sent["action"], sent["trial"], sent["config"]) == ("clone", 0, {"net": "large", "width": "16"})


def test_of_several_trials_buttons_act_on_the_one_touched_last(tab, running):
    stand(tab, running)
    drawn(tab)
    numbers = [int(row.get_attribute("data-trial")) for row in rows(tab).all()[:4]]
    rows(tab).nth(3).click()
    rows(tab).first.click(modifiers=["Shift"])
    assert state(tab, "selected") == [*numbers[1:], numbers[0]]
    drawn(tab)
    assert tab.locator(".wb-controls").first.text_content().startswith(f"trial {numbers[0]}:")
    rows(tab).first.click()
    tab.keyboard.press("Shift+ArrowDown")
    assert state(tab, "selected") == numbers[:2]


def test_shift_extends_a_stretch_by_keys_and_takes_it_back(tab, running):
    stand(tab, running)
    drawn(tab)
    tab.evaluate("window.model.set('filter', 'top:18')")
    drawn(tab)
    numbers = state(tab, "visible")
    tab.evaluate("number => window.model.set('selected', [number])", numbers[8])
    tab.locator(".wb-table").focus()
    for keys, chosen in [
        ("ArrowDown", numbers[8:10]), ("PageDown", numbers[8:18]), ("ArrowUp", numbers[8:17]),
        ("PageUp", [numbers[8]]), ("ArrowUp", [numbers[8], numbers[7]]), ("Home", [*numbers[1:9], numbers[0]]),
        ("End", numbers[8:]),
    ]:  # fmt: skip
        tab.keyboard.press(f"Shift+{keys}")
        assert state(tab, "selected") == chosen, keys
    drawn(tab)
    assert tab.locator(".wb-table").get_attribute("aria-activedescendant").endswith(f"-{numbers[-1]}")
    tab.keyboard.press("ArrowUp")  # without Shift, from the end that moved
    assert state(tab, "selected") == [numbers[-2]]


def test_arrows_leave_from_what_was_selected_elsewhere(tab, running):
    stand(tab, running)
    drawn(tab)
    numbers = [int(row.get_attribute("data-trial")) for row in rows(tab).all()[:6]]
    rows(tab).first.click()
    drawn(tab)
    at_once(tab, [numbers[4]])  # from Python, or by a curve
    drawn(tab)
    assert tab.locator(".wb-table").get_attribute("aria-activedescendant").endswith(f"-{numbers[4]}")
    tab.keyboard.press("ArrowDown")
    assert state(tab, "selected") == [numbers[5]]
    at_once(tab, [numbers[3]])
    rows(tab).nth(1).click(modifiers=["Shift"])
    assert state(tab, "selected") == [numbers[2], numbers[3], numbers[1]]
    tab.keyboard.press("Escape")
    tab.keyboard.press("ArrowDown")
    assert state(tab, "selected") == [numbers[4]]  # from where they had been


def test_a_stretch_from_a_trial_that_is_filtered_out_is_a_plain_click(tab, running):
    stand(tab, running)
    drawn(tab)
    numbers = [int(row.get_attribute("data-trial")) for row in rows(tab).all()[:6]]
    rows(tab).nth(1).click()
    tab.evaluate("number => window.model.set('filter', `-trial:${number}`)", numbers[1])
    drawn(tab)
    rows(tab).nth(3).click(modifiers=["Shift"])
    assert state(tab, "selected") == [numbers[4]]


def test_a_brush_becomes_the_filter_and_a_legend_hides(tab, running):
    stand(tab, running)
    drawn(tab)
    box = tab.locator(".wb-gantt canvas").bounding_box()
    tab.mouse.move(box["x"] + 300, box["y"] + 20)
    tab.mouse.down()
    tab.mouse.move(box["x"] + 600, box["y"] + 40, steps=4)
    tab.mouse.up()
    drawn(tab)
    assert state(tab, "filter").startswith("time:")
    tab.get_by_role("button", name="reset the zoom").click()
    assert state(tab, "filter") == ""
    tab.locator(".wb-state[data-state=stopped]").click()
    drawn(tab)
    assert state(tab, "filter") == "-state:stopped"
    assert tab.locator(".wb-toggle input").first.is_checked()
    tab.locator(".wb-state[data-state=running]").click()
    drawn(tab)
    tab.locator(".wb-toggle input").first.uncheck()  # the other hidden ones stay hidden
    assert state(tab, "filter") == "-state:running"
    drawn(tab)
    tab.locator(".wb-toggle input").first.check()
    assert state(tab, "filter") == "-state:running,stopped"


@pytest.mark.parametrize("over", [None, Kind.STUDY_INTERRUPTED])
def test_trials_in_each_phase_tell_who_waits_and_who_was_cut_off(tab, over):
    board = Board("rungs", Size(2, 2, 1))
    told = [runs(0.0, 0, {}), begun(0.0, 0, 0), ended(9.0, 0, 0, 0, 1.0), judged(9.0, 0, 0, "pause", "rung")]
    told += [runs(9.0, 1, {}), begun(9.0, 1, 0)]
    board.take(News(told if over is None else [*told, Event(over, 10.0)]))
    stand(tab, board)
    drawn(tab)
    tab.locator("section", has=tab.locator("h4", has_text="Trials in each phase")).locator("canvas").hover()
    still = "running" if over is None else "cut off"
    assert tab.locator(".wb-tip").text_content() == f"phase 0: 2 began\n1 waiting\n1 {still}"


def test_only_a_press_of_the_primary_button_begun_on_a_figure_selects(tab, running):
    stand(tab, running)
    drawn(tab)
    box = tab.locator(".wb-gantt canvas").bounding_box()
    heading = tab.locator("h4", has_text="Slots over time").bounding_box()
    bar = (box["x"] + 300, box["y"] + 11)  # of the first slot
    for button in ("right", "middle"):
        tab.mouse.click(*bar, button=button)
        assert state(tab, "selected") == []
    tab.mouse.move(heading["x"], heading["y"])
    tab.mouse.down()
    tab.mouse.move(*bar)
    tab.mouse.up()
    assert state(tab, "selected") == []
    tab.mouse.click(*bar)
    assert len(state(tab, "selected")) == 1


def test_what_is_visible_is_taken_along(tab, running):
    stand(tab, running, filter="top:5")
    drawn(tab)
    with tab.expect_download() as kept:
        tab.get_by_role("button", name="CSV").click()
    assert len(Path(kept.value.path()).read_text().splitlines()) == 1 + 5
    with tab.expect_download() as kept:
        tab.get_by_role("button", name="PNG").first.click()
    assert Path(kept.value.path()).read_bytes().startswith(b"\x89PNG")


def test_what_follows_a_filter_at_once_goes_by_it(tab, running):
    stand(tab, running)
    drawn(tab)
    tab.evaluate("""() => {
      window.model.set("filter", "state:stopped");
      const key = new KeyboardEvent("keydown", { key: "End" });
      document.querySelector(".wb-table").dispatchEvent(key);
    }""")
    selected, visible = state(tab, "selected"), state(tab, "visible")
    assert selected == visible[-1:]
    assert len(visible) < len(running.snapshot()[0]["trials"])
    click = """words => {
      window.model.set("filter", "trial:3");
      [...document.querySelectorAll("button")].find(({ textContent }) => textContent === words).click();
    }"""
    for button in ("CSV", "SVG"):
        stand(tab, running)
        drawn(tab)
        with tab.expect_download() as kept:
            tab.evaluate(click, button)
        told = Path(kept.value.path()).read_text()
        assert told.count("\n") == 1 if button == "CSV" else told.count("<path") < 40


def test_a_state_s_button_clicked_twice_hides_nothing(tab, running):
    stand(tab, running)
    drawn(tab)
    at_once(tab, *2 * [".wb-state[data-state=stopped]"])
    assert state(tab, "filter") == ""


def test_expanded_slots_have_room_for_their_axis(tab, running):
    stand(tab, running)
    drawn(tab)
    tab.get_by_role("button", name="expand").click()
    drawn(tab)
    place = tab.locator(".wb-gantt")
    assert place.evaluate("place => [place.scrollHeight, place.clientHeight]") == [8 + 8 * 20 + 34] * 2
    tab.get_by_role("button", name="shrink").click()
    drawn(tab)
    assert place.evaluate("place => place.clientHeight") <= 150


def test_a_figure_s_buttons_do_not_cover_its_choices(tab, running):
    tab.set_viewport_size({"width": 1150, "height": 900})
    try:
        stand(tab, running)
        drawn(tab)
        tab.locator(".wb-figures label", has_text="bands").click(timeout=5000)
        assert tab.locator(".wb-figures label", has_text="bands").locator("input").is_checked()
    finally:
        tab.set_viewport_size({"width": 1440, "height": 900})


@pytest.mark.slow
def test_a_dead_kernel_is_said_and_switches_the_buttons_off(tab, running):
    stand(tab, running)
    assert tab.get_by_role("button", name="Pause study").is_enabled()
    tab.evaluate("clearInterval(window.beating)")
    tab.locator(".wb-trouble", has_text="no word from the kernel since").wait_for(timeout=20_000)
    assert tab.locator(".wb-facts").text_content().startswith("no kernel")
    assert "frames/s" not in tab.locator(".wb-facts").text_content()
    assert tab.locator(".wb-controls:not([hidden]) button:enabled").count() == 0


def test_every_column_can_be_scrolled_to(tab, running):
    content, tables = json.loads(json.dumps(running.snapshot()[0])), running.snapshot()[1]
    more = {f"entropy_weight_{k}": 0.01 for k in range(8)}
    for trial in content["trials"]:
        trial["config"] |= more
    content["meta"]["hyperparameters"] += [*more]
    tab.set_viewport_size({"width": 1100, "height": 900})
    try:
        show(tab, [model_of((content, tables))])
        rows(tab).first.wait_for()
        table = tab.locator(".wb-table")
        table.evaluate("grid => (grid.scrollLeft = 1e6)")
        end = "part => part.getBoundingClientRect().right"
        for last in (tab.locator(".wb-head > div").last, rows(tab).first.locator("> div").last):
            assert last.evaluate(end) <= table.evaluate(end)
    finally:
        tab.set_viewport_size({"width": 1440, "height": 900})


def test_no_phase_s_pip_is_cut_off(tab):
    content, tables = board_of(40).snapshot()
    for trial, pips in zip(content["trials"], [*(n * "s" for n in range(1, 31)), 99 * "s", 180 * "f"], strict=False):
        trial["pips"] = pips
    show(tab, [model_of((content, tables))])
    tab.locator(".wb-table").evaluate("grid => (grid.style.height = '900px')")
    tab.wait_for_function("n => document.querySelectorAll('.wb-body .wb-row').length >= n", arg=len(content["trials"]))
    told = rows(tab).evaluate_all("""rows => rows.map(({ children }) => {
      const [cell, words] = [children[3], children[3].textContent];
      return [cell.getAttribute("aria-label").split(",").length, words, cell.scrollWidth <= cell.clientWidth];
    })""")
    told = {phases: (words, fits) for phases, words, fits in told}
    assert told.keys() >= {*range(1, 31), 99, 180}
    assert [phases for phases, (_, fits) in told.items() if not fits] == []
    assert (told[6][0], told[7][0], told[30][0], told[180][0]) == (6 * "■", "+3■■■■", "+26■■■■", "+177★★★")


def test_a_failure_is_told_in_one_line(tab):
    lost = [Event(Kind.PHASE_FAILED, k, 0, 0, 0, {"why": "exception", "error": "bad"}) for k in (1.0, 2.0)]
    board = board_of(12, 0.05, more=(*lost, Event(Kind.TRIAL_FAILED, 3.0, 0, 0, 0, {"error": "bad", "attempt": 2})))
    stand(tab, board)
    tab.get_by_role("tab", name="Crashes").click()
    assert tab.locator(".wb-troubles li").all_text_contents()[0].endswith("failed after 3 attempts (bad)")
    assert tab.locator(".wb-troubles li").count() == 1
    assert tab.locator(".wb-trouble").first.text_content() == ""


def test_ten_thousand_trials_are_scrolled_smoothly(tab, running):
    """Rows of so many trials: only those in sight are there, and each is drawn in a fraction of a frame."""
    stand(tab, running)
    tab.evaluate("""() => {
      const rest = [];
      const config = { learning_rate: 1e-3, gamma: 0.9, t_max: 5, optimizer: "adam" };
      const same = { state: "stopped", pips: "cs", phases: 2, best: 1, parent: null, why: "rank", error: "", config };
      for (let k = 100; k < 10100; k++) rest.push({ ...same, trial: k, last: Math.sin(k) });
      const now = { ...window.told, type: "delta", number: 1, trials: rest, log: [], rates: [false, []], dropped: [] };
      window.model.tell(now, ["", ""]);
    }""")
    tab.wait_for_function("Number(document.querySelector('.wb-table').getAttribute('aria-rowcount')) > 10000")
    assert tab.locator(".wb-body [role=row]").count() < 40
    tab.evaluate("document.querySelector('.wb-table').scrollTop = 22 * 5000")
    drawn(tab)
    assert int(rows(tab).first.get_attribute("aria-rowindex")) > 4900
    assert tab.locator(".wb-body [role=row]").count() < 40


def test_without_a_kernel_nothing_is_drawn_and_nothing_can_be_pressed(tab, running):
    message, tables = running.snapshot()
    show(tab, [model_of((message, tables))], silent=True)
    tab.wait_for_function("document.querySelector('.wb-title').textContent === 'waiting for the kernel …'")
    tab.locator(".wb-trouble", has_text="no kernel answers: run the cell again").wait_for(timeout=20_000)
    assert tab.locator(".wb-facts").text_content() == ""
    assert rows(tab).count() == 0
    assert tab.locator(".wb button").filter(visible=True).count() == 0
    assert tab.locator(".wb canvas").filter(visible=True).count() == 0


def test_what_is_drawn_has_a_name_and_what_is_new_is_read_out(tab, running):
    stand(tab, running)
    drawn(tab)
    for canvas in tab.locator(".wb canvas").all():
        assert canvas.get_attribute("role") == "img"
        assert len(canvas.get_attribute("aria-label")) > 10
    news = tab.locator(".wb [aria-live=polite]")
    leader = tab.locator(".wb-leader").text_content().split(":")[0].removeprefix("▲ ")
    assert news.text_content().startswith(f"The study is running. {leader.capitalize()} has had the best score, ")
    tab.evaluate("window.model.tell({ ...window.told, state: 'paused' }, ['', ''])")
    tab.wait_for_function(
        "document.querySelector('.wb [aria-live=polite]').textContent.startsWith('The study is paused by a person.')"
    )
    assert tab.locator(".wb-found").get_attribute("role") == "status"


def test_of_a_large_study_head_and_rows_are_seen_before_the_rest_is_there(tab, running):
    stand(tab, running, filter="lr>1e-4")
    drawn(tab)
    visible = state(tab, "visible")
    tab.evaluate("""() => {
      const rows = [...window.told.trials].filter((t) => t.rank !== null && t.last !== null).slice(0, 3);
      window.model.tell({ ...window.told, partial: true, trials: rows }, ["", ""]);
    }""")
    tab.wait_for_function("document.querySelectorAll('.wb-body [role=row]:not([hidden])').length <= 3")
    assert tab.locator(".wb-facts").text_content()
    assert tab.locator(".wb[data-drawing]").count() == 1  # no figure of a part
    assert state(tab, "visible") == visible  # nor is a part told as the whole
    tab.evaluate("""() => {
      const none = { log: [], rates: [false, []] };
      const rest = { type: "delta", number: 1, partial: false, trials: window.told.trials, ...none };
      window.model.tell(rest, ["", ""]);
    }""")
    drawn(tab)
    assert state(tab, "visible") == visible


@pytest.mark.parametrize("dark", [pytest.param(False, marks=pytest.mark.slow), True])
def test_axe_finds_nothing_serious(tab, running, dark):
    stand(tab, running, dark=dark, selected=[0, 1])
    drawn(tab)
    assert faults(tab, ".wb") == []
    for name in ("Decisions", "Parallel", "Score against"):
        tab.get_by_role("tab", name=name).click()
        drawn(tab)
        assert faults(tab, ".wb-more") == []
    tab.evaluate("document.querySelector('.wb-filter input').removeAttribute('aria-label')")
    tab.evaluate("document.querySelector('.wb-filter input').removeAttribute('placeholder')")
    assert [found.split(":")[0] for found in faults(tab, ".wb")] == ["label"]  # it does look
