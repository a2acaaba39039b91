"""In marimo, where every view stands under a shadow root and only cells make widgets: tried, where it is there."""

import os
import socket
import subprocess
import sys

import pytest

from tests.browser.lab import MISSING, browser_page, chromium
from tests.browser.standing import write_studies
from tests.support import FROM_HERE, free_port
from workbench.knowledge import KnowledgeBase

pytest.importorskip("marimo", reason="NO MARIMO: pip install marimo")

NOTEBOOK = """
import marimo

app = marimo.App()

@app.cell
def _():
    import marimo
    from workbench import home
    page = marimo.ui.anywidget(home("kb.db"))
    page
    return (page,)

@app.cell
def _(page):
    from workbench.viz.dashboard import Comparison, Dashboard
    names = page.value["selected"]
    (Dashboard if len(names) == 1 else Comparison)("kb.db", *names) if names else None
    return
"""


@pytest.mark.slow
@pytest.mark.skipif(chromium() is None, reason=MISSING)
def test_what_is_selected_at_home_is_shown_by_the_next_cell_and_takes_notes(tmp_path) -> None:
    write_studies(tmp_path / "kb.db", monday=1.0, tuesday=1.0)
    (tmp_path / "page.py").write_text(NOTEBOOK)
    port = free_port()
    command = [sys.executable, "-m", "marimo", "run", "page.py", "--headless", "--no-token"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    env = {**os.environ, "HOME": str(tmp_path), **FROM_HERE}
    server = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with browser_page() as page:
            for _ in range(300):
                with socket.socket() as there:
                    if there.connect_ex(("127.0.0.1", port)) == 0:
                        break
                page.wait_for_timeout(200)
            for _ in range(2):  # a second reader begins afresh
                page.goto(f"http://127.0.0.1:{port}/")
                page.get_by_role("button", name="monday").click()
                page.wait_for_selector(".wb-leader")
                assert page.locator(".wb-row").nth(1).evaluate("row => getComputedStyle(row).height") == "22px"
            page.get_by_role("textbox", name="add a tag").fill("seen")
            page.keyboard.press("Enter")
            page.wait_for_selector(".wb-remarks .wb-chip")
            page.get_by_role("checkbox", name="compare tuesday").check()
            page.wait_for_selector(".wb-sides tbody tr")
            assert page.complaints == []
    finally:
        server.terminate()
        server.wait(60)
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        assert kb["monday"].frames().tags["tag"].tolist() == ["seen"]
