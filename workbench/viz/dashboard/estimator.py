"""Hyperparameter importance in the background: never more often than need be, never in the way of the study."""

import json
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from workbench.analysis.forests import Answer, forests_apart
from workbench.analysis.importance import FEWEST_TRIALS
from workbench.core.measured import one_line
from workbench.knowledge import Frames

_EVERY_S = 30.0  # at least, between the beginnings of two computations
_REST = 5  # times as long as a computation took, before the next begins
_TURN = threading.Lock()  # of all views of a kernel: it still has those whose cells were run again


class Estimator:
    """Computes in a process of the lowest priority, one at a time, when phases have ended since the last answers.

    Several take turns.

    Attributes
    ----------
    answers : list of dict
        Of the last computation, as `workbench.analysis.forests.Answer`; a new list whenever there is something new.
    """

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self._about = -1  # phases ended when the last computation began
        self._not_before = -float("inf")
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def look(self, phases_ended: int, frames: Callable[[], Frames]) -> None:
        """Begin a computation if one is due and enough phases have ended; `answers` will hold what comes of it."""
        busy = self._thread is not None and self._thread.is_alive()
        early = phases_ended < FEWEST_TRIALS or time.monotonic() < self._not_before
        if busy or early or self._about == phases_ended:
            return
        self._about, self._not_before = phases_ended, time.monotonic() + _EVERY_S
        self._thread = threading.Thread(target=self._compute, args=(frames(),), name="importance", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the computation under way."""
        self._closed = True
        process = self._process
        if process is not None:
            with suppress(OSError):
                process.kill()

    def _compute(self, frames: Frames) -> None:
        with _TURN:
            if not self._closed:
                self._compute_now(frames)

    def _compute_now(self, frames: Frames) -> None:
        began = time.monotonic()
        try:
            self._process = forests_apart(frames.trials, frames.phases, frames.hyperparameters)
            if self._closed:  # while it was being started
                self.close()
            with self._process as process:
                answers = [json.loads(line) for line in process.stdout or ()]
            self.answers = answers or [_nothing("the process that computed it died")]
        except Exception as err:  # noqa: BLE001  a view must outlive whatever a log's values do to a forest
            self.answers = [_nothing(one_line(err))]
        self._not_before = max(self._not_before, time.monotonic() + _REST * (time.monotonic() - began))


def _nothing(why: str) -> Answer:
    return {"phase": None, "rows": [], "told": f"no importance: {why}"}
