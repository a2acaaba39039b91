"""Hyperparameter importance in the background: never more often than need be, never in the way of the study."""

import json
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from workbench.analysis.forests import Answer, forests_apart
from workbench.analysis.importance import FEWEST_TRIALS
from workbench.core.ledger import Ledger
from workbench.core.measured import one_line
from workbench.knowledge import Frames
from workbench.viz.dashboard.derived import finite

_EVERY_S = 30.0  # at least, between the beginnings of two computations
_REST = 5  # times as long as a computation took, before the next begins
_TURN = threading.Lock()  # of all views of a kernel: it still has those whose cells were run again


class Estimator:
    """Computes in a process of the lowest priority, one at a time, when phases have ended since the last answers.

    Several take turns. Beside busy processors a computation may take minutes, so what it has found so far is told.

    Attributes
    ----------
    answers : list of dict
        The latest of each phase, as `workbench.analysis.forests.Answer`; a new list whenever there is something new.
    """

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self._about = -1  # phases ended when the last computation began
        self._not_before = -float("inf")
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def look(self, ledger: Ledger, frames: Callable[[], Frames]) -> None:
        """Begin a computation if one is due and there is enough to explain; `answers` will hold what comes of it."""
        busy = self._thread is not None and self._thread.is_alive()
        early = ledger.phases_ended < FEWEST_TRIALS or time.monotonic() < self._not_before
        if busy or early or self._about == ledger.phases_ended or scored(ledger) < FEWEST_TRIALS:
            return
        self._about, self._not_before = ledger.phases_ended, time.monotonic() + _EVERY_S
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
            answers: list[Answer] = []
            with self._process as process:
                for line in process.stdout or ():
                    answers.append(json.loads(line))
                    told = {answer["phase"] for answer in answers}
                    self.answers = [*answers, *(known for known in self.answers if known["phase"] not in told)]
            self.answers = answers or [_nothing("the process that computed it died")]
        except Exception as err:  # noqa: BLE001  a view must outlive whatever a log's values do to a forest
            self.answers = [_nothing(one_line(err))]
        self._not_before = max(self._not_before, time.monotonic() + _REST * (time.monotonic() - began))


def scored(ledger: Ledger) -> int:
    """Count the trials with a score; a page counts them alike, and says what it waits for."""
    return sum(finite(trial.last_score) is not None for trial in ledger.trials.values())


def _nothing(why: str) -> Answer:
    return {"phase": None, "rows": [], "told": f"no importance: {why}"}
