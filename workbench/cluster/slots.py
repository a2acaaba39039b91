"""Which workers of a cluster stand together: a slot holds one trial, on one worker or on a gang of them."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

from workbench.core.nodes import joined_nodes


@dataclass(frozen=True)
class Worker:
    """A worker process that is up."""

    name: Any  # it survives a restart by the nanny; the address may
    node: str
    address: str
    life: str  # what Dask calls this process, and no other


@dataclass(slots=True, eq=False)
class Slot:
    """The workers that hold one trial together, usually one, and the trial.

    Attributes
    ----------
    names, nodes : tuple
        Of the workers, in the order of their ranks.
    addresses, lives : tuple of str
        Of the workers, as they were when the slot last came up; empty in a simulation.
    up : bool
        Whether all its workers are. The book of attempts keeps this, and what follows.
    trial : int or None
        The trial that holds the slot, at work or held; also while the slot is down.
    dirty : bool
        Whether the workers may still keep a trial that this slot has given up.
    """

    index: int
    names: tuple[Any, ...]
    nodes: tuple[str, ...]
    addresses: tuple[str, ...] = ()
    lives: tuple[str, ...] = ()
    up: bool = False
    trial: int | None = None
    dirty: bool = False

    @property
    def node(self) -> str:
        """Name the nodes it is on; of a large gang the first and the last."""
        return joined_nodes(self.nodes)

    @property
    def place(self) -> dict[str, Any]:
        """Say where it is, for the log."""
        return {"node": self.node} if len(self.names) == 1 else {"node": self.node, "workers": len(self.names)}


class Slots:
    """The slots that the workers of a cluster form, and the workers that are in none.

    Parameters
    ----------
    n_ranks : int
        Workers that a slot needs.
    """

    def __init__(self, n_ranks: int) -> None:
        self._n_ranks = n_ranks
        self._slots: list[Slot] = []  # all there have been
        self.apart: dict[Any, Worker] = {}  # by name: up, and in no slot that is

    @property
    def addresses(self) -> list[str]:
        """Of all workers of slots that are up."""
        return [address for slot in self._slots if slot.up for address in slot.addresses]

    @property
    def held(self) -> dict[str, str]:
        """Address → life, of all workers of slots that are up."""
        return {
            at: life for slot in self._slots if slot.up for at, life in zip(slot.addresses, slot.lives, strict=True)
        }

    @property
    def n_workers(self) -> int:
        """Count the workers of slots that are up, and those that wait for others to form one."""
        return len(self.addresses) + len(self.apart)

    @property
    def busy(self) -> list[str]:
        """Addresses of all workers that hold a trial."""
        return [address for slot in self._slots if slot.up and slot.trial is not None for address in slot.addresses]

    def with_lost_workers(self, workers: Mapping[str, Any]) -> list[tuple[Slot, list[int]]]:
        """Give the slots whose workers are not all among these (as of `form`), and the ranks that are missing.

        A worker that is back at its address is another one, and what the old one ran is lost.
        """
        lives = {info["life"] for info in workers.values()}
        missing = [
            (slot, [rank for rank, life in enumerate(slot.lives) if life not in lives])
            for slot in self._slots
            if slot.up
        ]
        return [(slot, gone) for slot, gone in missing if gone]

    def form(self, workers: Mapping[str, Any], given_up: Collection[str]) -> list[Slot]:
        """Make slots of the workers that are in none: first those that were slots before, with the same number.

        Parameters
        ----------
        workers : Mapping
            Address → name, host and life, as `Sharing.workers` gives them.
        given_up : collection of str
            Lives of workers that are not to be used.

        Returns
        -------
        list of Slot
            Those that can be taken into service.
        """
        grouped = set(self.addresses)
        self.apart = {
            info["name"]: Worker(info["name"], _node_of(info), address, info["life"])
            for address, info in workers.items()
            if address not in grouped and info["life"] not in given_up
        }
        joined = []
        for slot in self._slots:
            if not slot.up and all(name in self.apart for name in slot.names):
                back = [self.apart.pop(name) for name in slot.names]
                slot.addresses, slot.lives = tuple(m.address for m in back), tuple(m.life for m in back)
                joined.append(slot)
        # not as they happened to connect
        apart = _by_hosts(sorted(self.apart.values(), key=lambda member: _in_order(member.name)), self._n_ranks)
        while len(apart) >= self._n_ranks:
            members, apart = apart[: self._n_ranks], apart[self._n_ranks :]
            of_each = ((m.name, m.node, m.address, m.life) for m in members)
            names, nodes, addresses, lives = zip(*of_each, strict=True)
            joined.append(Slot(len(self._slots), names, nodes, addresses, lives))
            self._slots.append(joined[-1])
        self.apart = {member.name: member for member in apart}
        return joined


def _by_hosts(workers: list[Worker], n_ranks: int) -> list[Worker]:
    """Put those first that fill gangs on a host of their own, and then what is left over on each host."""
    if n_ranks == 1:
        return workers
    whole: list[Worker] = []
    rest: list[Worker] = []
    for _, group in groupby(sorted(workers, key=attrgetter("node")), key=attrgetter("node")):
        here = list(group)
        filled = len(here) // n_ranks * n_ranks
        whole += here[:filled]
        rest += here[filled:]
    return whole + rest


def _in_order(name: Any) -> list[str | int]:
    """Order names with numbers in them by these: `node-2` comes before `node-10`."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", str(name))]


def _node_of(info: Mapping[str, Any]) -> str:
    """Name a worker's host; on one machine each worker stands for a node of its own."""
    host = str(info.get("host", ""))
    return str(info["name"]) if host in ("", "127.0.0.1", "localhost", "::1") else host
