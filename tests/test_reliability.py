"""What the engine outlives: each command of `benchmarks/reliability.py`, small here, at full size with `-m slow`."""

import json
import subprocess
import sys
from pathlib import Path

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


def test_chaos_in_small() -> None:
    assert_chaos_outlived(measured("chaos", trials=16, workers=2), 16)


def test_drivers_killed_at_a_few_points() -> None:
    found = measured("restarts", points=2, trials=4, phases=2)
    assert found["kills"] >= 2
    assert found["differences"] == []


def test_viewers_and_backups_beside_a_writer_in_small() -> None:
    found = measured("viewers", viewers=2, appends=1000)
    assert (found["events_lost"], found["lock_errors"]) == (0, [])


@pytest.mark.slow
def test_chaos() -> None:
    found = measured("chaos")
    assert_chaos_outlived(found, 200)


@pytest.mark.slow
def test_drivers_killed_at_twenty_points() -> None:
    found = measured("restarts")
    assert found["kills"] >= 20
    assert found["differences"] == []


@pytest.mark.slow
def test_soak() -> None:
    found = measured("soak")
    assert found["phases"] == 20_000
    cost = found["cpu_ms_a_phase"]  # phases a second say the same on a machine that does nothing else
    assert abs(cost[-1] / cost[0] - 1) < 0.2
    for process in ("driver_and_scheduler_mib", "worker_mib"):
        assert found[process][-1] < 1.25 * found[process][0]


@pytest.mark.slow
def test_ten_viewers_and_backups_beside_a_writer() -> None:
    found = measured("viewers")
    assert (found["viewers"], found["events_lost"], found["lock_errors"]) == (10, 0, [])
