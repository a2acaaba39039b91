"""Populations of GA3C on CartPole: PBT and random search begin alike, and the measures are read off their logs."""

import pandas as pd
import pytest

from workbench.algos.search import PBT, FullRuns, ListSearcher, RandomSearcher
from workbench.core.protocols import Kind
from workbench.paper.pbt import ablations
from workbench.paper.pbt.measures import (
    SPACE,
    against_random,
    against_random_estimates,
    design_space,
    improvements,
    last_config,
    play,
    published_improvements,
    summed_up,
)


def test_both_begin_alike_with_the_same_seed_and_spend_the_same() -> None:
    found = [
        summed_up(play(scheduler, 4, 100, seed=3, n_agents=4))
        for scheduler in (
            PBT(RandomSearcher(SPACE, seed=3), 4, 3, seed=3),
            FullRuns(RandomSearcher(SPACE, seed=3), 4, 3),
        )
    ]
    assert found[0]["first_phase"] == found[1]["first_phase"]
    assert found[0]["phases"] == found[1]["phases"] == 12
    assert found[0]["copies"] > found[1]["copies"] == 0
    assert all(measures["final"] >= measures["mean"] for measures in found)


def test_the_first_members_of_random_search_are_those_of_a_smaller_one() -> None:
    few, many = (play(FullRuns(RandomSearcher(SPACE, seed=3), n, 2), n, 100, seed=3, n_agents=4) for n in (3, 5))
    assert summed_up(many, 3) == summed_up(few)
    assert summed_up(many)["founders"] == 5


def test_founders_are_those_whose_weights_live_on() -> None:
    """On the toy problem the second member copies the first, or nobody anybody."""
    assert summed_up(ablations.play("exploit only").events)["founders"] == 1
    assert summed_up(ablations.play("grid").events)["founders"] == 2


def test_the_last_config_is_that_of_the_best_member_at_the_end() -> None:
    configs = [{"learning_rate": rate, "entropy_beta": 0.01, "t_max": 5} for rate in (1e-4, 3e-3)]
    events = play(FullRuns(ListSearcher(configs), 2, 2), 2, 500, seed=0)
    last = {e.trial: e.data["score"] for e in events if e.kind is Kind.PHASE_ENDED}
    assert last_config(events) == configs[max(last, key=last.__getitem__)]


def test_paired_repetitions_are_compared_pair_by_pair() -> None:
    scores = {"pbt": (100.0, 210.0, 320.0), "random": (90.0, 200.0, 340.0)}
    runs = pd.DataFrame(
        [
            {"repeat": i, "scheduler": name, "final": s, "mean": s / 2, "over_time": s}
            for name, values in scores.items()
            for i, s in enumerate(values)
        ]
    )
    final, mean, _ = against_random(runs).to_dict("records")
    assert (final["n"], final["pbt"], final["random"]) == (3, 210.0, 210.0)
    assert (final["difference"], final["difference_low"], final["difference_high"]) == (0.0, -20.0, 10.0)
    assert final["better_in"] == 2
    assert mean["pbt"] == 105.0
    drawn = against_random_estimates(runs)
    assert drawn[["group", "name"]].values.tolist()[:3] == [["final", "pbt"], ["final", "random"], ["mean", "pbt"]]
    assert drawn["value"].tolist()[:3] == [210.0, 210.0, 105.0]
    assert (drawn["low"] < drawn["value"]).all()


def test_a_choice_s_gain_is_over_random_search_with_the_same_seed() -> None:
    rows = [
        {"design": "exploit", "value": "t-test", "population": 10, "final": s, "random_final": 5.0} for s in (6.0, 8.0)
    ]
    (row,) = design_space(pd.DataFrame(rows)).to_dict("records")
    assert (row["design"], row["value"], row["population"], row["n"]) == ("exploit", "t-test", 10, 2)
    assert (row["score"], row["gain"], row["gain_low"], row["gain_high"]) == (7.0, pytest.approx(2.0), 1.0, 3.0)
    members = pd.DataFrame(rows).assign(mean=[3.0, 5.0], random_mean=1.0)
    assert design_space(members, "mean")["gain"].tolist() == [pytest.approx(3.0)]


def test_ratios_are_those_of_the_means():
    rows = [
        ("exploit", "truncation", 150.0, 100.0),
        ("exploit", "truncation", 130.0, 110.0),
        ("exploit", "none", 90.0, 100.0),
        ("exploit", "none", 99.0, 110.0),
    ]
    found = improvements(pd.DataFrame(rows, columns=["design", "value", "final", "random_final"]))
    assert found[["group", "name", "source"]].values.tolist() == [
        ["exploit", "truncation", "simulated"],
        ["exploit", "none", "simulated"],
    ]
    assert found["value"].tolist() == pytest.approx([280 / 210, 0.9])
    assert found.loc[1, ["low", "high"]].tolist() == pytest.approx([0.9, 0.9])
    assert found["low"][0] < 1 < found["high"][0]


def test_the_paper_gains_from_twenty_members_on():
    """Of ten: 1511/1742, 4110/3970, 5509/5635 and 1958/1838."""
    found = published_improvements()
    assert found["value"][0] == pytest.approx((0.86739 + 1.03526 + 0.97764 + 1.06529) / 4, abs=1e-4)
    assert (found["value"][1:] > 1.1).all()
    assert (found["source"] == "published").all()
