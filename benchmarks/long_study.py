"""What a long study's log costs: a million metrics of ten thousand trials, written, opened, resumed and drawn.

The study is HyperTrick's in virtual time; its trials tell so many metrics a phase. Each thing is then done with the log
by a process of its own, so that its memory is its own: ``seconds`` and ``peak_mib`` (of the whole process; a process
that has only imported the same is ``nothing``). Prints one JSON object.

    python benchmarks/long_study.py [--trials 10000] [--phases 10] [--points 13]
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from workbench import Choice, HyperTrick, KnowledgeBase, LogUniform, RandomSearcher, Results, Space
from workbench.core.describe import build, describe
from workbench.core.drive import replay
from workbench.core.protocols import Event, Job
from workbench.core.registry import SCHEDULERS
from workbench.core.size import size_of
from workbench.simulation import keep, simulate
from workbench.simulation.cluster import VirtualCluster
from workbench.simulation.executor import Ran

NAME = "long"


class Talkative:
    """Phases of a minute that tell `points` scores and speeds."""

    def __init__(self, points: int) -> None:
        self._points = points

    def run(self, job: Job) -> Ran:
        rng = np.random.default_rng([job.seed, job.phase])
        level = job.phase - abs(np.log10(job.config["learning_rate"]) + 3)
        told = [{"score": score, "pps": 900.0} for score in level + rng.normal(0, 0.5, self._points)]
        return Ran(float(rng.uniform(50, 70)), dict(told[-1]), told)


def written(db: str, trials: int, phases: int, points: int) -> dict[str, float]:
    """Simulate the study and write its log."""
    space = Space({"learning_rate": LogUniform(1e-5, 1e-1), "gamma": Choice([0.9, 0.99, 0.999])})
    scheduler = HyperTrick(RandomSearcher(space), trials, phases, 0.25)
    events: list[Event] = []
    simulate(scheduler, Talkative(points), VirtualCluster(nodes=300), events=events)
    began = time.perf_counter()
    spec = {"scheduler": describe(scheduler), "trainable": {"kind": "simulated"}, "seed": 0}
    keep(db, NAME, spec, events, size_of(scheduler))
    seconds = time.perf_counter() - began
    metrics = sum(len(event.data.get("metrics", ())) for event in events)
    size = sum(path.stat().st_size for path in Path(db).parent.glob(f"{Path(db).name}*"))
    return {"events": len(events), "metrics": metrics, "seconds": round(seconds, 2), "mib": round(size / 2**20)}


def opened(db: str) -> None:
    with KnowledgeBase(db) as base:
        base[NAME].frames()


def resumed(db: str) -> None:
    """Bring a fresh scheduler to where the log ends, as a resumption does."""
    with KnowledgeBase(db) as base:
        replay(build("scheduler", base[NAME].spec["scheduler"], SCHEDULERS), base[NAME].events())


def drawn(db: str) -> None:
    Results.open(db, NAME).figures()


def reported(db: str) -> None:
    Results.open(db, NAME).write_report(f"{db}.html")


def apart(what: Callable[[str], None] | None, db: str) -> dict[str, float]:
    """Do something with the log in a process of its own."""
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_timed, args=(what, db, theirs))
    process.start()
    told: dict[str, float] = ours.recv()
    process.join()
    return told


def _timed(what: Callable[[str], None] | None, db: str, line: Any) -> None:
    began = time.perf_counter()
    if what is not None:
        what(db)
    seconds = time.perf_counter() - began
    status = Path("/proc/self/status").read_text()  # getrusage would tell the parent's peak, which outlives exec
    peak = next(row for row in status.splitlines() if row.startswith("VmHWM:"))
    line.send({"seconds": round(seconds, 2), "peak_mib": round(int(peak.split()[1]) / 1024)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--phases", type=int, default=10)
    parser.add_argument("--points", type=int, default=13, help="a phase; two metrics each")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        db = f"{folder}/long.db"
        found: dict[str, Any] = {"written": written(db, given.trials, given.phases, given.points)}
        for name, what in (
            ("nothing", None),
            ("opened", opened),
            ("resumed", resumed),
            ("drawn", drawn),
            ("reported", reported),
        ):
            found[name] = apart(what, db)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
