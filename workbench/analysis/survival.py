"""How many trials reach each phase, and what became of them there."""

from collections.abc import Mapping, Set
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from workbench.core.ledger import FOR_SEEDS, RAN_OUT

NO_REPORT = ("failed", "extended")  # modes of decisions that judge no score
FATES = ["continued", "waiting", "stopped", "finished", "failed"]
COUNTS = ["began", "completed", *FATES, "running"]


def survival(
    trials: pd.DataFrame, phases: pd.DataFrame, decisions: pd.DataFrame, n_phases: int | None = None
) -> pd.DataFrame:
    """Count trials phase by phase.

    Parameters
    ----------
    trials, phases, decisions : DataFrame
        As in `workbench.knowledge.Frames`; decisions on other trials than these do not count.
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
        continued were let go on after it
        waiting   are held or paused after it
        stopped   were stopped after it by the scheduler, or in it by a person
        finished  ended it as the last they had to run
        failed    failed in it for good
        running   began it and are still at it, or wait for a verdict
        mode      what the next report meets: "collecting" or "selecting" (HyperTrick's two modes), what another
                  scheduler wrote last, "finished" in a last phase, None if nothing is known
        reported  scores so far, and collecting_reports, those let through unconditionally: see `phase_modes`
        ========= ==================================================================================

        began = continued + waiting + stopped + finished + failed + running.
    """
    decisions = decisions[decisions["trial"].isin(trials["trial"])]
    last = int(phases["phase"].max()) + 1 if len(phases) else 0
    n = max(n_phases or 0, last)
    counts = _counts(trials, phases, decisions[decisions["phase"].notna()], n)
    known = phase_modes(decisions).set_index("phase").reindex(range(n))
    table = pd.DataFrame({"phase": range(n), **{name: counts[name] for name in COUNTS}})
    table["mode"] = known["mode"].astype(object).where(known["mode"].notna(), None)
    return table.assign(**{name: known[name].astype(float) for name in ("reported", "collecting_reports")})


def phase_modes(decisions: pd.DataFrame) -> pd.DataFrame:
    """Tell in which mode each phase now is, from the recorded reasons; HyperTrick's say when it will change (Eq. 2).

    Returns
    -------
    DataFrame
        One row a phase with a decision on a score: phase; mode (collecting, selecting, finished, or what another
        scheduler wrote); reported (scores so far); collecting_reports (W_DCM,p, trials; NaN unless
        HyperTrick wrote it).
    """
    known = decisions["phase"].notna() & decisions["mode"].notna()
    judged = decisions[known & ~decisions["mode"].isin(NO_REPORT)]
    counts = judged.drop_duplicates(["trial", "phase"])["phase"].value_counts()
    latest = judged[judged["mode"] != FOR_SEEDS].drop_duplicates("phase", keep="last").sort_values("phase")
    rows = []
    for phase, mode, reason in zip(latest["phase"], latest["mode"], latest["reason"], strict=True):
        rows.append((int(phase), *mode_after(mode, reason if isinstance(reason, dict) else {}, counts[phase])))
    return pd.DataFrame(rows, columns=["phase", "mode", "reported", "collecting_reports"])


def mode_after(mode: str, why: Mapping[str, Any], judged: int) -> tuple[str, int, float]:
    """Tell a phase's mode, reported and collecting_reports, as `phase_modes`, by its last decision; `judged` trials."""
    collecting = float(why.get("collecting_reports", float("nan")))
    # others than HyperTrick count there what they compare with: a bracket's rung, or all that have ever reported
    reported = judged if np.isnan(collecting) else int(why.get("reported", judged))
    if mode == "collecting" and reported + 1 > collecting:
        mode = "selecting"  # the last collected report: the next one is judged
    return mode, reported, collecting


def fate_after(verdict: str, mode: str | None) -> str:
    """Tell which count of `survival` a verdict on a trial's phase adds to; one that waits, until its next begins."""
    if verdict == "stop":
        return "finished" if mode in RAN_OUT else "stopped"
    return "continued" if verdict == "continue" else "waiting"


def _counts(
    trials: pd.DataFrame, phases: pd.DataFrame, decisions: pd.DataFrame, n: int
) -> dict[str, npt.NDArray[np.intp]]:
    """Count, in each of n phases, what `survival` tells."""
    begun, ended = phases["phase"].to_numpy(int), phases["ended_s"].notna().to_numpy()
    failed = trials.loc[trials["state"] == "failed", "trial"]
    by_hand = trials.loc[(trials["state"] == "stopped") & (trials["mode"] == "person"), "trial"]
    failed_in, stopped_in = _last_phases(failed, phases), _last_phases(by_hand, phases)
    ends: set[Any] = {*failed_in.items(), *stopped_in.items()}
    final = _last_verdicts(decisions, ends)
    judged = final["phase"].to_numpy(int)
    fates = np.array([fate_after(*verdict) for verdict in zip(final["verdict"], final["mode"], strict=True)], object)
    went_on = pd.MultiIndex.from_arrays([phases["trial"], begun - 1])
    fates[(fates == "waiting") & pd.MultiIndex.from_frame(final[["trial", "phase"]]).isin(went_on)] = "continued"
    counts = {
        "began": _count(begun, n),
        "completed": _count(begun[ended], n),
        "continued": _count(judged[fates == "continued"], n),
        "waiting": _count(judged[fates == "waiting"], n),
        "stopped": _count(judged[fates == "stopped"], n) + _count(stopped_in.to_numpy(int), n),
        "finished": _count(judged[fates == "finished"], n),
        "failed": _count(failed_in.to_numpy(int), n),
    }
    decided = sum(counts[fate] for fate in FATES)
    counts["running"] = np.maximum(counts["began"] - decided, 0)
    return counts


def _last_verdicts(decisions: pd.DataFrame, ends: Set[tuple[int, int]]) -> pd.DataFrame:
    """Keep the last verdict on each trial and phase: a hold that was released does not count twice.

    Nor does a trial that was let go on, set aside, and then stopped by a person: `ends` has its last phase. What a
    scheduler answers to a failure is no verdict on a phase: of one that a person stopped while it waited, and then
    extended, that before it stands.
    """
    last = decisions[decisions["mode"] != "failed"].drop_duplicates(["trial", "phase"], keep="last")
    kept = [pair not in ends for pair in zip(last["trial"], last["phase"], strict=True)]
    return last[np.array(kept, bool)]  # an empty list would be taken for names of columns


def _last_phases(trials: pd.Series, phases: pd.DataFrame) -> pd.Series:
    """Name the last phase that each of these trials began, by trial; one that was stopped before it began has none."""
    return phases[phases["trial"].isin(trials)].groupby("trial")["phase"].max()


def _count(phases: npt.NDArray[np.intp], n_phases: int) -> npt.NDArray[np.intp]:
    return np.bincount(phases, minlength=n_phases)[:n_phases]
