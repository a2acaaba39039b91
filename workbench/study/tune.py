"""The best of a space for a function or class of one's own, in one call."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.algos.search import ASHA, HyperTrick
from workbench.core.domains import Domain
from workbench.core.errors import InvalidInput, StudyError
from workbench.core.failures import unwrapped
from workbench.core.places import DEFAULT_DB
from workbench.core.protocols import Scheduler
from workbench.study.run import StudyRun, see_through
from workbench.study.study import Study, unique_name

if TYPE_CHECKING:
    from workbench.study.results import Results

_MOST_TRIALS = 10_000  # where time is the limit


def tune(
    train: Callable[..., Any],
    space: Mapping[str, Domain],
    *,
    hours: float | None = None,
    n_trials: int | None = None,
    n_phases: int = 9,
    mode: str = "max",
    target_score: float | None = None,
    nodes: int | None = None,
    name: str | None = None,
    resume: bool = False,
    db: str | Path = DEFAULT_DB,
    seed: int = 0,
    fail_fast: bool = True,
) -> "Results":
    """Look for the configuration with the best score, stopping bad ones early; shows how far it is.

    With `n_trials` they are judged by HyperTrick; with `hours` alone by ASHA, which needs not know how many there will
    be. What was found stays in the knowledge base, whatever ends the search: the time, Ctrl-C, or the last trial.

    Parameters
    ----------
    train : callable
        What `Study` takes: a function that yields a score once a phase, or a class.
    space : Space, or dict of its dimensions
    hours : float, optional
        Most time to spend.
    n_trials : int, optional
        Configurations to try.
    n_phases : int
        Most phases a trial runs: how often `train` yields.
    mode : str
        ``max``, or ``min`` where a low score is good.
    target_score : float, optional
        Ends the search once a score is as good.
    nodes : int, optional
        Trials at a time, in processes of this machine; by default as of `Study`, one a core as far as memory allows.
    name : str, optional
        Of the study in the knowledge base; the function's, with a number if that is taken.
    resume : bool
        Go on with the study of that name, else of the function's, which was interrupted or is to have more `n_trials`
        or `hours`; the rest as it was begun.
    db : path
    seed : int
    fail_fast : bool
        Whether to stop once the first trials have all failed of one error, as of `Study`.

    Raises
    ------
    InvalidInput
        Something given is wrong; nothing was written.
    StudyError, SchedulerError
        There is nothing to resume, it is being driven, or it was begun otherwise; or all trials failed without a score.
    FirstTrialsFailed
        The first trials all failed of one error, or `train` yields less often than `n_phases` says.

    Examples
    --------
    >>> found = tune(train, {"lr": LogUniform(1e-4, 1e-1)}, hours=1)  # doctest: +SKIP
    >>> found.best_config  # doctest: +SKIP
    """
    if hours is None and n_trials is None:
        raise InvalidInput("tune needs to know when to end: pass hours=1, n_trials=50, or both")
    scheduler: Scheduler
    if n_trials is None:
        scheduler = ASHA(space, _MOST_TRIALS, n_phases, variant="stopping", seed=seed)
    else:
        scheduler = HyperTrick(space, n_trials, n_phases, seed=seed)
    where: dict[str, Any] = {"db": db, "nodes": nodes, "seed": seed, "fail_fast": fail_fast}
    aim: dict[str, Any] = {"mode": mode, "max_hours": hours, "target_score": target_score}

    def named(name: str) -> Study:
        return Study(name, scheduler, train, **aim, **where)

    if name is None and not resume:
        run = _begun(named, _name_of(train), db)
    else:
        run = named(name or _name_of(train)).start(resume=resume)
    interrupted, found = see_through(run, run.follow), run.results()
    if not (interrupted or found.best) and [*found.summary["states"]] == ["failed"]:
        from workbench.analysis import failure_lines

        failed = "; ".join(failure_lines(found.frames.trials))
        raise StudyError(f"no trial of study {found.name!r} has a score: {failed}")
    return found


def _begun(named: Callable[[str], Study], name: str, db: str | Path) -> StudyRun:
    """Begin a study under the next name that is free, and the one after it where another takes that meanwhile."""
    while True:
        study = named(unique_name(name, db))
        try:
            return study.start()
        except StudyError:
            if unique_name(study.name, db) == study.name:  # its name was not what it was refused for
                raise


def _name_of(train: Any) -> str:
    inner = unwrapped(train)
    return re.sub(r"\W+", "", getattr(inner, "__name__", type(inner).__name__)) or "study"
