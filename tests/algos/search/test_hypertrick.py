import math

import numpy as np
import pytest

from benchmarks import completion_rate as completion
from tests.algos.search.arena import asked, play
from tests.support import SPACE
from workbench.algos.search import GridSearcher, HyperTrick, RandomSearcher
from workbench.algos.search.hypertrick import (
    collecting_reports,
    eviction_rate_for,
    expected_completion_rate,
    expected_trials,
    minimum_completion_rate,
)
from workbench.core.describe import explain_of
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Report, Verdict, expectation_of
from workbench.core.size import size_of


def hypertrick(n_trials=16, n_phases=4, r=0.25) -> HyperTrick:
    return asked(HyperTrick(RandomSearcher(SPACE), n_trials, n_phases, r), n_trials)


def verdicts(scheduler, phase, scores, trials=None) -> list[str]:
    trials = range(len(scores)) if trials is None else trials
    return [str(scheduler.tell(Report(t, phase, s))[t].verdict) for t, s in zip(trials, scores, strict=True)]


def test_equations_1_and_2_for_sixteen_trials_at_a_quarter() -> None:
    assert [expected_trials(16, 0.25, p) for p in range(4)] == [16, 12, 9, 6.75]
    assert [collecting_reports(16, 0.25, p) for p in range(4)] == [8, 6, 5, 4]  # 8, 6, 4.5 and 3.375, rounded up


def test_the_thresholds_of_the_toy_problem_are_whole_and_fit_two_sizes() -> None:
    """Sec. 3.2: the seventh to report the first phase is the first judged there, the fifth in the third phase."""
    assert [collecting_reports(12, 0.25, p) for p in range(3)] == [6, 5, 4]
    ends = [(collecting_reports(n, 0.25, 0), collecting_reports(n, 0.25, 2)) for n in range(1, 40)]
    assert [n for n, told in enumerate(ends, 1) if told == (6, 4)] == [11, 12]


@pytest.mark.parametrize("n", [1, 3, 7, 10, 49, 1000, 99_990])
@pytest.mark.parametrize("root", [0.1, 0.2, 0.3, 0.6, 0.7])
def test_a_threshold_that_is_whole_is_not_rounded_up_by_float_error(n, root) -> None:
    exact = -(-n * round(10 * (1 - root)) // 10)
    assert collecting_reports(n, root * root, 0) == exact
    assert collecting_reports(n, 1 - 1e-12, 0) == 1  # somebody is always collected


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
    # the ninth is the first judged; ranks: 4.5 beats 7 of 9; -3 beats 0 of 10; 1.5 beats 5 of 11 < 1/2; 1.7 6 of 12
    told = verdicts(scheduler, 0, [4.5, -3, 1.5, 1.7], trials=[8, 9, 10, 11])
    assert told == ["continue", "stop", "stop", "continue"]


def test_the_fifth_to_report_the_third_phase_is_the_first_one_judged_there() -> None:
    """W_DCM = 3.375 of 12 trials is rounded up (HyperTrick paper, Sec. 3.2, the toy problem)."""
    scheduler = hypertrick(n_trials=12)
    for phase in (0, 1):
        verdicts(scheduler, phase, [9, 8, 7, 6, 5])
    assert verdicts(scheduler, 2, [9, 8, 7, 6]) == ["continue"] * 4
    told = scheduler.tell(Report(4, 2, 1.0))[4]
    assert told.verdict is Verdict.STOP
    assert told.reason == {"mode": "selecting", "rank": 0.0, "threshold": 0.5, "reported": 5, "collecting_reports": 4}


def test_equal_scores_are_ordered_by_a_seeded_draw() -> None:
    def plateau(seed: int) -> list[float]:
        scheduler = asked(HyperTrick(RandomSearcher(SPACE), 200, 2, 0.25, seed), 200)
        return [scheduler.tell(Report(t, 0, 1.0))[t].reason["rank"] for t in range(200)]

    ranks = plateau(1)
    assert ranks == plateau(1)
    assert ranks != plateau(2)
    assert np.mean(ranks) == pytest.approx(0.5, abs=0.06)  # uniform: neither first nor last is favoured
    scheduler = asked(HyperTrick(RandomSearcher(SPACE), 3, 2, 0.25), 3)
    assert verdicts(scheduler, 0, [1.0, 1.0]) == ["continue"] * 2
    assert scheduler.tell(Report(2, 0, 1.5))[2].reason["rank"] == pytest.approx(2 / 3)  # a draw never beats a score


def test_a_score_that_is_no_number_ranks_lowest() -> None:
    scheduler = hypertrick(n_trials=8, n_phases=2)  # four collect
    assert verdicts(scheduler, 0, [1.0, math.nan, 2.0, 3.0]) == ["continue"] * 4
    assert [scheduler.tell(Report(t, 0, s))[t].reason["rank"] for t, s in ((4, 0.5), (5, 2.5))] == [1 / 5, 4 / 6]
    told = scheduler.tell(Report(6, 0, math.nan))[6]
    assert (told.verdict, told.reason["rank"] <= 1 / 7) == (Verdict.STOP, True)


def test_a_searcher_that_runs_out_sets_the_size() -> None:
    """W0 is the number of trials there will be: 4 of a grid, not the 100 asked for."""
    scheduler = HyperTrick(GridSearcher(SPACE, 2), 100, 3, 0.25)
    assert scheduler.n_trials == 4
    assert scheduler.expected_phases == pytest.approx(4 * (1 + 0.75 + 0.75**2))


def test_with_more_trials_as_many_more_reports_are_collected() -> None:
    """Of four trials two, of eight four: the third to report would have been stopped."""
    scheduler = hypertrick(n_trials=4, n_phases=2)
    assert verdicts(scheduler, 0, [3.0, 2.0]) == ["continue"] * 2
    scheduler.grow(8)
    told = scheduler.tell(Report(2, 0, 1.0))[2]
    assert (told.verdict, told.reason["collecting_reports"]) == (Verdict.CONTINUE, 4)
    assert scheduler.expected_phases == 8 + 6


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


@pytest.mark.parametrize("seed", range(12))
def test_every_verdict_is_that_of_the_paper_s_words(seed) -> None:
    """Sizes from one trial on, any rate, some failures, on any number of nodes; no two scores are equal."""
    rng = np.random.default_rng(seed)
    n, n_phases, r = int(rng.integers(1, 30)), int(rng.integers(1, 9)), float(rng.choice([0.01, 0.1085, 0.5, 0.99]))
    world = play(HyperTrick(SPACE, n, n_phases, r), int(rng.integers(1, 9)), seed, fail=0.1)
    reported: list[list[float]] = [[] for _ in range(n_phases)]
    for report, told in zip(world.reports, world.told, strict=True):
        seen, goes_on = reported[report.phase], False
        if not report.failed:
            seen.append(report.score)
            among = sum(score < report.score for score in seen) / len(seen)
            first = len(seen) - 1 < (1 - math.sqrt(r)) * n * (1 - r) ** report.phase - 1e-9 or len(seen) == 1
            goes_on = report.phase < n_phases - 1 and (first or among >= math.sqrt(r))
        assert told == {report.trial: "continue" if goes_on else "stop"}


@pytest.mark.parametrize("scores", completion.SCORES)
@pytest.mark.parametrize("case", completion.CASES, ids=str)
def test_the_completion_rate_is_that_of_equation_9(case, scores) -> None:
    """Monte Carlo, small sizes and plateaus among them; benchmarks/completion_rate.py prints the table."""
    runs = round(20_000 / (case.expected * case.n_trials * case.n_phases))
    mean, error = completion.measure(case, completion.SCORES[scores], runs)
    assert error < 0.003
    assert mean == pytest.approx(case.expected, abs=0.01)


def test_it_tells_its_expectation() -> None:
    told = expectation_of(hypertrick())
    assert told.began == [16, 12, 9, 6.75]
    assert told.fewest[:3] == [16, 8, 6]
    assert len(told.fewest) == 4
    assert sum(told.began) / (16 * 4) == pytest.approx(expected_completion_rate(0.25, 4))  # Eq. 9 is the sum of Eq. 1
    assert expectation_of(object()) is None


@pytest.mark.parametrize(("n_trials", "n_phases", "r"), [(16, 4, 0.25), (100, 10, 0.25), (46, 27, 0.1085)])
def test_as_few_as_it_tells_go_on_where_each_report_is_below_all_before(n_trials, n_phases, r) -> None:
    """More than Eq. 8 says, which counts those let on after each phase and not those who run it."""
    scheduler = hypertrick(n_trials, n_phases, r)
    trials, began = range(n_trials), []
    for phase in range(n_phases):
        began.append(len(trials))
        answers = verdicts(scheduler, phase, [-float(t) for t in trials], trials)
        trials = [t for t, verdict in zip(trials, answers, strict=True) if verdict == "continue"]
    assert began == list(scheduler.expectation().fewest)
    told = size_of(scheduler).fewest_completion
    assert told == sum(began) / (n_trials * n_phases)
    assert told > minimum_completion_rate(r, n_phases)


def test_it_tells_its_decisions_in_the_paper_s_words() -> None:
    scheduler = hypertrick(n_trials=4, n_phases=2)
    told = [HyperTrick.explain(scheduler.tell(Report(t, 0, s))[t].reason) for t, s in enumerate([3.0, 2.0, 1.0])]
    assert told == [
        "DCM: report 1 of the 2 that all go on",
        "DCM: report 2 of the 2 that all go on",
        "WSM: rank 0.00 < 0.50 among 3 reports",
    ]
    failed = scheduler.tell(Report(3, 0, math.nan, failed=True))[3].reason
    assert explain_of({"kind": "hypertrick"})(failed) == "no attempt left"
    assert explain_of({"kind": "mine:Own"})({"mode": "own", "place": 2}) == "own: place 2"
