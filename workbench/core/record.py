"""What the log keeps of a study besides its events, and what of it is made again from there."""

import importlib.metadata
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from workbench.core.describe import build
from workbench.core.errors import WorkbenchError
from workbench.core.ledger import Ledger
from workbench.core.places import CHECKOUT
from workbench.core.protocols import BEGUN, Event, Kind
from workbench.core.registry import SCHEDULERS
from workbench.core.size import Size, size_of
from workbench.core.source import source_mark
from workbench.core.space import Space

PACKAGE = "rl-workbench"
SEARCHED_WITH = ("numpy", "scipy", "scikit-learn", "optuna", "smac", "ConfigSpace")
"""Packages that schedulers and searchers draw and decide with: others of their versions may do so otherwise."""
_PACKAGES = (PACKAGE, "torch", "ale-py", "gymnasium", "distributed", *SEARCHED_WITH)
RUN_SETTINGS = ("stall_s", "max_retries", "fail_fast", "weight", "gpus_per_slot")
"""Settings that may change when a study is resumed; kept with every start and resume."""


def provenance(nodes: int | None, **parts: Any) -> dict[str, Any]:
    """Say what a study runs on; kept with every start and resume.

    Parameters
    ----------
    nodes : int or None
        Of the local cluster.
    **parts
        The scheduler and the trainable, by these names; a mark of the code of each is kept.
    """
    words = [Path(sys.argv[0]).name, *sys.argv[1:]] if sys.argv and sys.argv[0] else []
    return {
        "unix": time.time(),
        "nodes": nodes,
        "python": platform.python_version(),
        "machine": platform.platform(),
        "argv": [word.encode("utf-8", "backslashreplace").decode() for word in words],  # it may hold bytes of no text
        "versions": versions(),
        "commit": commit(),
        "code": {part: source_mark(thing) for part, thing in parts.items()},
    }


def last_driver(events: Sequence[Event]) -> Mapping[str, Any]:
    """Give what a study's last driver said of itself when it began; nothing before there has been one."""
    return next((event.data for event in reversed(events) if event.kind in BEGUN), {})


def last_settings(events: Sequence[Event]) -> dict[str, Any]:
    """Give `RUN_SETTINGS`, and the nodes, of a study's last driver; nothing where its log is older than they are."""
    for event in reversed(events):
        if event.kind in BEGUN and "settings" in event.data:
            settings = event.data["settings"]
            return {"nodes": event.data.get("nodes")} | {key: settings[key] for key in RUN_SETTINGS if key in settings}
    return {}


def recorded_place(events: Sequence[Event]) -> str | None:
    """Give the place where a study's last driver had its checkpoints, if that is not beside the knowledge base."""
    place = last_driver(events).get("checkpoints")
    return place if isinstance(place, str) and place else None


def last_end(events: Sequence[Event]) -> Event:
    """Give how the search ended: drivers that only confirmed, and trials that confirm others, change nothing of it.

    One that has gone on since it last ended, and whose driver died, is interrupted.
    """
    confirming = {event.trial for event in events if event.kind is Kind.RUN and event.data.get("confirms")}
    end = None
    for event in reversed(events):
        if event.kind in (Kind.STUDY_ENDED, Kind.STUDY_INTERRUPTED):
            end = end or event
        elif event.kind in BEGUN:
            if end and not event.data.get("confirms"):
                break
            end = None
        elif event.kind is Kind.PHASE_STARTED and event.trial not in confirming:
            break
    return end or Event(Kind.STUDY_INTERRUPTED, 0.0)


def best_checkpoint(events: Sequence[Event], ledger: Ledger, trials: Iterable[int]) -> str | None:
    """Name the checkpoint of the best score of some trials; of equal ones of its trial the last, the one kept."""
    scores = {n: score for n in trials if (score := ledger.trials[n].best_score) is not None}
    best = max(scores, key=lambda n: ledger.aim.sign * scores[n], default=None)
    if best is None:
        return None
    ended = (e for e in reversed(events) if e.kind is Kind.PHASE_ENDED and e.trial == best)
    return next((e.data.get("checkpoint") for e in ended if e.data["score"] == scores[best]), None)


def started_from(ledger: Ledger) -> list[str]:
    """Name the checkpoints that trials start from, or may: each is to be kept while its own trial goes on.

    They are those of which trials start that are not over, and of trials that a person has extended what the scheduler
    knows of.
    """
    jobs = (ledger.job(number) for number, trial in ledger.trials.items() if not trial.state.over)
    starts = [job.checkpoint for job in jobs if job.keep]
    extended = [trial.heard[0] for trial in ledger.trials.values() if trial.own]
    return [name for name in dict.fromkeys([*starts, *extended]) if name is not None]


def has_checkpoints(events: Sequence[Event]) -> bool:
    """Tell whether a study has written any checkpoint."""
    return any(event.data.get("checkpoint") for event in events)


def versions() -> dict[str, str | None]:
    """Tell the versions of the packages that matter to what a study decides and measures."""
    return {name: version_of(name) for name in _PACKAGES}


@cache
def commit() -> str | None:
    """Tell which commit of the project runs, with a "+" where its files differ; ``None`` where it is no checkout."""
    if CHECKOUT is None:
        return None
    describe_it = ["git", "-C", str(CHECKOUT), "describe", "--always", "--exclude=*", "--abbrev=12", "--dirty=+"]
    try:
        return subprocess.run(describe_it, capture_output=True, text=True, timeout=30).stdout.strip() or None
    except (OSError, subprocess.SubprocessError):
        return None


def size_of_record(spec: Mapping[str, Any], told: Size | None = None) -> Size:
    """Tell a recorded study's size: as its log's first event has `told`, or by its scheduler, built again.

    Where the log does not tell, it is unknown if the scheduler or the space is not the workbench's alone.
    """
    if told is not None:
        return told
    try:
        return size_of(build("scheduler", spec["scheduler"], SCHEDULERS))
    except (WorkbenchError, KeyError, TypeError):
        return Size()


def own_classes(spec: Mapping[str, Any]) -> list[str]:
    """Name the classes in a record that are not the workbench's: only who has them can make them again."""
    if isinstance(spec, Mapping):
        kind = spec.get("kind")
        mine = [kind] if isinstance(kind, str) and ":" in kind else []
        return mine + [name for value in spec.values() for name in own_classes(value)]
    return [name for value in spec for name in own_classes(value)] if isinstance(spec, list) else []


def is_made_by_name(spec: Mapping[str, Any]) -> bool:
    """Tell whether a record alone makes a study again, once what it trains is named: no other code of one's own is."""
    trainable = spec["trainable"]
    return own_classes(trainable) in ([], [trainable["kind"]]) and not own_classes({**spec, "trainable": {}})


def space_of_record(spec: Mapping[str, Any]) -> Space | None:
    """Find a recorded study's space, without its constraint; ``None`` where there is none that can be read."""
    holder = spec.get("scheduler")
    while isinstance(holder, Mapping) and not holder.get("space"):  # it runs another's trials, or has them drawn for it
        holder = holder.get("scheduler", holder.get("searcher"))
    try:
        return Space.from_json({name: entry for name, entry in holder["space"].items() if "kind" not in entry})  # type: ignore[index]
    except (WorkbenchError, TypeError, AttributeError):
        return None


def version_of(package: str) -> str | None:
    """Tell which version of a package was installed when this process first found it; ``None`` if none is."""
    try:
        return _found(package)
    except importlib.metadata.PackageNotFoundError:
        return None


@cache  # the whole description of a package is read for it, and what has been imported stays as it is
def _found(package: str) -> str:
    return importlib.metadata.version(package)
