"""A study in virtual time without its log: in a fraction of the time, where nothing can go wrong."""

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

from workbench.core.answers import answered, asked
from workbench.core.drive import waits_for_ever
from workbench.core.errors import InvalidInput
from workbench.core.ledger import TrialState
from workbench.core.protocols import Config, Decision, Event, Kind, Report, Run, Scheduler, Verdict
from workbench.core.seeds import trial_seed
from workbench.simulation.cluster import VirtualCluster
from workbench.simulation.executor import PhaseModel
from workbench.simulation.outcome import Tally


class Race:
    """What `drive` on a `SimulatedExecutor` comes to where nothing crashes or hangs: the same, to the last bit.

    Nobody looks on and no log is kept, so a report costs little more than the scheduler's own answer to it. A test
    holds it against the two for every kind of scheduler.

    Parameters
    ----------
    scheduler : Scheduler
        A fresh one.
    model : PhaseModel
    cluster : VirtualCluster
        Without hazards.
    seed : int
        The study's, from which the trials' seeds are derived.

    Attributes
    ----------
    now : float
        Virtual seconds.
    tally : Tally
        What has happened.
    """

    def __init__(self, scheduler: Scheduler, model: PhaseModel, cluster: VirtualCluster, seed: int = 0) -> None:
        self.scheduler, self.model, self.cluster, self.seed = scheduler, model, cluster, seed
        self.now = 0.0
        self.tally = Tally()
        self._speeds = cluster.slot_speeds()
        self._free = list(range(len(self._speeds)))  # heap: without a trial, the lowest comes first
        self._trials: dict[int, _Trial] = {}
        self._agenda: list[tuple[float, int, int]] = []  # heap: when which trial ends its phase; of equals the earlier
        self._tie = count()
        self.tally.append([Event(Kind.SLOT_JOINED, 0.0, slot=slot) for slot in self._free])

    def run(self, until: float = math.inf) -> bool:
        """Run to the end or up to some moment, what happens then included; tell whether it is the end."""
        agenda = self._agenda
        self._fill()
        while agenda and agenda[0][0] <= until:
            self.now, _, number = heapq.heappop(agenda)
            self._apply(self._end_phase(number, self._trials[number]))
            if self._free:
                self._fill()
        if not agenda:
            self._check_end()
        return not agenda

    def _fill(self) -> None:
        while self._free and (run := asked(self.scheduler, self._state, self._paused)) is not None:
            self._seat(run)

    def _seat(self, run: Run) -> None:
        """Put a trial on the slot it names if that is free, else on the lowest free one."""
        trial = self._trials.get(run.trial)
        if trial is None:
            trial = self._trials[run.trial] = _Trial(run.config, trial_seed(self.seed, run.trial))
            trial.saved = run.parent is not None and self._trials[run.parent].saved
            self.tally.trials += 1
        if run.slot is not None and run.slot in self._free:
            trial.slot = run.slot
            self._free.remove(run.slot)
            heapq.heapify(self._free)
        else:
            trial.slot = heapq.heappop(self._free)
        trial.phase = run.phase
        self.tally.events += 1
        self._begin(run.trial, trial, self.cluster.switch_s if trial.saved else self.cluster.startup_s)

    def _begin(self, number: int, trial: "_Trial", delay_s: float = 0.0) -> None:
        seconds, trial.score = self.model.phase(number, trial.phase, trial.config, trial.seed)
        trial.seconds = delay_s + seconds / self._speeds[trial.slot]  # type: ignore[index]
        if not 0 <= trial.seconds < math.inf:
            raise InvalidInput(f"the model gives trial {number}, phase {trial.phase}, a duration of {seconds}")
        trial.began, trial.at_work = self.now, True
        self.tally.events += 1
        heapq.heappush(self._agenda, (self.now + trial.seconds, next(self._tie), number))

    def _end_phase(self, number: int, trial: "_Trial") -> Mapping[int, Decision]:
        """Report a phase that has ended; a score that is no number fails the trial, which leaves its slot at once."""
        tally, trial.at_work = self.tally, False
        tally.busy.append((trial.began, self.now))
        tally.at = self.now
        if math.isfinite(trial.score):
            trial.saved = True
            tally.ended.append((self.now, trial.score, number))
            report = Report(number, trial.phase, float(trial.score), False, (), trial.seconds)
        else:
            tally.retries += 1
            self._leave(trial)
            trial.over = True
            report = Report(number, trial.phase, math.nan, failed=True)
        decisions = answered(self.scheduler, report, self._state)
        tally.events += 1 + len(decisions)
        return decisions

    def _apply(self, decisions: Mapping[int, Decision]) -> None:
        for number, decision in decisions.items():
            trial, verdict = self._trials[number], decision.verdict
            trial.over = trial.over or verdict is Verdict.STOP
            if trial.slot is None or verdict is Verdict.HOLD:
                continue
            if verdict is Verdict.CONTINUE:
                trial.phase += 1
                self._begin(number, trial)
            else:
                self._leave(trial)

    def _state(self, number: int) -> TrialState | None:
        trial = self._trials.get(number)
        if trial is None:
            return None
        if trial.slot is None:
            return TrialState.STOPPED if trial.over else TrialState.PAUSED
        return TrialState.RUNNING if trial.at_work else TrialState.HELD

    def _paused(self, number: int) -> tuple[int, Config]:
        return self._trials[number].phase + 1, self._trials[number].config

    def _leave(self, trial: "_Trial") -> None:
        assert trial.slot is not None  # it was seated
        heapq.heappush(self._free, trial.slot)
        trial.slot = None

    def _check_end(self) -> None:
        waiting = [trial for trial in self._trials.values() if not trial.over]
        if waiting:
            held = sum(trial.slot is not None for trial in waiting)
            raise waits_for_ever(self.scheduler, held, len(waiting) - held, len(self._speeds))


@dataclass(slots=True, eq=False)
class _Trial:
    """Where a trial stands; of its last phase when it began, the seconds it takes, and its score."""

    config: Config
    seed: int
    phase: int = 0
    slot: int | None = None
    at_work: bool = False
    saved: bool = False  # there is a checkpoint to go on from
    over: bool = False
    began: float = 0.0
    seconds: float = 0.0
    score: float = math.nan
