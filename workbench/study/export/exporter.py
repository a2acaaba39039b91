"""What every export does: follow a study's events, and tell what is new of each trial."""

import re
import shutil
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.core.errors import InvalidInput, WorkbenchError
from workbench.core.extras import how_to_get
from workbench.core.ledger import Ledger
from workbench.core.places import scratch_beside, whole_file
from workbench.core.protocols import Event, Kind

if TYPE_CHECKING:
    from workbench.knowledge import RecordedStudy
    from workbench.study.study import Study


_FOLDER_MARK = ".rl-workbench"
RUN_FOLDERS = "trial-[0-9]*"  # as an export to TensorBoard makes them


class Exporter(ABC):
    """A study kept up to date in another tool: a callback of `Study`, and what ``workbench export`` runs.

    It begins with the whole log, so that what an earlier driver, or an earlier export, left there is replaced.

    Parameters
    ----------
    place : str
        Where to, as what cannot be written there is told.
    """

    def __init__(self, place: str) -> None:
        self.place = place

    def begin(self, study: "Study", past: Sequence[Event]) -> None:
        """Replace what is there by what earlier drivers have logged."""
        from workbench.knowledge import KnowledgeBase

        with KnowledgeBase(study.db) as kb:
            recorded = kb[study.name]
            self.open(study.name, recorded.spec, recorded.created_unix, recorded.identity)
            if past:
                self(whole_log(recorded))

    def open(self, name: str, spec: Mapping[str, Any], created_unix: float, identity: str = "") -> None:
        """Begin anew with a study; by its identity its export is told from that of another of its name."""
        self.name, self.spec, self.created_unix, self.identity = name, spec, created_unix, identity
        self.ledger = Ledger()
        self.scores: dict[int, dict[int, float]] = {}  # trial → phase → score
        self.last: dict[int, Mapping[str, float]] = {}  # trial → metrics of its last phase
        with writing(self.place):
            self._clear()

    def __call__(self, events: Sequence[Event]) -> None:
        """Take in events, and write what they change."""
        touched: dict[int, list[Event]] = {}
        for event in events:
            self.ledger.see(event)
            if event.trial is None:
                continue
            points = touched.setdefault(event.trial, [])
            if event.kind is Kind.PHASE_ENDED:
                self.scores.setdefault(event.trial, {})[event.phase or 0] = event.data["score"]
                self.last[event.trial] = event.data.get("metrics", {})
            if event.kind in (Kind.PROGRESS, Kind.PHASE_ENDED):
                points.append(event)
        with writing(self.place):
            for trial, points in touched.items():
                if trial in self.ledger:
                    self._trial(trial, points)

    def unix(self, at: float) -> float:
        """Turn seconds of the study's clock into seconds since 1970, leaving out that it was ever interrupted."""
        return self.created_unix + at

    def close(self) -> None:  # noqa: B027  most have nothing to close
        """End; nothing more is told."""

    @abstractmethod
    def _clear(self) -> None:
        """Make an empty place for the study."""

    @abstractmethod
    def _trial(self, number: int, points: Sequence[Event]) -> None:
        """Write what is new of a trial: its metrics inside phases and at their ends, and, by the ledger, its state."""


def numbers_of(event: Event) -> dict[str, float]:
    """Give an event's metrics that are numbers: of a phase's end with its score, inside a phase under ``live/``."""
    numbers = {k: float(v) for k, v in event.data.get("metrics", {}).items() if isinstance(v, (int, float))}
    if event.kind is Kind.PHASE_ENDED:
        return numbers | {"score": float(event.data["score"])}
    return {f"live/{name}": value for name, value in numbers.items()}


def step_of(event: Event) -> int:
    """Give the step that an event's numbers stand at: at a phase's end its number, inside one the study's second."""
    return event.phase or 0 if event.kind is Kind.PHASE_ENDED else round(event.at)


def own_folder(place: str, name: str, identity: str, made: str = "") -> None:
    """Take a folder for a study's export, less what an earlier one made there; anything else is refused, or stays.

    Parameters
    ----------
    place : str
        The folder, made if it is missing.
    name, identity : str
        The study's, which mark the folder.
    made : str
        Pattern of the names of the folders that such an export makes.
    """
    _check_folder(place, name, identity)
    _make_room(Path(place), made)
    (Path(place) / _FOLDER_MARK).write_text(f"{name}\n{identity}", encoding="utf-8")


def _make_room(folder: Path, made: str) -> None:
    for earlier in folder.glob(made) if made else ():
        shutil.rmtree(earlier, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)


def _check_folder(place: str, name: str, identity: str) -> None:
    if "://" in place:  # as of a database or a server, which other exports go to
        raise InvalidInput(f"{shown(place)} is a URL, and this export is a folder of files: name a folder")
    folder = Path(place)
    mark = folder / _FOLDER_MARK
    if folder.is_file():
        raise InvalidInput(f"{folder} is a file: choose a folder")
    if folder.exists() and any(folder.iterdir()) and not mark.exists():
        raise InvalidInput(f"{folder} holds something else: choose another folder")
    marked = mark.read_text("utf-8", "replace") if mark.exists() else ""  # earlier versions wrote no name, or no more
    whose, _, of = marked.partition("\n")
    if whose not in ("", name):
        raise InvalidInput(f"{folder} holds an export of study {whose!r}, not of {name!r}: choose another folder")
    refuse_anothers(place, name, of, identity)


@contextmanager
def whole_in_folder(place: str, name: str, identity: str, made: str = "") -> Iterator[str]:
    """Give a hidden folder to export to: once it is whole, it goes where `own_folder` would be; parameters as there."""
    _check_folder(place, name, identity)
    with writing(place), scratch_beside(Path(place) / _FOLDER_MARK) as part:  # within it, should it alone be writable
        try:
            with writing(part):
                own_folder(part, name, identity)  # the mark is made here, too: nothing is written after the last word
                yield part
        except WorkbenchError as err:
            raise type(err)(str(err).replace(part, place)) from None
        _make_room(Path(place), made)
        for ready in Path(part).iterdir():
            if ready.is_dir():
                ready.replace(Path(place) / ready.name)
            else:
                with whole_file(Path(place) / ready.name) as file:
                    ready.replace(file)


@contextmanager
def nothing_left(place: str) -> Iterator[None]:
    """Remove what a failure leaves in a file that was not there, as half a study; what was there is the tool's."""
    file = Path(place)
    there = file.exists()
    try:
        yield
    except BaseException:
        if file.is_file() and not there:
            file.unlink()
        raise


def refuse_anothers(place: str, name: str, marked: object, identity: str) -> None:
    """Refuse to replace the export of another study of the same name, as of another knowledge base.

    A mark of before, or of a study that has no identity, tells none: that export is taken for the study's own.
    """
    if isinstance(marked, str) and marked and identity and marked != identity:
        raise InvalidInput(
            f"{shown(place)} holds an export of another study {name!r}: choose another place, or remove that one"
        )


def shown(place: str) -> str:
    """Give a place as it may be said: without the password of a URL.

    >>> shown("postgresql://me:secret@host/db")
    'postgresql://me:***@host/db'
    """
    return re.sub(r"(://[^/:]*:)[^/]*@", r"\1***@", place)


def storage_url(place: str) -> str:
    """Give the URL of a storage: the one given, or that of a file for SQLite.

    Raises
    ------
    InvalidInput
        What opens the URL, here and in the other tool, would take another file, or none.
    """
    if not place:  # SQLite would keep it in memory, and nobody would find it
        raise InvalidInput("an export to a database goes to a file or a URL, and none is named: name one")
    if "://" in place:
        return place
    if "?" in place:
        raise InvalidInput(f"{place} has a ?, at which a database's URL ends: choose another place for the export")
    if code := re.search("%[0-9A-Fa-f]{2}", place):
        what = f"{place} has a {code[0]}, which a database's URL has for another letter"
        raise InvalidInput(f"{what}: choose another place for the export")
    return f"sqlite:///{place}"


def own_database(url: str, table: str) -> None:
    """Refuse a file of SQLite's that holds something else: the other tool would make its tables among those there.

    Parameters
    ----------
    url : str
        As of `storage_url`; what is no file of SQLite's is let be.
    table : str
        A table that the tool makes in every database of its own.
    """
    if not re.match(r"sqlite(?:\+\w+)?:///[^?]", url):
        return
    path = Path(import_module("sqlalchemy").make_url(url).database)  # as the tool reads it
    if not path.is_file():
        return
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    except sqlite3.Error:
        return  # the tool cannot read it either, and says so
    if there and table not in there:
        raise InvalidInput(f"{path} holds something else: choose another place")


@contextmanager
def writing(place: str) -> Iterator[None]:
    """Tell in one line what another tool makes of a place that it cannot open, or not write."""
    try:
        yield
    except WorkbenchError:
        raise
    except Exception as err:  # noqa: BLE001  each tool has its own
        why = f"{type(err).__name__}: {err}".partition("\n")[0].replace(place, shown(place))
        raise InvalidInput(f"{shown(place)} cannot take an export ({why}): choose another place") from None


def needed(module: str, package: str) -> Any:
    """Import what an export needs, or say how to get it."""
    try:
        return import_module(module)
    except ImportError:
        raise InvalidInput(f"this export needs {package}, which is not installed: {how_to_get(module)}") from None


def whole_log(study: "RecordedStudy") -> list[Event]:
    """Give a study's events, with the points inside its phases as the events they were once told as."""
    events = study.events()
    ends = {(e.trial, e.phase, e.at) for e in events if e.kind is Kind.PHASE_ENDED}
    points: dict[tuple[int, int, float], dict[str, float]] = {}
    for row in study.metrics().to_dict("records"):
        if (place := (row["trial"], row["phase"], row["at_s"])) not in ends:
            points.setdefault(place, {})[row["name"]] = row["value"]
    inner = [Event(Kind.PROGRESS, at, trial, phase, data={"metrics": m}) for (trial, phase, at), m in points.items()]
    return sorted([*events, *inner], key=lambda event: event.at)
