"""Read-only views of a knowledge base: any number of viewers, beside a running study or long after it."""

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from workbench.core.errors import StudyError, unknown
from workbench.core.protocols import Event, Kind
from workbench.knowledge.frames import Frames, frames_of
from workbench.knowledge.schema import open_for_reading


class KnowledgeBase:
    """Every study in one file, read-only.

    Parameters
    ----------
    path : str or Path
        The SQLite file.

    Examples
    --------
    >>> kb = KnowledgeBase("data/runs/workbench.db")  # doctest: +SKIP
    >>> kb["first-cartpole"].frames().trials  # doctest: +SKIP
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._connection = open_for_reading(self.path)

    def __getitem__(self, name: str) -> "RecordedStudy":
        row = self._connection.execute("SELECT id, spec, created_unix FROM studies WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise StudyError(str(unknown("study", name, self)) if len(self) else f"{self.path} holds no study yet")
        return RecordedStudy(name, json.loads(row[1]), float(row[2]), int(row[0]), self._connection)

    def __iter__(self) -> Iterator[str]:
        yield from (name for (name,) in self._connection.execute("SELECT name FROM studies ORDER BY id").fetchall())

    def __len__(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM studies").fetchone()[0])

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    @property
    def studies(self) -> pd.DataFrame:
        """One row a study: name, created, state, trials, phases, best_score, wall_s (seconds driven)."""
        rows = []
        for name in self:
            study = self[name]
            frames = study.frames()
            rows.append(
                {
                    "name": name,
                    "created": pd.Timestamp(study.created_unix, unit="s", tz="UTC"),
                    "state": frames.state,
                    "trials": len(frames.trials),
                    "phases": int(frames.phases["ended_s"].notna().sum()),
                    "best_score": frames.phases["score"].max(),
                    "wall_s": frames.wall_s,
                }
            )
        columns = ["name", "created", "state", "trials", "phases", "best_score", "wall_s"]
        return pd.DataFrame(rows, columns=columns)

    def close(self) -> None:
        """Close the connection; frames already read stay good."""
        self._connection.close()

    def __enter__(self) -> "KnowledgeBase":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"KnowledgeBase({str(self.path)!r}): {len(self)} studies"


@dataclass(frozen=True)
class RecordedStudy:
    """One study as the log remembers it.

    Attributes
    ----------
    name : str
    spec : dict
        What was run: space, scheduler, trainable, seed, versions.
    created_unix : float
        When it first started, seconds since 1970.
    """

    name: str
    spec: dict[str, Any]
    created_unix: float
    _id: int
    _connection: sqlite3.Connection

    def events(self, after: int = 0) -> list[Event]:
        """Read the events in order, those with a sequence number above `after`."""
        return decode_events(self._connection, self._id, after)

    def metrics(self, after: int = 0) -> pd.DataFrame:
        """Read the metric points: seq, trial, phase, at_s (seconds), name, value; those with seq above `after`."""
        query = (
            "SELECT m.seq, m.trial, m.phase, m.at_s, n.name, m.value "
            "FROM metrics m JOIN metric_names n ON n.id = m.name WHERE m.study = ? AND m.seq > ? ORDER BY m.seq"
        )
        rows = self._connection.execute(query, (self._id, after)).fetchall()
        return pd.DataFrame(rows, columns=["seq", "trial", "phase", "at_s", "name", "value"])

    def frames(self) -> Frames:
        """Derive the documented frames from the log as it stands now."""
        return frames_of(self.events(), self.metrics())


def decode_events(connection: sqlite3.Connection, study: int, after: int = 0) -> list[Event]:
    """Read a study's events back from its rows."""
    rows = connection.execute(
        "SELECT kind, at_s, trial, phase, slot, data FROM events WHERE study = ? AND seq > ? ORDER BY seq",
        (study, after),
    ).fetchall()
    return [Event(Kind(kind), at, trial, phase, slot, json.loads(data)) for kind, at, trial, phase, slot, data in rows]
