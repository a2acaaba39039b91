"""What people have written on a study and its trials: notes, and tags that may be taken off again."""

from collections.abc import Iterable, Mapping
from typing import Any

Rows = Iterable[Mapping[Any, Any]]
"""Rows of the frame `interventions`."""


def tags_of(interventions: Rows) -> dict[int | None, dict[str, float]]:
    """Give the tags that stand: by trial (``None``: the study), each with the time it was put on, s."""
    by_trial: dict[int | None, dict[str, float]] = {}
    for row in interventions:
        if not row["accepted"] or row["action"] not in ("tag", "untag"):
            continue
        tags = by_trial.setdefault(_trial(row), {})
        if row["action"] == "tag":
            tags.setdefault(str(row["data"]["tag"]), float(row["at_s"]))
        else:
            tags.pop(str(row["data"]["tag"]), None)
    return {trial: tags for trial, tags in by_trial.items() if tags}


def notes_of(interventions: Rows) -> dict[int | None, list[dict[str, Any]]]:
    """Give the notes: by trial (``None``: the study), in order; each with at_s, text, by."""
    by_trial: dict[int | None, list[dict[str, Any]]] = {}
    for row in interventions:
        if row["accepted"] and row["action"] == "note":
            note = {"at_s": float(row["at_s"]), "text": str(row["data"]["text"]), "by": str(row["by"])}
            by_trial.setdefault(_trial(row), []).append(note)
    return by_trial


def _trial(row: Mapping[str, Any]) -> int | None:
    trial = row["trial"]
    return None if trial is None or trial != trial else int(trial)
