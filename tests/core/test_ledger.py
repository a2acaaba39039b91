"""One fold of the log: whatever people, clusters and drivers do, all who count from it come to the same."""

import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.algos.search.test_contract import SCHEDULERS
from tests.support import MemoryLog, RandomTimes, virtual_executor
from workbench.core.drive import drive, replay
from workbench.core.interventions import Request
from workbench.core.ledger import Ledger, TrialState, share_of
from workbench.core.protocols import Event, Job, Kind
from workbench.core.size import Size
from workbench.knowledge import frames_of
from workbench.knowledge.check import out_of_order
from workbench.simulation.cluster import Hazards, VirtualCluster
from workbench.simulation.outcome import Tally
from workbench.study.progress import Progress


class Whims:
    """A person who asks for anything of anyone, sensible or not, and in the end lets all go on."""

    def __init__(self, log: MemoryLog, rng: np.random.Generator, wishes: int) -> None:
        self.log, self.rng, self.wishes = log, rng, wishes
        self.ledger, self.seen, self.n = Ledger(), 0, 0

    def __call__(self) -> list[Request]:
        for event in self.log[self.seen :]:
            self.ledger.see(event)
        self.seen = len(self.log)
        if self.wishes:
            if self.rng.random() < 0.7:
                return []
            self.wishes -= 1
            actions = ["stop", "pause", "pause", "resume", "extend", "clone", "pause study", "resume study"]
            return [self._ask(str(self.rng.choice(actions)), int(self.rng.integers(len(self.ledger) + 1)))]
        aside = self.ledger.in_state(TrialState.SET_ASIDE)
        return [self._ask("resume", n) for n in aside] + [self._ask("resume study", None)] * self.ledger.paused

    def _ask(self, action: str, trial: int | None) -> Request:
        self.n += 1
        return Request(f"r{self.n}", action, trial, {"phases": 2} if action in ("extend", "clone") else {})


def a_log(name: str, seed: int, crash: float, wishes: int, deaths: int) -> MemoryLog:
    """What a study leaves behind whose driver is stopped `deaths` times; every one begins with what the last left."""
    rng, log = np.random.default_rng(seed), MemoryLog()
    cluster = VirtualCluster(3, hazards=Hazards(crash, 0.0, 2.0, 1.0, 1), seed=seed)
    whims = Whims(log, rng, wishes)
    log.append([Event(Kind.STUDY_STARTED, 0.0)])
    for left in reversed(range(deaths + 1)):
        scheduler = SCHEDULERS[name]()
        ledger = replay(scheduler, log)
        executor = virtual_executor(RandomTimes(seed), cluster, ledger.at)
        enough = len(log) + int(rng.integers(60)) if left else 10**6
        over = drive(scheduler, executor, log, ledger=ledger, inbox=whims, stop=lambda n=enough: len(log) > n)
        assert ledger.trials == Ledger(log).trials
        if over:
            log.append([Event(Kind.STUDY_ENDED, executor.now)])
            break
        cut, later = executor.now + 0.125, executor.now + 0.25  # no phase ended just then
        log.append([Event(Kind.STUDY_INTERRUPTED, cut), Event(Kind.STUDY_RESUMED, later)])
    return log


def ended_at(log: list[Event]) -> dict[int, float]:
    """When each trial that is over ended, by its last event that says so."""
    ended: dict[int, float] = {}
    for e in log:
        if e.kind in (Kind.TRIAL_FAILED, Kind.TRIAL_STOPPED) or e.data.get("verdict") == "stop":
            ended.setdefault(e.trial, e.at)
        elif e.data.get("action") == "extend" and e.data["accepted"]:
            del ended[e.trial]
    return ended


def assert_all_agree(log: list[Event]) -> None:
    frames, tally, progress = frames_of(log), Tally(), Progress(Size())
    tally.append(log)
    for event in log:
        progress.see(event)
    outcome = tally.outcome(1, 1, 3)
    trials, phases = frames.trials.set_index("trial"), frames.phases

    of = {kind: [e for e in log if e.kind is kind] for kind in Kind}
    assert set(trials.index) == {e.trial for e in of[Kind.RUN]}
    assert progress.trials_started == outcome.trials == len(trials)
    besides = sum(e.data.get("by") == "person" for e in of[Kind.RUN])
    assert progress.trials_asked == len(trials) - besides
    assert (f" started and {besides} besides, " in str(progress)) is bool(besides)
    reports = [(e.at, e.data["score"], e.trial) for e in of[Kind.PHASE_ENDED]]
    assert list(zip(outcome.ended_s, outcome.scores, outcome.reporters, strict=True)) == reports
    assert sorted(phases.loc[phases["ended_s"].notna(), ["ended_s", "score", "trial"]].itertuples(index=False)) == (
        sorted(reports)
    )
    assert progress.phases_ended == len(reports)
    assert outcome.retries == len(of[Kind.PHASE_FAILED]) + len(of[Kind.TRIAL_FAILED])
    assert phases["retries"].sum() == outcome.retries

    over = ended_at(log)
    assert trials["ended_s"].dropna().to_dict() == over
    assert set(trials.index[trials["state"].isin(["stopped", "finished", "failed"])]) == over.keys()
    assert progress.trials_ended == len(over)
    scores = pd.DataFrame(reports, columns=["at", "score", "trial"]).groupby("trial")["score"]
    assert trials["best_score"].dropna().to_dict() == scores.max().to_dict()
    assert trials["last_score"].dropna().to_dict() == scores.last().to_dict()

    cut = {e.at for e in of[Kind.STUDY_INTERRUPTED]}  # what a driver left under way nobody reported
    busy = frames.spans[frames.spans["outcome"].isin(["ended", "lost"]) & ~frames.spans["ended_s"].isin(cut)]
    assert sorted(tally.busy) == sorted(busy[["started_s", "ended_s"]].itertuples(index=False, name=None))
    assert progress.state == frames.state


NAMES = ["random", "hypertrick", "halving", "halving-hold", "hyperband-restart", "asha", "pbt", "pbt-tournament"]


@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    seed=st.integers(0, 10_000),
    crash=st.sampled_from([0.0, 0.2]),
    wishes=st.integers(0, 25),
    deaths=st.integers(0, 3),
    share=st.floats(0, 1),
)
def test_whatever_happens_to_a_study_all_who_count_agree(name, seed, crash, wishes, deaths, share) -> None:
    log = a_log(name, seed, crash, wishes, deaths)
    assert list(out_of_order(log)) == []
    assert log[-1].kind is Kind.STUDY_ENDED
    assert_all_agree(log)
    assert_all_agree(log[: 1 + int(share * len(log))])


def test_the_random_logs_hold_what_they_are_meant_to() -> None:
    seen = Counter(
        e.data["action"] if e.kind is Kind.INTERVENTION and e.data["accepted"] else str(e.kind)
        for seed in range(6)
        for e in a_log("asha", seed, 0.2, 25, 2)
    )
    wanted = {"stop", "pause", "resume", "extend", "clone", "pause study", "resume study"}
    assert wanted | {Kind.PHASE_FAILED, Kind.TRIAL_FAILED, Kind.STUDY_RESUMED, Kind.SLOT_LOST} <= seen.keys()


def test_the_best_is_neither_of_a_trial_that_confirms_nor_no_number() -> None:
    def scored(trial: int, score: float, **data: object) -> list[Event]:
        run = {"config": {"lr": 0.1}, "seed": trial, "parent": None, **data}
        ended = {"score": score, "checkpoint": f"of {trial}"}
        return [
            Event(Kind.RUN, 0.0, trial, 0, data=run),
            Event(Kind.PHASE_STARTED, 0.0, trial, 0, 0),
            Event(Kind.PHASE_ENDED, 1.0, trial, 0, 0, ended),
        ]

    confirming = {"by": "person", "own_phases": 1, "confirms": True, "candidate": 1, "clone_of": 1}
    ledger = Ledger([*scored(0, math.nan), *scored(1, 5.0), *scored(9, 7.0, **confirming)])
    assert (ledger.best, ledger.trials[9].best_score, ledger.n_asked) == ((5.0, 1), 7.0, 2)
    assert Ledger(scored(0, math.nan)).best is None
    assert [ledger.trials[n].heard for n in (1, 9)] == [("of 1", 1), (None, 0)]


def test_a_trial_that_went_on_in_an_older_log_though_a_person_had_paused_it_runs() -> None:
    begun = {"config": {"lr": 0.1}, "seed": 0}
    ended = {"score": 1.0, "checkpoint": "x"}
    log = [
        Event(Kind.RUN, 0.0, 0, 0, data={**begun, "parent": None}),
        Event(Kind.PHASE_STARTED, 0.0, 0, 0, 0),
        Event(Kind.INTERVENTION, 0.5, 0, data={"action": "pause", "accepted": True}),
        Event(Kind.PHASE_ENDED, 1.0, 0, 0, 0, ended),
        Event(Kind.DECISION, 1.0, 0, 0, data={"verdict": "pause", "mode": "barrier"}),
        Event(Kind.RUN, 2.0, 0, 1, data={**begun, "parent": 0}),
    ]
    assert Ledger(log).trials[0].state is TrialState.SET_ASIDE
    log += [
        Event(Kind.PHASE_STARTED, 2.0, 0, 1, 0),
        Event(Kind.PHASE_ENDED, 3.0, 0, 1, 0, ended),
        Event(Kind.DECISION, 3.0, 0, 1, data={"verdict": "continue", "mode": "collecting"}),
    ]
    assert Ledger(log).trials[0].state is TrialState.RUNNING
    assert frames_of(log).trials["state"].tolist() == ["running"]


def test_a_copy_has_the_checkpoint_that_the_scheduler_knows_of_and_a_clone_tells_whose_it_is() -> None:
    run, parent = {"config": {"lr": 0.1}, "parent": None, "seed": 0}, {"config": {"lr": 0.2}, "parent": 0, "seed": 1}
    log = [
        Event(Kind.RUN, 0.0, 0, 0, data=run),
        Event(Kind.PHASE_ENDED, 1.0, 0, 0, 0, {"score": 1.0, "checkpoint": "first"}),
        Event(Kind.DECISION, 1.0, 0, 0, data={"verdict": "stop", "mode": "finished"}),
        Event(Kind.INTERVENTION, 1.0, 0, data={"action": "extend", "accepted": True, "phases": 1}),
        Event(Kind.PHASE_ENDED, 2.0, 0, 1, 0, {"score": 2.0, "checkpoint": "a person's"}),
        Event(Kind.RUN, 2.0, 1, 1, data=parent),
        Event(Kind.RUN, 2.0, 2, 0, data={**run, "clone_of": 0, "own_phases": 1, "by": "person"}),
        Event(Kind.PHASE_ENDED, 3.0, 1, 1, 0, {"score": 3.0, "checkpoint": "its own"}),
        Event(Kind.DECISION, 3.0, 1, 1, data={"verdict": "pause"}),
        Event(Kind.RUN, 3.0, 1, 2, data={**parent, "parent": 1}),
    ]
    assert [Ledger(log[:n]).trials[0].mode for n in (3, 4)] == ["finished", None]
    ledger = Ledger(log[:7])
    assert (ledger.job(1).checkpoint, ledger.trials[1].parent_phase) == ("first", 0)
    assert (ledger.job(2).checkpoint, ledger.trials[2].parent, ledger.trials[2].parent_phase) == (None, 0, None)
    jobs = [Ledger(log).job(number) for number in range(3)]
    assert jobs[1] == Job(1, 2, {"lr": 0.2}, 1, "its own", start="first", first=1)
    assert [job.start for job in jobs] == [None, "first", None]


def test_the_time_of_drivers_that_only_confirmed_does_not_count_for_the_limit() -> None:
    aim = {"aim": {"max_hours": 0.01}}
    ledger = Ledger([Event(Kind.STUDY_STARTED, 0.0, data=aim), Event(Kind.STUDY_ENDED, 9.0)])
    assert ledger.searching_s(9.0) == 9.0
    ledger.see(Event(Kind.STUDY_RESUMED, 9.0, data={"confirms": True}))
    assert [ledger.searching_s(at) for at in (9.0, 12.0)] == [9.0, 9.0]
    assert ledger.aim.left_s(ledger.searching_s(30.0)) == 27.0
    ledger.see(Event(Kind.STUDY_RESUMED, 30.0, data={"confirms": True}))  # the one before died without a word
    for end in (Event(Kind.STUDY_INTERRUPTED, 50.0), Event(Kind.STUDY_ENDED, 50.0)):  # of the driver, of the search
        ledger.see(end)
    assert ledger.searching_s(ledger.at) == 9.0
    ledger.see(Event(Kind.STUDY_RESUMED, 50.0))
    assert ledger.searching_s(59.0) == 18.0
    ledger.pass_to(59.0)
    assert share_of(ledger, Size()) == 0.5


@pytest.mark.parametrize("aim", [{}, {"max_hours": 0.01}])
@pytest.mark.parametrize("size", [Size(), Size(8, 8, 3, 24.0), Size(8, 8, 3, 18.0, (8, 6, 4), (8, 2, 2))])
def test_who_only_confirms_has_the_phases_left_that_it_was_asked_for_and_no_limit(aim, size) -> None:
    run = {"config": {}, "seed": 0, "parent": None}
    fresh = {**run, "clone_of": 0, "own_phases": 3, "by": "person", "confirms": True, "candidate": 0}
    log = [
        Event(Kind.STUDY_STARTED, 0.0, data={"aim": aim}),
        *(Event(Kind.RUN, 0.0, trial, 0, data=run) for trial in (0, 1)),
        *(Event(Kind.PHASE_ENDED, 36.0, 0, phase, 0, {"score": 1.0}) for phase in range(3)),
        Event(Kind.DECISION, 36.0, 0, 2, data={"verdict": "stop", "mode": "finished"}),
        Event(Kind.STUDY_INTERRUPTED, 36.0),  # trial 1 is cut off
        Event(Kind.STUDY_RESUMED, 36.0, data={"aim": aim, "confirms": True}),
        *(Event(Kind.RUN, 36.0, trial, 0, data=fresh) for trial in (8, 9)),
        Event(Kind.PHASE_ENDED, 50.0, 8, 0, 0, {"score": 1.0}),
    ]
    ledger = Ledger(log)
    assert (ledger.phases_left(size), ledger.left_s(50.0)) == ((5, 5), math.inf)
    assert share_of(ledger, size) == 4 / 9
    ledger.see(Event(Kind.STUDY_INTERRUPTED, 60.0))
    assert ledger.left_s(60.0) == (0.0 if aim else math.inf)


def test_the_clock_never_goes_back_and_what_ended_a_study_holds_until_it_goes_on() -> None:
    ledger = Ledger([Event(Kind.STUDY_STARTED, 0.0), Event(Kind.STUDY_ENDED, 9.0, data={"why": "its time is up"})])
    ledger.see(Event(Kind.SLOT_LOST, 8.0, slot=0))
    ledger.pass_to(8.5)
    ledger.pass_to(math.nan)
    assert (ledger.at, ledger.why_over) == (9.0, "its time is up")
    ledger.see(Event(Kind.STUDY_RESUMED, 9.0))
    ledger.pass_to(10)
    assert (ledger.at, ledger.why_over) == (10.0, "")
