"""How a trainable travels: pickled, until its trial comes up, which may fail there as all of its code may."""

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

import cloudpickle

from workbench.cluster.place import Place, sent_name
from workbench.core.errors import CheckpointError, InvalidInput
from workbench.core.protocols import TrainableFactory
from workbench.core.script import pickled

_LARGE = 1 << 20  # bytes of a pickle; a task of Dask's goes through its scheduler, and is held there while it runs


@dataclass(frozen=True)
class Parcel:
    """A pickled trainable: itself, or if it is large, such as a function with a data set in its closure, where it lies.

    That is beside the checkpoints, where workers read it when a trial comes up. What is read is run, so it is compared
    with its sum first, which came with the phase.

    Attributes
    ----------
    place : Place
    digest : str
        Of SHA-256.
    raw : bytes or None
        ``None``: it lies at `place`.
    """

    place: Place
    digest: str
    raw: bytes | None = None

    @property
    def name(self) -> str:
        """Its file, one for each of a study's drivers that have sent another trainable."""
        return sent_name(self.digest)

    def open(self) -> TrainableFactory:
        """Read the trainable.

        Raises
        ------
        CheckpointError
            It is not what was sent.
        OSError
            It cannot be reached.
        Exception
            It cannot be unpickled here: a module that it needs is missing, say.
        """
        raw = self.raw if self.raw is not None else self.place.read(self.name)
        if hashlib.sha256(raw).hexdigest() != self.digest:
            raise CheckpointError(f"{self.place.root}/{self.name} is not the trainable that was sent: it is not run")
        return cast(TrainableFactory, cloudpickle.loads(raw))

    def remove(self) -> None:
        """Remove it, should it lie there and can be reached."""
        if self.raw is None:
            with suppress(Exception):
                self.place.remove_file(self.name)


def parcelled(factory: TrainableFactory, root: str) -> Parcel:
    """Pickle a trainable; a large one is written to `root` now.

    Raises
    ------
    InvalidInput
        `root` cannot be reached, or refuses it, although it was tried for a minute.
    """
    raw = pickled(factory)
    place, digest = Place(root), hashlib.sha256(raw).hexdigest()
    if len(raw) <= _LARGE:
        return Parcel(place, digest, raw)
    parcel = Parcel(place, digest)
    try:
        parcel.place.write(parcel.name, raw)
    except OSError as err:
        raise InvalidInput(
            f"a trainable of {len(raw) / 2**20:.0f} MiB is read from beside the checkpoints: {err}"
        ) from None
    return parcel
