"""The bars of the Gantt chart as one table, and which of them viewers have yet to hear of."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

OUTCOMES = ["running", "ended", "lost", "held", "stopped"]

_NUMBER = {outcome: k for k, outcome in enumerate(OUTCOMES)}
_ENDED_S = 5  # column


class SpanTable:
    """Spans as rows of numbers: index, slot (-1: none), trial, phase, started_s, ended_s (NaN: open), outcome.

    Parameters
    ----------
    spans : sequence of dict
        The reader's. It grows, and a span that is open is changed once more, when it ends.
    """

    def __init__(self, spans: Sequence[dict[str, Any]]) -> None:
        self._spans = spans
        self._rows = np.empty((0, 7))
        self._n = 0  # rows in use
        self._open: list[int] = []  # of these, those that had not ended
        self._changed: set[int] = set()  # since viewers last heard
        self._behind = True  # whether the reader may have read events since

    def take(self) -> None:
        """Take note that the reader has read events."""
        self._behind = True

    def all(self) -> npt.NDArray[np.float32]:
        """Give every span."""
        self._catch_up()
        return self._rows[: self._n].astype(np.float32)

    def changes(self) -> npt.NDArray[np.float32]:
        """Give the spans that began or ended since the last call."""
        self._catch_up()
        changed = sorted(self._changed)
        self._changed.clear()
        return self._rows[changed].astype(np.float32)

    def frame(self) -> pd.DataFrame:
        """Give every span as in `workbench.knowledge.Frames`, without its node."""
        self._catch_up()
        _, slot, trial, phase, started_s, ended_s, outcome = self._rows[: self._n].T
        words = pd.Categorical.from_codes(outcome.astype(int), pd.Index(OUTCOMES))
        columns = {"slot": np.where(slot < 0, np.nan, slot), "trial": trial, "phase": phase}
        return pd.DataFrame({**columns, "started_s": started_s, "ended_s": ended_s, "outcome": words})

    def _catch_up(self) -> None:
        if not self._behind:
            return
        self._behind = False
        was_open, new = self._open, range(self._n, len(self._spans))
        if len(self._spans) > len(self._rows):
            grown = np.empty((2 * len(self._spans), 7))
            grown[: self._n] = self._rows[: self._n]
            self._rows = grown
        self._n = len(self._spans)
        if new:
            self._rows[new.start : new.stop] = [_row(k, self._spans[k]) for k in new]
        ended = [k for k in was_open if not _is_open(self._spans[k])]
        if ended:
            self._rows[ended] = [_row(k, self._spans[k]) for k in ended]
        self._changed.update(new, ended)
        self._open = [k for k in (*was_open, *new) if math.isnan(self._rows[k, _ENDED_S])]


def _row(k: int, span: dict[str, Any]) -> tuple[float, ...]:
    slot, ended_s = span["slot"], span.get("ended_s", math.nan)
    return (
        k,
        -1 if slot is None else slot,
        span["trial"],
        span["phase"],
        span["started_s"],
        ended_s,
        _NUMBER[span["outcome"]],
    )


def _is_open(span: dict[str, Any]) -> bool:
    return math.isnan(span.get("ended_s", math.nan))
