"""Paired repetitions: their numbers, their intervals, and who wins."""

from dataclasses import replace

import numpy as np
import pytest

from workbench.core.errors import InvalidInput
from workbench.simulation import arrival_bias, compare, compare_held_out, regrets, scenario_from, wins_and_losses
from workbench.simulation.comparison import MEASURES, Comparison


@pytest.fixture(scope="module")
def found(small) -> Comparison:
    return compare(small, 10)


@pytest.fixture(scope="module")
def steady(small) -> Comparison:
    return compare(small.with_curves(family="steady", n_phases=6), 10)


def test_a_comparison_is_the_same_whatever_the_processes_and_pairs_its_numbers(small, found) -> None:
    one, two = found, compare(small, 7, processes=2)  # more than one of them takes at a time
    for key, values in two.values.items():
        assert (one.values[key][:7] == values).all()
    gap = one.difference("makespan", "hypertrick", "all")
    assert gap.low <= gap.value <= gap.high < 0
    assert (one.values["all", "completion_rate"] <= 1).all()
    for label in ("hypertrick", "all"):
        assert (np.diff(one.regret[label], axis=1) <= 1e-12).all()
        assert (one.regret[label] >= -1e-12).all()
        assert ((one.busy[label] >= 0) & (one.busy[label] <= 1 + 1e-9)).all()
    occupancy = one.over_time("occupancy")
    assert list(occupancy.columns) == ["scheduler", "share_of_time", "at", "median", "low", "high"]
    assert set(one.over_time("regret", ["all"])["scheduler"]) == {"all"}
    assert one.regret_at("all", 1.0).value <= one.regret_at("hypertrick", 1.0).value
    with pytest.raises(InvalidInput, match="unknown scheduler of this comparison 'asha'"):
        one.medians("asha")


def test_schedulers_are_set_side_by_side(steady, found) -> None:
    comparisons = {"steady": steady, "crossing": found}
    table = regrets(comparisons, 0.25)
    assert list(table.columns) == ["steady", "crossing"]
    assert list(table.index) == ["hypertrick", "all"]
    value, low, high = comparisons["steady"].regret_at("all", 0.25)
    assert table.loc["all", "steady"] == f"{value:.3f} [{low:.3f}, {high:.3f}]"
    told = wins_and_losses(comparisons, "hypertrick", 0.25)
    assert "makespan against all" in told.partition("hypertrick wins")[2]
    assert "makespan" not in wins_and_losses(comparisons, "hypertrick", 0.25, only="regret")


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda found: found.standing("hypertrik"), "unknown scheduler of this comparison 'hypertrik'"),
        (lambda found: found.standing("all", 50), r"a share of the time is a number in \(0, 1\], got 50"),
        (lambda found: found.regret_at("all", "half"), "got 'half'"),
        (lambda found: found.medians("all", ["makspan"]), "unknown measure 'makspan': did you mean 'makespan'"),
        (lambda found: found.difference("regret", "hypertrick", "all"), "unknown measure 'regret'"),
    ],
)
def test_what_was_not_compared_is_told_in_one_line(found, ask, said) -> None:
    with pytest.raises(InvalidInput, match=said):
        ask(found)


@pytest.mark.parametrize("given", [{"repeats": 2.5}, {"repeats": "3"}, {"repeats": 1, "processes": 0.5}])
def test_repetitions_and_processes_are_whole_numbers(small, given) -> None:
    with pytest.raises(InvalidInput, match="needs repeats >= 1 and processes >= 1, got"):
        compare(small, **given)


@pytest.mark.parametrize("run", [compare, compare_held_out])
def test_the_name_of_a_simulation_is_no_simulation(run) -> None:
    with pytest.raises(InvalidInput, match=r"a Scenario, such as preset\('paper-46'\), got 'paper-46'"):
        run("paper-46")


@pytest.mark.parametrize(("repeats", "fewer", "more"), [(6, "better", "worse"), (5, "even", "even")])
def test_a_difference_is_better_or_worse_in_the_sense_of_its_measure(repeats, fewer, more) -> None:
    """Of one scheduler all is 1, of the other all is 2."""
    numbers = {"one": 1.0, "two": 2.0}
    values = {(name, measure): np.full(repeats, value) for name, value in numbers.items() for measure in MEASURES}
    over_time = {name: np.full((repeats, 100), value) for name, value in numbers.items()}
    found = Comparison(list(numbers), values, over_time, over_time, np.ones((repeats, 100)), 1)
    less, greater = (found.standing(name).set_index("measure")["verdict"].to_dict() for name in numbers)
    lower_is_better = {"makespan", "time_to_best", "regret at 50% of the time"}
    assert less == {m: fewer if m in lower_is_better else more for m in (*lower_is_better, "best_score", "occupancy")}
    assert greater == {m: more if verdict == fewer else fewer for m, verdict in less.items()}


def test_the_same_scheduler_twice_is_told_apart_in_one_case_of_twenty_at_most() -> None:
    """Of seven repetitions, a number by which the bootstrap of a median errs in one case of eight."""
    draw, wrong = np.random.default_rng(0), []
    over_time = {name: np.zeros((7, 100)) for name in ("one", "two")}
    for _ in range(60):
        values = {(name, measure): draw.normal(size=7) for name in over_time for measure in MEASURES}
        found = Comparison(list(over_time), values, over_time, over_time, np.ones((7, 100)), 1)
        wrong += (
            found.standing("one").set_index("measure").loc[["makespan", "best_score"], "verdict"] != "even"
        ).tolist()
    assert np.mean(wrong) < 0.05


def told_of(numbers: np.ndarray) -> Comparison:
    """Compare one scheduler with itself, every measure of which and every moment of whose regret are these numbers."""
    values = {("one", measure): numbers for measure in MEASURES}
    over_time = {"one": np.tile(numbers[:, None], 100)}
    return Comparison(["one"], values, over_time, over_time, np.ones((len(numbers), 100)), 1)


@pytest.mark.parametrize("repeats", [6, 7, 8])
def test_of_few_repetitions_intervals_of_medians_miss_in_one_case_of_twenty_at_most(repeats) -> None:
    """A bootstrap's of seven repetitions do in one of eight."""
    draw, missed = np.random.default_rng(repeats), []
    for _ in range(150):
        found = told_of(draw.exponential(size=repeats))
        for _, low, high in (found.medians("one", ["makespan"])["makespan"], found.regret_at("one", 0.5)):
            missed.append(not low <= np.log(2) <= high)
    assert np.mean(missed) < 0.05
    band = found.over_time("regret").iloc[49]
    assert (band["median"], band["low"], band["high"]) == found.regret_at("one", 0.5)


@pytest.mark.parametrize("repeats", [1, 2, 5])
def test_medians_of_too_few_repetitions_for_an_interval_have_their_range(repeats) -> None:
    numbers = np.random.default_rng(repeats).normal(size=repeats)
    expected = pytest.approx((np.median(numbers), numbers.min(), numbers.max()))
    found = told_of(np.append(numbers, np.nan))  # and one in which every trial failed
    assert found.medians("one")["best_score"] == found.regret_at("one", 1.0) == expected


def test_repetitions_in_which_all_trials_failed_do_not_count_among_the_six() -> None:
    scores = {"one": np.ones(6), "two": np.array([0.0, *[np.nan] * 5])}
    values = {(name, measure): scores[name] for name in scores for measure in MEASURES}
    over_time = {name: np.zeros((6, 100)) for name in scores}
    found = Comparison(list(scores), values, over_time, over_time, np.ones((6, 100)), 1)
    assert set(found.standing("one")["verdict"]) == {"even"}


def test_of_few_repetitions_nobody_is_told_better(small, found) -> None:
    few, enough = (compared.standing("hypertrick") for compared in (compare(small, 1), found))
    assert few["difference"].abs().max() > 0
    assert set(few["verdict"]) == {"even"}
    assert enough.set_index("measure").loc["makespan", "verdict"] == "better"


def test_the_bias_towards_the_early_is_the_same_whatever_the_processes(small) -> None:
    unrelated = small.with_curves(family="unrelated")
    with pytest.raises(InvalidInput, match="did you mean 'hypertrick'"):
        arrival_bias(unrelated, "hypertrik", 2)
    with pytest.raises(InvalidInput, match=r"a simulation is a Scenario, such as .*, got 'small'"):
        arrival_bias("small", "hypertrick", 2)
    one, two = (arrival_bias(unrelated, "hypertrick", 11, 3, processes=n) for n in (1, 2))
    assert one.equals(two)
    assert one["share_run"].iloc[0] > one["share_run"].iloc[-1]
    for groups, said in ((0, "a whole number from 1, got 0"), (999, r"\d+ trials of all fill no 999 groups: take \d+")):
        with pytest.raises(InvalidInput, match=said):
            arrival_bias(unrelated, "all", 2, groups)
    whole = arrival_bias(unrelated, "all", 2, 3)  # of a scheduler that stops nobody
    assert whole.to_numpy().tolist() == [[group, 1, 1, 1] for group in (1, 2, 3)]


def test_hypertrick_is_faster_than_running_everything_and_finds_less(steady) -> None:
    assert steady.difference("makespan", "hypertrick", "all").high < 0
    assert steady.difference("best_score", "hypertrick", "all").high <= 0


def test_a_scheduler_all_of_whose_trials_fail_has_no_regret_and_ends_no_comparison() -> None:
    scenario = scenario_from(
        {
            "curves": {"kind": "synthetic", "n_phases": 2},
            "space": {"lr": {"log_uniform": [1e-5, 1e-2]}},
            "cluster": {"nodes": 2, "crash_rate": 50.0, "max_retries": 0},
            "scheduler": {"kind": "hypertrick", "n_trials": 2},
        }
    )
    found = compare(scenario, 2)
    assert np.isnan(found.values["hypertrick", "best_score"]).all()
    assert np.isnan(found.regret["hypertrick"]).all()


def test_a_regret_is_read_at_the_moment_it_is_told_of(small) -> None:
    found = compare(small, 2)
    falls = np.tile(100.0 - np.arange(1, 101), (2, 1))  # after k hundredths of the time: 100 - k
    half = np.full((2, 100), 0.5)
    shown = replace(found, regret={"hypertrick": falls, "all": falls}, busy={"hypertrick": half, "all": half})
    assert [shown.regret_at("all", share).value for share in (0.1, 0.25, 0.5, 0.9, 1.0)] == [90, 75, 50, 10, 0]
    assert found.regret["all"].shape == (2, 100)
    longest = np.maximum(found.values["all", "makespan"], found.values["hypertrick", "makespan"])
    assert found.grid[:, [0, 49, 99]] == pytest.approx(np.outer(longest, [0.01, 0.5, 1.0]))
    over_time = shown.over_time("regret", ["all"])
    assert over_time["share_of_time"].tolist() == pytest.approx(np.arange(1, 101) / 100)
    assert over_time["at"].tolist() == pytest.approx(found.grid.mean(axis=0))  # of two the median
    assert over_time["median"].tolist() == falls[0].tolist()
    assert set(shown.over_time("occupancy", ["all"])["median"]) == {0.5}


def test_regret_is_what_is_left_of_the_best_that_could_be_found(small) -> None:
    """Before the first report the worst score stands that any of the schedulers has seen."""
    few = {f"of {n}": {"kind": "hypertrick", "n_trials": n} for n in (3, 9)}
    scenario = replace(small, schedulers=few, seed=5)
    repetition, found = scenario.repetition(), compare(scenario, 1)
    outcomes = {label: repetition.run(label) for label in few}
    best, worst = repetition.best_possible(), min(outcome.scores.min() for outcome in outcomes.values())
    assert best > max(outcome.best_score for outcome in outcomes.values())  # nobody has found it
    for label, outcome in outcomes.items():
        found_by = outcome.best_by(found.grid[0])
        assert found_by[0] == -np.inf
        assert found.regret[label][0] == pytest.approx(best - np.maximum(found_by, worst))
