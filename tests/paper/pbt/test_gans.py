"""GANs of digits by PBT and by hand: they begin alike, rates fall as said, gains are over the best by hand."""

import pandas as pd
import pytest

from workbench.algos.digits.gan import DigitsGAN
from workbench.core.budget import Budget
from workbench.paper.pbt import gans
from workbench.paper.pbt.gans import BOTH, FALLS, Annealed, by_strategy, factors, starts

FINALS = {  # of two repetitions
    "truncation": (7.0, 7.4),
    "tournament": (6.9, 7.1),
    "constant": (6.5, 6.7),
    "linear": (6.8, 6.6),
    "exponential": (6.0, 7.0),
}


@pytest.fixture
def runs():
    rows = [
        {"strategy": strategy, "repeat": n, "final": final, "mean": final - 1, "founders": 1 + n}
        | {"generator_ratio": 4.0**n, "discriminator_ratio": 0.25}
        for strategy, finals in FINALS.items()
        for n, final in enumerate(finals)
    ]
    return pd.DataFrame(rows)


def test_all_pairs_of_rates_begin_and_five_times_each() -> None:
    begun = [tuple(config[name] for name in BOTH) for config in starts(45)]
    assert len(set(begun)) == 9
    assert begun.count((1e-3, 5e-3)) == 5
    assert begun[:9] == begun[9:18]


def test_rates_by_hand_stay_for_half_of_the_training_and_then_fall() -> None:
    assert factors("constant", 4) == (1, 1, 1, 1)
    assert factors("linear", 4) == (1, 1, 0.75, 0.25)
    assert factors("exponential", 4) == pytest.approx((1, 1, 10**-0.5, 10**-1.5))
    assert all(len(factors(strategy, 5)) == 5 for strategy in FALLS)


def test_an_annealed_trial_takes_each_phase_with_its_own_rates_also_from_a_checkpoint(tmp_path) -> None:
    annealed = Annealed(DigitsGAN(Budget(updates=1)), (1.0, 0.5))
    config = {"generator_learning_rate": 2e-3, "discriminator_learning_rate": 1e-3}
    first = annealed(config, 0)
    assert first.train_phase(lambda metrics: None)["replayed_generator_learning_rate"] == 2e-3
    first.save(tmp_path)
    second = annealed(config, 0)
    second.load(tmp_path)
    found = second.train_phase(lambda metrics: None)
    assert [found[f"replayed_{name}"] for name in BOTH] == [1e-3, 5e-4]


@pytest.mark.slow
def test_all_strategies_begin_alike_and_only_pbt_copies() -> None:
    rows = gans.gans(gans.GANs(1, members=5, phases=4, updates=1, processes=1))
    assert [row["strategy"] for row in rows] == list(FINALS)
    assert all(row["paired"] and row["phases"] == 4 and 1 <= row["mean"] <= row["final"] for row in rows)
    truncation, tournament, *by_hand = rows
    assert tournament["copies"] > truncation["copies"] == 0  # all scores rise: whoever reports beats who has not yet
    assert {(row["copies"], row["founders"]) for row in by_hand} == {(0, 5)}
    assert [row["generator_ratio"] for row in by_hand] == pytest.approx([1, 0.25, 10**-1.5])
    assert all(row["generator_ratio"] in (0.125, 0.25, 0.5, 1, 2, 4, 8) for row in rows[:2])


def test_gains_are_over_the_best_by_hand_in_the_same_repetition(runs) -> None:
    assert gans.best_by_hand(runs) == "linear"
    table = by_strategy(runs).set_index("strategy")
    assert list(table.index) == list(FINALS)
    row = table.loc["truncation"]
    assert (row["n"], row["final"], row["gain"]) == (2, pytest.approx(7.2), pytest.approx(0.5))
    assert (row["gain_low"], row["gain_high"]) == pytest.approx((0.2, 0.8))
    assert (row["founders"], row["generator"], row["discriminator"]) == pytest.approx((1.5, 2.0, 0.25))
    assert table.loc["linear", "gain"] == 0
    drawn = gans.scores(runs)
    assert drawn[["group", "name"]].values.tolist()[::5] == [["final", "truncation"], ["mean", "truncation"]]
