"""Work lost when a worker has to go: told to (SIGTERM, saved at the next sign of progress) against killed (SIGKILL).

A study of GA3C on CartPole on two workers under nannies. Every few seconds one of them is told to leave, or killed, and
comes back. Printed is one JSON line a way: how often, the updates that were made and made again, and how long the study
took against one that is left alone.

    python benchmarks/leaving.py [--phases 2] [--updates 1000] [--every 8]
"""

import argparse
import json
import os
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

from workbench import GA3C, Budget, FullRuns, LogUniform, RandomSearcher
from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.dask import DaskExecutor
from workbench.cluster.local import local_client
from workbench.core.drive import drive
from workbench.core.protocols import Event, Kind


class Disturber:
    """Ends the worker of the trial that showed life last, every so many seconds; a log that counts what was lost."""

    def __init__(self, client: Any, number: int | None, every_s: float) -> None:
        self._client, self._number, self._every_s = client, number, every_s
        self._due = time.monotonic() + every_s
        self.updates: dict[int, list[float]] = {}  # trial → updates at its signs of progress, in their order
        self.times = 0
        self.failed: list[str] = []

    def append(self, events: list[Event]) -> None:
        """Note progress and losses."""
        for event in events:
            if event.kind in (Kind.PROGRESS, Kind.PHASE_ENDED) and "updates" in event.data["metrics"]:
                self.updates.setdefault(event.trial or 0, []).append(event.data["metrics"]["updates"])
            elif event.kind in (Kind.PHASE_FAILED, Kind.TRIAL_FAILED):
                self.failed.append(event.data["why"])

    def look(self) -> bool:
        """Disturb, if it is time to; never ends the study."""
        if self._number is not None and time.monotonic() > self._due and self.updates:
            pids = list(self._client.run(os.getpid, on_error="ignore").values())
            if len(pids) > 1:
                os.kill(pids[self.times % len(pids)], self._number)
                self.times += 1
                self._due = time.monotonic() + self._every_s
        return False

    def again(self) -> float:
        """Updates that were made a second time, as far as progress told of the first."""
        return sum(max(a - b, 0) for seen in self.updates.values() for a, b in pairwise(seen))


def run(number: int | None, phases: int, updates: int, every_s: float) -> dict[str, Any]:
    """Run the study once, disturbed by a signal or not."""
    trials = GA3C("CartPole-v1", phase=Budget(updates=updates), n_agents=4, emulator_threads=1)
    scheduler = FullRuns(RandomSearcher({"learning_rate": LogUniform(1e-4, 1e-3)}), 2, phases)
    with tempfile.TemporaryDirectory() as folder, local_client(2) as client:
        log = Disturber(client, number, every_s)
        executor = DaskExecutor(client, trials, CheckpointStore(str(Path(folder))), max_retries=1000)
        with closing(executor):
            executor.open(0.0)
            began = time.monotonic()
            look: Callable[[], bool] = log.look
            drive(scheduler, executor, log, stop=look)
            seconds = time.monotonic() - began
    return {
        "how": "left alone" if number is None else signal.Signals(number).name,
        "times": log.times,
        "attempts_counted": sum(why != "left" for why in log.failed),
        "updates_due": 2 * phases * updates,
        "updates_made_again": round(log.again()),
        "seconds": round(seconds, 1),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--phases", type=int, default=2)
    parser.add_argument("--updates", type=int, default=1000)
    parser.add_argument("--every", type=float, default=8.0)
    arguments = parser.parse_args()
    for way in (None, signal.SIGTERM, signal.SIGKILL):
        print(json.dumps(run(way, arguments.phases, arguments.updates, arguments.every)), flush=True)
