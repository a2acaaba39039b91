"""What is run for the papers' figures and tables, at three scales, and kept in ``data/`` with its provenance.

An experiment is a script that prints one JSON object. ``workbench reproduce NAME --scale minutes`` runs it again and
keeps what it printed as Parquet; notebooks and the scoreboard read what was kept. Nothing here is typed in from a
paper: that is `workbench.paper.published`.
"""

import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from workbench.core.errors import DatabaseError, InvalidInput, WorkbenchError, unknown
from workbench.scenario import DATA

if TYPE_CHECKING:
    import pandas as pd

SCALES = ("minutes", "hours", "paper")
_FORMAT = 1
_PACKAGES = ("rl-workbench", "torch", "numpy", "ale-py", "gymnasium", "distributed")

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Experiment:
    """What is run for a figure or a table.

    Attributes
    ----------
    shows : str
        The paper and what of it.
    source : {"measured", "simulated", "model"}
        What the numbers are; never mixed in one experiment.
    commands : Mapping
        Scale → a script and its arguments. ``paper`` is as published, for a machine like the paper's.
    rows : callable
        What the script printed → rows of one table.
    """

    shows: str
    source: Literal["measured", "simulated", "model"]
    commands: Mapping[str, str]
    rows: Callable[[dict[str, Any]], Rows]


@dataclass(frozen=True)
class Kept:
    """A recorded experiment: its table, and where it comes from.

    Attributes
    ----------
    frame : DataFrame
    about : dict
        ``shows, source, scale, command, date, seconds, cores, load_1m, machine, python, versions``.
    """

    name: str
    frame: "pd.DataFrame"
    about: dict[str, Any]

    @property
    def scale(self) -> str:
        """In words, for the caption of a figure."""
        about = self.about
        return f"{about['source']} at scale '{about['scale']}' on {about['cores']} cores, {about['date'][:10]}"

    @classmethod
    def open(cls, name: str, root: str | Path = DATA) -> "Kept":
        """Read a recorded experiment.

        Raises
        ------
        DatabaseError
            It has not been recorded in that folder, or what is there is damaged.
        """
        import pandas as pd

        folder = Path(root) / name
        try:
            about = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
            return cls(name, pd.read_parquet(folder / "table.parquet"), about)
        except (OSError, ValueError) as err:
            raise DatabaseError(
                f"no recorded experiment in {folder} ({' '.join(str(err).split())}): "
                f"run workbench reproduce {name} --scale minutes"
            ) from None


def reproduce(name: str, scale: str = "minutes", root: str | Path = DATA) -> Path:
    """Run an experiment again and keep it in a folder of its name, in the place of an earlier one.

    Parameters
    ----------
    name : str
        In `EXPERIMENTS`.
    scale : {"minutes", "hours", "paper"}
    root : path
        Where its folder is made.

    Returns
    -------
    Path
        The folder, with ``table.parquet`` and ``provenance.json``.

    Raises
    ------
    InvalidInput
        No such experiment or scale.
    WorkbenchError
        The script failed; an earlier recording is left as it was.
    """
    from workbench.paper.catalogue import EXPERIMENTS

    if name not in EXPERIMENTS:
        raise unknown("experiment", name, EXPERIMENTS)
    experiment = EXPERIMENTS[name]
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    if scale not in experiment.commands:
        raise InvalidInput(f"{name} has no scale {scale!r}, only {', '.join(experiment.commands)}")
    command = experiment.commands[scale]
    began, load = time.monotonic(), os.getloadavg()[0]
    rows = experiment.rows(_output(command))
    about = {
        "format": _FORMAT,
        "name": name,
        "shows": experiment.shows,
        "source": experiment.source,
        "scale": scale,
        "command": f"python {command}",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - began, 1),
        "load_1m_before": round(load, 1),
        "cores": len(os.sched_getaffinity(0)),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "versions": {package: metadata.version(package) for package in _PACKAGES},
    }
    return _keep(Path(root) / name, rows, about)


def _output(command: str) -> dict[str, Any]:
    """Run a script of the project and read the JSON object it prints."""
    project = DATA.parent
    done = subprocess.run(
        [sys.executable, *shlex.split(command)], cwd=project, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise WorkbenchError(f"python {command} ended with exit code {done.returncode}: {last}")
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError as err:
        raise WorkbenchError(f"python {command} did not print one JSON object: {err}") from None
    return found


def _keep(folder: Path, rows: Rows, about: dict[str, Any]) -> Path:
    import pandas as pd

    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        pd.DataFrame(rows).to_parquet(part / "table.parquet", compression="zstd", index=False)
        (part / "provenance.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder
