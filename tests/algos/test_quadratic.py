"""The toy trial, worked by hand."""

import pytest

from tests.support import silent
from workbench.algos.quadratic import Quadratic
from workbench.core.budget import Budget
from workbench.core.errors import InvalidInput


def test_a_step_follows_the_gradient_of_the_surrogate() -> None:
    """∂Q̂/∂θ0 = -2 h0 θ0: with rate 0.1 and h0 = 1, θ0 shrinks by a fifth; h1 = 0.5 takes a tenth off θ1."""
    trial = Quadratic(phase=Budget(updates=1), learning_rate=0.1)({"h0": 1.0, "h1": 0.5}, 0)
    metrics = trial.train_phase(silent)
    assert (metrics["theta0"], metrics["theta1"]) == pytest.approx((0.72, 0.81))
    assert metrics["score"] == pytest.approx(1.2 - 0.72**2 - 0.81**2)


def test_a_copy_takes_theta_and_keeps_its_own_direction(tmp_path) -> None:
    donor = Quadratic()({"h0": 1.0, "h1": 0.0}, 0)
    donor.train_phase(silent)
    donor.save(tmp_path)
    copy = Quadratic()({"h0": 0.0, "h1": 1.0}, 1)
    copy.load(tmp_path)
    assert copy.theta.tolist() == donor.theta.tolist()
    metrics = copy.train_phase(silent)
    assert (metrics["theta0"], metrics["theta1"]) == pytest.approx((0.9 * 0.96**4, 0.9 * 0.96**4))
    assert metrics["updates"] == 8


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"phase": Budget(seconds=1)}, "counts its phases in updates"),
        ({"learning_rate": 0.0}, "learning_rate a number above 0, got 0.0"),
        ({"learning_rate": "fast"}, "learning_rate a number above 0, got 'fast'"),
        ({"theta": (1.0,)}, "two finite numbers"),
        ({"theta": 1.0}, "two finite numbers"),
        ({"theta": ("0.9", 0.9)}, "two finite numbers"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, says) -> None:
    with pytest.raises(InvalidInput, match=says):
        Quadratic(**settings)


def test_configs_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidInput, match="hyperparameter of Quadratic 'h2'"):
        Quadratic.check(["h2"])
    with pytest.raises(InvalidInput, match="h0, h1 >= 0"):
        Quadratic()({"h0": -0.1}, 0)
    with pytest.raises(FloatingPointError, match="take a smaller rate"):
        Quadratic(phase=Budget(updates=2000), learning_rate=5.0)({}, 0).train_phase(silent)
