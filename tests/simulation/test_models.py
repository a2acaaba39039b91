"""Phase models: synthetic curves with the properties they are named for, and a recorded study replayed."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from tests.support import SPACE, simulate
from workbench.algos.search import FullRuns, HyperTrick, ListSearcher, RandomSearcher
from workbench.core.domains import LogUniform, Uniform
from workbench.core.errors import InvalidInput, SchedulerError
from workbench.core.protocols import Kind
from workbench.core.space import Space
from workbench.knowledge.frames import frames_of
from workbench.simulation.models import FAMILIES, CostTable, ReplayedStudy, SyntheticCurves


def curves(family, n=200, phases=8, **settings):
    """Give durations and scores, each [n, phases]."""
    model = SyntheticCurves.family(family, SPACE, phases, **settings)
    searcher = RandomSearcher(SPACE)
    configs = [searcher.suggest(i) for i in range(n)]
    both = np.array([[model.phase(0, p, config, 0) for p in range(phases)] for config in configs])
    return both[..., 0], both[..., 1]


def rank(a, b) -> float:
    return spearmanr(a, b).statistic


def test_steady_ranks_last_and_crossing_ranks_turn_over() -> None:
    _, steady = curves("steady", noise=0.0)
    assert rank(steady[:, 0], steady[:, -1]) > 0.99
    _, crossing = curves("crossing", noise=0.0)
    assert rank(crossing[:, 1], crossing[:, -1]) < 0
    _, unrelated = curves("unrelated")
    assert abs(rank(unrelated[:, 0], unrelated[:, -1])) < 0.2


def test_bad_configurations_are_cheap_or_expensive_as_named() -> None:
    durations, scores = curves("cheap-but-bad")
    assert rank(durations[:, 0], scores[:, -1]) > 0.7
    durations, scores = curves("expensive-but-bad")
    assert rank(durations[:, 0], scores[:, -1]) < -0.7


@pytest.mark.parametrize("family", FAMILIES)
def test_a_curve_belongs_to_its_configuration_and_its_seed(family) -> None:
    first, second, third = (curves(family, 5, seed=seed)[1] for seed in (1, 1, 2))
    assert (first == second).all()
    assert (first != third).any()


def test_a_curve_does_not_depend_on_the_order_of_names() -> None:
    space = Space({"x": Uniform(0, 1), "y": Uniform(0, 1)})
    turned, model = SyntheticCurves(space, 1), SyntheticCurves(space, 1)
    expected = turned.phase(0, 0, {"x": 0.8, "y": 0.2}, 0)
    assert model.phase(0, 0, {"x": 0.2, "y": 0.8}, 0) != expected
    assert model.phase(1, 0, {"y": 0.2, "x": 0.8}, 0) == expected


def test_costs_are_interpolated_between_logarithms_and_held_beyond_the_ends() -> None:
    table = CostTable("t_max", [2, 8], [4.0, 1.0])
    assert [table.cost({"t_max": t}) for t in (1, 2, 4, 8, 100)] == pytest.approx([4, 4, 2, 1, 1])
    with pytest.raises(InvalidInput, match="unknown hyperparameter of the cost table 't_max'"):
        table.cost({"lr": 1.0})


def test_a_cost_table_is_read_by_its_shortest_times_with_mean_one(tmp_path) -> None:
    (tmp_path / "cost.csv").write_text("round,t_max,wall_s\n0,2,6\n1,2,12\n0,4,3\n1,4,2\n")
    table = CostTable.read(tmp_path / "cost.csv", "t_max")
    assert (table.values, table.costs) == ([2.0, 4.0], [1.5, 0.5])
    with pytest.raises(InvalidInput, match="needs 'lr'"):
        CostTable.read(tmp_path / "cost.csv", "lr")


@pytest.mark.parametrize("values", [([0, 2], [1.0, 1.0]), ([1, 2], [1.0, 0.0]), ([2, 2], [1.0, 1.0]), ([1], [1, 2])])
def test_a_cost_table_has_positive_costs_of_increasing_values(values) -> None:
    with pytest.raises(InvalidInput, match="a cost table needs"):
        CostTable("t_max", *values)


def test_a_curve_by_hand() -> None:
    """The best there is learns 1 - exp(-5 x), x being the share of the phases; its phases take their usual time."""
    space = Space({"lr": LogUniform(1e-4, 1e-2), "gamma": Uniform(1.0, 3.0)})
    usual = {"luck": 0.0, "noise": 0.0, "cost_noise": 0.0, "phase_s": 20.0}
    model = SyntheticCurves(space, 4, cost_of_quality=1.0, **usual)
    lr, gamma = model._best
    best = {"lr": 1e-4 * 100**lr, "gamma": 1.0 + 2.0 * gamma}
    told = [model.phase(0, phase, best, 0) for phase in range(4)]
    assert told == [pytest.approx((20 * np.exp(0.5), 1 - np.exp(-5 * (phase + 1) / 4))) for phase in range(4)]
    late = SyntheticCurves(space, 4, crossing=1.0, **usual)  # learns nothing in the first 70 % of them
    learnt = [late.phase(0, phase, best, 0)[1] for phase in range(4)]
    assert learnt == pytest.approx([0, 0, 1 - np.exp(-5 * 0.05), 1 - np.exp(-5 * 0.3)])
    off = {"lr": best["lr"] * 100**0.14, "gamma": best["gamma"] - 2.0 * 0.14}  # a fifth of 0.7 off in each
    assert model.phase(0, 3, off, 0) == pytest.approx((20 * np.exp(0.3), 0.8 * (1 - np.exp(-5))))
    noisy = SyntheticCurves(space, 4000, luck=0.0, noise=0.2, cost_noise=0.3)
    durations, scores = np.array([noisy.phase(0, phase, best, 0) for phase in range(4000)]).T
    off_by = scores - (1 - np.exp(-5 * np.arange(1, 4001) / 4000))
    assert (off_by.std(), np.log(durations).std()) == pytest.approx((0.2, 0.3), abs=0.02)
    with pytest.raises(SchedulerError, match="phase 4 was asked for, the synthetic curves have 4"):
        model.phase(0, 4, best, 0)
    lucky = SyntheticCurves(space, 4, **{**usual, "luck": 1.0})  # no hyperparameter has a say
    assert lucky.phase(0, 3, best, 0)[1] < 1 - np.exp(-5)


@pytest.mark.parametrize(
    "bad", [{"crossing": 2.0}, {"luck": -0.1}, {"noise": -1.0}, {"phase_s": 0.0}, {"cost_noise": float("nan")}]
)
def test_senseless_settings_are_refused(bad) -> None:
    with pytest.raises(InvalidInput):
        SyntheticCurves(SPACE, 4, **bad)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "cannot read the cost table .*No columns"),
        ("t_max,wall_s\n5\n1,2,3\n", "cannot read the cost table .*Expected 2 fields"),
        ("t_max,wall_s\na,1\nb,2\n", "holds numbers: could not convert"),
        ("t_max,wall_s\n", "needs increasing values"),
    ],
)
def test_a_cost_table_that_is_none_is_refused_in_one_line(tmp_path, text, says) -> None:
    (tmp_path / "cost.csv").write_text(text)
    with pytest.raises(InvalidInput, match=says) as caught:
        CostTable.read(tmp_path / "cost.csv", "t_max")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [0, "deep", True])
def test_what_has_no_logarithm_has_no_cost(value) -> None:
    with pytest.raises(InvalidInput, match=f"^a cost table goes by a number above 0, got depth = {value!r}$"):
        CostTable("depth", [1, 2], [1.0, 3.0]).cost({"depth": value})


def replayed(log) -> ReplayedStudy:
    frames = frames_of(log)
    return ReplayedStudy(frames.trials, frames.phases, frames.hyperparameters, "first")


def test_a_replayed_study_is_the_study() -> None:
    log = simulate(HyperTrick(RandomSearcher(SPACE), 12, 4), slots=3)
    model = replayed(log)
    again = simulate(HyperTrick(ListSearcher(model.configs), 12, 4), model, slots=3)
    told = [(e.kind, e.trial, e.phase, e.slot) for e in log]
    assert [(e.kind, e.trial, e.phase, e.slot) for e in again] == told
    assert [e.at for e in again] == pytest.approx([e.at for e in log])


def test_of_equal_configurations_each_trial_replays_its_own_and_what_does_not_apply_is_none() -> None:
    trials = pd.DataFrame({"trial": [0, 1, 2], "lr": [0.1, 0.1, 0.2], "momentum": [math.nan, math.nan, 0.9]})
    phases = pd.DataFrame({"trial": [0, 1, 2], "phase": 0, "ended_s": 9.0, "wall_s": [1.0, 2.0, 3.0], "score": 0.5})
    model = ReplayedStudy(trials, phases, ["lr", "momentum"])
    assert model.configs == [{"lr": 0.1}, {"lr": 0.1}, {"lr": 0.2, "momentum": 0.9}]
    assert [model.phase(n, 0, {"lr": 0.1}, 0)[0] for n in (0, 1, 2, 3)] == [1.0, 2.0, 1.0, 1.0]


def test_whole_numbers_that_a_frame_has_as_fractions_are_found_in_any_order() -> None:
    trials = pd.DataFrame({"trial": [0, 1, 2], "kind": ["a", "a", "b"], "depth": [2, 3, None]})
    phases = pd.DataFrame({"trial": [0, 1, 2], "phase": 0, "ended_s": 9.0, "wall_s": [1.0, 2.0, 3.0], "score": 0.5})
    model = ReplayedStudy(trials, phases, ["kind", "depth"])
    configs = [{"kind": "b"}, {"kind": "a", "depth": 3}, {"depth": 2, "kind": "a"}]
    assert all(model.known(config, 0) for config in configs)
    assert [model.phase(n, 0, config, 0)[0] for n, config in enumerate(configs)] == [3.0, 2.0, 1.0]


def test_a_phase_that_was_never_recorded_is_said_so() -> None:
    log = simulate(HyperTrick(RandomSearcher(SPACE), 12, 4), slots=3)
    model = replayed(log)
    with pytest.raises(SchedulerError, match=r"study 'first' never completed phase \d of trial \d+, which"):
        simulate(FullRuns(ListSearcher(model.configs), 12, 4), model)
    with pytest.raises(SchedulerError, match="never ran the configuration"):
        simulate(FullRuns(RandomSearcher(SPACE, seed=9), 1, 1), model)


def test_a_study_without_a_phase_cannot_be_replayed() -> None:
    log = [e for e in simulate(FullRuns(RandomSearcher(SPACE), 1, 1)) if e.kind is not Kind.PHASE_ENDED]
    with pytest.raises(InvalidInput, match="no completed phase"):
        replayed(log)


def test_the_optimum_is_not_where_a_searcher_of_the_same_seed_begins() -> None:
    """Its coordinates and those of the first configuration were the same random numbers."""
    space, first = Space({name: Uniform(0.0, 1.0) for name in "abc"}), 0
    for seed in range(40):
        curves = SyntheticCurves(space, 1, luck=0.0, noise=0.0, seed=seed)
        searcher = RandomSearcher(space, seed)
        scores = [curves.phase(trial, 0, searcher.suggest(trial), 0)[1] for trial in range(10)]
        first += scores[0] == max(scores)
    assert first < 12  # 4 by chance
