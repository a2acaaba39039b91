"""How long the first result takes: a small study in a fresh process, and the first learning curve of notebook 01.

`study`: four trials of half a second's work in all, on two workers; medians over fresh processes, stage by stage.
`notebook`: `workbench notebook notebooks/01_first_study.ipynb`, ended once a trial has told two scores.

    python benchmarks/cold_start.py [--parts study notebook] [--repeats 5]
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from workbench import KnowledgeBase
from workbench.core.errors import WorkbenchError

ROOT = Path(__file__).parents[1]
STUDY = """
import json, sys, time
began = time.perf_counter()
marks = {}
def mark(name):
    marks[name] = time.perf_counter() - began
from workbench import FullRuns, LogUniform, RandomSearcher, Study
mark("imported")
def train(config):
    for k in range(5):
        time.sleep(0.05)
        yield config["alpha"] * k
run = Study("small", FullRuns({"alpha": LogUniform(1e-6, 1e-1)}, 4, 1), train, nodes=2, db=sys.argv[1]).start()
mark("started")
while not run.progress.trials_started:
    time.sleep(0.01)
mark("first phase")
run.wait()
mark("ended")
run.results()
mark("results")
print(json.dumps(marks))
"""


def study(repeats: int) -> dict[str, float]:
    """Give the median seconds from the start of the interpreter's work to each stage, and of the whole process."""
    found = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            command = [sys.executable, "-c", STUDY, f"{folder}/small.db"]
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            found.append(json.loads(printed.splitlines()[-1]) | {"process": time.perf_counter() - began})
    return {stage: round(statistics.median(one[stage] for one in found), 2) for stage in found[0]}


def notebook(repeats: int) -> dict[str, float]:
    """Give the median seconds from the command to the first trial, and to the first that has told two scores."""
    found = [first_curve() for _ in range(repeats)]
    return {stage: round(statistics.median(one[stage] for one in found), 2) for stage in found[0]}


def first_curve() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        db, began, marks = f"{folder}/first.db", time.perf_counter(), dict[str, float]()
        command = ["-m", "workbench", "notebook", "notebooks/01_first_study.ipynb", "--out", f"{folder}/out.ipynb"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen([sys.executable, *command, "--set", f'DB="{db}"'], cwd=ROOT, **quiet)
        try:
            while "first curve" not in marks and process.poll() is None:
                time.sleep(0.05)
                told = scores(db)
                if told is not None:
                    marks.setdefault("first trial", time.perf_counter() - began)
                    if told > 1:
                        marks["first curve"] = time.perf_counter() - began
        finally:
            process.terminate()
            process.wait()
        return marks


def scores(db: str) -> int | None:
    """Count the scores that the trial with most of them has told; ``None`` before there is a trial."""
    with suppress(WorkbenchError, StopIteration):
        base = KnowledgeBase(db)
        frames = base[next(iter(base))].frames()
        if len(frames.trials):
            counts = frames.metrics[frames.metrics["name"] == "score"].groupby("trial").size()
            return int(counts.max()) if len(counts) else 0
    return None


PARTS = {"study": study, "notebook": notebook}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    for part in given.parts:
        print(json.dumps({"part": part, "seconds": PARTS[part](given.repeats)}))


if __name__ == "__main__":
    main()
