"""Recorded learning curves in a table, checked row by row, and the phase model that gives them back."""

import hashlib
import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from workbench.core.domains import scalar
from workbench.core.errors import InvalidInput, SchedulerError, first_line, unknown
from workbench.core.protocols import Config
from workbench.core.showing import so_many
from workbench.core.space import CONFIG_ID

NEEDED = (CONFIG_ID, "seed", "step", "score")
"""Columns every table has; one of `TIMES` may be there too, any other is a hyperparameter or, if not, is left out."""

TIMES = ("wall_s", "duration")
"""Seconds since the run began, or those of the step alone."""

_ROW: Any = -1  # what numbers the rows is called, for a file may call any column of its own "row"


@dataclass(frozen=True)
class CurveTable:
    """Curves of equal length, one for every configuration and seed.

    Attributes
    ----------
    configs : list of dict
        One a configuration: ``config_id`` and its hyperparameters.
    seeds : list
    steps : array of float, shape [phases]
    scores : array of float, shape [configs, seeds, phases]
    durations : array of float, shape [configs, seeds, phases]
        From one of `TIMES`; without them proportional to the steps, their mean being 1.
    """

    configs: list[dict[str, Any]]
    seeds: list[Any]
    steps: npt.NDArray[np.float64]
    scores: npt.NDArray[np.float64]
    durations: npt.NDArray[np.float64]

    @property
    def n_phases(self) -> int:
        """Steps of a curve; each is a phase."""
        return len(self.steps)

    def row(self, config: Config) -> int:
        """Find the row of a configuration, by ``config_id``, or say why it has none."""
        if CONFIG_ID not in config:
            raise SchedulerError(
                f"a table has curves of its own configurations alone, each with its config_id, and was asked for that "
                f"of {dict(config)}: take the searcher 'shuffled' or 'list', or curves of kind 'synthetic'"
            )
        if config[CONFIG_ID] not in self._row_of:
            raise SchedulerError(f"the table has no curve of config_id {config[CONFIG_ID]!r}")
        return self._row_of[config[CONFIG_ID]]

    @cached_property
    def _row_of(self) -> dict[Any, int]:
        return {config[CONFIG_ID]: row for row, config in enumerate(self.configs)}

    def redrawn(self, seed: int) -> "CurveTable":
        """Draw as many configurations from these, with replacement: what repetitions of them cannot tell of others."""
        rows = np.random.default_rng([seed, 4]).integers(len(self.configs), size=len(self.configs))
        configs = [{**self.configs[row], CONFIG_ID: number} for number, row in enumerate(rows)]
        return replace(self, configs=configs, scores=self.scores[rows], durations=self.durations[rows])


@dataclass
class TableCurves:
    """The phase model of a table: a configuration's curve under one of the recorded seeds.

    Which seed a configuration gets depends on `seed` and the configuration alone. A table knows nothing of weights
    copied between trials: a trial that takes over a parent's still follows its own configuration's curve.
    """

    table: CurveTable
    seed: int = 0
    _curves: dict[Any, list[tuple[float, float]]] = field(init=False, default_factory=dict, repr=False)

    def phase(self, trial: int, phase: int, config: Config, seed: int) -> tuple[float, float]:
        """Give the recorded duration and score."""
        config_id = config.get(CONFIG_ID)
        curve = self._curves.get(config_id)
        if curve is None:
            curve = self._curves[config_id] = self._curve(config)
        if phase >= len(curve):
            raise SchedulerError(f"phase {phase} was asked for, the table's curves have {so_many(len(curve), 'step')}")
        return curve[phase]

    def _curve(self, config: Config) -> list[tuple[float, float]]:
        row = self.table.row(config)
        digest = hashlib.blake2b(f"{self.seed}/{config[CONFIG_ID]}".encode(), digest_size=8).digest()
        pick = int.from_bytes(digest) % len(self.table.seeds)
        return list(zip(self.table.durations[row, pick].tolist(), self.table.scores[row, pick].tolist(), strict=True))


def read_table(
    path: str | Path,
    configs: str | Path | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    only: Mapping[str, str] | None = None,
) -> CurveTable:
    """Read and check a table of learning curves.

    Parameters
    ----------
    path : path
        CSV or Parquet, one row a configuration, seed and step. Columns that change within most curves, such as a loss,
        are left out, with a warning: they are no hyperparameters.
    configs : path, optional
        A second table with the hyperparameters, one row a ``config_id``.
    columns : Mapping, optional
        What the table, or that of `configs`, calls a column named otherwise here: ``{"score": "return"}``.
    only : Mapping, optional
        Rows to keep: column → value; such a column is dropped, unless every table has it.

    Raises
    ------
    InvalidInput
        The first thing that is wrong, with its row (the first row under the header is row 1).
    """
    name, columns, given = Path(path).name, columns or {}, _read(path)
    second = pd.DataFrame() if configs is None else _read(configs)
    frame = _renamed(given, columns, name, second.columns)
    frame.insert(0, _ROW, np.arange(1, len(frame) + 1))
    frame = _kept(frame, only or {}, name)
    for column in NEEDED:
        _check_there(frame, column, name)
    metrics = _metrics(frame)
    _check_filled(frame.drop(columns=metrics), name)
    times = _times(frame, name)
    for column in ("step", "score", *times):
        _check_numbers(frame, column, name)
    hyperparameters = [c for c in frame.columns if c not in (*NEEDED, _ROW, *times, *metrics)]
    _check_order(frame, times, name)
    _check_constant(frame, hyperparameters, name)
    _check_complete(frame, name)
    known = frame.drop_duplicates(CONFIG_ID)[[CONFIG_ID, *hyperparameters]]
    if configs is not None:
        other = Path(configs).name
        known = _joined(frame, known, _renamed(second, columns, other, given.columns), other)
    if metrics:
        said = f"{name}: left out as no hyperparameters, for they change within curves: {', '.join(metrics)}"
        warnings.warn(said, stacklevel=2)
    return _table(frame, known, times)


def _table(frame: pd.DataFrame, known: pd.DataFrame, times: Sequence[str]) -> CurveTable:
    ids, seeds = list(known[CONFIG_ID]), sorted(frame["seed"].unique())
    steps = np.sort(frame["step"].unique()).astype(float)
    # of a column of categories as Parquet may have it, which by itself is sorted as these lie
    places = [
        frame[column].map({value: place for place, value in enumerate(values)}).astype(int)
        for column, values in ((CONFIG_ID, ids), ("seed", seeds))
    ]
    ordered = frame.iloc[np.lexsort([frame["step"], *reversed(places)])]
    shape = (len(ids), len(seeds), len(steps))
    scores = ordered["score"].to_numpy(float).reshape(shape)
    if times:
        durations = ordered[times[0]].to_numpy(float).reshape(shape)
        durations = np.diff(durations, prepend=0.0) if times[0] == "wall_s" else durations
    else:
        stretches = np.diff(steps, prepend=0.0)
        durations = np.broadcast_to(stretches / stretches.mean(), shape)
    configs = [{str(k): scalar(v) for k, v in row.items()} for row in known.to_dict("records")]
    return CurveTable(configs, [scalar(s) for s in seeds], steps, scores, durations)


def _read(path: str | Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path) if Path(path).suffix in (".parquet", ".pq") else pd.read_csv(path, comment="#")
    except FileNotFoundError:  # pyarrow's says the path alone
        raise InvalidInput(f"cannot read the table {path}: no such file") from None
    except (OSError, ValueError) as err:  # pandas' and pyarrow's own errors are ValueErrors
        reason = err.strerror if isinstance(err, OSError) and err.strerror else first_line(err)
        raise InvalidInput(f"cannot read the table {path}: {reason}") from None


def _renamed(frame: pd.DataFrame, columns: Mapping[str, str], name: str, of_other: Collection[Any]) -> pd.DataFrame:
    """Name columns as they are called here, but for those that the other table alone has."""
    columns = {wanted: called for wanted, called in columns.items() if called in frame or called not in of_other}
    for wanted, called in columns.items():
        if called not in frame:
            raise unknown(f"column of {name}", called, map(str, frame.columns))
        if wanted in frame:
            raise InvalidInput(f"{name} has a column {wanted!r} already: {called!r} cannot stand for it")
    return frame.rename(columns={called: wanted for wanted, called in columns.items()})


def _check_there(frame: pd.DataFrame, column: str, name: str) -> None:
    if column not in frame:
        others = ", ".join(str(c) for c in frame.columns if c != _ROW)
        raise InvalidInput(f"{name} has no column {column!r}, only {others}: map one with columns={{{column!r}: …}}")


def _metrics(frame: pd.DataFrame) -> list[str]:
    """Name the columns that change within most curves: they are neither hyperparameters nor tasks.

    In what changes within few a row may be wrong, which has to be said.
    """
    curves = frame.groupby([CONFIG_ID, "seed"], sort=False, observed=True)
    others = [column for column in frame.columns if column not in (*NEEDED, *TIMES, _ROW)]
    return [column for column in others if (curves[column].nunique() > 1).mean() > 0.5]


def _first(frame: pd.DataFrame, bad: npt.NDArray[np.bool_]) -> dict[Any, Any]:
    """Give the first bad row, each value as its column has it: of numbers alone a row has nothing but floats."""
    return frame[bad].head(1).to_dict("records")[0]


def _kept(frame: pd.DataFrame, only: Mapping[str, str], name: str) -> pd.DataFrame:
    for column, value in ((column, str(value)) for column, value in only.items()):  # a file may say 0 for "0"
        if column not in frame:
            raise unknown(f"column of {name}", column, (c for c in frame.columns if c != _ROW))
        texts = frame[column].astype(str)
        if value not in set(texts):
            raise unknown(f"value of {column} in {name}", value, set(texts))
        frame = frame[texts == value]
        frame = frame if column in NEEDED else frame.drop(columns=column)
    if frame.empty:
        raise InvalidInput(f"{name} has no rows")
    return frame


def _times(frame: pd.DataFrame, name: str) -> list[str]:
    """Name the column of seconds, if there is one."""
    times = [column for column in TIMES if column in frame]
    if len(times) > 1:
        raise InvalidInput(f"{name} has both {' and '.join(times)}: leave one out")
    return times


def _check_filled(frame: pd.DataFrame, name: str) -> None:
    empty = frame.isna()
    if empty.to_numpy().any():
        first = int(empty.any(axis=1).to_numpy().argmax())
        column = frame.columns[int(empty.iloc[first].to_numpy().argmax())]
        raise InvalidInput(f"{name}, row {frame[_ROW].iloc[first]}: {column!s} is missing")


def _check_numbers(frame: pd.DataFrame, column: str, name: str) -> None:
    numbers = pd.to_numeric(frame[column], errors="coerce")
    bad = ~np.isfinite(numbers.to_numpy(float))
    if bad.any():
        at = _first(frame, bad)
        raise InvalidInput(f"{name}, row {at[_ROW]}: {column} is {at[column]!r}, not a number")
    frame[column] = numbers


def _check_order(frame: pd.DataFrame, times: Sequence[str], name: str) -> None:
    """Within a curve the steps, and the seconds since it began, grow from row to row; no duration is 0."""
    for column in ("step", *times):
        before = frame.groupby([CONFIG_ID, "seed"], sort=False, observed=True)[column].shift()
        if column == "duration":
            before[:] = np.nan  # those of one step need not grow
        bad = (frame[column].to_numpy(float) <= 0) | (frame[column] <= before).to_numpy()
        if bad.any():
            at = _first(frame, bad)
            last: Any = before.iloc[int(bad.argmax())]
            reason = "is not above 0" if last != last else f"follows {last:g}: it must grow along a curve"
            hint = ""
            if column == "step" and last == last:
                hint = "; if the table holds several tasks, choose one with only={'env': …}"
            where = f"config_id {at[CONFIG_ID]}, seed {at['seed']}"
            raise InvalidInput(f"{name}, row {at[_ROW]} ({where}): {column} {at[column]:g} {reason}{hint}")


def _check_constant(frame: pd.DataFrame, hyperparameters: Sequence[str], name: str) -> None:
    for column in hyperparameters:
        first = frame.groupby(CONFIG_ID, sort=False, observed=True)[column].transform("first")
        bad = (frame[column].astype(object) != first.astype(object)).to_numpy()
        if bad.any():
            at = _first(frame, bad)
            raise InvalidInput(
                f"{name}, row {at[_ROW]}: {column} is {at[column]} for config_id {at[CONFIG_ID]}, which had "
                f"{first.iloc[int(bad.argmax())]} before; choose one value with only={{{column!r}: …}}"
            )


def _check_complete(frame: pd.DataFrame, name: str) -> None:
    """Every configuration has the same seeds, every curve the same steps."""
    curves = frame.groupby([CONFIG_ID, "seed"], sort=False, observed=True)
    last: Any = curves[_ROW].max()
    steps: dict[Any, Any] = curves["step"].agg(tuple).to_dict()
    usual = _most_common(steps)
    for curve, own in steps.items():
        if own != usual:
            row, (config, seed) = last[curve], curve
            raise InvalidInput(
                f"{name}, row {row}: the curve of config_id {config}, seed {seed} ends here with "
                f"{so_many(len(own), 'step')} ({own[0]:g} to {own[-1]:g}); the others have {len(usual)} "
                f"({usual[0]:g} to {usual[-1]:g})"
            )
    seeds: dict[Any, frozenset[Any]] = {}
    for config, seed in steps:
        seeds[config] = seeds.get(config, frozenset()) | {seed}
    usual = _most_common(seeds)
    for config, own in seeds.items():
        if own != usual:
            row = frame.loc[frame[CONFIG_ID] == config, _ROW].max()
            raise InvalidInput(
                f"{name}, row {row}: config_id {config} has the seeds {_listed(own)}, the others {_listed(usual)}"
            )


def _joined(frame: pd.DataFrame, known: pd.DataFrame, configs: pd.DataFrame, name: str) -> pd.DataFrame:
    """Add the hyperparameters of the second table."""
    _check_there(configs, CONFIG_ID, name)
    configs.insert(0, _ROW, np.arange(1, len(configs) + 1))
    _check_filled(configs, name)
    twice = configs[CONFIG_ID].duplicated()
    if twice.any():
        at = _first(configs, twice.to_numpy())
        raise InvalidInput(f"{name}, row {at[_ROW]}: config_id {at[CONFIG_ID]} stands there a second time")
    unlisted = ~frame[CONFIG_ID].isin(configs[CONFIG_ID])
    if unlisted.any():
        at = _first(frame, unlisted.to_numpy())
        raise InvalidInput(f"row {at[_ROW]} of the curves: config_id {at[CONFIG_ID]} is not in {name}")
    both = sorted((set(known.columns) & set(configs.columns)) - {CONFIG_ID})
    if both:
        raise InvalidInput(f"{name} and the curves both have a column {both[0]!r}")
    return known.merge(configs.drop(columns=_ROW), on=CONFIG_ID, how="left")


def _most_common(counted: Mapping[Any, Any]) -> Any:
    return Counter(counted.values()).most_common(1)[0][0]


def _listed(values: Collection[Any]) -> str:
    texts = [str(v) for v in sorted(values)]
    return ", ".join(texts if len(texts) <= 6 else [*texts[:5], "…", texts[-1]])
