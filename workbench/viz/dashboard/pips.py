"""What became of each trial in each phase, a letter a phase: the pips of the trial table."""

from workbench.core.ledger import RAN_OUT
from workbench.core.protocols import Event, Kind

_OF_VERDICT = {"continue": "c", "hold": "h", "pause": "p"}


class Pips:
    """Letters by trial: continued, stopped, finished, x (failed), running, held, paused, - (its parent's)."""

    def __init__(self) -> None:
        self._of: dict[int, list[str]] = {}

    def take(self, event: Event) -> None:
        """Note what an event does to a trial's phase."""
        if event.trial is None:
            return
        if event.kind is Kind.PHASE_STARTED:
            self._set(event.trial, event.phase or 0, "r")
        elif event.kind is Kind.TRIAL_FAILED:
            self._set(event.trial, event.phase or 0, "x")
        elif event.kind is Kind.TRIAL_STOPPED:
            self._set(event.trial, event.phase or 0, "s")
        elif event.kind is Kind.DECISION and self._of.get(event.trial, "-")[-1] not in "xs":
            ran_out = "f" if event.data.get("mode") in RAN_OUT else "s"
            letter = _OF_VERDICT.get(event.data["verdict"], ran_out)
            last = len(self._of.get(event.trial, ())) - 1
            self._set(event.trial, max(0, last) if event.phase is None else event.phase, letter)

    def of(self, trial: int) -> str:
        """Give a trial's letters."""
        return "".join(self._of.get(trial, ()))

    def _set(self, trial: int, phase: int, letter: str) -> None:
        letters = self._of.setdefault(trial, [])
        if phase >= len(letters):
            letters += "-" * (phase + 1 - len(letters))
        letters[phase] = letter
