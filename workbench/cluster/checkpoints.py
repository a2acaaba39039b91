"""Checkpoints at phase ends: whole or absent, checked when read, in a directory or at any fsspec URL."""

import hashlib
import json
import shutil
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path

import fsspec

from workbench.core.errors import WorkbenchError
from workbench.core.protocols import Trainable

_MANIFEST = "manifest.json"


class CheckpointError(WorkbenchError):
    """A checkpoint is missing, truncated or foreign."""


@dataclass(frozen=True)
class CheckpointStore:
    """Where the trials of one study keep their state.

    Parameters
    ----------
    root : str
        A directory all workers see, or an fsspec URL such as ``s3://bucket/study``.
    keep : int
        How many checkpoints of a trial to keep, the newest first.
    """

    root: str
    keep: int = 2

    def save(self, trainable: Trainable, trial: int, phase: int) -> str:
        """Write a trial's state as of the end of `phase`, and return the checkpoint's name.

        A checkpoint appears under its name only when it is whole: a directory is renamed into place, at a URL the
        manifest is written last.
        """
        name = _name(trial, phase)
        if _is_url(self.root):
            with tempfile.TemporaryDirectory() as scratch:
                trainable.save(Path(scratch))
                self._upload(Path(scratch), name)
        else:
            self._place(trainable, Path(self.root) / name)
        if phase >= self.keep:
            self._delete(_name(trial, phase - self.keep))
        return name

    def load(self, trainable: Trainable, name: str) -> None:
        """Bring a trial to the state of checkpoint `name`.

        Raises
        ------
        CheckpointError
            It is missing, or its files are not those that were written.
        """
        if not _is_url(self.root):
            _verify(Path(self.root) / name)
            trainable.load(Path(self.root) / name)
            return
        with tempfile.TemporaryDirectory() as scratch:
            local = Path(scratch) / "checkpoint"
            files, path = fsspec.core.url_to_fs(f"{self.root}/{name}")
            if not files.exists(f"{path}/{_MANIFEST}"):
                raise CheckpointError(f"no checkpoint at {self.root}/{name}")
            files.get(path, str(local), recursive=True)
            _verify(local)
            trainable.load(local)

    def _place(self, trainable: Trainable, target: Path) -> None:
        scratch = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
        scratch.mkdir(parents=True)
        try:
            trainable.save(scratch)
            _seal(scratch)
            if target.exists():  # an attempt that ended here but whose report was lost
                shutil.rmtree(target)
            scratch.rename(target)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise

    def _upload(self, scratch: Path, name: str) -> None:
        _seal(scratch)
        files, path = fsspec.core.url_to_fs(f"{self.root}/{name}")
        files.makedirs(path, exist_ok=True)
        for file in sorted(scratch.rglob("*"), key=lambda f: (f.name == _MANIFEST, str(f))):
            if file.is_file():
                files.put_file(str(file), f"{path}/{file.relative_to(scratch).as_posix()}")

    def _delete(self, name: str) -> None:
        if not _is_url(self.root):
            shutil.rmtree(Path(self.root) / name, ignore_errors=True)
            return
        files, path = fsspec.core.url_to_fs(f"{self.root}/{name}")
        if files.exists(path):
            files.rm(path, recursive=True)


def _name(trial: int, phase: int) -> str:
    return f"trial-{trial:05d}/phase-{phase:03d}"


def _is_url(root: str) -> bool:
    return "://" in root


def _seal(directory: Path) -> None:
    """Write the manifest: each file's SHA-256."""
    sums = {f.relative_to(directory).as_posix(): _sha256(f) for f in sorted(directory.rglob("*")) if f.is_file()}
    (directory / _MANIFEST).write_text(json.dumps({"sha256": sums}, indent=1))


def _verify(directory: Path) -> None:
    try:
        sums = json.loads((directory / _MANIFEST).read_text())["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        raise CheckpointError(f"no whole checkpoint at {directory}: its {_MANIFEST} is missing or damaged") from None
    for name, expected in sums.items():
        file = directory / name
        if not file.is_file() or _sha256(file) != expected:
            raise CheckpointError(f"{file} is missing or not what was written: the checkpoint is refused")


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
