"""Read-only views of a knowledge base: any number of viewers, beside a running study or long after it."""

import json
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from workbench.core.errors import DatabaseError, InvalidInput, StudyError, unknown
from workbench.core.places import db_path, is_study_name
from workbench.core.protocols import Event, Kind
from workbench.core.showing import config_text, four_digits, so_many, titled
from workbench.knowledge.frames import METRICS, Frames, frames_of
from workbench.knowledge.lock import driver_of
from workbench.knowledge.rows import decode_events, identity_of, last_metric_of
from workbench.knowledge.schema import Unfinished, database_errors, open_for_reading, refuse_what_is_none

POINT = np.dtype([("trial", "i4"), ("phase", "i4"), ("at", "f8"), ("name", "i4"), ("value", "f8")])
"""A metric point, as `RecordedStudy.points` gives them: at in seconds, name as an index."""


class Seen(NamedTuple):
    """The last event of a study that has been read: its number, when the study began, and the event's own seconds."""

    seq: int
    created_unix: float
    at: float | None


_PACKED = np.dtype([("key", "i8"), ("at", "f8"), ("value", "f8")])  # a third less for Python to unpack a row


def names_taken(path: str | Path) -> set[str]:
    """Name the studies of a knowledge base, for whoever begins another: none where it is missing or being made.

    Raises
    ------
    DatabaseError
        The file is damaged, of another version, or no knowledge base, or there can be none.
    """
    path = db_path(path)
    refuse_what_is_none(path)
    if path.exists():
        with suppress(Unfinished), KnowledgeBase(path) as kb:  # what is unfinished, whoever writes to it completes
            return set(kb)
    return set()


class KnowledgeBase:
    """Every study in one file, read-only.

    Parameters
    ----------
    path : str or Path
        The SQLite file.

    Raises
    ------
    DatabaseError, StudyError
        There is no such file, or it is damaged or of another version; or no study of the name that is asked for.

    Examples
    --------
    >>> kb = KnowledgeBase("data/runs/workbench.db")  # doctest: +SKIP
    >>> kb["first-cartpole"].frames().trials  # doctest: +SKIP
    """

    def __init__(self, path: str | Path) -> None:
        self.path = db_path(path)
        self._place = self.path.absolute()  # whatever folder the process goes to
        self._file = _file_at(self._place)  # before it is opened: what takes its place meanwhile is noticed, not missed
        self._connection = open_for_reading(self.path)

    def __getitem__(self, name: str) -> "RecordedStudy":
        query = "SELECT id, spec, created_unix FROM studies WHERE name = ?"
        with database_errors(self.path):
            row = self._connection.execute(query, (name,)).fetchone() if is_study_name(name) else None
            if row is not None:
                spec = dict(json.loads(row[1]))
                return RecordedStudy(name, spec, float(row[2]), int(row[0]), self._connection, self.path, self)
        raise StudyError(str(unknown("study", name, self)) if len(self) else f"{self.path} holds no study yet")

    def __iter__(self) -> Iterator[str]:
        with database_errors(self.path):
            rows = self._connection.execute("SELECT name FROM studies ORDER BY id").fetchall()
        for (name,) in rows:
            if not is_study_name(name):  # it would become a file's, or a terminal's business
                raise DatabaseError(f"{self.path} names a study {name!r}, as no driver does: do not trust it")
            yield name

    def __len__(self) -> int:
        with database_errors(self.path):
            return int(self._connection.execute("SELECT count(*) FROM studies").fetchone()[0])

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    @property
    def studies(self) -> pd.DataFrame:
        """One row a study: name, created, state, trials, phases, best_score (of any phase), wall_s (seconds driven)."""
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
                    "best_score": frames.searched["score"].agg(frames.aim.mode),
                    "wall_s": frames.wall_s,
                }
            )
        columns = ["name", "created", "state", "trials", "phases", "best_score", "wall_s"]
        return pd.DataFrame(rows, columns=columns)

    @property
    def replaced(self) -> bool:
        """Whether the file that was opened is at its path no more: deleted, or another has taken its place."""
        return _file_at(self._place) != self._file

    def close(self) -> None:
        """Close the connection; frames already read stay good."""
        self._connection.close()

    def __enter__(self) -> "KnowledgeBase":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"KnowledgeBase({str(self.path)!r}): {so_many(len(self), 'study')}"

    def _repr_html_(self) -> str:
        shown = self.studies.assign(name=lambda told: [titled(name, self[name].spec) for name in told["name"]])
        return f"<p>{escape(str(self.path))}</p>{shown.to_html(index=False, float_format=four_digits)}"


@dataclass(frozen=True)
class RecordedStudy:
    """One study as the log remembers it.

    Attributes
    ----------
    name : str
    spec : dict
        What was run: scheduler (its searcher and space within), trainable, seed.
    created_unix : float
        When it first started, seconds since 1970.
    """

    name: str
    spec: dict[str, Any]
    created_unix: float
    _id: int
    _connection: sqlite3.Connection
    _path: Path
    _kb: KnowledgeBase

    @property
    def identity(self) -> str:
        """Its own mark, which copies of the knowledge base share."""
        with database_errors(self._path):
            return identity_of(self._connection, self._id)

    @property
    def n_events(self) -> int:
        """Events logged so far."""
        query = "SELECT count(*) FROM events WHERE study = ?"
        with database_errors(self._path):
            return int(self._connection.execute(query, (self._id,)).fetchone()[0])

    def events(self, *kinds: Kind) -> list[Event]:
        """Read all events in order, or those of some kinds alone."""
        with database_errors(self._path):
            return decode_events(self._connection, self._id, kinds=kinds)

    def events_since(self, seen: Seen | None = None) -> tuple[list[Event], Seen | None]:
        """Read the events logged since a look, by default all, and what to ask with next time.

        Raises
        ------
        StudyError
            It is not the study that was seen: it was deleted, and may have been begun anew or unpacked under the
            numbers that were its own, or an older copy of the knowledge base took the place of the file.
        """
        query = (
            "SELECT (SELECT created_unix FROM studies WHERE id = ?1), (SELECT max(seq) FROM events WHERE study = ?1), "
            "(SELECT at_s FROM events WHERE study = ?1 AND seq = ?2)"
        )
        after = 0 if seen is None else seen.seq
        with database_errors(self._path):
            created_unix, last, at = self._connection.execute(query, (self._id, after)).fetchone()
            same = created_unix == self.created_unix and seen in (None, Seen(after, created_unix, at))
            if not same or self._kb.replaced:
                raise StudyError(
                    f"study {self.name!r} is not what was opened: it was deleted from {self._path}, or that file "
                    "was moved or replaced: open it anew"
                )
            events = decode_events(self._connection, self._id, after, last or 0)
        return events, Seen(last, created_unix, events[-1].at) if events else seen

    def metrics(self, after: int = 0, names: Sequence[str] | None = None) -> pd.DataFrame:
        """Read metric points in order: seq, trial, phase, at_s (seconds), name, value.

        Parameters
        ----------
        after : int
            Only those with a number above it.
        names : sequence of str, optional
            Only these metrics.
        """
        query = (
            "SELECT m.seq, m.trial, m.phase, m.at_s, n.name, m.value "
            "FROM metrics m JOIN metric_names n ON n.id = m.name WHERE m.study = ? AND m.seq > ?"
        )
        if names is not None:
            query += f" AND n.name IN ({', '.join('?' * len(names))})"
        parameters = (self._id, after, *(names or ()))
        with database_errors(self._path):
            rows = self._connection.execute(f"{query} ORDER BY m.seq", parameters).fetchall()
        return pd.DataFrame(rows, columns=METRICS)

    def points(
        self, names: Sequence[str], after: int = 0, most: int = sys.maxsize
    ) -> tuple[npt.NDArray[Any], int, bool]:
        """Read metric points into one array: a million in about a second.

        Parameters
        ----------
        names : sequence of str
            Of the metrics to tell apart. Others are read too, for a trial that reports anything trains.
        after : int
            Only those with a number above it.
        most : int
            Numbers to look through, those of other studies among them.

        Returns
        -------
        array of `POINT`, shape [n]
            In the order they were logged; ``name`` is the index into `names`, -1 of others.
        int
            The number to ask with next time.
        bool
            Whether there are more.
        """
        with database_errors(self._path):
            ends = ", ".join(f"(SELECT {end}(seq) FROM metrics WHERE study = ? AND seq > ?)" for end in ("min", "max"))
            first, newest = self._connection.execute(f"SELECT {ends}", (self._id, after) * 2).fetchone()
            if first is None:
                return np.empty(0, POINT), after, False
            last = min(newest, first + most - 1)
            known = self._connection.execute("SELECT name, id FROM metric_names").fetchall()
            query = (  # through the rows as they lie: an index would be looked up for each
                "SELECT (trial << 40) | (phase << 20) | name, at_s, value FROM metrics "
                "WHERE +study = ? AND seq > ? AND seq <= ? AND value IS NOT NULL "
                "AND trial >> 23 = 0 AND phase >> 20 = 0 ORDER BY seq"  # what can be packed; no driver writes others
            )
            rows = self._connection.execute(query, (self._id, after, last))
            read = np.fromiter(rows, _PACKED)
        place = np.full(max((number for _, number in known), default=0) + 1, -1)
        for name, number in known:
            place[number] = names.index(name) if name in names else -1
        points = np.empty(len(read), POINT)
        points["trial"], points["phase"] = read["key"] >> 40, read["key"] >> 20 & 0xFFFFF
        points["name"] = place[read["key"] & 0xFFFFF]
        points["at"], points["value"] = read["at"], read["value"]
        return points, last, last < newest

    @property
    def last_metric_s(self) -> float:
        """When the newest metric was logged, seconds on the study's clock; 0 where there is none."""
        with database_errors(self._path):
            return last_metric_of(self._connection, self._id)

    @property
    def last_point(self) -> int:
        """Number of the newest metric point, as `points` goes by; 0 where there is none."""
        query = "SELECT coalesce(max(seq), 0) FROM metrics WHERE study = ?"
        with database_errors(self._path):
            return int(self._connection.execute(query, (self._id,)).fetchone()[0])

    def frames(self) -> Frames:
        """Derive the documented frames from the log as it stands now."""
        driven = self._is_driven()  # before: its last event is there when its driver has gone
        events, metrics = self.events(), self.metrics()
        with database_errors(self._path):
            return frames_of(events, metrics, driven=driven or self._is_driven())  # after: one that has come meanwhile

    def _is_driven(self) -> bool:
        return driver_of(self._path, self.name) is not None

    def trial(self, number: int) -> "RecordedTrial":
        """Look at one trial: its configuration, its phases, and why it went on or was stopped.

        Raises
        ------
        InvalidInput
            No trial of that number has begun.
        """
        frames = self.frames()
        rows = frames.trials[frames.trials["trial"] == number]
        if rows.empty:
            raise InvalidInput(f"study {self.name!r} has no trial {number}: it has begun {len(frames.trials)}")
        row = rows.iloc[0].to_dict()
        config = dict(frames.configs[number])
        mine = [frame[frame["trial"] == number] for frame in (frames.phases, frames.decisions, frames.interventions)]
        return RecordedTrial(self.name, number, str(row["state"]), config, *mine)

    def __repr__(self) -> str:
        frames = self.frames()
        ended = int(frames.phases["ended_s"].notna().sum())
        what = titled(f"study {self.name!r}", self.spec)
        return f"{what}: {frames.state}, {so_many(len(frames.trials), 'trial')}, {so_many(ended, 'phase')} ended"

    def _repr_html_(self) -> str:
        shown = self.frames().trials.drop(columns=["seed", "error"])
        return f"<p>{escape(repr(self))}</p>{shown.to_html(index=False, float_format=four_digits, max_rows=60)}"


@dataclass(frozen=True)
class RecordedTrial:
    """One trial as the log remembers it.

    Attributes
    ----------
    study : str
    number : int
    state : str
    config : dict
        Its hyperparameters.
    phases, decisions, interventions : DataFrame
        Its rows of the frames of these names.
    """

    study: str
    number: int
    state: str
    config: dict[str, Any]
    phases: pd.DataFrame
    decisions: pd.DataFrame
    interventions: pd.DataFrame

    def __repr__(self) -> str:
        config = config_text(self.config)
        scores = ", ".join(four_digits(score) for score in self.phases["score"].dropna())
        return f"trial {self.number} of {self.study!r}: {self.state}; {config}; scores {scores or 'none yet'}"

    def _repr_html_(self) -> str:
        tables = [
            frame.drop(columns="trial").to_html(index=False, float_format=four_digits)
            for frame in (self.phases, self.decisions, self.interventions)
            if len(frame)
        ]
        return f"<p>{escape(repr(self))}</p>{''.join(tables)}"


def _file_at(path: Path) -> tuple[int, int] | None:
    """Tell files apart that have one name after another; ``None``: there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
