"""The length of a phase."""

import pytest

from workbench.algos.quadratic import Quadratic
from workbench.core.budget import Budget, updates_of
from workbench.core.errors import InvalidInput


def test_a_budget_is_one_positive_number() -> None:
    assert Budget(frames=400).unit == "frames"
    assert Budget(frames=400).spent({"frames": 400.0, "episodes": 0.0})
    assert not Budget(episodes=1).spent({"frames": 400.0, "episodes": 0.0})
    for bad in ({}, {"frames": 1, "episodes": 1}, {"frames": 0}, {"seconds": -1.0}, {"timesteps": 100}):
        with pytest.raises(InvalidInput, match="one positive number") as told:
            Budget(**bad)
        assert str(told.value).endswith("write for example Budget(frames=100_000), in a study file {frames = 100_000}")


def test_part_of_an_update_is_filled_by_a_whole_one() -> None:
    assert [updates_of(Quadratic(phase=Budget(updates=n))) for n in (0.5, 4, 4.5)] == [1, 4, 5]
    assert Quadratic(phase=Budget(updates=0.5))({}, 0).train_phase(lambda metrics: None)["updates"] == 1


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "100", True, None])
def test_a_budget_is_a_finite_number(bad) -> None:
    with pytest.raises(InvalidInput, match="one positive number"):
        Budget(frames=bad)


def test_a_phase_counted_in_something_else_is_told_what_to_write_in_python_and_in_a_study_file() -> None:
    with pytest.raises(
        InvalidInput, match=r"got Budget\(.*\): .* Budget\(updates=100\), in a study file {updates = 100}$"
    ):
        Quadratic(phase=Budget(seconds=1))
