"""What is to be trained again on fresh seeds: the best configurations of a study, asked for as a part of it."""

from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pandas as pd

from workbench.analysis.confirmed import deciding, each_once
from workbench.core.checks import whole
from workbench.core.errors import InvalidInput, StudyError
from workbench.core.interventions import HANDED_ON, Request
from workbench.knowledge.lock import refuse_driven
from workbench.study.results import Results

if TYPE_CHECKING:
    from workbench.study.study import Study


def requests_to_confirm(study: "Study", top: int, seeds: int) -> list[Request]:
    """Give the requests for the trials that a study's best configurations lack; see `StudyRun.confirm`.

    The best are those by fresh seeds, where these decide already which one to take, and then those of `claims`.
    What failed, was stopped or has ended short of what it is to confirm does not count: a study may have gone on since.
    """
    for name, value in (("top", top), ("seeds", seeds)):
        if not whole(1).fits(value):
            raise InvalidInput(f"confirm takes a whole number >= 1 as {name}, got {value!r}")
    refuse_driven(Path(study.db), study.name, "stop it, or confirm it once it is over")
    found = Results.open(study.db, study.name)
    if found.has_lineage:
        raise StudyError(f"study {study.name!r} {HANDED_ON}")
    names, claims = ["candidate", "trial", "phases"], found.claims
    rows = pd.concat([deciding(claims, found.confirmed)[names], claims[names]], ignore_index=True)
    best = each_once(rows, rows["trial"].map(found.frames.configs)).head(top)
    if best.empty:
        raise StudyError(f"study {study.name!r} has nothing to confirm: no phase has ended")
    trials, requests = found.frames.trials, []
    for candidate, trial, phases in best.itertuples(index=False, name=None):
        fresh = trials[trials["confirms"].astype(bool) & (trials["candidate"] == candidate)]
        short = fresh["state"].isin(["stopped", "finished"]) & (fresh["phases"] < phases)
        lost = (fresh["state"] == "failed") | short
        for _ in range(seeds - int((~lost).sum())):
            asked = {"confirms": True, "phases": int(phases)}
            requests.append(Request(uuid4().hex, "clone", int(trial), asked))
    return requests
