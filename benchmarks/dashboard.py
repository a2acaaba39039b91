"""What the dashboard costs: kernel time and bytes a refresh, a burst, and opening a very large study. Prints JSON."""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from workbench.core.protocols import Event, Kind
from workbench.knowledge import StudyLog
from workbench.viz.live import Dashboard

SPEC = {"scheduler": {"kind": "hypertrick", "n_trials": 100, "n_phases": 5, "eviction_rate": 0.25}}


class Counting(Dashboard):
    """A dashboard that counts what it sends instead of sending it."""

    def send(self, content, buffers=None):
        self.bytes = len(json.dumps(content)) + sum(len(b) for b in buffers or [])
        self.points = getattr(self, "points", 0) + (len(buffers[1]) // 16 if buffers else 0)


def study(db: Path, name: str) -> StudyLog:
    log = StudyLog(db, name, SPEC)
    log.append([Event(Kind.STUDY_STARTED, 0.0)])
    return log


def begun(trials: int, rng: np.random.Generator) -> Iterator[Event]:
    for trial in range(trials):
        yield (
            Event(Kind.SLOT_JOINED, 0.0, slot=trial, data={"node": f"n{trial}"})
            if trial < 100
            else Event(Kind.SLOT_JOINED, 0.0, slot=trial % 100, data={"node": f"n{trial % 100}"})
        )
        config = {"learning_rate": float(10 ** rng.uniform(-5, -2)), "gamma": 0.99, "t_max": int(rng.integers(2, 100))}
        yield Event(Kind.RUN, 0.0, trial, 0, data={"config": config, "parent": None, "seed": trial})
        yield Event(Kind.PHASE_STARTED, 0.0, trial, 0, trial % 100)


def points(trials: int, at: float, rng: np.random.Generator) -> list[Event]:
    values = rng.normal(size=trials)
    said = {"frames": at * 1000, "pps": 900.0, "tps": 90.0, "policy_lag_mean": 1.5}
    return [
        Event(Kind.PROGRESS, at, trial, 0, data={"metrics": {"score": float(values[trial]), **said}})
        for trial in range(trials)
    ]


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
    """Open a study of very many trials and points, and look again."""
    rng = np.random.default_rng(0)
    log = study(db, "large")
    log.append(list(begun(trials, rng)))
    for k in range(each):
        values = rng.normal(size=trials)
        log.append([Event(Kind.PROGRESS, k + 1.0, t, 0, data={"metrics": {"score": values[t]}}) for t in range(trials)])
    began = time.perf_counter()
    board = Counting(db, "large", refresh_s=3600)
    opened = time.perf_counter() - began
    began = time.perf_counter()
    with board._lock:
        board._tell_all()
    snapshot = time.perf_counter() - began
    size = board.bytes
    log.append(points(100, each + 1.0, rng))
    log.append([Event(Kind.PHASE_ENDED, each + 2.0, 0, 0, 0, {"score": 1.0, "metrics": {"score": 1.0}})])
    began = time.perf_counter()
    board.refresh()
    refresh = time.perf_counter() - began
    board.close()
    log.close()
    return {
        "trials": trials,
        "points": trials * each,
        "open_s": round(opened, 2),
        "snapshot_s": round(snapshot, 2),
        "snapshot_bytes": size,
        "refresh_s": round(refresh, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the large study")
    quick = parser.parse_args().quick
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder) / "kb.db"
        found = {
            "100 trials, a point each a look, 500 looks": steady(db, 100, 50 if quick else 500),
            "burst": burst(db, 12_000),
            "large": large(db, 100 if quick else 10_000, 100),
        }
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
