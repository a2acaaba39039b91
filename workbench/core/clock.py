"""A study's clock, as those see it who only hear what is logged."""

import math
import time

from workbench.core.protocols import TURNS, Event, Kind


class SeenClock:
    """A study's clock between two events, which may lie as far apart as a phase is long.

    What is heard has happened, so the driver's clock shows as much already, and goes on as any clock does. This one is
    never ahead of it, and behind by no more than what was heard last came late. It stands until the driver has slots:
    its clock begins with them.
    """

    def __init__(self) -> None:
        self._goes = False
        self._ahead = -math.inf  # of the clock here, at least

    def see(self, event: Event) -> None:
        """Take in the next event."""
        if event.kind in TURNS:
            self._goes, self._ahead = False, -math.inf
        elif event.kind is Kind.SLOT_JOINED:
            self._goes = True

    def now(self, at: float, *, driven: bool) -> float:
        """Tell what the clock shows, seconds.

        Parameters
        ----------
        at : float
            The latest time that was heard of.
        driven : bool
            Whether somebody drives the study, in real time. What nobody drives goes on from what was heard last.
        """
        if not (driven and self._goes):
            self._ahead = -math.inf
            return at
        here = time.monotonic()
        self._ahead = max(self._ahead, at - here)
        return here + self._ahead
