"""What schedulers and searchers ask for and answer: they may be anybody's, and are told in one line what is wrong."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from workbench.core.checks import is_number
from workbench.core.domains import scalar
from workbench.core.errors import InvalidInput, SchedulerError, WorkbenchError, first_line
from workbench.core.failures import place_of, short
from workbench.core.ledger import TrialState
from workbench.core.measured import one_line
from workbench.core.protocols import (
    Config,
    Decision,
    Expectation,
    Report,
    Run,
    Scheduler,
    Searcher,
    Verdict,
    expectation_of,
)

_TABLES = (dict, Mapping)  # asking for a dict first is three times as fast, which virtual time notices
_NUMBERS = ("trial", "parent", "phase", "slot", "candidate")
_PLAIN = frozenset({bool, int, float, str, type(None)})
_WORD = frozenset({str})
_SIZES = ("n_trials", "n_phases", "expected_phases")


def check_scheduler(given: object) -> None:
    """Refuse what is no scheduler, such as the name or the class of one, and what lacks a part of it.

    Raises
    ------
    InvalidInput
        It is none, or tells its size in what is no number.
    SchedulerError
        The user's own code in a part of it failed.
    """
    name = type(given).__name__
    if isinstance(given, type) or not (hasattr(given, "ask") and hasattr(given, "tell")):
        raise InvalidInput(f"a scheduler is an object such as HyperTrick(…), got {short(given)}")
    parts = {part: _part(given, part) for part in _SIZES}
    if missing := [part for part, size in parts.items() if size is None and not hasattr(given, part)]:
        raise InvalidInput(
            f"{name} lacks {', '.join(missing)}: a scheduler has n_trials, n_phases, expected_phases, ask() and "
            "tell(report)"
        )
    for part, size in parts.items():
        if not is_number(size):
            how = ", a property" if callable(size) else ""
            raise InvalidInput(f"{part} of {name} is a number{how}, got {short(size)}")
    if not isinstance(expected := _part(given, "expectation"), Expectation | None):
        raise InvalidInput(f"expectation() of {name} gave {short(expected)}: give Expectation(began, fewest) or None")


def _part(scheduler: Any, name: str) -> Any:
    """Ask a scheduler for a part that tells of its size; ``None`` where it has none of that name."""
    try:
        return expectation_of(scheduler) if name == "expectation" else scalar(getattr(scheduler, name))
    except Exception as err:
        if isinstance(err, AttributeError) and name not in dir(scheduler):
            return None
        _tell_of_own(f"{name} of {type(scheduler).__name__}", err)
        raise


def fresh(scheduler: Scheduler) -> Scheduler:
    """Give a copy of a scheduler, for a study to work on.

    Raises
    ------
    InvalidInput
        It holds what cannot be copied.
    """
    try:
        return copy.deepcopy(scheduler)
    except Exception as err:  # noqa: BLE001  copying runs whatever code an object brings along
        raise InvalidInput(
            f"{type(scheduler).__name__} cannot be copied ({first_line(err)}), and a study works on copies of its "
            "scheduler: let it hold no files, connections, locks or generators"
        ) from None


def suggested(searcher: Searcher, number: int) -> Config | None:
    """Take a searcher's configuration of this number, counted from 0; ``None`` where none is left.

    Raises
    ------
    SchedulerError
        It gave what is no configuration, or none at all; or the user's own code in it failed.
    """
    what = f"suggest({number}) of {type(searcher).__name__}"
    try:
        given: Any = searcher.suggest(number)
    except Exception as err:
        _tell_of_own(what, err)
        raise
    if isinstance(given, _TABLES):
        return dict(given)  # a searcher may change its own for the next one
    if given is None and number:
        return None
    raise SchedulerError(  # of None at once, too: nothing would run, where a function has forgotten its return
        f"{what} gave {short(given)}: return a configuration, such as {{'lr': 0.1}}, and None only once none is left"
    )


def observed(searcher: Searcher, report: Report) -> None:
    """Let a searcher hear of a report.

    Raises
    ------
    SchedulerError
        The user's own code in it failed.
    """
    try:
        searcher.observe(report)
    except Exception as err:
        _tell_of_own(f"observe() of {type(searcher).__name__}", err)
        raise


def _tell_of_own(what: str, err: Exception) -> None:
    """Say in one line what the user's own code has raised, and where; a fault of any other code keeps its traceback."""
    if not isinstance(err, WorkbenchError) and (place := place_of(err)):
        raise SchedulerError(f"{what} raised {one_line(err)} ({place})") from err


def asked(
    scheduler: Scheduler, state: Callable[[int], TrialState | None], paused: Callable[[int], tuple[int, Config]]
) -> Run | None:
    """Ask for the next trial, and refuse what is none.

    Parameters
    ----------
    scheduler : Scheduler
    state : callable
        Trial → where it stands; ``None``: nobody has asked for it.
    paused : callable
        Trial → the phase that it is to end next, and its configuration; it is asked about paused ones alone.
    """
    name = type(scheduler).__name__
    try:
        given: Any = scheduler.ask()
    except Exception as err:
        _tell_of_own(f"ask() of {name}", err)
        raise
    if given is None:
        return None
    if not isinstance(given, Run) or not isinstance(given.config, _TABLES):
        raise SchedulerError(
            f"ask() of {name} gave {short(given)}: give Run(trial, config), config being a dict, or None to start "
            "nothing now"
        )
    run = _as_logged(given, name)
    stands = state(run.trial)
    if stands is not None and stands is not TrialState.PAUSED:
        raise SchedulerError(
            f"{name} asks for trial {run.trial}, which is {stands}: a new one has a number of its own, and only a "
            "paused one is asked for again"
        )
    if stands is not None:
        _check_resumed(run, *paused(run.trial), name)
    else:
        _check_begun(run, name)
    if run.phase >= scheduler.n_phases:
        raise SchedulerError(f"{name} asks for trial {run.trial} in phase {run.phase}: {_last(scheduler)}")
    if run.parent is not None and state(run.parent) is None:
        raise SchedulerError(
            f"{name} asks for trial {run.trial} to go on from trial {short(run.parent)}, which it has not asked for: "
            "a parent is an earlier trial"
        )
    return run


def _check_begun(run: Run, name: str) -> None:
    """Refuse to begin a trial with what is no phase, or within a training of which it has no weights."""
    if type(run.phase) is not int or run.phase < 0 or (run.parent is None and run.phase):
        raise SchedulerError(
            f"{name} asks for trial {run.trial} to begin with phase {short(run.phase)}: phases are whole numbers from "
            "0, and a trial without a parent, whose weights it would go on with, begins with phase 0"
        )


def _check_resumed(run: Run, phase: int, config: Config, name: str) -> None:
    """Refuse to go on with a paused trial in another phase than is due, from nobody, or with another configuration."""
    if run.phase != phase or run.parent is None:
        asked = f"in phase {short(run.phase)}" if run.phase != phase else "without a parent"
        raise SchedulerError(
            f"{name} asks for trial {run.trial} {asked}, which was paused before phase {phase}: "
            f"give Run({run.trial}, config, parent={run.trial}, phase={phase})"
        )
    if not same_config(run.config, config):
        raise SchedulerError(
            f"{name} asks for the paused trial {run.trial} with {short(run.config)}, which runs {short(config)}: "
            f"a new configuration is a new trial, Run(number, config, parent={run.trial}, phase={phase})"
        )


def same_config(one: Config, other: Config) -> bool:
    """Tell whether two configurations are the same; NaN, which a log gives back as another object, is NaN."""
    return one == other or _without_nan(one) == _without_nan(other)


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_nan(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return value if value == value else "NaN"


def answered(scheduler: Scheduler, report: Report, state: Callable[[int], TrialState | None]) -> Mapping[int, Decision]:
    """Tell of a report; refuse what is no answer, one that leaves the reporter waiting, and one for whom it may not be.

    Reasons are given as the log gives them back, as `asked` gives configurations.

    Parameters
    ----------
    scheduler : Scheduler
    report : Report
    state : callable
        As of `asked`; it is asked about others than the reporter alone.
    """
    try:
        decisions: Any = scheduler.tell(report)
    except Exception as err:
        _tell_of_own(f"tell() of {type(scheduler).__name__}", err)
        raise
    if not isinstance(decisions, _TABLES):
        raise _no_decisions(decisions, scheduler)
    plain, reporter = True, report.trial
    for trial, decision in decisions.items():  # a loop, for millions of reports in virtual time
        if not isinstance(decision, Decision) or not isinstance(decision.verdict, Verdict):
            raise _no_decisions(decisions, scheduler)
        if not isinstance(reason := decision.reason, _TABLES):
            raise _no_decisions(decisions, scheduler)
        if trial != reporter and (why := _not_to_be_told(decision.verdict, state(trial))):
            raise SchedulerError(f"tell() of {type(scheduler).__name__} answers for trial {short(trial)}, which {why}")
        plain = plain and type(trial) is int and _is_plain(reason)
    if reporter not in decisions and not report.failed:
        raise SchedulerError(
            f"tell() of {type(scheduler).__name__} gave no decision for trial {reporter}, whose report it was: it "
            "may continue, hold, pause or stop"
        )
    is_last = report.phase + 1 >= scheduler.n_phases
    if is_last and reporter in decisions and decisions[reporter].verdict is Verdict.CONTINUE:
        who = f"tell() of {type(scheduler).__name__} lets trial {reporter} go on after phase {report.phase}"
        raise SchedulerError(f"{who}: {_last(scheduler)}")
    if plain:
        return decisions
    who = f"{type(scheduler).__name__} decides on trial"
    return {
        int(trial): replace(d, reason=_table_read_back(d.reason, "reason", f"{who} {trial}"))
        for trial, d in decisions.items()
    }


def _last(scheduler: Scheduler) -> str:
    return f"the last of its n_phases = {scheduler.n_phases} is phase {scheduler.n_phases - 1}, where a trial stops"


def _not_to_be_told(verdict: Verdict, stands: TrialState | None) -> str:
    """Say why a trial that stands so, and has not reported, may not be told this; of one that is over it is not heard.

    Of one that a person has set aside its scheduler knows no more than that it is to run a phase.
    """
    if stands is None:
        return "it has not asked for"
    if stands is TrialState.RUNNING or stands is TrialState.SET_ASIDE:
        return "is in a phase"
    if stands is TrialState.PAUSED and verdict in (Verdict.CONTINUE, Verdict.HOLD):
        return "is on no slot: ask for it instead"
    return ""


def _as_logged(run: Run, name: str) -> Run:
    """Give a run as the log gives it back: NumPy's numbers as Python's, tuples as lists.

    What a log cannot hold is refused, and so is what it would give back as something else.
    """
    numbers, config = [getattr(run, key) for key in _NUMBERS], run.config
    if not (_PLAIN.issuperset(map(type, numbers)) and _is_plain(config)):
        config = _table_read_back(config, "hyperparameter", f"{name} asks for trial {run.trial}")
        run = replace(run, config=config, **dict(zip(_NUMBERS, map(scalar, numbers), strict=True)))
    if type(run.trial) is not int or run.trial < 0:
        raise SchedulerError(f"{name} asks for trial {short(run.trial)}: trials are numbered, whole and from 0")
    return run


def _is_plain(table: Mapping[Any, Any]) -> bool:
    return _WORD.issuperset(map(type, table)) and _PLAIN.issuperset(map(type, table.values()))


def _table_read_back(table: Mapping[Any, Any], of: str, who: str) -> dict[str, Any]:
    """Give a configuration, or a reason, as the log gives it back."""
    if wrong := [word for word in table if not isinstance(word, str)]:
        raise _not_held(f"a {of} called {short(wrong[0])}", who)
    return {word: _read_back(value, word, who) for word, value in table.items()}


def _read_back(value: Any, word: str, who: str) -> Any:
    value = scalar(value)
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    if isinstance(value, (list, tuple)):
        return [_read_back(item, word, who) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _read_back(item, word, who) for key, item in value.items()}
    raise _not_held(f"{word} = {short(value)}", who)


def _not_held(what: str, who: str) -> SchedulerError:
    return SchedulerError(
        f"{who} with {what}: a log holds words as names, and numbers, words, true, false, "
        "None, lists and dicts of these as values; name anything else, and look up what the name stands for"
    )


def _no_decisions(answer: object, scheduler: Scheduler) -> SchedulerError:
    return SchedulerError(
        f"tell() of {type(scheduler).__name__} gave {short(answer)}: "
        "give {trial: Decision(Verdict.CONTINUE, {'mode': …})}"
    )
