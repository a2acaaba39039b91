"""What a log tells of trials, in the words of its writer, for studies that are worked by hand."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from workbench import Study
from workbench.core.protocols import Config, Event, Kind
from workbench.knowledge import KnowledgeBase, StudyLog


def runs(
    at: float, trial: int, config: Config, *, phase: int = 0, parent: int | None = None, seed: int = 0, **more: Any
) -> Event:
    """Tell of a trial that begins to run, or goes on."""
    return Event(Kind.RUN, at, trial, phase, data={"config": config, "parent": parent, "seed": seed, **more})


def begun(at: float, trial: int, phase: int, slot: int = 0) -> Event:
    return Event(Kind.PHASE_STARTED, at, trial, phase, slot)


def ended(at: float, trial: int, phase: int, slot: int, score: float, checkpoint: str = "", **metrics: float) -> Event:
    """Tell of a phase that ended with a score, with other metrics, and with a checkpoint if it has a name."""
    data = {"score": score, "metrics": {"score": score, **metrics}}
    return Event(Kind.PHASE_ENDED, at, trial, phase, slot, data | ({"checkpoint": checkpoint} if checkpoint else {}))


def judged(at: float, trial: int, phase: int, verdict: str, mode: str, **reason: Any) -> Event:
    return Event(Kind.DECISION, at, trial, phase, data={"verdict": verdict, "mode": mode, **reason})


def events_of(study: Study) -> list[Event]:
    """Read all that a study's log tells."""
    with KnowledgeBase(study.db) as kb:
        return kb[study.name].events()


def write_log(
    db: Path, name: str, events: Iterable[Event], spec: Mapping[str, Any] | None = None, *, resume: bool = False
) -> None:
    """Write a study, or go on with one, and let go of it."""
    log = StudyLog(db, name, spec or {}, resume=resume)
    log.append(list(events))
    log.close()
