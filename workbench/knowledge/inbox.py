"""How people's requests reach a running study: one small file each, in a folder beside the knowledge base.

Viewers never write to the database. A request is written under another name and renamed, so the driver sees it whole
or not at all; it is removed only once its answer is in the log.
"""

import json
import math
import os
import time
import uuid
import warnings
from collections.abc import Collection, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.core.checks import whole
from workbench.core.domains import scalar
from workbench.core.errors import InvalidInput, StudyError
from workbench.core.failures import short
from workbench.core.interventions import REMARKS, Request, judge
from workbench.core.ledger import Ledger
from workbench.core.places import db_path
from workbench.core.protocols import Config
from workbench.knowledge.lock import driver_of, lock_path, private
from workbench.knowledge.reader import KnowledgeBase
from workbench.knowledge.writer import StudyLog

_MOST_BYTES = 1 << 16  # of a request: hyperparameters and a few words


def send(db: str | Path, study: str, action: str, trial: int | None = None, **data: Any) -> str:
    """Ask something of a study; the answer will stand in its log, under the id returned.

    Parameters
    ----------
    db : path
    study : str
    action : str
        One of `workbench.core.interventions.ACTIONS`.
    trial : int, optional
    **data
        ``phases``, ``config``, ``nodes``, as the action needs.

    Raises
    ------
    InvalidInput
        The trial is no number, or something else is what no request can hold, or too much for one.
    DatabaseError, StudyError
        There is no such knowledge base, or no such study in it; or the request cannot be written beside it.
    """
    if trial is not None and not (number := whole(0)).fits(trial):
        raise InvalidInput(f"{action} takes the number of a trial, {number.words}, got {trial!r}")
    with KnowledgeBase(db) as kb:
        identity = kb[study].identity  # a name that is mistaken makes no folder
    text = json.dumps({"study": identity, "action": action, "trial": trial, "data": data}, default=_plain)
    if len(text) > _MOST_BYTES:  # nobody would read it
        most, least = _MOST_BYTES >> 10, math.ceil(len(text) / 1024)
        raise InvalidInput(f"a request takes {most} KiB at most, and to {action} so takes {least} KiB: shorten it")
    try:
        return _put(inbox_path(db_path(db), study), text)
    except OSError as err:
        do = "see to the rights there" if isinstance(err, PermissionError) else "make space there"
        if action == "stop study" and (driver := driver_of(db_path(db), study)) is not None:
            do += f", or end {driver}"
        asked = f"study {study!r} cannot be asked to {action.removesuffix(' study')} beside {db}"
        raise StudyError(f"{asked} ({err.strerror or err}): {do}") from None


def _put(folder: Path, text: str) -> str:
    """Put a request into its folder, whole or not at all; give its id."""
    folder.mkdir(mode=0o700, exist_ok=True)
    newest = max((int(file.name[:20]) for file in folder.glob("*.json") if file.name[:20].isdecimal()), default=0)
    stamp = max(time.time_ns(), newest + 1)  # the clock may have been set back since the last request
    request = f"{stamp:020}-{uuid.uuid4().hex[:8]}"
    part = folder / f".{request}.part"
    try:
        with open(part, "w", encoding="utf-8", opener=private) as file:
            file.write(text)
        os.replace(part, folder / f"{request}.json")
    finally:
        part.unlink(missing_ok=True)
    return request


def _plain(value: Any) -> Any:
    if (plain := scalar(value)) is value:
        raise InvalidInput(
            f"a request holds numbers, words, true, false, None, lists and dicts of these, got {short(value)}"
        )
    return plain


def settle(db: str | Path, study: str) -> None:
    """Answer the notes and tags that wait for a study that nobody drives; the other requests wait on.

    What comes while it does so is answered too: whoever wrote it took this for a driver.

    Raises
    ------
    DatabaseError
        The file cannot be written to.
    """
    path = db_path(db)
    while Inbox(path, study).waiting(REMARKS) and driver_of(path, study) is None and _answer_remarks(path, study):
        pass


def _answer_remarks(path: Path, study: str) -> bool:
    """Answer the notes and tags that wait; tell whether there were any that nobody had answered."""
    with KnowledgeBase(path) as kb:
        recorded = kb[study]
        past, seen = recorded.events_since()
        ledger = Ledger(past)  # of a large study it takes a while: read before the study is claimed
        try:
            log = StudyLog(path, study, resume=True)
        except StudyError:
            return False  # somebody has taken it up meanwhile, and will answer
        with closing(log):
            for event in recorded.events_since(seen)[0]:
                ledger.see(event)
            ledger.pass_to(log.last_metric_s)
            inbox, at = Inbox(path, study, log.identity), ledger.at
            new = [request for request in inbox.waiting(REMARKS) if request.id not in ledger.requests]
            for request in new:
                log.append(judge(request, ledger, at=at, first_clone=0, n_phases=1, study_seed=0, scale=_nowhere))
            inbox.done()
    return bool(new)


@dataclass(frozen=True)
class Controls:
    """What a person can do to a running study, from anywhere that sees the knowledge base.

    Every method returns at once with the request's id; the driver answers within a second, in the log
    (`Frames.interventions`). Where nobody drives the study a warning says so, and the request waits for whoever does
    next, but for `stop_study`, which is dropped. Notes and tags need no driver: where there is none they stand in the
    log on return.
    """

    db: str | Path
    study: str

    def stop(self, trial: int) -> str:
        """Stop a trial now; the phase under way is lost, its checkpoints stay."""
        return self._ask("stop", trial)

    def pause(self, trial: int) -> str:
        """Set a trial aside at the end of its phase, freeing its slot."""
        return self._ask("pause", trial)

    def resume(self, trial: int) -> str:
        """Let a trial that was set aside go on, on the next free slot."""
        return self._ask("resume", trial)

    def extend(self, trial: int, phases: int) -> str:
        """Run a trial that is over for some phases more; the scheduler does not hear of them."""
        return self._ask("extend", trial, phases=phases)

    def clone(self, trial: int, config: Config | None = None, phases: int | None = None) -> str:
        """Start a trial of its own with another's configuration, changed; the scheduler does not hear of it.

        It is a point of the study's space, if there is one; what no longer applies after the change is left out.
        """
        more = {} if phases is None else {"phases": phases}
        return self._ask("clone", trial, config=dict(config or {}), **more)

    def confirm(self, trial: int, phases: int | None = None) -> str:
        """Train a trial's configuration again with a fresh seed; see `StudyRun.confirm`."""
        more = {} if phases is None else {"phases": phases}
        return self._ask("clone", trial, confirms=True, **more)

    def pause_study(self) -> str:
        """Let running phases end, and begin no further ones."""
        return self._ask("pause study")

    def resume_study(self) -> str:
        """Go on after `pause_study`."""
        return self._ask("resume study")

    def stop_study(self) -> str:
        """End the study now; the phases under way are lost, and it can be resumed."""
        return self._ask("stop study")

    def scale(self, nodes: int) -> str:
        """Ask the cluster for so many workers, where it can be scaled."""
        return self._ask("scale", nodes=nodes)

    def note(self, text: str, trial: int | None = None) -> str:
        """Write something down about a trial, or about the study; see `Frames.notes`."""
        return self._remark("note", trial, text=text)

    def tag(self, tag: str, trial: int | None = None) -> str:
        """Put a tag, one word, on a trial or on the study; see `Frames.tags`."""
        return self._remark("tag", trial, tag=tag)

    def untag(self, tag: str, trial: int | None = None) -> str:
        """Take a tag off."""
        return self._remark("untag", trial, tag=tag)

    def _ask(self, action: str, trial: int | None = None, **data: Any) -> str:
        request = send(self.db, self.study, action, trial, **data)
        if driver_of(db_path(self.db), self.study) is None:
            so = "there is nothing to stop" if action == "stop study" else "this waits, and is done when it is resumed"
            warnings.warn(f"nobody drives study {self.study!r}: {so}", stacklevel=3)
        return request

    def _remark(self, action: str, trial: int | None, **words: str) -> str:
        request = send(self.db, self.study, action, trial, **words)
        settle(self.db, self.study)
        return request


class Inbox:
    """The driver's end: requests in the order they were sent.

    Parameters
    ----------
    db : Path
    study : str
    identity : str, optional
        The study's: what was asked of another of its name, which has been deleted meanwhile, is refused.
    """

    def __init__(self, db: Path, study: str, identity: str = "") -> None:
        self._folder, self._identity = inbox_path(db, study), identity
        self._taken: list[Path] = []

    def __call__(self) -> Sequence[Request]:
        """Take what has come in; what was taken by the last call has been answered, and is removed.

        What cannot be removed, or is no file, does no harm: a request is answered once, by its id.
        """
        self.done()
        self._taken = self._files()
        return [self._read(file) for file in self._taken]

    def waiting(self, actions: Collection[str]) -> Sequence[Request]:
        """Take only the requests of these kinds, and leave the others where they are."""
        read = [(file, self._read(file)) for file in self._files()]
        self._taken = [file for file, request in read if request.action in actions]
        return [request for _, request in read if request.action in actions]

    def holds(self, action: str) -> bool:
        """Tell whether a request of this kind has come in, and take none."""
        return any(self._read(file).action == action for file in self._files())

    def done(self) -> None:
        """Remove what was taken: it has been answered."""
        for file in self._taken:
            with suppress(OSError):
                file.unlink()
        self._taken = []

    def _files(self) -> list[Path]:
        files = sorted(self._folder.glob("*.json")) if self._folder.is_dir() else []
        return [file for file in files if file.is_file()]

    def _read(self, file: Path) -> Request:
        """Read a request; one that makes no sense becomes one that will be refused with its own words."""
        name = file.stem.encode("ascii", "backslashreplace").decode()  # whatever the file system calls a name
        try:
            if file.stat().st_size > _MOST_BYTES:
                return Request(name, "unreadable request: too large")
            request = json.loads(file.read_text(encoding="utf-8"), parse_constant=_refused)
            json.dumps(request, ensure_ascii=False).encode()  # half a surrogate pair can be read, not be written down
            if self._identity and request.get("study") not in (None, "", self._identity):
                return Request(name, "a request to another study of this name")
            action, trial, data = request["action"], request.get("trial"), request.get("data", {})
            if isinstance(action, str) and isinstance(data, dict) and (trial is None or type(trial) is int):
                return Request(name, action, trial, data)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            pass
        return Request(name, "unreadable request")


def inbox_path(db: Path, study: str) -> Path:
    """Name the folder in which a study's requests wait."""
    return lock_path(db, study).with_suffix(".inbox")


def _nowhere(_: int) -> None:
    raise AssertionError("notes and tags scale nothing")


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
