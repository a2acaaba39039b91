import math
from types import SimpleNamespace

import numpy as np
import pytest

from tests.algos.search.arena import asked, play, told
from tests.support import SPACE
from workbench.algos.search import FullRuns, ListSearcher, RandomSearcher, Sure
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Report, Verdict

CONFIGS = [{"config_id": n} for n in range(9)]  # no hyperparameters: the surrogate says nothing


def test_worked_by_hand() -> None:
    """Nine configurations on one node, four phases, eta 3: a third goes on after one phase; two are run again."""
    scheduler = Sure(ListSearcher(CONFIGS), 9, 4, rungs=(0.25,), smooth=0.5, finalists=2, seeds=2)
    assert scheduler.n_trials == 11
    assert scheduler.expected_phases == 9 + 3 * 3 + 2 * 4
    assert scheduler.leader() is None

    def run(trial, *scores) -> list[tuple[str, str]]:
        assert scheduler.ask().trial == trial
        return [told(scheduler, trial, phase, score) for phase, score in enumerate(scores)]

    goes_on, dropped, finished = ("continue", "promoted"), ("stop", "dropped"), ("stop", "finished")
    assert run(0, 5.0, 5.0, 5.0, 5.0) == [goes_on, goes_on, goes_on, finished]  # the first of one
    assert run(1, 4.0) == [dropped]  # the second of two: ceil(2/3) = 1 goes on
    assert run(2, 6.0, 2.0) == [goes_on, dropped]  # (6 + 2) / 2 = 4 is below the 5 of trial 0 in its second phase
    assert scheduler.leader() == 0
    assert run(3, 4.5) == [dropped]  # third of four after one phase, where two go on
    assert run(4, 9.0, 3.0, 9.0, 6.0) == [goes_on, goes_on, goes_on, finished]  # ends at 7.5: the last two
    for trial in range(5, 8):
        assert run(trial, 0.0) == [dropped]
    assert run(8, 0.0) == [dropped]
    assert scheduler.leader() == 4
    first, second = scheduler.ask(), scheduler.ask()
    assert (first.trial, first.config, first.candidate, first.parent) == (9, CONFIGS[4], 4, None)
    assert (second.trial, second.config, second.candidate) == (10, CONFIGS[0], 0)
    assert scheduler.ask() is None
    for phase in range(3):
        assert told(scheduler, 9, phase, 0.0) == ("continue", "repeating")
    assert told(scheduler, 9, 3, 0.0) == finished  # its mean over two seeds is 3.75 now
    assert scheduler.leader() == 0


def test_the_surrogate_starts_what_is_like_the_good_ones() -> None:
    """Scores rise with the learning rate: after the warm-up the highest come first."""
    rates = list(np.random.default_rng(0).permutation(40))
    scheduler = Sure(ListSearcher([{"lr": float(rate)} for rate in rates]), 40, 10, seeds=1, warmup=8)
    world = play(scheduler, 1, score=lambda config, trial, phase: config["lr"])
    started = [run.config["lr"] for run in world.runs]
    assert started[:8] == rates[:8]
    assert np.mean(started[8:18]) > 30
    assert np.mean(started[-10:]) < 12


def test_what_is_started_next_has_the_highest_mean_and_deviation_together() -> None:
    """0.1, 0.6 and 0.7: the third, though the second has the higher mean; in the warm-up the first."""
    scheduler = Sure(ListSearcher(CONFIGS), 9, 4, warmup=5)
    scheduler._unstarted, scheduler._means = [2, 4, 6], np.array([9.0, 9, 0.0, 9, 0.5, 9, 0.4, 9, 9])
    spreads = {2: 0.1, 4: 0.1, 6: 0.3}
    for n_seen, wanted in ((5, 6), (4, 2)):
        surrogate = SimpleNamespace(n_seen=n_seen, spreads=lambda numbers: np.array([spreads[k] for k in numbers]))
        assert scheduler._most_promising(surrogate) == wanted


def test_a_plateau_stops_as_many_as_ever() -> None:
    """Where all scores are equal, a draw orders them."""
    same = [len(play(Sure(SPACE, 30, 10, seeds=1), 4, score=lambda *_: 1.0).reports) for _ in range(2)]
    assert same[0] == same[1] < 0.5 * len(play(FullRuns(SPACE, 30, 10), 4).reports)


@pytest.mark.parametrize("slots", [1, 3, 40])
@pytest.mark.parametrize("seed", range(3))
def test_as_many_as_there_are_finalists_run_to_their_end(slots, seed) -> None:
    """Even where scores are fresh draws, so that nobody stays in front for long."""
    world = play(Sure(RandomSearcher(SPACE), 30, 10, finalists=3, seeds=2), slots, seed)
    assert len([r for r in world.reports if r.phase == 9 and r.trial < 30]) >= 3
    assert len([run for run in world.runs if run.trial >= 30]) == 3


def test_a_score_that_is_no_number_and_a_failure_rank_below_all() -> None:
    scheduler = asked(Sure(ListSearcher(CONFIGS), 9, 4, rungs=(0.25,)), 4)
    assert told(scheduler, 0, 0, -5.0) == ("continue", "promoted")
    assert told(scheduler, 1, 0, float("nan")) == ("stop", "dropped")
    assert told(scheduler, 2, 0, float("nan"), failed=True) == ("stop", "failed")
    assert told(scheduler, 3, 0, -6.0) == ("continue", "promoted")  # the second of four
    assert scheduler.leader() == 0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_configs": 1001}, "1000 at most, got 1001"),
        ({"rungs": (0.3, 0.1)}, "rungs one after the other"),
        ({"rungs": (1.3,)}, "rungs"),
        ({"rungs": 0.1}, "rungs to be a list"),
        ({"eta": 1}, "eta >= 2"),
        ({"seeds": 0}, "seeds"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, words) -> None:
    with pytest.raises(InvalidInput, match=words):
        Sure(**{"searcher": SPACE, "n_configs": 4, "n_phases": 4} | settings)


def test_a_repetition_that_fails_puts_its_configuration_below_all_others() -> None:
    scheduler = Sure(ListSearcher(CONFIGS), 2, 1, finalists=2, seeds=3)
    for trial, score in ((0, 9.0), (1, 1.0)):
        assert scheduler.ask().trial == trial
        told(scheduler, trial, 0, score)
    assert scheduler.leader() == 0
    assert (scheduler.ask().candidate, scheduler.ask().candidate) == (0, 1)
    told(scheduler, 2, 0, math.nan, failed=True)
    assert scheduler.leader() == 1


@pytest.mark.parametrize(("last", "repeated"), [(5.0, 1), (-9.0, 0)])
def test_who_ends_first_is_repeated_only_if_nobody_on_the_way_is_better(last, repeated) -> None:
    """As many nodes as configurations; the second is ahead until its last phase, and slow."""
    scheduler = Sure(ListSearcher(CONFIGS), 3, 2, rungs=(), finalists=1, seeds=2)
    for trial, score in enumerate((1.0, 5.0, 0.0)):
        assert scheduler.ask().trial == trial
        told(scheduler, trial, 0, score)
    for trial, score in ((0, 1.0), (2, 0.0)):
        assert told(scheduler, trial, 1, score) == ("stop", "finished")
        assert scheduler.ask() is None
    told(scheduler, 1, 1, last)
    assert scheduler.ask().candidate == repeated


def test_the_last_reason_names_the_leader() -> None:
    scheduler = Sure(RandomSearcher(SPACE), 12, 4, finalists=2, seeds=2, warmup=4)
    while (run := scheduler.ask()) is not None:
        verdict, phase = Verdict.CONTINUE, 0
        while verdict is Verdict.CONTINUE:
            report = Report(run.trial, phase, -abs(run.config["lr"]), failed=run.trial >= 12 and phase == 1)
            decision = scheduler.tell(report)[run.trial]
            assert decision.reason["leader"] == scheduler.leader()
            verdict, phase = decision.verdict, phase + 1


@pytest.mark.parametrize(("seeds", "leader"), [(2, 1), (3, 0)])
def test_the_leader_is_no_single_lucky_seed_where_others_have_many(seeds, leader) -> None:
    """One finalist, repeated; a trial with a lucky score ends while the repetitions run."""
    scheduler = Sure(ListSearcher(CONFIGS), 2, 1, finalists=1, seeds=seeds)
    for trial in range(2):
        assert scheduler.ask().trial == trial
    told(scheduler, 0, 0, 1.0)
    repeats = [scheduler.ask() for _ in range(seeds - 1)]
    assert {run.candidate for run in repeats} == {0}
    for run in repeats[:-1]:
        told(scheduler, run.trial, 0, 1.0)
    told(scheduler, 1, 0, 9.0)
    assert scheduler.leader() == 1
    told(scheduler, repeats[-1].trial, 0, 1.0)
    assert scheduler.leader() == leader  # one seed is half of two, and less than half of three


def test_as_many_as_there_are_finalists_stay_also_while_others_are_to_start() -> None:
    scheduler = Sure(ListSearcher(CONFIGS), 6, 4, rungs=(0.25,), finalists=4, seeds=1)
    ended = phases = 0
    for trial in range(6):
        assert scheduler.ask().trial == trial
        verdicts = [told(scheduler, trial, 0, -float(trial))]
        while verdicts[-1][0] == "continue":
            verdicts.append(told(scheduler, trial, len(verdicts), -float(trial)))
        ended += verdicts[-1] == ("stop", "finished")
        phases += len(verdicts)
    assert ended == 4
    assert scheduler.expected_phases == phases == 6 + 4 * 3
