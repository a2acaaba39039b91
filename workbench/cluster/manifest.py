"""What is in a checkpoint: the files that its trial has written, and the manifest with their sums."""

import hashlib
import json
import shutil
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench.core.errors import CheckpointError, InvalidInput, may_pass
from workbench.core.failures import place_of
from workbench.core.places import private_folder
from workbench.core.protocols import Trainable

MANIFEST = "manifest.json"

_PROBE_BYTES = 1 << 16


def write(trainable: Trainable, target: Path, about: Mapping[str, Any]) -> None:
    """Write a checkpoint, whole or not at all; one that is there already is replaced.

    Raises
    ------
    PlaceAway
        It is not the trial that fails but the place.
    """
    scratch = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
    try:
        with may_pass():
            private_folder(scratch)
        _fill(trainable, scratch)
        with may_pass():
            _add_manifest(scratch, about)
            if target.exists():  # an attempt that ended here but whose report was lost
                shutil.rmtree(target)
            scratch.rename(target)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    remove_leftovers(target)


def remove_leftovers(target: Path) -> None:
    """Remove what workers that were killed have left half-written of a checkpoint."""
    with suppress(OSError):  # they go with the checkpoint at the latest
        for leftover in target.parent.glob(f".{target.name}.*"):
            shutil.rmtree(leftover, ignore_errors=True)


def _fill(trainable: Trainable, scratch: Path) -> None:
    """Have the trial write its files."""
    try:
        trainable.save(scratch)
    except Exception as err:
        with may_pass():
            _probe(scratch)  # torch and others do not say that the disk is full: ask it
        tell_of_directory(trainable, "save", err)
        raise


def _add_manifest(scratch: Path, about: Mapping[str, Any]) -> None:
    """Add each file's SHA-256."""
    files = sorted(scratch.rglob("*"))
    for file in files:
        name = file.relative_to(scratch).as_posix()
        if name == MANIFEST:
            raise CheckpointError(f"save() wrote {MANIFEST}, a file of the workbench's own: choose another name")
        if file.is_symlink() or not (file.is_file() or file.is_dir()):
            raise CheckpointError(f"save() left {name!r}, which is no file or folder but a link or a device: copy it")
    sums = {file.relative_to(scratch).as_posix(): _sha256(file) for file in files if file.is_file()}
    (scratch / MANIFEST).write_text(json.dumps({**about, "sha256": sums}, indent=1))


def tell_of_directory(trainable: Trainable, method: str, err: Exception) -> None:
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


def verify(directory: Path) -> list[str]:
    """Compare a checkpoint's files with their sums; return their names."""
    try:
        sums = json.loads((directory / MANIFEST).read_text())["sha256"]
        if outside := [name for name in sums if name.startswith("/") or ".." in name.split("/")]:
            raise ValueError(f"it names {outside[0]!r}, outside its folder")
        wrong = [name for name, expected in sums.items() if _sha256(directory / name) != expected]
    except FileNotFoundError as err:
        missing = Path(err.filename).name
        what = f"no whole checkpoint at {directory}" if missing == MANIFEST else "the checkpoint is refused"
        raise CheckpointError(f"{what}: {missing} is missing") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as err:
        raise CheckpointError(f"no whole checkpoint at {directory}: it cannot be read ({err})") from None
    if wrong:
        raise CheckpointError(f"{directory / wrong[0]} is not what was written: the checkpoint is refused")
    return list(sums)


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
