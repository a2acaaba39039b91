"""The PBT paper's numbers are of the units that they are told in."""

import pytest

from workbench.paper.numbers import find
from workbench.paper.pbt.published import NUMBERS


@pytest.mark.parametrize("agent", ["UNREAL", "PBT-UNREAL"])
def test_scores_by_level_are_not_told_in_the_unit_of_a_mean_that_they_do_not_have(agent) -> None:
    # Fig. 3 has 93 and 106 % of a person for the mean over all levels, which by Table 2 is 135 and 150
    mean = find(NUMBERS, "Fig. 3", f"DM Lab, {agent.removesuffix('-UNREAL')}")
    levels = [n for n in NUMBERS if n.where == "Table 2, 40 members" and n.what.startswith(f"{agent}, ")]
    assert len(levels) == 15
    assert sum(n.value for n in levels) / 15 > mean.value + 40
    assert {n.unit for n in levels} == {"score"} != {mean.unit}
