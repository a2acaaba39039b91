"""What the log says of every trial."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from workbench.core.aim import Aim
from workbench.core.describe import read_back
from workbench.core.failures import error_text
from workbench.core.protocols import Config, Event, Job, Kind, Verdict
from workbench.core.size import Size

RAN_OUT = ("finished", "extended")
"""Modes of the last decision on a trial that has run all its phases, the scheduler's or a person's.

The loop sees to it that the log has one of them wherever these are all that the scheduler has.
"""


FOR_SEEDS = "seeds"
"""Mode of a decision on a trial that waits for others of its candidate, with other seeds in the same phase."""


class TrialState(StrEnum):
    """Where a trial stands."""

    RUNNING = "running"  # on a slot, or on its way to one
    HELD = "held"  # by the scheduler, on its slot
    PAUSED = "paused"  # by the scheduler, on no slot
    SET_ASIDE = "set aside"  # by a person, on no slot
    STOPPED = "stopped"
    FAILED = "failed"

    @property
    def over(self) -> bool:
        """Whether only a person can make the trial go on."""
        return self is TrialState.STOPPED or self is TrialState.FAILED


_AFTER: Mapping[str, TrialState] = {  # by a verdict as it stands in the log
    Verdict.CONTINUE: TrialState.RUNNING,
    Verdict.HOLD: TrialState.HELD,
    Verdict.PAUSE: TrialState.PAUSED,
    Verdict.STOP: TrialState.STOPPED,
}
_STUDY: Mapping[Kind, str] = {
    Kind.STUDY_STARTED: "running",
    Kind.STUDY_RESUMED: "running",
    Kind.STUDY_ENDED: "ended",
    Kind.STUDY_INTERRUPTED: "interrupted",
}
_OFF_SLOT = (Kind.PHASE_FAILED, Kind.TRIAL_FAILED, Kind.TRIAL_STOPPED)


@dataclass(slots=True)
class TrialRecord:
    """What the log says of a trial; names are those of the frame `trials` (see `docs/log.md`), times in seconds."""

    config: Config
    seed: int
    started_s: float
    phase: int = 0  # the one it is in, or ended last
    state: TrialState = TrialState.RUNNING
    slot: int | None = None
    checkpoint: str | None = None
    start: str | None = None  # another's checkpoint, with which it began
    first: int = 0  # the phase it began in
    pausing: bool = False  # a person wants it set aside when its phase ends
    own_phases: int = 0  # phases left to run for a person, of which the scheduler does not hear
    own: bool = False
    phases: int = 0  # completed, those of its parent included
    heard: tuple[str | None, int] = (None, 0)  # checkpoint and phases as the scheduler knows of them
    last_score: float | None = None
    best_score: float | None = None
    ended_s: float | None = None
    parent: int | None = None
    parent_phase: int | None = None
    candidate: int | None = None
    confirms: bool = False
    mode: str | None = None
    error: str | None = None

    @property
    def due(self) -> int:
        """The phase it is to end next."""
        return max(self.phase, self.phases)

    @property
    def standing(self) -> str:
        """Its state in a word; of one that was stopped it tells whether it had run all its phases."""
        ran_out = self.state is TrialState.STOPPED and self.mode in RAN_OUT
        return "finished" if ran_out else self.state.value


def standing_in(study: str, trial: str, *, in_phase: bool) -> str:
    """Say how a trial stands in a study that stands so, within a phase or not: it does not run where nothing does."""
    if trial != TrialState.RUNNING or study == "running":
        return trial
    if study == "paused":
        return trial if in_phase else TrialState.SET_ASIDE.value
    return "cut off"


def leaves_slot(event: Event, ledger: "Ledger") -> bool:
    """Tell whether a trial leaves its slot with the last event taken in; set aside, it does though it was let go on."""
    if event.kind is not Kind.DECISION or event.trial is None:
        return event.kind in _OFF_SLOT
    return ledger.paused or ledger.trials[event.trial].state is not TrialState.RUNNING


class Ledger:
    """What the events so far say of every trial: enough to start, go on with, or take up any of them, or to show it.

    Attributes
    ----------
    trials : dict
        `TrialRecord` by number.
    at : float
        Time of the last event, or of a later sign of life that it was told (`pass_to`), seconds on the study's clock.
    n_over, phases_ended : int
        Trials that are over, phases completed.
    n_asked : int
        Trials that the scheduler has asked for: all but the clones.
    study : str
        running, ended or interrupted; "running" also stands for a driver that died without a word.
    size : Size or None
        How large the study is meant to be, as its first event tells; ``None`` where it does not, in older logs.
    aim : Aim
        What the study is after, as its last driver was told.
    best : tuple of (float, int) or None
        Best score so far, and its trial.
    why_over : str
        What ended the study before its scheduler was done, if anything did.
    paused : bool
        Whether a person has paused the whole study.
    requests : set of str
        The people's requests answered so far.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.trials: dict[int, TrialRecord] = {}
        self._in: dict[TrialState, set[int]] = {state: set() for state in TrialState}  # asked after every event
        self.at = 0.0
        self.n_over = self.phases_ended = self.n_asked = 0
        self._phases_heard = 0
        self.study = "running"
        self.size: Size | None = None
        self.aim = Aim()
        self.best: tuple[float, int] | None = None
        self.why_over = ""
        self.paused = False
        self.requests: set[str] = set()
        self._confirming_since, self._confirmed_s = math.inf, 0.0
        for event in events:
            self.see(event)

    def see(self, event: Event) -> None:
        """Take in one more event."""
        kind, number = event.kind, event.trial
        if event.at > self.at:
            self.at = event.at
        if kind is Kind.PHASE_STARTED:
            if number is not None and number in self._in[TrialState.SET_ASIDE]:
                # in older logs it went on as soon as its scheduler asked for it
                self.trials[number].pausing = False
                self._enter(number, TrialState.RUNNING, event.at)
            return
        if kind is Kind.INTERVENTION:
            self._see_intervention(event)
        elif number is None:
            self.study = _STUDY.get(kind, self.study)
            if "size" in event.data:
                self.size = read_back(Size, event.data["size"])
            if "aim" in event.data:
                self.aim = read_back(Aim, event.data["aim"])
            if kind in _STUDY:
                self.why_over = event.data.get("why", "")
                self._confirmed_s += max(0.0, event.at - self._confirming_since)
                self._confirming_since = event.at if event.data.get("confirms") else math.inf
        elif kind is Kind.PHASE_ENDED:
            self._see_phase_ended(number, event)
        elif kind is Kind.DECISION:
            self._see_decision(number, event)
        elif kind is Kind.RUN:
            self._see_run(number, event)
        elif kind is Kind.TRIAL_FAILED:
            self._enter(number, TrialState.FAILED, event.at)
            self.trials[number].error = error_text(event.data)
        elif kind is Kind.TRIAL_STOPPED:
            self._enter(number, TrialState.STOPPED, event.at)
            self.trials[number].mode = "person"

    def _see_run(self, number: int, event: Event) -> None:
        parent, data = event.data["parent"], event.data
        trial = self.trials.get(number)
        if trial is None:
            trial = self.trials[number] = TrialRecord(data["config"], data["seed"], event.at, first=event.phase or 0)
            trial.candidate, trial.confirms = data.get("candidate", number), data.get("confirms", False)
            self.n_asked += data.get("by") != "person"
        if parent != number:  # a trial that is taken up again keeps the parent it came from
            trial.parent = data.get("clone_of") if parent is None else parent
            if parent is not None:  # every phase's end leaves a checkpoint: the newest that the scheduler heard of
                trial.heard = self.trials[parent].heard
                trial.start, phases = trial.heard
                trial.checkpoint = trial.start
                trial.parent_phase = phases - 1
        trial.phase, trial.slot = event.phase or 0, event.slot
        trial.own_phases = int(data.get("own_phases", 0))
        trial.own = trial.own_phases > 0
        self._enter(number, TrialState.SET_ASIDE if trial.pausing else TrialState.RUNNING, event.at)

    def _see_phase_ended(self, number: int, event: Event) -> None:
        trial, score = self.trials[number], event.data["score"]
        trial.checkpoint, trial.phases = event.data.get("checkpoint"), (event.phase or 0) + 1
        if not trial.own:
            trial.heard = trial.checkpoint, trial.phases
        trial.last_score = score
        if self.aim.better(score, trial.best_score):  # else it cannot be the study's best either
            trial.best_score = score
            if not (trial.confirms or math.isnan(score)) and self.aim.better(score, self.best and self.best[0]):
                self.best = score, number
        trial.own_phases -= trial.own
        self.phases_ended += 1
        self._phases_heard += not trial.own

    def _see_decision(self, number: int, event: Event) -> None:
        trial = self.trials[number]
        if trial.state is TrialState.STOPPED:
            return  # the scheduler's answer to hearing that a person stopped it
        trial.mode = event.data.get("mode")
        if trial.state is TrialState.FAILED:
            return  # its answer to hearing of the failure
        after = _AFTER[event.data["verdict"]]
        if after is TrialState.RUNNING:
            trial.phase += 1
            after = TrialState.SET_ASIDE if trial.pausing else after
        if after is not trial.state:
            self._enter(number, after, event.at)

    def _see_intervention(self, event: Event) -> None:
        self.requests.add(event.data.get("request", ""))
        if not event.data["accepted"]:
            return
        action = event.data["action"]
        if action in ("pause study", "resume study"):
            self.paused = action == "pause study"
        elif event.trial is not None:
            trial = self.trials[event.trial]
            if action == "pause":
                trial.pausing = True
            elif action == "resume":
                trial.pausing = False
                if trial.state is TrialState.SET_ASIDE:
                    self._enter(event.trial, TrialState.RUNNING, event.at)
            elif action == "extend":
                trial.own, trial.own_phases, trial.pausing = True, int(event.data["phases"]), False
                trial.phase, trial.mode = trial.due, None
                self._enter(event.trial, TrialState.RUNNING, event.at)

    def _enter(self, number: int, state: TrialState, at: float) -> None:
        trial = self.trials[number]
        over = state.over
        self.n_over += over - (trial.ended_s is not None)
        self._in[trial.state].discard(number)
        self._in[state].add(number)
        trial.state, trial.ended_s = state, at if over else None

    def pass_to(self, at: float) -> None:
        """Let the study's clock go on to when it last gave a sign of life, for metrics are no events; NaN is none."""
        if at > self.at:
            self.at = float(at)

    def searching_s(self, at: float) -> float:
        """Give the seconds that count for the limit of the study's time, at `at` seconds of its clock.

        They leave out those of drivers that only confirmed.
        """
        return min(at, self._confirming_since) - self._confirmed_s

    @property
    def n_in_the_way(self) -> int:
        """Trials that hold a slot each while another is in a phase, or is to begin one."""
        return 0 if self.paused or not self.n_in(TrialState.RUNNING) else self.n_in(TrialState.HELD)

    @property
    def confirming(self) -> bool:
        """Whether its last driver only confirms: the search stands still, and so does its time."""
        return self._confirming_since < math.inf

    def left_s(self, at: float) -> float:
        """Give the seconds until the study's time is up, `at` seconds on; infinite where no limit ends it."""
        return math.inf if self.confirming else self.aim.left_s(self.searching_s(at))

    def standing(self, *, driven: bool) -> str:
        """How the study stands: running, paused, ended, interrupted, or abandoned, its driver dead without a word."""
        if self.study != "running":
            return self.study
        if not driven:
            return "abandoned"
        return "paused" if self.paused else "running"

    def __contains__(self, number: int) -> bool:
        return number in self.trials

    def __len__(self) -> int:
        return len(self.trials)

    def job(self, number: int) -> Job:
        """Say what an executor needs to run this trial's current phase.

        Kept are a parent's checkpoint, and that which the scheduler knows of when a person adds phases to a trial.
        """
        t = self.trials[number]
        keep = t.checkpoint is not None and (not t.phases or (t.own and t.checkpoint == t.heard[0]))
        return Job(number, t.phase, t.config, t.seed, t.checkpoint, t.slot, keep, t.start, t.first)

    def phases_left(self, size: Size) -> tuple[float, float] | None:
        """Estimate how many phases of a study of this size are still to end: low, high; ``None`` if it is unknown.

        Phases that people asked for, of clones and of trials that they extended, come on top of the scheduler's; who
        only confirms runs no others.
        """
        at_work = [self.trials[n] for state in (TrialState.RUNNING, TrialState.SET_ASIDE) for n in self._in[state]]
        asked_for = sum(trial.own_phases for trial in at_work)
        if self.confirming:
            return asked_for, asked_for
        if size.expected_phases is None:
            return None
        if size.began:
            low, high = size.phases_left(*_so_far(self.trials.values(), len(size.began)))
        else:
            fewest = max((size.n_configs or 0) - self.n_asked, 0)  # further trials may go on as they are
            within = (trial for trial in at_work if trial.state is TrialState.RUNNING and trial.due == trial.phase)
            fewest += sum(not trial.own for trial in within)
            low = high = min(max(size.expected_phases - self._phases_heard, float(fewest)), _most_left(self, size))
        return low + asked_for, high + asked_for

    def expected_phases(self, size: Size) -> float | None:
        """Tell how many phases are expected in all: as the scheduler did at first, corrected by what has run since."""
        left = None if self.study == "ended" else self.phases_left(size)
        return size.expected_phases if left is None else self.phases_ended + sum(left) / 2

    def in_state(self, state: TrialState) -> list[int]:
        """List the trials that stand there, by number."""
        return sorted(self._in[state])

    def n_in(self, state: TrialState) -> int:
        """Count the trials that stand there; it costs the same however many trials there are."""
        return len(self._in[state])


def _most_left(ledger: Ledger, size: Size) -> float:
    """Count the phases that the scheduler's trials can still run at most: those that are over run no more of theirs."""
    if size.n_trials is None or size.n_phases is None:
        return math.inf
    alive = (ledger.trials[n] for state in TrialState if not state.over for n in ledger.in_state(state))
    begun = sum(max(size.n_phases - trial.due, 0) for trial in alive if not trial.own)
    return float(max(size.n_trials - ledger.n_asked, 0) * size.n_phases + begun)


def share_of(ledger: Ledger, size: Size) -> float | None:
    """Tell how far a study is, 0 to 1: of the phases expected in all, or of its time if more; ``None`` if unknown."""
    if ledger.study == "ended":
        return 1.0
    expected, limit = ledger.expected_phases(size), math.inf if ledger.confirming else ledger.aim.left_s(0.0)
    if not expected and limit == math.inf:
        return None
    return min(1.0, max(ledger.phases_ended / expected if expected else 0.0, ledger.searching_s(ledger.at) / limit))


def _so_far(trials: Iterable[TrialRecord], n_phases: int) -> tuple[list[int], list[int], list[int], list[int]]:
    """Count the scheduler's trials that have begun each phase, have ended it, are in it, and wait at its end."""
    completed, under_way, waiting, lost = ([0] * (n_phases + 1) for _ in range(4))  # the first by phases completed
    for trial in trials:
        completed[min(trial.heard[1] if trial.own else trial.phases, n_phases)] += 1
        if not trial.own and trial.due < n_phases:
            under_way[trial.due] += trial.state in (TrialState.RUNNING, TrialState.SET_ASIDE)
            waiting[trial.due - 1] += trial.state in (TrialState.HELD, TrialState.PAUSED)
            lost[trial.due] += trial.state is TrialState.FAILED or trial.mode == "person"
    ended = [sum(completed[phase + 1 :]) for phase in range(n_phases)]
    began = [sum(counts) for counts in zip(ended, under_way, lost, strict=False)]
    return began, ended, under_way, waiting
