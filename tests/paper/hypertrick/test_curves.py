"""Full learning curves, trained whole or in parts."""

import pytest

from workbench.paper.hypertrick.curves import FullCurves, full_curves


@pytest.mark.parametrize(
    ("many", "first", "column"), [("configs", "first", "config_id"), ("seeds", "first_seed", "seed")]
)
def test_parts_of_the_curves_are_of_what_one_run_would_have(many, first, column) -> None:
    small = {"configs": 1, "seeds": 1, "unit_frames": 300, "units": 1, "processes": 1}
    one, two = (full_curves(FullCurves(**small | {first: n})) for n in (0, 1))
    both = full_curves(FullCurves(**small | {many: 2}))
    assert [row | {"wall_s": 0} for row in one + two] == [row | {"wall_s": 0} for row in both]
    assert [row[column] for row in both] == [0, 1]
