import math

import numpy as np
import pytest

from tests.algos.search.arena import answers, asked, play
from tests.support import SPACE
from workbench.algos.search import ASHA, RandomSearcher
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Report

SEARCHER = RandomSearcher(SPACE)


def test_promotion_worked_by_hand() -> None:
    """Six trials on two nodes, eta 3, rungs at 1 and 3 phases."""
    scheduler = ASHA(SEARCHER, 6, 3)
    assert [scheduler.ask().trial for _ in range(2)] == [0, 1]
    assert answers(scheduler, 0, 0, 5.0) == {0: ("pause", "waiting")}  # best of 1: a third of 1 is nobody
    assert scheduler.ask().trial == 2
    assert answers(scheduler, 1, 0, 7.0) == {1: ("pause", "waiting")}
    assert scheduler.ask().trial == 3
    assert answers(scheduler, 2, 0, 1.0) == {2: ("pause", "waiting")}  # now 1 is the top third of three
    run = scheduler.ask()
    assert (run.trial, run.parent, run.phase) == (1, 1, 1)
    assert answers(scheduler, 3, 0, 4.0) == {3: ("pause", "waiting")}  # third of four
    assert scheduler.ask().trial == 4
    assert answers(scheduler, 4, 0, 0.0) == {4: ("pause", "waiting")}
    assert scheduler.ask().trial == 5
    assert answers(scheduler, 5, 0, 0.0) == {5: ("pause", "waiting")}  # two of six may go, and 0 is the second
    assert scheduler.ask().trial == 0
    assert scheduler.ask() is None
    for trial in (1, 0):
        assert answers(scheduler, trial, 1, 1.0) == {trial: ("continue", "rung")}
    assert answers(scheduler, 1, 2, 1.0) == {1: ("stop", "finished")}
    last = answers(scheduler, 0, 2, 2.0)
    assert last == {0: ("stop", "finished")} | dict.fromkeys([2, 3, 4, 5], ("stop", "dropped"))


def test_a_better_newcomer_is_promoted_though_the_top_is_used_up() -> None:
    """After 1 has gone on, 3 is in the top third of four, so it goes on as well: ASHA errs on the side of promoting."""
    scheduler = ASHA(SEARCHER, 6, 3)
    for trial, score in enumerate([5.0, 7.0, 1.0]):
        scheduler.ask()
        answers(scheduler, trial, 0, score)
    assert scheduler.ask().trial == 1
    assert scheduler.ask().trial == 3
    assert answers(scheduler, 3, 0, 9.0) == {3: ("continue", "promoted")}
    assert answers(scheduler, 3, 1, 9.0) == {3: ("continue", "rung")}
    assert answers(scheduler, 3, 2, 9.0) == {3: ("stop", "finished")}


def test_promotion_does_not_expect_what_too_few_trials_cannot_fill() -> None:
    """Rungs at 1, 3, 9 and 27: of eight trials two are a third, of two nobody is; by stopping one always goes on."""
    scheduler = ASHA(SEARCHER, 8, 27)
    due = [scheduler.ask() for _ in range(8)]
    told = [scheduler.tell(Report(run.trial, 0, -float(run.trial))) for run in due]
    while run := scheduler.ask():
        told += [scheduler.tell(Report(run.trial, phase, 0.0)) for phase in (1, 2)]
    assert told[-1].keys() == set(range(8))  # all are stopped, none is at its end
    assert scheduler.expected_phases == len(told) == 8 + 2 * 2
    assert ASHA(SEARCHER, 8, 27, variant="stopping").expected_phases == 8 + 2 * 2 + 6 + 18


def test_whoever_waits_is_stopped_when_the_last_trial_is_over() -> None:
    scheduler = asked(ASHA(SEARCHER, 2, 3), 2)
    assert answers(scheduler, 1, 0, 1.0) == {1: ("pause", "waiting")}
    assert answers(scheduler, 0, 0, math.nan, failed=True) == {0: ("stop", "failed"), 1: ("stop", "dropped")}
    assert scheduler.ask() is None


def test_who_was_stopped_at_the_end_is_not_promoted_among_more_trials() -> None:
    scheduler = asked(ASHA(SEARCHER, 2, 3), 2)
    answers(scheduler, 0, 0, 5.0)
    assert answers(scheduler, 1, 0, 1.0) == {1: ("stop", "dropped"), 0: ("stop", "dropped")}
    scheduler.grow(4)
    assert scheduler.ask().trial == 2
    assert answers(scheduler, 2, 0, 4.0) == {2: ("pause", "waiting")}  # 0 is the top third of three, and over
    assert scheduler.ask().trial == 3
    assert answers(scheduler, 3, 0, 9.0) == {3: ("continue", "promoted")}


def test_a_trial_that_a_person_stops_while_it_waits_keeps_no_place_above_others() -> None:
    scheduler = asked(ASHA(SEARCHER, 3, 3), 3)
    answers(scheduler, 0, 0, 9.0)
    answers(scheduler, 1, 0, 5.0)
    assert answers(scheduler, 0, 0, math.nan, failed=True) == {0: ("stop", "failed")}
    assert answers(scheduler, 2, 0, 4.0) == {2: ("pause", "waiting")}
    assert scheduler.ask().trial == 1  # the best of three, of which 0 counts as the last


@pytest.mark.parametrize("failed", [True, False])
def test_a_trial_without_a_score_counts_as_the_last_of_its_rung(failed) -> None:
    scheduler = asked(ASHA(SEARCHER, 3, 3), 3)
    answers(scheduler, 0, 0, math.nan, failed)
    answers(scheduler, 1, 0, 5.0)
    assert answers(scheduler, 2, 0, 4.0) == {2: ("pause", "waiting")}
    assert scheduler.ask().trial == 1  # the best of three


def test_stopping_worked_by_hand() -> None:
    """The first always goes on; after it whoever is in the top third of those so far, one at least."""
    scheduler = asked(ASHA(SEARCHER, 6, 3, variant="stopping"), 6)
    assert answers(scheduler, 0, 0, 1.0) == {0: ("continue", "promoted")}
    assert answers(scheduler, 1, 0, 0.5) == {1: ("stop", "dropped")}
    assert answers(scheduler, 2, 0, 0.9) == {2: ("stop", "dropped")}
    assert answers(scheduler, 3, 0, 2.0) == {3: ("continue", "promoted")}
    assert answers(scheduler, 4, 0, 3.0) == {4: ("continue", "promoted")}
    assert answers(scheduler, 5, 0, 2.5) == {5: ("continue", "promoted")}  # second of six: two are the top third


def test_an_unknown_variant_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"unknown variant .* promotion, stopping"):
        ASHA(SEARCHER, 3, 3, variant="pausing")


def test_where_the_best_of_few_goes_on_its_reason_says_that_one_does() -> None:
    scheduler = asked(ASHA(SEARCHER, 3, 3, variant="stopping"), 2)
    for trial, score in enumerate([1.0, 2.0]):  # the second is ahead of the first
        (decision,) = scheduler.tell(Report(trial, 0, score)).values()
        words = scheduler.explain(decision.reason)
        assert words == f"promoted: place 1 of {trial + 1} in rung 0, where 1 go on"


def test_a_first_rung_beyond_the_last_phase_is_refused() -> None:
    """It would have been the only one, and nobody stopped."""
    with pytest.raises(InvalidInput, match="ASHA needs min_phases a whole number from 1 to 9, got 20"):
        ASHA(SEARCHER, 9, 9, min_phases=20)


def test_on_a_plateau_stopping_keeps_one_in_eta() -> None:
    """Equal scores are ordered by a draw; the earlier first, only one of 300 would pass each rung."""
    passed = []
    for seed in range(4):
        scheduler = ASHA(RandomSearcher(SPACE), 300, 3, variant="stopping", seed=seed)
        while scheduler.ask() is not None:
            pass
        passed.append(sum(str(scheduler.tell(Report(t, 0, 1.0))[t].verdict) == "continue" for t in range(300)))
    assert np.mean(passed) == pytest.approx(100, abs=12)
    assert len(set(passed)) > 1


class Algorithm2:
    """Rungs of trials, sorted anew for every question, beside a scheduler that must answer as they say."""

    def __init__(self, scheduler: ASHA, ends: list[int]) -> None:
        self.scheduler, self.n_phases, self.n_trials = scheduler, scheduler.n_phases, scheduler.n_trials
        self.ends = ends
        self.there: list[dict[int, tuple[float, int]]] = [{} for _ in ends]  # by rung: trial → (-score, arrival)
        self.at: dict[int, int] = {}  # trial → rung it runs in, or waits at the end of
        self.waiting: set[int] = set()

    def promotable(self) -> tuple[int, int] | None:
        for rung in reversed(range(len(self.ends) - 1)):
            ranked = sorted(self.there[rung], key=self.there[rung].__getitem__)
            for trial in ranked[: int(len(ranked) / self.scheduler.eta + 1e-9)]:
                if trial in self.waiting and self.at[trial] == rung:
                    return rung, trial
        return None

    def promote(self, rung: int, trial: int) -> None:
        self.waiting.remove(trial)
        self.at[trial] = rung + 1

    def ask(self):
        best, n = self.promotable(), len(self.at)
        run = self.scheduler.ask()
        if best is not None:
            assert (run.trial, run.parent, run.phase) == (best[1], best[1], self.ends[best[0]])
            self.promote(*best)
        elif n < self.n_trials:
            assert (run.trial, run.parent, run.phase) == (n, None, 0)
            self.at[n] = 0
        else:
            assert run is None
        return run

    def tell(self, report: Report):
        trial, rung = report.trial, self.at[report.trial]
        told = self.scheduler.tell(report)
        verdict = str(told[trial].verdict)
        if report.failed:
            self.waiting.discard(trial)
            self.there[rung][trial] = (math.inf, len(self.there[rung]))
            assert verdict == "stop"
        elif report.phase < self.ends[rung] - 1:
            assert verdict == "continue"
        else:
            self.there[rung][trial] = (-report.score, len(self.there[rung]))
            self.waiting |= {trial} if self.ends[rung] < self.n_phases else set()
            goes_on = self.promotable() == (rung, trial)
            assert verdict in (["continue"] if goes_on else ["pause", "stop"])
            if goes_on:
                self.promote(rung, trial)
        for stopped in told.keys() - {trial}:  # nothing can change any more
            assert str(told[stopped].verdict) == "stop"
        self.waiting -= {t for t, decision in told.items() if str(decision.verdict) == "stop"}
        return told


@pytest.mark.parametrize("fail", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(8))
def test_every_promotion_is_that_of_algorithm_2(seed, fail) -> None:
    """From one trial on, on any number of nodes, with equal scores, failures, and people who stop who waits."""
    rng = np.random.default_rng(seed)
    eta, n = float(rng.choice([2, 2.5, 3])), int(rng.integers(1, 25))
    ends = {2: [1, 2, 4, 9], 2.5: [1, 3, 9], 3: [1, 3, 9]}[eta]
    watched = Algorithm2(ASHA(SEARCHER, n, 9, eta), ends)
    play(watched, int(rng.integers(1, 9)), seed, fail=fail, score=lambda config, t, p: float((t * 7 + p * seed) % 5))
    assert len(watched.at) == n
