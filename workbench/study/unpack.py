"""A packed study taken up again, where it was packed or elsewhere."""

import json
import shutil
import sqlite3
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.core.errors import CheckpointError, DatabaseError, InvalidInput, StudyError, file_errors
from workbench.core.ledger import Ledger
from workbench.core.places import (
    DEFAULT_DB,
    absolute_place,
    check_checkpoints,
    check_study_name,
    db_path,
    in_home,
    is_study_name,
    private_folder,
    real_path,
    scratch_beside,
)
from workbench.core.protocols import BEGUN
from workbench.core.record import started_from
from workbench.study.pack import ABOUT, CHECKPOINTS, FORMAT, LOG, Pack, errors_of_copy, make_one_file, unmendable
from workbench.study.saved import checkpoint_store, refuse_anothers

if TYPE_CHECKING:
    from workbench.cluster.checkpoints import CheckpointStore

_MOST_ABOUT = 1 << 24  # bytes


def unpack(
    file: str | Path, db: str | Path = DEFAULT_DB, *, name: str | None = None, checkpoints: str | None = None
) -> Pack:
    """Take up a packed study into a knowledge base, to be resumed there; it is made if it is missing.

    Parameters
    ----------
    file : path
        What `pack` wrote.
    db : path
    name : str, optional
        Another name for the study.
    checkpoints : str, optional
        A directory or fsspec URL to put its checkpoints into, instead of the place beside `db`; the study is then to
        be resumed with it.

    Raises
    ------
    InvalidInput
        The file is no pack, is damaged, or holds what no workbench packs. Nothing of it is kept.
    StudyError
        The knowledge base holds a study of that name, or there are checkpoints where its own would go.
    """
    file, db = Path(file), db_path(db)
    if name is not None:
        check_study_name(name)
    if checkpoints is not None:
        check_checkpoints(checkpoints)
        checkpoints = in_home(checkpoints)
    with file_errors(f"{file} cannot be unpacked into {db}"), _damage_told(file), ExitStack() as stack:
        if file.exists() and not file.is_file():  # a pipe cannot be gone back in, and a device may have no end
            raise InvalidInput("it is a folder, a pipe or a device, no file: copy the pack here, and name it")
        archive = stack.enter_context(zipfile.ZipFile(file))
        members = _members(archive, file.stat().st_size)
        pack = _read_about(archive, members, file)
        scratch = Path(stack.enter_context(scratch_beside(db)))
        _extract(archive, members[LOG], scratch / LOG)
        _check_log(scratch / LOG, pack)
        called = name or pack.name
        refuse_taken(db, called)
        with errors_of_copy(scratch / LOG, db):
            _tell_place(scratch / LOG, checkpoints)
        _take_in(archive, members, pack, scratch, db, called, checkpoints)
    return replace(pack, name=called)


def _take_in(
    archive: zipfile.ZipFile,
    members: Mapping[str, zipfile.ZipInfo],
    pack: Pack,
    scratch: Path,
    db: Path,
    called: str,
    elsewhere: str | None,
) -> None:
    """Put the checkpoints into their place and then the study into the knowledge base; or nothing at all."""
    from workbench.cluster.place import Place
    from workbench.knowledge.lock import claim, lock_path

    store = checkpoint_store(db, called, elsewhere)
    db.parent.mkdir(parents=True, exist_ok=True)
    with claim(db, called):
        try:
            if store.disk_use():
                choose = "name" if elsewhere is None else "checkpoints"
                raise StudyError(f"there are checkpoints in {store.root} already: remove them, or choose {choose}=…")
            if elsewhere is not None:
                refuse_anothers(elsewhere, db, called)
            try:
                for checkpoint in pack.checkpoints:
                    prefix, folder = f"{CHECKPOINTS}/{checkpoint}/", scratch / "checkpoint"
                    for member in (m for m in members if m.startswith(prefix)):
                        _extract(archive, members[member], folder / member.removeprefix(prefix))
                    store.put(folder, checkpoint)
                    shutil.rmtree(folder, ignore_errors=True)
                _pin_parents(scratch / LOG, pack, store)
                identity = _enter(scratch, pack.name, db, called)
                if elsewhere is not None:
                    Place(elsewhere).claim(identity)
            except BaseException:
                store.remove()
                raise
        except BaseException:
            lock_path(db, called).unlink(missing_ok=True)
            raise


def _enter(scratch: Path, name: str, db: Path, called: str) -> str:
    """Carry the study into the knowledge base; one that is missing is made beside its place, and moves in whole."""
    from workbench.knowledge import carry
    from workbench.knowledge.schema import left_beside

    place, whole = real_path(db), scratch / "whole.db"
    if not place.exists() and not left_beside(place):
        with errors_of_copy(whole, db):
            identity = carry(scratch / LOG, name, whole, called)
            make_one_file(whole)
        if not place.exists():  # else another has made it meanwhile
            shutil.move(whole, place)
            return identity
    return carry(scratch / LOG, name, db, called)


def _pin_parents(log: Path, pack: Pack, store: "CheckpointStore") -> None:
    """Keep what trials that are not over start from, as the driver does that goes on with them."""
    from workbench.knowledge import KnowledgeBase

    with KnowledgeBase(log) as kb:
        ledger = Ledger(kb[pack.name].events())
    for name in started_from(ledger):
        if name in pack.checkpoints:
            store.pin(name)


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Give the members by name, once every name is one that a workbench gives and no more is held than the file has."""
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name, parts = info.filename, info.filename.split("/")
        plain = all(part not in ("", ".", "..") and "\\" not in part and part.isprintable() for part in parts)
        ours = name in (ABOUT, LOG) or (parts[0] == CHECKPOINTS and len(parts) >= 4)
        if not (plain and ours) or name in members or info.orig_filename != name:
            raise InvalidInput(f"it holds {info.orig_filename!r}, which no workbench packs: do not trust it")
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1 or info.file_size != info.compress_size:
            raise InvalidInput(f"{name!r} is compressed or encrypted, as no workbench packs it: do not trust it")
        members[name] = info
    if missing := {ABOUT, LOG} - members.keys():
        raise InvalidInput(f"{sorted(missing)[0]} is missing: it is no pack of a study")
    if sum(info.file_size for info in members.values()) > size:
        raise InvalidInput("its members are said to be larger than the file: do not trust it")
    return members


def _read_about(archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], file: Path) -> Pack:
    if members[ABOUT].file_size > _MOST_ABOUT:
        raise InvalidInput(f"{ABOUT} has {members[ABOUT].file_size} bytes, at most {_MOST_ABOUT} are read")
    try:
        about = json.loads(archive.read(ABOUT))
        if (made := about["format"]) != FORMAT:
            raise InvalidInput(
                f"it has format {made!r}, this workbench reads {FORMAT}: unpack it with the one it is of"
            )
        pack = Pack(file, about["name"], about["spec"], about["versions"], tuple(about["checkpoints"]), about["lost"])
        valid = is_study_name(pack.name) and isinstance(pack.lost, int) and isinstance(pack.spec, dict)
        for word in (*pack.checkpoints, *pack.versions, *pack.versions.values()):
            valid = valid and isinstance(word, str)
        if not valid:
            raise ValueError("a name, a number or a version is none")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as err:
        if isinstance(err, InvalidInput):
            raise
        raise InvalidInput(f"{ABOUT} is not what a workbench writes ({err}): do not trust it") from None
    listed = {"/".join(name.split("/")[1:3]) for name in members if name not in (ABOUT, LOG)}
    if listed != set(pack.checkpoints) or len(listed) != len(pack.checkpoints):
        raise InvalidInput(f"{ABOUT} lists other checkpoints than there are: do not trust it")
    return pack


def _check_log(log: Path, pack: Pack) -> None:
    """Refuse a knowledge base that a driver could not go on from, or that holds more than this study."""
    from workbench.knowledge import KnowledgeBase

    try:
        with KnowledgeBase(log) as kb:
            ours = list(kb) == [pack.name] and kb[pack.name].spec == pack.spec
        wrong = unmendable(log)
    except DatabaseError as err:
        raise InvalidInput(str(err).replace(str(log), LOG)) from None
    if not ours:
        raise InvalidInput(f"{LOG} holds another study than {ABOUT} says: do not trust it")
    if wrong:
        raise InvalidInput(f"{LOG}: {wrong}")


def _tell_place(log: Path, place: str | None) -> None:
    """Let the log say where its checkpoints are now: the place it still names is that of the study that was packed."""
    with closing(sqlite3.connect(log)) as connection, connection:
        query = f"SELECT seq, data FROM events WHERE kind IN ({', '.join('?' * len(BEGUN))})"
        for seq, text in connection.execute(query, BEGUN).fetchall():
            data = json.loads(text)
            data.pop("checkpoints", None)
            told = data if place is None else {**data, "checkpoints": absolute_place(place)}
            connection.execute("UPDATE events SET data = ? WHERE seq = ?", (json.dumps(told, ensure_ascii=False), seq))


def refuse_taken(db: Path, name: str) -> None:
    """Raise `StudyError` where a study of the knowledge base has this name."""
    from workbench.knowledge import names_taken

    if name in names_taken(db):
        raise StudyError(f"study {name!r} exists in {db}: choose another name, name=…, or another db=…")


def _extract(archive: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path) -> None:
    from workbench.knowledge.lock import private

    private_folder(target.parent)
    with archive.open(info) as source, open(target, "xb", opener=private) as stream:
        shutil.copyfileobj(source, stream)


@contextmanager
def _damage_told(file: Path) -> Iterator[None]:
    """Turn whatever a damaged archive makes of reading it into one readable error."""
    try:
        yield
    except (zipfile.BadZipFile, EOFError, NotImplementedError, UnicodeDecodeError, OverflowError) as err:
        raise InvalidInput(f"{file} is no pack of a study, or is damaged ({err}): copy it here once more") from None
    except (InvalidInput, CheckpointError) as err:
        raise InvalidInput(f"{file} is refused: {err}") from None
