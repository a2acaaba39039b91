"""What the study engine outlives, in figures: one JSON line a command.

- ``chaos``: a random worker is killed or stopped about every second; nothing may be lost or counted twice.
- ``restarts``: the driver and its cluster are killed at random points and the study is resumed, again and again.
- ``soak``: many phases that train nothing; memory and phases a second must stay what they are.
- ``viewers``: readers poll the frames and a backup runs in a loop while the log is written at full speed.

Without a command all of them run, one after the other.
"""

import argparse
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psutil
from distributed import Client

from workbench import Choice, FullRuns, HyperTrick, KnowledgeBase, LogUniform, RandomSearcher, Space
from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.dask import DaskExecutor
from workbench.cluster.local import local_client
from workbench.core.drive import drive, replay
from workbench.core.protocols import Event, Kind
from workbench.knowledge import StudyLog, backup, check

SPACE = Space({"x": LogUniform(0.01, 100.0), "y": Choice([0.0, 1.0])})


@dataclass(frozen=True)
class Idle:
    """Trials whose phases last `phase_s` and whose score depends on config, seed and phase alone."""

    phase_s: float = 0.0

    def __call__(self, config, seed) -> "_Idle":
        return _Idle(self.phase_s, config, seed)


class _Idle:
    def __init__(self, phase_s: float, config, seed) -> None:
        self.phase_s, self.config, self.seed, self.phases = phase_s, config, seed, 0

    def train_phase(self, progress) -> dict[str, float]:
        until = time.monotonic() + self.phase_s
        progress({"phases": float(self.phases)})
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 0.05))
            progress({"phases": float(self.phases)})
        self.phases += 1
        return {"score": score_of(self.config, self.seed, self.phases - 1), "phases": float(self.phases)}

    def save(self, path: Path) -> None:
        (path / "phases").write_text(str(self.phases))

    def load(self, path: Path) -> None:
        self.phases = int((path / "phases").read_text())

    def close(self) -> None:
        pass


def score_of(config, seed: int, phase: int) -> float:
    """Score a phase: any function of these three would do."""
    return math.log(config["x"]) + phase + random.Random(f"{seed} {phase}").random()


# -- chaos ------------------------------------------------------------------------------------------------------------


def chaos(
    *, trials: int = 200, phases: int = 4, workers: int = 4, every_s: float = 1.0, phase_s: float = 0.1, seed: int = 0
) -> dict[str, Any]:
    """Kill or stop a random worker about every `every_s`; tell what it cost."""
    with local_client(workers) as client, tempfile.TemporaryDirectory() as folder:
        calm = _drive(client, f"{folder}/calm", Idle(phase_s), max(trials // 8, 4), phases)
        with _harm(client, every_s, seed) as done:
            log = _drive(client, f"{folder}/chaos", Idle(phase_s), trials, phases, max_retries=20, stall_s=3.0)
        wrong = [str(finding) for finding in check(f"{folder}/chaos.db")]
    ended = Counter((e.trial, e.phase) for e in log if e.kind is Kind.PHASE_ENDED)
    over = {e.trial for e in log if e.kind is Kind.DECISION and e.data["verdict"] == "stop"}
    failed = {e.trial for e in log if e.kind is Kind.TRIAL_FAILED}
    return {
        "trials": trials,
        "terminal": len(over | failed),
        "failed": len(failed),
        "phases": len(ended),
        "phases_counted_twice": sum(n > 1 for n in ended.values()),
        "phases_missing": trials * phases - len(ended) if not failed else None,
        "wrong_scores": _wrong_scores(log),
        "log_findings": wrong,
        "killed": done["SIGKILL"],
        "stopped": done["SIGSTOP"],
        "attempts_lost": sum(e.kind is Kind.PHASE_FAILED for e in log),
        "wall_s": round(log[-1].at, 1),
        "occupancy": round(_occupancy(log, workers), 3),
        "occupancy_undisturbed": round(_occupancy(calm, workers), 3),
        "slot_back_s": _quantiles(_gaps(log, Kind.SLOT_LOST, Kind.SLOT_JOINED, lambda e: e.slot)),
        "phase_begun_again_s": _quantiles(_gaps(log, Kind.PHASE_FAILED, Kind.PHASE_STARTED, lambda e: e.trial)),
    }


def _drive(client: Client, at: str, trainable, trials: int, phases: int, **settings) -> list[Event]:
    log = StudyLog(Path(f"{at}.db"), "study", {})
    executor = DaskExecutor(client, trainable, CheckpointStore(f"{at}.checkpoints"), **settings)
    with closing(log), closing(executor):
        executor.open(0.0)
        drive(FullRuns(RandomSearcher(SPACE), trials, phases), executor, log)
        log.append([Event(Kind.STUDY_ENDED, executor.now)])
        return log.events()


@contextmanager
def _harm(client: Client, every_s: float, seed: int) -> Iterator[Counter[str]]:
    """Do harm to this cluster's own workers, known by their nannies, until the block ends."""
    rng, over, done = random.Random(seed), threading.Event(), Counter[str]()

    def work() -> None:
        while not over.wait(rng.uniform(0.5, 1.5) * every_s):
            up = {worker["name"] for worker in client.scheduler_info(n_workers=-1)["workers"].values()}
            nannies = [nanny for name, nanny in list(client.cluster.workers.items()) if name in up]
            pids = [nanny.pid for nanny in nannies if nanny.pid and nanny.process.status.name == "running"]
            how = rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP])
            with suppress(ProcessLookupError, psutil.NoSuchProcess):
                alive = [pid for pid in pids if psutil.Process(pid).status() != psutil.STATUS_STOPPED]
                if len(alive) > 1:  # the last one, and those still coming up, are spared: somebody has to work
                    os.kill(rng.choice(alive), how)
                    done[how.name] += 1

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield done
    finally:
        over.set()
        thread.join()


def _occupancy(log: Sequence[Event], workers: int) -> float:
    """Share of the slots' time spent in phases that were completed, until the last of them."""
    began = {(e.trial, e.phase): e.at for e in log if e.kind is Kind.PHASE_STARTED}
    ended = {(e.trial, e.phase): e.at for e in log if e.kind is Kind.PHASE_ENDED}
    return sum(at - began[which] for which, at in ended.items()) / (workers * max(ended.values()))


def _gaps(log: Sequence[Event], first: Kind, then: Kind, key) -> list[float]:
    lost: dict[Any, float] = {}
    gaps = []
    for event in log:
        if event.kind is first:
            lost[key(event)] = event.at
        elif event.kind is then and key(event) in lost:
            gaps.append(event.at - lost.pop(key(event)))
    return gaps


def _quantiles(values: list[float]) -> dict[str, float]:
    if not values:
        return {}
    values = sorted(values)
    p95 = values[min(int(0.95 * len(values)), len(values) - 1)]
    return {"median": round(statistics.median(values), 2), "p95": round(p95, 2), "max": round(values[-1], 2)}


def _wrong_scores(log: Sequence[Event]) -> int:
    runs = {e.trial: e.data for e in log if e.kind is Kind.RUN}
    ended = [e for e in log if e.kind is Kind.PHASE_ENDED]
    return sum(
        e.data["score"] != score_of(runs[e.trial]["config"], runs[e.trial]["seed"], e.phase)
        or e.data["metrics"]["phases"] != e.phase + 1
        for e in ended
    )


# -- restarts ---------------------------------------------------------------------------------------------------------


def restarts(*, points: int = 20, trials: int = 12, phases: int = 3, seed: int = 0) -> dict[str, Any]:
    """Kill drivers, with their clusters, at random points; compare what the resumed studies decided."""
    rng = random.Random(seed)
    kills = studies = compared = 0
    differences: list[str] = []
    seconds: list[float] = []
    while kills < points:
        with tempfile.TemporaryDirectory() as folder:
            code, begun = -signal.SIGKILL, False
            while code:
                after = rng.randint(2, 25) if kills < points else 0
                where = rng.choice(["before", "after", "soon"])
                began = time.perf_counter()
                code = _driver_process(folder, trials, phases, resume=begun, after=after, where=where)
                if code not in (0, -signal.SIGKILL):
                    raise RuntimeError(f"a driver ended with code {code}")
                seconds.append(time.perf_counter() - began)
                begun = begun or _recorded(folder)
                kills += code != 0
            studies += 1
            compared += _compare(folder, trials, phases, differences)
    return {
        "kills": kills,
        "studies": studies,
        "phases_compared": compared,
        "differences": differences,
        "driver_life_s": _quantiles(seconds),
    }


def _driver_process(folder: str, trials: int, phases: int, *, resume: bool, after: int, where: str) -> int:
    command = [sys.executable, __file__, "driver", "--folder", folder, "--trials", str(trials), "--phases", str(phases)]
    command += ["--after", str(after), "--where", where] + (["--resume"] if resume else [])
    return subprocess.run(command, start_new_session=True, timeout=300, check=False).returncode


def _recorded(folder: str) -> bool:
    if not Path(f"{folder}/kb.db").exists():
        return False
    with KnowledgeBase(f"{folder}/kb.db") as kb:
        return "study" in list(kb)


def _driver(folder: str, trials: int, phases: int, resume: bool, after: int, where: str) -> None:
    """Drive the study in this process, which kills its own process group around the `after`-th event."""
    from workbench import Study

    append, seen = StudyLog.append, 0

    def append_and_die(self, events) -> None:
        nonlocal seen
        seen += len(events)
        if after and seen >= after and where == "before":
            os.killpg(0, signal.SIGKILL)
        append(self, events)
        if after and seen >= after:
            if where == "after":
                os.killpg(0, signal.SIGKILL)
            threading.Timer(random.random() * 0.1, os.killpg, (0, signal.SIGKILL)).start()

    StudyLog.append = append_and_die  # type: ignore[method-assign]
    scheduler = HyperTrick(RandomSearcher(SPACE), trials, phases, 0.25)
    Study("study", scheduler, Idle(0.02), f"{folder}/kb.db", nodes=2).start(resume=resume).wait()


def _compare(folder: str, trials: int, phases: int, differences: list[str]) -> int:
    """Check a finished study against its scheduler, undisturbed, hearing the same reports."""
    with KnowledgeBase(f"{folder}/kb.db") as kb:
        log = kb["study"].events()
        state = kb["study"].frames().state
    differences += [str(finding) for finding in check(f"{folder}/kb.db")]
    differences += [f"the study is {state}"] if state != "ended" else []
    replay(HyperTrick(RandomSearcher(SPACE), trials, phases, 0.25), log)  # raises at the first decision that differs
    ended = Counter((e.trial, e.phase) for e in log if e.kind is Kind.PHASE_ENDED)
    differences += [f"phase {which} was counted {n} times" for which, n in ended.items() if n > 1]
    differences += [f"{n} scores are wrong" for n in (_wrong_scores(log),) if n]
    if len({e.trial for e in log if e.kind is Kind.RUN}) != trials:
        differences.append("trials are missing")
    return len(ended)


# -- soak -------------------------------------------------------------------------------------------------------------


def soak(*, phases: int = 20_000, workers: int = 2) -> dict[str, Any]:
    """Pass many phases that train nothing; tell pace and memory at the first and the last tenth."""
    marks: list[tuple[float, dict[str, float]]] = []
    tenth = phases // 10
    with local_client(workers) as client, tempfile.TemporaryDirectory() as folder:
        log = _Marked(Path(folder) / "soak.db", tenth, lambda: marks.append((time.perf_counter(), _memory(client))))
        executor = DaskExecutor(client, Idle(), CheckpointStore(f"{folder}/checkpoints"))
        with closing(log), closing(executor):
            executor.open(0.0)
            began = time.perf_counter()
            drive(FullRuns(RandomSearcher(SPACE), phases // 4, 4), executor, log)
        size = (Path(folder) / "soak.db").stat().st_size
    times = [began, *(at for at, _ in marks)]
    pace = [tenth / (b - a) for a, b in pairwise(times)]
    spent = [(b["cpu_s"] - a["cpu_s"]) / tenth * 1000 for (_, a), (_, b) in pairwise(marks)]
    memory = {what: [mark[what] for _, mark in marks] for what in ("driver_and_scheduler_mib", "worker_mib")}
    return {
        "phases": log.ended,
        "wall_s": round(times[-1] - began, 1),
        "phases_per_s": [round(p, 1) for p in pace],
        "last_tenth_over_first": round(pace[-1] / pace[0], 3),
        # of all processes; unlike the pace it does not depend on what else the machine does; the first tenth is left
        # out, for it loads and warms up
        "cpu_ms_a_phase": [round(ms, 2) for ms in spent],
        **memory,
        "log_bytes_a_phase": round(size / phases),
    }


class _Marked(StudyLog):
    """Calls `mark` at every tenth of the phases."""

    def __init__(self, path: Path, tenth: int, mark) -> None:
        super().__init__(path, "soak", {})
        self.ended, self._tenth, self._mark = 0, tenth, mark

    def append(self, events: Sequence[Event]) -> None:
        super().append(events)
        for event in events:
            if event.kind is Kind.PHASE_ENDED:
                self.ended += 1
                if self.ended % self._tenth == 0:
                    self._mark()


def _memory(client: Client) -> dict[str, float]:
    """Resident memory, MiB: of this process, where driver, scheduler and nannies live, and of the largest worker.

    With it goes the processor time that all of them have taken, seconds.
    """
    here, workers = psutil.Process(), [psutil.Process(nanny.pid) for nanny in client.cluster.workers.values()]
    return {
        "driver_and_scheduler_mib": round(here.memory_info().rss / 2**20, 1),
        "worker_mib": round(max(worker.memory_info().rss for worker in workers) / 2**20, 1),
        "cpu_s": sum(sum(process.cpu_times()[:2]) for process in (here, *workers)),
    }


# -- viewers ----------------------------------------------------------------------------------------------------------


def viewers(*, viewers: int = 10, appends: int = 20_000) -> dict[str, Any]:
    """Write as fast as the disk takes it, while viewers read all frames and backups are made; count what is lost."""
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(viewers + 1, get_context("spawn")) as pool:
        db = Path(folder) / "kb.db"
        alone = _write(Path(folder) / "alone.db", appends // 4)
        StudyLog(db, "study", {}).close()
        over = Path(folder) / "over"
        watching = [pool.submit(_watch, db, over) for _ in range(viewers)]
        copying = pool.submit(_copy, db, over)
        while len(list(Path(folder).glob("ready-*"))) < viewers + 1:
            time.sleep(0.05)
        pace = _write(db, appends, resume=True)
        over.touch()
        polls = [future.result() for future in watching]
        copies = copying.result()
        with KnowledgeBase(db) as kb:
            kept = kb["study"].events()
    expected = [event for n in range(appends) for event in _events(n) if event.kind is not Kind.PROGRESS]
    return {
        "viewers": viewers,
        "events": len(expected),
        "events_lost": sum(a != b for a, b in zip(kept, expected, strict=False)) + abs(len(kept) - len(expected)),
        "appends_per_s": round(pace),
        "appends_per_s_alone": round(alone),
        "polls": sum(n for n, _ in polls),
        "backups": copies[0],
        "lock_errors": [error for _, error in [*polls, copies] if error],
    }


def _events(n: int) -> list[Event]:
    run = {"config": {"x": 1.0}, "parent": None, "seed": 0}
    return [
        Event(Kind.RUN, n, n, 0, data=run),
        Event(Kind.PHASE_STARTED, n, n, 0, 0),
        Event(Kind.PROGRESS, n, n, 0, 0, {"metrics": {"frames": float(n)}}),
        Event(Kind.PHASE_ENDED, n, n, 0, 0, {"score": 1.0, "metrics": {"score": 1.0}, "checkpoint": None}),
        Event(Kind.DECISION, n, n, 0, data={"verdict": "stop", "mode": "full"}),
    ]


def _write(db: Path, appends: int, *, resume: bool = False) -> float:
    began = time.perf_counter()
    with closing(StudyLog(db, "study", {}, resume=resume)) as log:
        for n in range(appends):
            log.append(_events(n))
    return appends / (time.perf_counter() - began)


def _watch(db: Path, over: Path) -> tuple[int, str]:
    """Poll as a dashboard does, each time a prefix of the log that ends with a whole append."""
    polls = 0
    try:
        with KnowledgeBase(db) as kb:
            study, seq, seen = kb["study"], 0, 0
            db.with_name(f"ready-{os.getpid()}").touch()
            while not over.exists():
                events, seq = study.events_since(seq)
                seen += len(events)
                if seen % 4 or (events and events[-1].kind is not Kind.DECISION):
                    return polls, f"half an append was seen: {seen} events"
                study.frames()
                study.metrics(names=["frames"])
                polls += 1
    except Exception as err:  # noqa: BLE001  whatever a viewer meets is what is to be counted
        return polls, repr(err)
    return polls, ""


def _copy(db: Path, over: Path) -> tuple[int, str]:
    copies = 0
    try:
        db.with_name(f"ready-{os.getpid()}").touch()
        while not over.exists():
            target = backup(db, db.with_name(f"copy-{copies}.db"))
            with KnowledgeBase(target) as kb:
                if len(kb["study"].events()) % 4:
                    return copies, f"backup {copies} holds half an append"
            target.unlink()
            copies += 1
    except Exception as err:  # noqa: BLE001  see _watch
        return copies, repr(err)
    return copies, ""


COMMANDS = {"chaos": chaos, "restarts": restarts, "soak": soak, "viewers": viewers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command")
    for name, function in COMMANDS.items():
        command = commands.add_parser(name, help=(function.__doc__ or "").splitlines()[0])
        for setting, default in (function.__kwdefaults__ or {}).items():
            command.add_argument(f"--{setting.replace('_', '-')}", type=type(default), default=default)
    driver = commands.add_parser("driver", help="what `restarts` kills")
    driver.add_argument("--folder", required=True)
    driver.add_argument("--where", required=True)
    for setting in ("trials", "phases", "after"):
        driver.add_argument(f"--{setting}", type=int, required=True)
    driver.add_argument("--resume", action="store_true")
    settings = vars(parser.parse_args())
    command = settings.pop("command")
    if command == "driver":
        _driver(**settings)
        return
    for name in [command] if command else COMMANDS:
        print(json.dumps({"command": name, **COMMANDS[name](**settings)}), flush=True)


if __name__ == "__main__":
    main()
