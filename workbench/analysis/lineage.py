"""Who copied whom: members of a population, the descent of their weights, and the schedules that came of it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import pandas as pd

from workbench.core.aim import sign_of
from workbench.core.ledger import FOR_SEEDS

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
    names the donor, and heirs of equal donors are asked for in the order in which their members were stopped. With
    several seeds, all trials of a candidate follow those of one other: first those that were stopped, then those that
    had failed.

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
    candidate_of = dict(zip(trials["trial"].astype(int), trials["candidate"].astype(int), strict=True))
    waiting = _ends(decisions, candidate_of)
    rows: dict[int, dict[str, Any]] = {}
    so_far: dict[int, list[int]] = {}  # candidate → its trials
    followed: dict[int, _End | None] = {}  # candidate → what it follows
    for trial in trials.sort_values("trial").to_dict("records"):
        number = int(trial["trial"])
        candidate = candidate_of[number]
        # a clone began with no weights: what stands as its parent gave it nothing but the idea of its configuration
        parent = None if pd.isna(trial["parent_phase"]) else int(trial["parent"])
        if parent is not None and candidate not in followed:
            donors = so_far[candidate_of[parent]]
            followed[candidate] = _end_before(waiting, donors, trial["started_s"], begun.get(number), so_far)
        end = None if parent is None else followed[candidate]
        rows[number] = _row(trial, parent, end, int(begun.get(number, 0)), rows)
        so_far.setdefault(candidate, []).append(number)
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
        on the study's clock), score, then a column a hyperparameter. Phases by which a person extended a trial are left
        out from where its member went on as another.
    """
    ended = phases.loc[phases["ended_s"].notna(), ["trial", "phase", "started_s", "ended_s", "score"]]
    joined = ended.astype({"trial": int, "phase": int}).merge(lineage[["trial", "member", "founder"]], on="trial")
    went_on = lineage.dropna(subset=["previous"]).astype({"previous": int}).set_index("previous")["first_phase"]
    joined = joined[~(joined["phase"] >= joined["trial"].map(went_on))]
    joined = joined.merge(trials[["trial", *hyperparameters]].astype({"trial": int}), on="trial")
    columns = ["member", "phase", "trial", "founder", "started_s", "ended_s", "score", *hyperparameters]
    return joined[columns].sort_values(["member", "phase"], kind="stable", ignore_index=True)


def best_trial(schedules: pd.DataFrame, mode: str = "max") -> int | None:
    """Name the trial whose latest score is the best among those of all members as they stand; of equals the first."""
    latest = schedules.dropna(subset=["score"]).groupby("member").tail(1)
    good = latest["score"].to_numpy(float) * sign_of(mode)
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


@dataclass(eq=False)
class _End:
    """Of a candidate, which is one trial unless there are several seeds: what those that follow it go by."""

    candidate: int
    at_s: float
    phase: int
    donor: Any  # as a reason names it; None: all its trials failed, and the log is of before it was told then
    trials: list[int] = field(default_factory=list)  # those with a donor; once it is followed, all, in the order to be


def _row(
    trial: dict[Any, Any], parent: int | None, end: _End | None, begun: int, rows: dict[int, dict[str, Any]]
) -> dict[str, Any]:
    """Tell of one trial, by the end it follows and what is known of those before it."""
    previous = end.trials.pop(0) if end is not None and end.trials else None
    member = sum(row["previous"] is None for row in rows.values()) if previous is None else rows[previous]["member"]
    return {
        "trial": int(trial["trial"]),
        "member": member,
        "previous": previous,
        "parent": parent,
        "parent_phase": None if parent is None else int(trial["parent_phase"]),
        "first_phase": begun if end is None else end.phase + 1,
        "copied": parent is not None and rows[parent]["member"] != member,
        "founder": int(trial["trial"]) if parent is None else rows[parent]["founder"],
        "started_s": float(trial["started_s"]),
        "ended_s": float(trial["ended_s"]),
    }


def _ends(decisions: pd.DataFrame, candidate_of: Mapping[int, int]) -> list[_End]:
    """List in order the candidates that went on as others, and those that must have, for all their trials failed."""
    ends: dict[int, _End] = {}
    n_left = Counter(candidate_of.values())
    replaces = not decisions["mode"].eq("explored").any()  # where nobody copies, who fails is not replaced
    scored: set[int] = set()  # candidates: who fails as a whole before any other was judged has nobody to copy
    for row in decisions.to_dict("records"):
        trial, mode, donor = int(row["trial"]), row["mode"], row["reason"].get("donor")
        candidate = candidate_of[trial]
        if mode not in ("failed", FOR_SEEDS):
            scored.add(candidate)
        if mode == "failed" and "candidate" in row["reason"]:
            n_left[candidate] -= 1
            if n_left[candidate]:
                continue
            scored.discard(candidate)
            guessed = "member" not in row["reason"] and replaces and scored  # logs of before do not say it
            if donor is not None or guessed:
                ends[candidate] = _End(candidate, row["at_s"], int(row["phase"]), donor)
        elif donor is not None and row["verdict"] == "stop":
            end = ends.setdefault(candidate, _End(candidate, row["at_s"], int(row["phase"]), donor))
            end.trials.append(trial)
    return list(ends.values())


def _end_before(
    waiting: list[_End], donors: list[int], at_s: float, first_phase: int | None, so_far: Mapping[int, list[int]]
) -> _End | None:
    """Take out the end that a new candidate follows: the earliest with its donor, or none known, and the phase before.

    The log holds later ones too, of trials that were not begun yet.
    """
    for end in takewhile(lambda end: end.at_s <= at_s, waiting):
        fits = end.candidate in so_far and (end.donor is None or end.donor in donors)
        if fits and (first_phase is None or end.phase + 1 == first_phase):
            waiting.remove(end)
            end.trials += [trial for trial in so_far[end.candidate] if trial not in end.trials]
            return end
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
