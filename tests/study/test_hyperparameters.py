"""What no trial could be configured with is refused before a study begins."""

import warnings
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
    Study,
    Uniform,
)
from workbench.algos.digits.classifier import DigitsClassifier
from workbench.algos.digits.gan import DigitsGAN
from workbench.algos.games import Games
from workbench.algos.quadratic import Quadratic
from workbench.algos.replay import Replay
from workbench.algos.search.mfpbt import MFPBT
from workbench.algos.search.seeded import Seeded
from workbench.core.errors import InvalidInput
from workbench.study.hyperparameters import check_hyperparameters, warn_of_phases

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
    ("trainable", "dimensions", "says"),
    [
        (Games({"one": AGENT}, {"one": (0, 1)}), {"gamma": Uniform(0.5, 2)}, r"GA3C needs gamma in \(0, 1\]"),
        (Replay([{"t_max": 5}, {"t_max": 9}], AGENT), {"gamma": Uniform(0.5, 2)}, r"GA3C needs gamma in \(0, 1\]"),
        (Replay([{"h0": 1}], Games({"a": Quadratic()}, {"a": (0, 1)})), {"h1": Uniform(-2, 2)}, "h0, h1 >= 0"),
        (Quadratic(), {"h0": Uniform(-2, 2)}, "h0, h1 >= 0"),
        (DigitsClassifier(), {"momentum": Uniform(0, 2)}, r"needs momentum in \[0, 1\)"),
        (DigitsGAN(), {"beta1": Uniform(0, 2)}, r"needs beta1 in \[0, 1\)"),
    ],
)
def test_values_that_another_trainable_would_refuse_are_refused(trainable, dimensions, says) -> None:
    with pytest.raises(InvalidInput, match=f"could not begin .*{says}"):
        check_hyperparameters(drawn(dimensions), trainable)


@pytest.mark.parametrize(
    "space",
    [
        Space({"gamma": Uniform(0.9, 1.1)}, constraint=lambda config: config["gamma"] <= 1),
        Space({"init": Choice(["uniform", "orthogonal"]), "t_max": LogUniform(2, 100, step=1)}),
    ],
)
def test_what_every_trial_can_take_is_taken(space) -> None:
    check_hyperparameters(FullRuns(RandomSearcher(space), 4, 2), AGENT)


def test_what_shapes_weights_is_refused_where_they_go_on_under_other_hyperparameters() -> None:
    agents = {"one": AGENT}
    networks = {"gamma": Uniform(0.9, 1.0), "network": Choice(["mlp", "mlp-separate"])}
    for scheduler in (
        PBT(networks, 4, 2),
        Seeded(PBT(networks, 4, 2), 2),
        PBT(networks, 4, 2, copy_weights=False),
        PBT(networks, 4, 2, explore=False, copy_config=False),
        PBT(networks, 4, 2, exploit="none"),
    ):
        for trainable in (AGENT, Games(agents, {"one": (0, 1)}), Replay([{"t_max": 5}, {"t_max": 9}], AGENT)):
            with pytest.raises(
                InvalidInput, match=r"^PBT has .* with another network .*: leave network out of the space"
            ):
                check_hyperparameters(scheduler, trainable)
    one = {"gamma": Uniform(0.9, 1.0), "network": Choice(["mlp"])}
    for scheduler in (PBT(networks, 4, 2, explore=False), PBT(GAMMA, 4, 2), PBT(one, 4, 2), drawn(networks)):
        check_hyperparameters(scheduler, AGENT)


def test_what_shapes_weights_is_refused_where_members_copy_weights_alone_of_those_that_evolve_more_often() -> None:
    networks = {"gamma": Uniform(0.9, 1.0), "network": Choice(["mlp", "mlp-separate"])}
    with pytest.raises(InvalidInput, match=r"^MFPBT has .* leave network out of the space"):
        check_hyperparameters(MFPBT(networks, 4, 2, explore=False, intervals=(1, 2)), AGENT)
    check_hyperparameters(MFPBT(networks, 4, 2, explore=False, intervals=(2, 2)), AGENT)
    check_hyperparameters(MFPBT(networks, 4, 2, explore=False, exploit="none", intervals=(1, 2)), AGENT)


def test_a_network_s_size_is_refused_under_pbt_of_stable_baselines3_too() -> None:
    pytest.importorskip("stable_baselines3")
    space = {"policy_kwargs.net_arch": Choice([32, 64]), "policy_kwargs.log_std_init": Choice([0.0, 1.0])}
    with pytest.raises(InvalidInput, match=r"leave policy_kwargs.net_arch out of the space"):
        check_hyperparameters(PBT(space, 4, 2), SB3("A2C", "CartPole-v1"))


def test_a_value_that_falls_to_0_before_the_last_phases_is_warned_of(tmp_path) -> None:
    pytest.importorskip("stable_baselines3")
    space = {"learning_rate": Choice(["lin_0.001"]), "gamma": Uniform(0.9, 0.99)}
    frames = {"phase": Budget(frames=500)}
    half = {"hyperparameters": {"clip_range": "lin_0.2"}}
    words = r"{} falls to 0 within 10 of 27 phases: .*total_frames=13500"
    with pytest.warns(UserWarning, match=words.format("learning_rate 'lin_0.001'")):
        Study(
            "falls",
            FullRuns(RandomSearcher(space, 0), 4, 27),
            SB3("PPO", "CartPole-v1", **frames),
            db=tmp_path / "a.db",
        )
    with pytest.warns(UserWarning, match=words.format("clip_range 'lin_0.2'")):
        warn_of_phases(PBT({"gamma": Uniform(0.9, 0.99)}, 4, 27), SB3("PPO", "CartPole-v1", **frames, **half))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_phases(PBT(space, 4, 27), SB3("PPO", "CartPole-v1", **frames, total_frames=13500))
        warn_of_phases(PBT(space, 4, 10), SB3("PPO", "CartPole-v1", **frames))
        warn_of_phases(PBT({"gamma": Uniform(0.9, 0.99)}, 4, 27), SB3("PPO", "CartPole-v1", **frames))


def test_networks_that_a_checkpoint_is_not_of_are_refused_before_trials_start_from_it(tmp_path) -> None:
    AGENT({}, 0).save(tmp_path)
    networks = drawn({"network": Choice(["mlp", "mlp-separate"])})
    with pytest.raises(InvalidInput, match=r"'mlp'} could not begin \(the checkpoint in .* is of another network"):
        check_hyperparameters(networks, replace(AGENT, start_from=str(tmp_path)))
    with pytest.raises(InvalidInput, match=r"holds mlp-separate for CartPole-v1, 2 actions; this one is .*, 3 actions"):
        replace(AGENT, game="Acrobot-v1", start_from=str(tmp_path))


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
