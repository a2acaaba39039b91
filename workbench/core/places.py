"""Where things are, unless another place is named, and what studies and places of checkpoints may be called."""

import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from workbench.core.errors import InvalidInput, file_errors

_PACKAGE = Path(__file__).resolve().parents[1]
CHECKOUT = _PACKAGE.parent if (_PACKAGE.parent / "pyproject.toml").is_file() else None
"""The checkout of the project that runs; ``None`` where it is installed."""

_HOME = CHECKOUT or _PACKAGE  # what is installed holds copies of both folders

DATA = _HOME / "data"
"""The folder of data files and recordings that come with the project."""

KEPT = DATA if CHECKOUT else Path("data").absolute()
"""Where experiments that are run again are kept: in the checkout, or else in the working directory."""

NOTEBOOKS = _HOME / "notebooks"
"""The folder of the notebooks."""

DEFAULT_DB = Path("data/runs/workbench.db")
"""The knowledge base, in the working directory."""


_NO_URL = re.compile(r"[a-z][a-z0-9+]+:(?!//|:)")  # s3:/bucket/folder would be a folder here
_PASSWORD = re.compile(r"://[^/]*:[^/]*@")  # in ftp://me:secret@host/folder

_STUDY_NAME = "a study's name is 1 to 100 printable characters, 200 bytes at most, without / \\ or a leading dot"


def is_study_name(name: object) -> bool:
    """Tell whether a study may be called so: its name is that of a folder and of files too, and shown on terminals."""
    return (
        isinstance(name, str)
        and 0 < len(name) <= 100
        and name.isprintable()
        and len(name.encode()) <= 200  # files have longer names made of it, of 255 bytes at most
        and not set(name) & {"/", "\\"}
        and (not name.startswith("."))
    )


def check_study_name(name: object) -> None:
    """Refuse what no study may be called."""
    if not is_study_name(name):
        raise InvalidInput(f"{_STUDY_NAME}, got {name!r}")


def check_checkpoints(place: object) -> None:
    """Refuse what names no place of checkpoints, as a URL that stands for others too, or that tells a password."""
    if not isinstance(place, str) or not place:  # as of a shell's variable that is not set
        raise InvalidInput(f"a study's checkpoints are in a directory or at a URL, got {place!r}")
    if _NO_URL.match(place):
        raise InvalidInput(
            f"{place!r} is neither a URL nor surely a directory: write {place.partition(':')[0]}://… or ./{place}"
        )
    if "://" in place and set(place) & set("*?["):
        raise InvalidInput(
            f"the URL of a place of checkpoints is one without * ? or [, which would stand for other places as well, "
            f"got {place!r}: name another"
        )
    if _PASSWORD.search(place):  # which is not said again
        raise InvalidInput(
            "the URL of a place of checkpoints is kept in the log and shown, and this one has a password in it: leave "
            "it out, and give it to fsspec in the environment, such as FSSPEC_FTP_PASSWORD, or in ~/.config/fsspec"
        )


def in_home(place: str) -> str:
    """Write out a ``~`` that a place begins with, to which no shell has seen; a URL stays as it is."""
    return place if "://" in place else os.path.expanduser(place)


def db_path(db: str | Path) -> Path:
    """Give the path of a knowledge base, a ``~`` written out.

    Raises
    ------
    InvalidInput
        What is given is no path.
    """
    if not isinstance(db, str | os.PathLike):
        raise InvalidInput(
            f"a knowledge base is a file, named by its path, got {db!r}: write for example '{DEFAULT_DB}'"
        )
    return Path(in_home(os.fspath(db)))


def real_path(db: str | Path) -> Path:
    """Follow every link: one knowledge base has one place."""
    return Path(os.path.realpath(db_path(db)))


def beside(db: str | Path, name: str) -> Path:
    """Name what stands beside a knowledge base: beside the file, not beside a link to it."""
    return real_path(db).parent / name


def absolute_place(place: str | None) -> str | None:
    """Name a place of checkpoints so that it is the same from every folder."""
    return place if place is None or "://" in place else str(Path(place).absolute())


def private_folder(path: Path) -> Path:
    """Make a folder that nobody else may look into, whatever the umask, and those above that are missing."""
    for folder in (*reversed(path.parents), path):
        folder.mkdir(mode=0o700, exist_ok=True)
    return path


def part_of(place: Path) -> Path:
    """Name what is hidden beside a place until it is whole: a name of its own, for others may write there too."""
    return place.parent / f".{place.name}.{uuid.uuid4().hex[:8]}.part"  # of "." and "/", which have no name, too


def refuse_what_exists(place: Path) -> None:
    """Raise `InvalidInput` where there is something: before it is written, and again before what is whole moves in."""
    if place.exists():
        raise InvalidInput(f"{place} exists: choose another name")


def scratch_beside(place: Path) -> "TemporaryDirectory[str]":
    """Make a hidden folder for what is on its way to a place, on the same disk if that can be; it goes at the end."""
    there = next(folder for folder in place.absolute().parents if folder.is_dir())
    return TemporaryDirectory(prefix=".", suffix=".part", dir=there)


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Give a hidden folder to fill: at the end it takes its place, if that is free; of what fails nothing stays.

    Raises
    ------
    InvalidInput
        It cannot be written there, or another was meanwhile.
    """
    part = part_of(folder)
    with file_errors(f"{folder} cannot be written"):
        try:
            part.mkdir(parents=True)
            yield part
            refuse_what_exists(folder)
            part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)


@contextmanager
def whole_file(file: Path) -> Iterator[Path]:
    """Give a hidden path to write a file to: at the end it takes the file's place; of what fails nothing stays.

    What is replaced leaves its rights to it, and a link stays one. A device or a pipe is given itself, to be written
    to. Missing folders are made.

    Raises
    ------
    InvalidInput
        It cannot be written there, or a database of SQLite's is there, as a knowledge base or an export.
    """
    with file_errors(f"{file} cannot be written"):
        if is_device(file):
            yield file
            return
        place = Path(os.path.realpath(file))
        place.parent.mkdir(parents=True, exist_ok=True)
        _refuse_database(place)
        part = part_of(place)
        try:
            yield part
            if place.exists():
                shutil.copymode(place, part)
            os.replace(part, place)
        finally:
            part.unlink(missing_ok=True)


def _refuse_database(file: Path) -> None:
    """Refuse to replace a database, with every study in it, by the file that a mistaken name asks for."""
    with suppress(FileNotFoundError, PermissionError, IsADirectoryError), file.open("rb") as there:
        if there.read(16) == b"SQLite format 3\0":
            raise InvalidInput(f"{file} is a database: choose another name")


def is_device(path: str | Path) -> bool:
    """Tell what can only be written to, not replaced: devices, pipes, and ``/dev/stdout`` even where it is a file."""
    target = Path(path).absolute()
    return target.exists() and (target.is_relative_to("/dev") or not (target.is_file() or target.is_dir()))


def located(path: str | Path) -> Path:
    """Find a file by its path, or by its name among the project's data."""
    return Path(path) if Path(path).is_file() or not (DATA / path).is_file() else DATA / path
