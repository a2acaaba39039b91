"""A worker process killed about every second: the workbench, Optuna's processes and Ray Tune on the same trials.

Trials of some phases that sleep and can be gone on with; four worker processes; every kill is a SIGKILL to a process
that was in the middle of a phase. Everybody has checkpoints after each phase and tries a lost trial again. The three
take turns in every repeat. Prints JSON, of each:

- ``finished``: trials that reached their end, of ``trials``
- ``phases_run_again``: phases that had ended and were run once more
- ``attempts_lost``: phases that were under way when their process was killed
- ``begun_again_s``: from a kill until its trial was under way again; median, and the longest
- ``wall_s``: from the first phase to the end of the last
- ``occupancy``: phases that count, no more than were asked for, times their length, over wall time times workers
- ``exit``: how the tool itself ended

What a phase does is written by the trial itself, a line at its begin and one at its end, so all three are measured by
the same means. Optuna has no supervisor: this script starts a worker again as soon as it is dead, and Optuna's own
heartbeat (1 s, 3 s of grace) and callback try its trial again. Ray is no part of the benchmarks' environment:
``pip install --target FOLDER 'ray[tune]'`` and PYTHONPATH=FOLDER add it.
"""

import argparse
import importlib.util
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

MARK = "RELIABILITY_PEERS_FOLDER"
TOOLS = ("workbench", "optuna", "ray")
NO_RAY = "skipped: Ray is not installed (pip install --target FOLDER 'ray[tune]', PYTHONPATH=FOLDER)"


@dataclass(frozen=True)
class Task:
    """`trials` of `phases` that last `phase_s`, on `workers` processes; lines and checkpoints go to `folder`."""

    folder: str
    trials: int
    phases: int
    phase_s: float
    workers: int

    def phase(self, trial: int, phase: int) -> None:
        """Sleep through a phase, a line before and one after it."""
        self._write("begin", trial, phase)
        time.sleep(self.phase_s)
        self._write("end", trial, phase)

    def _write(self, what: str, trial: int, phase: int) -> None:
        line = f"{time.time():.4f} {os.getpid()} {what} {trial} {phase}\n"
        with open(f"{self.folder}/lines", "a") as file:  # one write of a short line is whole
            file.write(line)

    def lines(self) -> list[tuple[float, int, str, int, int]]:
        path = Path(self.folder) / "lines"
        parts = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        return [(float(at), int(pid), what, int(trial), int(phase)) for at, pid, what, trial, phase in parts]


# -- the three --------------------------------------------------------------------------------------------------------


def workbench(task: Task) -> str:
    from workbench import FullRuns, Study, Uniform

    study = Study(
        "chaos",
        FullRuns({"x": Uniform(0.0, 1.0)}, n_trials=task.trials, n_phases=task.phases),
        Sleeper(task),
        nodes=task.workers,
        max_retries=1000,
        db=f"{task.folder}/kb.db",
    )
    return study.run().frames().state


@dataclass(frozen=True)
class Sleeper:
    task: Task

    def __call__(self, config: Any, seed: int) -> "_Sleeping":
        return _Sleeping(self.task, seed)


class _Sleeping:
    def __init__(self, task: Task, seed: int) -> None:
        self.task, self.trial, self.done = task, seed, 0

    def train_phase(self, progress: Callable[[dict[str, float]], None]) -> dict[str, float]:
        self.task.phase(self.trial, self.done)
        self.done += 1
        return {"score": float(self.done)}

    def save(self, path: Path) -> None:
        (path / "done").write_text(str(self.done))

    def load(self, path: Path) -> None:
        self.done = int((path / "done").read_text())

    def close(self) -> None:
        pass


def optuna(task: Task) -> str:
    """Processes of `study.optimize` on one SQLite file, each started again when it is dead."""
    import optuna as library

    library.create_study(storage=_storage(task), study_name="chaos")
    command = [sys.executable, __file__, "--worker", json.dumps(vars(task))]
    processes = [subprocess.Popen(command) for _ in range(task.workers)]
    while any(process.poll() != 0 for process in processes):
        for at, process in enumerate(processes):
            if process.poll() not in (None, 0):
                processes[at] = subprocess.Popen(command)
        time.sleep(0.05)
    return "ended"


def _storage(task: Task) -> Any:
    from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback

    return RDBStorage(
        f"sqlite:///{task.folder}/optuna.db",
        engine_kwargs={"connect_args": {"timeout": 60}},
        heartbeat_interval=1,
        grace_period=3,
        failed_trial_callback=RetryHeartbeatStaleTrialCallback(max_retry=1000),
    )


def optuna_worker(task: Task) -> None:
    """Take trials until as many as asked for have come to their end."""
    import optuna as library
    from optuna.storages import RetryHeartbeatStaleTrialCallback
    from optuna.trial import TrialState

    library.logging.set_verbosity(library.logging.ERROR)
    study = library.load_study(storage=_storage(task), study_name="chaos")

    def objective(trial: Any) -> float:
        frozen = study.get_trials(deepcopy=False)[trial.number]
        first = RetryHeartbeatStaleTrialCallback.retried_trial_number(frozen)
        number = trial.number if first is None else first
        kept = Path(task.folder) / f"optuna-{number}"
        done = int(kept.read_text() or 0) if kept.exists() else 0
        for phase in range(done, task.phases):
            task.phase(number, phase)
            part = kept.with_suffix(".part")
            part.write_text(str(phase + 1))
            part.replace(kept)
        return trial.suggest_float("x", 0.0, 1.0)

    def enough(study: Any, _: Any) -> None:
        if len(study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))) >= task.trials:
            study.stop()

    study.optimize(objective, callbacks=[enough])


def ray(task: Task) -> str:
    """Trials as actors of a CPU each, checkpoints after every phase, any number of failures."""
    import ray as library
    from ray import tune

    class Trial(tune.Trainable):
        def setup(self, config: dict[str, Any]) -> None:
            self.number, self.done = config["number"], 0

        def step(self) -> dict[str, Any]:
            task.phase(self.number, self.done)
            self.done += 1
            return {"score": float(self.done), "done": self.done >= task.phases}

        def save_checkpoint(self, folder: str) -> None:
            (Path(folder) / "done").write_text(str(self.done))

        def load_checkpoint(self, folder: str) -> None:
            self.done = int((Path(folder) / "done").read_text())

    library.init(num_cpus=task.workers, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    run = tune.RunConfig(
        storage_path=f"{task.folder}/ray",
        failure_config=tune.FailureConfig(max_failures=-1),
        checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=1, num_to_keep=2),
        verbose=0,
    )
    found = tune.Tuner(Trial, param_space={"number": tune.grid_search(list(range(task.trials)))}, run_config=run).fit()
    library.shutdown()
    return f"{len(found.errors)} errors"


# -- harm, and what it cost -------------------------------------------------------------------------------------------


@contextmanager
def harm(task: Task, every_s: float, seed: int) -> Iterator[list[tuple[float, int, int]]]:
    """Kill a process in the middle of a phase about every `every_s`; gives (time, trial, phase) of each kill."""
    rng, over, killed = random.Random(seed), threading.Event(), list[tuple[float, int, int]]()

    def work() -> None:
        while not over.wait(rng.uniform(0.5, 1.5) * every_s):
            under_way: dict[int, tuple[int, int]] = {}
            for _, pid, what, trial, phase in task.lines():
                if what == "begin":
                    under_way[pid] = (trial, phase)
                else:
                    under_way.pop(pid, None)
            alive = [pid for pid in under_way if _alive(pid)]
            if alive:
                pid = rng.choice(alive)
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed.append((time.time(), *under_way[pid]))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def measure(tool: str, shape: dict[str, Any], every_s: float, seed: int, limit_s: float) -> dict[str, Any] | str:
    if tool == "ray" and importlib.util.find_spec("ray") is None:
        return NO_RAY
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # Ray's daemons may still write
        task = Task(folder, **shape)
        command = [sys.executable, __file__, "--tool", tool, json.dumps(vars(task))]
        with harm(task, every_s, seed) as killed:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {MARK: folder})
            try:
                told = process.communicate(timeout=limit_s)[0].strip().rpartition("\n")[2]
            except subprocess.TimeoutExpired:
                told = f"not at its end after {limit_s:g} s"
            _end(folder)
        ending = told if process.returncode in (0, None) else f"exit {process.returncode}"
        return _costs(task, killed) | {"exit": ending}


def _end(folder: str) -> None:
    """Kill a tool and all it has started, whatever sessions they are in: they carry its folder in their environment."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(MARK) == folder:
                process.kill()


def _costs(task: Task, killed: list[tuple[float, int, int]]) -> dict[str, Any]:
    lines = task.lines()
    if not lines:
        return {"finished": 0}
    ends = [(trial, phase) for _, _, what, trial, phase in lines if what == "end"]
    counted = min(len(set(ends)), task.trials * task.phases)  # some tools run more trials than were asked for
    wall_s = lines[-1][0] - lines[0][0]
    again = []
    for at, trial, _ in killed:
        later = [t for t, _, what, of, _ in lines if what == "begin" and of == trial and t > at]
        again += [min(later) - at] if later else []
    return {
        "finished": len({trial for trial, phase in set(ends) if phase == task.phases - 1}),
        "kills": len(killed),
        "attempts_lost": sum(what == "begin" for _, _, what, _, _ in lines) - len(ends),
        "phases_run_again": len(ends) - len(set(ends)),
        "begun_again_s": again and {"median": round(statistics.median(again), 2), "longest": round(max(again), 2)},
        "wall_s": round(wall_s, 1),
        "occupancy": round(counted * task.phase_s / (wall_s * task.workers), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--phases", type=int, default=4)
    parser.add_argument("--phase-s", type=float, default=0.5)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--every-s", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit-s", type=float, default=300.0)
    parser.add_argument("--only", choices=TOOLS, nargs="+", default=list(TOOLS))
    parser.add_argument("--tool", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        optuna_worker(Task(**json.loads(args.worker)))
    elif args.tool:
        tool, task = args.tool
        print({"workbench": workbench, "optuna": optuna, "ray": ray}[tool](Task(**json.loads(task))))
    else:
        print(json.dumps(_compared(args), indent=2))


def _compared(args: argparse.Namespace) -> dict[str, Any]:
    shape = {"trials": args.trials, "phases": args.phases, "phase_s": args.phase_s, "workers": args.workers}
    found: dict[str, Any] = {tool: [] for tool in args.only}
    for repeat in range(args.repeats):
        for tool in args.only:
            found[tool].append(measure(tool, shape, args.every_s, repeat, args.limit_s))
    return {**shape, "every_s": args.every_s, "load_1m": os.getloadavg()[0], **found}


if __name__ == "__main__":
    main()
