"""What the trials of a study reported: its learning curves and its rates, fed with its events and its points."""

import math
from typing import Any

import numpy.typing as npt

from workbench.core.ledger import Ledger, TrialState
from workbench.core.protocols import Event, Kind
from workbench.viz.dashboard.feed import joined
from workbench.viz.dashboard.live_curves import LiveCurves
from workbench.viz.dashboard.rates import Rates

_OFF_SLOT = (Kind.PHASE_FAILED, Kind.TRIAL_FAILED, Kind.TRIAL_STOPPED)


class Reported:
    """Curves and rates; they hear of a long log's events only when its numbers have been told.

    Parameters
    ----------
    ledger : Ledger
        Of the same events, one step ahead.

    Attributes
    ----------
    rates : Rates
        As of the last points.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._curves = LiveCurves()
        self.rates = Rates()
        self._waiting: list[npt.NDArray[Any]] = []  # points, while more of them are to come
        self._unplaced: list[tuple[Event, bool, bool]] = []  # whether its trial leaves its slot, whether for a person

    def see(self, event: Event) -> None:
        """Take in what the ledger has taken in."""
        if event.trial is not None:
            own = event.kind is Kind.PHASE_ENDED and self._ledger.trials[event.trial].own
            self._unplaced.append((event, _leaves(event, self._ledger), own))
        elif event.kind is Kind.STUDY_RESUMED:
            self._unplaced.append((event, False, False))

    def take(self, points: npt.NDArray[Any], *, more: bool) -> None:
        """Take in points, of type `POINT`; they wait until there are no more to come."""
        if len(points):
            self._waiting.append(points)
        if not more:
            points = joined(self._waiting)
            self._waiting.clear()
            self.curves.take(points)
            self.rates.take(points, self._ledger.at)

    @property
    def reading(self) -> bool:
        """Whether points of the log are still to come; until then curves go through the ends of phases alone."""
        return bool(self._waiting)

    @property
    def curves(self) -> LiveCurves:
        """The learning curves, with the events so far."""
        for event, leaves, own in self._unplaced:
            self._place(event, leaves=leaves, own=own)
        self._unplaced.clear()
        return self._curves

    def take_as_sent(self) -> None:
        """Every viewer has all there is."""
        self._curves.take_as_sent()
        self.rates.changes()

    def _place(self, event: Event, *, leaves: bool, own: bool) -> None:
        kind, trial, phase = event.kind, event.trial or 0, event.phase or 0
        if kind is Kind.RUN:
            if event.data["parent"] not in (None, trial):
                self._curves.inherit(trial, event.data["parent"])
        elif kind is Kind.PHASE_STARTED:
            self._curves.start(trial, phase, event.at)
            self.rates.join(trial)
        elif kind is Kind.PHASE_ENDED:
            frames = float(event.data.get("metrics", {}).get("frames", math.nan))
            self._curves.end(trial, phase, event.at, float(event.data["score"]), frames, own=own)
        elif kind is Kind.STUDY_RESUMED:  # what an earlier driver left under way waits for a slot
            self.rates.drop_all(event.at)
        elif leaves:
            self.rates.drop(trial, event.at)


def _leaves(event: Event, ledger: Ledger) -> bool:
    """Tell whether a trial leaves its slot with the last event taken in; set aside, it does though it was let go on."""
    if event.kind is not Kind.DECISION or event.trial is None:
        return event.kind in _OFF_SLOT
    return ledger.paused or ledger.trials[event.trial].state is not TrialState.RUNNING
