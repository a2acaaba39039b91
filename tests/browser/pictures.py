"""Pictures of the dashboard's states, for `docs/dashboard.md`: ``python -m tests.browser.pictures [FOLDER]``.

The studies are simulated and the page is handed their boards; neither a notebook nor a kernel is needed.
"""

import sys
import tempfile
from contextlib import chdir
from io import BytesIO
from pathlib import Path
from unittest import mock

from PIL import Image

from tests.browser.lab import browser_page
from tests.browser.standing import board_of, stand, stand_home, write_studies
from workbench.analysis import importance
from workbench.core.protocols import Event, Kind
from workbench.knowledge import Controls
from workbench.study.results import Results
from workbench.viz.dashboard.static import static_html

DOCS = Path(__file__).parents[2] / "docs" / "pictures"
SIZE = {"width": 1440, "height": 900}


def few_forests(frames):
    return importance(frames.trials, frames.phases, frames.hyperparameters, forests=20, resamples=30)


def forests(board):
    """What the forests say of a board's last scores."""
    found = few_forests(board.frames())
    return [{"phase": None, "rows": found.table.round(4).to_dict("records"), "told": str(found)}]


def explained(board):
    board.learn(importance=forests(board))
    return board


def of_studies(page, folder: Path) -> None:
    """Home, a comparison and a report, of studies in a knowledge base."""
    with tempfile.TemporaryDirectory() as place, chdir(place):
        db = Path("data/runs/workbench.db")
        db.parent.mkdir(parents=True)
        write_studies(db, **{"pong-monday": 1.0, "pong-tuesday": 1.0, "pong-wednesday": 0.6})
        Controls(db, "pong-monday").tag("baseline")
        for name, opened in {"home": ["pong-wednesday"], "comparison": ["pong-monday", "pong-tuesday"]}.items():
            page.set_viewport_size({"width": 1440, "height": 1200})
            stand_home(page, db, *opened, explained=forests)
            page.wait_for_selector(".wb-open .wb-table")
            page.wait_for_timeout(600)
            page.wait_for_function("() => !document.body.textContent.includes('being computed')")
            shoot(page, folder / f"{name}.png")
        with mock.patch.object(Results, "importance", lambda results: few_forests(results.frames)):
            path = Results.open(db, "pong-monday").write_report("report.html")
        page.set_viewport_size(SIZE)
        page.goto(path.as_uri())
        page.wait_for_selector(".plot .main-svg")
        page.wait_for_timeout(1500)
        shoot(page, folder / "report.png")


def failed(board_of_study):
    """What befalls a trial whose code is at fault."""
    lost = [Event(Kind.PHASE_FAILED, k, 0, 1, 0, {"why": "exception", "error": "ValueError: bad"}) for k in (1.0, 2.0)]
    over = {"why": "exception", "error": "ValueError: bad", "place": "train.py:12 in build", "attempt": 2}
    return board_of_study(24, 0.1, more=(*lost, Event(Kind.TRIAL_FAILED, 3.0, 0, 1, 0, over)))


def paused():
    asked = {"request": "r1", "action": "pause study", "by": "person", "accepted": True}
    return board_of(48, 0.4, more=(Event(Kind.INTERVENTION, 1.0, data=asked),))


def shoot(page, path: Path) -> None:
    """Take a picture in 256 colours: half the bytes, and nobody sees it. The pointer is out of the way."""
    page.mouse.move(0, 0)
    with Image.open(BytesIO(page.screenshot())) as picture:
        picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


def main(folder: Path = DOCS) -> None:
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    running = explained(board_of(48, 0.55))
    large = board_of(240, 0.7, nodes=32)
    states = {
        "running": (running, {}, SIZE, None),
        "selected": (running, {"selected": [0, 12, 18]}, SIZE, "Parallel"),
        "filtered": (running, {"filter": "-state:stopped lr>1e-4 time:300..700"}, SIZE, "Score against"),
        "paused": (paused(), {}, SIZE, "Decisions"),
        "failed": (failed(board_of), {"selected": [0]}, SIZE, "Crashes"),
        "240-trials": (large, {}, SIZE, "Throughput"),
        "dark": (running, {"dark": True, "selected": [6]}, SIZE, None),
        "narrow": (running, {}, {"width": 1024, "height": 1200}, None),
        "ended": (explained(board_of(48)), {}, SIZE, "Best score"),
    }
    with browser_page() as page:
        for name, (board, state, size, tab) in states.items():
            page.set_viewport_size(size)
            stand(page, board, **state)
            if tab:
                page.get_by_role("tab", name=tab).click()
            page.wait_for_timeout(400)
            shoot(page, folder / f"{name}.png")
        page.set_viewport_size({"width": 1024, "height": 900})
        page.set_content(f"<body style='font:13px sans-serif'>{static_html(running)}</body>")
        shoot(page, folder / "stored.png")
        of_studies(page, folder)
        assert page.complaints == [], page.complaints


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
