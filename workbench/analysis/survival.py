"""How many trials reach each phase, and what became of them there."""

import pandas as pd

_RAN_OUT = ["finished", "extended"]  # modes of a stop after the last phase a trial had to run
COUNTS = ["began", "completed", "continued", "stopped", "finished", "failed", "running"]


def survival(
    trials: pd.DataFrame, phases: pd.DataFrame, decisions: pd.DataFrame, n_phases: int | None = None
) -> pd.DataFrame:
    """Count trials phase by phase.

    Parameters
    ----------
    trials, phases, decisions : DataFrame
        As in `workbench.knowledge.Frames`.
    n_phases : int, optional
        The paper's Np, so that phases nobody has reached yet get their row too; by default only phases begun.

    Returns
    -------
    DataFrame
        One row a phase, in order, all counts in trials:

        ========= ==================================================================================
        phase     number of the phase, from 0
        began     began it (the paper's W_p)
        completed reported a score for it
        continued were let go on after it, held and paused ones among them
        stopped   were stopped after it by the scheduler, or in it by a person
        finished  ended it as the last they had to run
        failed    failed in it for good
        running   began it and are still at it, or wait for a verdict
        mode      what the next report meets: "collecting" or "selecting" (HyperTrick's two modes, from the
                  last decision's reason), "finished" in a last phase, None if nothing is known
        ========= ==================================================================================

        began = continued + stopped + finished + failed + running.
    """
    last = int(phases["phase"].max()) + 1 if len(phases) else 0
    index = pd.RangeIndex(max(n_phases or 0, last), name="phase")
    final = _last_verdicts(decisions)
    groups = {
        "began": phases.drop_duplicates(["trial", "phase"]),
        "completed": phases[phases["ended_s"].notna()].drop_duplicates(["trial", "phase"]),
        "continued": final[final["verdict"] != "stop"],
        "stopped": final[(final["verdict"] == "stop") & ~final["mode"].isin([*_RAN_OUT, "failed"])],
        "finished": final[(final["verdict"] == "stop") & final["mode"].isin(_RAN_OUT)],
        "failed": _last_phases(trials[trials["state"] == "failed"], phases),
    }
    table = pd.DataFrame({name: _count(rows, index) for name, rows in groups.items()}, index=index)
    by_hand = trials[(trials["state"] == "stopped") & (trials["mode"] == "person")]
    table["stopped"] += _count(_last_phases(by_hand, phases), index)
    decided = table[["continued", "stopped", "finished", "failed"]].sum(axis=1)
    table["running"] = (table["began"] - decided).clip(lower=0)
    modes = phase_modes(decisions).set_index("phase")["mode"]
    table["mode"] = pd.Series([modes.get(phase) for phase in index], index=index, dtype=object)
    return table.reset_index()[["phase", *COUNTS, "mode"]]


def phase_modes(decisions: pd.DataFrame) -> pd.DataFrame:
    """Tell in which mode each phase now is, from HyperTrick's recorded reasons (Eq. 2).

    Returns
    -------
    DataFrame
        One row a phase with a decision on a score: phase; mode (collecting, selecting, finished, or what another
        scheduler wrote); reported (scores so far); collecting_reports (W_DCM,p, trials; NaN if not given).
    """
    judged = decisions[decisions["mode"].notna() & ~decisions["mode"].isin(["failed", "extended"])]
    rows = []
    for phase, group in judged.groupby("phase"):
        latest = group.iloc[-1]
        reason = latest["reason"] if isinstance(latest["reason"], dict) else {}
        reported = int(reason.get("reported", len(group)))
        collecting = float(reason.get("collecting_reports", float("nan")))
        mode = latest["mode"]
        if mode == "collecting" and reported + 1 > collecting:
            mode = "selecting"  # the last collected report: the next one is judged
        rows.append({"phase": int(str(phase)), "mode": mode, "reported": reported, "collecting_reports": collecting})
    return pd.DataFrame(rows, columns=["phase", "mode", "reported", "collecting_reports"])


def stopped_by_mode(decisions: pd.DataFrame) -> pd.DataFrame:
    """Count the trials each phase let go or ended, by the mode that decided.

    Returns
    -------
    DataFrame
        One row a phase and mode: phase; mode ("" if none was recorded); judged (decisions); stopped (of these,
        with the verdict stop), in trials.
    """
    final = _last_verdicts(decisions)
    keyed = final.assign(mode=final["mode"].where(final["mode"].notna(), ""), stopped=final["verdict"] == "stop")
    counted = keyed.groupby(["phase", "mode"])["stopped"].agg(judged="size", stopped="sum").reset_index()
    return counted.astype({"judged": int, "stopped": int})


def _last_verdicts(decisions: pd.DataFrame) -> pd.DataFrame:
    """Keep the last verdict on each trial and phase: a hold that was released does not count twice."""
    return decisions.drop_duplicates(["trial", "phase"], keep="last")


def _last_phases(trials: pd.DataFrame, phases: pd.DataFrame) -> pd.DataFrame:
    """Name the last phase each of these trials began (0 if it never got that far)."""
    begun = phases.groupby("trial")["phase"].max()
    return trials[["trial"]].assign(phase=[int(begun.get(trial, 0)) for trial in trials["trial"]])


def _count(rows: pd.DataFrame, index: pd.RangeIndex) -> pd.Series:
    return rows.groupby("phase").size().reindex(index, fill_value=0).astype(int)
