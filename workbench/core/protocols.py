"""The vocabulary every part of the workbench speaks.

Schedulers decide, executors run, the log remembers, figures look. The types here are all that passes
between them, so that one scheduler runs unchanged on a Dask cluster in real time, on a simulated cluster
in virtual time, and against a recorded log in replay. Nobody changes one that another has made; they are not frozen,
for that trebles what it costs to make one, and a study in virtual time makes hundreds of thousands a second.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

Scalar = int | float | str | bool
Config = Mapping[str, Scalar]
"""One point of a search space: hyperparameter name → value. It never changes under a trial."""

Metrics = Mapping[str, float]
"""What a phase measured; ``score`` is required of a finished phase: higher is better, unless the study minimises."""

RESERVED_METRICS = frozenset({"trial", "phase", "slot", "node", "started_s", "ended_s", "wall_s", "retries"})
"""Names that no metric may bear: columns of the frame of phases that do not come from the trial."""

RETURNS = "returns"
MOST_RETURNS = 10  # what PBT compares (1711.09846, Sec. 4.1.1)
Measured = Mapping[str, float | Sequence[float]]
"""What `Trainable.train_phase` gives back: metrics, and under ``returns`` it may add the returns of the phase's last
episodes, oldest first. Schedulers get the last `MOST_RETURNS` of them with the report; PBT's t-test compares them."""

Progress = Callable[[Metrics], None]
"""What a trainable calls with metrics while a phase runs: proof of life, and a point of the live curves."""


class Verdict(StrEnum):
    """What becomes of a trial after a report."""

    CONTINUE = "continue"  # run the next phase on the same slot
    HOLD = "hold"  # wait at a barrier, keeping the slot
    PAUSE = "pause"  # free the slot; the scheduler may ask for the trial again
    STOP = "stop"  # free the slot for good


@dataclass(slots=True)
class Run:
    """A scheduler's wish to start, or resume, a trial.

    Attributes
    ----------
    trial : int
        Number of the trial, counted from 0 in the order of first asking.
    config : Config
        Its hyperparameters.
    parent : int or None
        Trial whose last checkpoint to start from; ``parent == trial`` resumes a paused trial.
    phase : int
        First phase to run.
    slot : int or None
        Slot the trial is bound to; ``None`` takes any free one.
    candidate : int or None
        What its score is part of, where several trials with different seeds are judged together; see `Seeded`.
    """

    trial: int
    config: Config
    parent: int | None = None
    phase: int = 0
    slot: int | None = None
    candidate: int | None = None


@dataclass(slots=True)
class Report:
    """A trial's score at the end of a phase, or its final failure in that phase (`failed`, score NaN).

    `returns` are those of the phase's last episodes, oldest first, if the trainable gave any: see `Measured`.
    `seconds` is how long the phase took, 0 where that is not known.
    """

    trial: int
    phase: int
    score: float
    failed: bool = False
    returns: tuple[float, ...] = ()
    seconds: float = 0.0


@dataclass(slots=True)
class Decision:
    """A verdict and why it fell, as data: the log keeps the reason, the dashboard shows it.

    Its ``mode`` is a word of the scheduler's own, of which two are kept: *finished*, this was the last phase the trial
    had to run, and *failed*. The log has them wherever a trial has run all `n_phases`, or failed, whatever the mode.
    """

    verdict: Verdict
    reason: Mapping[str, Any] = field(default_factory=dict)


Explain = Callable[[Mapping[str, Any]], str]
"""Puts a decision's reason into words. They begin with the mode's short name, which a colon ends if more follows."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a scheduler knows beforehand of how far its trials get, to hold a study's progress against.

    Attributes
    ----------
    began : sequence of float
        Trials expected to begin each phase [n_phases].
    fewest : sequence of float
        Fewest that can begin each phase, however they score, if none fails [n_phases].
    """

    began: Sequence[float]
    fewest: Sequence[float]


class Searcher(Protocol):
    """A source of configurations that may learn from reports.

    One that can run out has a length, so that a scheduler knows from the start how many trials there will be.
    """

    def suggest(self, trial: int) -> Config | None:
        """Give the configuration of a new trial; ``None`` when there is none left."""

    def observe(self, report: Report) -> None:
        """Hear of a report; a searcher that does not learn ignores it."""


class Scheduler(Protocol):
    """A metaoptimizer as a pure state machine: no clock, no thread, no input or output.

    Its only randomness is a generator seeded at construction, so the same sequence of calls gives the same
    answers. That is what resuming relies on: the log is replayed into a fresh scheduler.

    What a scheduler alone knows it may tell by five more names. None is required: `expectation_of` and
    `workbench.core.describe.explain_of` say what holds where one is missing.

    - ``expectation(self) -> Expectation | None``: how many trials it expects to begin each phase, and the fewest.
    - ``grow(self, n_trials) -> None``: let there be more trials than before, from now on; what is decided stays.
    - ``scores_in_reasons``, a tuple: which entries of its reasons are scores. A study that minimises turns them back.
    - ``trials_in_reasons``, a tuple: which entries of its reasons are numbers of trials. Under several seeds its trials
      are candidates, and the log is to name trials.
    - ``explain(reason) -> str``, a static method: a decision's reason in words, see `Explain`. `reason` is the reason's
      data as the log keeps it, ``mode`` among it.
    """

    n_phases: int  # most phases one trial may run
    n_trials: int  # most trials that will ever be asked for

    @property
    def expected_phases(self) -> float:
        """Phases expected to run in all, for progress bars; `n_trials` × `n_phases` where nothing better is known."""

    def ask(self) -> Run | None:
        """Name the next trial to put on a free slot; ``None``: nothing to start now, state unchanged."""

    def tell(self, report: Report) -> Mapping[int, Decision]:
        """Take in a report; answer for the reporter, and for any other trial whose fate it settles.

        Others may be answered for only while they are held or paused. A held trial may be let go on; a paused one
        may be stopped or paused again (for another reason), and goes on when it is asked for. A failure may also be
        reported of a trial that waits: a person has stopped it.
        """


def expectation_of(scheduler: object) -> Expectation | None:
    """Ask a scheduler what it expects; ``None`` where it cannot know, or does not say."""
    method = getattr(scheduler, "expectation", None)
    expectation: Expectation | None = method() if callable(method) else None
    return expectation


class Trainable(Protocol):
    """What a trial is. It lives on one worker and is driven phase by phase.

    One with an attribute `resumes_midway` that is true can be saved within a phase: `save` may be called after
    `progress` has raised out of `train_phase`, and the first `train_phase` after such a `load` runs the rest of it.
    """

    def train_phase(self, progress: Progress) -> Measured:
        """Run one phase and return its metrics, ``score`` among them; ``returns`` may be too, see `Measured`."""

    def save(self, path: Path) -> None:
        """Write everything needed to go on into the empty directory `path`."""

    def load(self, path: Path) -> None:
        """Go on from a directory written by `save`, of this trial or of a parent."""

    def close(self) -> None:
        """Release threads, processes, files and memory. Must be safe to call twice."""


TrainableFactory = Callable[[Config, int], Trainable]
"""Builds a trial from its configuration and its seed; must be picklable, it travels to the workers."""


class GangTrainable(Trainable, Protocol):
    """One rank of a trial that needs several workers at once; ranks are counted from 0.

    Each worker of the gang holds one rank and calls `train_phase` on it at the same time. How ranks find each other is
    the trainable's own business: an executor only carries a string from rank 0 to the others, so that it needs to know
    neither of torch nor of ports. Only rank 0 is loaded and saved, and only its metrics count; it hands the others
    what they need. Every rank calls `progress`, also while it waits for another. One that has lost another raises
    `PeerLost`.
    """

    def listen(self, host: str) -> str:
        """Rank 0: be ready for the others on this machine's address `host`; return what they must `join`."""

    def join(self, address: str) -> None:
        """Other ranks: note where rank 0 is; at most look there, `train_phase` does the waiting."""

    def leave(self) -> None:
        """Part from the other ranks, after one or more phases or a failure. Must be safe to call twice."""


class GangFactory(Protocol):
    """A trainable factory whose trials are gangs. Without `n_ranks`, a trial needs one worker."""

    @property
    def n_ranks(self) -> int:
        """Workers that one trial needs at once."""

    def rank(self, config: Config, seed: int, rank: int) -> GangTrainable:
        """Build one rank of a trial."""


def ranks_needed(factory: object) -> int:
    """Count the workers that one trial of this factory needs at once."""
    return int(getattr(factory, "n_ranks", 1))


@dataclass(slots=True)
class Job:
    """What an executor needs to put a trial on a slot: the driver's answer to a `Run`.

    With `keep` its checkpoint must outlive the phases that follow it: other trials may start from there. The trial's
    first phase was `first`, and it began with the weights of `start`, a checkpoint of another's, or with its own.
    """

    trial: int
    phase: int
    config: Config
    seed: int
    checkpoint: str | None = None
    slot: int | None = None
    keep: bool = False
    start: str | None = None
    first: int = 0


class Kind(StrEnum):
    """The kinds of event in the log. `docs/log.md` says what each one's data holds."""

    STUDY_STARTED = "study_started"
    STUDY_RESUMED = "study_resumed"
    STUDY_INTERRUPTED = "study_interrupted"
    STUDY_ENDED = "study_ended"
    SLOT_JOINED = "slot_joined"
    SLOT_LOST = "slot_lost"
    RUN = "run"  # the scheduler asked for this trial
    PHASE_STARTED = "phase_started"
    PROGRESS = "progress"  # metrics inside a phase; kept as metrics, not as an event
    PHASE_ENDED = "phase_ended"
    PHASE_FAILED = "phase_failed"  # this attempt was lost; the trial is retried
    TRIAL_FAILED = "trial_failed"  # no attempt is left
    TRIAL_STOPPED = "trial_stopped"  # by a person; the scheduler hears of it as of a failure
    DECISION = "decision"
    INTERVENTION = "intervention"  # what a person asked, and the answer


BEGUN = (Kind.STUDY_STARTED, Kind.STUDY_RESUMED)
"""With these a driver takes a study up."""
TURNS = (*BEGUN, Kind.STUDY_INTERRUPTED, Kind.STUDY_ENDED)
"""With these it takes the study up or leaves it: the last tells how the study stands."""
_REPORTING = frozenset({Kind.PHASE_ENDED, Kind.TRIAL_FAILED, Kind.TRIAL_STOPPED})


@dataclass(slots=True)
class Event:
    """One line of the log.

    Attributes
    ----------
    kind : Kind
    at : float
        Seconds since the study began: measured on a real cluster, virtual in a simulation. Time during
        which no driver ran is not counted.
    trial, phase, slot : int or None
    data : Mapping
        The rest, in JSON's types.
    """

    kind: Kind
    at: float
    trial: int | None = None
    phase: int | None = None
    slot: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)

    def report(self) -> Report | None:
        """Read this event as the report it brings to the scheduler; ``None`` if it brings none."""
        if self.kind not in _REPORTING or self.trial is None or self.phase is None:
            return None
        if self.kind is not Kind.PHASE_ENDED:
            return Report(self.trial, self.phase, math.nan, failed=True)
        data = self.data
        returns = tuple(data[RETURNS]) if RETURNS in data else ()
        return Report(self.trial, self.phase, float(data["score"]), False, returns, float(data.get("wall_s", 0.0)))


class Executor(Protocol):
    """A cluster, real or simulated, that holds one trial a slot."""

    @property
    def n_slots(self) -> int:
        """Slots that can hold a trial now."""

    @property
    def n_free(self) -> int:
        """Slots that hold none."""

    @property
    def now(self) -> float:
        """Seconds on this executor's clock, real or virtual."""

    def open(self, at: float) -> None:
        """Set the clock to `at` and let it run; slots announce themselves as events."""

    def start(self, job: Job) -> None:
        """Put a trial on a free slot and run the job's phase."""

    def apply(self, trial: int, verdict: Verdict) -> None:
        """Carry out a verdict on a trial that has ended a phase or is held."""

    def drop(self, trial: int) -> None:
        """Free the slot of a trial at once, in mid-phase too; nothing more is heard of it."""

    def want(self, slots: int) -> bool:
        """Hear how many slots the study could use now; tell whether more of them may come than there are."""

    def scale(self, nodes: int) -> None:
        """Ask for a number of nodes; raises `InvalidInput` where the cluster cannot be scaled from here."""

    def wait(self, timeout_s: float | None = None) -> Sequence[Event]:
        """Return what has happened since, in order; empty after `timeout_s`, or when nothing is under way."""

    def caused(self) -> Sequence[Event]:
        """Return what the calls since `wait` have caused, such as phases begun, without listening for more."""

    def close(self) -> None:
        """Release every trial and slot this executor holds."""


class Log(Protocol):
    """Where events go; an append is durable, whole, before it returns."""

    def append(self, events: Sequence[Event]) -> None:
        """Add events in order, all or none."""
