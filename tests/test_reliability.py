"""What the engine outlives: each command of `benchmarks/reliability.py`.

Among the quick tests one worker, one driver and one viewer die or look on: tests/cluster/test_dask.py,
tests/study/test_run.py, tests/knowledge/test_faults.py.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "reliability.py"


def measured(command: str, **settings: float) -> dict:
    """Run a command and read its line."""
    given = [word for name, value in settings.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    done = subprocess.run([sys.executable, SCRIPT, command, *given], stdout=subprocess.PIPE, text=True, check=True)
    print(done.stdout)  # noqa: T201  the figures, in the test's own output
    return json.loads(done.stdout.splitlines()[-1])


def assert_chaos_outlived(found: dict, trials: int) -> None:
    assert found["terminal"] == found["trials"] == trials
    assert (found["failed"], found["phases"]) == (0, trials * 4)
    assert (found["phases_counted_twice"], found["phases_missing"], found["wrong_scores"]) == (0, 0, 0)
    assert found["log_findings"] == []
    assert found["killed"] + found["stopped"] > 0


@pytest.mark.slow
def test_chaos() -> None:
    assert_chaos_outlived(measured("chaos", trials=60, workers=2), 60)


@pytest.mark.slow
def test_drivers_killed_at_several_points() -> None:
    found = measured("restarts", points=8, trials=6)
    assert found["kills"] >= 8
    assert found["differences"] == []


@pytest.mark.slow
def test_soak() -> None:
    found = measured("soak", phases=8000)
    assert found["phases"] == 8000
    cost = found["cpu_ms_a_phase"]  # a neighbour who comes or goes makes some tenths dearer, and the pace another
    assert np.median(cost[-4:]) < 1.3 * np.median(cost[:4])
    for process in ("driver_and_scheduler_mib", "worker_mib"):
        assert found[process][-1] < 1.25 * found[process][0]


@pytest.mark.slow
def test_ten_viewers_and_backups_beside_a_writer() -> None:
    found = measured("viewers", appends=4000)
    assert (found["viewers"], found["events_lost"], found["lock_errors"]) == (10, 0, [])
