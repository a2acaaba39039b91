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
from workbench.core.seeds import JUDGES
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
        So many of the best configurations, each once, are tried first; 0 for none. Those that ran the furthest come
        first; among as far, by the mean of the last scores of the seeds that came there.
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
    learns = tell and hasattr(searcher, "adopt")
    past = [trial for trial in fit if trial["whole"]] if learns else []
    told = [{k: trial[k] for k in ("config", "scores")} for trial in past]
    return InformedSearcher(searcher, _ranked(fit)[:best], told)


def _trials(events: list[Event]) -> list[dict[str, Any]]:
    """Give the trials that have scored: config, scores (higher is better), phases, and whether these begin at 0."""
    ledger, scores = Ledger(events), dict[int, dict[int, float]]()
    for event in events:
        if event.kind is Kind.PHASE_ENDED and event.trial is not None and math.isfinite(event.data["score"]):
            scores.setdefault(event.trial, {})[event.phase or 0] = ledger.aim.sign * event.data["score"]
    return [
        {"config": dict(ledger.trials[number].config), "scores": list(by_phase.values())}
        | {"phases": max(by_phase) + 1, "whole": min(by_phase) == 0}
        for number, by_phase in scores.items()
    ]


def _ranked(trials: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give every configuration once, the best first: neither a lucky seed nor a phase from which it fell counts."""
    by_config: dict[str, list[dict[str, Any]]] = {}
    for trial in trials:
        by_config.setdefault(repr(sorted(trial["config"].items())), []).append(trial)

    def order(seeds: list[dict[str, Any]]) -> tuple[int, float]:
        furthest = max(trial["phases"] for trial in seeds)
        last = [trial["scores"][-1] for trial in seeds if trial["phases"] == furthest]
        return furthest, JUDGES["mean"](last)

    return [seeds[0]["config"] for seeds in sorted(by_config.values(), key=order, reverse=True)]


def _fits(space: Space, config: dict[str, Any]) -> bool:
    try:
        space.validate(config)
    except WorkbenchError:
        return False
    return True
