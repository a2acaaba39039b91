"""Warm starts: what earlier studies of a knowledge base know, for the searcher of a new one."""

import math
import warnings
from pathlib import Path
from typing import Any

from workbench.algos.search.informed import InformedSearcher
from workbench.algos.search.searchers import Searched, searcher_of
from workbench.core.checks import whole
from workbench.core.errors import InvalidInput, WorkbenchError
from workbench.core.ledger import Ledger
from workbench.core.protocols import Event, Kind
from workbench.core.space import Space
from workbench.knowledge import KnowledgeBase


def warm_start(searcher: Searched, db: str | Path, *studies: str, best: int = 3, tell: bool = True) -> InformedSearcher:
    """Let a searcher begin with what earlier studies know.

    What is taken over is copied into the searcher, and so into the new study's record: it resumes by its name, whatever
    becomes of the earlier ones. Scores are comparable only if the trials learn the same thing over phases of the same
    length, which is for whoever starts the study to know; trials whose configuration is no point of the searcher's
    space are left out with a warning.

    Parameters
    ----------
    searcher : Searcher, Space or dict
        Of any kind; configurations of a space are drawn at random.
    db : path
        The knowledge base of the earlier studies.
    *studies : str
        Their names.
    best : int
        So many of the best configurations, each once, are tried first; 0 for none.
    tell : bool
        Tell a searcher that learns (`OptunaSearcher`, `SMACSearcher`, `EvolutionSearcher`, `CostAwareSearcher`) of all
        their trials, those excepted that went on from another's weights.

    Raises
    ------
    DatabaseError, StudyError
        There is no such file, or no such study in it.
    """
    if not whole(0).fits(best) or not studies:
        raise InvalidInput(f"a warm start needs one or more studies and best >= 0, got {studies} and {best!r}")
    searcher = searcher_of(warm_start, searcher)
    with KnowledgeBase(db) as kb:
        known = [trial for name in studies for trial in _trials(kb[name].events())]
    space: Space | None = getattr(searcher, "space", None)
    fit = [trial for trial in known if space is None or _fits(space, trial["config"])]
    if len(fit) < len(known):
        said = f"{len(known) - len(fit)} of {len(known)} earlier trials lie outside the space and are left out"
        warnings.warn(said, stacklevel=2)
    ranked = sorted(fit, key=lambda trial: -max(trial["scores"]))
    first = [trial["config"] for k, trial in enumerate(ranked) if _is_new(trial, ranked[:k])]
    learns = tell and hasattr(searcher, "adopt")
    past = [trial for trial in fit if trial["whole"]] if learns else []
    return InformedSearcher(searcher, first[:best], [{k: trial[k] for k in ("config", "scores")} for trial in past])


def _trials(events: list[Event]) -> list[dict[str, Any]]:
    """Give the trials that have scored: config, scores (higher is better), and whether these begin at phase 0."""
    ledger, scores = Ledger(events), dict[int, dict[int, float]]()
    for event in events:
        if event.kind is Kind.PHASE_ENDED and event.trial is not None and math.isfinite(event.data["score"]):
            scores.setdefault(event.trial, {})[event.phase or 0] = ledger.aim.sign * event.data["score"]
    return [
        {"config": dict(ledger.trials[number].config), "scores": list(by_phase.values()), "whole": min(by_phase) == 0}
        for number, by_phase in scores.items()
    ]


def _fits(space: Space, config: dict[str, Any]) -> bool:
    try:
        space.validate(config)
    except WorkbenchError:
        return False
    return True


def _is_new(trial: dict[str, Any], better: list[dict[str, Any]]) -> bool:
    return all(trial["config"] != other["config"] for other in better)
