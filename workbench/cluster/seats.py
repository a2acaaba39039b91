"""Which slots are up and without a trial: part of the book of attempts, and as pure."""

import heapq
from typing import NamedTuple

from workbench.cluster.slots import Slot


class Release(NamedTuple):
    """Close the trial that may still live on the slot's workers."""

    slot: Slot


class Seats:
    """The slots there have been, and a heap of the free ones: the lowest comes first.

    Attributes
    ----------
    n_up : int
        Slots that are up.
    """

    def __init__(self) -> None:
        self.n_up = 0
        self._slots: dict[int, Slot] = {}  # all there have been, by number
        self._free: list[int] = []  # heap

    @property
    def n_free(self) -> int:
        """Slots that are up and without a trial."""
        return len(self._free)

    @property
    def slots(self) -> list[Slot]:
        """All there have been."""
        return list(self._slots.values())

    @property
    def last(self) -> Slot:
        """Give the highest of the free."""
        return self._slots[max(self._free)]

    def join(self, slot: Slot) -> None:
        """Take one into service; an earlier driver may have left a trial on it."""
        self._slots[slot.index] = slot
        slot.up = slot.dirty = True
        self.n_up += 1
        if slot.trial is None:
            heapq.heappush(self._free, slot.index)

    def lose(self, slot: Slot) -> None:
        """Take one out of service."""
        slot.up = False
        self.n_up -= 1
        if slot.trial is None:
            self._remove(slot.index)

    def admit(self, shunned: Slot | None, at_work: bool) -> bool:
        """Tell whether there is a free slot; while others are `at_work`, one that is shunned does not count."""
        return len(self._free) > (at_work and shunned is not None and shunned.up and shunned.trial is None)

    def take(self, trial: int, wish: int | None, shunned: Slot | None = None) -> Slot:
        """Seat a trial on the slot it wishes for if that is free, else on the lowest; some must be.

        On one that it shuns only where no other is.
        """
        if shunned is not None:
            wish = min((index for index in self._free if index != shunned.index), default=None)
        if wish is None or wish == self._free[0] or wish not in self._free:
            slot = self._slots[heapq.heappop(self._free)]
        else:
            self._remove(wish)
            slot = self._slots[wish]
        slot.trial = trial
        return slot

    def leave(self, slot: Slot) -> None:
        """Take the trial off its slot; the workers may still keep it."""
        slot.trial, slot.dirty = None, True
        if slot.up:
            heapq.heappush(self._free, slot.index)

    def release(self, *, everything: bool = False) -> list[Release]:
        """Clear slots that have given up a trial and got no other; at the end, all."""
        slots = self._slots.values() if everything else [self._slots[index] for index in self._free]
        dirty = [slot for slot in slots if slot.up and (slot.dirty or slot.trial is not None)]
        for slot in dirty:
            slot.dirty = False
        return [Release(slot) for slot in dirty]

    def _remove(self, index: int) -> None:
        self._free.remove(index)
        heapq.heapify(self._free)
