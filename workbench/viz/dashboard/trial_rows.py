"""Trials as rows of the dashboard's table."""

from heapq import nsmallest
from typing import Any, Literal

from workbench.core.interventions import possible
from workbench.core.protocols import Event
from workbench.knowledge.frames import FrameReader
from workbench.knowledge.remarks import notes_of, tags_of
from workbench.viz.dashboard.derived import finite
from workbench.viz.dashboard.lines import Lines
from workbench.viz.dashboard.pips import Pips
from workbench.viz.dashboard.words import LONGEST

Tags = dict[int | None, dict[str, float]]
Notes = dict[int | None, list[dict[str, Any]]]


class TrialRows:
    """What viewers are told of every trial.

    Parameters
    ----------
    reader : FrameReader
        Of the study's events.
    lines : Lines
        Of the same events: the last words on every trial.
    """

    def __init__(self, reader: FrameReader, lines: Lines) -> None:
        self._reader, self._lines = reader, lines
        self._pips = Pips()
        self._remarks: tuple[int, Tags, Notes] = (0, {}, {})  # as of so many interventions

    def take(self, event: Event) -> None:
        """Take in what the reader has read."""
        self._pips.take(event)

    def all(self) -> list[dict[str, Any]]:
        """Give every trial."""
        return [self.of(number) for number in self._reader.ledger.trials]

    def best(self, most: int) -> list[dict[str, Any]]:
        """Give the best trials by their best score, at most so many."""
        return [self.of(number) for number in self.leading(most, "best_score")]

    def leading(self, most: int, by: Literal["best_score", "last_score"]) -> list[int]:
        """Number the best trials of the search, at most so many."""
        ledger = self._reader.ledger
        scores = ((finite(getattr(trial, by)), n) for n, trial in ledger.trials.items() if not trial.confirms)
        return [n for _, n in nsmallest(most, ((-ledger.aim.sign * s, n) for s, n in scores if s is not None))]

    def of(self, number: int) -> dict[str, Any]:
        """Give a trial."""
        trial = self._reader.ledger.trials[number]
        return {
            "trial": number,
            "state": trial.standing,
            "in_phase": number in self._reader.open_span,
            "may": possible(trial),
            "pips": self._pips.of(number),
            "phases": trial.phases,
            "last": finite(trial.last_score),
            "best": finite(trial.best_score),
            "parent": trial.parent,
            "candidate": None if trial.candidate == number else trial.candidate,  # as a seed of which it is judged
            "confirms": trial.confirms,
            "why": self._lines.why(number),
            "error": (trial.error or "")[:LONGEST],
            "config": trial.config,
            **self.remarks(number),
        }

    def remarks(self, trial: int | None) -> dict[str, Any]:
        """Give tags and notes on a trial, or on the study."""
        asked = self._reader.interventions
        if len(asked) != self._remarks[0]:
            self._remarks = len(asked), tags_of(asked), notes_of(asked)
        _, tags, notes = self._remarks
        return {"tags": [*tags.get(trial, ())], "notes": notes.get(trial, [])}
