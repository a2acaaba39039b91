"""Where the learning curves of a simulation come from: drawn, or read from a table or a study."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from typing import Any

import pandas as pd

from workbench.core.checks import check_value, whole
from workbench.core.describe import made
from workbench.core.errors import InvalidInput, refuse_unknown, unknown
from workbench.core.failures import short
from workbench.core.places import located
from workbench.core.record import size_of_record
from workbench.core.space import Space
from workbench.simulation.curve_table import CurveTable, TableCurves, read_table
from workbench.simulation.executor import PhaseModel
from workbench.simulation.models import CostTable, ReplayedStudy, SyntheticCurves


@dataclass(frozen=True)
class CurveSource:
    """Where a scenario's curves come from, the same for all repetitions.

    Attributes
    ----------
    n_phases : int
        Phases of a full curve.
    configs : list of dict, or None
        All configurations there are; ``None``: they are drawn from a space.
    model : callable
        Seed of a repetition → its phase model.
    table : CurveTable, optional
        That the curves are read from.
    """

    n_phases: int
    configs: list[dict[str, Any]] | None
    model: Callable[[int], PhaseModel]
    table: CurveTable | None = None


def read_curves(described: Mapping[str, Any], space: Space | None) -> CurveSource:
    """Read and check the curves that a table ``curves`` describes: ``kind`` and settings."""
    settings = dict(described)
    kind = settings.pop("kind", None)
    if kind not in SOURCES:
        raise unknown("kind of [curves]", str(kind), SOURCES)
    make, allowed = SOURCES[kind]
    refuse_unknown(f"setting of {kind} curves", settings, allowed)
    if missing := [key for key, needed in allowed.items() if needed and key not in settings]:
        raise InvalidInput(f"{kind} curves need {', '.join(missing)}")
    curves: CurveSource = make(settings, space)
    return curves


def _synthetic(settings: dict[str, Any], space: Space | None) -> CurveSource:
    if space is None:
        raise InvalidInput("synthetic curves depend on hyperparameters: add a [space]")
    settings = {"name": settings.pop("family", "steady"), **settings}
    if "cost_table" in settings:
        by = settings.pop("cost_by", "t_max")
        path = _file("cost_table", settings.pop("cost_table"))
        settings["cost"] = _cost_table(path, by, _stamp(path))
    curves = CurveSource(settings["n_phases"], None, partial(_family, settings, space))
    curves.model(0)  # refuses bad settings now
    return curves


def _family(settings: dict[str, Any], space: Space, seed: int) -> PhaseModel:
    return made("[curves]", partial(SyntheticCurves.family, space=space, seed=seed), settings)  # type: ignore[no-any-return]


def _tabled(settings: dict[str, Any], space: Space | None) -> CurveSource:
    path, configs = _file("path", settings["path"]), settings.get("configs")
    configs = None if configs is None else _file("configs", configs)
    for key in ("columns", "only"):
        if not isinstance(table := settings.get(key, {}), Mapping):
            raise InvalidInput(f"{key} of [curves] is a table, got {table!r}")
    columns, only = (tuple(sorted(settings.get(key, {}).items())) for key in ("columns", "only"))
    table = _read_table(path, configs, columns, only, (_stamp(path), _stamp(configs)))
    if (redraw := settings.get("redraw")) is not None:
        check_value(table, whole(0), "redraw", redraw)
        table = table.redrawn(redraw)
    return CurveSource(table.n_phases, table.configs, partial(TableCurves, table), table)


def _study(settings: dict[str, Any], space: Space | None) -> CurveSource:
    from workbench.analysis import searching
    from workbench.knowledge import KnowledgeBase

    with KnowledgeBase(settings["db"]) as kb:
        recorded = kb[settings["name"]]
        frames, spec = recorded.frames(), recorded.spec
    phases = frames.phases.assign(score=frames.aim.sign * frames.phases["score"])  # simulated schedulers maximise
    if (most := size_of_record(spec, frames.size).n_phases) is not None:
        phases = phases[phases["phase"] < most]  # further ones were added by a person, to some trials
    trials = searching(frames.trials).sort_values(["phases", "trial"], ascending=[False, True])
    trials = trials.drop_duplicates("candidate")  # of a configuration's seeds the one that ran furthest
    study = ReplayedStudy(trials, phases, frames.hyperparameters, settings["name"])
    decided = zip(frames.decisions["trial"], frames.decisions["reason"], strict=True)
    again = {trial for trial, reason in decided if "repeats" in reason}  # survivors that ran a rung anew
    configs = [one for one, trial in zip(study.configs, sorted(trials["trial"]), strict=True) if trial not in again]
    return CurveSource(study.n_phases, configs, partial(_same, study))


def _same(model: PhaseModel, seed: int) -> PhaseModel:
    """Give curves that are the same in every repetition."""
    return model


_SYNTHETIC = [f.name for f in fields(SyntheticCurves) if f.init and f.name not in ("space", "n_phases", "cost", "seed")]
SOURCES: Mapping[str, tuple[Any, Mapping[str, bool]]] = {  # kind → builder, settings and whether they are needed
    "synthetic": (
        _synthetic,
        {"n_phases": True, **dict.fromkeys((*_SYNTHETIC, "family", "cost_table", "cost_by"), False)},
    ),
    "table": (_tabled, {"path": True, "configs": False, "columns": False, "only": False, "redraw": False}),
    "study": (_study, {"db": True, "name": True}),
}


def _file(key: str, given: object) -> str:
    """Find the file that a setting names."""
    if isinstance(given, pd.DataFrame):
        raise InvalidInput(f"{key} of [curves] names a file, got a DataFrame: df.to_parquet('curves.parquet') first")
    if not isinstance(given, str | os.PathLike):
        raise InvalidInput(f"{key} of [curves] names a file, got {short(given)}")
    return str(located(os.fspath(given)))


def _stamp(path: str | None) -> tuple[int, int] | None:
    """Tell a file from what it was before it was written anew; ``None`` where there is none."""
    try:
        state = os.stat(path or "")
    except (OSError, ValueError):  # whoever reads it says so
        return None
    return state.st_mtime_ns, state.st_size


@lru_cache(maxsize=4)
def _read_table(path: str, configs: str | None, columns: Any, only: Any, stamps: Any) -> CurveTable:
    return read_table(path, configs, columns=dict(columns), only=dict(only))


@lru_cache(maxsize=4)
def _cost_table(path: str, by: str, stamp: Any) -> CostTable:
    return CostTable.read(path, by)
