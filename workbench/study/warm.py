"""Warm starts: what earlier studies of a knowledge base know, for the searcher of a new one."""

import math
import warnings
from pathlib import Path
from typing import Any, cast

import pandas as pd

from workbench.algos.search.informed import InformedSearcher
from workbench.algos.search.searchers import Searched, searcher_of
from workbench.analysis.confirmed import each_once, few_seeds, ranked
from workbench.core.checks import whole
from workbench.core.errors import InvalidInput, WorkbenchError
from workbench.core.ledger import Ledger
from workbench.core.protocols import Report
from workbench.core.space import Space
from workbench.knowledge import KnowledgeBase, RecordedStudy, frames_of
from workbench.study.results import Results


def warm_start(searcher: Searched, db: str | Path, *studies: str, best: int = 3, tell: bool = True) -> InformedSearcher:
    """Let a searcher begin with what earlier studies know.

    What is taken over is copied into the searcher, and so into the new study's record: it resumes by its name, whatever
    becomes of the earlier ones. Scores are comparable only if the trials learn the same thing over phases of the same
    length, which is for whoever starts the study to know, and costs only on machines as fast; trials whose
    configuration is no point of the searcher's space are left out with a warning.

    Parameters
    ----------
    searcher : Searcher, Space or dict
        Of any kind; configurations of a space are drawn at random.
    db : path
        The knowledge base of the earlier studies.
    *studies : str
        Their names.
    best : int
        So many of the best configurations, each once, are tried first; 0 for none. Of one study its `best` is the
        first. Then come those that ran the furthest, of them those first whose claim does not stand on few of its
        study's seeds (see `workbench.analysis.claims`), by their scores: of fresh seeds where there are any.
    tell : bool
        Tell a searcher that learns (`OptunaSearcher`, `SMACSearcher`, `EvolutionSearcher`, `CostAwareSearcher`) of all
        their trials, those excepted that went on from another's weights. One with ``learns_costs = True``, as
        `CostAwareSearcher` has, hears what their phases took, too: of each trial, so of each seed, by itself.

    Raises
    ------
    DatabaseError, StudyError
        There is no such file, or no such study in it.
    """
    if not whole(0).fits(best) or not studies:
        raise InvalidInput(f"a warm start needs one or more studies and best >= 0, got {studies} and {best!r}")
    if not isinstance(db, (str, Path)):
        raise InvalidInput(
            f"warm_start needs db, the path of a knowledge base, got {type(db).__name__}: results that are in none go "
            'into InformedSearcher(searcher, past=[{"config": …, "scores": […]}, …])'
        )
    searcher = searcher_of(warm_start, searcher)
    space: Space | None = getattr(searcher, "space", None)
    with KnowledgeBase(db) as kb:
        earlier = [_earlier(kb[name]) for name in studies]
    known = [trial for trials, _ in earlier for trial in trials]
    fit = [trial for trial in known if space is None or _fits(space, trial["config"])]
    if len(fit) < len(known):
        said = f"{len(known) - len(fit)} of {len(known)} earlier trials lie outside the space and are left out"
        warnings.warn(said, stacklevel=2)
    learns = tell and hasattr(searcher, "adopt")
    past = [trial for trial in fit if trial["whole"]] if learns else []
    # seconds only for whom they change something: they would make another record of an earlier study's warm start
    keys = ("config", "scores", *(["seconds"] if getattr(searcher, "learns_costs", False) else []))
    told = [{key: trial[key] for key in keys} for trial in past]
    claims = [claim for _, claims in earlier for claim in claims if space is None or _fits(space, claim["config"])]
    return InformedSearcher(searcher, _ranked(claims, led=len(studies) == 1)[:best], told)


def _earlier(study: RecordedStudy) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Give a study's trials that have scored, and what it claims of its configurations; higher is better in both.

    Of a trial: config, its phases' scores and seconds, and whether these begin with phase 0. Of a claim: a row of
    `claims`, config, score (of fresh seeds, if it has any), whether it has few seeds, and whether it is the one to
    take.
    """
    events = study.events()
    ledger, reports = Ledger(events), dict[int, dict[int, Report]]()
    configs, sign = {number: dict(trial.config) for number, trial in ledger.trials.items()}, ledger.aim.sign
    for event in events:
        if (report := event.report()) and math.isfinite(report.score):
            reports.setdefault(report.trial, {})[report.phase] = report
    trials = [
        {
            "config": configs[number],
            "scores": [sign * report.score for report in by_phase.values()],
            "seconds": [report.seconds for report in by_phase.values()],
            "whole": min(by_phase) == 0,
        }
        for number, by_phase in reports.items()
    ]
    found = Results(study.name, study.spec, frames_of(events))
    rows, confirmed = found.claims, found.confirmed.set_index("candidate")
    failed = confirmed.index[confirmed["confirmed_on"] == 0]  # on all fresh seeds
    rows = rows[~rows["candidate"].isin(failed)]
    fresh = rows["candidate"].map(confirmed["confirmed"])
    rows = rows.assign(
        config=rows["trial"].map(configs),
        score=sign * fresh.fillna(rows["claimed"]),
        few=few_seeds(rows) & fresh.isna(),
        taken=rows["candidate"] == found.best.get("candidate"),
    )
    return trials, cast("list[dict[str, Any]]", rows.to_dict("records"))


def _ranked(claims: list[dict[str, Any]], *, led: bool) -> list[dict[str, Any]]:
    """Give every configuration once, the best first; the one that its study would take before all, if it is to lead."""
    if not claims:
        return []
    rows = pd.DataFrame(claims)
    rows = ranked(rows, score="score", few=rows["few"])
    rows = rows.sort_values("taken", ascending=False, kind="stable", ignore_index=True) if led else rows
    configs: list[dict[str, Any]] = each_once(rows, rows["config"])["config"].to_list()
    return configs


def _fits(space: Space, config: dict[str, Any]) -> bool:
    try:
        space.validate(config)
    except WorkbenchError:
        return False
    return True
