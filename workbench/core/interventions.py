"""What people may ask of a running study, and the answers: judged against the ledger, kept in the log."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.core.checks import is_finite, is_number, whole
from workbench.core.errors import InvalidInput, refuse_unknown, unknown
from workbench.core.ledger import Ledger, TrialRecord, TrialState
from workbench.core.protocols import Config, Event, Kind
from workbench.core.seeds import trial_seed
from workbench.core.space import Space

REMARKS: Mapping[str, str] = {"note": "text", "tag": "tag", "untag": "tag"}
"""What is only written down → what its words are called: nothing changes by it, so it needs no driver."""
ACTIONS = (
    "stop", "pause", "resume", "extend", "clone", "pause study", "resume study", "stop study", "scale", *REMARKS
)  # fmt: skip
HANDED_ON = (
    "handed weights from trial to trial: no configuration stands for the best weights; train their schedule again "
    "instead, results().write_schedule(…) and Replay"
)
"""Why nothing of a study is confirmed in which a trial began with another's weights."""
_ONLY = {
    "stop": "a trial that is not over can be stopped",
    "pause": "a running trial that nobody has paused can be paused",
    "resume": "a trial that a person has paused, and that is not over, can be resumed",
    "extend": "a trial that was stopped or has finished can be extended",
}
_MOST_PHASES = 10_000
_LONGEST_NOTE = 2000  # characters
_TAG = re.compile(r"(?!-)[^\s,:<>=]{1,40}")


@dataclass(frozen=True, slots=True)
class Request:
    """A person's wish.

    Attributes
    ----------
    id : str
        Its own; a request seen twice is answered once.
    action : str
        One of `ACTIONS`.
    trial : int or None
        The trial it concerns; of notes and tags without one, it is the study.
    data : Mapping
        ``text`` of a note, ``tag`` to put on or take off, ``phases`` to extend by or for a clone to run, ``config``
        changes of a clone, whether a clone ``confirms`` the trial's score with a fresh seed, ``nodes`` to scale to, and
        who asked (``by``).
    """

    id: str
    action: str
    trial: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


def possible(trial: TrialRecord) -> list[str]:
    """Name what may be asked of a trial as it stands; clones, notes and tags of it always may.

    That it is to be paused can be taken back before it is, also while its scheduler has paused or holds it.
    """
    now = {
        "stop": not trial.state.over,
        "pause": trial.state is TrialState.RUNNING and not trial.pausing,
        "resume": trial.pausing and not trial.state.over,
        "extend": trial.state is TrialState.STOPPED,
    }
    return [action for action, may in now.items() if may]


def judge(
    request: Request,
    ledger: Ledger,
    *,
    at: float,
    first_clone: int,
    n_phases: int,
    study_seed: int,
    scale: Callable[[int], None],
    space: object = None,
) -> list[Event]:
    """Answer a request with the events it causes, the first of which says whether it was accepted and why not.

    Parameters
    ----------
    first_clone : int
        Number of the first trial that the scheduler will never ask for.
    n_phases : int
        Phases a clone runs if the request does not say; one that confirms a trial that is over runs no more than it.
    scale : callable
        Asks the cluster for so many workers; raises `InvalidInput` if it cannot be scaled.
    space : Space, optional
        What a clone with changes stays within.
    """
    extra: list[Event] = []
    try:
        data = _checked(request, ledger, n_phases, space)
        if request.action == "scale":
            scale(data["nodes"])
        elif request.action == "stop":
            phase = ledger.trials[request.trial or 0].phase
            extra = [Event(Kind.TRIAL_STOPPED, at, request.trial, phase, data={"by": "person"})]
        elif request.action == "clone":
            extra = [_clone(request, data, ledger, at, first_clone, study_seed)]
        answer = {**data, "accepted": True}
    except InvalidInput as refusal:
        answer = {"accepted": False, "why": str(refusal)}
    asked = {"request": request.id, "action": request.action, "by": str(request.data.get("by", "person"))}
    trial = request.trial if request.trial is not None and request.trial in ledger else None
    return [Event(Kind.INTERVENTION, at, trial, data={**asked, **answer}), *extra]


def _checked(request: Request, ledger: Ledger, n_phases: int, space: object) -> dict[str, Any]:
    """Return the request's own data, or raise `InvalidInput` if it makes no sense now."""
    if request.action not in ACTIONS:
        raise unknown("action", request.action, ACTIONS)
    if request.action in ("pause study", "resume study"):
        if ledger.paused == (request.action == "pause study"):
            raise InvalidInput(f"the study is {'paused already' if ledger.paused else 'not paused'}")
        return {}
    if request.action == "stop study":
        return {}
    if request.action == "scale":
        return {"nodes": _count(request, "nodes", None)}
    if request.action in REMARKS and request.trial is None:
        return checked_remark(request.action, request.data.get(REMARKS[request.action]))
    if request.trial is None or request.trial not in ledger:
        raise InvalidInput(f"there is no trial {request.trial}: the study has begun {len(ledger)}")
    return _checked_trial(request, request.trial, ledger, n_phases, space)


def checked_remark(action: str, words: object) -> dict[str, str]:
    """Give what a note or a tag holds, without the space around its words.

    Raises
    ------
    InvalidInput
        They are no note, or no tag.
    """
    given = words.strip() if isinstance(words, str) else ""
    name = REMARKS[action]
    if name == "text" and not 0 < len(given) <= _LONGEST_NOTE:
        raise InvalidInput(f"a note is 1 to {_LONGEST_NOTE} characters, got {str(words)[:40]!r}")
    if name == "tag" and not (given.isprintable() and _TAG.fullmatch(given)):
        raise InvalidInput(
            f"a tag is one word of at most 40 characters without , : < > = or a leading -, got {str(words)[:60]!r}"
        )
    return {name: given}


def _checked_trial(request: Request, trial: int, ledger: Ledger, n_phases: int, space: object) -> dict[str, Any]:
    if request.action in REMARKS:
        return checked_remark(request.action, request.data.get(REMARKS[request.action]))
    known = ledger.trials[trial]
    if request.action in _ONLY and request.action not in possible(known):
        raise InvalidInput(f"trial {trial} is {known.standing}: only {_ONLY[request.action]}")
    if request.action == "extend":
        return {"phases": _count(request, "phases", None)}
    if request.action == "clone":
        changes = request.data.get("config", {})
        if not isinstance(changes, Mapping):
            raise InvalidInput(f"the changes of a clone are hyperparameters by name, got {changes!r}")
        confirms = {"confirms": True} if request.data.get("confirms") is True and not changes else {}
        if confirms and any(other.parent_phase is not None for other in ledger.trials.values()):
            raise InvalidInput(f"the study {HANDED_ON}")
        config = _changed(trial, ledger.job(trial).config, changes, space)
        as_far = min(max(known.phases, 1), n_phases) if confirms and known.state.over else n_phases
        return {"config": config, "phases": _count(request, "phases", as_far), **confirms}
    return {}


def _changed(trial: int, config: Config, changes: Config, space: object) -> Config:
    """Give a trial's configuration with a person's changes; what no longer applies after them is left out."""
    made = {**config, **changes}
    if not changes or not isinstance(space, Space):
        for name, value in changes.items():
            if name not in config:
                raise unknown("hyperparameter", str(name), config)
            if not _is_like(value, config[name]):
                raise InvalidInput(f"{name} is {config[name]!r} in trial {trial}; a clone cannot have {value!r}")
        return made
    refuse_unknown("hyperparameter", changes, space)
    made = {name: value for name, value in made.items() if name in changes or space.applies(name, made)}
    try:
        space.validate(made)
    except InvalidInput as err:
        raise InvalidInput(f"{err}: a clone stays within its study's space, start a study with a wider one") from None
    return made


def _is_like(value: object, known: object) -> bool:
    """Tell whether a value may stand where another stands: a finite number for a number, else one of its type."""
    return is_finite(value) if is_number(known) else type(value) is type(known)


def _count(request: Request, name: str, default: int | None) -> int:
    n = request.data.get(name, default)
    if not whole(1, _MOST_PHASES).fits(n):
        raise InvalidInput(f"to {request.action} takes a whole number of {name} from 1 to {_MOST_PHASES}, got {n!r}")
    return int(n)


def _clone(
    request: Request, data: Mapping[str, Any], ledger: Ledger, at: float, first_clone: int, study_seed: int
) -> Event:
    """A trial of its own: numbered after all the scheduler's, from scratch, with its own seed."""
    number = next(n for n in range(first_clone, first_clone + len(ledger) + 1) if n not in ledger)
    run = {
        "config": data["config"],
        "parent": None,
        "clone_of": request.trial,
        "seed": trial_seed(study_seed, number),
        "own_phases": data["phases"],
        "by": "person",
    }
    if data.get("confirms"):
        run |= {"confirms": True, "candidate": ledger.trials[request.trial or 0].candidate}
    return Event(Kind.RUN, at, number, 0, data=run)
