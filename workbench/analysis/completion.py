"""The completion rate α: how much of the full grid of trials and phases ran."""

import pandas as pd


def completion_rate(phases: pd.DataFrame, n_trials: int, n_phases: int) -> float:
    """Compute α, the share of all W0·Np phases that ran to their end (arXiv 1902.02725, Sec. 4).

    Parameters
    ----------
    phases : DataFrame
        As in `workbench.knowledge.Frames`; a phase without `ended_s` (running, or lost for good) does not count.
    n_trials, n_phases : int
        The paper's W0 and Np: what running everything would take. While a study runs, α is what has been done so far.

    Returns
    -------
    float
        Between 0 and 1.
    """
    return float(phases["ended_s"].notna().sum()) / (n_trials * n_phases)
