"""Notebook 02 in a real JupyterLab: seen, touched, reloaded."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import SCREENSHOTS
from tests.browser.lab import command, opened, run_cells
from tests.viz.dashboard.conftest import in_order
from workbench.core.protocols import Kind
from workbench.knowledge import Inbox, KnowledgeBase, StudyLog

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "02_live_dashboard.ipynb"
SIZE = {"n_trials": 6, "n_phases": 2}
TOO_SLOW = "[anywidget] Failed to initialize model."
TRIAL = 'GA3C("CartPole-v1", phase=Budget(frames=SIZE["frames"]))'

# Moves the pointer over the Gantt chart, row by row, and collects what the tips say.
SCAN = """canvas => {
  const tip = canvas.closest(".wb").querySelector(".wb-tip");
  const frame = canvas.getBoundingClientRect();
  const found = new Set();
  for (let y = 9; y < frame.height - 34; y += 3) {
    for (let x = 0; x < frame.width; x += 4) {
      const at = { clientX: frame.left + x, clientY: frame.top + y, bubbles: true };
      canvas.dispatchEvent(new PointerEvent("pointermove", at));
      if (tip.style.display === "block") found.add(tip.textContent);
    }
  }
  canvas.dispatchEvent(new PointerEvent("pointerleave"));
  return [...found];
}"""


@pytest.fixture
def notebook(lab) -> tuple[str, Path]:
    """A copy of the notebook at a toy size: its address, and the knowledge base it will write.

    Its trials sleep: the machine is the browser's. Until there is a file `hurry` beside it they take four seconds a
    phase, long enough to be stopped.
    """
    import nbformat

    address, served = lab
    copy = nbformat.read(NOTEBOOK, as_version=4)
    cell = next(c for c in copy.cells if "parameters" in c.metadata.get("tags", []))
    cell.source += f'\nDB = "live.db"\nSIZE = {SIZE!r}\nfrom tests.support import Asleep'
    (trains,) = (c for c in copy.cells if TRIAL in c.source)
    trains.source = trains.source.replace(TRIAL, f"Asleep({str(served / 'hurry')!r})")
    nbformat.write(copy, served / NOTEBOOK.name)
    return address.format(NOTEBOOK.name), served / "live.db"


def shoot(page, name: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png")


def events(db: Path, kind: Kind) -> list:
    with KnowledgeBase(db) as kb:
        return [event for event in kb["live"].events() if event.kind is kind]


def until(page, true, what: str) -> None:
    """Let the page live until something is true of the log."""
    for _ in range(1800):
        if true():
            return
        page.wait_for_timeout(100)
    pytest.fail(f"waited in vain: {what}")


def press(page, board, db: Path, name: str) -> int:
    """Click the row of a trial that runs now, and press a button until it is accepted.

    A trial may be over before the button is pressed, or before the study reads the wish: then another is taken.
    """
    running = board.locator(".wb-body [role=row]:not([hidden])", has=page.locator("[data-state=running]"))
    heading = board.locator("h4", has_text=re.compile(r"^Trial \d+: running"))
    button = board.get_by_role("button", name=name, exact=True)
    for k in range(60):
        n = running.count()
        if n:
            running.nth(k % n).evaluate("row => row.click()")  # a click of the mouse waits for the page to stand still
        page.wait_for_timeout(100)
        if not heading.count() or not button.is_enabled():
            continue
        asked = len(events(db, Kind.INTERVENTION))
        button.evaluate("button => button.click()")
        until(page, lambda asked=asked: len(events(db, Kind.INTERVENTION)) > asked, "an answer")
        answer = events(db, Kind.INTERVENTION)[-1]
        if answer.data["accepted"]:
            assert answer.data["action"] == name.lower()
            return answer.trial
    pytest.fail(f"no running trial to {name}")


def picture(canvas) -> str:
    return canvas.evaluate("canvas => canvas.toDataURL()")


def changes(page, canvas) -> None:
    before = picture(canvas)
    until(page, lambda: picture(canvas) != before, "a figure that changes")


def reloaded(page, n_boards: int):
    """Reload the page until all its boards live again; give the first.

    anywidget grants a model two seconds to begin. Where a busy machine takes longer the last state stays, as without a
    kernel, until the page is opened again.
    """
    boards = page.locator(".jp-OutputArea .wb")
    for _ in range(5):
        page.reload()
        until(page, lambda: TOO_SLOW in page.complaints or boards.count() == n_boards, "boards after a reload")
        if TOO_SLOW not in page.complaints:
            return boards.first
        expect(page.locator(".wb-still").filter(visible=True).first).to_contain_text("Run the cell to see it live")
        page.complaints[:] = [told for told in page.complaints if told != TOO_SLOW]
    pytest.fail("no board had begun in time after any of five reloads")


@pytest.mark.timeout(900)
def test_the_dashboard_in_a_browser(page, notebook) -> None:
    address, db = notebook
    opened(page, address)
    run_cells(page, 7)
    board = page.locator(".jp-OutputArea .wb").first
    expect(board.locator(".wb-title")).to_have_text("live")

    until(page, lambda: events(db, Kind.PHASE_STARTED), "a phase")
    gantt, curves = board.locator(".wb-gantt canvas"), board.locator(".wb-figures canvas").first
    changes(page, gantt)
    changes(page, curves)

    # another cell, while the study runs
    run_cells(page, 2)
    printed = page.locator("[data-mime-type='application/vnd.jupyter.stdout']")
    printed = printed.filter(has_text=re.compile(r"\d+ trials begun"))
    expect(printed).to_be_visible()

    stopped, paused = press(page, board, db, "Stop"), press(page, board, db, "Pause")
    board.get_by_role("button", name="Pause study").evaluate("button => button.click()")  # or it may end too soon
    expect(board.locator(".wb-decisions")).to_contain_text("person asked to pause study: accepted")
    assert [event.trial for event in events(db, Kind.TRIAL_STOPPED)] == [stopped]
    decisions = board.locator(".wb-decisions li")
    expect(decisions.filter(has_text=f"trial {stopped}: person asked to stop: accepted")).to_have_count(1)
    expect(decisions.filter(has_text=f"trial {paused}: person asked to pause: accepted")).to_have_count(1)
    expect(board.locator("h4", has_text=re.compile(rf"Trial {paused}: (set aside|stopped|finished)"))).to_be_visible()
    tips = gantt.evaluate(SCAN)
    assert any(tip.startswith(f"trial {stopped}\n") and "stopped" in tip for tip in tips)
    assert not any(tip.startswith(f"trial {paused}\n") and "running" in tip for tip in tips)
    shoot(page, "paused")

    board.get_by_role("button", name="Clone …").evaluate("button => button.click()")
    board.locator("input[data-name=learning_rate]").fill("0.002")
    board.get_by_role("button", name="Start the clone").evaluate("button => button.click()")
    expect(decisions.filter(has_text="person asked to clone: accepted")).to_have_count(1)
    board.get_by_role("button", name="Resume study").evaluate("button => button.click()")
    expect(decisions.filter(has_text="person asked to resume study: accepted")).to_have_count(1)
    resume = board.get_by_role("button", name="Resume", exact=True)
    if resume.is_enabled():
        resume.evaluate("button => button.click()")
        expect(decisions.filter(has_text="person asked to resume: accepted")).to_have_count(1)

    # the rest, which waits for the study's end
    (db.parent / "hurry").touch()
    page.locator(".jp-MarkdownCell", has_text="Step in by code").click()  # the clicks had chosen the dashboard's cell
    run_cells(page, 6)
    until(page, lambda: events(db, Kind.STUDY_ENDED), "the end of the study")
    expect(board.locator(".wb-facts")).to_contain_text("ended")
    clone = next(e for e in events(db, Kind.RUN) if e.data.get("by") == "person")
    assert clone.data["config"]["learning_rate"] == 0.002
    shoot(page, "ended")

    for told in events(db, Kind.DECISION):  # the head may tell of the end a moment before the lists do
        if told.trial not in (stopped, paused, clone.trial):
            expect(decisions.filter(has_text=f"trial {told.trial}, phase {told.phase}: ")).to_have_count(1)
    lines = decisions.count()
    command(page, "notebook:run-all-below")
    expect(page.locator(".jp-RenderedHTML > div:not(.wb-still) img").first).to_be_attached()
    command(page, "docmanager:save")
    expect(page.locator(".jp-mod-dirty")).to_have_count(0)
    board = reloaded(page, page.locator(".jp-OutputArea .wb").count())
    expect(board.locator(".wb-facts")).to_contain_text("ended")
    assert board.locator(".wb-decisions li").count() == lines
    tips = board.locator(".wb-gantt canvas").evaluate(SCAN)
    assert {int(re.search(r"trial (\d+)", tip).group(1)) for tip in tips} >= {stopped, paused, clone.trial}
    page.evaluate("window.jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' })")
    page.wait_for_function("document.body.dataset.jpThemeLight === 'false'")
    page.wait_for_timeout(500)
    shoot(page, "dark")
    assert page.complaints == [], json.dumps(page.complaints, indent=1)


HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)<script>"
BUSY = [
    "from workbench import AttachedStudy, Explorer, KnowledgeBase\nfrom workbench.viz.dashboard import Dashboard",
    f"NAME = {HOSTILE!r}\nboard = Dashboard('busy.db', NAME)\nboard",
    "from IPython.display import display\nrun, kb = AttachedStudy('busy.db', NAME), KnowledgeBase('busy.db')\n"
    "display(run, run.progress, kb, kb[NAME], kb[NAME].trial(1), run.results(), Explorer('busy.db'), board.still())",
    "from pathlib import Path\nwhile not Path('enough').exists():\n    pass\nprint('the cell is done')",
]


def outlives_its_kernel(page) -> None:
    """Saved, and opened on a kernel that never ran it: the last state is there, and no word of a missing model."""
    still = page.locator(".wb-still").first
    expect(still).to_be_hidden()  # the view lives
    command(page, "docmanager:save")
    expect(page.locator(".jp-mod-dirty")).to_have_count(0)
    page.evaluate("window.jupyterapp.serviceManager.sessions.shutdownAll()")
    expect(page.locator(".wb-trouble").first).to_contain_text("no word from the kernel since")
    expect(page.locator(".wb-controls:not([hidden]) button:enabled")).to_have_count(0)
    page.reload()
    expect(still).to_be_visible()
    expect(still).to_contain_text("4 trials begun")
    expect(page.locator(".jp-OutputArea", has_text="Run the cell to see it live").first).to_be_visible()
    page.wait_for_timeout(1500)
    assert not page.get_by_text("Error displaying widget").filter(visible=True).count()
    page.complaints[:] = [told for told in page.complaints if "model not found" not in told and "404" not in told]


def is_there_for_others(page, address, path) -> None:
    """Opened where nobody trusts it, as one from a colleague: the last state is there, and of its picture no words."""
    import nbformat

    notebook = nbformat.read(path, 4)
    notebook.metadata["sent"] = "by a colleague"  # no longer what was signed as it was saved
    nbformat.write(notebook, path.with_name("sent.ipynb"))
    page.goto(address.format("sent.ipynb"))
    slots = page.get_by_alt_text("slots over time").first
    expect(slots).to_be_visible()
    assert slots.evaluate("image => image.decode().then(() => image.naturalWidth)") == 760
    told = page.locator(".jp-OutputArea-output", has=slots).first.inner_text()
    assert "4 trials begun" in told
    assert "<b>n</b>" not in told  # a slot's
    shoot(page, "untrusted")


def keeps_its_keys(page, board) -> None:
    """Keys by which JupyterLab cuts cells, turns them and moves among them, pressed on the table and on a list."""
    cells = page.locator(".jp-Notebook .jp-CodeCell")
    before = cells.count()
    smoothing = board.get_by_label("smoothing")
    for place in (board.locator(".wb-table"), smoothing):
        place.focus()
        for key in ("x", "m", "ArrowDown", "Shift+ArrowDown", "a"):
            page.keyboard.press(key)
    expect(cells).to_have_count(before)
    assert cells.nth(1).locator(".wb").count() == 1
    smoothing.select_option("0")
    page.keyboard.press("ArrowDown")
    assert smoothing.input_value() == "0.6"


@pytest.mark.slow  # buttons are pressed in JupyterLab among the quick tests as well, there with a kernel that is free
@pytest.mark.timeout(600)
def test_buttons_are_heard_while_a_cell_runs(page, lab) -> None:
    import nbformat

    address, served = lab
    db = served / "busy.db"
    log = StudyLog(db, HOSTILE, {"scheduler": {"kind": "full", "n_trials": 4, "n_phases": 2}, "seed": 0})
    log.append(in_order())
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in BUSY])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, served / "busy.ipynb")
    opened(page, address.format("busy.ipynb"))
    run_cells(page, 4)  # all at once, as Run All does: the view comes up while the last one spins
    board = page.locator(".jp-OutputArea .wb").first
    expect(board.locator(".wb-title")).to_have_text(HOSTILE)
    inbox, heard = Inbox(db, HOSTILE), []
    button = board.get_by_role("button", name="Pause study")
    expect(button).to_be_enabled()
    button.evaluate("button => button.click()")
    until(page, lambda: heard.extend(inbox()) or heard, "a request")
    assert [request.action for request in heard] == ["pause study"]
    expect(board.locator(".wb-waiting")).to_have_text("asked, not answered yet: pause study")
    assert page.locator(".jp-OutputArea-output", has_text="the cell is done").count() == 0
    views = [board.locator(".wb-gantt canvas"), *(board.locator(".wb-figures canvas").nth(k) for k in range(2))]
    before = [picture(view) for view in views]
    board.locator(".wb-decisions li", has_text="trial 0").first.evaluate("line => line.click()")
    expect(board.locator("h4", has_text="Trial 0: finished")).to_be_visible()
    until(page, lambda: all(picture(view) != was for view, was in zip(views, before, strict=True)), "marks everywhere")
    assert board.locator(".wb-decisions li.wb-mine").count() == 2
    tips = views[1].evaluate(SCAN)
    assert any(tip.startswith("trial 1\n") and "stopped: selecting" in tip and "lr = 0.001" in tip for tip in tips), (
        tips
    )
    board.locator(".wb-decisions li", has_text="trial 1").first.evaluate("line => line.click()")
    expect(board.locator("th", has_text="<script>alert(1)</script>")).to_have_count(1)  # a hyperparameter's name
    shoot(page, "busy")
    (served / "enough").touch()
    expect(page.locator(".jp-OutputArea-output", has_text="the cell is done")).to_be_visible()
    keeps_its_keys(page, board)
    log.close()
    hostile = page.locator(".jp-OutputArea img:not([alt='slots over time']), .jp-OutputArea script")
    assert hostile.count() == 0  # words stayed words
    outlives_its_kernel(page)
    is_there_for_others(page, address, served / "busy.ipynb")
    assert page.complaints == [], json.dumps(page.complaints, indent=1)
