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
from workbench.core.places import DATA

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
        Scale → a script and its arguments, or several where it is long: parts, whose rows are joined. ``paper`` is as
        published, for a machine like the paper's.
    rows : callable
        What the script printed → rows of one table.
    """

    shows: str
    source: Literal["measured", "simulated", "model"]
    commands: Mapping[str, str | tuple[str, ...]]
    rows: Callable[[dict[str, Any]], Rows]

    def parts(self, scale: str) -> tuple[str, ...]:
        """Give the commands of a scale, in their order."""
        found = self.commands[scale]
        return (found,) if isinstance(found, str) else found


@dataclass(frozen=True)
class Kept:
    """A recorded experiment: its table, and where it comes from.

    Attributes
    ----------
    frame : DataFrame
    about : dict
        ``shows, source, scale, command, date, seconds, load_1m_before, cores, machine, python, versions``; of several
        parts the last one's date, all their seconds and the highest load, each part's own under ``parts``.
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


def recorded(name: str, scale: str | None = None, root: str | Path = DATA) -> Kept:
    """Open a recorded experiment, or run it again at a scale of the reader's choice and open that.

    Parameters
    ----------
    name : str
    scale : {"minutes", "hours", "paper"}, optional
        Without it, what comes with the project is opened. With it, the experiment runs now and is kept in
        ``data/runs/reproduced``, and what comes with the project is left as it is.
    root : path
        Where recordings are.
    """
    if scale is None:
        return Kept.open(name, root)
    return Kept.open(name, reproduce(name, scale, Path(root) / "runs" / "reproduced").parent)


def reproduce(name: str, scale: str = "minutes", root: str | Path = DATA, most_parts: int | None = None) -> Path:
    """Run an experiment again and keep it in a folder of its name, in the place of an earlier one.

    Parts that have run stay in a hidden folder beside it until all have: what was interrupted goes on from there.

    Parameters
    ----------
    name : str
        In `EXPERIMENTS`.
    scale : {"minutes", "hours", "paper"}
    root : path
        Where its folder is made.
    most_parts : int, optional
        Run no more parts than these now.

    Returns
    -------
    Path
        The folder, with ``table.parquet`` and ``provenance.json``; while parts are missing, theirs.

    Raises
    ------
    InvalidInput
        No such experiment or scale.
    WorkbenchError
        The script failed; an earlier recording is left as it was.
    """
    experiment = _find(name, scale)
    done = Path(root) / f".{name}.{scale}.parts"
    commands = experiment.parts(scale)
    parts: list[dict[str, Any]] = []
    for number, command in enumerate(commands):
        file = done / f"{number}.json"
        if (part := _kept_part(file, command)) is None:
            if most_parts == 0:
                return done
            most_parts = None if most_parts is None else most_parts - 1
            part = _run_part(command, experiment.rows)
            if len(commands) > 1:
                done.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps(part), encoding="utf-8")
        parts.append(part)
    rows = [row for part in parts for row in part.pop("rows")]
    folder = _keep(Path(root) / name, rows, _provenance(name, experiment, scale, parts))
    shutil.rmtree(done, ignore_errors=True)
    return folder


def _find(name: str, scale: str) -> Experiment:
    from workbench.paper.catalogue import EXPERIMENTS

    if name not in EXPERIMENTS:
        raise unknown("experiment", name, EXPERIMENTS)
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    if scale not in EXPERIMENTS[name].commands:
        raise InvalidInput(f"{name} has no scale {scale!r}, only {', '.join(EXPERIMENTS[name].commands)}")
    return EXPERIMENTS[name]


def _provenance(name: str, experiment: Experiment, scale: str, parts: Rows) -> dict[str, Any]:
    about = {
        "format": _FORMAT,
        "name": name,
        "shows": experiment.shows,
        "source": experiment.source,
        "scale": scale,
        "command": "; ".join(part["command"] for part in parts),
        "date": parts[-1]["date"],
        "seconds": round(sum(part["seconds"] for part in parts), 1),
        "load_1m_before": max(part["load_1m_before"] for part in parts),
        "cores": len(os.sched_getaffinity(0)),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "versions": {package: metadata.version(package) for package in _PACKAGES},
    }
    return about | ({"parts": parts} if len(parts) > 1 else {})


def _kept_part(file: Path, command: str) -> dict[str, Any] | None:
    """Read a part that has run already; one of another command, or half written, is none."""
    try:
        part: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return part if part["command"] == f"python {command}" else None


def _run_part(command: str, rows: Callable[[dict[str, Any]], Rows]) -> dict[str, Any]:
    began, load = time.monotonic(), os.getloadavg()[0]
    found = rows(_output(command))
    return {
        "command": f"python {command}",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - began, 1),
        "load_1m_before": round(load, 1),
        "rows": found,
    }


def _output(command: str) -> dict[str, Any]:
    """Run a script of the project and read the JSON object it prints."""
    project, arguments = DATA.parent, shlex.split(command)
    if arguments[0].endswith(".py") and not (project / arguments[0]).is_file():
        raise WorkbenchError(f"no {arguments[0]} in {project}: experiments are run from a checkout of the project")
    done = subprocess.run([sys.executable, *arguments], cwd=project, capture_output=True, text=True, check=False)
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
