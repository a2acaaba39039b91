"""Events as a person would say them: the lines of the dashboard's lists."""

from collections.abc import Mapping
from typing import Any

from workbench.core.protocols import Event, Kind

_LONGEST = 500
_HANDLED = {"request", "action", "accepted", "why", "by"}


def why(decision: Mapping[str, Any]) -> str:
    """Write a decision's reason as a person would say it, from the log's data."""
    mode = decision.get("mode")
    if mode == "selecting" and decision.keys() >= {"rank", "threshold", "reported"}:
        kept = "<" if decision["verdict"] == "stop" else "≥"
        rank, threshold = f"{decision['rank']:.2f}", f"{decision['threshold']:.2f}"
        return f"selecting: rank {rank} {kept} {threshold} of {decision['reported']} reports"
    if mode == "collecting" and decision.keys() >= {"reported", "collecting_reports"}:
        return f"collecting: report {decision['reported']} of {decision['collecting_reports']:.4g}"
    if mode in ("finished", "failed"):
        return "ran all its phases" if mode == "finished" else "no attempt left"
    rest = ", ".join(f"{key} {value}" for key, value in decision.items() if key not in ("verdict", "mode"))
    return ": ".join(part for part in (str(mode or ""), rest) if part)


def line_of(event: Event) -> dict[str, Any] | None:
    """Write an event as a line of a list; ``None`` for those that go without saying.

    Returns
    -------
    dict or None
        ``list``: "decisions" (verdicts, and what people asked) or "troubles" (crashes, hangs, lost slots); ``at``
        (seconds), ``trial``, ``phase`` (or None), ``what``, ``why``; of an answer to a person also its ``request``.
    """
    match event.kind:
        case Kind.DECISION:
            return _line(event, "decisions", str(event.data["verdict"]), why(event.data))
        case Kind.INTERVENTION:
            return _answer(event)
        case Kind.PHASE_FAILED | Kind.TRIAL_FAILED:
            what = "attempt lost" if event.kind is Kind.PHASE_FAILED else "failed"
            told = [str(event.data.get(key) or "") for key in ("why", "error")]
            return _line(event, "troubles", what, ": ".join(part for part in told if part))
        case Kind.SLOT_LOST:
            node = str(event.data.get("node") or "")
            return _line(event, "troubles", f"slot {event.slot} lost", f"on {node}" if node else "")
        case Kind.STUDY_INTERRUPTED:
            return _line(event, "troubles", "the driver left", str(event.data.get("error") or "it was told to"))
        case Kind.STUDY_RESUMED:
            return _line(event, "troubles", "resumed", "phases that were under way began again")
    return None


def _answer(event: Event) -> dict[str, Any]:
    data = event.data
    accepted = bool(data.get("accepted"))
    told = {key: value for key, value in data.items() if key not in _HANDLED}
    reason = ", ".join(f"{key} {_plain(value)}" for key, value in told.items()) if accepted else str(data.get("why"))
    what = f"{data.get('by') or 'person'} asked to {data.get('action')}: {'accepted' if accepted else 'refused'}"
    line = _line(event, "decisions", what, reason)
    return {**line, "request": str(data.get("request") or ""), "accepted": accepted}


def _line(event: Event, where: str, what: str, reason: str) -> dict[str, Any]:
    line = {"list": where, "at": round(event.at, 1), "trial": event.trial, "phase": event.phase}
    return {**line, "what": what[:_LONGEST], "why": reason[:_LONGEST]}


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_plain(part)}" for key, part in value.items()) + "}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
