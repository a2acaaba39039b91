"""Who copied whom: members of a population, the descent of their weights, and the schedules that came of it."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

LINEAGE = {
    "trial": "int64",
    "member": "int64",
    "previous": "Int64",
    "parent": "Int64",
    "parent_phase": "Int64",
    "first_phase": "int64",
    "last_phase": "Int64",
    "copied": "bool",
    "founder": "int64",
    "started_s": "float64",
    "ended_s": "float64",
}


def lineage(trials: pd.DataFrame, phases: pd.DataFrame, decisions: pd.DataFrame) -> pd.DataFrame:
    """Tell of every trial which member of the population ran it, and whose weights it began with.

    A member goes on under a new trial whenever its weights or its hyperparameters are changed; the scheduler's reason
    names the donor, and heirs of equal donors are asked for in the order in which their members were stopped.

    Parameters
    ----------
    trials, phases, decisions : DataFrame
        As in `workbench.knowledge.Frames`.

    Returns
    -------
    DataFrame
        One row a trial, by number:

        ============ ===============================================================================================
        trial        number of the trial
        member       of the population, from 0 in the order of first trials; what has no donor is a member of its own
        previous     trial that the member ran before; NA for its first
        parent       trial whose weights it began with; NA for those that began with none
        parent_phase the phase of the parent whose checkpoint that was
        first_phase  its own first phase
        last_phase   the last it completed; NA before the first
        copied       whether the weights came from another member
        founder      trial without a parent from which the weights descend
        started_s    on the study's clock, seconds
        ended_s      the same; NaN while it lives
        ============ ===============================================================================================
    """
    begun = phases.groupby("trial")["phase"].min()
    done = phases[phases["ended_s"].notna()].groupby("trial")["phase"].max()
    waiting: list[Any] = [
        row for row in decisions.to_dict("records") if row["verdict"] == "stop" and "donor" in row["reason"]
    ]
    rows: dict[int, dict[str, Any]] = {}
    for trial in trials.sort_values("trial").to_dict("records"):
        number = int(trial["trial"])
        # a clone began with no weights: what stands as its parent gave it nothing but the idea of its configuration
        parent = None if pd.isna(trial["parent_phase"]) else int(trial["parent"])
        stop = None if parent is None else _stop_before(waiting, parent, begun.get(number))
        rows[number] = _row(trial, parent, stop, int(begun.get(number, 0)), rows)
    frame = pd.DataFrame(list(rows.values()), columns=list(LINEAGE))
    frame["last_phase"] = frame["trial"].map(done)
    return frame.astype(LINEAGE)


def schedules(
    lineage: pd.DataFrame, trials: pd.DataFrame, phases: pd.DataFrame, hyperparameters: Sequence[str]
) -> pd.DataFrame:
    """Give the recorded schedule of every member: what it ran with in each phase, and what came of it.

    Parameters
    ----------
    lineage : DataFrame
        From `lineage`.
    trials, phases : DataFrame
        As in `workbench.knowledge.Frames`.
    hyperparameters : sequence of str
        Columns of `trials` that hold the configuration.

    Returns
    -------
    DataFrame
        One row a member and phase completed, in that order: member, phase, trial, founder, started_s, ended_s (seconds
        on the study's clock), score, then a column a hyperparameter.
    """
    ended = phases.loc[phases["ended_s"].notna(), ["trial", "phase", "started_s", "ended_s", "score"]]
    joined = ended.astype({"trial": int, "phase": int}).merge(lineage[["trial", "member", "founder"]], on="trial")
    joined = joined.merge(trials[["trial", *hyperparameters]].astype({"trial": int}), on="trial")
    columns = ["member", "phase", "trial", "founder", "started_s", "ended_s", "score", *hyperparameters]
    return joined[columns].sort_values(["member", "phase"], kind="stable", ignore_index=True)


def best_trial(schedules: pd.DataFrame, mode: str = "max") -> int | None:
    """Name the trial whose latest score is the best among those of all members as they stand; of equals the first."""
    latest = schedules.dropna(subset=["score"]).groupby("member").tail(1)
    good = latest["score"].to_numpy(float) * (1 if mode == "max" else -1)
    return None if latest.empty else int(latest["trial"].iloc[int(good.argmax())])


def ancestry(lineage: pd.DataFrame, trial: int) -> pd.DataFrame:
    """Follow a trial's weights back to their first step.

    Returns
    -------
    DataFrame
        One row a phase that these weights were trained for, in order: step (from 0), trial, phase. A donor need not
        have been in the copier's phase, so there may be more or fewer steps than the trial's own phases.
    """
    rows: dict[int, Any] = {int(row["trial"]): row for row in lineage.to_dict("records")}
    steps: list[tuple[int, int]] = []
    at: int | None = trial
    last = rows[trial]["last_phase"]
    while at is not None:
        row = rows[at]
        if not pd.isna(last):
            steps += [(at, phase) for phase in range(int(last), int(row["first_phase"]) - 1, -1)]
        last = row["parent_phase"]
        at = None if pd.isna(row["parent"]) else int(row["parent"])
    frame = pd.DataFrame(steps[::-1], columns=["trial", "phase"]).astype(int)
    frame.insert(0, "step", range(len(frame)))
    return frame


def schedule_of(
    trial: int,
    lineage: pd.DataFrame,
    trials: pd.DataFrame,
    phases: pd.DataFrame,
    hyperparameters: Sequence[str],
) -> pd.DataFrame:
    """Give the schedule of hyperparameters that a trial's weights were trained with, from their first step.

    Returns
    -------
    DataFrame
        One row a phase, in order: step, trial, phase, score, then a column a hyperparameter.
    """
    steps = ancestry(lineage, trial).merge(phases[["trial", "phase", "score"]], on=["trial", "phase"], how="left")
    return steps.merge(trials[["trial", *hyperparameters]], on="trial", how="left")


def phylogeny(lineage: pd.DataFrame, best: int | None = None) -> pd.DataFrame:
    """Lay out the tree of descent so that no branch crosses another trial's line.

    Parameters
    ----------
    lineage : DataFrame
        From `lineage`.
    best : int, optional
        Trial whose descent is marked.

    Returns
    -------
    DataFrame
        One row a trial: trial, member, founder, parent; y (its row, from 0); x0, x1 (phases, where its line begins and
        ends); from_x, from_y (where it leaves its parent's line; NA for founders); survives (whether its weights live
        on in some member's last trial); best (whether in `best`).
    """
    rows: dict[int, Any] = {int(row["trial"]): row for row in lineage.to_dict("records")}
    children: dict[int, list[int]] = {number: [] for number in rows}
    for number, row in rows.items():
        if not pd.isna(row["parent"]):
            children[int(row["parent"])].append(number)
    order = [n for founder in rows if pd.isna(rows[founder]["parent"]) for n in _descend(founder, rows, children)]
    place = {number: y for y, number in enumerate(order)}
    survives = _forebears(rows, lineage.groupby("member")["trial"].max())
    marked = _forebears(rows, [] if best is None else [best])
    tree = lineage[["trial", "member", "founder", "parent"]].astype({"parent": "Int64"})
    begun, lasts = lineage["first_phase"], lineage["last_phase"]
    return tree.assign(
        y=tree["trial"].map(place),
        x0=begun,
        x1=(lasts.fillna(begun - 1) + 1).astype("int64"),
        from_x=lineage["parent_phase"] + 1,
        from_y=tree["parent"].map(place).astype("Int64"),
        survives=tree["trial"].isin(survives),
        best=tree["trial"].isin(marked),
    )


def _row(
    trial: dict[Any, Any], parent: int | None, stop: dict[str, Any] | None, begun: int, rows: dict[int, dict[str, Any]]
) -> dict[str, Any]:
    """Tell of one trial, by the stop it follows and what is known of those before it."""
    previous = None if stop is None else int(stop["trial"])
    member = sum(row["previous"] is None for row in rows.values()) if previous is None else rows[previous]["member"]
    return {
        "trial": int(trial["trial"]),
        "member": member,
        "previous": previous,
        "parent": parent,
        "parent_phase": None if parent is None else int(trial["parent_phase"]),
        "first_phase": begun if stop is None else int(stop["phase"]) + 1,
        "copied": parent is not None and rows[parent]["member"] != member,
        "founder": int(trial["trial"]) if parent is None else rows[parent]["founder"],
        "started_s": float(trial["started_s"]),
        "ended_s": float(trial["ended_s"]),
    }


def _stop_before(waiting: list[dict[str, Any]], donor: int, first_phase: int | None) -> dict[str, Any] | None:
    """Take out the stop that a new trial follows: the earliest with its donor, and the phase before its own."""
    for at, stop in enumerate(waiting):
        if stop["reason"]["donor"] == donor and (first_phase is None or stop["phase"] + 1 == first_phase):
            return waiting.pop(at)
    return None


def _descend(founder: int, rows: dict[int, dict[str, Any]], children: dict[int, list[int]]) -> list[int]:
    """List a founder's descendants: each before its children, and of these the one that branched off last first."""
    order, waiting = [], [founder]
    while waiting:
        number = waiting.pop()
        order.append(number)
        waiting += sorted(children[number], key=lambda child: (rows[child]["parent_phase"], child))
    return order


def _forebears(rows: dict[int, dict[str, Any]], ends: Any) -> set[int]:
    forebears: set[int] = set()
    for end in ends:
        at: int | None = int(end)
        while at is not None and at not in forebears:
            forebears.add(at)
            at = None if pd.isna(rows[at]["parent"]) else int(rows[at]["parent"])
    return forebears
