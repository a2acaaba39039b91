"""Full learning curves, trained whole or in parts."""

from workbench.paper.hypertrick.curves import FullCurves, full_curves


def test_parts_of_the_curves_are_of_the_configurations_that_one_run_would_have() -> None:
    small = {"seeds": 1, "unit_frames": 300, "units": 1, "processes": 1}
    one, two = (full_curves(FullCurves(configs=1, first=first, **small)) for first in (0, 1))
    both = full_curves(FullCurves(configs=2, **small))
    assert [row | {"wall_s": 0} for row in one + two] == [row | {"wall_s": 0} for row in both]
    assert [row["config_id"] for row in both] == [0, 1]


def test_parts_of_the_curves_are_of_the_seeds_that_one_run_would_have() -> None:
    small = {"configs": 1, "unit_frames": 300, "units": 1, "processes": 1}
    one, two = (full_curves(FullCurves(seeds=1, first_seed=seed, **small)) for seed in (0, 1))
    both = full_curves(FullCurves(seeds=2, **small))
    assert [row | {"wall_s": 0} for row in one + two] == [row | {"wall_s": 0} for row in both]
    assert [row["seed"] for row in both] == [0, 1]
