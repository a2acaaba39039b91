"""Events as a person would say them: the lines of the dashboard's lists."""

from collections.abc import Mapping
from typing import Any

from workbench.core.describe import why
from workbench.core.ledger import RAN_OUT
from workbench.core.protocols import Event, Explain, Kind
from workbench.core.showing import reason_text, setting, so_many
from workbench.knowledge.frames import intervention_row

LONGEST = 500  # characters of a reason or an error
_LIST_OF = {
    Kind.DECISION: "decisions",
    Kind.INTERVENTION: "decisions",
    Kind.PHASE_FAILED: "troubles",
    Kind.TRIAL_FAILED: "troubles",
    Kind.SLOT_LOST: "troubles",
    Kind.STUDY_INTERRUPTED: "troubles",
    Kind.STUDY_RESUMED: "troubles",
}
_REMARKED = {"note": "noted", "tag": "put on the tag", "untag": "took off the tag"}


def list_of(event: Event) -> str | None:
    """Name the list that an event's line stands in: decisions, troubles, or continues; ``None``: it makes no line.

    Decisions are verdicts and what people asked, troubles crashes, hangs and lost slots. That trials went on is told so
    often that the others would not last in a list with it.
    """
    went_on = event.kind is Kind.DECISION and event.data["verdict"] == "continue"
    return "continues" if went_on else _LIST_OF.get(event.kind)


def line_of(event: Event, explain: Explain = reason_text) -> dict[str, Any]:
    """Write an event that has a `list_of` as a line of it.

    Returns
    -------
    dict
        ``list``; ``at`` (seconds), ``trial``, ``phase`` (or None), ``what``, ``why``; of an answer to a person also its
        ``request`` and whether it was ``accepted``.
    """
    match event.kind:
        case Kind.DECISION:
            ran_out = event.data["verdict"] == "stop" and event.data.get("mode") in RAN_OUT
            return _line(event, "finished" if ran_out else str(event.data["verdict"]), why_of(event, explain))
        case Kind.INTERVENTION:
            return _answer(event)
        case Kind.PHASE_FAILED | Kind.TRIAL_FAILED:
            attempts = 1 + int(event.data.get("attempt") or 0)
            failed = f"failed after {attempts} attempts" if attempts > 1 else "failed"
            if event.kind is Kind.PHASE_FAILED:
                failed = "attempt cut short" if event.data.get("why") == "left" else "attempt lost"
            parts = [str(event.data.get(key) or "") for key in ("why", "error")]
            return _line(event, failed, ": ".join(part for part in parts if part and part != "left"))
        case Kind.SLOT_LOST:
            node = str(event.data.get("node") or "")
            return _line(event, f"slot {event.slot} lost", f"on {node}" if node else "")
        case Kind.STUDY_INTERRUPTED:
            return _line(event, "the driver left", str(event.data.get("error") or "it was told to"))
    return _line(event, "resumed", "phases that were under way began again")


def why_of(event: Event, explain: Explain = reason_text) -> str:
    """Say why a verdict fell; of phases that a person asked for, of a confirmation, a clone or more, what is left."""
    if event.data.get("mode") != "extended":
        return why(event.data, explain)[:LONGEST]
    left = event.data.get("phases_left")
    return f"{so_many(left, 'phase')} left" if left else "ran all its phases"


def _answer(event: Event) -> dict[str, Any]:
    data = event.data
    accepted = bool(data.get("accepted"))
    by, action = data.get("by") or "person", str(data.get("action"))
    details = intervention_row(event)["data"]
    if details.pop("confirms", False):  # its configuration with a fresh seed
        action = "confirm"
        details.pop("config", None)
    asked = f"{by} asked to {action}: {'accepted' if accepted else 'refused'}"
    reason = ", ".join(f"{key} {_plain(value)}" for key, value in details.items()) if accepted else str(data.get("why"))
    if accepted and action in _REMARKED:
        asked, reason = f"{by} {_REMARKED[action]}", str(data.get("text") or data.get("tag"))
    line = _line(event, asked, reason)
    return {**line, "request": str(data.get("request") or ""), "accepted": accepted}


def _line(event: Event, what: str, reason: str) -> dict[str, Any]:
    line = {"list": list_of(event), "at": round(event.at, 2), "trial": event.trial, "phase": event.phase}
    return {**line, "what": what[:LONGEST], "why": reason[:LONGEST]}


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_plain(part)}" for key, part in value.items()) + "}"
    return setting(value)
