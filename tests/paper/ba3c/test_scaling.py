"""The model of Distributed BA3C's scaling, on numbers worked by hand."""

import math

import numpy as np
import pandas as pd
import pytest

from workbench.core.errors import InvalidInput
from workbench.paper.ba3c.scaling import (
    ScalingModel,
    exponential_kth_of_n,
    fitted_link,
    mean_step_s,
    scaling_points,
    speedup_points,
    two_kinds,
)


def fixed(*seconds):
    return lambda generator, rank: seconds[rank]


def exponential(generator, rank):
    return generator.exponential()


def test_all_awaited_a_step_takes_as_long_as_the_slowest_rank() -> None:
    assert mean_step_s(fixed(1.0, 2.0, 5.0), 3, 3, n_steps=10) == pytest.approx(5.0)


def test_the_slowest_dropped_it_takes_as_long_as_the_second_slowest() -> None:
    assert mean_step_s(fixed(1.0, 2.0, 50.0), 3, 2, n_steps=10) == pytest.approx(2.0)


def test_exponential_times_have_the_closed_mean_when_all_are_awaited() -> None:
    """1 + 1/2 + 1/3 + 1/4."""
    assert exponential_kth_of_n(4, 4) == pytest.approx(25 / 12)
    assert mean_step_s(exponential, 4, 4, n_steps=20_000) == pytest.approx(25 / 12, rel=0.03)


def test_a_dropped_rank_is_late_again_so_the_mean_of_the_kth_draw_is_too_low() -> None:
    simulated = mean_step_s(exponential, 4, 3, n_steps=20_000)
    assert exponential_kth_of_n(4, 3) == pytest.approx(13 / 12)
    assert exponential_kth_of_n(4, 3) < simulated < exponential_kth_of_n(4, 4)


def test_the_link_is_found_again_from_what_it_would_take() -> None:
    sizes = [1e5, 1e6, 1e7]
    latency, bandwidth = fitted_link(sizes, [2 * 1e-4 + size / 1e9 for size in sizes])
    assert (latency, bandwidth) == pytest.approx((1e-4, 1e9))
    with pytest.raises(InvalidInput, match="took no longer"):
        fitted_link(sizes, [1.0, 1.0, 0.5])


def test_without_a_network_and_without_spread_scaling_is_linear() -> None:
    model = ScalingModel([0.1], 32, 332_295, latency_s=0.0, bytes_per_s=np.inf)
    assert model.points_per_s(64) == pytest.approx(model.linear(64)) == pytest.approx(64 * 320)


def test_what_is_on_its_way() -> None:
    """1000 parameters at 4000 bytes/s are 1 s: a ring of 4 sends 6 quarters; 4 servers get and give 4 quarters each."""
    model = ScalingModel([1.0], 32, 1000, latency_s=0.5, bytes_per_s=4000.0)
    assert model.exchange_s(4, "all-reduce") == pytest.approx(6 * (0.5 + 0.25))
    assert model.exchange_s(4, "servers") == pytest.approx(2 * (0.5 + 1.0))
    assert model.exchange_s(4, "servers", n_servers=1) == pytest.approx(2 * (0.5 + 4.0))
    assert model.exchange_s(1, "servers") == 0.0
    assert model.points_per_s(4, 3) == pytest.approx(3 * 32 / (1.0 + 4.5))


def test_what_cannot_be_simulated_is_refused() -> None:
    with pytest.raises(InvalidInput, match="1 <= n_awaited <= n_ranks"):
        mean_step_s(exponential, 2, 3)


def test_measured_and_modelled_scaling_are_gathered_apart_and_turned_into_speedups():
    measured = pd.DataFrame(
        [("ranks", 1, 90.0), ("ranks", 1, 110.0), ("ranks", 1, 100.0), ("ranks", 2, 150.0), ("batch", 1, math.nan)],
        columns=["kind", "n_ranks", "points_per_s"],
    )
    model = pd.DataFrame(
        [
            ("scaling", "1 Gbit/s", "ring", 1, 100.0),
            ("scaling", "1 Gbit/s", "ring", 64, 3000.0),
            ("scaling", "1 Gbit/s", "linear", 1, 100.0),
            ("scaling", "1 Gbit/s", "linear", 64, 6400.0),
            ("scaling", "10 Gbit/s", "ring", 64, 5000.0),
            ("straggler", None, None, None, None),
        ],
        columns=["kind", "link", "way", "n_nodes", "points_per_s"],
    )
    points = scaling_points(measured, model, "1 Gbit/s")
    assert points[["source", "x", "value"]].values.tolist() == [
        ["measured", 1, 100],
        ["measured", 2, 150],
        ["model", 1, 100],
        ["model", 64, 3000],
        ["linear", 1, 100],
        ["linear", 64, 6400],
    ]
    assert points.loc[0, ["low", "high"]].tolist() == [90, 110]
    found = speedup_points(points)
    assert found["value"].tolist() == pytest.approx([1, 1.5, 1, 30, 1, 64, 1, 14.2 * 60 / 21])
    assert found["source"].tolist()[-2:] == ["published", "published"]
    with pytest.raises(InvalidInput, match="unknown link of the scaling model '10 Gbit': did you mean '10 Gbit/s'"):
        scaling_points(measured, model, "10 Gbit")


def test_batches_that_all_ranks_play_in_the_same_pattern_do_not_make_them_wait() -> None:
    """Long, long, short: every update takes as long as its kind, however many ranks; 400 updates of 30 on two ranks."""
    model = ScalingModel([2.0, 2.1, 1.0], 30, 1000, 0.0, 1e30)
    assert two_kinds(np.array(model.compute_s)) == 1.5
    assert 60 / 1.7 * 0.97 < model.points_per_s(2) < 60 / 1.69
    assert model.points_per_s(64) / 64 == pytest.approx(30 / 1.7, rel=0.04)


def test_values_of_one_kind_are_not_parted() -> None:
    generator = np.random.default_rng(0)
    for draws in (generator.normal(size=200), generator.uniform(size=200), generator.exponential(size=200), [3.0, 3.0]):
        assert two_kinds(np.array(draws)) == float("inf")
    assert 0.2 < two_kinds(np.array([0.1, 0.2, 0.11, 0.52, 0.5])) < 0.5
