"""A study taken up again: what is given held against what its log keeps."""

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass, replace
from typing import Any

from workbench.core.describe import Settings, build, describe
from workbench.core.drive import replay
from workbench.core.errors import SchedulerError, StudyError, WorkbenchError
from workbench.core.ledger import Ledger
from workbench.core.protocols import Event, Kind, Scheduler
from workbench.core.record import PACKAGE, SEARCHED_WITH, last_driver, own_classes, versions
from workbench.core.registry import REGISTRY
from workbench.core.source import source_mark


def take_up(
    name: str, scheduler: Scheduler, given: Mapping[str, Any], recorded: Mapping[str, Any], past: Sequence[Event]
) -> tuple[Scheduler, Ledger, int | None]:
    """Bring a fresh scheduler to where a study's log ends.

    It is the one given, or one made of its settings where `n_trials` has been raised since the study began: the log is
    answered with the number it was recorded with, raised where it was. What is to be raised now is the third answer.

    Parameters
    ----------
    name : str
        The study.
    scheduler : Scheduler
        A fresh one.
    given, recorded : Mapping
        What is to go on, and what was begun; each as `Study.spec`.
    past : sequence of Event

    Raises
    ------
    StudyError
        A setting differs from what the study was begun with, one that is new since from its default; or the space is
        in another order.
    SchedulerError
        The scheduler does not answer as the log says; the message says why, as far as the record tells.
    """
    refuse_another(name, given, recorded)
    _check_order(name, _orders(given), _orders(recorded))
    try:
        scheduler, wanted = _as_begun(name, scheduler, recorded, past)
        ledger = replay(scheduler, past)
    except SchedulerError as err:
        raise SchedulerError(_why_it_differs(name, recorded, past, scheduler, err)) from None
    if wanted is not None:
        if len(ledger) and max(ledger.trials) >= scheduler.n_trials:
            raise StudyError(
                f"study {name!r} has clones or fresh seeds under the numbers from {scheduler.n_trials} on, where its "
                "scheduler's further trials would stand: start another study, with warm_start(searcher, db, name)"
            )
        scheduler.grow(wanted)  # type: ignore[attr-defined]
    return scheduler, ledger, wanted


def _as_begun(
    name: str, scheduler: Scheduler, recorded: Mapping[str, Any], past: Sequence[Event]
) -> tuple[Scheduler, int | None]:
    """Give the scheduler with the `n_trials` its study began with, and the number it is to be raised to, if any."""
    begun, given = recorded["scheduler"].get("n_trials"), getattr(scheduler, "n_trials", None)
    if not isinstance(begun, int) or given == begun:
        return scheduler, None
    if not callable(getattr(scheduler, "grow", None)) or not is_dataclass(scheduler):
        raise StudyError(
            f"study {name!r} was started with n_trials = {begun}, which {type(scheduler).__name__} cannot "
            "raise: resume it as it was, or start another study, with warm_start(searcher, db, name)"
        )
    now = check_raised(name, given, begun, past)
    as_begun: Scheduler = replace(scheduler, n_trials=begun)
    return as_begun, given if given > now else None


def check_raised(name: str, given: int, begun: int, past: Sequence[Event]) -> int:
    """Tell how many trials a study has that was begun with `begun` of them, and refuse to give it fewer."""
    now: int = max(begun, *(e.data.get("n_trials", 0) for e in past if e.kind is Kind.STUDY_RESUMED), 0)
    if given < now:
        raise StudyError(f"study {name!r} has n_trials = {now}, not {given}: it can only be raised")
    return now


def warn_of_new_code(name: str, past: Sequence[Event], now: Mapping[str, Any]) -> None:
    """Warn if the code of a study is not what its last driver ran; `now` is the `provenance` of this one."""
    last = last_driver(past)
    before, code = last.get("code", {}), now["code"]
    changed = [part for part in code if before.get(part) and code[part] and before[part] != code[part]]
    was, here = last.get("versions", {}).get(PACKAGE), now["versions"][PACKAGE]
    other = f" ({PACKAGE} {was} then, {here} now)" if was not in (None, here) else ""
    if changed or other:
        what = f"the code of its {' and '.join(changed)}" if changed else "the workbench"
        said = (
            f"study {name!r}: {what} has changed since it was last driven{other}; phases from now on run the new code"
        )
        warnings.warn(said, stacklevel=2)


def refuse_another(name: str, given: Mapping[str, Any], recorded: Mapping[str, Any]) -> None:
    """Refuse to go on with another study than was recorded; whether it may have more trials is asked later.

    Settings that there were not when it was recorded stood at their defaults, then as now. Of code of one's own that
    is new since, which is warned of, defaults are taken as they are.
    """
    for key in sorted(recorded):
        if found := _difference(key, _meant(key, recorded[key]), given.get(key), may_differ=("n_trials",)):
            where, was, differs = found
            raise StudyError(
                f"study {name!r} was started with {where} = {_told(was)}, not {_told(differs)}: resume it as it was, "
                "or start another study"
            )


def _told(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _difference(where: str, recorded: Any, given: Any, may_differ: Sequence[str] = ()) -> tuple[str, Any, Any] | None:
    """Give the first setting that differs: where it stands, what was recorded and what is given; None if none does.

    One of which nothing is recorded, and that is as the code has it, is none (`Settings.usual`).
    """
    parts: Iterable[tuple[str, Any, Any]]
    if isinstance(recorded, dict) and isinstance(given, dict):
        if "kind" not in recorded and recorded.keys() != given.keys():
            return where, recorded, given
        passed = {*may_differ, *(given.usual - recorded.keys() if isinstance(given, Settings) else ())}
        if given.get("n_nodes", 0) is None:  # it rests on none; the number of before may stand in its record
            passed.add("n_nodes")
        names = [key for key in {**recorded, **given} if key not in passed]
        of_kinds = sorted(names, key=lambda key: key != "kind")  # of two kinds the kinds are what is told
        parts = ((f"{where}.{key}", recorded.get(key), given.get(key)) for key in of_kinds)
    elif isinstance(recorded, list) and isinstance(given, list) and len(recorded) == len(given):
        parts = ((f"{where}[{n}]", *both) for n, both in enumerate(zip(recorded, given, strict=True)))
    else:
        alike = recorded == given and isinstance(recorded, bool) == isinstance(given, bool)  # 1 is not true
        alike = alike or (recorded != recorded and given != given)  # NaN is not NaN
        return None if alike else (where, recorded, given)
    return next((found for part in parts if (found := _difference(*part))), None)


def _meant(what: str, recorded: Any) -> Any:
    """Give what is recorded with all the settings there are by now, as far as it is of the workbench's own kinds."""
    try:
        return json.loads(json.dumps(describe(build(what, recorded, REGISTRY))))
    except (WorkbenchError, KeyError, TypeError):
        return recorded


def _orders(described: Any) -> list[tuple[str, ...]]:
    """Give the names of every space in a description, in order."""
    return [tuple(space) for space in _spaces(described)]


def _spaces(described: Any) -> Iterator[Mapping[str, Any]]:
    for key, value in described.items() if isinstance(described, Mapping) else ():
        if key == "space" and isinstance(value, Mapping):
            yield value
        else:
            yield from _spaces(value)


def _check_order(name: str, given: list[tuple[str, ...]], recorded: list[tuple[str, ...]]) -> None:
    for now, then in zip(given, recorded, strict=False):
        if now != then:
            raise StudyError(
                f"study {name!r} draws its hyperparameters in the order {', '.join(then)}; a space in the order "
                f"{', '.join(now)} draws other configurations: write it in that order, or start another study"
            )


def _why_it_differs(
    name: str, recorded: Mapping[str, Any], past: Sequence[Event], scheduler: Scheduler, err: SchedulerError
) -> str:
    """Say why a log does not fit its scheduler, as far as the marks of the code tell."""
    kind = type(scheduler).__name__
    begun = next((e.data for e in past if e.kind is Kind.STUDY_STARTED), {})
    known, here = begun.get("versions", {}), versions()
    was, now = known.get(PACKAGE) or "of an unknown version", here[PACKAGE]
    then, mark = begun.get("code", {}).get("scheduler"), source_mark(scheduler)
    if mine := own_classes({"scheduler": recorded.get("scheduler", {})}):
        cause = (
            f"was recorded with another {' or '.join(mine)}: its code has changed, or it does not answer alike twice"
        )
        cure = "resume it with the code that recorded it"
    elif then is not None and then == mark and was == now and (others := _others(known, here)):
        cause = f"was recorded with {', '.join(others)}: another version may draw or decide otherwise"
        cure = "resume it with the version that recorded it"
    elif then is not None and then == mark and was == now:
        cause = f"does not fit what {kind} answers, though its code is that which recorded it: the log was altered"
        cure = "restore it from a backup"
    else:
        marks = "" if then is None else f", code {then}; here {now}, code {mark}"
        cause = f"was recorded by another version of {kind} ({PACKAGE} {was}{marks}), whose rule was corrected since"
        cure = f"resume it with the {PACKAGE} that recorded it"
    return f"study {name!r} {cause}: start another study, or {cure} ({err})"


def _others(known: Mapping[str, str | None], here: Mapping[str, str | None]) -> list[str]:
    """Name the packages that a scheduler may rest on of which other versions are here than were recorded."""
    return [
        f"{name} {known[name]} (here {here[name] or 'there is none'})"
        for name in SEARCHED_WITH
        if known.get(name) and known[name] != here[name]
    ]
