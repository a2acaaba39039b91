"""Hyperparameter importance in the background: never more often than need be, never in the way of a look at the log."""

import threading
import time
from collections.abc import Callable
from typing import Any

from workbench import analysis
from workbench.knowledge import Frames

FORESTS = 20  # fewer than a report compares: it must not take the study's cores
_RESAMPLES = 30


class Estimator:
    """Computes on a thread of its own, one at a time, when phases have ended since the last answer.

    Parameters
    ----------
    every_s : float
        Least seconds between the beginnings of two computations.
    """

    def __init__(self, every_s: float = 30.0) -> None:
        self.every_s = every_s
        self.answer: dict[str, Any] | None = None
        self._about: tuple[int, int | None] = (-1, None)  # phases ended when the last computation began; its phase
        self._began = -float("inf")
        self._thread: threading.Thread | None = None

    def look(self, phases_ended: int, frames: Callable[[], Frames], phase: int | None = None) -> None:
        """Begin a computation if one is due; `answer` will hold what comes of it.

        It is about the last score of every trial, or about that of one `phase`; another phase is due at once.
        """
        busy = self._thread is not None and self._thread.is_alive()
        early = phase == self._about[1] and time.monotonic() - self._began < self.every_s
        if busy or early or self._about == (phases_ended, phase):
            return
        self._about, self._began = (phases_ended, phase), time.monotonic()
        self._thread = threading.Thread(target=self._compute, args=(frames(), phase), name="importance", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait for the computation under way."""
        if self._thread is not None:
            self._thread.join()

    def _compute(self, frames: Frames, phase: int | None) -> None:
        try:
            found = analysis.importance(
                frames.trials,
                frames.phases,
                frames.hyperparameters,
                phase=phase,
                forests=FORESTS,
                resamples=_RESAMPLES,
            )
            rows = found.table.round(4).to_dict("records")
            self.answer = {"phase": phase, "rows": rows, "told": str(found)}
        except Exception as err:  # noqa: BLE001  a view must outlive whatever a log's values do to a forest
            self.answer = {"phase": phase, "rows": [], "told": f"no importance: {type(err).__name__}: {err}"}
