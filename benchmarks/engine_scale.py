"""What a study engine costs as its cluster grows: phases that train nothing on 2, 16, 64 and 300 workers.

Up to 64 workers are processes, each under a nanny; they and Dask's scheduler are children of a process of their own.
More workers share processes, `CROWD` in each and without a nanny, for 300 processes do not fit in 24 GiB. This process
is the driver. Events, decisions and checkpoints are written to disk. Everything shares the machine's cores, so phases a
second say more about the machine than about the engine; the driver's processor time a phase does not. The sizes take
turns, each time in a cluster of their own. One JSON line a turn, then one of all, with medians and ranges:

- ``phases_per_s``, ``driver_us_per_phase`` (all threads of the driver, Dask's client among them), ``driver_mib`` (at
  the end) and ``up_s`` (until all workers were there)
- ``lost_noticed_s``: until the driver had written down that 30 workers, or half of them, killed at once, were lost
- ``a_process``: workers in each of their processes
- ``watched_us_per_phase``: the same study once more, with its dashboard in another process looking twice a second
- ``flatness``: largest over smallest of ``driver_us_per_phase``, of each turn


    python benchmarks/engine_scale.py [--workers 2 16 64 300] [--phases 3] [--repeats 5]
"""

import argparse
import asyncio
import json
import logging
import os
import signal
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import dask
import psutil
from distributed import Client, LocalCluster, Worker
from distributed.security import Security
from engine_overhead import NoOp

from workbench import Choice, FullRuns, RandomSearcher, Space
from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.dask import DaskExecutor
from workbench.cluster.local import local_client
from workbench.core.drive import drive
from workbench.core.protocols import Kind
from workbench.knowledge import StudyLog

KILLED, LOOK_S = 30, 0.5
CROWD, ALONE = 30, 64  # workers in a process where they share one; most that have one each
MEASURED = "phases_per_s", "driver_us_per_phase", "watched_us_per_phase", "up_s", "lost_noticed_s", "driver_mib"
QUIET = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "1s",
         "distributed.admin.system-monitor.interval": "2s", "distributed.worker.http.routes": []}  # fmt: skip


def host(n_workers: int, line: Connection) -> None:
    """Keep a cluster up: in a process of its own; tell its address, its security and the workers' process ids."""
    logging.disable()  # Dask's scheduler is loud about clients that have gone
    with local_client(n_workers) as client:
        line.send((client.scheduler.address, client.security, list(client.run(os.getpid).values())))
        line.recv()


def crowded_host(n_workers: int, line: Connection) -> None:
    """Keep a cluster up whose workers share processes; tell of it as `host` does."""
    logging.disable()
    context, security = get_context("spawn"), Security.temporary()
    with (
        dask.config.set(QUIET),
        LocalCluster(n_workers=0, security=security, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        at = cluster.scheduler_address
        crowds = [
            context.Process(target=crowd, args=(min(CROWD, n_workers - first), at, security), daemon=True)
            for first in range(0, n_workers, CROWD)
        ]
        for process in crowds:
            process.start()
        client.wait_for_workers(n_workers, timeout=300)
        line.send((at, security, [process.pid for process in crowds]))
        line.recv()


def crowd(n_workers: int, address: str, security: Security) -> None:
    """Be so many workers of a cluster, until it has gone."""
    logging.disable()

    async def serve() -> None:
        workers = [await Worker(address, nthreads=1, security=security, dashboard=False) for _ in range(n_workers)]
        await asyncio.gather(*(worker.finished() for worker in workers))

    with dask.config.set(QUIET):
        asyncio.run(serve())


def watch(db: str, line: Connection) -> None:
    """Look at a study as its dashboard does, in a process of its own, until told to end."""
    from workbench.viz.dashboard.dashboard import Dashboard

    board = Dashboard(db, "scale", refresh_s=3600)
    while not line.poll(LOOK_S):
        board.refresh()


@contextmanager
def beside(function: Any, *arguments: Any) -> Iterator[Connection]:
    """Run a function in a process of its own, and end it."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=function, args=(*arguments, theirs))
    process.start()
    try:
        yield ours
    finally:
        ours.send("end")
        process.join()


def study(client: Client, n_trials: int, n_phases: int, *, watched: bool = False) -> dict[str, float]:
    """Drive one study to its end; give its speed and what it cost the driver."""
    with tempfile.TemporaryDirectory() as folder:
        db = f"{folder}/scale.db"
        scheduler = FullRuns(RandomSearcher(Space({"x": Choice([0, 1])})), n_trials, n_phases)
        spec = {"scheduler": {"kind": "full", "n_trials": n_trials, "n_phases": n_phases}, "seed": 0}
        with closing(StudyLog(db, "scale", spec)) as log:
            executor = DaskExecutor(client, NoOp, CheckpointStore(f"{folder}/checkpoints"))
            executor.open(0.0)
            if watched:
                with beside(watch, db):
                    wall, cpu = driven(scheduler, executor, log)
            else:
                wall, cpu = driven(scheduler, executor, log)
            executor.close()
    phases = n_trials * n_phases
    return {"phases_per_s": round(phases / wall, 1), "driver_us_per_phase": round(1e6 * cpu / phases)}


def driven(scheduler: Any, executor: DaskExecutor, log: StudyLog) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    assert drive(scheduler, executor, log)
    return time.perf_counter() - wall, time.process_time() - cpu


def noticed(client: Client, pids: list[int], n_workers: int) -> float:
    """Kill processes at once; give the seconds until the executor has told of all their workers."""
    with tempfile.TemporaryDirectory() as folder:
        executor = DaskExecutor(client, NoOp, CheckpointStore(folder))
        executor.open(0.0)
        executor.wait(0.0)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        began, lost = time.perf_counter(), 0
        while lost < n_workers:
            lost += sum(event.kind is Kind.SLOT_LOST for event in executor.wait(1.0))
        seconds = time.perf_counter() - began
        executor.close()
    return round(seconds, 2)


def measured(n_workers: int, n_phases: int) -> dict[str, Any]:
    """Measure a cluster of one size."""
    began, a_process = time.perf_counter(), 1 if n_workers <= ALONE else CROWD
    with beside(host if a_process == 1 else crowded_host, n_workers) as line:
        address, security, pids = line.recv()
        up_s = round(time.perf_counter() - began, 1)
        with Client(address, security=security, set_as_default=False) as client:
            study(client, n_workers, 1)  # warms the workers up
            n_trials = max(150, 4 * n_workers)
            alone = study(client, n_trials, n_phases)
            watched = study(client, n_trials, n_phases, watched=True)
            memory = psutil.Process().memory_info().rss
            n_lost = min(KILLED, n_workers // 2)
            lost_s = noticed(client, pids[: n_lost // a_process], n_lost)
    return {
        "workers": n_workers,
        "a_process": a_process,
        "trials": n_trials,
        "up_s": up_s,
        **alone,
        "watched_us_per_phase": watched["driver_us_per_phase"],
        "lost_noticed_s": lost_s,
        "driver_mib": round(memory / 2**20),
    }


def spread(values: list[float]) -> list[float]:
    """Give median, least and largest."""
    return [of(values) for of in (statistics.median, min, max)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 16, 64, 300])
    parser.add_argument("--phases", type=int, default=3, help="of each trial")
    parser.add_argument("--repeats", type=int, default=5, help="turns of each size")
    given = parser.parse_args()
    turns: list[dict[int, dict[str, Any]]] = []
    for _ in range(given.repeats):
        turns.append({})
        for n_workers in given.workers:
            turns[-1][n_workers] = measured(n_workers, given.phases)
            print(json.dumps(turns[-1][n_workers]), flush=True)
    costs = [[one["driver_us_per_phase"] for one in turn.values()] for turn in turns]
    total: dict[str, Any] = {
        key: {n_workers: spread([turn[n_workers][key] for turn in turns]) for n_workers in given.workers}
        for key in MEASURED
    }
    flatness = spread([round(max(each) / min(each), 2) for each in costs])
    print(json.dumps(total | {"flatness": flatness, "cores": os.cpu_count()}))


if __name__ == "__main__":
    main()
