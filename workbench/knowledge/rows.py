"""What a log's rows are read as: a study's mark, its newest metric, its events, none of which is nonsense."""

import json
import math
import sqlite3
import sys
from collections.abc import Sequence

from workbench.core.protocols import Event, Kind


def identity_of(connection: sqlite3.Connection, study: int) -> str:
    """Read a study's own mark; empty where there is no such study."""
    row = connection.execute("SELECT identity FROM studies WHERE id = ?", (study,)).fetchone()
    return "" if row is None else str(row[0])


def last_metric_of(connection: sqlite3.Connection, study: int) -> float:
    """Read when a study's newest metric was logged, seconds on its clock; 0 where there is none."""
    query = "SELECT at_s FROM metrics WHERE study = ? ORDER BY seq DESC LIMIT 1"
    row = connection.execute(query, (study,)).fetchone()
    return 0.0 if row is None else float(row[0])


def decode_events(
    connection: sqlite3.Connection, study: int, after: int = 0, last: int | None = None, kinds: Sequence[Kind] = ()
) -> list[Event]:
    """Read a study's events back from its rows, those numbered from `after` (excluded) to `last` (included)."""
    query = "SELECT kind, at_s, trial, phase, slot, data FROM events WHERE study = ? AND seq > ? AND seq <= ?"
    if kinds:
        query += f" AND kind IN ({', '.join('?' * len(kinds))})"
    parameters = (study, after, sys.maxsize if last is None else last, *kinds)
    rows = connection.execute(f"{query} ORDER BY seq", parameters).fetchall()
    # at once: of very many, one by one takes twice as long
    payloads = json.loads(f"[{','.join(row[5] for row in rows)}]")
    events = [
        Event(_KINDS[kind], at, trial, phase, slot, data)
        for (kind, at, trial, phase, slot, _), data in zip(rows, payloads, strict=True)
    ]
    for event in events:
        check_event(event)
    return events


def check_event(event: Event) -> None:
    """Raise `ValueError` for what no driver writes, so that no viewer has to be ready for it."""
    kind, data = event.kind, event.data
    if not isinstance(data, dict) or not math.isfinite(event.at):
        raise ValueError(f"an event {kind} at {event.at} s whose data is a {type(data).__name__}")
    if kind in _OF_TRIALS and (event.trial is None or (event.phase is None and kind is not Kind.DECISION)):
        raise ValueError(f"an event {kind} of trial {event.trial}, phase {event.phase}")
    trial, phase, slot = event.trial or 0, event.phase or 0, event.slot or 0
    if not (0 <= trial < _MOST_TRIALS and 0 <= phase < _MOST_PHASES and 0 <= slot < _MOST_SLOTS):
        raise ValueError(f"an event {kind} of trial {trial}, phase {phase}, slot {slot}")
    if kind is Kind.PHASE_ENDED:
        numbers = (data["score"], *data.get("metrics", {}).values())
        if not all(type(number) in (int, float) for number in numbers):
            raise ValueError(f"a score or a metric of trial {event.trial} that is no number")
    elif kind is Kind.SLOT_JOINED and type(data.get("workers", 1)) is not int:
        raise ValueError(f"slot {event.slot} of {data['workers']!r} workers")
    elif kind is Kind.RUN and not isinstance(data["config"], dict):
        raise ValueError(f"a configuration of trial {event.trial} that is no table")


_MOST_TRIALS, _MOST_PHASES, _MOST_SLOTS = 1 << 23, 1 << 20, 1 << 20
_OF_TRIALS = (
    Kind.PHASE_STARTED, Kind.PHASE_ENDED, Kind.DECISION, Kind.RUN,
    Kind.PHASE_FAILED, Kind.TRIAL_FAILED, Kind.TRIAL_STOPPED,
)  # fmt: skip
_KINDS = {str(kind): kind for kind in Kind}
