"""How far a study is, read off its events as they are logged."""

import math
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import merge
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from workbench.core.clock import SeenClock
from workbench.core.failures import Hopeless
from workbench.core.ledger import Ledger, leaves_slot, share_of
from workbench.core.living import NO_SLOT, LivingSlots
from workbench.core.protocols import BEGUN, TURNS, Event, Kind
from workbench.core.record import size_of_record
from workbench.core.size import Size

if TYPE_CHECKING:
    from workbench.knowledge import RecordedStudy, StudyLog
    from workbench.knowledge.reader import Seen

_DISK_RETRY_S = 2.0
_BAR = 12  # characters
_GLANCE = 50_000  # metric points that a look goes back, at most: what trials reported last tells how fast they are


@dataclass
class Progress:
    """How far a study is.

    Attributes
    ----------
    size : Size
        How large it is, as far as is known.
    trials_started, trials_ended, phases_ended : int
    trials_asked : int
        Of the trials that were started, those that the scheduler asked for; others confirm them, or are clones.
    at : float
        Seconds on the study's clock, now or when it was last driven.
    state : str
        running, paused, ended, interrupted, or abandoned: its driver died without a word.
    why_over : str
        What ended it before its scheduler was done, if anything did.
    message : str
        What the study waits for, if it is held up: such as space on a full disk.
    frames_per_s : float
        Emulator frames a second, summed over the running trials, as they last reported; 0 where nothing runs.
    """

    size: Size
    trials_started: int = 0
    trials_asked: int = 0
    trials_ended: int = 0
    phases_ended: int = 0
    at: float = 0.0
    state: str = "running"
    message: str = ""
    why_over: str = ""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()  # held where entries are gone through, or come and go: a driver's thread tells
        self._ledger, self._clock = Ledger(), SeenClock()
        self._frames: dict[int, tuple[float, float, float]] = {}  # trial → frames, at, frames a second
        self._slots, self._driven = LivingSlots(), False
        self._begun: dict[int | None, float] = {}  # trial → when the phase that it is in began
        self._took_s: list[float] = []  # phases that ended

    @property
    def frames_per_s(self) -> float:
        """Emulator frames a second, summed over the running trials."""
        with self._lock:
            return sum(rate for _, _, rate in self._frames.values()) if self.state == "running" else 0.0

    @property
    def n_trials(self) -> int | None:
        """Most trials that will be started; ``None`` if nobody knows: an old log of a scheduler of one's own."""
        return self.size.n_trials

    @property
    def expected_phases(self) -> float | None:
        """Phases expected in all, as far as what has run tells; ``None`` likewise."""
        with self._lock:
            return self._ledger.expected_phases(self.size)

    @property
    def eta_s(self) -> float | None:
        """Seconds still expected, the middle of `analysis.time_left`; ``None`` while unknown, or paused."""
        from workbench.analysis import time_left

        if self.state != "running":
            return None if self.state == "paused" else 0.0
        with self._lock:
            ledger = self._ledger
            limit, phases = ledger.left_s(self.at), ledger.phases_left(self.size)
            took, open_s = np.array(self._took_s), self.at - np.array([*self._begun.values()])
            left = None if phases is None else time_left(took, open_s, phases, len(self._slots), limit)
        middle = limit if left is None else sum(left) / 2
        return middle if middle < math.inf else None

    def see(self, event: Event) -> None:
        """Take in one more event."""
        with self._lock:
            self._see(event)

    def pass_to(self, at: float) -> None:
        """Let the study's clock go on to when it last gave a sign of life."""
        with self._lock:
            self._ledger.pass_to(at)
            self.at = max(self.at, self._ledger.at)

    def go_on(self, *, driven: bool, in_real_time: bool = True) -> None:
        """Hear whether anybody drives the study now, and let its clock go on to now if so, in real time."""
        with self._lock:
            self._driven = driven and in_real_time
            self.at = self._clock.now(self._ledger.at, driven=self._driven)
            if self.state in ("running", "paused", "abandoned"):
                self.state = self._ledger.standing(driven=driven)

    def _see(self, event: Event) -> None:
        ledger = self._ledger
        ledger.see(event)
        self._clock.see(event)
        self._slots.see(event, ledger.n_in_the_way)
        self.at = ledger.at if event.kind in TURNS else max(self.at, ledger.at)  # the clock went on before it was heard
        self.state, self.why_over = ledger.standing(driven=True), ledger.why_over
        self.trials_started, self.trials_asked, self.trials_ended = len(ledger), ledger.n_asked, ledger.n_over
        self.phases_ended = ledger.phases_ended
        self.size = ledger.size or self.size
        if event.kind in (Kind.PROGRESS, Kind.PHASE_ENDED):
            self.message = event.data.get("note", "")
        self._see_work(event)
        if event.trial is None:
            return
        if event.kind is Kind.PROGRESS:
            self._see_frames(event.trial, event.at, event.data["metrics"].get("frames"))
        elif leaves_slot(event, ledger):
            self._frames.pop(event.trial, None)

    def _see_work(self, event: Event) -> None:
        """Follow how long phases take; a driver that begins finds nothing under way."""
        kind, trial = event.kind, event.trial
        if kind in BEGUN:
            self._begun.clear()
            self._frames.clear()
        elif kind is Kind.PHASE_STARTED:
            self._begun[trial] = event.at
        elif kind is Kind.PHASE_ENDED and trial in self._begun:
            self._took_s.append(event.at - self._begun.pop(trial))
        elif kind in (Kind.PHASE_FAILED, Kind.TRIAL_FAILED, Kind.TRIAL_STOPPED) and trial is not None:
            self._begun.pop(trial, None)

    def _see_frames(self, trial: int, at: float, frames: float | None) -> None:
        """Follow the pace at which a trial's `frames` metric, counted since the trial began, grows."""
        if frames is None or not at >= self._begun.get(trial, math.inf):  # a late word of what is over, or was lost
            return
        before, since, rate = self._frames.get(trial, (frames, at, 0.0))
        if at > since and frames >= before:
            rate = (frames - before) / (at - since)
        self._frames[trial] = (frames, at, rate)

    @property
    def share(self) -> float:
        """Of the phases expected in all that have ended, or of its time if more, 0 to 1; 0 where neither is known."""
        with self._lock:
            return share_of(self._ledger, self.size) or 0.0

    @property
    def _waits_for(self) -> str:
        """What the study waits for, if it is held up."""
        if self.state not in ("running", "paused"):
            return ""
        lacking = self.state == "running" and self._driven and self._slots.lacking
        return self.message or (NO_SLOT if lacking else "")

    @property
    def _bar(self) -> str:
        full = round(_BAR * self.share)
        return f"▕{'█' * full}{'·' * (_BAR - full)}▏"

    def _repr_html_(self) -> str:
        most = max(self.n_trials or 0, self.trials_started, 1)
        done = most if self.state == "ended" else self.trials_ended  # Hyperband leaves trials that it paused
        trials = f"<progress value={done} max={most}></progress>"
        phases = f"<progress value={self.share:.3f} max=1></progress>"
        return f"<div>trials {trials} phases {phases}<br>{escape(str(self))}</div>"

    def __str__(self) -> str:
        eta_s, expected = self.eta_s, self.expected_phases
        eta = "" if eta_s is None or self.state != "running" else f" · about {_clock(eta_s)} left"
        fps = f" · {self.frames_per_s:,.0f} frames/s" if self.frames_per_s else ""
        over = f" · ended: {self.why_over}" if self.why_over else ""
        over += f" · {self._waits_for}" if self._waits_for else ""
        if self.state == "paused":
            over += " · paused by a person: controls.resume_study(), or the dashboard, lets it go on"
        most = f"{'at most ' if self.size.may_be_fewer else ''}{self.n_trials}"
        n_trials = "of unknown number" if self.n_trials is None else most
        n_besides = self.trials_started - self.trials_asked
        besides = f" and {n_besides} besides" if n_besides else ""
        trials = f"{n_trials}, {self.trials_asked} started{besides}, {self.trials_ended} ended"
        of = " of an unknown number" if expected is None else f" of about {expected:.0f}"
        phases = f"{self.phases_ended}{'' if self.state == 'ended' else of}"
        return f"{_clock(self.at)} {self._bar} trials: {trials} · phases: {phases}{fps}{eta}{over}"

    __repr__ = __str__


class FollowedProgress:
    """The progress of a study that others drive, read off its log look by look.

    Attributes
    ----------
    progress : Progress
        As of the last look.
    """

    def __init__(self, study: "RecordedStudy") -> None:
        self.progress = Progress(size_of_record(study.spec))  # until the log's first event tells the size
        self._seen: Seen | None = None  # of its events
        self._read = 0  # points

    def look(self, study: "RecordedStudy") -> None:
        """Take in what its log has told since the last look.

        Raises
        ------
        StudyError
            Another study has taken its place.
        """
        # before the events, which then tell of every trial that has reported
        points, read, _ = study.points(("frames",), max(self._read, study.last_point - _GLANCE))
        events, self._seen = study.events_since(self._seen)
        self._read = read
        reports = (
            Event(Kind.PROGRESS, at, trial, phase, data={"metrics": {"frames": frames}})
            for trial, phase, at, _, frames in points[points["name"] == 0].tolist()
        )
        for event in merge(reports, events, key=lambda event: event.at):
            self.progress.see(event)
        self.progress.pass_to(points["at"].max(initial=0.0))


class WatchedLog:
    """The study's log, with the progress kept beside it.

    On a full disk it waits for space, where another process holds the file for that, or for the end.
    """

    def __init__(
        self,
        log: "StudyLog",
        progress: Progress,
        stopped_within: Callable[[float], bool],
        hopeless: Hopeless,
        callbacks: Callable[[Sequence[Event]], None] = lambda _: None,
    ) -> None:
        self._log = log
        self._callbacks = callbacks
        self._progress = progress
        self._stopped_within = stopped_within
        self._hopeless = hopeless
        self._said = False

    def append(self, events: Sequence[Event]) -> None:
        """Write events to the log, and take them in."""
        from workbench.knowledge import DiskFull, LogHeld

        while True:
            try:
                self._log.append(events)
                break
            except (DiskFull, LogHeld) as err:
                what = "disk space to write" if isinstance(err, DiskFull) else "another process to let go of"
                self._progress.message = f"waiting for {what} the log"
                if self._stopped_within(_DISK_RETRY_S):
                    raise
        self._progress.message = ""
        for event in events:
            self._progress.see(event)
            self._hopeless.see(event)
            if "recovered" in event.data and not self._said:
                self._said = True
                warnings.warn(f"trial {event.trial} {event.data['recovered']}; others are in the log", stacklevel=2)
        self._callbacks(events)


def in_a_notebook() -> bool:
    """Tell whether this is a notebook's kernel, where what is displayed can be displayed anew."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def _clock(seconds: float) -> str:
    minutes, s = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{s:02}" if hours else f"{minutes}:{s:02}"
