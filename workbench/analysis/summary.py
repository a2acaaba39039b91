"""A study in a dozen numbers: what a notebook prints when it has ended."""

from typing import Any

import pandas as pd

from workbench.analysis.completion import completion_rate
from workbench.analysis.confirmed import searching
from workbench.analysis.curves import best_so_far
from workbench.analysis.occupancy import occupancy


def summarise(
    trials: pd.DataFrame,
    phases: pd.DataFrame,
    spans: pd.DataFrame,
    slots: pd.DataFrame,
    *,
    wall_s: float,
    n_configs: int | None,
    n_phases: int | None,
    mode: str = "max",
    decisions: pd.DataFrame | None = None,
) -> dict[str, Any]:
    """Sum up a study, running or ended.

    Parameters
    ----------
    trials, phases, spans, slots : DataFrame
        As in `workbench.knowledge.Frames`.
    wall_s : float
        The study's clock, seconds.
    n_configs, n_phases : int or None
        The paper's W0 and Np, as of `completion_rate`; ``None`` if nobody knows.
    mode : str
        ``max`` or ``min``: which score is the best.
    decisions : DataFrame, optional
        As in `workbench.knowledge.Frames`. They tell which phases a person asked for, those of clones and those that
        trials were extended by: none of W0·Np.

    Returns
    -------
    dict
        best_trial (int, None before the first score; of equals the first; never one that confirms another),
        best_score, best_at_s (seconds), these three of the luckiest phase; wall_s, occupancy (share, 0 to 1), lost_s
        (slot-seconds spent on lost attempts), alpha (completion rate; None if nobody knows of how much), trials
        (begun), phases (completed), retries (attempts lost), states (dict: state → trials). What confirms others counts
        in all but the best three and alpha.
    """
    searched = phases[phases["trial"].isin(searching(trials)["trial"])]
    ended = searched[searched["ended_s"].notna()]
    asked = ended.iloc[:0] if decisions is None else decisions[decisions["mode"] == "extended"]
    own = {*zip(asked["trial"], asked["phase"], strict=True)}
    n_ended = sum(pair not in own for pair in zip(ended["trial"], ended["phase"], strict=True))
    used, counts = occupancy(spans, slots, wall_s), _counts(trials, phases)
    return {
        **_best(searched, mode),
        "wall_s": wall_s,
        "occupancy": used.share,
        "lost_s": used.lost,
        "alpha": completion_rate(n_ended, n_configs, n_phases) if n_configs and n_phases else None,
        **counts,
    }


def _counts(trials: pd.DataFrame, phases: pd.DataFrame) -> dict[str, Any]:
    return {
        "trials": len(trials),
        "phases": int(phases["ended_s"].notna().sum()),
        "retries": int(phases["retries"].sum()),
        "states": {str(state): int(n) for state, n in trials["state"].value_counts().items()},
    }


def _best(phases: pd.DataFrame, mode: str) -> dict[str, Any]:
    best = next(iter(best_so_far(phases, mode).tail(1).to_dict("records")), None)
    if best is None:
        return {"best_trial": None, "best_score": float("nan"), "best_at_s": float("nan")}
    return {"best_trial": int(best["trial"]), "best_score": best["best_score"], "best_at_s": best["at_s"]}
