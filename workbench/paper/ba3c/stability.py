"""How steadily Distributed BA3C's variants learn (1801.02852, Figs 3 and 4)."""

import pandas as pd

from workbench.analysis import bootstrap_interval
from workbench.analysis.variants import score_table, worst_falls


def stability(curves: pd.DataFrame) -> pd.DataFrame:
    """Sum up how steadily each variant learned.

    Parameters
    ----------
    curves : DataFrame
        The recording ``ba3c-stability`` or ``ba3c-adam``: one row a variant, seed and phase.

    Returns
    -------
    DataFrame
        One row a variant: variant, n (seeds), then last_score, best_score and worst_fall (of the score below the best
        so far), each a mean over seeds with ``_low`` and ``_high`` of its 95 % bootstrap interval; ended_below_half,
        seeds whose last score is below half of their best; policy_lag_mean, of all its phases, where it was recorded.
    """
    rows = []
    for variant, runs in curves.groupby("variant", sort=False):
        table = score_table(runs)
        falls = worst_falls(table, as_share=False)
        row: dict[str, object] = {"variant": variant, "n": len(table)}
        for name, values in (("last_score", table[:, -1]), ("best_score", table.max(axis=1)), ("worst_fall", falls)):
            row |= bootstrap_interval(values, "mean").columns(name)
        row["ended_below_half"] = int((table[:, -1] < table.max(axis=1) / 2).sum())
        if "policy_lag_mean" in runs:
            row["policy_lag_mean"] = float(runs["policy_lag_mean"].mean())
        rows.append(row)
    return pd.DataFrame(rows)
