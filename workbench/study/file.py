"""Studies written down: TOML files, the presets that come with the package, and the record in the log."""

import re
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from importlib import resources
from itertools import takewhile
from pathlib import Path
from typing import Any

from workbench.algos.search.informed import InformedSearcher
from workbench.core.checks import plain_seed
from workbench.core.describe import Registry, build, made, settings_of
from workbench.core.errors import InvalidInput, refuse_unknown, unknown
from workbench.core.imports import code_named, imported
from workbench.core.ledger import Ledger
from workbench.core.protocols import ranks_needed
from workbench.core.record import last_settings, own_classes
from workbench.core.registry import SCHEDULERS, SEARCHERS
from workbench.core.resume import check_raised
from workbench.core.space import Space
from workbench.core.toml import parsed, read_toml
from workbench.study.own import trainable_from, with_own
from workbench.study.study import Study, nodes_here

_STUDY_KEYS = {f.name for f in fields(Study)} - {"scheduler", "trainable", "client", "callbacks"}
_PRESETS: dict[str, Any] = {
    "study": resources.files("workbench") / "presets",
    "simulation": resources.files("workbench") / "presets" / "simulate",
}
_SENTENCE = re.compile(r".*?(?<!Ms)\.(?= [A-Z]|$)")
_TABLES = {"study", "space", "searcher", "first", "scheduler", "trainable"}


def presets(of: str = "study") -> list[str]:
    """Names of the files of studies, or of simulations, that come with the package."""
    return sorted(f.name.removesuffix(".toml") for f in _PRESETS[of].iterdir() if f.name.endswith(".toml"))


def presets_told(of: str = "study") -> str:
    """List the presets, a line each: its name, and what its file's comment says first."""
    said = {name: _first_sentence((_PRESETS[of] / f"{name}.toml").read_text("utf-8")) for name in presets(of)}
    width = max(map(len, said))
    return "\n".join(f"{name:{width}}  {words}" for name, words in said.items())


def _first_sentence(text: str) -> str:
    comment = " ".join(line[1:].strip() for line in takewhile(lambda line: line.startswith("#"), text.splitlines()))
    found = _SENTENCE.match(comment)
    return found[0] if found else comment


def read_preset(name: str, of: str = "study") -> dict[str, Any]:
    """Read a preset of a study, or of a simulation, as a table; its name is the file's."""
    table = _whole(_preset(name, of), of)
    table[of] = table.get(of, {}) | {"name": name}
    return table


def read_file(path: str | Path, of: str = "study") -> dict[str, Any]:
    """Read a study file, or one of a simulation, as a table."""
    return _whole(read_toml(path, f"{of} file"), of)


def _preset(name: str, of: str) -> dict[str, Any]:
    if name not in presets(of):
        if of == "study" and name in presets("simulation"):
            raise InvalidInput(f"preset {name!r} is of a simulation: workbench simulate takes it")
        if of == "simulation" and name in presets():
            raise InvalidInput(f"preset {name!r} is of a study: workbench run takes it")
        raise unknown("preset" if of == "study" else f"{of} preset", str(name), presets(of))
    return parsed((_PRESETS[of] / f"{name}.toml").read_bytes(), f"preset {name}")


def _whole(table: dict[str, Any], of: str) -> dict[str, Any]:
    """Fill in what a file leaves out, from the preset that it names as its ``base``, if it does.

    Settings are filled in table by table; a table that has a ``kind`` of its own, or a part that has one, takes none.
    """
    whole = _whole(_preset(table.pop("base"), of), of) if "base" in table else {}
    for key, part in table.items():
        parts = [part, *part.values()] if isinstance(part, dict) else []
        merged = parts and not any("kind" in p for p in parts if isinstance(p, dict))
        whole[key] = whole.get(key, {}) | part if merged else part
    return whole


def study_from(table: Mapping[str, Any], **overrides: Any) -> Study:
    """Build the study that a table describes.

    Parameters
    ----------
    table : Mapping
        Tables ``study``, ``space``, ``searcher``, ``scheduler`` and ``trainable``, as in a preset; ``[[first]]`` tables
        are configurations to try first.
    **overrides
        Settings of ``study`` that win over the table's, those that are not ``None``.

    Raises
    ------
    InvalidInput
        The first thing that is wrong, with its name.
    """
    refuse_unknown("table in a study file", table, _TABLES)
    overrides = {k: v for k, v in overrides.items() if v is not None}
    settings = {**_table(table, "study"), **overrides}
    refuse_unknown("setting of [study]", [*_table(table, "study"), *(overrides.keys() - {"client"})], _STUDY_KEYS)
    if "name" not in settings:
        raise InvalidInput('the study has no name: add name = "…" to [study], or pass name=…')
    seed = plain_seed(settings.get("seed", 0))
    described = {"kind": "random", **_table(table, "searcher", {})}
    trainable = trainable_from(_table(table, "trainable"))
    nodes = None
    if settings.get("client") is None:
        if "nodes" not in settings:  # those that are told count no GPUs
            settings["nodes"] = nodes_here(trainable, settings.get("gpus_per_slot"))
        nodes = settings["nodes"]
    n_slots = max(1, nodes // ranks_needed(trainable)) if isinstance(nodes, int) else nodes  # `Study` refuses the rest
    space = _space(table["space"]) if "space" in table else None
    searcher = _built("searcher", described, SEARCHERS, space=space, seed=seed)
    if "first" in table:
        if not isinstance(table["first"], list | tuple):
            raise InvalidInput(f"each configuration to try first is a table [[first]], got {table['first']!r}")
        searcher = made("the searcher", InformedSearcher, {"searcher": searcher, "first": table["first"]})
    rule = _table(table, "scheduler")
    if "searcher" in rule:
        raise InvalidInput(
            f"a searcher is a table of its own, [searcher], got one in [scheduler]: {rule['searcher']!r}"
        )
    given = {"seed": seed, "n_nodes": n_slots, "space": None if hasattr(searcher, "space") else space}
    scheduler = _built("scheduler", rule, SCHEDULERS, searcher=searcher, **given)
    study: Study = made("the study", Study, {"scheduler": scheduler, "trainable": trainable, **settings})
    return study


def recorded_study(db: str | Path, name: str, n_trials: int | None = None, **settings: Any) -> Study:
    """Build a study again that a knowledge base holds, to resume it by its name; with more trials by `n_trials`.

    Settings that are not given, the nodes of a local cluster among them, are those of its last driver.

    Raises
    ------
    DatabaseError, StudyError
        There is no such file, or no such study in it, or it has more trials than `n_trials`.
    InvalidInput
        As `study_from_record`; or its searcher has fewer configurations than `n_trials`.
    """
    from workbench.knowledge import KnowledgeBase

    with KnowledgeBase(db) as kb:
        spec, events = kb[name].spec, kb[name].events()
    if n_trials is not None and not _grows(spec["scheduler"]):
        kind = spec["scheduler"]["kind"]
        what = "several seeds of each configuration" if kind == "seeded" else kind
        raise InvalidInput(
            f"study {name!r} runs {what}, where n_trials cannot be raised: start another study, with "
            "warm_start(searcher, db, name)"
        )
    given = {key: value for key, value in settings.items() if value is not None}
    known = {**asdict(Ledger(events).aim), **last_settings(events)}
    if "client" in given:
        known.pop("nodes", None)  # its workers are the nodes
    study = study_from_record(name, spec, db=db, **{**known, **given})
    if n_trials is None:
        return study
    study = replace(study, scheduler=replace(study.scheduler, n_trials=n_trials))  # type: ignore[type-var]
    check_raised(name, n_trials, spec["scheduler"]["n_trials"], events)
    if (most := study.scheduler.n_trials) < n_trials:
        raise InvalidInput(
            f"study {name!r} can have {most} trials at most, for its searcher has no more configurations, "
            f"got n_trials = {n_trials}"
        )
    return study


def _grows(described: Mapping[str, Any]) -> bool:
    """Tell whether a recorded scheduler can have more trials; one of the user's own, which is refused anyway, may."""
    return bool(own_classes(described)) or callable(getattr(build("scheduler", described, SCHEDULERS), "grow", None))


def study_from_record(name: str, spec: Mapping[str, Any], trainable: str | None = None, **settings: Any) -> Study:
    """Build a study again from what the log keeps of it.

    Parameters
    ----------
    name : str
    spec : Mapping
    trainable : str, optional
        "module:name" of what is trained, if that is code of the user's own: a record never makes it be imported.
    **settings
        As of `Study`.

    Raises
    ------
    InvalidInput
        Its scheduler, searcher or trainable is not one of the workbench's, or a setting is an object of which the
        record has only the class: pass the objects to `Study` instead.
    """
    if spec.get("simulated"):
        raise InvalidInput(f"study {name!r} was simulated, and nothing trained that could go on: simulate it again")
    recorded = spec["trainable"]
    if trainable is None and (mine := own_classes(recorded)):
        nameable = mine == [recorded.get("kind")] and not mine[0].startswith("__main__:")
        there = f"name it, trainable={mine[0]!r}, or" if nameable else "resume it with its file, or"
        raise InvalidInput(
            f"study {name!r} runs {mine[0]}, code of your own, which a knowledge base alone makes none import: {there} "
            f"from Python, Study({name!r}, scheduler, trainable).run(resume=True)"
        )
    if lost := [key for key, value in recorded.items() if own_classes(value)]:
        raise InvalidInput(
            f"{lost[0]} of study {name!r} was an object that its record cannot make again: resume it with its file, or "
            f"from Python, Study({name!r}, scheduler, trainable, db=…).run(resume=True)"
        )
    if (named := code_named(recorded)) and trainable is None:
        raise InvalidInput(
            f"study {name!r} names code of {named[0]}, which a knowledge base alone makes none import: resume it with "
            f"its file, or from Python, after import {named[0]}"
        )
    if mine := own_classes(spec["scheduler"]):
        raise InvalidInput(
            f"study {name!r} runs {mine[0]}, code of your own, which its record cannot make again: resume it with "
            f"its study file, or from Python, Study({name!r}, scheduler, trainable, db=…).run(resume=True)"
        )
    scheduler = build("scheduler", spec["scheduler"], SCHEDULERS)
    factory = trainable_from(recorded if trainable is None else {**recorded, "kind": trainable})
    return Study(name, scheduler, factory, seed=spec["seed"], **{k: v for k, v in settings.items() if v is not None})


def _space(described: Any) -> Space:
    """Read a space, whose ``constraint`` may be "module:name": a file may name code of the user's own."""
    constraint = described.get("constraint") if isinstance(described, Mapping) else None
    if not isinstance(constraint, str):
        return Space.from_json(described)
    space = Space.from_json({name: entry for name, entry in described.items() if name != "constraint"})
    return Space(dict(space), space.only_if, imported(constraint))


def _built(what: str, described: Mapping[str, Any], registry: Registry, **given: Any) -> Any:
    """Build what is described; what other tables say fills in the settings it has and that are not its own."""
    ours = what == "searcher" and described.get("kind") in [*SEARCHERS]
    registry = with_own(described, registry)
    known = settings_of(what, described, registry)
    if ours and "space" in known and "space" not in described and given["space"] is None:
        raise InvalidInput(
            f"searcher {described['kind']!r} draws from a space: add a table [space], a domain for each name"
        )
    filled = {k: v for k, v in given.items() if k in known and k not in described and v is not None}
    return build(what, described, registry, **filled)


def _table(table: Mapping[str, Any], key: str, default: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    value = table.get(key, default)
    if not isinstance(value, Mapping):
        raise InvalidInput(
            f"a study file needs a table [{key}], got {value!r}: see workbench run --help for an example"
        )
    return value
