"""Where checkpoints are: a directory, or whatever fsspec reaches at a URL, with the patience that a network takes."""

import errno
import json
import os
import re
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import fsspec
from fsspec.implementations.local import LocalFileSystem

from workbench.cluster.manifest import MANIFEST, remove_leftovers
from workbench.core.errors import CheckpointError, InvalidInput, PlaceAway, WorkbenchError
from workbench.core.extras import what_is_missing
from workbench.core.places import check_checkpoints, private_folder

_WAITS_S = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # between tries to reach a URL
_LONG_S = 120.0  # after which none begins: each may take its time, and whoever tries shows no life
_SILENT_S = 5.0  # of a URL, after which it is said that an answer is waited for
_TRIAL = re.compile(r"trial-\d+")
_OURS = re.compile(r"\.?phase-\d+")  # checkpoints, marks that keep them, and what is left of some half written
_SENT = re.compile(r"trainable-[0-9a-f]{16}\.pickle")  # as `sent_name` has it
_MARK = ".study"  # holds the identity of the study whose place it is
DRIVER = ".driver"  # is locked by whoever drives that study
_T = TypeVar("_T")
_waits: ContextVar[Callable[[], None] | None] = ContextVar("waits", default=None)
_OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss"}


@dataclass(frozen=True)
class Place:
    """A directory or an fsspec URL, in which a checkpoint's name is the path of a folder.

    Raises
    ------
    InvalidInput
        It is a URL that fsspec would take for a pattern.
    """

    root: str

    def __post_init__(self) -> None:
        check_checkpoints(self.root)

    @property
    def remote(self) -> bool:
        """Whether it is a URL."""
        return "://" in self.root

    def upload(self, folder: Path, name: str) -> None:
        """Bring a checkpoint there, the manifest last.

        Raises
        ------
        OSError
            The place cannot be reached, or refuses it, although it was tried for a minute.
        """

        def upload() -> None:
            files, path = self._at(name)
            _make_folder(files, path)
            for file in sorted(folder.rglob("*"), key=lambda f: (f.name == MANIFEST, str(f))):
                if file.is_file():
                    files.put_file(str(file), f"{path}/{file.relative_to(folder).as_posix()}")

        _patiently(upload, f"{name} cannot be written to {self.root}")

    def fetch(self, name: str, target: Path) -> None:
        """Bring a checkpoint here, if it is there; raises as `upload`."""
        files, path = self._at(name)

        def fetch() -> None:
            shutil.rmtree(target, ignore_errors=True)  # of a try that failed
            if _is_there(files, f"{path}/{MANIFEST}"):
                files.get(path, str(target), recursive=True)

        _patiently(fetch, f"{name} cannot be read from {self.root}")

    def has(self, name: str) -> bool:
        """Tell whether there is a whole checkpoint of this name; raises as `upload`."""
        files, path = self._at(f"{name}/{MANIFEST}")
        return _patiently(lambda: _is_there(files, path), f"{name} cannot be looked for at {self.root}")

    def pin(self, name: str) -> None:
        """Mark a checkpoint as one that `delete` leaves."""
        files, path = self._at(f"{name}.donor")
        _make_folder(files, path.rpartition("/")[0])
        files.touch(path)

    def write(self, name: str, raw: bytes) -> None:
        """Write a file beside trials' folders, which need not be there yet; raises as `upload`, on a disk at once."""
        files, path = self._at(name)

        def write() -> None:
            if not self.remote:
                private_folder(Path(self.root))
            _make_folder(files, path.rpartition("/")[0])
            files.pipe_file(path, raw)

        _patiently(write, f"{name} cannot be written to {self.root}", self.remote)

    def read(self, name: str) -> bytes:
        """Read such a file; raises as `upload`."""
        files, path = self._at(name)
        read: bytes = _patiently(lambda: files.cat_file(path), f"{name} cannot be read from {self.root}", self.remote)
        return read

    def remove_file(self, name: str) -> None:
        """Remove such a file; raises whatever the library behind a URL does."""
        files, path = self._at(name)
        files.rm(path)

    def phases(self, folder: str) -> list[int]:
        """Phases of which there is a checkpoint, oldest first; raises as `upload`, on a disk as the system does."""
        look, what = partial(_names, *self._at(folder)), f"{folder} cannot be looked into at {self.root}"
        names = _patiently(look, what) if self.remote else look()
        return sorted(int(n[6:]) for n in names if n.startswith("phase-") and n[6:].isdigit())

    def score(self, name: str) -> float | None:
        """Give the score that a checkpoint's manifest tells, if it does."""
        files, path = self._at(f"{name}/{MANIFEST}")
        try:
            score = json.loads(files.cat_file(path))["score"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return float(score) if isinstance(score, (int, float)) else None

    def delete(self, name: str) -> None:
        """Remove a checkpoint that is not pinned."""
        files, path = self._at(name)
        if _is_there(files, f"{path}.donor"):
            return
        if not self.remote:
            target = Path(self.root) / name
            shutil.rmtree(target, ignore_errors=True)
            remove_leftovers(target)
        else:
            with suppress(FileNotFoundError):
                files.rm(path, recursive=True)

    def holds_any(self) -> bool | None:
        """Tell whether there is any trial's folder; ``None`` where it cannot be reached, which is told later."""
        with suppress(CheckpointError):
            return bool(self._trials())
        return None

    def claim(self, identity: str) -> str:
        """Mark the place as one study's, unless it is marked; return the identity in the mark, as `owner` does."""
        with suppress(Exception):  # it has a mark, or cannot be reached
            files, path = self._at(_MARK)
            if self.remote:
                _make_folder(files, path.rpartition("/")[0])
                files.pipe_file(path, identity.encode(), mode="create")
            else:
                private_folder(Path(self.root))
                _write_mark(Path(path), identity)
        return self.owner()

    def owner(self) -> str:
        """Give the identity of the study whose place it is; empty: nobody's, or out of reach, which is told later."""
        with suppress(Exception):
            files, path = self._at(_MARK)
            return str(_answer(partial(files.cat_file, path)).decode())
        return ""

    def disk_use(self) -> int:
        """Add up the bytes of all checkpoints there; raises `CheckpointError` where it cannot be reached."""
        trials = self._trials()
        if not self.remote:
            return sum(_size(Path(at) / name) for trial in trials for at, _, names in os.walk(trial) for name in names)
        with _reached(self.root):
            files, _ = _at(self.root)
            found = (entry for trial in trials for entry in files.find(trial, detail=True).values())
            return sum(int(entry["size"] or 0) for entry in found)

    def remove(self) -> None:
        """Remove all checkpoints, and the folder if nothing else is in it: it may have been somebody's before.

        Raises
        ------
        CheckpointError
            It cannot be reached, or refuses.
        """
        trials = self._trials()
        with _reached(self.root):
            files, path = _at(self.root)
            for trial in trials:
                for entry in filter(_OURS.match, _names(files, trial)):
                    files.rm(f"{trial}/{entry}", recursive=True)
                with suppress(Exception):  # as below
                    files.rmdir(trial)
            for left in filter(_SENT.fullmatch, _names(files, path)):  # by a driver that was killed
                files.rm(f"{path}/{left}")
            for mark in (_MARK, DRIVER):
                if _is_there(files, f"{path}/{mark}"):
                    files.rm(f"{path}/{mark}")
            with suppress(Exception):  # it is not empty, or no folder at all, as in an object store
                files.rmdir(path)

    def _trials(self) -> list[str]:
        """List the folders of trials there; raises `CheckpointError` where it cannot be reached."""
        with _reached(self.root):
            files, path = _at(self.root)
            names = _answer(partial(_names, files, path))
            return [f"{path}/{name}" for name in names if _TRIAL.fullmatch(name)]

    def _at(self, name: str) -> tuple[Any, str]:
        return _at(f"{self.root}/{name}")


def _write_mark(mark: Path, identity: str) -> None:
    """Make a mark that is never seen before it is whole; raises `OSError` where there is one that says anything."""
    part = mark.with_name(f"{mark.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        with open(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(identity)
        try:
            os.link(part, mark)
        except OSError:  # there is one, or the file system has no links
            if mark.exists() and mark.stat().st_size:
                raise
            os.replace(part, mark)
    finally:
        part.unlink(missing_ok=True)


def sent_name(digest: str) -> str:
    """Name the file of a trainable that workers read from beside the checkpoints, by its sum."""
    return f"trainable-{digest[:16]}.pickle"


def _at(url: str) -> tuple[Any, str]:
    """Give the file system of a URL and the path there; what others have written meanwhile is seen.

    A path is none: fsspec would chain it at ``::``, which may stand in a study's name.
    """
    if "://" not in url:
        return LocalFileSystem(use_listings_cache=False), os.path.abspath(url)
    try:
        place: tuple[Any, str] = fsspec.core.url_to_fs(url, use_listings_cache=False)
    except (ImportError, ValueError) as err:  # of a package that is missing, or a protocol that is none
        raise InvalidInput(f"checkpoints cannot be kept at {url}: {err}{what_is_missing(err)}") from None
    return place


def _is_there(files: Any, path: str) -> bool:
    """Tell whether there is a file; raises whatever keeps from knowing, where most of fsspec's `exists` say no."""
    try:
        files.info(path)
    except OSError as err:
        if isinstance(err, FileNotFoundError) or err.errno == errno.ENOENT:
            return False
        raise
    return True


def _names(files: Any, path: str) -> list[str]:
    """Name what is in a folder; nothing where there is none yet."""
    try:
        return [str(entry).rstrip("/").rpartition("/")[2] for entry in files.ls(path, detail=False)]
    except FileNotFoundError:
        return []


def _make_folder(files: Any, path: str) -> None:
    """Make a folder where there are any; of an object store it would ask for its bucket, and make one if need be."""
    if not _OBJECT_STORES & {files.protocol, *files.protocol}:
        files.makedirs(path, exist_ok=True)


@contextmanager
def heard_of(waits: Callable[[], None]) -> Iterator[None]:
    """Call `waits` every few seconds in which a URL gives no answer: the libraries behind it may wait for half an hour.

    What it raises ends the waiting; the answer is then nobody's.
    """
    token = _waits.set(waits)
    try:
        yield
    finally:
        _waits.reset(token)


def _answer(ask: Callable[[], _T]) -> _T:
    """Ask a place, and wait for its answer so that others hear of it, if anybody is to."""
    if (waits := _waits.get()) is None:
        return ask()
    answer: Future[_T] = Future()

    def asked() -> None:
        try:
            answer.set_result(ask())
        except BaseException as err:  # noqa: BLE001  raised where it is waited for
            answer.set_exception(err)

    threading.Thread(target=asked, name="answer of a URL", daemon=True).start()
    while not wait([answer], _SILENT_S).done:
        waits()
    return answer.result()


def _patiently(act: Callable[[], _T], what: str, patient: bool = True) -> _T:
    """Try again for a minute or two what a network may fail; a place that is not there, or refuses, is told at once.

    Raises
    ------
    OSError
        Beginning with `what`, whatever the library behind the URL has raised; `PlaceAway` of what may come back.
    """
    until, waits = time.monotonic() + _LONG_S, iter(_WAITS_S if patient else ())
    while True:
        try:
            return _answer(act)
        except WorkbenchError:
            raise
        except Exception as err:
            if isinstance(err, (FileNotFoundError, PermissionError)) or not patient:
                raise OSError(f"{what}: {_why(err)}") from err
            wait_s = next(waits, None)
            if wait_s is None or time.monotonic() > until:
                raise PlaceAway(f"{what}: {_why(err)}") from err
            time.sleep(wait_s)


@contextmanager
def _reached(root: str) -> Iterator[None]:
    """Tell in one line whatever the library behind a URL, or the system, makes of a place that is out of reach."""
    try:
        yield
    except WorkbenchError:
        raise
    except Exception as err:
        raise CheckpointError(f"checkpoints at {root} are out of reach ({_why(err)}): try again later") from err


def _why(err: Exception) -> str:
    return " ".join(str(err).split()) or type(err).__name__


def _size(file: Path) -> int:
    try:
        return file.lstat().st_size
    except FileNotFoundError:  # removed meanwhile
        return 0
