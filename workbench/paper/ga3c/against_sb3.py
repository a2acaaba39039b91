"""GA3C's default beside Stable-Baselines3's A2C: score against frames, measured by the benchmark of this name."""

import json
import subprocess
import sys
from dataclasses import dataclass

from workbench.core.errors import WorkbenchError
from workbench.core.places import DATA
from workbench.paper.experiment import Rows

_SCRIPT = DATA.parent / "benchmarks" / "ga3c_against_sb3.py"


@dataclass(frozen=True)
class Against:
    """Trials of every system with every seed.

    Attributes
    ----------
    game : str
    frames : int
        Of each trial, with `points` on its curve.
    seeds, first_seed : int
    systems : tuple of str
        ``default``, ``before`` (the old default) and ``a2c``.
    processes : int
        Trials at once.
    """

    game: str = "CartPole-v1"
    frames: int = 150_000
    seeds: int = 3
    first_seed: int = 0
    systems: tuple[str, ...] = ("default", "before", "a2c")
    points: int = 15
    processes: int = 2


def against_sb3(settings: Against) -> Rows:
    """Train GA3C and A2C on the same emulators, with the same network, batch and optimiser settings.

    Returns
    -------
    rows
        One a system, seed and point: game, system, seed, frames, score (mean raw return of the last 100 games), games.

    Raises
    ------
    WorkbenchError
        This is no checkout, or Stable-Baselines3 is missing.
    """
    if not _SCRIPT.is_file():
        raise WorkbenchError(f"no {_SCRIPT}: this is measured from a checkout of the project")
    numbers = ("game", "frames", "seeds", "first_seed", "points", "processes")
    options = [f"--{name.replace('_', '-')}={getattr(settings, name)}" for name in numbers]
    options += ["--systems", *settings.systems]
    done = subprocess.run([sys.executable, _SCRIPT, *options], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise WorkbenchError(f"{_SCRIPT.name} ended with exit code {done.returncode}: {last}")
    rows: Rows = json.loads(done.stdout)["rows"]
    return rows
