"""A real JupyterLab, isolated from whatever else is on this machine, and a headless Chromium to open it with."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE_MS = 120_000  # a loaded machine takes its time; what is there is not waited for
MISSING = "no Chromium found: install Debian's package chromium, or set CHROMIUM to a browser's path"

_TOKEN = "browser-test"


def chromium() -> str | None:
    """Where the browser is: CHROMIUM, or what is on the path."""
    names = [os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
    return next((found for name in names if name and (found := shutil.which(name))), None)


@contextmanager
def jupyterlab(folder: Path) -> Iterator[tuple[str, Path]]:
    """Serve a folder below `folder` on loopback; give the address of a file in it, to be filled in, and its path."""
    served = folder / "served"
    served.mkdir()
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += ["--LabApp.expose_app_in_browser=True", "--ServerApp.ip=127.0.0.1", "--ServerApp.port=0"]
    command += [f"--IdentityProvider.token={_TOKEN}", f"--ServerApp.root_dir={served}"]
    server = subprocess.Popen(
        command, cwd=served, env=isolated(folder), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    try:
        said: list[str] = []
        for line in server.stderr:  # type: ignore[union-attr]
            said.append(line)
            if (address := address_in(line)) is not None:
                break
        else:
            raise RuntimeError("JupyterLab did not come up:\n" + "".join(said[-30:]))
        threading.Thread(target=server.stderr.read, daemon=True).start()  # a full pipe would stop it
        yield f"{address}/tree/{{}}?token={_TOKEN}&reset", served
    finally:
        server.terminate()
        try:
            server.wait(60)
        except subprocess.TimeoutExpired:  # its threads have been seen to wait for each other, no kernel being left
            server.kill()
            server.wait(60)


def address_in(said: str) -> str | None:
    """Read the address of JupyterLab, at the port it has found, from what its server says once it is up."""
    found = re.search(r"http://127\.0\.0\.1:\d+/lab", said)
    return None if found is None else found[0]


@contextmanager
def browser_page() -> Iterator:
    """Open a page of a fresh browser; what it complains of is kept in ``page.complaints``."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(viewport={"width": 1400, "height": 2300})
        tab.set_default_timeout(PATIENCE_MS)
        tab.complaints = []
        tab.on("console", lambda said: tab.complaints.append(said.text) if said.type == "error" else None)
        tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
        tab.on("dialog", lambda dialog: (tab.complaints.append(f"a dialog: {dialog.message}"), dialog.dismiss()))
        yield tab
        browser.close()


def faults(page, part: str) -> list[str]:
    """What axe-core finds serious or critical in a part of the page, in words."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, part).response["violations"]
    grave = ((v["id"], v["nodes"][0]) for v in found if v["impact"] in ("serious", "critical"))
    return [f"{name}: {node['html'][:120]} {node['failureSummary'][:300]}" for name, node in grave]


def command(page, name: str) -> None:
    """Execute one of JupyterLab's commands."""
    page.evaluate("name => { window.jupyterapp.commands.execute(name); }", name)


def opened(page, address: str) -> None:
    """Open a notebook, wait for its kernel, and put the cursor into its first cell."""
    from playwright.sync_api import expect

    page.goto(address)
    page.wait_for_selector(".jp-Notebook .jp-Cell")
    expect(page.get_by_role("button", name="| Idle")).to_be_visible()
    page.locator(".jp-Notebook .jp-Cell").first.click()


def run_cells(page, n: int) -> None:
    """Run the next `n` cells, whatever they are; does not wait for them."""
    for _ in range(n):
        command(page, "notebook:run-cell-and-select-next")


def isolated(folder: Path) -> dict[str, str]:
    """An environment in which nobody's settings, kernels or workspaces are seen, and none are left behind."""
    places = ["HOME", "IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"]
    places += ["JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR"]
    own = {name: str(folder / name.lower()) for name in places}
    for path in own.values():
        Path(path).mkdir()
    quiet = Path(own["JUPYTERLAB_SETTINGS_DIR"]) / "@jupyterlab" / "apputils-extension"
    quiet.mkdir(parents=True)
    settings = {"fetchNews": "false", "checkForUpdates": False}
    (quiet / "notification.jupyterlab-settings").write_text(json.dumps(settings))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "JPY_", "IPYTHON"))}
    root = str(Path(__file__).parents[2])
    return {**kept, **own, "PYTHONPATH": os.pathsep.join(p for p in (root, kept.get("PYTHONPATH")) if p)}
