"""Plays the rest of the world to a scheduler: trials report in any order, and every answer is checked."""

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from workbench.core.protocols import Config, Report, Run, Scheduler, Verdict

Score = Callable[[Config, int, int], float]
"""(config, trial, phase) → score"""


def by_trial(config: Config, trial: int, phase: int) -> float:
    """A score drawn for a trial and a phase, whatever the order of events."""
    return float(np.random.default_rng([trial, phase]).normal())


def asked(scheduler, n: int):
    """Give a scheduler that has been asked for its first trials."""
    for trial in range(n):
        assert scheduler.ask().trial == trial
    return scheduler


def answers(scheduler: Scheduler, trial: int, phase: int, score: float, failed: bool = False) -> dict:
    """Report to a scheduler; for each trial that it answers for, the verdict and the mode."""
    decisions = scheduler.tell(Report(trial, phase, score, failed))
    return {t: (str(d.verdict), d.reason["mode"]) for t, d in decisions.items()}


def told(scheduler: Scheduler, trial: int, phase: int, score: float, failed: bool = False) -> tuple[str, str]:
    """The same for the reporter alone."""
    return answers(scheduler, trial, phase, score, failed)[trial]


@dataclass
class Played:
    """What happened, and who is where."""

    runs: list[Run] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    told: list[dict[int, str]] = field(default_factory=list)
    reasons: list[dict[int, dict]] = field(default_factory=list)
    on: dict[int, int] = field(default_factory=dict)  # trial on a slot → its phase
    waiting: dict[int, Verdict] = field(default_factory=dict)
    over: set[int] = field(default_factory=set)
    idle: list[int] = field(default_factory=list)  # free slots each time everything had been asked for

    def ended(self, mode: str) -> list[int]:
        """Trials whose last word was `mode`."""
        last = {t: why["mode"] for reasons in self.reasons for t, why in reasons.items()}
        return sorted(t for t, m in last.items() if m == mode)

    def phases(self) -> dict[int, list[int]]:
        """Phases each trial reported."""
        got = defaultdict(list)
        for report in self.reports:
            got[report.trial].append(report.phase)
        return got


def play(
    scheduler: Scheduler,
    n_slots: int,
    seed: int = 0,
    score: Score = by_trial,
    fail: float = 0.0,
    speeds: list[float] | None = None,
    most: int = 100_000,
) -> Played:
    """Drive a scheduler to its end, and hold it to its contract on the way.

    Without `speeds` any running trial may report next; with them, the one whose slot is done first (each phase
    takes an exponential time divided by the slot's speed).
    """
    rng = np.random.default_rng(seed)
    world, phase_of = Played(), {}
    slots: dict[int, int | None] = dict.fromkeys(range(n_slots))
    due: dict[int, float] = {}
    now = 0.0

    def begin(trial: int) -> None:
        slot = next(s for s, t in slots.items() if t == trial)
        due[trial] = now + float(rng.exponential()) / (speeds[slot] if speeds else 1.0)

    for _ in range(most):
        waiting = sorted(world.waiting)
        if waiting and rng.random() < fail:  # somebody stops a trial that waits
            trial = waiting[int(rng.integers(len(waiting)))]
            _report(scheduler, world, trial, phase_of, slots, begin, failed=True, score=score)
        while None in slots.values() and (run := scheduler.ask()) is not None:
            _check_run(world, run, phase_of, slots)
            slot = run.slot if run.slot is not None else next(s for s, t in slots.items() if t is None)
            slots[slot] = run.trial
            world.on[run.trial] = phase_of[run.trial] = run.phase
            world.waiting.pop(run.trial, None)
            world.runs.append(run)
            begin(run.trial)
        free = sum(t is None for t in slots.values())
        world.idle.append(free)
        if free:
            assert scheduler.ask() is None, "asking twice must not bring up another trial"
        going = [t for t in world.on if world.waiting.get(t) is not Verdict.HOLD]
        if not going:
            break
        trial = min(going, key=lambda t: due[t]) if speeds else going[int(rng.integers(len(going)))]
        now = due[trial] if speeds else now + 1
        _report(scheduler, world, trial, phase_of, slots, begin, failed=rng.random() < fail, score=score)
    else:
        raise AssertionError(f"no end after {most} reports")
    assert not world.waiting, f"left waiting: {world.waiting}"
    assert not world.on
    assert world.over == {run.trial for run in world.runs}
    return world


def _check_run(world: Played, run: Run, phase_of: dict[int, int], slots: dict[int, int | None]) -> None:
    assert run.trial not in world.on, f"{run} runs already"
    assert run.trial not in world.over, f"{run} is over"
    known = {r.trial for r in world.runs}
    if run.parent == run.trial:
        assert world.waiting[run.trial] is Verdict.PAUSE
        assert run.phase == phase_of[run.trial] + 1
        assert run.config == next(r.config for r in world.runs if r.trial == run.trial)
    else:
        assert run.trial == len(known), "trials are numbered in the order of asking"
        assert run.parent is None or any(r.trial == run.parent and not r.failed for r in world.reports)
        assert run.parent is not None or run.phase == 0
    if run.slot is not None:
        assert slots[run.slot] is None, f"slot {run.slot} is taken"


def _report(scheduler, world, trial, phase_of, slots, begin, *, failed, score) -> None:
    config = next(r.config for r in world.runs if r.trial == trial)
    phase = phase_of[trial]
    report = Report(trial, phase, math.nan if failed else score(config, trial, phase), failed)
    told = scheduler.tell(report)
    world.reports.append(report)
    world.told.append({t: str(d.verdict) for t, d in told.items()})
    world.reasons.append({t: dict(d.reason) for t, d in told.items()})
    assert trial in told, "the reporter is answered at once"
    for number, decision in told.items():
        assert decision.reason["mode"]
        if number != trial:
            assert number in world.waiting, f"{number} is not waiting, yet told {decision}"
        elif failed:
            assert decision.verdict is Verdict.STOP
        if decision.verdict in (Verdict.STOP, Verdict.PAUSE):
            world.on.pop(number, None)
            slots.update({s: None for s, t in slots.items() if t == number})
        if decision.verdict is Verdict.CONTINUE:
            assert number in world.on, f"{number} is on no slot, yet told to continue"
            phase_of[number] += 1
            world.waiting.pop(number, None)
            begin(number)
        elif decision.verdict is Verdict.STOP:
            world.waiting.pop(number, None)
            world.over.add(number)
        else:
            world.waiting[number] = decision.verdict
    assert phase < scheduler.n_phases
