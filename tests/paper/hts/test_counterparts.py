"""Ours beside the HTS-RL paper's numbers and claims, on recordings whose numbers are known."""

import pandas as pd
import pytest

from tests.paper.recorded import ABOUT, verdicts
from workbench.paper.experiment import keep_table
from workbench.paper.hts.asynchronous import over_frames
from workbench.paper.hts.counterparts import asynchronous
from workbench.paper.hts.published import IN_THE_SAME_TIME


def test_speedups_lag_and_returns_stand_beside_the_published(tmp_path) -> None:
    rows = [
        {"law": "gamma", "cv": cv, "seed": seed, "speedup": 9.0, "hts_policy_lag": 1}
        | {"hts_return": 50.0 + seed, "synchronous_return": 100.0}
        | {"hts_step_ms": 2.0, "hts_steps": 100, "synchronous_step_ms": 4 * (found + seed / 100)}
        | {"synchronous_steps": 50}  # the last half of HTS-RL's is not trained on
        for cv, found in ((1.0, 3.0), (0.1, 1.4), (3.0, 4.5))
        for seed in range(3)
    ]
    keep_table(tmp_path / "hts-speedup", [*rows, rows[0] | {"law": "pareto", "cv": 4.0}], ABOUT)
    assert verdicts(tmp_path, "HTS-RL", "Fig. 4 (left)") == {
        "speed-up at low step-time variance, about": ("not comparable", pytest.approx(1.41)),
        "speed-up at high step-time variance, above": ("not comparable", pytest.approx(4.51)),
        "the speed-up grows with the variance of step times": ("agrees", pytest.approx(100 * 3.1 / 1.41)),
    }
    assert verdicts(tmp_path, "HTS-RL", "Methods")["the policy that acts lags by exactly"] == ("by construction", 1)
    claim = "as many steps train as well as without concurrency"
    assert verdicts(tmp_path, "HTS-RL", "Conclusion")[claim] == ("differs", pytest.approx(-49))


@pytest.mark.parametrize(("most", "alike", "ahead"), [(100.0, "agrees", "agrees"), (500.0, "undecided", "agrees")])
def test_scores_are_compared_at_as_many_frames_and_at_the_same_time(tmp_path, most, alike, ahead) -> None:
    rows = [
        {
            "method": "a2c",
            "concurrent": concurrent,
            "seed": seed,
            "seconds": seconds,
            "frames": score,
            "score": score + seed * n,
        }
        for seed in range(3)
        for n, concurrent in enumerate((True, False), 1)
        for seconds, score in ((1.0 * n, 20.0), (2.0 * n, most))  # the baseline takes twice as long
    ]
    keep_table(tmp_path / "hts-return", rows, ABOUT)
    claim = "as many steps train as well as without concurrency"
    assert verdicts(tmp_path, "HTS-RL", "Conclusion")[claim][0] == alike  # near the most that CartPole brings all are
    assert verdicts(tmp_path, "HTS-RL", "Table 1")[IN_THE_SAME_TIME][0] == ahead


def test_at_the_same_time_the_baseline_has_what_it_has_learned_of_the_phase_under_way(tmp_path) -> None:
    ends = {True: ((1.0, 100.0), (1.5, 150.0)), False: ((1.0, 100.0), (2.0, 200.0))}
    rows = [
        {"method": "ppo", "concurrent": concurrent, "seed": seed, "seconds": at, "frames": 1000 * at}
        | {"score": score + seed}
        for concurrent, of_phases in ends.items()
        for seed in range(3)
        for at, score in of_phases
    ]
    keep_table(tmp_path / "hts-return", rows, ABOUT)
    assert verdicts(tmp_path, "HTS-RL", "Table 1")[IN_THE_SAME_TIME] == ("differs", pytest.approx(0.0))


def test_what_a_system_played_beyond_the_others_frames_does_not_count(tmp_path) -> None:
    rows = [
        {
            "method": "ppo",
            "concurrent": concurrent,
            "seed": seed,
            "seconds": 1.0 * frames,
            "frames": frames,
            "score": score,
        }
        for seed in range(3)
        for concurrent, last in ((True, 40), (False, 30))
        for frames, score in ((20, 100.0 + seed), (last, 100.0 + seed + 10 * (last - 20)))  # both rise alike
    ]
    keep_table(tmp_path / "hts-return", rows, ABOUT)
    claim = "as many steps train as well as without concurrency"
    assert verdicts(tmp_path, "HTS-RL", "Conclusion")[claim] == ("agrees", pytest.approx(0.0))


@pytest.mark.parametrize(("other", "verdict"), [("a", "agrees"), ("b", "differs")])
def test_actors_change_nothing_only_where_all_weights_are_the_same(tmp_path, other, verdict) -> None:
    rows = [{"setting": "actors", "value": n, "seed": s, "weights": f"{s}a"} for n in (1, 4, 16) for s in range(2)]
    rows[-1]["weights"] = f"1{other}"
    keep_table(tmp_path / "hts-sweeps", [*rows, rows[0] | {"setting": "interval", "weights": "c"}], ABOUT)
    found = verdicts(tmp_path, "HTS-RL", "Methods")["results do not depend on the actors"]
    assert found == (verdict, 1 + (other == "b"))


def test_less_is_learned_where_as_many_frames_scored_less_at_that_learning_rate(tmp_path) -> None:
    gains = {("GA3C", 1e-3): 0.0, ("GA3C", 3e-3): -50.0, ("A3C", 1e-3): -50.0, ("A3C", 3e-3): 50.0}
    gains |= {("HTS-RL", 1e-3): 0.0, ("HTS-RL", 3e-3): 0.0}
    rows = [
        {"system": system, "learning_rate": rate, "seed": seed, "phase": phase, "frames": frames}
        | {"score": score + gain + seed}
        for (system, rate), gain in gains.items()
        for seed in range(3)
        for phase, (frames, score) in enumerate(((1000, 100.0), (2000, 120.0)), 1)
    ]
    keep_table(tmp_path / "hts-asynchronous", rows, ABOUT)
    assert [ours.verdict for _, ours in asynchronous(tmp_path)] == ["differs", "agrees", "agrees", "differs"]


def test_frames_beyond_the_budget_do_not_count() -> None:
    about = {"learning_rate": 1e-3, "seed": 0}
    far = [about | {"system": "HTS-RL", "phase": p, "frames": 1500 * p, "score": 100.0 * p} for p in (1, 2)]
    near = [about | {"system": "GA3C", "phase": p, "frames": 1000 * p, "score": 100.0 * p} for p in (1, 2)]
    scores = over_frames(pd.DataFrame(far + near))
    assert scores["GA3C", 1e-3, 0] == pytest.approx(150)
    assert scores["HTS-RL", 1e-3, 0] == pytest.approx((100 + 100 * 2000 / 1500) / 2)
