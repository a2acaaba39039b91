"""What is known beforehand: configurations to try first, trials of earlier studies, spaces with conditions."""

import json
import math

import pandas as pd
import pytest

from tests.support import NETWORK, SPACE, names_what_applies, simulate
from workbench import (
    PBT,
    Choice,
    CostAwareSearcher,
    EvolutionSearcher,
    FullRuns,
    GridSearcher,
    HyperTrick,
    InformedSearcher,
    ListSearcher,
    OptunaSearcher,
    RandomSearcher,
    Space,
    Uniform,
    warm_start,
)
from workbench.core.describe import build, describe
from workbench.core.drive import replay
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Kind, Report
from workbench.core.registry import SCHEDULERS

GOOD = [{"lr": 1e-3, "gamma": 0.99}, {"lr": 2e-3, "gamma": 0.9}]
PAST = [{"config": {"lr": 1e-4 * (k + 1), "gamma": 0.9}, "scores": [k, k + 0.5]} for k in range(12)]


def configs_of(log) -> list[dict]:
    return [event.data["config"] for event in log if event.kind is Kind.RUN]


@pytest.mark.parametrize("inner", [RandomSearcher(SPACE), GridSearcher(SPACE, 3), EvolutionSearcher(SPACE)])
def test_some_are_tried_first_and_the_rest_come_as_they_would(inner) -> None:
    log = simulate(FullRuns(InformedSearcher(inner, GOOD), 6, 1))
    assert configs_of(log) == GOOD + configs_of(simulate(FullRuns(inner, 4, 1)))


def test_a_searcher_that_can_run_out_has_so_many_more() -> None:
    searcher = InformedSearcher(ListSearcher(GOOD), [PAST[0]["config"]])
    assert len(searcher) == 3
    assert HyperTrick(searcher, 100, 2).n_trials == 3
    assert HyperTrick(InformedSearcher(RandomSearcher(SPACE), GOOD), 100, 2).n_trials == 100
    assert not hasattr(searcher, "space")


def test_an_evolution_breeds_from_what_it_was_told() -> None:
    searcher = InformedSearcher(EvolutionSearcher(SPACE, warmup=4, mutation=0.0, random=0.0), GOOD, PAST)
    assert [searcher.suggest(0), searcher.suggest(1)] == GOOD
    assert len(searcher.searcher._configs) == len(GOOD) + len(PAST)  # each under a number of its own
    parents = [one["config"] for one in PAST[-3:]]  # a quarter of twelve
    child = searcher.suggest(2)
    assert child["lr"] in [parent["lr"] for parent in parents]
    for phase in range(40):
        searcher.observe(Report(0, phase, 99.0))
    assert searcher.searcher._fitness[-2] > searcher.searcher._fitness[-3]  # the first of GOOD is number -2


def test_costs_are_handed_on_where_they_are_told() -> None:
    """Two s a phase of the first; nothing is known of the second's costs."""
    past = [{**PAST[0], "seconds": [1.0, 3.0]}, PAST[1]]
    told = InformedSearcher(CostAwareSearcher(SPACE), GOOD, past).searcher
    assert told._seconds == {-3: [1.0, 3.0]}
    assert told.front() == {-4: (2.0, 0.75)}


def test_tpe_is_shown_what_it_was_told_before_it_suggests_anything() -> None:
    pytest.importorskip("optuna")
    told = InformedSearcher(OptunaSearcher(SPACE, n_random=5), (), PAST)
    assert told.suggest(0) != OptunaSearcher(SPACE, n_random=5).suggest(0)
    assert len(told.searcher._configs) == len(PAST) + 1


@pytest.mark.parametrize("kind", ["random", "evolution", "optuna"])
def test_the_record_gives_every_configuration_again(kind) -> None:
    if kind == "optuna":
        pytest.importorskip("optuna")
    inner = {"random": RandomSearcher, "evolution": EvolutionSearcher, "optuna": OptunaSearcher}[kind](SPACE)
    past = [] if kind == "random" else PAST
    scheduler = HyperTrick(InformedSearcher(inner, GOOD, past), 12, 2)
    recorded = json.loads(json.dumps(describe(scheduler)))
    log = simulate(scheduler)
    assert configs_of(log)[:2] == GOOD
    replay(build("scheduler", recorded, SCHEDULERS), log)


def test_what_it_cannot_use_is_refused() -> None:
    with pytest.raises(
        InvalidInput, match="RandomSearcher learns nothing from earlier trials: take optuna, smac, evol"
    ):
        InformedSearcher(RandomSearcher(SPACE), GOOD, PAST)
    with pytest.raises(InvalidInput, match=r"first\[0\] of InformedSearcher: lr=5 lies outside"):
        InformedSearcher(RandomSearcher(SPACE), [{"lr": 5, "gamma": 0.9}])
    momentum = Space({"optimizer": Choice(["sgd", "adam"]), "m": Uniform(0, 1)}, {"m": {"optimizer": "sgd"}})
    past = [{"config": {"optimizer": name, "m": m}, "scores": [1.0]} for name, m in (("sgd", 0.5), ("adam", math.nan))]
    with pytest.raises(InvalidInput, match=r"past\[1\] of .*: 'm' does not apply where optimizer is 'adam'"):
        InformedSearcher(EvolutionSearcher(momentum), past=past)
    with pytest.raises(InvalidInput, match="InformedSearcher needs first a table of hyperparameters, got 'lr'"):
        InformedSearcher(RandomSearcher(SPACE), ["lr"])
    for given in (5, GOOD[0]):
        with pytest.raises(InvalidInput, match="InformedSearcher needs first to be a list, each a table"):
            InformedSearcher(RandomSearcher(SPACE), given)
    one = {"config": GOOD[0], "scores": [1.0]}
    untold = ({"config": GOOD[0], "score": 1.0}, {**GOOD[0], "scores": [1.0]}, {"config": GOOD[0], "scores": "1"})
    for past in (*untold, *({**one, "seconds": seconds} for seconds in ([], [1, 2], [-1], ["1"], [math.nan], 1))):
        with pytest.raises(InvalidInput, match=r'InformedSearcher needs past a table of "config", .* and "scores"'):
            InformedSearcher(EvolutionSearcher(SPACE), past=[past])
    with pytest.raises(InvalidInput, match=r"needs first to be a list, got a DataFrame: pass df.to_dict\('records'\)"):
        InformedSearcher(RandomSearcher(SPACE), pd.DataFrame(GOOD))
    with pytest.raises(InvalidInput, match=r"warm_start needs db, .* got DataFrame: .*Searcher\(searcher, past="):
        warm_start(SPACE, pd.DataFrame(GOOD), "known")
    with pytest.raises(InvalidInput, match=r"warm_start draws configurations from a Space, .* got 5"):
        warm_start(5, "kb.db", "known")


@pytest.mark.parametrize("kind", ["random", "evolution", "tpe", pytest.param("gp", marks=pytest.mark.slow)])
def test_searchers_give_points_of_a_space_with_conditions_and_a_constraint(kind) -> None:
    if kind in ("tpe", "gp"):
        pytest.importorskip("optuna")
        searcher = OptunaSearcher(NETWORK, kind, n_random=4)
    else:
        searcher = RandomSearcher(NETWORK) if kind == "random" else EvolutionSearcher(NETWORK, warmup=4)
    for trial in range(14):
        config = searcher.suggest(trial)
        assert names_what_applies(config)
        searcher.observe(Report(trial, 0, config["width"] + config.get("momentum", 0.0)))


def test_a_population_changes_within_a_space_with_conditions() -> None:
    log = simulate(PBT(RandomSearcher(NETWORK), 8, 6, resample=0.3))
    configs = configs_of(log)
    assert len(configs) > 8
    assert all(map(names_what_applies, configs))
