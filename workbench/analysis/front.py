"""Two objectives at once: which trials no other beats in both."""

import pandas as pd

from workbench.analysis.confirmed import claiming
from workbench.core.aim import sign_of
from workbench.core.seeds import JUDGES

FRONT = ["trial", "phase", "score", "second", "on_front"]


def front(
    phases: pd.DataFrame,
    second: str,
    mode: str = "max",
    second_mode: str = "max",
    trials: pd.DataFrame | None = None,
    judged_by: str = "mean",
) -> pd.DataFrame:
    """Hold the score of every trial's last phase against another metric of that phase.

    Parameters
    ----------
    phases : DataFrame
        As in `workbench.knowledge.Frames`.
    second : str
        The column that holds the metric; without it, or where it is missing in the last phase, nothing is said of a
        trial.
    mode, second_mode : str
        ``max`` or ``min``: which score, and which value of the metric, is better.
    trials : DataFrame, optional
        As there. With it both numbers are those of a configuration, whose seeds are joined as `claims` joins them; it
        stands under its first trial.
    judged_by : str
        What joins them, as of `claims`.

    Returns
    -------
    DataFrame
        One row a trial that has both, best score first: trial, phase, score, second (the metric's value), on_front
        (whether no other trial is as good in both and better in one: the Pareto front).
    """
    if second not in phases.columns:
        return pd.DataFrame(columns=FRONT)
    ended = phases.loc[phases["ended_s"].notna(), ["trial", "phase", "score", second]]
    last = ended.sort_values("phase").groupby("trial").tail(1).dropna().rename(columns={second: "second"})
    if trials is not None:
        last = _joined(last.merge(claiming(trials)[["trial", "candidate"]], on="trial"), judged_by)
    last = last.astype({"trial": int, "phase": int, "score": float, "second": float})
    order = [sign_of(mode) < 0, sign_of(second_mode, "second_mode") < 0]
    last = last.sort_values(["score", "second", "trial"], ascending=[*order, True], ignore_index=True)
    good = sign_of(second_mode) * last["second"]
    behind = good.cummax().shift()  # the best of those that score as high or higher; NaN where nobody does
    first = ~(good <= behind)  # and their equals, which come after them
    return last.assign(on_front=first.groupby([last["score"], last["second"]]).transform("max"))[FRONT]


def _joined(last: pd.DataFrame, judged_by: str) -> pd.DataFrame:
    """Make one row a configuration of those of its seeds."""
    judge = JUDGES[judged_by]
    rows = last.groupby("candidate").agg(
        trial=("trial", "min"),
        phase=("phase", "min"),
        score=("score", lambda scores: judge(scores.to_list())),
        second=("second", lambda values: judge(values.to_list())),
    )
    return rows.reset_index(drop=True)
