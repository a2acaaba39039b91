"""Which of a study's slots live, as those see it who only hear what is logged."""

import math
import time

from workbench.core.protocols import BEGUN, TURNS, Event, Kind

NO_SLOT = "waiting for workers: the cluster has none for this study, or too few"
_PATIENCE_S = 15.0  # workers of a local cluster are up before, and those that replace others


class LivingSlots:
    """The slots that live, and whether a study has lacked one for so long that it is to be told.

    It lacks one where none lives, or where those that live are all held by trials that wait for another, which has
    none: by schedulers that preempt nobody, once a node has left.
    """

    def __init__(self) -> None:
        self._driven = False
        self._live: set[int | None] = set()
        self._lacks_since = math.inf  # by this process's clock: the study's own stands until there are slots

    def __len__(self) -> int:
        return len(self._live)

    @property
    def lacking(self) -> bool:
        """Whether it has lacked one for 15 s, in a study that has begun and has not ended."""
        return time.monotonic() - self._lacks_since > _PATIENCE_S

    def see(self, event: Event, n_in_the_way: int = 0) -> None:
        """Take in the next event, and how many hold a slot then while another is to run; who begins has no slot yet."""
        kind = event.kind
        if kind in TURNS:
            self._driven, self._lacks_since = kind in BEGUN, math.inf
            self._live.clear()
        elif kind is Kind.SLOT_JOINED:
            self._live.add(event.slot)
        elif kind is Kind.SLOT_LOST:
            self._live.discard(event.slot)
        lacks = self._driven and n_in_the_way >= len(self._live)
        self._lacks_since = min(self._lacks_since, time.monotonic()) if lacks else math.inf
