"""A real JupyterLab, isolated from whatever else is on this machine, and a headless Chromium to open it with."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
_TOKEN = "browser-test"
_PATIENCE_MS = 45_000  # a loaded machine takes its time; what is there is not waited for
_MISSING = "no Chromium found: install Debian's package chromium, or set CHROMIUM to a browser's path"


def chromium() -> str | None:
    """Where the browser is: CHROMIUM, or what is on the path."""
    names = [os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
    return next((found for name in names if name and (found := shutil.which(name))), None)


def pytest_terminal_summary(terminalreporter) -> None:
    if any("tests/browser" in report.nodeid for report in terminalreporter.stats.get("skipped", [])):
        terminalreporter.write_sep("!", "BROWSER TESTS SKIPPED", red=True, bold=True)
        terminalreporter.write_line(_MISSING, red=True, bold=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Keep what the page looked like when a test failed."""
    report = yield
    if report.when == "call" and report.failed and "page" in item.funcargs:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        item.funcargs["page"].screenshot(path=SCREENSHOTS / f"{item.name}-failed.png")
    return report


@pytest.fixture
def lab(tmp_path) -> Iterator[tuple[str, Path]]:
    """A JupyterLab on loopback: where to open files, and the folder it serves."""
    if chromium() is None:
        pytest.skip(_MISSING)
    served = tmp_path / "served"
    served.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        "--LabApp.expose_app_in_browser=True",
    ]
    command += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    command += [f"--IdentityProvider.token={_TOKEN}", f"--ServerApp.root_dir={served}"]
    server = subprocess.Popen(
        command, cwd=served, env=_isolated(tmp_path), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    said = []
    for line in server.stderr:
        said.append(line)
        if f"http://127.0.0.1:{port}/lab" in line:
            break
    else:
        pytest.fail("JupyterLab did not come up:\n" + "".join(said[-30:]))
    threading.Thread(target=server.stderr.read, daemon=True).start()  # a full pipe would stop it
    yield f"http://127.0.0.1:{port}/lab/tree/{{}}?token={_TOKEN}&reset", served
    server.terminate()
    server.wait(30)


@pytest.fixture
def page(lab):
    """A page of a fresh browser; what it complains of is kept in ``page.complaints``."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=_PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(viewport={"width": 1400, "height": 2300})
        tab.set_default_timeout(_PATIENCE_MS)
        tab.complaints = []
        tab.on("console", lambda said: tab.complaints.append(said.text) if said.type == "error" else None)
        tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
        yield tab
        browser.close()


def _isolated(folder: Path) -> dict[str, str]:
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
