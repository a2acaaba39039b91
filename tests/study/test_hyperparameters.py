"""What no trial could be configured with is refused before a study begins."""

from dataclasses import replace

import pytest

from tests.support import Deterministic
from workbench import (
    GA3C,
    PBT,
    SB3,
    Budget,
    Choice,
    FullRuns,
    GridSearcher,
    ListSearcher,
    LogUniform,
    RandomSearcher,
    Space,
    Uniform,
)
from workbench.algos.search.seeded import Seeded
from workbench.core.errors import InvalidInput
from workbench.study.hyperparameters import check_hyperparameters

GAMMA = {"gamma": Uniform(0.9, 1.0)}
AGENT = GA3C("CartPole-v1", phase=Budget(frames=1000))


def drawn(dimensions, constraint=None) -> FullRuns:
    return FullRuns(RandomSearcher(Space(dimensions, constraint=constraint)), 4, 2)


@pytest.mark.parametrize(
    ("scheduler", "says"),
    [
        (drawn(GAMMA, lambda config: False), "the constraint held for none of 1000"),
        (drawn(GAMMA, lambda config: config["rate"] > 1), "constraint raised KeyError: 'rate'"),
        (drawn({"score": LogUniform(1, 2)}), "hyperparameters cannot be called score"),
        (drawn({"seed": LogUniform(1, 2)}), "hyperparameters cannot be called seed"),
        (FullRuns(ListSearcher([{"x": 1}, {"x": 2, "seed": 3}]), 2, 2), "hyperparameters cannot be called seed"),
        (drawn({"learning": LogUniform(1, 2)}), "unknown hyperparameter of GA3C 'learning'"),
        (
            drawn({"t_max": LogUniform(2, 100)}),
            r"^a trial of {'t_max': .*} could not begin \(GA3C needs t_max a whole num",
        ),
        (
            drawn({"network": Choice(["mlp", "mlp-seperate"])}),
            "{'network': 'mlp-seperate'} .*did you mean 'mlp-separate'",
        ),
        (
            Seeded(drawn({"gamma": Uniform(0.9, 1.1)}), 2),
            r"could not begin \(GA3C needs gamma in .*\): leave such values",
        ),
        (PBT({"gamma": Uniform(0.9, 1.1)}, 4, 2), "could not begin .*needs gamma in"),
        (FullRuns(GridSearcher(Space({"gamma": Uniform(0.9, 1.1)}), 3), 3, 2), "'gamma': 1.1} could not begin"),
        (FullRuns(ListSearcher([{"gamma": 0.9}, {"gamma": 2}]), 2, 2), "{'gamma': 2} could not begin"),
    ],
)
def test_what_no_trial_could_take_is_refused(scheduler, says) -> None:
    with pytest.raises(InvalidInput, match=says):
        check_hyperparameters(scheduler, AGENT)


@pytest.mark.parametrize(
    "space",
    [
        Space({"gamma": Uniform(0.9, 1.1)}, constraint=lambda config: config["gamma"] <= 1),
        Space({"init": Choice(["uniform", "orthogonal"]), "t_max": LogUniform(2, 100, step=1)}),
    ],
)
def test_what_every_trial_can_take_is_taken(space) -> None:
    check_hyperparameters(FullRuns(RandomSearcher(space), 4, 2), AGENT)


def test_a_class_of_ones_own_is_asked_for_nothing() -> None:
    check_hyperparameters(drawn({"anything": Uniform(0, 1)}), Deterministic)


def test_environments_that_configurations_are_tried_with_are_made_once() -> None:
    pytest.importorskip("stable_baselines3")
    made = []

    def counting(env):
        made.append(env)
        return env

    agent = SB3("A2C", "CartPole-v1", n_envs=2, hyperparameters={"normalize_advantage": True}, wrappers=[counting])
    check_hyperparameters(drawn({"n_steps": Uniform(1, 8, step=1)}), agent)
    assert len(made) == 2 * agent.n_envs  # where it was named, and for all configurations
    alone = replace(agent, n_envs=1)
    with pytest.raises(InvalidInput, match=r"a trial of {'n_steps': 1} could not begin \(A2C divides advantages"):
        check_hyperparameters(drawn({"n_steps": Uniform(1, 8, step=1)}), alone)


def test_where_nobody_looks_at_configurations_none_is_drawn() -> None:
    class Drawn(Uniform):
        def sample(self, rng):
            raise AssertionError("drawn")

    check_hyperparameters(drawn({"anything": Drawn(0, 1)}), Deterministic)


def test_a_constraint_that_only_points_of_a_grid_meet_is_taken() -> None:
    space = Space({"x": Uniform(0, 1), "y": Uniform(0, 1)}, constraint=lambda config: config["x"] == config["y"])
    check_hyperparameters(FullRuns(GridSearcher(space, 3), 3, 1), Deterministic)
