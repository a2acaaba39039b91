"""A trainable too large to travel with every phase, such as a function with a data set in its closure."""

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

import cloudpickle

from workbench.cluster.place import Place, sent_name
from workbench.core.errors import CheckpointError, InvalidInput
from workbench.core.protocols import TrainableFactory

_LARGE = 1 << 20  # bytes of a pickle; a task of Dask's goes through its scheduler, and is held there while it runs


@dataclass(frozen=True)
class Parcel:
    """Where it lies, beside the checkpoints, and its sum: workers read it there when a trial comes up.

    What is read is run, so it is compared with its sum first, which came with the phase.
    """

    place: Place
    digest: str

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
        """
        raw = self.place.read(self.name)
        if hashlib.sha256(raw).hexdigest() != self.digest:
            raise CheckpointError(f"{self.place.root}/{self.name} is not the trainable that was sent: it is not run")
        return cast(TrainableFactory, cloudpickle.loads(raw))

    def remove(self) -> None:
        """Remove it, should it be there and can be reached."""
        with suppress(Exception):
            self.place.remove_file(self.name)


def parcelled(factory: TrainableFactory, root: str) -> TrainableFactory | Parcel:
    """Give a trainable as it is to travel with a phase: itself, or if it is large a `Parcel`, written to `root` now.

    Raises
    ------
    InvalidInput
        `root` cannot be reached, or refuses it, although it was tried for a minute.
    """
    raw = cloudpickle.dumps(factory)
    if len(raw) <= _LARGE:
        return factory
    parcel = Parcel(Place(root), hashlib.sha256(raw).hexdigest())
    try:
        parcel.place.write(parcel.name, raw)
    except OSError as err:
        raise InvalidInput(
            f"a trainable of {len(raw) / 2**20:.0f} MiB is read from beside the checkpoints: {err}"
        ) from None
    return parcel
