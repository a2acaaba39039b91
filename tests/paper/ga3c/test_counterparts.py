"""Ours beside the GA3C paper's numbers and claims, on recordings whose numbers are known."""

import math

import pytest

from tests.paper.recorded import ABOUT, verdicts
from workbench.paper.evaluated import EVALUATIONS
from workbench.paper.experiment import keep_table
from workbench.paper.ga3c.agents import agents
from workbench.paper.ga3c.counterparts import learning_on_atari, on_device, speed
from workbench.paper.ga3c.published import TABLE_2
from workbench.paper.scoreboard import page, scoreboard


def test_what_is_gained_without_a_gpu_is_not_comparable(tmp_path) -> None:
    rows = [
        {"network": name, "repeats": 5, "ratio": 3.0 + 0.1 * k, "ratio_low": 2.0, "ratio_high": 4.0}
        for k, name in enumerate(TABLE_2)
    ]
    keep_table(tmp_path / "ga3c-networks", rows, ABOUT)
    claim = "GA3C is significantly faster than A3C on the same machine"
    assert verdicts(tmp_path, "GA3C", "Sec. 6")[claim] == ("not comparable", pytest.approx(3.2))
    claim = "the larger the network, the more GA3C gains over A3C"
    assert verdicts(tmp_path, "GA3C", "Sec. 5.1")[claim] == ("not comparable", pytest.approx(1))
    assert "`workbench reproduce ga3c-networks` (measured, minutes)" in page(scoreboard(tmp_path, "GA3C"))


@pytest.mark.parametrize("name", ["ga3c-training-batch", "ga3c-training-batch-atari"])
def test_the_least_training_batch_is_asked_by_the_mean_over_training(tmp_path, name) -> None:
    scores = {"0": 50.0, "20": 80.0, "40": 90.0, "80": 100.0, "160": 100.0}
    rows = [{"variant": v, "seed": s, "score": score + s} for v, score in scores.items() for s in range(3)]
    keep_table(tmp_path / name, rows, ABOUT)
    assert verdicts(tmp_path, "GA3C", "Sec. 5.3") == {
        "a least training batch of 20 to 40 learns faster than none": ("agrees", pytest.approx(100 * 35 / 51)),
        "20 to 40 is best, larger ones learn slower": ("differs", pytest.approx(-100 * 20 / 101)),
        "a larger training batch lessens the policy lag": ("not run", None),
    }


@pytest.mark.parametrize(("of_80", "verdict"), [(50.0, "agrees"), (85.0, "differs")])
def test_a_size_is_best_where_each_of_its_ends_beats_the_next_larger(tmp_path, of_80, verdict) -> None:
    scores = {"0": 50.0, "20": 80.0, "40": 200.0, "80": of_80, "160": 10.0}
    rows = [{"variant": v, "seed": s, "score": score + s} for v, score in scores.items() for s in range(3)]
    keep_table(tmp_path / "ga3c-training-batch", rows, ABOUT)
    claim = "20 to 40 is best, larger ones learn slower"
    assert verdicts(tmp_path, "GA3C", "Sec. 5.3")[claim] == (verdict, pytest.approx(100 * (81 / (of_80 + 1) - 1)))


@pytest.mark.parametrize(("middle", "verdict"), [(90.0, "differs"), (30.0, "agrees")])
def test_who_plays_most_has_to_be_ahead_of_every_other_mix_over_time(tmp_path, middle, verdict) -> None:
    runs = {"1 agent": (10.0, 10), "16 agents": (middle, 50), "64 agents": (70.0, 100), "adjusted, from 1": (68.0, 55)}
    rows = [
        {"game": "CartPole-v1", "variant": variant, "seed": seed, "frames": frames + seed, "score": last + seed / 10}
        for variant, (score, frames) in runs.items()
        for seed in range(3)
        for last in (score, 500.0)  # all end with the most there is
    ]
    keep_table(tmp_path / "ga3c-speed", rows, ABOUT)
    found = verdicts(tmp_path, "GA3C", "Sec. 5.2")
    assert found["who plays more frames in the same time scores higher"][0] == verdict
    gap = pytest.approx(100 * (284.1 / 285.1 - 1))
    assert found["adjustment comes to nearly the score of the fastest fixed mix"] == ("agrees", gap)
    gap = pytest.approx(100 * (56 / 101 - 1))
    assert found["adjustment plays only slightly fewer frames than the fastest fixed mix"] == ("differs", gap)


def test_that_adjustment_comes_near_the_fastest_says_nothing_where_one_agent_does(tmp_path) -> None:
    rows = [
        {"game": "MsPacman", "variant": variant, "seed": seed, "frames": frames + seed, "score": 200.0 + seed}
        for variant, frames in {"1 agent": 10, "64 agents": 100, "adjusted, from 1": 99}.items()
        for seed in range(3)
    ]
    keep_table(tmp_path / "ga3c-speed-atari", rows, ABOUT)
    (of_scores,) = (ours for number, ours in speed(tmp_path) if "nearly the score" in number.what)
    assert of_scores.verdict == "undecided"
    assert of_scores.why.endswith("but nothing shows that one agent is too few")


def test_only_of_cartpole_is_it_said_that_all_have_the_most_there_is(tmp_path) -> None:
    rows = [
        {"variant": variant, "seed": seed, "frames": frames, "score": 480.0 + seed}
        for variant, frames in {"1 agent": 10, "64 agents": 100, "adjusted, from 1": 50}.items()
        for seed in range(3)
    ]
    for name, game in (("ga3c-speed", "CartPole-v1"), ("ga3c-speed-atari", "MsPacman")):
        keep_table(tmp_path / name, [{"game": game} | row for row in rows], ABOUT)
    scores = [ours for number, ours in speed(tmp_path) if "scores higher" in number.what]
    assert ["near 500" in ours.why for ours in scores] == [True, False]
    assert [ours.verdict for ours in scores] == ["undecided", "differs"]


@pytest.mark.parametrize(("others", "verdict"), [([50.0] * 39, "agrees"), ([99.0] * 39, "undecided")])
def test_finding_a_fast_mix_counts_only_where_few_are_fast(tmp_path, others, verdict) -> None:
    rows = [{"kind": "static", "trained": rate} for rate in [100.0, *others]]
    rows += [{"kind": "kept", "trained": 95.0}, {"kind": "best", "trained": 100.0}]
    keep_table(tmp_path / "ga3c-adjustment", rows, ABOUT)
    assert verdicts(tmp_path, "GA3C", "Fig. 2") == {"adjustment finds the fastest mix": (verdict, pytest.approx(-5))}


def test_batches_are_asked_in_their_order_and_updates_of_other_sizes_are_not(tmp_path) -> None:
    rows = [
        {"setting": setting, "value": str(n), "tps": 9.0 - n, "train_batch": 5.0 * n, "policy_lag": 10.0 + n}
        for setting in ("agents", "batches")
        for n in range(5)
    ]
    keep_table(tmp_path / "ga3c-sweeps", rows, ABOUT)
    assert verdicts(tmp_path, "GA3C", "Fig. 3") == {"more agents bring more TPS": ("not comparable", pytest.approx(-1))}
    claim = "a larger training batch lessens the policy lag"
    assert verdicts(tmp_path, "GA3C", "Sec. 5.3")[claim] == ("differs", pytest.approx(-1))


@pytest.mark.parametrize("busy", [12.5, math.nan])
def test_table_2_is_told_where_there_was_a_gpu(tmp_path, busy) -> None:
    rates = {"GA3C": 800.0, "A3C": 100.0}
    rows = [
        {"part": "table", "system": system, "network": network, "pps": pps * (n + 1), "utilisation": busy + n}
        | {"tps": 50.0 - n}
        for system, pps in rates.items()
        for n, network in enumerate(TABLE_2)
    ]
    keep_table(tmp_path / "ga3c-gpu", [{**rows[0], "part": "sweep", "pps": 9.0}, *rows], ABOUT)
    found = verdicts(tmp_path, "GA3C", "Table 2")
    if math.isnan(busy):
        assert not any(verdict == "not comparable" for verdict, _ in found.values())
        return
    assert found["GA3C, small"] == ("not comparable", 800)
    assert found["A3C, large-1"] == ("not comparable", 500)
    assert found["GA3C over A3C, large-1"] == ("not comparable", 8)
    assert found["GPU used, large-2"] == ("not comparable", 15.5)
    section = verdicts(tmp_path, "GA3C", "Sec. 5.1")
    assert section["A3C, system I"] == ("not comparable", 0.2)
    assert section["GPU used by the fastest"] == ("not comparable", 12.5)
    assert section["TPS lost with a layer more"] == ("not comparable", pytest.approx(2))
    assert section["GPU used more, with it"] == ("not comparable", 1)
    assert section["its average occupancy"] == ("not run", None)
    ((verdict, value, why),) = [(o.verdict, o.value, o.why) for n, o in on_device(tmp_path) if n.where == "Sec. 6"]
    assert (verdict, value) == ("not comparable", 8)
    assert why.endswith("measured once, least and most of 5 networks")


def test_two_learning_rates_do_alike_or_not(tmp_path) -> None:
    scores = {"0.0001": 50.0, "0.0003": 100.0}
    rows = [{"variant": v, "seed": s, "frames": 1, "score": score + s} for v, score in scores.items() for s in range(3)]
    keep_table(tmp_path / "ga3c-learning-rate", rows, ABOUT)
    assert verdicts(tmp_path, "GA3C", "Sec. 5.2")["it is robust to the learning rate (1e-4, 3e-4)"][0] == "differs"


@pytest.mark.parametrize(("slower", "verdict"), [((1.0, 1.02, 1.04), "agrees"), ((0.4, 0.5, 0.6), "differs")])
def test_on_atari_each_game_counts_as_much_by_what_its_scores_rose_by(tmp_path, slower, verdict) -> None:
    rose = {"Boxing": (-2, 20.0), "MsPacman": (198, 400.0), "UpNDown": (533, 9000.0), "Qbert": (272, 0.0)}
    rows = [
        {"game": game, "variant": variant, "seed": seed, "frames": 750_000, "score": score}
        for (game, (began, rise)), share in zip(rose.items(), (*slower, 1.0), strict=True)
        for variant, by in (("0.0001", share), ("0.0003", 1.0))
        for seed in range(3)
        for score in (began, 0.0, began + by * rise * (0.9 + seed / 10))  # the first and the last one count
    ]
    keep_table(tmp_path / "ga3c-learning-rate-atari", rows, ABOUT)
    ((_, ours),) = learning_on_atari(tmp_path)
    shares = [[2 * by / (by + 1) for by in slower], [2 / (by + 1) for by in slower]]
    assert (ours.verdict, ours.value) == (verdict, pytest.approx(100 * (sum(shares[0]) / sum(shares[1]) - 1)))
    assert "3 of 4 games, where anything was learned within 0.8 million frames, 3 seeds each" in ours.why


def test_as_many_turns_and_seeds_are_told_as_there_are(tmp_path) -> None:
    rates = {"ga3c_pps": 2.0, "a3c_pps": 1.0, "ratio": 2.0, "ratio_low": 1.0, "ratio_high": 3.0, "repeats": 9}
    keep_table(tmp_path / "ga3c-networks", [{"network": name, **rates} for name in TABLE_2], ABOUT)
    variants = ("inside, 1e-5", "outside, 1e-5")
    rows = [{"variant": v, "seed": s, "frames": 1, "score": 100.0 + s} for v in variants for s in range(20)]
    keep_table(tmp_path / "ga3c-epsilon", rows, ABOUT)
    written = page(scoreboard(tmp_path, "GA3C"))
    assert written.count("least and most of 9 turns") == 1
    assert "both 1e-5, CartPole, 20 seeds" in written


def test_where_epsilon_stands_is_no_claim(tmp_path) -> None:
    variants = ("inside, 1e-5", "outside, 1e-5")
    rows = [{"variant": v, "seed": s, "frames": 1, "score": 100.0 + s} for v in variants for s in range(3)]
    keep_table(tmp_path / "ga3c-epsilon", rows, ABOUT)
    assert verdicts(tmp_path, "GA3C", "Eq. 3") == {"RMSProp's epsilon stands inside the root": ("not comparable", 0)}


@pytest.mark.parametrize(
    ("none", "steadies", "needless"),
    [
        (100.0, "differs", "undecided"),
        (40.0, "agrees", "agrees"),
    ],  # clipping is not needed without epsilon; or it may be
)
def test_epsilon_in_the_logarithm_is_asked_by_the_mean_over_training(tmp_path, none, steadies, needless) -> None:
    scores = {"epsilon": 95.0, "none": none, "epsilon, clipped": 50.0}
    rows = [{"variant": v, "seed": s, "score": score + s} for v, score in scores.items() for s in range(3)]
    keep_table(tmp_path / "ga3c-log-epsilon", rows, ABOUT)
    assert verdicts(tmp_path, "GA3C", "Eq. 5") == {
        "epsilon in the logarithm steadies learning": (steadies, pytest.approx(100 * (95 - none) / (none + 1))),
        "with it gradients need not be clipped": (needless, pytest.approx(100 * 45 / 51)),
    }


def test_agents_that_learned_on_another_machine_for_another_time_are_shown_and_not_judged(tmp_path) -> None:
    agents_of = {"seaquest-agent": [1800], "of-another-paper": [0], "pong-longer": [19.6, 19.7, 19.8]}
    for name, means in agents_of.items():
        (tmp_path / name).mkdir()
        told = [f'{{"mean": {mean}, "std": 1.4, "n_episodes": 30}}' for mean in means]
        (tmp_path / name / EVALUATIONS).write_text("\n".join(told))
    found = verdicts(tmp_path, "GA3C", "Table 3")
    assert found["after one day, seaquest"] == ("not comparable", 1800)
    assert found["after one day, pong"] == ("not comparable", pytest.approx(19.7))
    assert found["after one day, amidar"] == ("not run", None)
    whys = [ours.why for _, ours in agents(tmp_path)]
    assert len(whys) == 2
    assert all(why.endswith("; the paper's learned for a day on a GPU") for why in whys)
