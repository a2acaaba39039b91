"""A study that moves: what it needs to go on elsewhere, in one file, and taken up again from there.

A pack is a ZIP archive whose members are stored as they are: ``pack.json`` (what it holds, for people), ``study.db``
(a knowledge base of that study alone) and ``checkpoints/…``. It is data. Nothing of it runs when it is opened, no
member's name is used before it has been read part by part, and what is stored as it is cannot swell.
"""

import json
import os
import shutil
import sqlite3
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.core.describe import hands_on_weights
from workbench.core.errors import CheckpointError, DatabaseError, StudyError, file_errors
from workbench.core.ledger import Ledger
from workbench.core.places import db_path, refuse_what_exists, scratch_beside
from workbench.core.protocols import Event
from workbench.core.record import last_driver, own_classes, versions
from workbench.core.showing import so_many
from workbench.study.results import best_of
from workbench.study.saved import check_whose, store_of

if TYPE_CHECKING:
    from workbench.cluster.checkpoints import CheckpointStore

FORMAT = 1
ABOUT, LOG, CHECKPOINTS = "pack.json", "study.db", "checkpoints"
_STAMP = (1980, 1, 1, 0, 0, 0)  # of every member: the same study makes the same pack


@dataclass(frozen=True)
class Pack:
    """What a pack holds, or what came out of one.

    Attributes
    ----------
    file : Path
    name : str
        The study's, in this pack or where it was unpacked.
    spec : dict
        Scheduler, trainable and seed, as in the log.
    versions : dict
        Of the packages that the study's last driver ran, by name.
    checkpoints : tuple of str
        Names of those it holds.
    lost : int
        Trials whose newest checkpoint was damaged or missing: they go on from an older one, or from their start.
    """

    file: Path
    name: str
    spec: dict[str, Any]
    versions: dict[str, str]
    checkpoints: tuple[str, ...]
    lost: int = 0

    @property
    def other_versions(self) -> dict[str, tuple[str, str | None]]:
        """Packages whose version here is another than the study's last driver had: there and here."""
        here = versions()
        return {name: (was, here[name]) for name, was in self.versions.items() if here.get(name, was) != was}

    def __str__(self) -> str:
        lines = [f"{self.file}: study {self.name!r}, {so_many(len(self.checkpoints), 'checkpoint')}"]
        if self.lost:
            lost = f"newest checkpoint of {so_many(self.lost, 'trial')} lost"
            lines.append(f"{lost}: who goes on does so from an older one or, without any, from the start")
        lines += [f"{name} was {was} there, is {here} here" for name, (was, here) in self.other_versions.items()]
        if mine := own_classes(self.spec):
            lines.append(f"it runs {', '.join(mine)}, code of your own, which is not in the pack: take it along")
        return "\n".join(lines)


def pack(db: str | Path, name: str, file: str | Path, *, checkpoints: str | None = None) -> Pack:
    """Write a study that nobody drives to one private file: its log, and the checkpoints it still needs.

    These are, of every trial that may go on or has run all its phases, the newest, and the best score's. Where trials
    take over others' weights, the newest of every trial. The study itself stays as it is.

    Parameters
    ----------
    db, name
        The study.
    file : path
        Must not exist.
    checkpoints : str, optional
        Where its checkpoints are, if not where its last driver had them.

    Raises
    ------
    DatabaseError, StudyError
        There is no such study, it is simulated, being driven or damaged, or none of its checkpoints is where they
        should be, or another's are there.
    InvalidInput
        The file exists, or cannot be written.
    """
    from workbench.knowledge import KnowledgeBase
    from workbench.knowledge.lock import claim, private

    db, file = db_path(db), Path(file)
    refuse_what_exists(file)
    with KnowledgeBase(db) as kb:
        there = store_of(db, kb[name], checkpoints)  # a name that is mistaken makes no lock
        if there is None:
            raise StudyError(f"study {name!r} was simulated, and nothing trained that could go on elsewhere: record it")
        store = replace(there, study=kb[name].identity)
        check_whose(store.root, db, kb[name])
    part = file.with_name(f".{file.name}.{store.study}.part")  # another study may be packed into the same file
    with file_errors(f"study {name!r} cannot be packed into {file}"), ExitStack() as stack:
        stack.callback(claim(db, name).close)  # whoever wants to drive it now is refused
        file.parent.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
        stack.callback(part.unlink, missing_ok=True)
        log = Path(stack.enter_context(scratch_beside(file))) / LOG
        with errors_of_copy(log, file):
            _copy_log(db, name, log)
        with KnowledgeBase(log) as kb:
            spec, events = kb[name].spec, kb[name].events()
        with open(part, "xb", opener=private) as stream, zipfile.ZipFile(stream, "w") as archive:
            _add(archive, log, LOG)
            kept, lost = _add_checkpoints(archive, store, *needed(spec, events))
            packed = Pack(file, name, spec, _versions_of(events), kept, lost)
            archive.writestr(zipfile.ZipInfo(ABOUT, _STAMP), json.dumps(_about(packed, events), indent=1))
        refuse_what_exists(file)  # as another study that was packed meanwhile
        os.replace(part, file)
    return packed


def needed(spec: Mapping[str, Any], events: Iterable[Event]) -> tuple[list[str], list[str]]:
    """Name the checkpoints without which a study would go on otherwise than it would have; and the best one.

    A scheduler that hands weights on may yet hand on those of any trial.
    """
    events = list(events)
    ledger = Ledger(events)
    handed_on = hands_on_weights(spec["scheduler"])
    wanted = [
        name
        for trial in ledger.trials.values()
        if handed_on or not trial.state.over or trial.standing == "finished"
        # others start from what the scheduler has heard of, which is older where a person has extended the trial
        for name in (trial.checkpoint, trial.heard[0] if handed_on else None)
        if name
    ]
    best = best_of(spec, events)
    return list(dict.fromkeys(wanted)), [best] if best and best not in wanted else []


def _copy_log(db: Path, name: str, target: Path) -> None:
    """Make a knowledge base of one study, one file, and look whether the study can go on from it."""
    from workbench.knowledge import carry

    carry(db, name, target)
    make_one_file(target)
    if wrong := unmendable(target):
        raise StudyError(f"study {name!r} cannot be resumed, here or elsewhere: {wrong}")


def make_one_file(log: Path) -> None:
    """Take into a knowledge base that nobody has open what SQLite keeps beside it: it can be moved then."""
    with closing(sqlite3.connect(log)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")


@contextmanager
def errors_of_copy(log: Path, place: Path) -> Iterator[None]:
    """Tell of a log that is on its way to a place, on whose disk it is, under the place's name."""
    from workbench.knowledge.schema import database_errors

    try:
        with database_errors(log):
            yield
    except DatabaseError as err:
        raise type(err)(str(err).replace(str(log), str(place))) from None


def unmendable(log: Path) -> str:
    """Say what of a knowledge base is wrong beyond repair; nothing where nothing is."""
    from workbench.knowledge import check

    return next((finding.what for finding in check(log) if not finding.repairable), "")


def _add_checkpoints(
    archive: zipfile.ZipFile, store: "CheckpointStore", wanted: Sequence[str], best: Sequence[str]
) -> tuple[tuple[str, ...], int]:
    """Add checkpoints, each or the newest whole one before it; return which, and how often one was not to be had.

    The best score's may have made room for a better one, of a phase that ended when the driver had gone: it is no loss.
    """
    from workbench.cluster.manifest import MANIFEST, verify

    added, lost, refused = dict[str, None](), 0, ""
    for name in (*wanted, *best):
        for n, one in enumerate((name, *(earlier for earlier, _ in store.before(name)))):
            try:
                if one not in added:
                    with store.at_hand(one) as folder:
                        for file in sorted([MANIFEST, *verify(folder)]):  # others are refused where it is unpacked
                            _add(archive, folder / file, f"{CHECKPOINTS}/{one}/{file}")
                added[one], lost = None, lost + (n > 0 and name in wanted)
                break
            except CheckpointError as err:
                refused = refused or str(err)
        else:
            lost += name in wanted
    if refused and not added:
        raise StudyError(
            f"none of the checkpoints is to be had ({refused}): bring them back to {store.root}, or say where they "
            "are, checkpoints=…"
        )
    return tuple(added), lost


def _add(archive: zipfile.ZipFile, file: Path, member: str) -> None:
    info = zipfile.ZipInfo(member, _STAMP)
    info.file_size = file.stat().st_size  # tells whether it takes a large file's header
    with file.open("rb") as source, archive.open(info, "w") as target:
        shutil.copyfileobj(source, target)


def _about(packed: Pack, events: Iterable[Event]) -> dict[str, Any]:
    about = {"format": FORMAT, "name": packed.name, "spec": packed.spec, "aim": Ledger(events).aim.to_json()}
    return {**about, "versions": packed.versions, "checkpoints": packed.checkpoints, "lost": packed.lost}


def _versions_of(events: Sequence[Event]) -> dict[str, str]:
    said = last_driver(events).get("versions", {})
    return {name: version for name, version in said.items() if version is not None}
