"""Checkpoints at phase ends: whole or absent, checked when read, in a directory or at any fsspec URL."""

import errno
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR
from typing import Any

import fsspec

from workbench.core.errors import CheckpointError, InvalidInput, WorkbenchError
from workbench.core.failures import place_of
from workbench.core.places import private_folder
from workbench.core.protocols import Trainable

DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})

_MANIFEST = "manifest.json"
_NAME = re.compile(r"(trial-\d+)/phase-(\d+)(?:\.part)?")
_PROBE_BYTES = 1 << 16
_WAITS_S = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # between tries to reach a URL
_OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss"}


@dataclass(frozen=True)
class CheckpointStore:
    """Where the trials of one study keep their state.

    Of each trial the newest `keep` checkpoints are kept, the one with its best score, and those that another trial
    started from. All others are removed as new ones are written.

    Parameters
    ----------
    root : str
        A directory all workers see, or an fsspec URL such as ``s3://bucket/study``.
    keep : int
        How many checkpoints of a trial to keep, the newest first.
    mode : str
        ``max`` or ``min``: which score is the best.
    """

    root: str
    keep: int = 2
    mode: str = "max"

    def save(self, trainable: Trainable, trial: int, phase: int, score: float | None = None) -> str:
        """Write a trial's state as of the end of `phase`, and return the checkpoint's name.

        A checkpoint appears under its name only when it is whole: a directory is renamed into place, at a URL the
        manifest is written last.

        Raises
        ------
        OSError
            With a number out of `DISK_FULL` when there is no space left, whatever the trainable made of it.
        """
        return self.send(self.set_down(trainable, trial, phase, score))

    def set_down(self, trainable: Trainable, trial: int, phase: int, score: float | None = None) -> str:
        """Write a trial's state to a disk at once: in its place, or where `send` will take it from if that is a URL.

        Until it has been sent, `load` finds it there too, on the same machine, whatever becomes of this process.
        """
        name = _name(trial, phase)
        self._place(trainable, self._here / name, {"trial": trial, "phase": phase, "score": score})
        if not self.remote:
            self._tidy(trial, phase)
        return name

    def send(self, name: str) -> str:
        """Bring a checkpoint to its URL, the manifest last, and remove those that are kept no longer.

        Raises
        ------
        OSError
            The place cannot be reached, or refuses it, although it was tried for a minute.
        """
        if self.remote:
            folder, phase = _parts(name)
            _patiently(lambda: self._upload(self._here / name, name), f"{name} cannot be written to {self.root}")
            with suppress(Exception):  # what could not be removed is removed with the next
                self._tidy(int(folder[6:]), phase)
            shutil.rmtree(self._here / name, ignore_errors=True)
        return name

    @property
    def remote(self) -> bool:
        """Whether it is at a URL, where what is written takes its time to arrive."""
        return "://" in self.root

    @property
    def _here(self) -> Path:
        """The folder on this machine: the store itself, or where checkpoints wait to be sent."""
        if not self.remote:
            return Path(self.root)
        own = private_folder(Path(tempfile.gettempdir()) / f"workbench-{os.getuid()}")
        if (found := own.lstat()).st_uid != os.getuid() or not S_ISDIR(found.st_mode) or found.st_mode & 0o077:
            raise OSError(errno.EPERM, "it is no private folder of yours: remove it, or set TMPDIR", str(own))
        return own / hashlib.sha256(self.root.encode()).hexdigest()[:16]

    def save_part(self, trainable: Trainable, trial: int, phase: int) -> None:
        """Write a trial's state as it is within `phase`."""
        name = self.part(trial, phase)
        self._place(trainable, self._here / name, {"trial": trial, "phase": phase, "score": None})
        if self.remote:
            _patiently(lambda: self._upload(self._here / name, name), f"{name} cannot be written to {self.root}")
            shutil.rmtree(self._here / name, ignore_errors=True)

    def part(self, trial: int, phase: int) -> str:
        """Name the checkpoint within a phase, if there is one."""
        return f"{_name(trial, phase)}.part"

    def has(self, name: str) -> bool:
        """Tell whether there is a checkpoint of this name."""
        if (self._here / name / _MANIFEST).exists():
            return True
        found: list[bool] = []
        files, path = _at(f"{self.root}/{name}/{_MANIFEST}")
        _patiently(lambda: found.append(files.exists(path)), f"{name} cannot be looked for at {self.root}")
        return found[0]

    def remove_part(self, name: str) -> None:
        """Remove the checkpoint within a phase: the phase has ended."""
        shutil.rmtree(self._here / name, ignore_errors=True)
        with suppress(Exception):  # of a library behind a URL
            self._delete(name)

    def load(self, trainable: Trainable, name: str) -> None:
        """Bring a trial to the state of checkpoint `name`.

        Raises
        ------
        CheckpointError
            It is missing, or its files are not those that were written.
        """
        with self.at_hand(name) as directory:
            try:
                trainable.load(directory)
            except Exception as err:
                _tell_of_directory(trainable, "load", err)
                raise

    @contextmanager
    def at_hand(self, name: str) -> Iterator[Path]:
        """Give the folder of a checkpoint, its files compared with their sums; from a URL it is fetched for the time.

        Raises
        ------
        CheckpointError
            As `load`.
        """
        _parts(name)  # it comes from the log: it must not lead out of the folder
        with tempfile.TemporaryDirectory() as scratch:
            local = self._fetched(name, Path(scratch) / "checkpoint") if self.remote else Path(self.root) / name
            _verify(local)
            yield local

    def _fetched(self, name: str, target: Path) -> Path:
        """Fetch a checkpoint; one that has not arrived is where it waits to be sent, if that is on this machine."""
        files, path = _at(f"{self.root}/{name}")

        def fetch() -> None:
            shutil.rmtree(target, ignore_errors=True)  # of a try that failed
            if files.exists(f"{path}/{_MANIFEST}"):
                files.get(path, str(target), recursive=True)

        waiting = self._here / name
        try:
            _patiently(fetch, f"{name} cannot be read from {self.root}")
        except OSError:
            if not waiting.exists():
                raise
        if target.exists():
            return target
        if waiting.exists():
            return waiting
        raise CheckpointError(f"no checkpoint at {self.root}/{name}")

    def put(self, directory: Path, name: str) -> None:
        """Take a checkpoint in from a folder, which is moved away.

        Raises
        ------
        CheckpointError
            Its files are not those that were written, or there are others among them.
        """
        _parts(name)
        there = {file.relative_to(directory).as_posix() for file in directory.rglob("*") if file.is_file()}
        if there != {_MANIFEST, *_verify(directory)}:
            raise CheckpointError(f"{name} holds files that its manifest does not name: it is refused")
        if self.remote:
            _patiently(lambda: self._upload(directory, name), f"{name} cannot be written to {self.root}")
        else:
            target = Path(self.root) / name
            private_folder(target.parent)
            shutil.move(directory, target)

    def before(self, name: str) -> Iterator[tuple[str, int]]:
        """List the checkpoints of the same trial that are older than `name`, with their phases, newest first."""
        folder, phase = _parts(name)
        for earlier in reversed(self._phases(folder)):
            if earlier < phase:
                yield f"{folder}/phase-{earlier:03d}", earlier

    def pin(self, name: str) -> None:
        """Keep a checkpoint for good, for another trial starts from it."""
        _parts(name)
        files, path = _at(f"{self.root}/{name}.donor")
        _make_folder(files, path.rpartition("/")[0])
        files.touch(path)

    def disk_use(self) -> int:
        """Add up the bytes of every checkpoint there is."""
        if not self.remote:
            return sum(_size(Path(folder) / name) for folder, _, names in os.walk(self.root) for name in names)
        files, path = _at(self.root)
        try:
            return sum(int(found["size"] or 0) for found in files.find(path, detail=True).values())
        except FileNotFoundError:  # there is none yet
            return 0

    def remove(self) -> None:
        """Remove every checkpoint there is."""
        files, path = _at(self.root)
        if files.exists(path):
            files.rm(path, recursive=True)
        shutil.rmtree(self._here, ignore_errors=True)

    def _place(self, trainable: Trainable, target: Path, about: Mapping[str, Any]) -> None:
        scratch = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
        private_folder(scratch)
        try:
            _fill(trainable, scratch, about)
            if target.exists():  # an attempt that ended here but whose report was lost
                shutil.rmtree(target)
            scratch.rename(target)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise

    def _upload(self, scratch: Path, name: str) -> None:
        files, path = _at(f"{self.root}/{name}")
        _make_folder(files, path)
        for file in sorted(scratch.rglob("*"), key=lambda f: (f.name == _MANIFEST, str(f))):
            if file.is_file():
                files.put_file(str(file), f"{path}/{file.relative_to(scratch).as_posix()}")

    def _tidy(self, trial: int, phase: int) -> None:
        """Remove what the policy does not keep; `phase` is the newest."""
        folder = _name(trial, phase).partition("/")[0]
        old = [earlier for earlier in self._phases(folder) if earlier <= phase - self.keep]
        if not old:
            return
        scores = {p: self._score(f"{folder}/phase-{p:03d}") for p in (*old, *range(old[-1] + 1, phase + 1))}
        known = {p: score if self.mode == "max" else -score for p, score in scores.items() if score is not None}
        best = max(known, key=lambda p: (known[p], p)) if known else None
        for earlier in old:
            if earlier != best:
                self._delete(f"{folder}/phase-{earlier:03d}")

    def _phases(self, folder: str) -> list[int]:
        """Phases of which there is a checkpoint, oldest first."""
        files, path = _at(f"{self.root}/{folder}")
        try:
            names = [str(found).rpartition("/")[2] for found in files.ls(path, detail=False)]
        except FileNotFoundError:
            return []
        return sorted(int(n[6:]) for n in names if n.startswith("phase-") and n[6:].isdigit())

    def _score(self, name: str) -> float | None:
        files, path = _at(f"{self.root}/{name}/{_MANIFEST}")
        try:
            score = json.loads(files.cat_file(path))["score"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return float(score) if isinstance(score, (int, float)) else None

    def _delete(self, name: str) -> None:
        files, path = _at(f"{self.root}/{name}")
        if files.exists(f"{path}.donor"):
            return
        if not self.remote:
            target = Path(self.root) / name
            shutil.rmtree(target, ignore_errors=True)
            for leftover in target.parent.glob(f".{target.name}.*"):  # of a worker killed while it saved
                shutil.rmtree(leftover, ignore_errors=True)
        else:
            with suppress(FileNotFoundError):
                files.rm(path, recursive=True)


def _name(trial: int, phase: int) -> str:
    return f"trial-{trial:05d}/phase-{phase:03d}"


def _parts(name: str) -> tuple[str, int]:
    found = _NAME.fullmatch(name)
    if found is None:
        raise CheckpointError(f"{name!r} is not a checkpoint's name: it should read like {_name(7, 2)}")
    return found[1], int(found[2])


def _at(url: str) -> tuple[Any, str]:
    """Give the file system of a URL and the path there; what others have written meanwhile is seen."""
    found: tuple[Any, str] = fsspec.core.url_to_fs(url, use_listings_cache=False)
    return found


def _make_folder(files: Any, path: str) -> None:
    """Make a folder where there are any; of an object store it would ask for its bucket, and make one if need be."""
    if not _OBJECT_STORES & {files.protocol, *files.protocol}:
        files.makedirs(path, exist_ok=True)


def _patiently(act: Callable[[], None], told: str) -> None:
    """Try again for a minute what a network may fail; a place that is not there, or refuses, is told at once.

    Raises
    ------
    OSError
        Beginning with `told`, whatever the library behind the URL has raised.
    """
    for wait_s in (*_WAITS_S, None):
        try:
            act()
            return
        except WorkbenchError:
            raise
        except Exception as err:
            if wait_s is None or isinstance(err, (FileNotFoundError, PermissionError)):
                why = " ".join(str(err).split()) or type(err).__name__
                raise OSError(f"{told}: {why}") from err
            time.sleep(wait_s)


def _fill(trainable: Trainable, scratch: Path, about: Mapping[str, Any]) -> None:
    """Have the trial write its files and add the manifest: each file's SHA-256."""
    try:
        trainable.save(scratch)
    except Exception as err:
        _probe(scratch)  # torch and others do not say that the disk is full: ask it
        _tell_of_directory(trainable, "save", err)
        raise
    found = sorted(scratch.rglob("*"))
    for file in found:
        name = file.relative_to(scratch).as_posix()
        if name == _MANIFEST:
            raise CheckpointError(f"save() wrote {_MANIFEST}, a file of the workbench's own: choose another name")
        if file.is_symlink() or not (file.is_file() or file.is_dir()):
            raise CheckpointError(f"save() left {name!r}, which is no file or folder but a link or a device: copy it")
    sums = {file.relative_to(scratch).as_posix(): _sha256(file) for file in found if file.is_file()}
    (scratch / _MANIFEST).write_text(json.dumps({**about, "sha256": sums}, indent=1))


def _tell_of_directory(trainable: Trainable, method: str, err: Exception) -> None:
    """Say what `path` is to a trial that took it for a file: torch's own error does not."""
    if isinstance(err, IsADirectoryError) or "is a directory" in str(err).lower():
        raise InvalidInput(
            f"{type(trainable).__name__}.{method}(path) took its path for a file, but path is a directory: put files "
            f"into it, as in path / 'model.pt' ({place_of(err) or ' '.join(str(err).split())})"
        ) from err


def _probe(directory: Path) -> None:
    """Raise `OSError` if the disk takes no more."""
    with (directory / ".probe").open("wb") as file:
        file.write(bytes(_PROBE_BYTES))


def _size(file: Path) -> int:
    try:
        return file.lstat().st_size
    except FileNotFoundError:  # removed meanwhile
        return 0


def _verify(directory: Path) -> list[str]:
    """Compare a checkpoint's files with their sums; return their names."""
    try:
        sums = json.loads((directory / _MANIFEST).read_text())["sha256"]
        if outside := [name for name in sums if name.startswith("/") or ".." in name.split("/")]:
            raise ValueError(f"it names {outside[0]!r}, outside its folder")
        wrong = [name for name, expected in sums.items() if _sha256(directory / name) != expected]
    except FileNotFoundError as err:
        missing = Path(err.filename).name
        what = f"no whole checkpoint at {directory}" if missing == _MANIFEST else "the checkpoint is refused"
        raise CheckpointError(f"{what}: {missing} is missing") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as err:
        raise CheckpointError(f"no whole checkpoint at {directory}: it cannot be read ({err})") from None
    if wrong:
        raise CheckpointError(f"{directory / wrong[0]} is not what was written: the checkpoint is refused")
    return list(sums)


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
