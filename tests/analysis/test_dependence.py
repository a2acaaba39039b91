"""Partial dependence on made-up studies whose answer is known."""

import numpy as np
import pandas as pd
import pytest

from workbench.analysis import Importance, importance, partial_dependence

pytestmark = pytest.mark.usefixtures("few_shuffles")


def study_of(n: int = 80, seeds: int = 1, noise: float = 0.05) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A score that has its best at a rate of 1e-3, and does not ask for the momentum."""
    rng = np.random.default_rng(0)
    configs = pd.DataFrame({"rate": 10 ** rng.uniform(-5, -1, n), "momentum": rng.uniform(0, 1, n)})
    trials = configs.loc[configs.index.repeat(seeds)].reset_index(names="candidate")
    trials["trial"] = np.arange(len(trials))
    trials["last_score"] = -np.abs(np.log10(trials["rate"]) + 3) + noise * rng.normal(size=len(trials))
    return trials, pd.DataFrame({"trial": trials["trial"], "phase": 0, "score": trials["last_score"]})


def dependence(trials: pd.DataFrame, phases: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    few = importance(trials, phases, names, forests=2, resamples=2)
    return partial_dependence(trials, phases, names, fitted=few)


def test_it_finds_where_the_best_value_lies_and_what_does_not_matter() -> None:
    table = dependence(*study_of(), ["rate", "momentum"])
    rate = table[table["hyperparameter"] == "rate"]
    assert len(rate) == 20
    assert rate["value"].is_monotonic_increasing
    assert 3e-4 < rate.loc[rate["score"].idxmax(), "value"] < 3e-3
    assert ((rate["low"] <= rate["score"]) & (rate["score"] <= rate["high"])).mean() > 0.8
    flat = table[table["hyperparameter"] == "momentum"]["score"]
    assert np.ptp(flat) < 0.15 * np.ptp(rate["score"])


def test_a_score_is_of_all_configurations_and_its_interval_of_95_percent_of_draws_of_them(monkeypatch) -> None:
    means: list[float] = []

    class Constant:
        """Says whatever is asked what its own scores are on average."""

        def __init__(self, settings, x, y) -> None:
            means.append(y.mean())
            self.mean = y.mean()

        def predict(self, x) -> np.ndarray:
            return np.full(len(x), self.mean)

    monkeypatch.setattr("workbench.analysis.dependence.Forest", Constant)
    trials, phases = study_of(20)
    known = Importance(pd.DataFrame({"hyperparameter": ["rate"]}))
    table = partial_dependence(trials, phases, ["rate"], fitted=known)
    assert means[0] == trials["last_score"].mean()
    wanted = [means[0], *np.quantile(means[1:], [0.025, 0.975])]
    assert len(table) == 20
    assert table[["score", "low", "high"]].to_numpy() == pytest.approx(np.tile(wanted, (20, 1)))


def test_words_are_asked_one_by_one() -> None:
    trials, phases = study_of()
    trials["kind"] = np.where(trials["rate"] > 1e-3, "high", "low")
    table = dependence(trials, phases, ["rate", "kind"])
    assert set(table.loc[table["hyperparameter"] == "kind", "value"]) == {"high", "low"}


def test_without_importance_there_is_none() -> None:
    trials, phases = study_of(10)
    assert partial_dependence(trials, phases, ["rate"]).empty


@pytest.mark.parametrize("seeds", [1, 3])
def test_twins_of_other_seeds_tell_no_forest_what_it_is_asked(seeds) -> None:
    """Scores that follow nothing cannot be predicted, however many seeds a configuration has."""
    rng = np.random.default_rng(1)
    trials, phases = study_of(40, seeds)
    luck = rng.normal(size=40)  # of the configuration, the same for all its seeds
    trials["last_score"] = luck[trials["candidate"]] + 0.01 * rng.normal(size=len(trials))
    found = importance(trials, phases, ["rate", "momentum"], forests=3, resamples=2)
    assert found.trials == 40
    assert found.r2 < 0.2
