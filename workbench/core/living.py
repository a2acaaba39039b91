"""Which of a study's slots live, as those see it who only hear what is logged."""

import math
import time

from workbench.core.protocols import TURNS, Event, Kind

NO_SLOT = "waiting for workers: the cluster has none for this study, or too few"
_PATIENCE_S = 15.0  # workers of a local cluster are up before, and those that replace others


class LivingSlots:
    """The slots that live, and whether a study has been without any for so long that it is to be told."""

    def __init__(self) -> None:
        self._live: set[int | None] = set()
        self._none_since = math.inf  # by this process's clock: the study's own stands until there are slots

    def __len__(self) -> int:
        return len(self._live)

    @property
    def lacking(self) -> bool:
        """Whether there has been none for 15 s, in a study that has begun and has not ended."""
        return time.monotonic() - self._none_since > _PATIENCE_S

    def see(self, event: Event) -> None:
        """Take in the next event; a driver that begins has no slot yet."""
        if event.kind in TURNS:
            self._live.clear()
        elif event.kind is Kind.SLOT_JOINED:
            self._live.add(event.slot)
        elif event.kind is Kind.SLOT_LOST:
            self._live.discard(event.slot)
        else:
            return
        ends = event.kind in (Kind.STUDY_ENDED, Kind.STUDY_INTERRUPTED)
        self._none_since = math.inf if self._live or ends else time.monotonic()
