"""What the browser tests share: a JupyterLab, a page, pictures of what went wrong."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.lab import MISSING, browser_page, chromium, jupyterlab

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"


def pytest_terminal_summary(terminalreporter) -> None:
    skipped = any("tests/browser" in report.nodeid for report in terminalreporter.stats.get("skipped", []))
    if skipped and chromium() is None:
        terminalreporter.write_sep("!", "BROWSER TESTS SKIPPED", red=True, bold=True)
        terminalreporter.write_line(MISSING, red=True, bold=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Keep what the page looked like when a test failed."""
    report = yield
    if report.when == "call" and report.failed and "page" in item.funcargs:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        item.funcargs["page"].screenshot(path=SCREENSHOTS / f"{item.name}-failed.png")
    return report


@pytest.fixture(scope="module")
def lab(tmp_path_factory) -> Iterator[tuple[str, Path]]:
    """A JupyterLab on loopback: where to open files, and the folder it serves."""
    if chromium() is None:
        pytest.skip(MISSING)
    with jupyterlab(tmp_path_factory.mktemp("lab")) as serving:
        yield serving


@pytest.fixture
def page(lab):
    """A page of a fresh browser; what it complains of is kept in ``page.complaints``."""
    with browser_page() as tab:
        yield tab


@pytest.fixture(scope="module")
def tab():
    """A page without a notebook, shared by the tests of a file, none of which may make it complain."""
    with browser_page() as page:
        page.set_viewport_size({"width": 1440, "height": 900})
        yield page
        assert page.complaints == []
