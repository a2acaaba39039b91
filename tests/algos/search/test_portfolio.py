import pytest

from tests.algos.search.arena import asked
from workbench.algos.search import ListSearcher, Portfolio
from workbench.algos.search.hypertrick import expected_completion_rate
from workbench.algos.search.portfolio import like_hyperband
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Report

CONFIGS = ListSearcher([{"x": i} for i in range(50)])


def test_members_judge_their_own_trials_worked_by_hand() -> None:
    """Sizes 4 and 2: trials 0, 2, 3, 5 go to the first, 1 and 4 to the second, whatever is reported meanwhile."""
    scheduler = asked(Portfolio(CONFIGS, 2, (4, 2), (0.25, 0.25)), 6)

    def told(trial, score):
        decision = scheduler.tell(Report(trial, 0, score))[trial]
        return decision.reason["member"], str(decision.verdict), decision.reason["reported"]

    assert told(0, 9.0) == (0, "continue", 1)  # two collect in the first, one in the second
    assert told(1, 1.0) == (1, "continue", 1)
    assert told(2, 8.0) == (0, "continue", 2)
    assert told(4, 0.5) == (1, "stop", 2)  # judged against trial 1 alone
    assert told(3, 1.0) == (0, "stop", 3)
    assert told(5, 8.5) == (0, "continue", 4)  # beats 1 and 8 of the four: rank 2/4 is not below a half


def test_a_rate_of_zero_runs_its_trials_to_the_end() -> None:
    scheduler = Portfolio(CONFIGS, 3, (1,), (0.0,))
    scheduler.ask()
    assert [str(scheduler.tell(Report(0, p, 0.0))[0].verdict) for p in range(3)] == ["continue", "continue", "stop"]
    assert scheduler.expected_phases == 3


def test_it_expects_what_its_members_do_each_by_its_size() -> None:
    """Eight trials at 1/4: 8 and 6 begin, 4 at least, four run whole. Each has its draws."""
    scheduler = Portfolio(CONFIGS, 2, (8, 4), (0.25, 0.0), seed=5)
    expected = scheduler.expectation()
    assert (expected.began, expected.fewest) == ([12, 10], [12, 8])
    several = Portfolio(CONFIGS, 2, (8, 4), (0.25, 0.5), seed=5)
    assert [member.rule.seed for member in several._members] == [5, 6]


def test_a_portfolio_like_hyperband_has_its_sizes_and_its_alphas() -> None:
    sizes, rates = like_hyperband(27)
    assert sizes == (27, 9, 6, 4)
    alphas = [expected_completion_rate(r, 27) if r else 1.0 for r in rates]
    assert [round(100 * a, 2) for a in alphas] == [14.81, 33.33, 66.67, 100.0]
    assert Portfolio(CONFIGS, 27, sizes, rates).expected_phases == pytest.approx(405)


@pytest.mark.parametrize(
    ("sizes", "rates", "says"),
    [
        ((4, 2), (0.5,), "got 2 sizes and 1 rate"),
        ((), (), "got 0 sizes"),
        ((4,), (1.0,), r"eviction_rates in \[0, 1\), got 1.0"),
        ((4,), (None,), r"eviction_rates in \[0, 1\), got None"),
        ((0,), (0.5,), "sizes a whole number from 1 to 1000000"),
    ],
)
def test_settings_that_cannot_be_carried_out_are_refused(sizes, rates, says) -> None:
    with pytest.raises(InvalidInput, match=says):
        Portfolio(CONFIGS, 3, sizes, rates)
