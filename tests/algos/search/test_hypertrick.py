import math

import numpy as np
import pytest

from tests.support import SPACE, simulate
from workbench.algos.search import HyperTrick, RandomSearcher
from workbench.algos.search.hypertrick import (
    collecting_reports,
    eviction_rate_for,
    expected_completion_rate,
    expected_trials,
    minimum_completion_rate,
)
from workbench.core.describe import explain_of
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Kind, Report, Verdict, expectation_of
from workbench.registry import REGISTRY


def hypertrick(n_trials=16, n_phases=4, r=0.25) -> HyperTrick:
    scheduler = HyperTrick(RandomSearcher(SPACE), n_trials, n_phases, r)
    for _ in range(n_trials):
        scheduler.ask()
    return scheduler


def verdicts(scheduler, phase, scores, trials=None) -> list[str]:
    trials = range(len(scores)) if trials is None else trials
    return [str(scheduler.tell(Report(t, phase, s))[t].verdict) for t, s in zip(trials, scores, strict=True)]


def test_equations_1_and_2_for_sixteen_trials_at_a_quarter() -> None:
    assert [expected_trials(16, 0.25, p) for p in range(4)] == [16, 12, 9, 6.75]
    assert [collecting_reports(16, 0.25, p) for p in range(4)] == [8, 6, 4.5, 3.375]


@pytest.mark.parametrize(("n_phases", "minimum", "expected"), [(10, 18.87, 37.75), (5, 30.51, 61.02)])
def test_completion_rates_of_table_1(n_phases, minimum, expected) -> None:
    assert 100 * expected_completion_rate(0.25, n_phases) == pytest.approx(expected, abs=0.005)
    assert 100 * minimum_completion_rate(0.25, n_phases) == pytest.approx(minimum, abs=0.005)


@pytest.mark.parametrize(("alpha", "n_phases", "r"), [(0.3775, 10, 0.25), (0.6102, 5, 0.25), (405 / 1242, 27, 0.1085)])
def test_equation_9_solved_for_the_eviction_rate(alpha, n_phases, r) -> None:
    """Table 1 backwards, and Sec. 5.2.4: Hyperband's 32.61 % over 27 phases is r = 10.85 %."""
    assert eviction_rate_for(alpha, n_phases) == pytest.approx(r, abs=5e-5)


@pytest.mark.parametrize("r", [1e-4, 0.01, 0.5, 0.99])
def test_the_eviction_rate_is_found_over_its_whole_range(r) -> None:
    assert eviction_rate_for(expected_completion_rate(r, 13), 13) == pytest.approx(r, rel=1e-6)


@pytest.mark.parametrize(("alpha", "n_phases"), [(1.0, 5), (0.2, 5), (0.0, 5), (0.5, 1), (float("nan"), 5)])
def test_a_completion_rate_no_eviction_rate_gives_is_refused(alpha, n_phases) -> None:
    with pytest.raises(InvalidInput, match="completion rate lies between"):
        eviction_rate_for(alpha, n_phases)


def test_collecting_lets_everyone_go_on_then_the_lower_half_is_stopped() -> None:
    scheduler = hypertrick()
    assert verdicts(scheduler, 0, [5, 4, 3, 2, 1, 0, -1, -2]) == ["continue"] * 8
    # the ninth is the first judged; ranks: 4.5 beats 7 of 9; -3 beats 0 of 10; 1.5 beats 5 of 11 < 1/2
    assert verdicts(scheduler, 0, [4.5, -3, 1.5], trials=[8, 9, 10]) == ["continue", "stop", "stop"]


def test_the_fifth_to_report_the_third_phase_is_the_first_one_judged_there() -> None:
    """W_DCM = 4.5 is compared as a real number (HyperTrick paper, Sec. 3.2, the toy problem)."""
    scheduler = hypertrick()
    for phase in (0, 1):
        verdicts(scheduler, phase, [9, 8, 7, 6, 5])
    assert verdicts(scheduler, 2, [9, 8, 7, 6]) == ["continue"] * 4
    told = scheduler.tell(Report(4, 2, 1.0))[4]
    assert told.verdict is Verdict.STOP
    assert told.reason == {
        "mode": "selecting",
        "rank": 0.0,
        "threshold": 0.5,
        "reported": 5,
        "collecting_reports": 4.5,
    }


def test_of_two_equal_scores_the_earlier_is_favoured() -> None:
    scheduler = hypertrick(n_trials=4, n_phases=2)  # two collect
    assert verdicts(scheduler, 0, [1.0, 1.0]) == ["continue", "continue"]
    assert verdicts(scheduler, 0, [1.0], trials=[2]) == ["stop"]  # strictly below: none of three


def test_the_last_phase_ends_every_trial_as_finished() -> None:
    scheduler = hypertrick(n_trials=2, n_phases=1)
    told = [scheduler.tell(Report(t, 0, s))[t] for t, s in enumerate([1.0, 2.0])]
    assert [d.verdict for d in told] == [Verdict.STOP] * 2
    assert [d.reason["mode"] for d in told] == ["finished"] * 2


def test_a_failed_trial_leaves_no_trace_in_the_statistics() -> None:
    scheduler = hypertrick()
    scheduler.tell(Report(0, 0, math.nan, failed=True))
    told = scheduler.tell(Report(1, 0, 1.0))[1]
    assert told.reason["reported"] == 1


@pytest.mark.parametrize(
    ("n_trials", "n_phases", "r", "slots", "studies"),
    [(500, 10, 0.25, 300, 20), (500, 5, 0.25, 7, 20), (2000, 27, 0.1085, 46, 6)],
)
def test_completion_rate_meets_equation_9_for_a_stationary_score_process(n_trials, n_phases, r, slots, studies) -> None:
    """Monte Carlo: the mean over studies lies within its own error of E[alpha].

    Among k reports a rank is a multiple of 1/k, so a judged trial is stopped with probability ceil(k sqrt(r))/k: a
    little above sqrt(r), by less than 1/k. With hundreds of trials that is under a percent of alpha.
    """
    alphas = []
    for seed in range(studies):
        log = simulate(HyperTrick(RandomSearcher(SPACE), n_trials, n_phases, r), slots=slots, seed=seed)
        alphas.append(sum(e.kind is Kind.PHASE_ENDED for e in log) / (n_trials * n_phases))
    error = np.std(alphas, ddof=1) / math.sqrt(len(alphas))
    assert np.mean(alphas) == pytest.approx(expected_completion_rate(r, n_phases), abs=3 * error + 0.005)
    assert min(alphas) >= minimum_completion_rate(r, n_phases) - 1e-9


def test_it_tells_its_expectation() -> None:
    told = expectation_of(hypertrick())
    assert told.began == [16, 12, 9, 6.75]
    assert told.fewest[:3] == [16, 8, 6]
    assert len(told.fewest) == 4
    assert sum(told.began) / (16 * 4) == pytest.approx(told.completion)  # Eq. 9 is the sum of Eq. 1
    assert told.fewest_completion == pytest.approx(told.completion / 2)  # Eq. 8 at sqrt(r) = 1/2
    assert expectation_of(object()) is None


def test_it_tells_its_decisions_in_the_paper_s_words() -> None:
    scheduler = hypertrick(n_trials=4, n_phases=2)
    told = [HyperTrick.explain(scheduler.tell(Report(t, 0, s))[t].reason) for t, s in enumerate([3.0, 2.0, 1.0])]
    assert told == [
        "DCM: report 1 of the 2 that all go on",
        "DCM: report 2 of the 2 that all go on",
        "WSM: rank 0.00 < 0.50 among 3 reports",
    ]
    failed = scheduler.tell(Report(3, 0, math.nan, failed=True))[3].reason
    assert explain_of({"kind": "hypertrick"}, REGISTRY)(failed) == "no attempt left"
    assert explain_of({"kind": "mine:Own"}, REGISTRY)({"mode": "own", "place": 2}) == "own: place 2"
    assert HyperTrick.explain({"mode": "selecting"}) == "WSM"  # of a log that says no more
