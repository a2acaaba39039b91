"""Checkpoints at phase ends: whole or absent, checked when read, in a directory or at any fsspec URL."""

import errno
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR

from workbench.cluster.manifest import MANIFEST, tell_of_directory, verify, write
from workbench.cluster.place import Place
from workbench.core.aim import sign_of
from workbench.core.errors import CheckpointError, PlaceAway, may_pass
from workbench.core.places import private_folder
from workbench.core.protocols import Trainable

_NAME = re.compile(r"trial-(\d+)/phase-(\d+)(?:\.part)?")
_found: set[tuple[str, str]] = set()  # folders, and the studies whose marks this process has found there


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
    study : str
        Its identity. What waits on a machine to be sent to a URL, and was left there by a worker that was killed, is
        not for another study that comes to have the URL.
    marked : bool
        Whether its mark is in the folder for all who run its trials. Workers of other machines may see another folder
        under this name: for them it is there once they have found it.
    """

    root: str
    keep: int = 2
    mode: str = "max"
    study: str = ""
    marked: bool = False

    def __post_init__(self) -> None:
        sign_of(self.mode)  # a wrong one would be noticed on a worker only, or never

    def set_down(self, trainable: Trainable, trial: int, phase: int, score: float | None = None) -> str:
        """Write a trial's state as of the end of `phase` to a disk at once, and return the checkpoint's name.

        It appears under its name only when it is whole: in its place, or where `send` will take it from if that is a
        URL. Until it has been sent, `load` finds it there too, on the same machine, whatever becomes of this process.

        Raises
        ------
        PlaceAway
            The place fails, not the trial.
        OSError
            With a number out of `core.errors.DISK_FULL` when there is no space left, whatever the trainable made of it.
        """
        self.check_there()
        name = _name(trial, phase)
        write(trainable, self._here(name), {"trial": trial, "phase": phase, "score": score})
        if not self.remote:
            with may_pass():
                self._tidy(trial, phase)
        return name

    def check_there(self) -> None:
        """Ask a folder that has its study's mark whether it is still there; a URL tells by itself that it is not.

        Raises
        ------
        PlaceAway
            The mark is gone, as where a disk was unmounted: what is missing there is not lost.
        """
        if self.remote or not self.study:
            return
        if self._there.owner() == self.study:
            _found.add((self.root, self.study))
        elif self.marked or (self.root, self.study) in _found:
            raise PlaceAway(errno.ENOENT, "its file .study is gone, or another study's: bring that folder back")

    def send(self, name: str) -> None:
        """Bring a checkpoint to its URL, the manifest last, and remove those that are kept no longer.

        Raises
        ------
        OSError
            The place cannot be reached, or refuses it, although it was tried for a minute.
        """
        if self.remote:
            trial, phase = _parts(name)
            self._there.upload(self._here(name), name)
            with suppress(Exception):  # what could not be removed is removed with the next
                self._tidy(trial, phase)
            for waiting in self._here(name).parent.glob(f"{_folder(trial)}-phase-*[0-9]"):
                if _parts(waiting.name.replace("-phase", "/phase"))[1] <= phase:  # older: it could not be sent
                    shutil.rmtree(waiting, ignore_errors=True)

    @property
    def remote(self) -> bool:
        """Whether it is at a URL, where what is written takes its time to arrive."""
        return self._there.remote

    @property
    def _there(self) -> Place:
        return Place(self.root)

    def _here(self, name: str) -> Path:
        """Give a checkpoint's folder on this machine: in the store itself, or where it waits to be sent.

        There its trial has no folder of its own: it would stay when it is empty, or go while another worker fills it.
        """
        if not self.remote:
            return Path(self.root) / name
        return _outbox(self.root) / _mark(self.study) / name.replace("/", "-")

    def save_part(self, trainable: Trainable, trial: int, phase: int) -> None:
        """Write a trial's state as it is within `phase`."""
        self.check_there()
        name = part_name(trial, phase)
        write(trainable, self._here(name), {"trial": trial, "phase": phase, "score": None})
        if self.remote:
            self._there.upload(self._here(name), name)
            shutil.rmtree(self._here(name), ignore_errors=True)

    def has(self, name: str) -> bool:
        """Tell whether there is a checkpoint of this name; raises as `before`."""
        with may_pass():
            return (self._here(name) / MANIFEST).exists() or self._there.has(name)

    def remove_part(self, name: str) -> None:
        """Remove the checkpoint within a phase: the phase has ended."""
        shutil.rmtree(self._here(name), ignore_errors=True)
        with suppress(Exception):  # of a library behind a URL
            self._there.delete(name)

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
                tell_of_directory(trainable, "load", err)
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
        with ExitStack() as stack:
            local = Path(self.root) / name
            if self.remote:
                scratch = stack.enter_context(tempfile.TemporaryDirectory())
                local = self._fetched(name, Path(scratch) / "checkpoint")
            verify(local)
            yield local

    def _fetched(self, name: str, target: Path) -> Path:
        """Fetch a checkpoint; one that has not arrived is where it waits to be sent, if that is on this machine."""
        waiting = self._here(name)
        try:
            self._there.fetch(name, target)
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
        if there != {MANIFEST, *verify(directory)}:
            raise CheckpointError(f"{name} holds files that its manifest does not name: it is refused")
        if self.remote:
            self._there.upload(directory, name)
        else:
            target = Path(self.root) / name
            private_folder(target.parent)
            shutil.move(directory, target)

    def before(self, name: str) -> Iterator[tuple[str, int]]:
        """List the checkpoints of the same trial that are older than `name`, and by how many phases, newest first.

        Raises
        ------
        PlaceAway
            The folder is away, or cannot be read at all: none is known to be missing.
        """
        self.check_there()
        trial, phase = _parts(name)
        with may_pass():
            phases = self._there.phases(_folder(trial))
        for earlier in reversed(phases):
            if earlier < phase:
                yield _name(trial, earlier), phase - earlier

    def pin(self, name: str) -> None:
        """Keep a checkpoint for good, for another trial starts from it; raises as `check_there`."""
        _parts(name)
        self.check_there()
        self._there.pin(name)

    def disk_use(self) -> int:
        """Add up the bytes of every checkpoint there is."""
        return self._there.disk_use()

    def remove(self) -> None:
        """Remove every checkpoint there is."""
        self._there.remove()
        if self.remote:
            shutil.rmtree(_outbox(self.root), ignore_errors=True)

    def _tidy(self, trial: int, phase: int) -> None:
        """Remove what the policy does not keep; `phase` is the newest."""
        old = [earlier for earlier in self._there.phases(_folder(trial)) if earlier <= phase - self.keep]
        if not old:
            return
        scores = {p: self._there.score(_name(trial, p)) for p in (*old, *range(old[-1] + 1, phase + 1))}
        known = {p: sign_of(self.mode) * score for p, score in scores.items() if score is not None}
        best = max(known, key=lambda p: (known[p], p)) if known else None
        for earlier in old:
            if earlier != best:
                self._there.delete(_name(trial, earlier))


def part_name(trial: int, phase: int) -> str:
    """Name the checkpoint within a phase, if there is one."""
    return f"{_name(trial, phase)}.part"


def _outbox(url: str) -> Path:
    """Give the folder on this machine where whatever is to go to a URL waits."""
    own = private_folder(Path(tempfile.gettempdir()) / f"workbench-{os.getuid()}")
    if (status := own.lstat()).st_uid != os.getuid() or not S_ISDIR(status.st_mode) or status.st_mode & 0o077:
        raise OSError(errno.EPERM, "it is no private folder of yours: remove it, or set TMPDIR", str(own))
    return own / _mark(url)


def _folder(trial: int) -> str:
    return f"trial-{trial:05d}"


def _mark(word: str) -> str:
    return hashlib.sha256(word.encode()).hexdigest()[:16]


def _name(trial: int, phase: int) -> str:
    return f"{_folder(trial)}/phase-{phase:03d}"


def _parts(name: str) -> tuple[int, int]:
    """Read the trial and the phase in a checkpoint's name."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise CheckpointError(f"{name!r} is not a checkpoint's name: it should read like {_name(7, 2)}")
    return int(match[1]), int(match[2])
