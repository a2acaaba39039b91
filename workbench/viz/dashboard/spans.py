"""The bars of the Gantt chart as one table, and which of them viewers have yet to hear of."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

OUTCOMES = ["running", "ended", "lost", "held", "stopped"]

_NUMBER = {outcome: k for k, outcome in enumerate(OUTCOMES)}
_ENDED_S = 5  # column
_STRETCH = [1, 4, 5, 6]  # columns: slot, started_s, ended_s, outcome


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

    def take(self) -> npt.NDArray[np.float64]:
        """Take in what the reader has read; give slot, started_s, ended_s, outcome of spans that have ended, [n, 4]."""
        was_open, new = self._open, range(self._n, len(self._spans))
        if len(self._spans) > len(self._rows):
            grown = np.empty((2 * len(self._spans), 7))
            grown[: self._n] = self._rows[: self._n]
            self._rows = grown
        self._n = len(self._spans)
        ended = [k for k in was_open if not math.isnan(self._spans[k].get("ended_s", math.nan))]
        changed = [*ended, *new]
        if changed:
            self._rows[changed] = [_row(k, self._spans[k]) for k in changed]
            self._changed.update(changed)
            is_open = np.isnan(self._rows[changed, _ENDED_S])
            ended = [k for k, still in zip(changed, is_open.tolist(), strict=True) if not still]
            gone = set(ended)
            self._open = [k for k in (*was_open, *new) if k not in gone]
        return self._rows[ended][:, _STRETCH]

    def under_way(self) -> npt.NDArray[np.float64]:
        """Give slot, started_s, ended_s (NaN) and outcome of the spans that have not ended, shape [n, 4]."""
        return self._rows[self._open][:, _STRETCH]

    def all(self) -> npt.NDArray[np.float32]:
        """Give every span."""
        return self._rows[: self._n].astype(np.float32)

    def changes(self) -> npt.NDArray[np.float32]:
        """Give the spans that began or ended since the last call."""
        changed = sorted(self._changed)
        self._changed.clear()
        return self._rows[changed].astype(np.float32)


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
