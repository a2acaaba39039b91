"""Work lost when a worker has to go: told to (SIGTERM, saved at the next sign of progress) against killed (SIGKILL).

A study of GA3C on CartPole on two workers under nannies. A trial's worker is told to leave, or killed, whenever the
trial has made so many updates there, and comes back; so many times a trial. Printed is one JSON line a way: how often,
the updates that were made and made again, and how long the study took against one that is left alone.

    python benchmarks/leaving.py [--phases 1] [--updates 1000] [--after 300] [--times 3]
"""

import argparse
import json
import os
import signal
import tempfile
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from workbench import GA3C, Budget, FullRuns, LogUniform, RandomSearcher
from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.dask import DaskExecutor
from workbench.cluster.local import local_client
from workbench.core.drive import drive
from workbench.core.protocols import Event, Kind


@dataclass(frozen=True)
class Located:
    """GA3C's trials, which also tell the process that they are in."""

    trials: GA3C

    def __call__(self, config: Any, seed: int) -> Any:
        trial = self.trials(config, seed)
        train = trial.train_phase
        trial.train_phase = lambda progress: train(lambda told: progress({**told, "pid": os.getpid()}))
        return trial


class Disturber:
    """A log that ends a trial's worker whenever it has made `after` updates, `most` times, and counts what was lost."""

    def __init__(self, number: int | None, after: float, most: int) -> None:
        self._number, self._after, self._most = number, after, most
        self._began: dict[int, float] = {}  # trial → updates when this attempt first told of any
        self._updates: dict[int, list[float]] = {}  # trial → updates at its signs of progress, in their order
        self.times: Counter[int] = Counter()
        self.failed: list[str] = []

    def append(self, events: list[Event]) -> None:
        """Note progress and losses, and disturb."""
        for event in events:
            trial = event.trial or 0
            if event.kind is Kind.PHASE_STARTED:
                self._began.pop(trial, None)
            elif event.kind in (Kind.PHASE_FAILED, Kind.TRIAL_FAILED):
                self.failed.append(event.data["why"])
            elif event.kind in (Kind.PROGRESS, Kind.PHASE_ENDED) and "updates" in event.data["metrics"]:
                updates = event.data["metrics"]["updates"]
                self._updates.setdefault(trial, []).append(updates)
                done = updates - self._began.setdefault(trial, updates)
                if event.kind is Kind.PROGRESS and done >= self._after and self.times[trial] < self._most:
                    self._disturb(trial, int(event.data["metrics"]["pid"]))

    def _disturb(self, trial: int, pid: int) -> None:
        if self._number is not None:
            self._began[trial] = float("inf")  # until another attempt begins
            self.times[trial] += 1
            os.kill(pid, self._number)

    def again(self) -> float:
        """Updates that were made a second time, as far as progress told of the first."""
        return sum(max(a - b, 0) for seen in self._updates.values() for a, b in pairwise(seen))


def run(number: int | None, phases: int, updates: int, after: float, times: int) -> dict[str, Any]:
    """Run the study once, disturbed by a signal or not."""
    trials = Located(GA3C("CartPole-v1", phase=Budget(updates=updates), n_agents=4, emulator_threads=1))
    scheduler = FullRuns(RandomSearcher({"learning_rate": LogUniform(1e-4, 1e-3)}), 2, phases)
    log = Disturber(number, after, times)
    with tempfile.TemporaryDirectory() as folder, local_client(2) as client:
        executor = DaskExecutor(client, trials, CheckpointStore(str(Path(folder))), max_retries=1000)
        with closing(executor):
            executor.open(0.0)
            began = time.monotonic()
            drive(scheduler, executor, log)
            seconds = time.monotonic() - began
    return {
        "how": "left alone" if number is None else signal.Signals(number).name,
        "times": log.times.total(),
        "attempts_counted": sum(why != "left" for why in log.failed),
        "updates_due": 2 * phases * updates,
        "updates_made_again": round(log.again()),
        "seconds": round(seconds, 1),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--phases", type=int, default=1)
    parser.add_argument("--updates", type=int, default=1000)
    parser.add_argument("--after", type=float, default=300)
    parser.add_argument("--times", type=int, default=3, help="of each trial")
    arguments = parser.parse_args()
    for way in (None, signal.SIGTERM, signal.SIGKILL):
        print(json.dumps(run(way, **vars(arguments))), flush=True)
