"""What the dashboard costs, in the kernel and in a real browser. Prints JSON.

Parts: "kernel" (time and bytes a refresh, a burst), "large" (a very large study opened and looked at again, in the
kernel), "importance" (what a study on all cores loses to the forests), and in a headless Chromium on JupyterLab
"browser" (time until it is visible, gaps between frames, JavaScript loaded, the large study) and "hour" (memory of
kernel and browser over an hour's refreshes, as fast as they go).
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the browser is started as the tests start it

from tests.browser.lab import browser_page, chromium, jupyterlab, opened, run_cells  # noqa: E402
from workbench.analysis.forests import forests_apart  # noqa: E402
from workbench.core.protocols import Event, Kind  # noqa: E402
from workbench.knowledge import KnowledgeBase, StudyLog  # noqa: E402
from workbench.viz.dashboard import Dashboard  # noqa: E402

TRIALS = 100
SLOTS = 100
LARGE_SLOTS = 300
PHASES = 5
LOOK_S = 0.5
HOUR = 7200  # refreshes

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


SCROLL = """table => new Promise((done) => {
  const gaps = [];
  let before = performance.now();
  const until = before + 3000;
  const frame = (now) => {
    gaps.push(now - before);
    before = now;
    table.scrollTop += 66;
    if (now < until) requestAnimationFrame(frame);
    else done(gaps);
  };
  requestAnimationFrame(frame);
})"""


class Counting(Dashboard):
    """A dashboard that counts what it sends instead of sending it."""

    def send(self, content, buffers=None):
        self.bytes = len(json.dumps(content)) + sum(len(b) for b in buffers or [])
        self.told = getattr(self, "told", 0) + self.bytes
        self.points = getattr(self, "points", 0) + (len(buffers[1]) // 20 if buffers else 0)


class Growing:
    """A study whose 100 trials all run, and report once a look."""

    def __init__(self, db: Path, name: str) -> None:
        self.rng = np.random.default_rng(0)
        self.log = study(db, name, TRIALS)
        self.at = 0.0
        self.phase = [0] * TRIALS
        self.next_to_end = 0
        for trial in range(TRIALS):
            self.log.append([run(trial, 0.0, self.rng), Event(Kind.PHASE_STARTED, 0.0, trial, 0, trial % SLOTS)])

    def grow(self, step_s: float = LOOK_S) -> None:
        """Every trial reports once more."""
        self.at += step_s
        said = {"frames": self.at * 1000, "pps": 900.0, "tps": 90.0, "policy_lag_mean": 1.5}
        scores = zip(range(TRIALS), self.phase, self.rng.normal(size=TRIALS), strict=True)
        self.log.append(
            [
                Event(Kind.PROGRESS, self.at, trial, phase, data={"metrics": {"score": float(score), **said}})
                for trial, phase, score in scores
            ]
        )

    def end_a_phase(self) -> None:
        """The next trial ends its phase and goes on."""
        trial, self.next_to_end = self.next_to_end, (self.next_to_end + 1) % TRIALS
        phase, slot = self.phase[trial], trial % SLOTS
        why = {"mode": "collecting", "reported": trial + 1, "collecting_reports": 50.0}
        self.log.append(
            [
                Event(Kind.PHASE_ENDED, self.at, trial, phase, slot, {"score": 0.5, "metrics": {"score": 0.5}}),
                Event(Kind.DECISION, self.at, trial, phase, data={"verdict": "continue", **why}),
                Event(Kind.PHASE_STARTED, self.at, trial, phase + 1, slot),
            ]
        )
        self.phase[trial] += 1


def spec(trials: int) -> dict[str, object]:
    return {"scheduler": {"kind": "hypertrick", "n_trials": trials, "n_phases": PHASES, "eviction_rate": 0.25}}


def study(db: Path, name: str, trials: int, slots: int = SLOTS) -> StudyLog:
    log = StudyLog(db, name, spec(trials))
    log.append([Event(Kind.STUDY_STARTED, 0.0)])
    log.append([Event(Kind.SLOT_JOINED, 0.0, slot=k, data={"node": f"n{k}"}) for k in range(min(slots, trials))])
    return log


def run(trial: int, at: float, rng: np.random.Generator) -> Event:
    config = {"learning_rate": float(10 ** rng.uniform(-5, -2)), "gamma": 0.99, "t_max": int(rng.integers(2, 100))}
    return Event(Kind.RUN, at, trial, 0, data={"config": config, "parent": None, "seed": trial})


def whole_trial(trial: int, from_s: float, each: int, rng: np.random.Generator) -> Iterator[Event]:
    """A trial of one to five phases of 60 s, as HyperTrick would let it run; `each` scores in all."""
    phases = min(PHASES, int(rng.geometric(0.25)))
    slot, per_phase = trial % LARGE_SLOTS, each // phases
    yield run(trial, from_s, rng)
    for phase in range(phases):
        at = from_s + 60.0 * phase
        yield Event(Kind.PHASE_STARTED, at, trial, phase, slot)
        for k, score in enumerate(rng.normal(size=per_phase)):
            told = {"metrics": {"score": float(score)}}
            yield Event(Kind.PROGRESS, at + 59.0 * (k + 1) / per_phase, trial, phase, data=told)
        end = {"score": float(score), "metrics": told["metrics"]}
        yield Event(Kind.PHASE_ENDED, at + 60.0, trial, phase, slot, end)
        last = phase == phases - 1
        reason = {"mode": "selecting", "rank": 0.3, "threshold": 0.5, "reported": trial + 1, "collecting_reports": 50.0}
        yield Event(Kind.DECISION, at + 60.0, trial, phase, data={"verdict": "stop" if last else "continue", **reason})


def fill(db: Path, trials: int, each: int) -> StudyLog:
    rng = np.random.default_rng(0)
    log = study(db, "large", trials, LARGE_SLOTS)
    for first in range(0, trials, LARGE_SLOTS):
        wave = [
            e for t in range(first, min(trials, first + LARGE_SLOTS)) for e in whole_trial(t, 3.0 * first, each, rng)
        ]
        log.append(sorted(wave, key=lambda event: event.at))
    return log


def one_more(log: StudyLog, trial: int) -> None:
    """Another trial begins, and ends its phases."""
    rng = np.random.default_rng(1)
    log.append(sorted(whole_trial(trial, 3.0 * trial + 400.0, 10, rng), key=lambda event: event.at))


# -- in the kernel ----------------------------------------------------------------------------------------------


@contextmanager
def stopwatch(kept: dict[str, float], name: str) -> Iterator[None]:
    """Keep the seconds that passed, and those that this process computed, all its threads together."""
    began = time.perf_counter(), time.process_time()
    yield
    kept[f"{name}_s"] = round(time.perf_counter() - began[0], 3)
    kept[f"{name}_cpu_s"] = round(time.process_time() - began[1], 3)


def steady(db: Path, looks: int, name: str, *, phase_ends: bool) -> dict[str, float]:
    """What a refresh costs at 2 Hz; if `phase_ends`, a trial ends a phase before each."""
    growing = Growing(db, name)
    board = Counting(db, name, refresh_s=3600)
    took, sent = [], []
    for _ in range(looks):
        growing.grow()
        if phase_ends:
            growing.end_a_phase()
        began = time.thread_time(), time.perf_counter()
        board.refresh()
        took.append((time.thread_time() - began[0], time.perf_counter() - began[1]))
        sent.append(board.bytes)
    board.close()
    growing.log.close()
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
    growing = Growing(db, "burst")
    board = Counting(db, "burst", refresh_s=3600)
    board.refresh()
    board.points = 0
    for _ in range(updates // TRIALS):
        growing.grow(0.01)
    board.refresh()
    while board._board.reported.reading:  # it looks at so many points bit by bit
        board.refresh()
    board.refresh()
    told = board.points
    board.close()
    growing.log.close()
    return {"updates": updates, "points_told": told, "lost": updates - told}


def in_the_kernel(folder: Path, looks: int) -> dict[str, object]:
    db = folder / "steady.db"
    what = f"{TRIALS} trials, a point each a look, {looks} looks"
    return {
        what: steady(db, looks, "steady", phase_ends=False),
        f"{what}, a phase ended in each": steady(db, looks, "phases", phase_ends=True),
        "burst": burst(db, 12_000),
    }


def large(folder: Path, trials: int, each: int) -> dict[str, float]:
    """Open a study of very many trials and points, and look again."""
    db = folder / "large.db"
    log = fill(db, trials, each)
    took: dict[str, float] = {}
    with stopwatch(took, "open"):
        board = Counting(db, "large", refresh_s=3600)
        with board._lock:
            board._read()
    before = getattr(board, "told", 0)
    with stopwatch(took, "snapshot"), board._lock:
        board._tell_all()
    size = board.told - before
    with stopwatch(took, "points"):
        board._wake.set()  # as a view does that asks
        while board._board.reported.reading:
            time.sleep(0.01)
        with board._lock:  # they are put to their attempts
            pass
    one_more(log, trials)
    with stopwatch(took, "refresh"):
        board.refresh()
    board.close()
    log.close()
    return {"trials": trials, "points": trials * each, **took, "snapshot_bytes": size}


def beside_forests(folder: Path, seconds: float) -> dict[str, float]:
    """What a study loses while importance is computed: work that a busy process a core gets done, with and without."""
    log = fill(folder / "forests.db", 2000, 10)
    log.close()
    with KnowledgeBase(folder / "forests.db") as kb:
        frames = kb["large"].frames()
    with ProcessPoolExecutor(cores := len(os.sched_getaffinity(0))) as pool:

        def work() -> int:
            return sum(pool.map(spin, [seconds] * cores))

        work()  # the processes are there
        done: dict[bool, list[int]] = {False: [], True: []}
        for computing in (False, True, True, False):
            tables = frames.trials, frames.phases, frames.hyperparameters
            forests = forests_apart(*tables, forests=10_000) if computing else None
            done[computing].append(work())
            if forests is not None:
                assert forests.poll() is None, "the forests were done before the study"
                forests.kill()
                forests.wait()
    lost = 1 - sum(done[True]) / sum(done[False])
    return {"cores": cores, "seconds": seconds, "work_lost_percent": round(100 * lost, 1)}


def spin(seconds: float) -> int:
    """Compute for so long, and tell how much was done."""
    until, done = time.perf_counter() + seconds, 0
    while time.perf_counter() < until:
        sum(range(10_000))
        done += 1
    return done


# -- in a browser -----------------------------------------------------------------------------------------------


@contextmanager
def notebook(folder: Path, cells: list[str]) -> Iterator:
    """A page that shows a notebook of these cells, beside the databases in `folder`."""
    import nbformat

    with jupyterlab(folder) as (address, served), browser_page() as page:
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(book, served / "watch.ipynb")
        page.add_init_script(WATCH)
        opened(page, address.format("watch.ipynb"))
        yield page


def in_a_browser(folder: Path, looks: int, trials: int, each: int) -> dict[str, object]:
    """Watch a study of 100 trials grow to 500 points each at 2 Hz, then open a large one."""
    db, big = folder / "browser.db", folder / "large.db"
    if not big.exists():
        fill(big, trials, each).close()
    growing = Growing(db, "steady")
    for _ in range(500 - looks):
        growing.grow()
    cells = [
        "from workbench.viz.dashboard import Dashboard",
        f"board = Dashboard({str(db)!r}, 'steady')\nboard",
        f"big = Dashboard({str(big)!r}, 'large')\nbig",
        f"again = Dashboard({str(db)!r}, 'steady')\nagain",
    ]
    with notebook(folder, cells) as page:
        ran(page, 1)
        seen: dict[str, object] = {"visible_s": shown(page, 1, "steady")}
        scripts = page.evaluate("window.scripts")
        seen["javascript_bytes"] = scripts
        page.wait_for_timeout(2000)
        page.evaluate("window.gaps = []")
        for _ in range(looks):
            growing.grow()
            page.wait_for_timeout(1000 * LOOK_S)
        gaps = np.array(page.evaluate("window.gaps"))
        for name, share in (("p50", 0.5), ("p95", 0.95), ("max", 1.0)):
            seen[f"frame_gap_ms_{name}"] = round(float(np.quantile(gaps, share)), 1)
        began = time.perf_counter()
        seen["large_visible_s"] = shown(page, 2, "large")
        page.wait_for_function("e => !e.hasAttribute('data-drawing')", arg=board_in(page, 2).element_handle())
        seen["large_drawn_s"] = round(time.perf_counter() - began, 2)
        page.wait_for_function(
            "() => ![...document.querySelectorAll('.wb-note')].some((e) => /being read/.test(e.textContent))"
        )
        seen["large_all_points_s"] = round(time.perf_counter() - began, 2)
        page.wait_for_timeout(2000)
        with_more = StudyLog(big, "large", spec(trials), resume=True)
        took = [refreshed(page, 2, with_more, trials + k) for k in range(7)]
        seen |= {"large_refresh_s_median": float(np.median(took)), "large_refresh_s_max": max(took)}
        seen |= scrolled(page, 2)
        shown(page, 3, "steady")
        seen["javascript_bytes_of_three_dashboards"] = page.evaluate("window.scripts")
        with_more.close()
        growing.log.close()
        return {**seen, "console_errors": page.complaints}


def refreshed(page, cell: int, log: StudyLog, trial: int) -> float:
    """Log another trial and give the seconds until the page tells of it."""
    facts = page.locator(".jp-CodeCell").nth(cell).locator(".wb-facts").first.element_handle()
    before = facts.text_content()
    began = time.perf_counter()
    one_more(log, trial)
    page.wait_for_function("([e, before]) => e.textContent !== before", arg=[facts, before])
    return round(time.perf_counter() - began, 2)


def scrolled(page, cell: int) -> dict[str, float]:
    """Scroll the trial table of a cell for three seconds, three rows a frame, and give the gaps between frames."""
    table = page.locator(".jp-CodeCell").nth(cell).locator(".wb-table").element_handle()
    gaps = np.array(page.evaluate(SCROLL, table))
    return {f"scroll_gap_ms_{n}": round(float(np.quantile(gaps, q)), 1) for n, q in (("p50", 0.5), ("p95", 0.95))}


def an_hour(folder: Path, refreshes: int, every_s: float) -> dict[str, object]:
    """Refresh very often, and tell what memory it took; the first tenth is for warming up.

    A trial ends a phase before every tenth refresh.
    """
    db = folder / "hour.db"
    growing = Growing(db, "hour")
    cells = [
        "from workbench.viz.dashboard import Dashboard",
        f"board = Dashboard({str(db)!r}, 'hour', refresh_s={every_s / 2})\nboard",
        "print('deltas told:', board._wire.number)",
    ]
    with notebook(folder, cells) as page:
        ran(page, 1)
        shown(page, 1, "hour")
        at = []
        began = time.perf_counter()
        for k in range(refreshes + 1):
            if k % (refreshes // 10) == 0:
                at.append((kernel_mb(), heap_mb(page), renderer_mb()))
            growing.grow()
            if k % 10 == 0:
                growing.end_a_phase()
            page.wait_for_timeout(1000 * every_s)
        took_s = time.perf_counter() - began
        run_cells(page, 1)
        told = page.locator(".jp-OutputArea-output", has_text="deltas told: ")
        deltas = int(told.last.text_content().split()[-1])
        growing.log.close()
        found: dict[str, object] = {"refreshes": refreshes, "deltas_told": deltas, "took_s": round(took_s, 1)}
        for name, series in zip(("kernel", "browser_heap", "browser_process"), zip(*at, strict=True), strict=True):
            found[f"{name}_mb"] = list(series)
            found[f"{name}_growth_percent"] = round(100 * (series[-1] / series[1] - 1), 1)
        return {**found, "console_errors": page.complaints}


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
    board = board_in(page, cell)
    page.wait_for_function("e => e.textContent", arg=board.locator(".wb-facts").element_handle())
    assert board.locator(".wb-title").text_content() == name
    return round(time.perf_counter() - began, 2)


def board_in(page, cell: int):
    """Find the dashboard that a cell shows."""
    return page.locator(".jp-CodeCell").nth(cell).locator(".wb")


def kernel_mb() -> float:
    return resident_mb("ipykernel_launcher")


def renderer_mb() -> float:
    """Memory of the process that draws the page: the largest, as the browser keeps a spare one."""
    return resident_mb("--type=renderer")


def resident_mb(word: str) -> float:
    import psutil

    ours = [p for p in psutil.Process().children(recursive=True) if word in " ".join(p.cmdline())]
    return round(max(p.memory_info().rss for p in ours) / 2**20, 1)


def heap_mb(page) -> float:
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    used = session.send("Runtime.getHeapUsage")["usedSize"]
    session.detach()
    return round(used / 2**20, 1)


PARTS = ("kernel", "large", "importance", "browser", "hour")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the large study, few refreshes")
    parser.add_argument("--refreshes", type=int, metavar="N", help=f"of the hour (default: {HOUR}, at 2 Hz)")
    parser.add_argument("--every", type=float, default=0.03, metavar="S", help="seconds between them (default: 0.03)")
    given = parser.parse_args()
    trials, looks = (100, 20) if given.quick else (10_000, 60)
    parts = {
        "kernel": lambda folder: in_the_kernel(folder, 50 if given.quick else 500),
        "large": lambda folder: large(folder, trials, 100),
        "importance": lambda folder: beside_forests(folder, 2.0 if given.quick else 10.0),
        "browser": lambda folder: in_a_browser(folder, looks, trials, 100),
        "hour": lambda folder: an_hour(folder, given.refreshes or (100 if given.quick else HOUR), given.every),
    }
    found: dict[str, object] = {}
    for part in given.parts:
        if part in ("browser", "hour") and chromium() is None:
            found[part] = "no Chromium found"
            continue
        with tempfile.TemporaryDirectory() as folder:
            found[part] = parts[part](Path(folder))
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
