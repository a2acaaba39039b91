"""How many phases a second the study engine passes, beside a bare Dask closed loop on the same workers.

The engine runs HyperTrick over trials that train nothing, with everything a real study does: pinned phase tasks, a
checkpoint at every phase end, progress, events and decisions written to disk. The peer keeps two tasks in flight,
fetches the result when one is done and submits the next; `a_task_not_fetched` is what is left where it does not fetch,
as the engine does not: a phase's report comes as a message. All alternate; medians are reported, of the processor time
too that a phase and a task take of this process (scheduler, client and engine) and of the workers. With `--plain`, the
engine alternates between the local cluster, which speaks TLS, and one that does not.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from distributed import Client, LocalCluster, as_completed

from workbench import Choice, HyperTrick, RandomSearcher, Space
from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.dask import DaskExecutor
from workbench.cluster.local import local_client
from workbench.core.drive import drive
from workbench.core.protocols import Kind
from workbench.knowledge import StudyLog


class NoOp:
    """A trial that trains nothing."""

    def __init__(self, config, seed) -> None:
        self.phases = 0

    def train_phase(self, progress) -> dict[str, float]:
        progress({"phases": float(self.phases)})
        self.phases += 1
        return {"score": float(self.phases)}

    def save(self, path: Path) -> None:
        (path / "phases").write_text(str(self.phases))

    def load(self, path: Path) -> None:
        self.phases = int((path / "phases").read_text())

    def close(self) -> None:
        pass


def engine(client: Client, n_trials: int) -> dict[str, float]:
    """Drive one study to its end; return its pace and what a phase took of the processor."""
    scheduler = HyperTrick(RandomSearcher(Space({"x": Choice([0, 1])})), n_trials, 4, 0.25)
    with tempfile.TemporaryDirectory() as folder:
        log = StudyLog(Path(folder) / "engine.db", "engine", {})
        executor = DaskExecutor(client, NoOp, CheckpointStore(f"{folder}/checkpoints"))
        executor.open(0.0)
        with timed() as spent:
            drive(scheduler, executor, log)
        phases = sum(e.kind is Kind.PHASE_ENDED for e in log.events())
        executor.close()
        log.close()
    return each_of(phases, spent)


def bare_dask(client: Client, n_tasks: int, *, fetch: bool = True) -> dict[str, float]:
    """Keep one task in flight a worker until all are done; return the pace and what a task took of the processor."""
    workers = list(client.scheduler_info(n_workers=-1)["workers"])
    with timed() as spent, client.as_current():
        on = {client.submit(float, i, workers=[worker], pure=False): worker for i, worker in enumerate(workers)}
        flying = as_completed(list(on), with_results=fetch)
        for done, ended in enumerate(flying, start=1):
            free = on.pop(ended[0] if fetch else ended)
            if done + len(workers) <= n_tasks:
                following = client.submit(float, done, workers=[free], pure=False)
                on[following] = free
                flying.add(following)
    return each_of(done, spent)


@contextmanager
def timed() -> Iterator[list[float]]:
    """Give a list, filled at the end: seconds, and processor seconds of this process and of those it has started."""
    me = psutil.Process()
    processes = [me, *me.children(recursive=True)]
    spent: list[float] = []

    def clocks() -> list[float]:
        own, *others = [sum(process.cpu_times()[:2]) for process in processes]
        return [time.perf_counter(), own, sum(others)]

    before = clocks()
    yield spent
    spent += [after - first for after, first in zip(clocks(), before, strict=True)]


def each_of(n: int, spent: list[float]) -> dict[str, float]:
    """Give what `timed` told by phase, or task."""
    seconds, own, others = spent
    return {"per_s": n / seconds, "driver_ms": 1000 * own / n, "workers_ms": 1000 * others / n}


def cost_of_tls(repeats: int, trials: int) -> dict[str, Any]:
    """Drive the same study on two clusters in turns; the ratio is the median of pairs, with its quartiles."""
    with (
        local_client(2) as client,  # its settings hold for the other too
        LocalCluster(2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, memory_limit=0) as plain,
        Client(plain, set_as_default=False) as open_client,
    ):
        for warm in (client, open_client):
            engine(warm, 20)
        pairs = [[engine(one, trials)["per_s"] for one in (client, open_client)] for _ in range(repeats)]
    ratios = sorted(tls / tcp for tls, tcp in pairs)
    return {
        "phases_per_s_over_tls": round(statistics.median(tls for tls, _ in pairs), 1),
        "phases_per_s_over_tcp": round(statistics.median(tcp for _, tcp in pairs), 1),
        "ratio": round(statistics.median(ratios), 3),
        "ratio_quarters": [round(q, 3) for q in statistics.quantiles(ratios, n=4)[::2]],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--trials", type=int, default=150, help="trials of each study; about 2.7 phases each")
    parser.add_argument("--plain", action="store_true", help="what TLS costs, instead")
    arguments = parser.parse_args()
    if arguments.plain:
        print(json.dumps(cost_of_tls(arguments.repeats, arguments.trials), indent=1))
        return
    ours, theirs, not_fetched = [], [], []
    with local_client(2) as client:
        engine(client, 20)  # warms the workers up
        for _ in range(arguments.repeats):
            ours.append(engine(client, arguments.trials))
            theirs.append(bare_dask(client, round(2.7 * arguments.trials)))
            not_fetched.append(bare_dask(client, round(2.7 * arguments.trials), fetch=False))
    phases, tasks, light_tasks = (
        {key: round(statistics.median(run[key] for run in runs), 2) for key in runs[0]}
        for runs in (ours, theirs, not_fetched)
    )
    ratios = [mine["per_s"] / its["per_s"] for mine, its in zip(ours, theirs, strict=True)]
    print(
        json.dumps(
            {
                "phases_per_s": phases["per_s"],
                "bare_dask_per_s": tasks["per_s"],
                "ratio": round(statistics.median(ratios), 3),
                "ratio_range": [round(min(ratios), 3), round(max(ratios), 3)],
                "a_phase": phases,
                "a_task": tasks,
                "a_task_not_fetched": light_tasks,
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
