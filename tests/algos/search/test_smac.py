"""SMAC's forest as a searcher, held against SMAC's own ask and tell. Skipped without the library (extra `bench`)."""

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.algos.search.test_searchers import SPACE, best_of_last, goodness
from tests.support import NETWORK, names_what_applies
from workbench.algos.search import InformedSearcher, RandomSearcher, SMACSearcher
from workbench.algos.search.smac import _exact
from workbench.core.domains import Choice, LogUniform, Uniform
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Report
from workbench.core.space import Space

PLAIN = Space({"lr": LogUniform(1e-5, 1e-1), "x": Uniform(0, 10), "net": Choice(["small", "large"])})


def test_without_smac_the_searcher_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "smac", None)
    with pytest.raises(InvalidInput, match=r"pip install 'rl-workbench\[smac\]'"):
        SMACSearcher(SPACE)


def worth(config) -> float:
    return -abs(math.log10(config["lr"]) + 3) - abs(config["x"] - 7) / 3 + (config["net"] == "large")


def alone(tmp_path, n, n_design, candidates):
    """SMAC by itself, as its documentation asks and tells it: the facade, one trial a configuration, no budgets."""
    cs = pytest.importorskip("ConfigSpace")
    smac = pytest.importorskip("smac")
    from smac.acquisition.maximizer import RandomSearch
    from smac.main.config_selector import ConfigSelector

    class Sorted(RandomSearch):
        def _maximize(self, previous_configs, n_points):
            return super()._maximize(previous_configs, n_points, _sorted=True)

    space = cs.ConfigurationSpace(seed=0)
    space.add(cs.Float("lr", (1e-5, 1e-1), log=True), cs.Float("x", (0, 10)), cs.Categorical("net", ["0", "1"]))
    kinds = smac.HyperparameterOptimizationFacade
    scenario = smac.Scenario(space, deterministic=True, n_trials=10**9, output_directory=tmp_path, seed=0)
    forest = kinds.get_model(scenario)
    forest._rf_opts["max_leaf_nodes"] = 1000  # more than it meets; a million by itself, and their memory
    facade = kinds(
        scenario,
        model=forest,
        acquisition_maximizer=Sorted(space, challengers=candidates, seed=0),
        initial_design=kinds.get_initial_design(scenario, n_configs=n_design, max_ratio=1),
        intensifier=kinds.get_intensifier(scenario, max_config_calls=1),
        config_selector=ConfigSelector(scenario, retrain_after=1, min_trials=n_design),
        logging_level=False,
        overwrite=True,
    )
    configs = []
    for _ in range(n):
        asked = facade.ask()
        configs.append({**asked.config, "net": PLAIN["net"].values[int(asked.config["net"])]})
        facade.tell(asked, smac.runhistory.TrialValue(cost=-worth(configs[-1])), save=False)
    return configs


def test_told_one_phase_it_suggests_what_smac_alone_does(tmp_path) -> None:
    theirs = alone(tmp_path, n=16, n_design=6, candidates=200)
    searcher = SMACSearcher(PLAIN, n_random=6, candidates=200)
    for trial, expected in enumerate(theirs):
        assert searcher.suggest(trial) == pytest.approx(expected)
        searcher.observe(Report(trial, 0, worth(expected)))


def test_it_finds_better_configurations_than_chance() -> None:
    pytest.importorskip("smac")
    searched = np.mean([best_of_last(SMACSearcher(SPACE, candidates=500, seed=s), 40) for s in range(3)])
    drawn = np.mean([best_of_last(RandomSearcher(SPACE, s), 40) for s in range(10)])
    assert searched > drawn + 0.5


def test_the_forest_learns_from_the_latest_phase_that_enough_have_reported() -> None:
    """Until six have reported the second phase, which turns all round, the first counts."""
    pytest.importorskip("smac")

    def last_of(n_second: int) -> float:
        searcher = SMACSearcher(SPACE, n_random=6, candidates=500)
        for trial in range(20):
            config = searcher.suggest(trial)
            searcher.observe(Report(trial, 0, goodness(config)))
            if trial < n_second:
                searcher.observe(Report(trial, 1, -goodness(config)))
        return float(np.mean([goodness(searcher.suggest(trial)) for trial in range(20, 30)]))

    assert last_of(5) == last_of(0) > last_of(20) + 1


def test_a_failure_counts_as_the_worst_so_far_and_no_number_as_nothing() -> None:
    pytest.importorskip("smac")
    searcher = SMACSearcher(SPACE, n_random=2, candidates=20)
    told = [Report(0, 0, math.nan, failed=True), Report(1, 0, 3.0), Report(2, 0, 5.0), Report(3, 0, math.inf)]
    for trial, report in enumerate([*told, Report(4, 2, math.nan, failed=True)]):
        SPACE.validate(searcher.suggest(trial))
        searcher.observe(report)
    history = searcher._smac._history
    assert [(key.budget, value.cost) for key, value in history.items()] == [(1.0, -3.0), (1.0, -5.0), (3.0, -3.0)]


def test_it_gives_points_of_a_space_with_conditions_and_a_constraint() -> None:
    pytest.importorskip("smac")
    searcher = SMACSearcher(NETWORK, n_random=4, candidates=50)
    for trial in range(14):
        config = searcher.suggest(trial)
        assert names_what_applies(config)
        searcher.observe(Report(trial, 0, config["width"] + config.get("momentum", 0.0)))


MIXED = Space(  # b depends on a choice and a number, y on b
    {"a": Choice(["p", "q"]), "n": Uniform(1, 3, step=1), "b": Choice([1, 2]), "x": Uniform(0, 1), "y": Uniform(0, 1)},
    only_if={"b": {"a": "p", "n": 2}, "x": {"a": "p"}, "y": {"b": 1}},
)


def test_conditions_that_smac_cannot_write_are_left_to_the_space() -> None:
    assert _exact(MIXED) == {"a", "n", "x"}


def test_it_gives_points_of_a_space_with_conditions_on_numbers() -> None:
    pytest.importorskip("smac")
    known = ({"a": "p", "n": 1, "x": 0.5}, {"a": "p", "n": 2, "b": 1, "x": 0.5, "y": 0.5}, {"a": "q", "n": 2})
    searcher = InformedSearcher(SMACSearcher(MIXED, n_random=4, candidates=50), first=known)
    for trial in range(14):
        MIXED.validate(config := searcher.suggest(trial))
        searcher.observe(Report(trial, 0, config["n"] + config.get("x", 0.0)))


def test_a_space_of_few_points_is_drawn_from_again_when_smac_has_given_all() -> None:
    pytest.importorskip("smac")
    few = Space({"a": Choice([1, 2]), "b": Choice(["x", "y"])})
    searcher = SMACSearcher(few, n_random=2, candidates=10)
    given = []
    for trial in range(8):
        given.append(searcher.suggest(trial))
        searcher.observe(Report(trial, 0, float(given[-1]["a"])))
    assert len({tuple(config.values()) for config in given}) == 4


def test_it_learns_from_earlier_studies() -> None:
    pytest.importorskip("smac")
    rng = np.random.default_rng(3)
    past = [{"config": config, "scores": [goodness(config)]} for config in map(SPACE.sample, [rng] * 30)]
    told = InformedSearcher(SMACSearcher(SPACE, candidates=500), (), past)
    first = [told.suggest(trial) for trial in range(5)]
    assert np.mean(list(map(goodness, first))) > np.mean([goodness(one["config"]) for one in past]) + 0.5


SAID = """
from tests.algos.search.test_smac import PLAIN, worth
from workbench.algos.search import SMACSearcher
from workbench.core.protocols import Report
searcher = SMACSearcher(PLAIN, n_random=4, candidates=50)
for trial in range(9):
    config = searcher.suggest(trial)
    searcher.observe(Report(trial, 0, worth(config)))
    print(config)
"""


@pytest.mark.slow
def test_another_process_is_given_the_same() -> None:
    """Strings hash anew in every process: what starts from a set of them, as SMAC's local search does, differs."""
    pytest.importorskip("smac")
    root = Path(__file__).parents[3]
    said = [
        subprocess.run(
            [sys.executable, "-c", SAID],
            env={**os.environ, "PYTHONHASHSEED": hashed},
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hashed in ("1", "2")
    ]
    assert said[0] == said[1] != ""
