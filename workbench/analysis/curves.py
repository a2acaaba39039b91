"""Learning curves: every score a trial ever reported, against time and against what it had used by then."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from workbench.core.aim import sign_of

Floats = npt.NDArray[np.float64]

CURVES = ["trial", "phase", "at_s", "x", "score", "phase_end"]
BEST = ["at_s", "best_score", "trial", "phase"]


def learning_curves(
    phases: pd.DataFrame,
    metrics: pd.DataFrame,
    x: str = "seconds",
    *,
    trials: pd.DataFrame | None = None,
    score: str = "score",
    per_phase: bool = False,
) -> pd.DataFrame:
    """Put the scores inside phases and those at their ends on one axis.

    Where a trial began with another's weights, as under PBT, its curve goes on from where that one's stood when they
    were copied: it is the weights that were trained for so long.

    Parameters
    ----------
    phases, metrics : DataFrame
        As in `workbench.knowledge.Frames`; without metrics the curves have one point a phase.
    x : str
        "seconds": the time the trial has trained, s; waiting for a slot, at a barrier or after a crash is left out, and
        so is the start of a worker (`training_began`).
        "clock": the study's clock, s. Any other name: the metric of that name logged with the score, "frames" for
        example; points without it are left out.
    trials : DataFrame, optional
        As in `workbench.knowledge.Frames`: tells whose weights a trial began with. Without it every curve counts from
        the trial's own beginning.
    score : str
        Name of the metric drawn inside phases.
    per_phase : bool
        Whether the metric `x` counts anew in every phase and is to be summed over them. The counters that the trials of
        this package report ("frames", "steps", "updates", "episodes") go on from phase to phase, and with the weights.

    Returns
    -------
    DataFrame
        One row a point, by trial and then time: trial; phase; at_s (study's clock, s); x (seconds or the metric's
        unit); score; phase_end (whether it is the phase's final score). What a lost attempt had reported is left out.
    """
    begun = phases[["trial", "phase", "started_s", "ended_s"]].astype(float)
    begun["began_s"] = training_began(begun, metrics)
    points = pd.concat([_inner_points(begun, metrics, score), _phase_ends(phases)], ignore_index=True)
    points = points.drop_duplicates(["trial", "phase", "at_s"], keep="last")
    points = points.merge(begun[["trial", "phase", "began_s"]], on=["trial", "phase"])
    if x == "clock":
        points["x"] = points["at_s"]
    elif x == "seconds":
        spent = begun.assign(spent=begun["ended_s"] - begun["began_s"])
        points["x"] = points["at_s"] - points["began_s"] + _before(spent, points, trials)
    else:
        points = _with_metric(points, phases, metrics, x)
        if per_phase:
            most = points.groupby(["trial", "phase"])["x"].max().rename("spent").reset_index()
            points["x"] += _before(most, points, trials)
    points = points.sort_values(["trial", "at_s"], kind="stable", ignore_index=True)
    return points[CURVES].astype({"trial": int, "phase": int, "phase_end": bool})


def best_so_far(phases: pd.DataFrame, mode: str = "max") -> pd.DataFrame:
    """Follow the best score reported at a phase's end: the highest, or with `mode` ``min`` the lowest.

    Returns
    -------
    DataFrame
        One row an improvement, in time: at_s (study's clock, s), best_score, trial, phase.
    """
    ended = phases[phases["ended_s"].notna() & phases["score"].notna()]
    ended = ended.astype({"ended_s": float, "score": float}).sort_values("ended_s", kind="stable")
    better = ended[~(sign_of(mode) * ended["score"]).cummax().duplicated()]
    renamed = better.rename(columns={"ended_s": "at_s", "score": "best_score"})
    return renamed[BEST].reset_index(drop=True)


def training_began(phases: pd.DataFrame, metrics: pd.DataFrame) -> pd.Series:
    """Tell when training began in each phase, by all that it reported; see `began_by_reports`.

    The end of a phase, at which its metrics are kept as well, is no report: it may come long or shortly after the only
    one.

    Parameters
    ----------
    phases, metrics : DataFrame
        As in `workbench.knowledge.Frames`.

    Returns
    -------
    Series
        Seconds on the study's clock, in the order of `phases`; of a phase with fewer than two reports its start.
    """
    started = phases[["trial", "phase", "started_s", "ended_s"]].astype(float)
    placed = started.assign(attempt=np.arange(len(started)))
    reports = metrics[["trial", "phase", "at_s"]].astype(float).merge(placed, on=["trial", "phase"])
    inside = (reports["at_s"] >= reports["started_s"]) & ~(reports["at_s"] >= reports["ended_s"])
    of, at = reports.loc[inside, "attempt"].to_numpy(int), reports.loc[inside, "at_s"].to_numpy()
    began = began_by_reports(of, at, started["started_s"].to_numpy())
    return started["started_s"].where(np.isnan(began), began)


def began_by_reports(attempt: npt.NDArray[np.integer], at_s: Floats, started_s: Floats) -> Floats:
    """Tell when training began in attempts at phases: one interval between reports before the first report.

    What lies before it is the start of the worker: importing, building the environments, loading a checkpoint.

    Parameters
    ----------
    attempt : int array, shape [m]
        Whose each report is, as an index into `started_s`; several at one instant are one report.
    at_s : float array, shape [m]
        When it came, on the study's clock.
    started_s : float array, shape [n]
        When the attempts were put on a slot: training began no earlier.

    Returns
    -------
    float array, shape [n]
        Seconds on the study's clock; NaN of an attempt with fewer than two reports.
    """
    order = np.lexsort((at_s, attempt))
    of, at = attempt[order], at_s[order]
    new = np.r_[True, (of[1:] != of[:-1]) | (at[1:] != at[:-1])][: len(of)]
    of, at = of[new], at[new]
    begins = np.r_[True, of[1:] != of[:-1]]
    first = np.flatnonzero(begins[:-1] & ~begins[1:])  # and its second follows
    began: Floats = np.full(len(started_s), np.nan)
    began[of[first]] = np.maximum(2 * at[first] - at[first + 1], started_s[of[first]])
    return began


def _inner_points(begun: pd.DataFrame, metrics: pd.DataFrame, score: str) -> pd.DataFrame:
    """Give the points logged in a phase's last attempt: earlier attempts were thrown away."""
    points = _metric(metrics, score).rename(columns={"value": "score"}).merge(begun, on=["trial", "phase"])
    live = points[points["at_s"] >= points["started_s"]]
    return live[["trial", "phase", "at_s", "score"]].assign(phase_end=False)


def _phase_ends(phases: pd.DataFrame) -> pd.DataFrame:
    ended = phases.loc[phases["ended_s"].notna(), ["trial", "phase", "ended_s", "score"]].astype(float)
    return ended.rename(columns={"ended_s": "at_s"}).assign(phase_end=True)


def _with_metric(points: pd.DataFrame, phases: pd.DataFrame, metrics: pd.DataFrame, name: str) -> pd.DataFrame:
    """Add column x: the metric logged at the same instant."""
    logged = _metric(metrics, name)
    if name in phases:
        ended = phases.loc[phases["ended_s"].notna(), ["trial", "phase", "ended_s", name]].astype(float)
        logged = pd.concat([logged, ended.rename(columns={"ended_s": "at_s", name: "value"})], ignore_index=True)
    logged = logged.dropna(subset=["value"]).drop_duplicates(["trial", "phase", "at_s"], keep="last")
    return points.merge(logged, on=["trial", "phase", "at_s"]).rename(columns={"value": "x"})


def _before(spent: pd.DataFrame, points: pd.DataFrame, trials: pd.DataFrame | None) -> pd.Series:
    """For each point, the sum of `spent` over the earlier phases of its trial, and over those of weights taken over."""
    ordered = spent.sort_values(["trial", "phase"])[["trial", "phase", "spent"]]
    ordered["before"] = ordered.groupby("trial")["spent"].transform(lambda s: s.cumsum().shift(fill_value=0.0))
    joined = points[["trial", "phase"]].merge(ordered, on=["trial", "phase"], how="left")
    taken = {} if trials is None else _taken_over(ordered, trials)
    return (joined["before"].fillna(0.0) + joined["trial"].map(taken).fillna(0.0)).set_axis(points.index)


def _taken_over(ordered: pd.DataFrame, trials: pd.DataFrame) -> dict[int, float]:
    """Sum what had been spent on the weights that trials began with, when they were copied; trial → sum."""
    through = (ordered["before"] + ordered["spent"]).set_axis(pd.MultiIndex.from_frame(ordered[["trial", "phase"]]))
    at_its_end, taken = through.to_dict(), dict[int, float]()
    heirs = trials.loc[trials["parent_phase"].notna(), ["trial", "parent", "parent_phase"]].astype(int)
    for trial, parent, phase in heirs.sort_values("trial").itertuples(index=False):
        # a parent may have handed on, before its own first phase had ended, what it had itself begun with
        taken[trial] = taken.get(parent, 0.0) + at_its_end.get((parent, phase), 0.0)
    return taken


def _metric(metrics: pd.DataFrame, name: str) -> pd.DataFrame:
    rows = metrics.loc[metrics["name"] == name, ["trial", "phase", "at_s", "value"]]
    return rows.astype(float)
