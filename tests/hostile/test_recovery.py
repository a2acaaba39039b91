"""Recovery can be starved by nobody: stopped workers, requests that touch them, a driver that stood still itself."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

import pytest

from tests.support import FROM_HERE, Deterministic, until
from workbench.core.protocols import Job, Kind


@dataclass(frozen=True)
class WaitsIfTold:
    """Shows progress for ever if its configuration says so."""

    def __call__(self, config, seed):
        trial = Deterministic(config, seed)
        train = trial.train_phase

        def train_phase(progress):
            while config["wait"]:
                progress({"frames": 0.0})
                time.sleep(0.05)
            return train(progress)

        trial.train_phase = train_phase  # type: ignore[method-assign]
        return trial


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_stopped_workers_are_replaced_though_a_person_has_stopped_what_ran_on_them(client, executor_of) -> None:
    executor = executor_of(WaitsIfTold(), stall_s=20.0)
    for trial in range(2):
        executor.start(Job(trial, 0, {"wait": True, "lr": 1e-3}, 0))
    seen: set = set()
    while len(seen) < 2:
        seen |= {e.trial for e in executor.wait(60) if e.kind is Kind.PROGRESS}
    for pid in client.run(os.getpid).values():
        os.kill(pid, signal.SIGSTOP)
    for begun in range(0, 8, 2):  # eight calls that no worker answers
        for trial in (begun, begun + 1):
            executor.drop(trial)
            executor.start(Job(trial + 2, 0, {"wait": False, "lr": 1e-3}, 0))
    events = until(executor, Kind.PHASE_ENDED, 2)
    assert {e.trial for e in events if e.kind is Kind.PHASE_ENDED} == {8, 9}
    # Dask's clock for a worker lost in the test before may run out meanwhile, and take one more: see `local._settings`.
    stalled = [e.trial for e in events if e.kind is Kind.PHASE_FAILED and e.data["why"] == "stall"]
    assert sorted(stalled) == [8, 9]


_DRIVER = """
import json, sys
from tests.hostile.test_recovery import Busy
from tests.support import SPACE
from workbench.algos.search import FullRuns, RandomSearcher
from workbench.study.study import Study
if __name__ == "__main__":
    run = Study("one", FullRuns(RandomSearcher(SPACE), 2, 2), Busy, db=sys.argv[1], nodes=1, stall_s=4.0).start()
    while not run.progress.trials_started:
        run.wait(0.1)
    print("up", flush=True)
    run.wait()
    print(json.dumps([e for e in run.frames().phases["retries"]]), flush=True)
"""


class Busy(Deterministic):
    """A phase of a few seconds that shows progress."""

    def train_phase(self, progress) -> dict[str, float]:
        for _ in range(60):
            progress({"frames": 0.0})
            time.sleep(0.05)
        return super().train_phase(progress)


@pytest.mark.slow
def test_a_driver_that_stood_still_does_not_take_its_own_silence_for_its_workers(tmp_path) -> None:
    script = tmp_path / "driver.py"
    script.write_text(_DRIVER)
    driver = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "kb.db")],
        stdout=subprocess.PIPE,
        env={**os.environ, **FROM_HERE},
    )
    assert driver.stdout is not None
    assert driver.stdout.readline() == b"up\n"
    os.kill(driver.pid, signal.SIGSTOP)
    time.sleep(15)  # what is tested is that this time passes
    os.kill(driver.pid, signal.SIGCONT)
    retries = json.loads(driver.stdout.readline())
    driver.wait()
    assert retries == [0, 0, 0, 0]
