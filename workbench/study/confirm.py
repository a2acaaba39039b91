"""The best configurations of a study trained again on fresh seeds, as a part of it."""

import pandas as pd

from workbench.analysis import claims
from workbench.core.errors import InvalidInput, StudyError
from workbench.knowledge.inbox import Controls
from workbench.study.results import Results
from workbench.study.run import StudyRun
from workbench.study.study import Study


def confirm(study: Study, top: int = 3, seeds: int = 10) -> pd.DataFrame:
    """Confirm a study's best configurations; see `StudyRun.confirm`."""
    for name, value in (("top", top), ("seeds", seeds)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InvalidInput(f"confirm takes a whole number >= 1 as {name}, got {value!r}")
    results = Results.open(study.db, study.name)
    if results.has_lineage:
        raise StudyError(
            f"study {study.name!r} handed weights from trial to trial: no configuration stands for the best weights; "
            "train their schedule again instead, results().write_schedule(…) and Replay"
        )
    best = claims(results.frames.trials, results.frames.aim.mode).head(top)
    if best.empty:
        raise StudyError(f"study {study.name!r} has nothing to confirm: no phase has ended")
    trials, controls = results.frames.trials, Controls(study.db, study.name)
    begun = trials[trials["confirms"].astype(bool) & (trials["state"] != "failed")].groupby("candidate").size()
    for candidate, trial, phases in best[["candidate", "trial", "phases"]].itertuples(index=False, name=None):
        for _ in range(seeds - int(begun.get(candidate, 0))):
            controls.confirm(int(trial), int(phases))
    StudyRun(study, resume=True, only_confirm=True).wait()
    return Results.open(study.db, study.name).confirmed
