"""What the log says of every trial."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from workbench.core.protocols import Config, Event, Job, Kind, Verdict


class TrialState(StrEnum):
    """Where a trial stands."""

    RUNNING = "running"  # on a slot, or on its way to one
    HELD = "held"  # by the scheduler, on its slot
    PAUSED = "paused"  # by the scheduler, on no slot
    SET_ASIDE = "set aside"  # by a person, on no slot
    STOPPED = "stopped"
    FAILED = "failed"


_AFTER: Mapping[str, TrialState] = {  # by a verdict as it stands in the log
    Verdict.CONTINUE: TrialState.RUNNING,
    Verdict.HOLD: TrialState.HELD,
    Verdict.PAUSE: TrialState.PAUSED,
    Verdict.STOP: TrialState.STOPPED,
}


@dataclass(slots=True)
class _Trial:
    config: Config
    seed: int
    phase: int
    state: TrialState
    slot: int | None
    checkpoint: str | None
    ended: bool = False  # the current phase has been reported
    pausing: bool = False  # a person wants it set aside when its phase ends
    own_phases: int = 0  # phases left to run for a person, of which the scheduler does not hear
    own: bool = False


class Ledger:
    """What the events so far say of every trial: enough to start, go on with, or take up any of them.

    Attributes
    ----------
    at : float
        Time of the last event, seconds on the study's clock.
    paused : bool
        Whether a person has paused the whole study.
    requests : set of str
        The people's requests answered so far.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._trials: dict[int, _Trial] = {}
        self._running: set[int] = set()
        self.at = 0.0
        self.paused = False
        self.requests: set[str] = set()
        for event in events:
            self.see(event)

    def see(self, event: Event) -> None:
        """Take in one more event."""
        kind = event.kind
        if event.at > self.at:
            self.at = event.at
        if kind is Kind.PHASE_STARTED:  # every third event, and it changes nothing here
            return
        if kind is Kind.INTERVENTION:
            self._see_intervention(event)
        elif event.trial is None:
            return
        elif kind is Kind.PHASE_ENDED:
            trial = self._trials[event.trial]
            trial.checkpoint, trial.ended = event.data.get("checkpoint"), True
            trial.own_phases -= trial.own
        elif kind is Kind.DECISION:
            self._see_decision(event.trial, event.data["verdict"])
        elif kind is Kind.RUN:
            self._see_run(event.trial, event)
        elif kind is Kind.TRIAL_FAILED:
            self._enter(event.trial, TrialState.FAILED)
        elif kind is Kind.TRIAL_STOPPED:
            self._enter(event.trial, TrialState.STOPPED)

    def _see_run(self, number: int, event: Event) -> None:
        parent = event.data["parent"]
        checkpoint = None if parent is None else self._trials[parent].checkpoint
        trial = _Trial(
            event.data["config"], event.data["seed"], event.phase or 0, TrialState.RUNNING, event.slot, checkpoint
        )
        trial.own_phases = int(event.data.get("own_phases", 0))
        trial.own = trial.own_phases > 0
        self._trials[number] = trial
        self._running.add(number)

    def _see_decision(self, number: int, verdict: str) -> None:
        trial = self._trials[number]
        if trial.state in (TrialState.FAILED, TrialState.STOPPED):
            return  # the scheduler's answer to hearing of the end
        after = _AFTER[verdict]
        if after is TrialState.RUNNING:
            trial.phase, trial.ended = trial.phase + 1, False
            after = TrialState.SET_ASIDE if trial.pausing else after
        if after is not trial.state:
            self._enter(number, after)

    def _see_intervention(self, event: Event) -> None:
        self.requests.add(event.data.get("request", ""))
        if not event.data["accepted"]:
            return
        action = event.data["action"]
        if action in ("pause study", "resume study"):
            self.paused = action == "pause study"
        elif event.trial is not None:
            trial = self._trials[event.trial]
            if action == "pause":
                trial.pausing = True
            elif action == "resume":
                trial.pausing = False
                if trial.state is TrialState.SET_ASIDE:
                    self._enter(event.trial, TrialState.RUNNING)
            elif action == "extend":
                trial.own, trial.own_phases = True, int(event.data["phases"])
                trial.phase, trial.ended = trial.phase + trial.ended, False
                self._enter(event.trial, TrialState.RUNNING)

    def _enter(self, number: int, state: TrialState) -> None:
        self._trials[number].state = state
        (self._running.add if state is TrialState.RUNNING else self._running.discard)(number)

    def __contains__(self, number: int) -> bool:
        return number in self._trials

    def __len__(self) -> int:
        return len(self._trials)

    def job(self, number: int) -> Job:
        """Say what an executor needs to run this trial's current phase."""
        t = self._trials[number]
        return Job(number, t.phase, t.config, t.seed, t.checkpoint, t.slot)

    def phase(self, number: int) -> int:
        """Tell which phase a trial is in, or ended last."""
        return self._trials[number].phase

    def state(self, number: int) -> TrialState:
        """Tell where a trial stands."""
        return self._trials[number].state

    def own_phases(self, number: int) -> int | None:
        """Tell how many phases a trial still runs for a person; ``None`` if it is the scheduler's."""
        trial = self._trials[number]
        return trial.own_phases if trial.own else None

    def in_state(self, state: TrialState) -> list[int]:
        """List the trials that stand there."""
        if state is TrialState.RUNNING:
            return sorted(self._running)
        return [number for number, t in self._trials.items() if t.state is state]

    @property
    def n_running(self) -> int:
        """Trials on a slot or on their way to one."""
        return len(self._running)
