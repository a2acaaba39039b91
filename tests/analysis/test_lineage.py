"""Lineages, worked by hand on a population of three, and against the scheduler's own books."""

from dataclasses import replace
from functools import partial

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import SPACE, MemoryLog, RandomTimes, virtual_executor
from workbench.algos.search import MFPBT, PBT, RandomSearcher, Seeded
from workbench.analysis import ancestry, best_trial, lineage, phylogeny, schedule_of, schedules
from workbench.core.drive import drive
from workbench.core.protocols import Event, Kind, Scheduler
from workbench.knowledge import frames_of
from workbench.simulation.cluster import Hazards, VirtualCluster


def _run(at: float, trial: int, phase: int, x: float, parent: int | None = None) -> Event:
    return Event(Kind.RUN, at, trial, phase, None, {"config": {"x": x}, "parent": parent, "seed": trial})


def _phase(start: float, end: float, trial: int, phase: int, slot: int, score: float) -> list[Event]:
    return [
        Event(Kind.PHASE_STARTED, start, trial, phase, slot),
        Event(Kind.PHASE_ENDED, end, trial, phase, slot, {"score": score, "metrics": {"score": score}}),
    ]


def _of(candidate: int, run: Event) -> Event:
    return replace(run, data={**run.data, "candidate": candidate})


def _told(at: float, trial: int, phase: int, verdict: str, mode: str, **reason: int) -> Event:
    return Event(Kind.DECISION, at, trial, phase, None, {"verdict": verdict, "mode": mode, **reason})


def _driven(scheduler: Scheduler, seed: int, n_slots: int, crash_rate: float) -> MemoryLog:
    log = MemoryLog()
    hazards = Hazards(crash_rate=crash_rate, max_retries=0)
    executor = virtual_executor(RandomTimes(seed), VirtualCluster(n_slots, hazards=hazards, seed=seed))
    assert drive(scheduler, executor, log, seed=seed)
    return log


# Three members on three slots. Trial 2 is the worst after its first phase and copies trial 0 when that has done one
# phase; it goes on as trial 3. Trial 1 copies trial 3's weights after its second phase, as trial 4. Trial 0 goes on.
EVENTS = [
    *(Event(Kind.SLOT_JOINED, 0.0, slot=slot, data={"node": "a"}) for slot in range(3)),
    *(_run(0.0, trial, 0, float(trial)) for trial in range(3)),
    *_phase(0.0, 10.0, 0, 0, 0, 5.0),
    _told(10.0, 0, 0, "continue", "kept"),
    *_phase(0.0, 11.0, 1, 0, 1, 4.0),
    _told(11.0, 1, 0, "continue", "kept"),
    *_phase(0.0, 12.0, 2, 0, 2, 1.0),
    _told(12.0, 2, 0, "stop", "exploited", member=2, donor=0),
    _run(12.0, 3, 1, 0.8, parent=0),
    *_phase(12.0, 20.0, 3, 1, 2, 7.0),
    _told(20.0, 3, 1, "continue", "kept"),
    *_phase(10.0, 21.0, 0, 1, 0, 6.0),
    _told(21.0, 0, 1, "continue", "kept"),
    *_phase(11.0, 22.0, 1, 1, 1, 2.0),
    _told(22.0, 1, 1, "stop", "exploited", member=1, donor=3),
    _run(22.0, 4, 2, 0.96, parent=3),
    *_phase(22.0, 30.0, 4, 2, 1, 9.0),
    _told(30.0, 4, 2, "stop", "finished"),
    *_phase(20.0, 31.0, 3, 2, 2, 8.0),
    _told(31.0, 3, 2, "stop", "finished"),
    *_phase(21.0, 32.0, 0, 2, 0, 6.5),
    _told(32.0, 0, 2, "stop", "finished"),
]


@pytest.fixture
def frames():
    return frames_of(EVENTS)


@pytest.fixture
def known(frames):
    return lineage(frames.trials, frames.phases, frames.decisions)


def test_members_parents_and_founders(known) -> None:
    columns = ["trial", "member", "previous", "parent", "parent_phase", "first_phase", "last_phase", "founder"]
    rows = [[None if pd.isna(v) else int(v) for v in row] for row in known[columns].itertuples(index=False)]
    assert rows == [
        [0, 0, None, None, None, 0, 2, 0],
        [1, 1, None, None, None, 0, 1, 1],
        [2, 2, None, None, None, 0, 0, 2],
        [3, 2, 2, 0, 0, 1, 2, 0],
        [4, 1, 1, 3, 1, 2, 2, 0],
    ]
    assert known["copied"].tolist() == [False, False, False, True, True]


def test_the_schedule_of_every_member(frames, known) -> None:
    table = schedules(known, frames.trials, frames.phases, ["x"])
    assert table[["member", "phase", "trial", "score", "x"]].to_numpy().tolist() == [
        [0, 0, 0, 5.0, 0.0],
        [0, 1, 0, 6.0, 0.0],
        [0, 2, 0, 6.5, 0.0],
        [1, 0, 1, 4.0, 1.0],
        [1, 1, 1, 2.0, 1.0],
        [1, 2, 4, 9.0, 0.96],
        [2, 0, 2, 1.0, 2.0],
        [2, 1, 3, 7.0, 0.8],
        [2, 2, 3, 8.0, 0.8],
    ]
    assert best_trial(table) == 4
    assert best_trial(table, "min") == 0
    unscored = table["score"].where(table["trial"] != 4)  # its member stands where its last score was
    assert best_trial(table.assign(score=unscored)) == 3


def test_a_trial_that_was_extended_is_its_member_no_more_where_that_goes_on_as_another() -> None:
    """Trial 2 runs on for a person, beside trial 3 that its member is now; further than any, and not as well."""
    extends = Event(Kind.INTERVENTION, 13.0, 2, data={"action": "extend", "accepted": True, "phases": 4})
    beyond = [event for k in range(4) for event in _phase(33.0 + k, 34.0 + k, 2, k + 1, 2, 7.5)]
    frames = frames_of(sorted([*EVENTS, extends, *beyond], key=lambda event: event.at))
    known = lineage(frames.trials, frames.phases, frames.decisions)
    table = schedules(known, frames.trials, frames.phases, ["x"])
    of_member = table[table["member"] == 2]
    assert of_member[["phase", "trial", "score"]].to_numpy().tolist() == [[0, 2, 1.0], [1, 3, 7.0], [2, 3, 8.0]]
    assert best_trial(table[table["member"] != 1]) == 3


def test_of_two_heirs_of_one_donor_each_goes_on_where_its_own_member_was() -> None:
    """Who is behind is asked for first, though it was stopped later."""
    events = [
        *(_run(0.0, trial, 0, float(trial)) for trial in range(3)),
        *_phase(0.0, 9.0, 0, 0, 0, 5.0),
        *_phase(0.0, 4.0, 1, 0, 1, 4.0),
        *_phase(4.0, 10.0, 1, 1, 1, 4.0),
        _told(10.0, 1, 1, "stop", "exploited", member=1, donor=0),
        *_phase(0.0, 11.0, 2, 0, 2, 1.0),
        _told(11.0, 2, 0, "stop", "exploited", member=2, donor=0),
        *(_run(11.0, 3, 1, 0.8, parent=0), *_phase(11.0, 20.0, 3, 1, 1, 6.0)),
        *(_run(11.0, 4, 2, 1.2, parent=0), *_phase(11.0, 20.0, 4, 2, 2, 7.0)),
    ]
    frames = frames_of(events)
    known = lineage(frames.trials, frames.phases, frames.decisions)
    assert known["member"].tolist() == [0, 1, 2, 2, 1]
    assert known["previous"].tolist()[3:] == [2, 1]


def test_an_heir_that_has_not_begun_stands_where_it_will() -> None:
    frames = frames_of(EVENTS[:16])  # up to the run of trial 3
    known = lineage(frames.trials, frames.phases, frames.decisions)
    assert known["first_phase"].tolist() == [0, 0, 0, 1]
    assert phylogeny(known)["x1"].tolist() == [1, 1, 1, 1]


def test_who_goes_on_with_its_own_weights_has_copied_nobody() -> None:
    explored = _told(9.0, 0, 0, "stop", "explored", member=0, donor=0)
    events = [_run(0.0, 0, 0, 1.0), *_phase(0.0, 9.0, 0, 0, 0, 5.0), explored, _run(9.0, 1, 1, 1.2, parent=0)]
    frames = frames_of(events)
    known = lineage(frames.trials, frames.phases, frames.decisions)
    assert known[["member", "parent", "copied"]].to_numpy().tolist()[1] == [0, 0, False]


def test_the_best_weights_schedule_follows_the_weights_not_the_member(frames, known) -> None:
    """Trial 4's weights: trial 0's first phase, trial 3's phase 1, its own phase 2."""
    assert ancestry(known, 4).to_numpy().tolist() == [[0, 0, 0], [1, 3, 1], [2, 4, 2]]
    table = schedule_of(4, known, frames.trials, frames.phases, ["x"])
    assert table["x"].tolist() == [0.0, 0.8, 0.96]
    assert table["score"].tolist() == [5.0, 7.0, 9.0]


def test_the_tree_is_laid_out_without_crossings(known) -> None:
    tree = phylogeny(known, best=4).set_index("trial")
    assert tree["y"].to_dict() == {0: 0, 3: 1, 4: 2, 1: 3, 2: 4}
    assert tree.loc[3, ["x0", "x1", "from_x", "from_y"]].tolist() == [1, 3, 1, 0]
    assert tree.loc[4, ["x0", "x1", "from_x", "from_y"]].tolist() == [2, 3, 2, 1]
    assert tree.index[tree["best"]].tolist() == [0, 3, 4]
    assert tree.index[tree["survives"]].tolist() == [0, 3, 4]


def test_a_study_without_copies_and_one_without_trials() -> None:
    frames = frames_of(EVENTS[:6])
    alone = lineage(frames.trials, frames.phases, frames.decisions)
    assert alone["member"].tolist() == [0, 1, 2]
    assert not alone["copied"].any()
    assert phylogeny(alone)["from_x"].isna().all()
    empty = frames_of([])
    none = lineage(empty.trials, empty.phases, empty.decisions)
    assert none.empty
    assert phylogeny(none).empty
    assert schedules(none, empty.trials, empty.phases, []).empty
    assert best_trial(schedules(none, empty.trials, empty.phases, [])) is None


def test_where_a_seed_has_failed_its_heir_goes_on_for_it_and_no_later_stop_is_taken() -> None:
    """The log names no donor for a trial that failed: neither where the other seed lived on, nor where none did."""
    events = [
        *(_of(trial // 2, _run(0.0, trial, 0, float(trial // 2))) for trial in range(6)),
        *(event for trial in (0, 1) for event in _phase(0.0, 9.0, trial, 0, trial, 5.0)),
        _told(9.0, 0, 0, "pause", "seeds", candidate=0),
        _told(9.0, 1, 0, "continue", "kept", candidate=0),
        *_phase(0.0, 10.0, 2, 0, 2, 1.0),
        _told(10.0, 2, 0, "stop", "exploited", member=1, donor=0, candidate=1),
        _told(10.0, 3, 0, "stop", "failed", candidate=1),
        *(_of(3, _run(10.0, trial, 1, 0.8, parent)) for trial, parent in ((6, 0), (7, 1))),
        *(_told(11.0, trial, 0, "stop", "failed", candidate=2) for trial in (4, 5)),
        *(_of(4, _run(11.0, trial, 1, 1.2, parent)) for trial, parent in ((8, 0), (9, 1))),
        *(event for trial in (6, 7, 8, 9) for event in _phase(12.0, 20.0, trial, 1, trial, 2.0)),
        *(_told(20.0, trial, 1, "stop", "exploited", member=1, donor=trial % 2, candidate=3) for trial in (6, 7)),
    ]
    frames = frames_of(events)
    known = lineage(frames.trials, frames.phases, frames.decisions)
    assert known["member"].tolist() == [0, 1, 2, 3, 4, 5, 2, 3, 4, 5]
    assert known["previous"].tolist()[6:] == [2, 3, 4, 5]
    assert known["first_phase"].tolist()[6:] == [1, 1, 1, 1]


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 500),
    n_slots=st.integers(1, 8),
    population=st.integers(1, 7),
    exploit=st.sampled_from(["truncation", "tournament", "none"]),
    copy_config=st.booleans(),
    crash_rate=st.sampled_from([0.0, 0.3]),
)
def test_members_are_those_of_the_scheduler_and_every_weight_has_a_history(
    seed, n_slots, population, exploit, copy_config, crash_rate
) -> None:
    """Whatever the order of reports and failures, the frames say what the scheduler knew."""
    scheduler = PBT(
        RandomSearcher(SPACE, seed=seed),
        population,
        4,
        exploit=exploit,
        share=0.4,
        copy_config=copy_config,
        seed=seed,
    )
    log = _driven(scheduler, seed, n_slots, crash_rate)
    frames = frames_of(log)
    known = lineage(frames.trials, frames.phases, frames.decisions)
    wanted = {trial: member.index for trial, member in scheduler._member_of.items()}
    assert dict(zip(known["trial"], known["member"], strict=True)) == wanted
    checkpoints = {e.data["checkpoint"] for e in log if e.kind is Kind.PHASE_ENDED}
    for trial in known["trial"]:
        for row in ancestry(known, int(trial)).itertuples():
            assert f"virtual:trial-{row.trial}/phase-{row.phase}" in checkpoints
    if len(known):
        phylogeny(known, int(known["trial"].iloc[-1]))


@pytest.mark.parametrize("exploit", ["truncation", "tournament", "none"])
@pytest.mark.parametrize("n_slots", [1, 5, 9])
@pytest.mark.parametrize("crash_rate", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("kind", [PBT, partial(MFPBT, intervals=(1, 2))], ids=["pbt", "mfpbt"])
def test_with_several_seeds_members_are_those_of_the_scheduler_whichever_trials_fail(
    kind, exploit, n_slots, crash_rate
) -> None:
    for seed in range(2):
        population = kind(SPACE, 4, 4, exploit=exploit, share=0.5, copy_weights=seed % 2 == 0, seed=seed)
        scheduler = Seeded(population, 2)
        frames = frames_of(_driven(scheduler, seed, n_slots, crash_rate))
        known = lineage(frames.trials, frames.phases, frames.decisions)
        wanted = {trial: population._member_of[of.inner].index for trial, of in scheduler._candidate_of.items()}
        found = {(member, wanted[trial]) for trial, member in zip(known["trial"], known["member"], strict=True)}
        assert len(found) == known["member"].nunique() == 8
        assert not schedules(known, frames.trials, frames.phases, []).duplicated(["member", "phase"]).any()
