"""What trials failed of: each error once, with how many it struck."""

import pandas as pd

from workbench.core.errors import plain
from workbench.core.failures import error_key
from workbench.core.showing import so_many


def failures(trials: pd.DataFrame) -> pd.DataFrame:
    """Group the errors of failed trials; those of a type and place are one, whatever numbers their words hold.

    Parameters
    ----------
    trials : DataFrame
        As in `workbench.knowledge.Frames`.

    Returns
    -------
    DataFrame
        One row an error, the most frequent first: error (the first trial's words, with the place in the user's code
        where it is known), trials (how many failed of it), first (the first such trial).
    """
    failed = trials[trials["state"] == "failed"]
    errors = failed["error"].map(lambda text: text if isinstance(text, str) and text else "no error was recorded")
    rows = pd.DataFrame({"error": errors, "first": failed["trial"], "key": errors.map(error_key)})
    columns = {"error": ("error", "first"), "trials": ("first", "size"), "first": ("first", "first")}
    grouped = rows.groupby("key", sort=False).agg(**columns)
    return grouped.sort_values("trials", ascending=False, kind="stable").reset_index(drop=True)


def failure_lines(trials: pd.DataFrame) -> list[str]:
    """Write `failures` one a line: "ValueError: bad (train.py:12 in build), 8 trials"."""
    return [
        f"{plain(error)}, {so_many(n, 'trial')}"
        for error, n in failures(trials)[["error", "trials"]].itertuples(index=False)
    ]
