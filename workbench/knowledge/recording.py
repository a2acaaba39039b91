"""A study as a folder of Parquet files, small enough to publish: events, thinned metrics, and where they come from."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from workbench.core.domains import spaced
from workbench.core.errors import DatabaseError, InvalidInput
from workbench.core.measured import one_line
from workbench.core.places import is_study_name, refuse_what_exists, whole_folder
from workbench.core.protocols import BEGUN, Event, Kind
from workbench.knowledge.frames import METRICS, Frames, frames_of
from workbench.knowledge.reader import KnowledgeBase
from workbench.knowledge.rows import check_event
from workbench.knowledge.schema import NONSENSE

_EVENTS = ["at_s", "kind", "trial", "phase", "slot", "data"]
_TYPES = {"seq": "int64", "trial": "int64", "phase": "int64", "at_s": "float64", "value": "float64"}  # of metrics
_FORMAT = 1
_FOLDERS = re.compile(r"(?:(?<=file://)|(?<![\w./:~-]))/(?:[^\s'\"/]+/)+")  # of an absolute path, not of another URL


@dataclass(frozen=True)
class Recording:
    """A study read from a folder that `record` wrote.

    Attributes
    ----------
    name : str
    spec : dict
        As in the log: scheduler, trainable, seed.
    provenance : dict
        When, on what, with which versions and command it ran; how the metrics were thinned.
    """

    name: str
    spec: dict[str, Any]
    provenance: dict[str, Any]
    _folder: Path
    _events: list[Event]
    _metrics: pd.DataFrame

    @classmethod
    def open(cls, folder: str | Path) -> "Recording":
        """Read a recording.

        Raises
        ------
        DatabaseError
            There is none in that folder, it is damaged, or of a newer format.
        """
        folder = Path(folder)
        with _damage(folder):
            about = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
            if not (isinstance(about, dict) and isinstance(about.get("format"), int)):
                raise DatabaseError(f"no recording in {folder}: its provenance.json says no format: record it again")
            if "spec" not in about and "command" in about:
                raise DatabaseError(f"no recording of a study in {folder}: it is of {about['command']}")
            if about["format"] > _FORMAT:
                raise DatabaseError(
                    f"{folder} has format {about['format']}, this workbench reads up to {_FORMAT}: upgrade it"
                )
            if not (is_study_name(about["name"]) and isinstance(about["spec"], dict)):
                raise ValueError(f"a study {about['name']!r} of {type(about['spec']).__name__}")
            events = [_event(row) for row in pd.read_parquet(folder / "events.parquet")[_EVENTS].itertuples()]
            metrics = pd.read_parquet(folder / "metrics.parquet")[METRICS].astype(_TYPES)
            return cls(about["name"], about["spec"], about, folder, events, metrics)

    def events(self) -> list[Event]:
        """Give the events in order, tracebacks and paths left out."""
        return list(self._events)

    def frames(self) -> Frames:
        """Derive the documented frames; nobody drives a recording.

        Raises
        ------
        DatabaseError
            Its events are such as no driver writes.
        """
        with _damage(self._folder):
            return frames_of(self._events, self._metrics, driven=False)


def record(db: str | Path, name: str, folder: str | Path, *, points: int = 500, note: str = "") -> Path:
    """Write a study of a knowledge base to a folder.

    Parameters
    ----------
    db, name
        The study, running or over.
    folder : path
        Must not exist.
    points : int
        Most points kept of each metric of each trial, evenly over those there are; a counter's are those beside the
        score's that were kept, so that curves can be drawn against it.
    note : str
        A line on what was recorded and why.

    Raises
    ------
    InvalidInput
        The folder exists or cannot be written, or `points` is below 2.
    DatabaseError, StudyError
        There is no such file, or no such study in it.
    """
    folder = Path(folder)
    refuse_what_exists(folder)
    if points < 2:
        raise InvalidInput(f"a curve needs 2 points or more, got {points}")
    with KnowledgeBase(db) as kb:
        study = kb[name]
        events, metrics = study.events(), study.metrics()
        about = _provenance(name, study.spec, study.created_unix, events, points, note)
    with whole_folder(folder) as part:
        rows = [(e.at, str(e.kind), e.trial, e.phase, e.slot, json.dumps(_public(e.data))) for e in events]
        frame = pd.DataFrame(rows, columns=_EVENTS).astype(dict.fromkeys(("trial", "phase", "slot"), "Int64"))
        frame.to_parquet(part / "events.parquet", compression="zstd", index=False)
        _thinned(metrics, points).to_parquet(part / "metrics.parquet", compression="zstd", index=False)
        (part / "provenance.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return folder


def _provenance(
    name: str, spec: dict[str, Any], created: float, events: list[Event], points: int, note: str
) -> dict[str, Any]:
    drivers = [e.data for e in events if e.kind in BEGUN]
    return {
        "format": _FORMAT,
        "name": name,
        "note": note,
        "measured": not any(d.get("simulated") for d in drivers),
        "spec": {part: _named(said) if part == "trainable" else said for part, said in spec.items()},
        "started": datetime.fromtimestamp(created, UTC).isoformat(timespec="seconds"),
        "drivers": [_public(d) for d in drivers],
        "most_points_a_curve": points,
    }


def _public(data: Any) -> dict[str, Any]:
    """Leave out what is of one machine: tracebacks, folders in errors and in the command, the place of checkpoints."""
    public = {key: value for key, value in data.items() if key not in ("traceback", "checkpoints")}
    for key in ("error", "recovered"):
        if isinstance(public.get(key), str):
            public[key] = _FOLDERS.sub("", public[key])
    if "argv" in public:
        public["argv"] = _named(public["argv"])
    return public


def _named(said: Any) -> Any:
    """Leave folders out of what was typed and trained: of a data set, or a checkpoint to begin with, the name stays."""
    if isinstance(said, dict):
        return {name: _named(value) for name, value in said.items()}
    if isinstance(said, list):
        return [_named(value) for value in said]
    return re.sub(r"^(-[\w-]+=)?/.*?([^/]*)/*$", r"\1\2", said) if isinstance(said, str) else said


def _thinned(metrics: pd.DataFrame, points: int) -> pd.DataFrame:
    """Keep at most `points` rows of each trial's each metric, evenly spaced.

    Curves are drawn against counters that were logged with the score: of a metric that is logged more often, rows from
    the instants kept of scarcer ones come first.
    """
    if metrics.empty:
        return metrics
    instants = metrics.groupby(["trial", "phase", "at_s"], sort=False).ngroup().to_numpy()
    kept = np.zeros(len(metrics), bool)
    for of_trial in metrics.groupby("trial").indices.values():
        known: set[int] = set()
        names = metrics["name"].iloc[of_trial].to_numpy()
        for rows in sorted((of_trial[names == name] for name in pd.unique(names)), key=len):
            beside = np.isin(instants[rows], list(known))
            seen, others = rows[beside], rows[~beside]
            first = seen[spaced(len(seen), points)]
            chosen = np.r_[first, others[spaced(len(others), points - len(first))]]
            kept[chosen] = True
            known.update(instants[chosen].tolist())
    return metrics[kept].reset_index(drop=True)


def _event(row: Any) -> Event:
    trial, phase, slot = (None if pd.isna(v) else int(v) for v in (row.trial, row.phase, row.slot))
    event = Event(Kind(row.kind), float(row.at_s), trial, phase, slot, json.loads(row.data))
    check_event(event)
    return event


@contextmanager
def _damage(folder: Path) -> Iterator[None]:
    """Turn whatever a damaged recording makes of reading it into one readable error."""
    try:
        yield
    except (OSError, *NONSENSE) as err:
        raise DatabaseError(f"no whole recording in {folder} ({one_line(err)[:200]})") from None
