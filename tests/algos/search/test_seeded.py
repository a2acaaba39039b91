"""Seeds of one configuration, worked by hand; what holds for every scheduler is in the contract."""

import math

import pytest

from tests.algos.search.arena import asked
from tests.support import SPACE, MemoryLog, RandomTimes, virtual_executor
from workbench.algos.search import (
    PBT,
    CostAwareSearcher,
    FullRuns,
    HyperTrick,
    ListSearcher,
    RandomSearcher,
    Seeded,
    SuccessiveHalving,
    Sure,
)
from workbench.analysis import lineage
from workbench.core.domains import Uniform
from workbench.core.drive import drive
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Kind, Report, Verdict
from workbench.knowledge.frames import frames_of

CONFIGS = [{"lr": 10.0**-n} for n in range(4)]


def verdicts(told) -> dict[int, str]:
    return {trial: str(decision.verdict) for trial, decision in told.items()}


def test_one_candidate_by_hand() -> None:
    """Two seeds: the first to end a phase is paused, the second settles it for both."""
    seeded = Seeded(FullRuns(ListSearcher(CONFIGS), 2, 2), 2)
    assert (seeded.n_trials, seeded.n_phases, seeded.expected_phases, seeded.n_configs) == (4, 2, 8, 4)
    first, second, third = (seeded.ask() for _ in range(3))
    assert [(run.trial, run.config, run.candidate) for run in (first, second, third)] == [
        (0, CONFIGS[0], 0),
        (1, CONFIGS[0], 0),
        (2, CONFIGS[1], 1),
    ]
    assert verdicts(seeded.tell(Report(0, 0, 1.0))) == {0: "pause"}
    told = seeded.tell(Report(1, 0, 3.0))
    assert verdicts(told) == {1: "continue"}
    assert told[1].reason == {"mode": "full", "candidate": 0}
    assert seeded.ask().trial == 3, "in the order of lining up: the second seed of candidate 1 came before"
    again = seeded.ask()
    assert (again.trial, again.parent, again.phase, again.candidate) == (0, 0, 1, 0)
    assert verdicts(seeded.tell(Report(1, 1, 2.0))) == {1: "pause"}
    assert verdicts(seeded.tell(Report(0, 1, 2.0))) == {0: "stop", 1: "stop"}


def test_a_seed_that_failed_makes_its_configuration_no_cheaper() -> None:
    """Two configurations whose phases take as long: of the second, better one a single seed of three is left."""
    seeded = asked(Seeded(FullRuns(searcher := CostAwareSearcher(SPACE), 2, 2), 3), 6)
    for trial, score in enumerate([1.0, 1.0, 1.0, 2.0, math.nan, math.nan]):
        seeded.tell(Report(trial, 0, score, failed=math.isnan(score), seconds=2.0))
    assert searcher.front() == {1: (6.0, 0.75)}


def test_a_repetition_that_its_scheduler_asks_for_belongs_to_the_candidate_it_repeats() -> None:
    """Two configurations, two seeds each: candidate 1 is the better, and Sure repeats it with two more trials."""
    seeded = Seeded(Sure(ListSearcher(CONFIGS), 2, 2, finalists=1, seeds=2), 2)
    runs = [seeded.ask() for _ in range(4)]
    for phase in range(2):
        for trial in range(4):
            seeded.tell(Report(trial, phase, float(trial)))
        runs += [] if phase else [seeded.ask(), seeded.ask()]
    assert [run.candidate for run in runs] == [0, 0, 1, 1, 0, 1]
    repeats = [seeded.ask(), seeded.ask()]
    assert [(run.trial, run.config, run.candidate) for run in repeats] == [(4, CONFIGS[1], 1), (5, CONFIGS[1], 1)]
    assert seeded.tell(Report(4, 0, 2.0))[4].reason["candidate"] == 1
    why = seeded.tell(Report(5, 0, 2.0))[5].reason
    assert (why["candidate"], why["repeats"]) == (1, 3)  # 3 is the second trial of that candidate, as 5 is of its own
    assert Seeded.explain(why, Sure.explain) == "repeating: the configuration of trial 3, with another seed"
    again = seeded.ask()
    assert (again.trial, again.candidate) == (4, 1)


@pytest.mark.parametrize(("judged_by", "winner"), [("mean", 1), ("median", 0)])
def test_candidates_are_judged_by_all_their_seeds(judged_by, winner) -> None:
    """Scores 5 5 0 against 4 4 4: the median prefers the first, the mean the second."""
    seeded = Seeded(SuccessiveHalving(ListSearcher(CONFIGS[:2]), 2, 2, eta=2), 3, judged_by)
    runs = [seeded.ask() for _ in range(6)]
    told = {}
    for run, score in zip(runs, (5, 5, 0, 4, 4, 4), strict=True):
        told |= seeded.tell(Report(run.trial, 0, float(score)))
    stopped = {trial for trial, decision in told.items() if decision.verdict is Verdict.STOP}
    assert stopped == ({0, 1, 2} if winner == 1 else {3, 4, 5})
    on = [seeded.ask() for _ in range(2)]
    assert {run.candidate for run in on if run is not None} <= {winner}


def test_a_failed_seed_leaves_the_candidate_to_the_others_and_the_last_one_fails_it() -> None:
    seeded = asked(Seeded(FullRuns(ListSearcher(CONFIGS), 1, 3), 2), 2)
    assert verdicts(seeded.tell(Report(0, 0, 1.0))) == {0: "pause"}
    told = seeded.tell(Report(1, 0, math.nan, failed=True))
    assert verdicts(told) == {1: "stop"}
    assert (run := seeded.ask()) is not None, "the one that is left goes on alone"
    assert (run.trial, run.phase) == (0, 1)
    assert verdicts(seeded.tell(Report(0, 1, 1.0))) == {0: "continue"}
    assert verdicts(seeded.tell(Report(0, 2, math.nan, failed=True))) == {0: "stop"}
    assert seeded.ask() is None


def test_what_binds_trials_to_slots_is_refused_with_the_way_out() -> None:
    rule = SuccessiveHalving(RandomSearcher(SPACE), 4, 4, eviction_rate=0.3, allocation="static", n_nodes=2)
    with pytest.raises(InvalidInput, match=r"binds trials to slots.*leave out seeds"):
        Seeded(rule, 2).ask()


def test_settings_are_checked() -> None:
    rule = HyperTrick(RandomSearcher(SPACE), 4, 3)
    with pytest.raises(InvalidInput, match="seeds a whole number from 1 to 1000000, got 0"):
        Seeded(rule, 0)
    with pytest.raises(InvalidInput, match="unknown judged_by 'best'; known: iqm, mean, median"):
        Seeded(rule, 2, "best")
    with pytest.raises(InvalidInput, match=r"a scheduler is an object such as HyperTrick\(…\), got 'hypertrick'"):
        Seeded("hypertrick", 2)


@pytest.mark.parametrize("order", [[3, 4, 5, 0, 1, 2], [5, 4, 3, 0, 1, 2]])
def test_a_t_test_hears_all_seeds_whoever_reported_last(order) -> None:
    """Two of the second candidate's three seeds are far above the first candidate's; its last is as low as these."""
    seeded = Seeded(PBT({"lr": Uniform(0.1, 1)}, 2, 6, exploit="t-test", last_scores=12), 3)
    runs, told = [seeded.ask() for _ in range(6)], {}
    high = {run.trial: run.candidate == 1 and run.trial != 5 for run in runs}
    for trial in order:
        returns = tuple(100.0 * high[trial] + k for k in range(10))
        told |= seeded.tell(Report(trial, 0, sum(returns) / 10, False, returns))
    compared = seeded.scheduler._members[1].returns
    assert sum(compared) / len(compared) == pytest.approx(7.5 + 200 / 3)  # the last four of each
    assert told[2].verdict is Verdict.STOP
    asked = [seeded.ask() for _ in range(5)]  # two of the donor's go on first
    assert [run.parent for run in asked if run.trial > 5] == [3, 4, 5]


def test_a_seed_that_failed_after_it_was_copied_is_still_whose_weights_the_copy_has() -> None:
    """The stop named it, and its checkpoint was judged with the others'."""
    seeded = asked(Seeded(PBT({"lr": Uniform(0.1, 1)}, 2, 4, share=0.5), 2), 4)
    told = {}
    for trial, score in enumerate([5.0, 5.0, 1.0, 1.0]):
        told |= seeded.tell(Report(trial, 0, score))
    assert [told[trial].reason["donor"] for trial in (2, 3)] == [0, 1]
    assert verdicts(seeded.tell(Report(1, 1, math.nan, failed=True))) == {1: "stop"}
    assert [(run.trial, run.parent) for run in (seeded.ask() for _ in range(3))] == [(0, 0), (4, 0), (5, 1)]


def test_reasons_name_trials_where_a_copy_begins() -> None:
    log, scheduler = MemoryLog(), Seeded(PBT(SPACE, 4, 5, share=0.25), 3)
    executor = virtual_executor(RandomTimes(1), 5)
    assert drive(scheduler, executor, log)
    runs = {e.trial: e.data for e in log if e.kind is Kind.RUN and e.data["parent"] != e.trial}
    copies = [data for data in runs.values() if data["parent"] is not None]
    stops = [e for e in log if e.kind is Kind.DECISION and "donor" in e.data and e.data["verdict"] == "stop"]
    assert len(stops) == len(copies) > 6
    assert sorted(e.data["donor"] for e in stops) == sorted(data["parent"] for data in copies)
    frames = frames_of(log)
    known = lineage(frames.trials, frames.phases, frames.decisions)
    assert known["member"].nunique() == 12
    repeated = Seeded(SuccessiveHalving(ListSearcher(CONFIGS), 4, 4, eta=2, restart=True), 2)
    told, log = {}, MemoryLog()
    assert drive(repeated, virtual_executor(RandomTimes(1), 8), log)
    configs = {e.trial: e.data["config"] for e in log if e.kind is Kind.RUN}
    told = [(e.trial, e.data["repeats"]) for e in log if e.kind is Kind.DECISION and "repeats" in e.data]
    assert told
    assert all(configs[trial] == configs[first] for trial, first in told)
