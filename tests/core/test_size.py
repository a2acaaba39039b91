"""A study's size is told by its scheduler, kept in the log, and read back by everyone who shows it."""

import contextlib
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np
import pytest

from tests.support import SPACE, Deterministic, simulate
from workbench import (
    ASHA,
    MFPBT,
    PBT,
    AttachedStudy,
    FullRuns,
    Hyperband,
    HyperTrick,
    KnowledgeBase,
    ListSearcher,
    MedianStopping,
    RandomSearcher,
    Study,
    SuccessiveHalving,
)
from workbench.algos.search.seeded import Seeded
from workbench.analysis import completion_rate
from workbench.core.describe import read_back
from workbench.core.ledger import Ledger, TrialState
from workbench.core.places import DATA
from workbench.core.protocols import Event, Job, Kind
from workbench.core.record import size_of_record
from workbench.core.size import Size, full_runs, size_of
from workbench.knowledge import StudyLog
from workbench.simulation import simulate as play
from workbench.simulation.cluster import VirtualCluster
from workbench.simulation.executor import Ran
from workbench.study.progress import Progress
from workbench.study.results import Results
from workbench.viz.dashboard import Dashboard

SCHEDULERS = {
    "hypertrick": lambda s: HyperTrick(s, 8, 3),
    "hyperband": lambda s: Hyperband(s, 9, eta=3),
    "halving": lambda s: SuccessiveHalving(s, 27, 27, eta=3),
    "asha": lambda s: ASHA(s, 16, 9, eta=3),
    "pbt": lambda s: PBT(s, 4, 3),
}


def logged(db, scheduler, *, told: bool) -> int:
    """Keep a study with a log as a driver leaves it, or as one did that did not tell the size; give its phases."""
    study = Study("one", scheduler, Deterministic, db)
    events = simulate(scheduler, slots=3)
    log = StudyLog(db, "one", study.spec)
    data = {"size": size_of(scheduler).to_json()} if told else {}
    log.append([Event(Kind.STUDY_STARTED, 0.0, data=data), *events, Event(Kind.STUDY_ENDED, events[-1].at)])
    log.close()
    return sum(e.kind is Kind.PHASE_ENDED for e in events)


@pytest.mark.parametrize("told", [True, False], ids=["told", "old log"])
@pytest.mark.parametrize("name", SCHEDULERS)
def test_everyone_who_shows_a_study_knows_the_size_its_scheduler_tells(tmp_path, name, told) -> None:
    fresh = SCHEDULERS[name](RandomSearcher(SPACE))
    n = logged(tmp_path / "kb.db", SCHEDULERS[name](RandomSearcher(SPACE)), told=told)
    progress = AttachedStudy(tmp_path / "kb.db", "one").progress
    assert (progress.n_trials, progress.expected_phases) == (fresh.n_trials, fresh.expected_phases)
    assert str(progress).endswith(f"phases: {n}")
    results = Results.open(tmp_path / "kb.db", "one")
    assert results.size == size_of(fresh)
    assert results.summary["alpha"] == completion_rate(n, full_runs(fresh), fresh.n_phases)
    board = Dashboard(tmp_path / "kb.db", "one")
    try:
        content, _ = board._board.snapshot()
    finally:
        board.close()
    assert (content["meta"]["n_trials"], content["expected_phases"]) == (fresh.n_trials, fresh.expected_phases)
    assert content["meta"]["expected"] == list(size_of(fresh).began)


def test_the_known_sizes() -> None:
    searcher = RandomSearcher(SPACE)
    assert size_of(SuccessiveHalving(searcher, 27, 27, eta=3)).expected_phases < 27 * 27 / 5
    assert size_of(PBT(searcher, 4, 3)).n_configs == 4
    assert size_of(FullRuns(ListSearcher([{"lr": 0.1}] * 3), 5, 2)).n_configs == 3  # it has no more
    assert size_of(FullRuns(ListSearcher([{"lr": 0.1}] * 3), 2, 2)).n_configs == 2
    trick = size_of(HyperTrick(searcher, 16, 4))
    assert (list(trick.began), trick.completion) == ([16, 12, 9, 6.75], sum([16, 12, 9, 6.75]) / 64)
    assert trick.fewest_completion == (16 + 8 + 6 + 5) / 64
    few = size_of(HyperTrick(searcher, 4, 9))  # Eq. 1 has 0.4 trials begin the last phase, where the first always does
    assert few.fewest_completion == few.completion == 15 / 36
    assert (Size(4).completion, Size(4).fewest_completion) == (None, None)
    of_others = {"of a later version": 1, "fewest_completion": 0.34}  # the latter is of an earlier one
    assert read_back(Size, {**trick.to_json(), **of_others}) == trick


@dataclass
class Own(FullRuns):
    """One of a user's."""


def test_the_size_of_a_scheduler_of_ones_own_is_recorded_and_unknown_in_an_old_log(tmp_path) -> None:
    logged(tmp_path / "new.db", Own(RandomSearcher(SPACE), 4, 2), told=True)
    assert Results.open(tmp_path / "new.db", "one").summary["alpha"] == 1
    assert AttachedStudy(tmp_path / "new.db", "one").progress.n_trials == 4
    logged(tmp_path / "old.db", Own(RandomSearcher(SPACE), 4, 2), told=False)
    results = Results.open(tmp_path / "old.db", "one")
    assert results.size == Size()
    assert results.summary["alpha"] is None
    assert "completion rate  unknown: its record does not tell" in str(results)
    said = str(AttachedStudy(tmp_path / "old.db", "one").progress)
    assert "trials: of unknown number, 4 started, 4 ended · phases: 8" in said
    assert 'id="settings"' in results.write_report(tmp_path / "r.html").read_text()


def test_a_run_tells_its_size_in_its_first_event_only(client, tmp_path) -> None:
    study = Study("real", Hyperband(RandomSearcher(SPACE), 2, eta=2), Deterministic, tmp_path / "kb.db", client=client)
    study.run()
    study.run(resume=True)
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        events = kb["real"].events()
    (began,) = (e for e in events if e.kind is Kind.STUDY_STARTED)
    assert read_back(Size, began.data["size"]) == size_of(study.scheduler)
    assert all("size" not in e.data for e in events if e.kind is Kind.STUDY_RESUMED)


def test_the_completion_rate_of_a_simulated_and_of_a_logged_study_is_one_number(tmp_path) -> None:
    from tests.support import RandomTimes

    for name, make in SCHEDULERS.items():
        scheduler = make(RandomSearcher(SPACE))
        events: list[Event] = []
        outcome = play(scheduler, RandomTimes(), events=events)
        log = StudyLog(tmp_path / "kb.db", name, Study(name, scheduler, Deterministic, tmp_path / "kb.db").spec)
        log.append([Event(Kind.STUDY_STARTED, 0.0), *events])
        log.close()
        assert Results.open(tmp_path / "kb.db", name).summary["alpha"] == outcome.completion_rate


@pytest.mark.parametrize("name", ["pong-hyperband", "pong-hypertrick", "pong-tuned"])
def test_recordings_tell_their_size(name) -> None:
    results = Results.of_recording(DATA / name)
    assert results.size == size_of_record(results.spec) != Size()
    assert 0 < results.summary["alpha"] <= 1


def test_an_old_log_is_read_beside_a_damaged_record(tmp_path) -> None:
    logged(tmp_path / "kb.db", FullRuns(RandomSearcher(SPACE), 2, 1), told=False)
    with contextlib.closing(sqlite3.connect(tmp_path / "kb.db")) as connection, connection:
        connection.execute("UPDATE studies SET spec = json_remove(spec, '$.scheduler.searcher')")
    assert AttachedStudy(tmp_path / "kb.db", "one").progress.n_trials is None


def left_without_losses(size, began, completed):
    """Give `phases_left` where every trial that began a phase is in it still or has completed it."""
    under_way = [b - c for b, c in zip(began, completed, strict=True)]
    waiting = [max(c - b, 0) for c, b in zip_longest(completed, began[1:], fillvalue=0)]
    return size.phases_left(began, completed, under_way, waiting)


def test_phases_left_by_hand() -> None:
    size = size_of(HyperTrick(RandomSearcher(SPACE), 12, 3))  # 12, 9, 6.75 begin a phase, 6 and 5 at least
    assert left_without_losses(size, [0, 0, 0], [0, 0, 0]) == (27.75, 27.75)
    # four are to come; of two that had to be judged none went on. As expected half of those would: 4 + 6 + 5.4375
    assert left_without_losses(size, [8, 6, 0], [8, 2, 0]) == (4 + 4 + 5, 4 + 6 + 5 + 1 * 1.75 / 4)
    assert left_without_losses(size, [12, 9, 7], [12, 9, 7]) == (0, 0)
    assert left_without_losses(size, [13, 9, 7], [13, 9, 7]) == (0, 0)  # one more than there were to be


def test_phases_left_where_fewer_are_expected_than_go_on_in_any_case() -> None:
    """Of three trials 0.75 are expected in the third phase, though one goes on whatever its score."""
    size = size_of(HyperTrick(RandomSearcher(SPACE), 3, 4, 0.5))
    assert (size.began, size.fewest) == ((3, 1.5, 0.75, 0.375), (3, 1, 1, 1))
    assert left_without_losses(size, [0, 0, 0, 0], [0, 0, 0, 0]) == (3 + 1.5 + 1 + 1, 3 + 1.5 + 1 + 1)
    # one of three has passed the third phase, as one must; of the other two none goes on, or all as of those before
    assert left_without_losses(size, [3, 3, 3, 1], [3, 3, 1, 0]) == (3, 5)


def test_trials_that_are_lost_run_no_more() -> None:
    """Three trials of two phases: one fails at once, a person stops another in its second phase."""
    size, asked = size_of(FullRuns(RandomSearcher(SPACE), 3, 2)), {"config": {}, "seed": 0, "parent": None}
    lost = [Event(Kind.RUN, 0.0, trial, 0, data=asked) for trial in range(3)]
    lost.append(Event(Kind.TRIAL_FAILED, 1.0, 0, 0, data={"error": "diverged"}))
    assert Ledger(lost).phases_left(size) == (4, 4)
    for trial in (1, 2):
        lost.append(Event(Kind.PHASE_ENDED, 1.0, trial, 0, 0, {"score": 1.0, "checkpoint": "x"}))
        lost.append(Event(Kind.DECISION, 1.0, trial, 0, data={"verdict": "continue", "mode": "full"}))
    assert Ledger(lost).phases_left(size) == (2, 2)
    lost.append(Event(Kind.TRIAL_STOPPED, 2.0, 1, 1, data={"by": "person"}))
    assert Ledger(lost).phases_left(size) == (1, 1)
    assert Ledger(lost).expected_phases(size) == 3


def test_trials_that_are_stopped_early_run_no_more() -> None:
    """How many phases the median saves is not known beforehand, and is once it has stopped a trial."""
    size = size_of(MedianStopping(RandomSearcher(SPACE), 12, 5))
    log = simulate(MedianStopping(RandomSearcher(SPACE), 12, 5), slots=1)
    stops = [place for place, event in enumerate(log) if event.data.get("verdict") == "stop"]
    phases = [log[place].phase + 1 for place in stops]
    assert sum(phases) < size.expected_phases == 60
    for over, place in enumerate(stops, 1):
        assert Ledger(log[: place + 1]).phases_left(size) == (60 - 5 * over,) * 2
    assert Ledger(log).expected_phases(size) == sum(phases)


def test_those_that_go_on_in_any_case_are_no_more_than_can() -> None:
    size = size_of(HyperTrick(RandomSearcher(SPACE), 12, 3))  # 12, 9, 6.75 begin a phase, 6 and 5 at least
    assert size.phases_left([12, 4, 4], [4, 4, 4], [0, 0, 0], [0, 0, 0]) == (0, 0)  # eight were lost
    # six were lost, one has gone on, four wait and one is under way: five more of the six that must
    assert size.phases_left([12, 1, 0], [5, 0, 0], [1, 1, 0], [4, 0, 0]) == (1 + 6 + 5 + 1.75 / 4,) * 2


def test_phases_expected_in_all_are_those_ended_and_the_middle_of_what_is_left(monkeypatch) -> None:
    size, ledger = Size(expected_phases=20.0), Ledger()
    ledger.phases_ended = 3
    monkeypatch.setattr(ledger, "phases_left", lambda size: (2.0, 6.0))
    assert ledger.expected_phases(size) == 7.0
    monkeypatch.setattr(ledger, "phases_left", lambda size: None)
    assert ledger.expected_phases(size) == 20.0


POPULATIONS = {
    "pbt": PBT(SPACE, 6, 5, share=0.34),
    "mfpbt": MFPBT(SPACE, population=6, n_phases=5, intervals=(1, 2)),
    "explore only": PBT(SPACE, 6, 5, exploit="none"),
    "seeded": Seeded(PBT(SPACE, 3, 5), seeds=2),
}


@pytest.mark.parametrize("name", POPULATIONS)
def test_of_a_population_as_many_phases_are_expected_whoever_copies_whom(name) -> None:
    scheduler, ledger = POPULATIONS[name], Ledger()
    size = size_of(scheduler)
    assert size.may_be_fewer
    for event in simulate(scheduler, slots=4):
        ledger.see(event)
        assert ledger.expected_phases(size) == 30
    assert ledger.phases_ended == 30
    assert "trials: at most 30, " in str(Progress(size))


@pytest.mark.parametrize("name", ["hyperband", "asha"])
def test_trials_that_come_in_any_case_run_a_phase_at_least(name) -> None:
    scheduler = SCHEDULERS[name](RandomSearcher(SPACE))
    size, ledger = size_of(scheduler), Ledger()
    assert not size.may_be_fewer
    assert "at most" not in str(Progress(size))
    for event in simulate(scheduler, slots=4):
        ledger.see(event)
        low, _ = ledger.phases_left(size)
        assert low >= size.n_trials - len(ledger) + ledger.n_in(TrialState.RUNNING) - (event.kind is Kind.PHASE_ENDED)


@pytest.mark.parametrize("told", [True, False], ids=["trials expected by phase", "phases expected in all"])
def test_phases_that_people_ask_for_are_left_besides_the_scheduler_s(told) -> None:
    size = size_of(FullRuns(RandomSearcher(SPACE), 3, 2))
    size = size if told else replace(size, began=(), fewest=())

    def run(trial: int, **more) -> list[Event]:
        data = {"config": {}, "seed": 0, "parent": None, **more}
        return [Event(Kind.RUN, 0.0, trial, 0, data=data), Event(Kind.PHASE_STARTED, 0.0, trial, 0, 0)]

    def ended(trial: int, phase: int, verdict: str) -> list[Event]:
        end = Event(Kind.PHASE_ENDED, 1.0, trial, phase, 0, {"score": 1.0, "checkpoint": "x"})
        return [end, Event(Kind.DECISION, 1.0, trial, phase, data={"verdict": verdict, "mode": "extended"})]

    by_person = {"clone_of": 0, "own_phases": 2, "by": "person"}
    log = [*run(0), *ended(0, 0, "continue"), *ended(0, 1, "stop"), *run(1)]  # four phases are left
    assert Ledger(log).phases_left(size) == (4, 4)
    log += [*run(3, **by_person), *run(4, **by_person, confirms=True)]
    assert Ledger(log).phases_left(size) == (4 + 4, 4 + 4)
    log += ended(3, 0, "continue")
    log.append(Event(Kind.INTERVENTION, 1.0, 0, data={"action": "extend", "accepted": True, "phases": 3}))
    assert Ledger(log).phases_left(size) == (4 + 3 + 3, 4 + 3 + 3)
    log += [*ended(0, 2, "continue"), *ended(3, 1, "stop"), Event(Kind.TRIAL_STOPPED, 1.0, 4, 0, data={})]
    assert Ledger(log).phases_left(size) == (4 + 2, 4 + 2)
    assert Ledger(log).expected_phases(size) == 5 + 6


def left_at(share: float, trainable) -> tuple[int, int, tuple[float, float], float]:
    """Run HyperTrick's 46 configurations on 2 slots up to a share of its phases: left, ended, estimate, expected."""
    scheduler = HyperTrick(RandomSearcher(SPACE), 46, 27, 0.1085)
    events: list[Event] = []
    play(scheduler, trainable, VirtualCluster(nodes=2), events=events)
    ends = [place for place, event in enumerate(events) if event.kind is Kind.PHASE_ENDED]
    size, done = size_of(scheduler), int(len(ends) * share)
    ledger = Ledger(events[: ends[done - 1] + 2])  # its decision too
    return len(ends) - done, done, ledger.phases_left(size), size.expected_phases


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_what_is_left_follows_a_study_whose_trials_last(share) -> None:
    """Who is good stays good: far more trials go on than Eq. 9 expects, which draws ranks anew in every phase."""
    left, done, (low, high), expected = left_at(share, Scored(lambda job: np.random.default_rng(job.seed)))
    assert left > expected - done  # by that, nothing would be left after six tenths
    assert abs((low + high) / 2 - left) <= abs(expected - done - left) + 1e-6
    assert left / 2.2 < high < left * 2.2


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_what_is_left_agrees_with_eq_9_where_ranks_are_drawn_anew(share) -> None:
    left, *_, (low, high), _ = left_at(share, Scored(lambda job: np.random.default_rng([job.seed, job.phase])))
    assert left * 0.7 < low <= high < left * 1.5


@dataclass
class Scored:
    """Phases of a second, scored by a draw."""

    generator: Callable[[Job], np.random.Generator]

    def run(self, job: Job) -> Ran:
        return Ran(1.0, {"score": float(self.generator(job).normal())})
