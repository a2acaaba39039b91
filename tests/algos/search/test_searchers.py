"""Searchers that learn."""

import math
import sys

import numpy as np
import pytest

from workbench.algos.search import (
    EvolutionSearcher,
    GridSearcher,
    HyperTrick,
    ListSearcher,
    OptunaSearcher,
    RandomSearcher,
)
from workbench.core.domains import Choice, LogUniform, Uniform
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Report
from workbench.core.space import Space

SPACE = Space(
    {
        "lr": LogUniform(1e-5, 1e-1),
        "t_max": LogUniform(2, 100, step=1),
        "x": Uniform(0, 10),
        "gamma": Choice([0.9, 0.99]),
    }
)


def goodness(config) -> float:
    return -abs(math.log10(config["lr"]) + 3) - abs(config["x"] - 7) / 3 + 10 * config["gamma"]


def best_of_last(searcher, n=80) -> float:
    """Mean of the last quarter of the configurations, each scored at once."""
    scores = []
    for trial in range(n):
        config = searcher.suggest(trial)
        SPACE.validate(config)
        scores.append(goodness(config))
        searcher.observe(Report(trial, 0, scores[-1]))
    return float(np.mean(scores[-n // 4 :]))


def test_fitness_is_the_share_of_rivals_beaten_summed_over_phases() -> None:
    searcher = EvolutionSearcher(SPACE)
    for trial, phase, score in [(0, 0, 1.0), (1, 0, 3.0), (2, 0, 2.0), (1, 1, 0.0), (3, 0, 2.0)]:
        searcher.observe(Report(trial, phase, score))
    # alone: half of one; 3 beats 1 of 2 and ties itself: 1.5/2; 2 of three: 1.5/3; alone again; 2 = 2: (1+3)/2 of 4
    assert searcher._fitness == {0: 0.5, 1: 0.75 + 0.5, 2: 0.5, 3: 0.5}


def test_a_child_takes_each_hyperparameter_from_one_of_two_parents() -> None:
    searcher = EvolutionSearcher(SPACE, warmup=2, mutation=0.0, random=0.0)
    parents = [searcher.suggest(t) for t in range(2)]
    for trial in range(2):
        searcher.observe(Report(trial, 0, 1.0))
    for trial in range(2, 10):
        child = searcher.suggest(trial)
        assert all(child[name] in (parents[0][name], parents[1][name]) for name in SPACE)


def test_nothing_is_bred_before_enough_have_reported() -> None:
    evolution, random = EvolutionSearcher(SPACE, warmup=5, seed=3), RandomSearcher(SPACE, seed=3)
    assert [evolution.suggest(t) for t in range(9)] == [random.suggest(t) for t in range(9)]


def test_evolution_finds_better_configurations_than_chance() -> None:
    seeds = range(10)
    bred = np.mean([best_of_last(EvolutionSearcher(SPACE, s)) for s in seeds])
    drawn = np.mean([best_of_last(RandomSearcher(SPACE, s)) for s in seeds])
    assert bred > drawn + 0.5


def test_tpe_finds_better_configurations_than_chance() -> None:
    pytest.importorskip("optuna")
    searched = np.mean([best_of_last(OptunaSearcher(SPACE, seed=s), 50) for s in range(2)])
    drawn = np.mean([best_of_last(RandomSearcher(SPACE, s), 50) for s in range(10)])
    assert searched > drawn + 0.5


def test_optuna_is_shown_failures_and_running_trials_and_gives_points_of_the_space() -> None:
    pytest.importorskip("optuna")
    searcher = OptunaSearcher(SPACE, n_random=2)
    for trial in range(8):
        SPACE.validate(searcher.suggest(trial))
        if trial % 2:
            searcher.observe(Report(trial, 0, math.nan, failed=True))
    assert isinstance(searcher.suggest(8)["t_max"], int)


def test_optuna_does_not_forget_what_a_trial_scored_before_it_failed() -> None:
    pytest.importorskip("optuna")
    whole, stopped = (OptunaSearcher(SPACE, n_random=4) for _ in range(2))
    for trial in range(8):
        assert whole.suggest(trial) == stopped.suggest(trial)
        for searcher in (whole, stopped):
            searcher.observe(Report(trial, 0, float(trial)))
    stopped.observe(Report(7, 1, math.nan, failed=True))  # the best, as by a person
    assert [whole.suggest(trial) for trial in (8, 9)] == [stopped.suggest(trial) for trial in (8, 9)]


@pytest.mark.slow
def test_gp_learns_of_a_hyperparameter_that_does_not_always_apply() -> None:
    """Also where earlier trials lacked it. Uniform draws lie 0.25 off."""
    pytest.importorskip("optuna")
    space = Space({"kind": Choice(["a", "b"]), "m": Uniform(0, 1)}, only_if={"m": {"kind": "a"}})
    searcher = OptunaSearcher(space, "gp", n_random=6)
    for trial in (-1, -2):
        searcher.adopt(trial, {"kind": "b"})
        searcher.observe(Report(trial, 0, -0.5))
    off = []
    for trial in range(16):
        space.validate(config := searcher.suggest(trial))
        off.append(abs(config["m"] - 0.5) if "m" in config else 0.5)
        searcher.observe(Report(trial, 0, -off[-1]))
    assert np.mean(off[8:]) < 0.2


def test_optuna_draws_the_ends_of_a_domain_with_a_step_as_often_as_the_others() -> None:
    pytest.importorskip("optuna")
    space = Space({"layers": Uniform(1, 3, step=1)})
    # several, for each shows the sampler anew all that it has drawn
    searchers = [OptunaSearcher(space, sampler="random", seed=seed) for seed in range(20)]
    drawn = [searcher.suggest(trial)["layers"] for searcher in searchers for trial in range(15)]
    assert min(map(drawn.count, (1, 2, 3))) > 85  # 75 of each end, were they rounded from within


def test_without_optuna_the_searcher_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(InvalidInput, match=r"pip install 'rl-workbench\[optuna\]'"):
        OptunaSearcher(SPACE)


def test_an_unknown_sampler_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"unknown sampler .* known: gp, random, tpe"):
        OptunaSearcher(SPACE, sampler="cmaes")


def test_a_study_file_hands_on_its_seed_its_space_and_its_nodes() -> None:
    pytest.importorskip("torch")  # of the trainable it names
    from workbench.study.file import study_from

    table = {
        "study": {"name": "x", "seed": 5, "nodes": 3},
        "space": {"learning_rate": {"log_uniform": [1e-5, 1e-2]}},
        "searcher": {"kind": "evolution"},
        "scheduler": {"kind": "pbt", "population": 4, "n_phases": 3},
        "trainable": {"kind": "ga3c", "game": "Pong", "phase": {"frames": 1000}},
    }
    pbt = study_from(table).scheduler
    assert (pbt.seed, pbt.searcher.seed) == (5, 5)
    table["scheduler"] = {"kind": "halving", "n_trials": 9, "n_phases": 9, "allocation": "none"}
    with pytest.raises(InvalidInput, match="needs 9 nodes, the cluster has 3"):
        study_from(table)
    table["scheduler"] = {"kind": "hypertrick", "n_trials": 9, "n_phases": 9}
    assert isinstance(study_from(table).scheduler, HyperTrick)


def test_searchers_take_a_plain_dict_for_a_space() -> None:
    for searcher in (RandomSearcher, EvolutionSearcher, lambda space: GridSearcher(space, 2)):
        assert searcher(dict(SPACE)).suggest(0) == searcher(SPACE).suggest(0)
    with pytest.raises(InvalidInput, match="hyperparameter 'x': got"):
        RandomSearcher({"x": (0, 1)})


@pytest.mark.parametrize(("configs", "says"), [(3, "a list"), (["a"], "a table of hyperparameters"), ([], "got none")])
def test_a_list_that_holds_no_configurations_is_refused(configs, says) -> None:
    with pytest.raises(InvalidInput, match=says):
        ListSearcher(configs)


def test_a_trial_that_begins_anew_survives_no_phase_twice() -> None:
    once, anew = (EvolutionSearcher(SPACE, warmup=2) for _ in range(2))
    for searcher in (once, anew):
        for report in (Report(0, 0, 1.0), Report(1, 0, 2.0), Report(0, 1, 1.0)):
            searcher.observe(report)
    anew.observe(Report(0, 0, 1.0))
    assert anew._fitness == once._fitness
