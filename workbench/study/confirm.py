"""What is to be trained again on fresh seeds: the best configurations of a study, asked for as a part of it."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.analysis.confirmed import each_once
from workbench.core.checks import whole
from workbench.core.errors import InvalidInput, StudyError
from workbench.knowledge.inbox import Controls, waiting_to_confirm
from workbench.knowledge.lock import driver_of
from workbench.study.results import Results

if TYPE_CHECKING:
    from workbench.study.study import Study


def ask_to_confirm(study: "Study", top: int, seeds: int) -> None:
    """Ask for the trials that a study's best configurations lack; see `StudyRun.confirm`.

    What was asked for before and still waits, for the driver that was to answer it did not come up, counts as begun;
    what failed, was stopped or has ended short of what it is to confirm, does not: a study may have gone on since.
    """
    for name, value in (("top", top), ("seeds", seeds)):
        if not whole(1).fits(value):
            raise InvalidInput(f"confirm takes a whole number >= 1 as {name}, got {value!r}")
    if driver := driver_of(Path(study.db), study.name):  # it would take the requests for its own
        raise StudyError(f"study {study.name!r} is being driven by {driver}: stop it, or confirm it once it is over")
    found = Results.open(study.db, study.name)
    if found.has_lineage:
        raise StudyError(
            f"study {study.name!r} handed weights from trial to trial: no configuration stands for the best weights; "
            "train their schedule again instead, results().write_schedule(…) and Replay"
        )
    claims = found.claims
    best = each_once(claims, claims["trial"].map(found.frames.configs)).head(top)
    if best.empty:
        raise StudyError(f"study {study.name!r} has nothing to confirm: no phase has ended")
    trials, controls = found.frames.trials, Controls(study.db, study.name)
    waiting = Counter[object]()
    candidates = dict(zip(trials["trial"], trials["candidate"], strict=True))
    for trial, n in waiting_to_confirm(study.db, study.name).items():
        waiting[candidates.get(trial)] += n
    for candidate, trial, phases in best[["candidate", "trial", "phases"]].itertuples(index=False, name=None):
        fresh = trials[trials["confirms"].astype(bool) & (trials["candidate"] == candidate)]
        short = fresh["state"].isin(["stopped", "finished"]) & (fresh["phases"] < phases)
        lost = (fresh["state"] == "failed") | short
        for _ in range(seeds - int((~lost).sum()) - waiting[candidate]):
            controls.confirm(int(trial), int(phases))
