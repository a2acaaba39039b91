"""Variants of a trial: how often a mix changes."""

import pytest

from workbench.paper.ga3c.learning import ADJUSTED, SETS, Learning, variant_of


@pytest.mark.parametrize(("seconds", "every_s"), [(10_800, 60.0), (180, 1.0), (60, 1.0)])
def test_a_mix_changes_as_often_as_the_papers_if_not_more_than_once_a_second(seconds, every_s) -> None:
    settings = Learning("speed", seeds=1, seconds=seconds)
    assert variant_of(settings, ADJUSTED)["adjust_every_s"] == every_s
    assert all("adjust_every_s" not in variant_of(settings, name) for name in SETS["speed"] if name != ADJUSTED)
