import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.algos.search.arena import answers, asked, play
from tests.support import SPACE, simulate
from workbench.algos.search import ListSearcher, RandomSearcher, SuccessiveHalving
from workbench.algos.search.rungs import Rung
from workbench.core.errors import InvalidInput, SchedulerError
from workbench.core.protocols import Kind, Report

SEARCHER = RandomSearcher(SPACE)


def test_preempting_pauses_at_the_barrier_and_resumes_the_best_first() -> None:
    """Four trials, eta 2, on two nodes, worked by hand: 3 and 1 survive the first rung, 3 the second."""
    scheduler = SuccessiveHalving(SEARCHER, 4, 4, eta=2)
    assert scheduler.rungs == [Rung(4, 1), Rung(2, 2), Rung(1, 4)]
    assert [scheduler.ask().trial for _ in range(2)] == [0, 1]
    assert answers(scheduler, 1, 0, 5.0) == {1: ("pause", "waiting")}
    assert scheduler.ask().trial == 2
    assert answers(scheduler, 0, 0, 1.0) == {0: ("pause", "waiting")}
    assert scheduler.ask().trial == 3
    assert scheduler.ask() is None
    assert answers(scheduler, 3, 0, 6.0) == {3: ("pause", "waiting")}
    assert answers(scheduler, 2, 0, 2.0) == {
        3: ("pause", "promoted"),
        1: ("pause", "promoted"),
        2: ("stop", "dropped"),
        0: ("stop", "dropped"),
    }
    runs = [scheduler.ask(), scheduler.ask()]
    assert [(r.trial, r.parent, r.phase) for r in runs] == [(3, 3, 1), (1, 1, 1)]
    assert scheduler.ask() is None
    assert answers(scheduler, 1, 1, 0.0) == {1: ("pause", "waiting")}
    assert answers(scheduler, 3, 1, 1.0) == {3: ("continue", "promoted"), 1: ("stop", "dropped")}
    assert answers(scheduler, 3, 2, 1.0) == {3: ("continue", "rung")}
    assert answers(scheduler, 3, 3, 1.0) == {3: ("stop", "finished")}


def test_reasons_count_places_from_1_and_who_has_come_so_far() -> None:
    scheduler = asked(SuccessiveHalving(SEARCHER, 3, 3), 3)
    assert [scheduler.tell(Report(t, 0, s))[t].reason["reported"] for t, s in ((0, 1.0), (1, 3.0))] == [1, 2]
    told = scheduler.tell(Report(2, 0, 2.0))
    assert {trial: decision.reason["place"] for trial, decision in told.items()} == {1: 1, 2: 2, 0: 3}
    assert {(decision.reason["reported"], decision.reason["kept"]) for decision in told.values()} == {(3, 1)}


def test_a_score_that_is_no_number_ranks_below_all_others() -> None:
    scheduler = SuccessiveHalving(SEARCHER, 3, 3)
    for trial, score in enumerate([math.nan, 1.0]):
        scheduler.ask()
        answers(scheduler, trial, 0, score)
    scheduler.ask()
    verdicts = {2: ("continue", "promoted"), 1: ("stop", "dropped"), 0: ("stop", "dropped")}
    assert answers(scheduler, 2, 0, 2.0) == verdicts


def test_without_preemption_everyone_holds_its_node_until_the_last_has_come() -> None:
    scheduler = asked(SuccessiveHalving(SEARCHER, 3, 3, allocation="none", n_nodes=3), 3)
    assert answers(scheduler, 0, 0, 1.0) == {0: ("hold", "waiting")}
    assert answers(scheduler, 1, 0, 3.0) == {1: ("hold", "waiting")}
    assert answers(scheduler, 2, 0, 2.0) == {
        1: ("continue", "promoted"),
        2: ("stop", "dropped"),
        0: ("stop", "dropped"),
    }


def test_a_static_plan_keeps_every_trial_on_the_slot_it_began_on() -> None:
    world = play(SuccessiveHalving(SEARCHER, 10, 4, eviction_rate=0.25, allocation="static", n_nodes=3), 3, seed=1)
    where = {}
    for run in world.runs:
        assert where.setdefault(run.trial, run.slot) == run.slot
    assert sorted(list(where.values()).count(s) for s in range(3)) == [3, 3, 4]


def test_a_restarting_rung_runs_its_survivors_anew_as_new_trials() -> None:
    scheduler = SuccessiveHalving(SEARCHER, 3, 3, restart=True)
    first = [scheduler.ask() for _ in range(3)]
    for trial, score in enumerate([1.0, 3.0, 2.0]):
        assert answers(scheduler, trial, 0, score) == {trial: ("stop", "rung ended")}
    again = scheduler.ask()
    assert (again.trial, again.parent, again.phase, again.config) == (3, None, 0, first[1].config)
    answer = scheduler.tell(Report(3, 0, 1.0))[3]
    assert answer.reason["repeats"] == 1
    assert answers(scheduler, 3, 1, 1.0) == {3: ("continue", "rung")}
    assert answers(scheduler, 3, 2, 1.0) == {3: ("stop", "finished")}
    assert scheduler.ask() is None
    assert (scheduler.n_trials, scheduler.n_configs, scheduler.expected_phases) == (4, 3, 6)


def test_how_many_trials_there_are_is_said_once() -> None:
    """What a scheduler once made says of itself is taken again; another number of trials is not passed over."""
    for n_trials in (3, 4):
        assert SuccessiveHalving(SEARCHER, n_trials, 3, restart=True, n_configs=3).n_trials == 4
    with pytest.raises(InvalidInput, match="of 3 configurations has 3 trials, not 50: leave n_configs out"):
        SuccessiveHalving(SEARCHER, 50, 3, n_configs=3)


def test_of_equal_repetitions_that_of_the_earlier_configuration_survives_and_names_its_first_trial() -> None:
    """Trials 4 and 5 repeat 2 and 1, the best of the first rung, and score the same; 1 came before 2."""
    scheduler = SuccessiveHalving(SEARCHER, 4, 4, eta=2, restart=True)
    first = [scheduler.ask() for _ in range(4)]
    for trial, score in enumerate([1.0, 2.0, 3.0, 0.0]):
        answers(scheduler, trial, 0, score)
    assert [scheduler.ask().config for _ in range(2)] == [first[2].config, first[1].config]
    for trial in (4, 5):
        for phase in range(2):
            scheduler.tell(Report(trial, phase, 1.0))
    again = scheduler.ask()
    assert again.config == first[1].config
    assert scheduler.tell(Report(again.trial, 0, 1.0))[again.trial].reason["repeats"] == 1


def test_equal_scores_favour_the_earlier_trial_and_failures_rank_last() -> None:
    scheduler = asked(SuccessiveHalving(SEARCHER, 4, 2, eta=2), 4)
    answers(scheduler, 3, 0, 1.0)
    answers(scheduler, 1, 0, 1.0)
    assert answers(scheduler, 0, 0, math.nan, failed=True) == {0: ("stop", "failed")}
    assert answers(scheduler, 2, 0, 1.0) == {
        1: ("pause", "promoted"),
        2: ("continue", "promoted"),
        3: ("stop", "dropped"),
    }


def test_a_failure_can_be_the_last_to_arrive_and_leave_too_few_survivors() -> None:
    scheduler = asked(SuccessiveHalving(SEARCHER, 2, 2, eviction_rate=0.1), 2)  # two of two are to go on
    answers(scheduler, 1, 0, -5.0)
    assert answers(scheduler, 0, 0, math.nan, failed=True) == {0: ("stop", "failed"), 1: ("pause", "promoted")}
    assert scheduler.ask().trial == 1


def test_who_is_stopped_while_it_waits_is_counted_and_does_not_survive() -> None:
    """By a person: at the barrier its place goes to the next best; on its way to the next rung, to nobody."""
    scheduler = asked(SuccessiveHalving(SEARCHER, 4, 4, eta=2), 4)
    for trial, score in enumerate([4.0, 3.0, 2.0]):
        answers(scheduler, trial, 0, score)
    assert answers(scheduler, 0, 0, math.nan, failed=True) == {0: ("stop", "failed")}
    settled = answers(scheduler, 3, 0, 1.0)
    assert settled == {1: ("pause", "promoted"), 2: ("pause", "promoted"), 3: ("stop", "dropped")}
    assert answers(scheduler, 1, 0, math.nan, failed=True) == {1: ("stop", "failed")}
    assert scheduler.ask().trial == 2
    assert answers(scheduler, 2, 1, 0.0) == {2: ("continue", "promoted")}


def finished(n_slots, seed, **settings) -> list[int]:
    """Trials that survive every rung, under an order of arrival of its own for each cluster."""
    return play(SuccessiveHalving(SEARCHER, **settings), n_slots, seed=seed, score=noise(seed)).ended("finished")


def noise(seed):
    return lambda config, trial, phase: float(np.random.default_rng([seed, trial, phase]).integers(10))  # with ties


@pytest.mark.parametrize("seed", range(40))
def test_neither_nodes_nor_preemption_nor_order_change_who_survives(seed) -> None:
    rule = (
        {"n_trials": 9, "n_phases": 9, "eta": 3} if seed % 2 else {"n_trials": 9, "n_phases": 4, "eviction_rate": 0.3}
    )
    survivors = finished(9, seed, **rule)
    assert len(survivors) == (1 if seed % 2 else 3)
    for n_nodes in (1, 4, 9):
        assert finished(n_nodes, seed, **rule) == survivors
        assert finished(n_nodes, seed, allocation="static", n_nodes=n_nodes, **rule) == survivors
    assert finished(9, seed, allocation="none", n_nodes=9, **rule) == survivors


@settings(max_examples=60, deadline=None)
@given(
    n_slots=st.integers(1, 12),
    seed=st.integers(0, 10_000),
    fail=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    allocation=st.sampled_from(["dynamic", "static", "none"]),
    restart=st.booleans(),
    by_rate=st.booleans(),
)
def test_every_halving_ends_whatever_fails(n_slots, seed, fail, allocation, restart, by_rate) -> None:
    rule = {"eviction_rate": 0.25} if by_rate else {"eta": 2.5}
    n_slots = max(n_slots, 12) if allocation == "none" else n_slots
    scheduler = SuccessiveHalving(SEARCHER, 12, 7, allocation=allocation, restart=restart, n_nodes=n_slots, **rule)
    world = play(scheduler, n_slots, seed, fail=fail, speeds=[1.0 + s for s in range(n_slots)])
    if fail == 0.0:
        assert len(world.reports) == scheduler.expected_phases
        assert len({r.trial for r in world.runs}) == scheduler.n_trials
        assert len(world.ended("finished")) == scheduler.rungs[-1].n_trials


def test_no_node_idles_while_a_survivor_or_a_new_trial_waits() -> None:
    """A preempting barrier: a survivor starts the moment the rung is settled, as far as there are nodes."""
    log = simulate(SuccessiveHalving(SEARCHER, 9, 9), slots=4)
    settled = [e.at for e in log if e.kind is Kind.DECISION and e.data["mode"] == "dropped"]
    starts = [e.at for e in log if e.kind is Kind.PHASE_STARTED]
    assert sum(at == settled[0] for at in starts) == 3
    assert sum(at == settled[-1] for at in starts) == 1


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            {"allocation": "none", "n_nodes": 8},
            r"SuccessiveHalving\(allocation='none'\) needs 27 nodes, the cluster has 8",
        ),
        ({"allocation": "none"}, "needs to know the cluster: pass n_nodes"),
        ({"allocation": "static"}, "needs to know the cluster"),
        ({"allocation": "greedy"}, "unknown allocation 'greedy'; known: dynamic, none, static"),
        ({"eta": 1.5}, "eta >= 2, got 1.5"),
        ({"eviction_rate": 1.0}, "share between 0 and 1"),
        ({"eviction_rate": 0.5, "min_phases": 2}, "leave eta and min_phases out"),
        ({"eviction_rate": 0.5, "eta": 2}, "drops that share: leave eta and min_phases out"),
        ({"min_phases": 28}, "min_phases a whole number from 1 to 27, got 28"),
    ],
)
def test_settings_that_cannot_be_carried_out_are_refused(settings, says) -> None:
    with pytest.raises(InvalidInput, match=says):
        SuccessiveHalving(SEARCHER, 27, 27, **settings)


def test_a_searcher_with_fewer_configurations_makes_a_smaller_first_rung() -> None:
    world = play(SuccessiveHalving(ListSearcher([{"x": i} for i in range(4)]), 27, 9), 2)
    assert len({r.trial for r in world.runs}) == 4


def test_a_searcher_that_runs_out_without_saying_so_is_an_error() -> None:
    class Short:
        def suggest(self, trial):
            return {"x": 1} if trial < 2 else None

        def observe(self, report):
            pass

    with pytest.raises(SchedulerError, match="ran out with 1 trial of the first rung to come"):
        play(SuccessiveHalving(Short(), 3, 3), 3)
