"""What is run for a paper's figures and tables, at three scales, and kept in ``data/`` with its provenance.

An experiment is a function from settings to rows. Each paper's package lists its own in ``experiments.py``; here is
what is common to all: running one, whole or in parts, keeping its table as Parquet, and opening it again.
"""

import json
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from workbench.core.checks import whole
from workbench.core.errors import DatabaseError, InvalidInput, WorkbenchError, unknown
from workbench.core.machine import cores
from workbench.core.places import DATA, KEPT, whole_folder
from workbench.core.pool import process_pool
from workbench.core.protocols import Config, TrainableFactory
from workbench.core.record import commit, versions
from workbench.paper.numbers import Origin

if TYPE_CHECKING:
    import pandas as pd

SCALES = ("minutes", "hours", "paper")
_FORMAT = 2

Rows = list[dict[str, Any]]
Settings = TypeVar("Settings")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Experiment(Generic[Settings]):
    """What is run for a figure or a table.

    Attributes
    ----------
    name : str
        Of its folder in ``data/``.
    shows : str
        The paper and what of it.
    source : {"measured", "simulated", "model"}
        What the numbers are; never mixed in one experiment. What is measured runs in a process of its own.
    run : callable
        Settings → rows of one table.
    scales : Mapping
        Scale → settings, a frozen dataclass; or several where it is long: parts, whose rows are joined. ``paper`` is as
        published, for a machine like the paper's.
    """

    name: str
    shows: str
    source: Literal["measured", "simulated", "model"]
    run: Callable[[Settings], Rows]
    scales: Mapping[str, Settings | tuple[Settings, ...]]

    def parts(self, scale: str) -> tuple[Settings, ...]:
        """Give the settings of a scale's parts, in their order.

        Raises
        ------
        InvalidInput
            No such scale.
        """
        if scale not in SCALES:
            raise unknown("scale", scale, SCALES)
        if scale not in self.scales:
            raise InvalidInput(f"{self.name} has no scale {scale!r}, only {', '.join(self.scales)}")
        settings = self.scales[scale]
        return settings if isinstance(settings, tuple) else (settings,)


@dataclass(frozen=True)
class RecordedTable:
    """A recorded experiment: its table, and where it comes from.

    Attributes
    ----------
    frame : DataFrame
    about : dict
        ``shows, source, scale, command, settings, date, seconds, load_1m_before, cores, machine, python, versions``;
        settings are a list, of each part. Of several parts the last one's date, all their seconds and the highest load,
        each part's own under ``parts``. What a script recorded has its command line as ``ran_as``.
    """

    name: str
    frame: "pd.DataFrame"
    about: dict[str, Any]

    @property
    def scale(self) -> str:
        """In words, for the caption of a figure."""
        about = self.about
        return f"{about['source']} at scale '{about['scale']}' on {about['cores']} cores, {about['date'][:10]}"

    @property
    def origin(self) -> Origin:
        """What it is, and the command that makes it, for the scoreboard."""
        about = self.about
        return Origin(
            about["source"], _command(self.name, about["scale"]).removesuffix(" --scale minutes"), about["scale"]
        )

    @classmethod
    def open(cls, name: str, root: str | Path = DATA) -> "RecordedTable":
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
                f"no recorded experiment in {folder} ({' '.join(str(err).split())}): run {_command(name, 'minutes')}"
            ) from None

    @classmethod
    def those_of(cls, names: Iterable[str], root: str | Path = DATA) -> "Iterator[RecordedTable]":
        """Open those that have been recorded; the others are left out."""
        for name in names:
            with suppress(DatabaseError):
                yield cls.open(name, root)


def run_and_keep(
    experiment: Experiment[Any], scale: str, root: str | Path = KEPT, most_parts: int | None = None
) -> Path:
    """Run an experiment and keep it in a folder of its name, in the place of an earlier one.

    Parts that have run stay in a hidden folder beside it until all have: what was interrupted goes on from there.

    Parameters
    ----------
    experiment : Experiment
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
    WorkbenchError
        No such scale or number of parts, its folder cannot be made there, or its process was lost. An earlier recording
        is left as it was, as after the function's errors.
    """
    if most_parts is not None and not (count := whole(1)).fits(most_parts):
        raise InvalidInput(f"so many parts to run now are {count.words}, got {most_parts!r}")
    done = Path(root) / f".{experiment.name}.{scale}.parts"
    to_run = experiment.parts(scale)
    _check_place(Path(root))
    parts: Rows = []
    for number, settings in enumerate(to_run):
        file = done / f"{number}.json"
        if (part := _part_that_ran(file, settings)) is None:
            if most_parts == 0:
                return done
            most_parts = None if most_parts is None else most_parts - 1
            part = _run_part(experiment, settings)
            if len(to_run) > 1:
                done.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps(part), encoding="utf-8")
        parts.append(part)
    rows = [row for part in parts for row in part.pop("rows")]
    folder = keep_table(Path(root) / experiment.name, rows, _provenance(experiment, scale, parts))
    shutil.rmtree(done, ignore_errors=True)
    return folder


def _check_place(root: Path) -> None:
    """Refuse, before anything runs, a place where nothing can be kept."""
    there = next(folder for folder in (root.absolute(), *root.absolute().parents) if folder.exists())
    if not (there.is_dir() and os.access(there, os.W_OK)):
        raise InvalidInput(f"nothing can be kept in {root}, for {there} is no folder to write to: choose another place")


def keep_table(folder: Path, rows: Rows, about: dict[str, Any]) -> Path:
    """Write a table and its provenance, both or neither, in the place of what the folder held."""
    import pandas as pd

    with whole_folder(folder) as part:
        pd.DataFrame(rows).to_parquet(part / "table.parquet", compression="zstd", index=False)
        (part / "provenance.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
    return folder


def each(function: Callable[..., Result], jobs: Iterable[tuple[Any, ...]], processes: int) -> list[Result]:
    """Call a function with every job's arguments, so many at once; give the results in the jobs' order.

    One process is this one; several are fresh, each takes job after job.
    """
    if processes == 1:
        return [function(*job) for job in jobs]
    with process_pool(processes, "spawn") as pool:
        return list(pool.map(function, *zip(*jobs, strict=True)))


def rows_of_each(function: Callable[..., Rows], jobs: Iterable[tuple[Any, ...]], processes: int) -> Rows:
    """Call a function as `each` does; join the rows that it gives."""
    return [row for rows in each(function, jobs, processes) for row in rows]


def trained(factory: TrainableFactory, config: Config, seed: int, n_phases: int) -> Rows:
    """Train one trial; give the metrics of every phase, their ``seconds`` counted from the trial's beginning."""
    phases, seconds = [], 0.0
    with closing(factory(config, seed)) as trial:
        for _ in range(n_phases):
            metrics: dict[str, Any] = dict(trial.train_phase(lambda metrics: None))
            seconds += metrics.get("seconds", 0.0)
            phases.append(metrics | {"seconds": seconds})
    return phases


def _provenance(experiment: Experiment[Any], scale: str, parts: Rows) -> dict[str, Any]:
    about = {
        "format": _FORMAT,
        "name": experiment.name,
        "shows": experiment.shows,
        "source": experiment.source,
        "scale": scale,
        "command": _command(experiment.name, scale),
        "settings": [part["settings"] for part in parts],
        "date": parts[-1]["date"],
        "seconds": round(sum(part["seconds"] for part in parts), 1),
        "load_1m_before": max(part["load_1m_before"] for part in parts),
        "cores": cores(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "versions": versions(),
        "commit": commit(),
    }
    own = [{name: part[name] for name in ("date", "seconds", "load_1m_before")} for part in parts]
    return about | ({"parts": own} if len(parts) > 1 else {})


def _command(name: str, scale: str) -> str:
    return f"workbench reproduce {name} --scale {scale}"


def _written(settings: Any) -> dict[str, Any]:
    """Give settings as they are read back from JSON."""
    written: dict[str, Any] = json.loads(json.dumps(asdict(settings)))
    return written


def _part_that_ran(file: Path, settings: Any) -> dict[str, Any] | None:
    """Read a part that has run already; one of other settings, or half written, is none."""
    try:
        part: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return part if part.get("settings") == _written(settings) else None


def _run_part(experiment: Experiment[Any], settings: Any) -> dict[str, Any]:
    began, load = time.monotonic(), os.getloadavg()[0]
    rows = _alone(experiment, settings) if experiment.source == "measured" else experiment.run(settings)
    return {
        "settings": _written(settings),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - began, 1),
        "load_1m_before": round(load, 1),
        "rows": rows,
    }


def _alone(experiment: Experiment[Any], settings: Any) -> Rows:
    """Run in a fresh process: no threads, no settings of torch and no memory are left over from what ran before."""
    with process_pool(1, "spawn") as pool:
        try:
            return pool.submit(experiment.run, settings).result()
        except BrokenProcessPool:
            raise WorkbenchError(f"the process of {experiment.name} was killed before it had answered") from None
