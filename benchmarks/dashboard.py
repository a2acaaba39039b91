"""What the dashboard costs, in the kernel and in a real browser. Prints JSON.

Kernel: time and bytes a refresh, a burst, opening a very large study. Browser (headless Chromium on JupyterLab): time
until it is visible, gaps between frames, JavaScript loaded, the large study, memory over an hour's refreshes.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the browser is started as the tests start it

from tests.browser.lab import browser_page, chromium, jupyterlab, opened, run_cells  # noqa: E402
from workbench.core.protocols import Event, Kind  # noqa: E402
from workbench.knowledge import StudyLog  # noqa: E402
from workbench.viz.live import Dashboard  # noqa: E402

SPEC = {"scheduler": {"kind": "hypertrick", "n_trials": 100, "n_phases": 5, "eviction_rate": 0.25}}
SLOTS = 100
PHASES = 5

# Keeps the time between any two frames that the page could draw, and the JavaScript that widgets brought along.
WATCH = """
window.gaps = [];
window.scripts = [];
let before = performance.now();
const frame = (now) => { window.gaps.push(now - before); before = now; requestAnimationFrame(frame); };
requestAnimationFrame(frame);
const make = URL.createObjectURL;
URL.createObjectURL = (blob) => {
  if (/javascript/.test(blob.type)) window.scripts.push(blob.size);
  return make.call(URL, blob);
};
"""


class Counting(Dashboard):
    """A dashboard that counts what it sends instead of sending it."""

    def send(self, content, buffers=None):
        self.bytes = len(json.dumps(content)) + sum(len(b) for b in buffers or [])
        self.points = getattr(self, "points", 0) + (len(buffers[1]) // 16 if buffers else 0)


def study(db: Path, name: str, trials: int = 100) -> StudyLog:
    log = StudyLog(db, name, {"scheduler": {**SPEC["scheduler"], "n_trials": trials}})
    log.append([Event(Kind.STUDY_STARTED, 0.0)])
    log.append([Event(Kind.SLOT_JOINED, 0.0, slot=k, data={"node": f"n{k}"}) for k in range(min(SLOTS, trials))])
    return log


def run(trial: int, at: float, rng: np.random.Generator) -> Event:
    config = {"learning_rate": float(10 ** rng.uniform(-5, -2)), "gamma": 0.99, "t_max": int(rng.integers(2, 100))}
    return Event(Kind.RUN, at, trial, 0, data={"config": config, "parent": None, "seed": trial})


def begun(trials: int, rng: np.random.Generator) -> Iterator[Event]:
    for trial in range(trials):
        yield run(trial, 0.0, rng)
        yield Event(Kind.PHASE_STARTED, 0.0, trial, 0, trial % SLOTS)


def points(trials: int, at: float, rng: np.random.Generator) -> list[Event]:
    values = rng.normal(size=trials)
    said = {"frames": at * 1000, "pps": 900.0, "tps": 90.0, "policy_lag_mean": 1.5}
    return [
        Event(Kind.PROGRESS, at, trial, 0, data={"metrics": {"score": float(values[trial]), **said}})
        for trial in range(trials)
    ]


def whole_trial(trial: int, from_s: float, each: int, rng: np.random.Generator) -> Iterator[Event]:
    """A trial of one to five phases of 60 s, as HyperTrick would let it run; `each` scores in all."""
    phases = min(PHASES, int(rng.geometric(0.25)))
    slot, per_phase = trial % SLOTS, each // phases
    yield run(trial, from_s, rng)
    for phase in range(phases):
        at = from_s + 60.0 * phase
        yield Event(Kind.PHASE_STARTED, at, trial, phase, slot)
        for k, score in enumerate(rng.normal(size=per_phase)):
            told = {"metrics": {"score": float(score)}}
            yield Event(Kind.PROGRESS, at + 59.0 * (k + 1) / per_phase, trial, phase, data=told)
        yield Event(
            Kind.PHASE_ENDED, at + 60.0, trial, phase, slot, {"score": float(score), "metrics": told["metrics"]}
        )
        last = phase == phases - 1
        reason = {"mode": "selecting", "rank": 0.3, "threshold": 0.5, "reported": trial + 1, "collecting_reports": 50.0}
        yield Event(Kind.DECISION, at + 60.0, trial, phase, data={"verdict": "stop" if last else "continue", **reason})


def fill(db: Path, trials: int, each: int) -> StudyLog:
    rng = np.random.default_rng(0)
    log = study(db, "large", trials)
    for first in range(0, trials, SLOTS):
        wave = [e for t in range(first, first + SLOTS) for e in whole_trial(t, 3.0 * first, each, rng)]
        log.append(sorted(wave, key=lambda event: event.at))
    return log


def steady(db: Path, trials: int, looks: int) -> dict[str, float]:
    """A point a trial, every look, as at 2 Hz."""
    rng = np.random.default_rng(0)
    log = study(db, "steady")
    log.append(list(begun(trials, rng)))
    board = Counting(db, "steady", refresh_s=3600)
    took, sent = [], []
    for k in range(looks):
        log.append(points(trials, 0.5 * (k + 1), rng))
        began = time.thread_time(), time.perf_counter()
        board.refresh()
        took.append((time.thread_time() - began[0], time.perf_counter() - began[1]))
        sent.append(board.bytes)
    board.close()
    log.close()
    cpu, wall = (np.array(t) * 1000 for t in zip(*took, strict=True))
    return {
        "kernel_cpu_ms_median": round(float(np.median(cpu)), 2),
        "kernel_cpu_ms_p95": round(float(np.quantile(cpu, 0.95)), 2),
        "kernel_wall_ms_median": round(float(np.median(wall)), 2),
        "bytes_median": int(np.median(sent)),
        "bytes_max": int(np.max(sent[1:])),
    }


def burst(db: Path, updates: int) -> dict[str, float]:
    """Everything at once between two looks."""
    rng = np.random.default_rng(0)
    log = study(db, "burst")
    log.append(list(begun(100, rng)))
    board = Counting(db, "burst", refresh_s=3600)
    board.refresh()
    board.points = 0
    for k in range(updates // 100):
        log.append(points(100, 0.01 * (k + 1), rng))
    board.refresh()
    told = board.points
    board.close()
    log.close()
    return {"updates": updates, "points_told": told, "lost": updates - told}


def large(db: Path, trials: int, each: int) -> dict[str, float]:
    """Open a study of very many trials and points, and look again; seconds, and seconds of processor time."""
    log = fill(db, trials, each)
    began = time.perf_counter(), time.process_time()
    board = Counting(db, "large", refresh_s=3600)
    opened_s = time.perf_counter() - began[0], time.process_time() - began[1]
    began = time.perf_counter(), time.process_time()
    with board._lock:
        board._tell_all()
    snapshot_s = time.perf_counter() - began[0], time.process_time() - began[1]
    size = board.bytes
    one_more(log, trials)
    began = time.perf_counter(), time.process_time()
    board.refresh()
    refresh_s = time.perf_counter() - began[0], time.process_time() - began[1]
    board.close()
    log.close()
    names = ("open_s", "open_cpu_s", "snapshot_s", "snapshot_cpu_s", "refresh_s", "refresh_cpu_s")
    took = dict(zip(names, (round(s, 3) for s in (*opened_s, *snapshot_s, *refresh_s)), strict=True))
    return {"trials": trials, "points": trials * each, **took, "snapshot_bytes": size}


def one_more(log: StudyLog, trial: int) -> None:
    """Another trial begins and ends a phase."""
    rng = np.random.default_rng(1)
    log.append(sorted(whole_trial(trial, 3.0 * trial + 400.0, 10, rng), key=lambda event: event.at))


def in_a_browser(folder: Path, looks: int, refreshes: int, every_s: float, big: Path, n_big: int) -> dict[str, object]:
    """Open JupyterLab, watch a study of 100 trials grow to 500 points each at 2 Hz, then go on without pause."""
    import nbformat

    rng = np.random.default_rng(0)
    with jupyterlab(folder) as (address, served), browser_page() as page:
        log = study(served / "kb.db", "steady")
        log.append(list(begun(100, rng)))
        for k in range(500 - looks):
            log.append(points(100, 0.5 * (k + 1), rng))
        cells = [
            "from workbench.viz.live import Dashboard",
            "board = Dashboard('kb.db', 'steady')\nboard",
            f"board.close()\nboard = Dashboard('kb.db', 'steady', refresh_s={every_s})\nboard",
            f"big = Dashboard({str(big)!r}, 'large')\nbig",
        ]
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(book, served / "watch.ipynb")
        page.add_init_script(WATCH)
        opened(page, address.format("watch.ipynb"))
        ran(page, 1)
        visible_s = shown(page, 1, "steady")
        scripts = page.evaluate("window.scripts")
        page.evaluate("window.gaps = []")
        clock = 0.5 * (500 - looks)
        for _ in range(looks):
            log.append(points(100, clock := clock + 0.5, rng))
            page.wait_for_timeout(500)
        gaps = np.array(page.evaluate("window.gaps"))
        seen = {
            "visible_s": visible_s,
            "javascript_bundles": len(scripts),
            "javascript_bytes": sum(scripts),
            "frame_gap_ms_p95": round(float(np.quantile(gaps, 0.95)), 1),
            "frame_gap_ms_max": round(float(gaps.max()), 1),
        }
        seen["reopened_s"] = shown(page, 2, "steady")
        seen["memory"] = grown(page, log, clock, refreshes, every_s, rng)
        seen["large_visible_s"] = shown(page, 3, "large")
        with_more = StudyLog(big, "large", {"scheduler": {**SPEC["scheduler"], "n_trials": n_big}}, resume=True)
        began = time.perf_counter()
        one_more(with_more, n_big + 1)
        facts = page.locator(".jp-CodeCell").nth(3).locator(".wb-count").first
        page.wait_for_function("([e, n]) => e.textContent.startsWith(n)", arg=[facts.element_handle(), str(n_big + 2)])
        seen["large_refresh_s"] = round(time.perf_counter() - began, 2)
        scripts = page.evaluate("window.scripts")  # of three dashboards by now
        seen["javascript_loaded_in_all"] = {"times": len(scripts), "kinds": len(set(scripts)), "bytes": sum(scripts)}
        with_more.close()
        log.close()
        return {**seen, "console_errors": page.complaints}


def ran(page, n: int) -> None:
    """Run the next cell, the n-th, to its end."""
    run_cells(page, 1)
    page.wait_for_function(
        "n => document.querySelectorAll('.jp-Cell .jp-InputPrompt')[n - 1].textContent === `[${n}]:`", arg=n
    )


def shown(page, cell: int, name: str) -> float:
    """Run the next cell and give the seconds until the study it shows can be seen."""
    began = time.perf_counter()
    run_cells(page, 1)
    board = page.locator(".jp-CodeCell").nth(cell).locator(".wb")
    page.wait_for_function("e => e.textContent", arg=board.locator(".wb-facts").element_handle())
    assert board.locator(".wb-title").text_content() == name
    return round(time.perf_counter() - began, 2)


def grown(page, log: StudyLog, clock: float, refreshes: int, every_s: float, rng: np.random.Generator) -> dict:
    """Refresh very often, and tell what memory it took; the first tenth is for warming up."""
    at = {}
    for k in range(refreshes + 1):
        if k in (refreshes // 10, refreshes):
            at[k] = kernel_mb(), heap_mb(page)
        log.append(points(100, clock + 0.5 * (k + 1), rng))
        page.wait_for_timeout(1000 * every_s)
    (kernel, heap), (kernel_end, heap_end) = at[refreshes // 10], at[refreshes]
    return {
        "refreshes": refreshes,
        "kernel_mb": [kernel, kernel_end],
        "browser_heap_mb": [heap, heap_end],
        "kernel_growth_percent": round(100 * (kernel_end / kernel - 1), 1),
        "browser_growth_percent": round(100 * (heap_end / heap - 1), 1),
    }


def kernel_mb() -> float:
    import psutil

    (kernel,) = [p for p in psutil.Process().children(recursive=True) if "ipykernel_launcher" in " ".join(p.cmdline())]
    return round(kernel.memory_info().rss / 2**20, 1)


def heap_mb(page) -> float:
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    used = session.send("Runtime.getHeapUsage")["usedSize"]
    session.detach()
    return round(used / 2**20, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the large study, few refreshes")
    parser.add_argument("--refreshes", type=int, metavar="N", help="of the memory run (default: 7200, an hour at 2 Hz)")
    parser.add_argument("--every", type=float, default=0.05, metavar="S", help="seconds between them (default: 0.05)")
    given = parser.parse_args()
    trials, looks = (100, 20) if given.quick else (10_000, 60)
    refreshes = given.refreshes or (100 if given.quick else 7200)
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder) / "kb.db"
        found: dict[str, object] = {
            "100 trials, a point each a look, 500 looks": steady(db, 100, 50 if given.quick else 500),
            "burst": burst(db, 12_000),
            "large": large(db, trials, 100),
        }
        if chromium() is None:
            found["browser"] = "no Chromium found"
        else:
            found["browser"] = in_a_browser(Path(folder), looks, refreshes, given.every, db, trials)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
