"""Environments of one's own: named, made, made readable, carried to other processes, refused with the way out."""

import contextlib
import linecache
import pickle
import runpy
import subprocess
import sys
import sysconfig
import types
from dataclasses import replace
from pathlib import Path

import cloudpickle
import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from tests.algos.rl.simulator import Simulator
from tests.support import FROM_HERE, silent
from workbench.algos.rl.checkpoint import load_agent
from workbench.algos.rl.environment import Recipe
from workbench.algos.rl.envs import make_envs
from workbench.algos.rl.evaluate import evaluate
from workbench.algos.rl.ga3c.trial import GA3C
from workbench.algos.rl.games import Rules, find_game
from workbench.algos.rl.hts.trial import HTS
from workbench.algos.rl.model import make_model, network_name
from workbench.algos.rl.playable import longest_of, readable
from workbench.algos.rl.sb3.factory import SB3
from workbench.algos.rl.watch import watch
from workbench.core.budget import Budget
from workbench.core.errors import InvalidInput
from workbench.core.imports import modules_to_import
from workbench.core.source import source_mark

FLATTEN = "gymnasium.wrappers:FlattenObservation"


class Sampled(gymnasium.Env):
    """Shows samples of a space; ends after `length` steps, paying what the action is."""

    def __init__(self, space=None, n_actions=3, start=0, length=4, kind=np.int64):
        if length < 1:
            raise ValueError("too short")
        self.observation_space = space or spaces.Box(-1, 1, (2,), np.float32)
        self.action_space, self.length, self.t = spaces.Discrete(n_actions, start=start, dtype=kind), length, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.t = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.t += 1
        return self.observation_space.sample(), float(action), self.t == self.length, False, {}


gymnasium.register("Sampled-v0", Sampled)
gymnasium.register("Vector-v0", vector_entry_point=gymnasium.vector.VectorEnv)


class Off(Sampled):
    """Gives what Gym once asked for, or an observation that its space does not have, from where `off` says."""

    def __init__(self, off):
        super().__init__()
        self.off = off

    def reset(self, *, seed=None, options=None):
        obs, info = super().reset(seed=seed)
        return {"old reset": (obs, 0, info), "shape": (np.zeros(3, np.float32), info), "none": (None, info)}.get(
            self.off, (obs, info)
        )

    def step(self, action):
        if self.off == "own":
            raise ValueError("of its own")
        obs, reward, terminated, truncated, info = super().step(action)
        reward = {"rewards": np.ones(2), "beyond": 10**400}.get(self.off, reward)
        return (obs, reward, terminated, info) if self.off == "old step" else (obs, reward, terminated, truncated, info)


gymnasium.register("Off-v0", Off)


class Parts(Off):
    """Shows several things at once, of which one is missing, or fails in looking one up."""

    def __init__(self, off):
        super().__init__(off)
        place = spaces.Box(-1, 1, (2,), np.float32)
        several = {"tuple": spaces.Tuple((place, place)), "number": spaces.Discrete(3)}
        self.observation_space = several.get(off, spaces.Dict(place=place, speed=place))

    def reset(self, *, seed=None, options=None):
        obs, info = super().reset(seed=seed)
        wrong = {"key": {"place": np.zeros(2, np.float32)}, "tuple": (np.zeros(2, np.float32),), "number": 7}
        return wrong.get(self.off, obs), info

    def step(self, action):
        return {}["of its own"]


gymnasium.register("Parts-v0", Parts)
gymnasium.register("Unchecked-v0", Parts, disable_env_checker=True)


def player_of(system, name, settings):
    """Give a system that plays the environment, and a configuration of it."""
    if system == "ga3c":
        return GA3C(name, phase=Budget(frames=16), **settings), {}
    pytest.importorskip("stable_baselines3")
    from workbench import SB3

    return SB3("PPO", name, phase=Budget(frames=16), **settings), {"n_steps": 16, "batch_size": 16}


@pytest.mark.filterwarnings("ignore")  # Gymnasium's own, which say it as well
@pytest.mark.parametrize("off", ["old reset", "old step", "shape", "none", "rewards", "beyond", "own"])
@pytest.mark.parametrize("system", ["ga3c", "sb3"])
def test_what_an_environment_gives_amiss_is_said_with_what_it_is_to_give(system, off) -> None:
    kwargs = {"off": off} | ({"disable_env_checker": True} if off == "beyond" else {})  # which would say it
    factory, config = player_of(system, "Off-v0", {"env_kwargs": kwargs})
    says = (
        "^of its own$" if off == "own" else r"^what Off-v0 gives cannot be taken \(.+\): reset\(\) gives \(obs, info\)"
    )
    with pytest.raises(ValueError, match=says), contextlib.closing(factory(config, 0)) as trial:
        trial.train_phase(lambda metrics: None)


@pytest.mark.filterwarnings("ignore")  # Gymnasium's own, which say it as well
@pytest.mark.parametrize(
    ("system", "off"), [("ga3c", "key"), ("ga3c", "tuple"), ("ga3c", "number"), ("sb3", "key"), ("sb3", "number")]
)
@pytest.mark.parametrize("name", ["Parts-v0", "Unchecked-v0"])
def test_an_observation_that_lacks_a_part_is_said_with_what_it_is_to_be(system, name, off) -> None:
    factory, config = player_of(system, name, {"env_kwargs": {"off": off}})
    says = (
        rf"^what {name} gives cannot be taken \((Key|Index|Assertion|Value)Error: .+\): reset\(\) gives \(obs, info\)"
    )
    with pytest.raises(InvalidInput, match=says), contextlib.closing(factory(config, 0)) as trial:
        trial.train_phase(lambda metrics: None)


@pytest.mark.parametrize("system", ["ga3c", "sb3"])
def test_what_an_installed_wrapper_asserts_is_its_own_error(system, monkeypatch) -> None:
    source = "def reset(self, **settings):\n    assert False, 'OpenCV is not installed'\n"
    exec(compile(source, Path(sysconfig.get_path("purelib"), "wraps.py"), "exec"), {"__name__": "wraps"}, names := {})
    factory, config = player_of(system, "Sampled-v0", {"wrappers": [type("Lacking", (Still,), names)]})
    says = pytest.raises(AssertionError, match=r"^OpenCV is not installed$")
    with says, contextlib.closing(factory(config, 0)) as trial:
        trial.train_phase(lambda metrics: None)


@pytest.mark.parametrize("system", ["ga3c", "sb3"])
def test_a_key_that_the_environment_s_own_code_looks_up_in_vain_is_its_own_error(system) -> None:
    factory, config = player_of(system, "Parts-v0", {"env_kwargs": {"off": "own"}})
    with pytest.raises(KeyError, match="of its own"), contextlib.closing(factory(config, 0)) as trial:
        trial.train_phase(lambda metrics: None)


class Still(gymnasium.Wrapper):
    """Changes nothing."""


class Paired(gymnasium.Wrapper):
    """Takes actions that neither the systems here nor SB3's algorithms give."""

    def __init__(self, env):
        super().__init__(env)
        self.action_space = spaces.Dict(one=spaces.Discrete(2), two=spaces.Discrete(2))


SPACES = {
    "discrete": (spaces.Discrete(5), (5,), "mlp-separate"),
    "several discrete": (spaces.MultiDiscrete([2, 3]), (5,), "mlp-separate"),
    "bits": (spaces.MultiBinary(4), (4,), "mlp-separate"),
    "two dimensions": (spaces.Box(0, 1, (2, 3)), (6,), "mlp-separate"),
    "dict": (spaces.Dict(a=spaces.Box(0, 1, (2, 3)), b=spaces.Discrete(2)), (8,), "mlp-separate"),
    "tuple": (spaces.Tuple((spaces.Discrete(3), spaces.Box(0, 1, (1,)))), (4,), "mlp-separate"),
    "colour picture": (spaces.Box(0, 255, (60, 48, 3), np.uint8), (3, 60, 48), "small"),
    "grey picture": (spaces.Box(0, 255, (60, 48), np.uint8), (1, 60, 48), "small"),
    "channels first": (spaces.Box(0, 255, (4, 84, 84), np.uint8), (4, 84, 84), "small"),
    "grid": (spaces.Box(0, 10, (7, 7, 3), np.uint8), (3, 7, 7), "tiny"),
    "grid of floats": (spaces.Box(0, 1, (6, 10, 10), np.float32), (6, 10, 10), "tiny"),
    "a few rows": (spaces.Box(0, 255, (2, 4, 3), np.uint8), (24,), "mlp-separate"),
}


@pytest.mark.parametrize("kind", SPACES)
def test_every_kind_of_observation_reaches_a_network(kind):
    space, shape, network = SPACES[kind]
    quick = {"n_agents": 2, "lockstep": True, "min_games": 1, "init": "uniform"}
    trial = GA3C("Sampled-v0", Budget(updates=2), env_kwargs={"space": space}, **quick)({}, 0)
    assert (trial.game.obs_shape, network_name(trial.game, "auto")) == (shape, network)
    metrics = trial.train_phase(lambda _: None)
    assert metrics["games"] >= 1
    assert metrics["episode_length"] == 4
    trial.close()


@pytest.mark.parametrize(
    ("shape", "dtype", "made"),
    [
        ((20, 30), np.uint8, (1, 20, 30)),
        ((19, 30), np.uint8, (570,)),
        ((20, 30), np.float32, (600,)),
        ((5, 6, 3), np.float32, (3, 5, 6)),
        ((4, 6, 3), np.float32, (72,)),
        ((3, 5, 6), np.float32, (3, 5, 6)),
        ((7, 7, 20), np.float32, (20, 7, 7)),
        ((20, 7, 7), np.float32, (20, 7, 7)),
        ((7, 7, 7), np.float32, (7, 7, 7)),
        ((4, 4, 20), np.float32, (320,)),
    ],
)
def test_a_picture_has_20_pixels_a_side_and_a_grid_5_cells(shape, dtype, made):
    env = readable(Sampled(spaces.Box(0, 1, shape, dtype)), "Sampled-v0")
    assert env.observation_space.shape == env.reset(seed=0)[0].shape == made


def test_an_observation_is_what_gymnasium_flattens_or_the_picture_turned():
    for kind in ("dict", "colour picture"):
        space = SPACES[kind][0]
        envs = make_envs(find_game("Sampled-v0", env_kwargs={"space": space}), 1, 3)
        seen = envs.recv().obs[0]
        envs.close()
        space.seed(3)
        shown = space.sample()
        expected = spaces.flatten(space, shown) if kind == "dict" else np.moveaxis(shown, -1, 0)
        np.testing.assert_array_equal(seen, expected)


def test_bytes_of_a_picture_are_scaled_and_a_grids_numbers_are_not():
    picture = find_game("Sampled-v0", env_kwargs={"space": SPACES["colour picture"][0]})
    grid = find_game("Sampled-v0", env_kwargs={"space": SPACES["grid"][0]})
    assert (make_model(picture).scale, make_model(grid).scale) == (1 / 255, 1.0)
    with pytest.raises(InvalidInput, match=r"network 'small' cannot read Sampled-v0's \(3, 7, 7\)"):
        make_model(grid, "small")


@pytest.mark.parametrize(("start", "kind"), [(5, np.int64), (5, np.int8), (0, np.int32)])
def test_actions_are_counted_from_0_whatever_the_environment_counts_from_and_in(start, kind):
    game = find_game("Sampled-v0", env_kwargs={"n_actions": 2, "start": start, "length": 9, "kind": kind})
    envs = make_envs(game, 1, 0)
    envs.recv()
    envs.send(np.array([1]))
    assert (game.n_actions, envs.recv().rewards[0]) == (2, start + 1)
    envs.close()


def test_arguments_and_wrappers_make_the_environment():
    kwargs = {"space": SPACES["colour picture"][0]}
    assert find_game("Sampled-v0", env_kwargs=kwargs, wrappers=[FLATTEN]).obs_shape == (60 * 48 * 3,)


def test_wrappers_may_be_classes_and_the_first_is_innermost():
    made = Recipe("CartPole-v1", wrappers=[gymnasium.wrappers.RecordEpisodeStatistics, FLATTEN]).make()
    assert type(made.env).__name__ == "RecordEpisodeStatistics"
    assert type(made).__name__ == "FlattenObservation"


def still(env):
    env = gymnasium.wrappers.NormalizeObservation(env)
    env.update_running_mean = False
    return env


def test_means_that_do_not_run_are_fixed_numbers():
    assert Recipe("CartPole-v1", wrappers=[still]).make().obs_rms.count < 1


def test_limits_of_the_spec_the_arguments_and_the_wrappers_count():
    limits = [
        find_game("CartPole-v1"),
        find_game("CartPole-v1", env_kwargs={"max_episode_steps": 30}),
        find_game("CartPole-v1", wrappers=[{"gymnasium.wrappers:TimeLimit": {"max_episode_steps": 20}}]),
        find_game("CartPole-v1", wrappers=[{"gymnasium.wrappers:TimeLimit": {"max_episode_steps": 900}}]),
        find_game("Sampled-v0"),
    ]
    assert [game.limit for game in limits] == [500, 30, 20, 500, None]
    assert [Rules().longest(game) for game in limits] == [500, 30, 20, 500, 108_000]
    assert [Rules(max_episode_frames=12).longest(game) for game in limits] == [12] * 5
    for kwargs in ({}, {"max_episode_steps": 30}):
        assert longest_of(Recipe("CartPole-v1", kwargs).make(12)) == 12


def lives_and_frames(self, env):
    """As Gymnasium's AtariPreprocessing, which needs OpenCV."""
    Still.__init__(self, env)
    self.terminal_on_life_loss = True


REFUSED = {
    "continuous": (
        {"game": "Pendulum-v1"},
        r"Pendulum-v1 has actions Box.*discrete.*SB3\('PPO', 'Pendulum-v1'\).*wrapper",
    ),
    "no module": (
        {"game": "nowhere:Env-v0"},
        r"environment nowhere:Env-v0: there is no module 'nowhere'.*installed",
    ),
    "not registered there": ({"game": "math:Mine-v0"}, r"math registers no environment 'Mine-v0'"),
    "vector form alone": (
        {"game": "Vector-v0"},
        r"Vector-v0 exists only as a vector environment: .*single form .*register\('Vector-v0', entry_point=…, vector_",
    ),
    "argument": ({"game": "CartPole-v1", "env_kwargs": {"size": 3}}, r"CartPole-v1 cannot be made: TypeError.*'size'"),
    "table": ({"game": "CartPole-v1", "env_kwargs": 3}, r"env_kwargs is a table of arguments by name, got 3"),
    "wrapper": (
        {"game": "CartPole-v1", "wrappers": ["math:Wrap"]},
        r"math:Wrap: unknown name in module math 'Wrap'",
    ),
    "no wrapper": ({"game": "CartPole-v1", "wrappers": ["Wrap"]}, r"named by its module, 'my_module:Wrap'"),
    "one wrapper": ({"game": "CartPole-v1", "wrappers": FLATTEN}, r"wrappers is a list.*write \['gymnasium"),
    "no return": (
        {"game": "CartPole-v1", "wrappers": [lambda env: None]},
        "wrapper of environment CartPole-v1 gave None: it takes an environment and returns one",
    ),
    "clipped rewards": (
        {"game": "CartPole-v1", "wrappers": [{"gymnasium.wrappers:ClipReward": {"max_reward": 1}}, FLATTEN]},
        r"raw rewards, and the wrapper ClipReward of CartPole-v1 .*leave it out.*clip_rewards=True.*or tune it by SB3",
    ),
    "lives": (
        {"game": "CartPole-v1", "wrappers": [type("Lives", (type("EpisodicLifeEnv", (Still,), {}),), {})]},
        r"whole games and raw rewards, and the wrapper Lives of CartPole-v1",
    ),
    "lives and frames at once": (
        {"game": "CartPole-v1", "wrappers": [type("Skips", (Still,), {"__init__": lives_and_frames})]},
        r"the wrapper Skips of environment CartPole-v1 ends games by lives: leave out its terminal_on_life_loss",
    ),
    "running means": (
        {"game": "CartPole-v1", "wrappers": ["gymnasium.wrappers:NormalizeObservation", FLATTEN]},
        r"NormalizeObservation of environment CartPole-v1 keeps running means.*no checkpoint: use SB3.*normalize=True",
    ),
    "atari": ({"game": "Pong", "wrappers": [FLATTEN]}, r"ale_py's own threads.*SB3\('PPO', 'ALE/Pong-v5'"),
    "class": ({"game": Sampled}, r"a game goes by its name.*gymnasium.register\('Mine-v0', MyEnv\)"),
    "several actions": (
        {"game": "Sampled-v0", "wrappers": [Paired]},
        r"Sampled-v0 has actions Dict.*, discrete ones are needed here: make them discrete by a wrapper",
    ),
    "text": (
        {"game": "Sampled-v0", "env_kwargs": {"space": spaces.Graph(spaces.Discrete(2), None)}},
        r"Sampled-v0 has observations Graph.*wrapper around it that does, wrappers=\['my_module:MyWrapper'\]$",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_one_line_with_the_way_out(case):
    settings, line = REFUSED[case]
    with pytest.raises(InvalidInput, match=line) as caught:
        GA3C(**settings)
    assert "\n" not in str(caught.value)


def test_the_way_out_for_an_environment_of_a_module_names_the_module(own_module, monkeypatch):
    find_game(f"{own_module}:Elsewhere-v0")
    monkeypatch.setattr(sys.modules[own_module].Env, "action_space", spaces.Box(-1, 1))
    with pytest.raises(InvalidInput, match=r"^own_module:Elsewhere-v0 has.*SB3\('PPO', 'own_module:Elsewhere-v0'\)"):
        find_game(f"{own_module}:Elsewhere-v0")


def test_an_id_that_nobody_has_registered_is_told_how_to():
    for name, hint in [("Nowhere-v0", r"one of your own.*'my_module:NAME'"), ("math:My-v0", "math registers no")]:
        with pytest.raises(InvalidInput, match=f"environment {name} cannot be made: NameNotFound.*; {hint}") as caught:
            Recipe(name).make()
        assert "\n" not in str(caught.value)


def test_a_package_that_is_missing_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "Box2D", None)
    monkeypatch.delitem(sys.modules, "gymnasium.envs.box2d.lunar_lander", raising=False)
    monkeypatch.delitem(sys.modules, "gymnasium.envs.box2d", raising=False)
    with pytest.raises(InvalidInput, match=r"LunarLander-v3 cannot be made.*pip install.*gymnasium\[box2d\]") as caught:
        GA3C("LunarLander-v3")
    assert "\n" not in str(caught.value)


def test_ones_own_code_is_named_with_its_line():
    with pytest.raises(
        InvalidInput, match=r"Sampled-v0 cannot be made: ValueError: too short \(test_environment.py:\d+ in __init__"
    ):
        GA3C("Sampled-v0", env_kwargs={"length": 0})
    with pytest.raises(InvalidInput, match=r"Sampled-v0 cannot be made: AssertionError \(test_environment.py:\d+ in"):
        GA3C("Sampled-v0", wrappers=[asserting])


def asserting(env):
    raise AssertionError


MODULE = """
import gymnasium, numpy
class Env(gymnasium.Env):
    observation_space = gymnasium.spaces.Discrete(3)
    action_space = gymnasium.spaces.Discrete(2)
    def reset(self, *, seed=None, options=None):
        return 0, {}
    def step(self, action):
        return 1, 1.0, True, False, {}
gymnasium.register("Elsewhere-v0", "own_module:Env")
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    (tmp_path / "own_module.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield "own_module"
    sys.modules.pop("own_module", None)
    gymnasium.registry.pop("Elsewhere-v0", None)


def test_a_module_is_imported_for_the_environment_it_registers(own_module):
    game = find_game("own_module:Elsewhere-v0")
    assert (game.name, game.obs_shape, game.n_actions) == ("own_module:Elsewhere-v0", (3,), 2)


def test_a_module_of_the_working_directory_is_imported_though_a_command_has_another_path(own_module, monkeypatch):
    monkeypatch.chdir(Path(sys.path[0]))
    monkeypatch.setattr(sys, "path", sys.path[1:])
    assert find_game("own_module:Elsewhere-v0").n_actions == 2


def test_a_checkpoint_alone_has_no_module_imported(own_module, tmp_path):
    trial = GA3C("own_module:Elsewhere-v0", Budget(updates=1), n_agents=2, lockstep=True, wrappers=[FLATTEN])({}, 0)
    trial.train_phase(lambda _: None)
    trial.save(tmp_path)
    trial.close()
    agent = load_agent(tmp_path)
    assert (agent.game.name, agent.game.recipe.wrappers) == ("own_module:Elsewhere-v0", [FLATTEN])
    assert watch(tmp_path, tmp_path / "game.gif").steps == 1
    del sys.modules["own_module"], gymnasium.registry["Elsewhere-v0"]
    with pytest.raises(InvalidInput, match=r"code of own_module.*import own_module first"):
        load_agent(tmp_path)
    assert "own_module" not in sys.modules
    named = load_agent(tmp_path, "own_module:Elsewhere-v0")  # by whoever gives the name
    assert named.game.recipe.wrappers == [FLATTEN]  # as it was trained
    assert load_agent(tmp_path, "Elsewhere-v0").game.recipe == replace(named.game.recipe, id="Elsewhere-v0")
    assert load_agent(tmp_path, find_game("own_module:Elsewhere-v0")).game.n_actions == 2


def test_modules_a_file_names_are_found_wherever_they_stand():
    described = ["CartPole-v1", "far.away:Env-v0", [FLATTEN, {"wraps:W": {"n": 3}}], "ALE/Pong-v5", None, 3]
    assert list(modules_to_import(described)) == ["far.away", "wraps"]


def test_of_networks_whose_weights_have_the_same_shapes_the_saved_one_plays(tmp_path):
    space = spaces.Box(0, 255, (44, 44, 3), np.uint8)
    GA3C("Sampled-v0", Budget(updates=1), network="large-3", env_kwargs={"space": space})({}, 0).save(tmp_path)
    agent = load_agent(tmp_path, find_game("Sampled-v0", env_kwargs={"space": space}))
    assert agent.model.trunk[0].stride == (3, 3)


def test_an_evaluation_of_a_game_that_never_ends_is_refused(monkeypatch):
    monkeypatch.setattr("workbench.algos.rl.games.ATARI_EPISODE_FRAMES", 20)
    game, steps = find_game("Sampled-v0", env_kwargs={"length": 10**9}), iter(range(30))
    with pytest.raises(InvalidInput, match=r"a game of Sampled-v0 has not ended in 20 steps.*max_episode_frames"):
        evaluate(make_model(game), game, 2, meanwhile=lambda: next(steps))


def test_a_picture_can_be_watched(tmp_path):
    space = SPACES["colour picture"][0]
    trial = GA3C("Sampled-v0", Budget(updates=1), n_agents=2, lockstep=True, env_kwargs={"space": space})({}, 0)
    trial.train_phase(lambda _: None)
    trial.save(tmp_path)
    trial.close()
    game = find_game("Sampled-v0", env_kwargs={"space": space})
    assert watch(tmp_path, tmp_path / "game.gif", game=game).steps == 4


def out_of_a_cell() -> bytes:
    cell = types.ModuleType("cell_of_a_notebook")  # no other process can import it
    env = type("Celled", (Sampled,), {"__module__": cell.__name__})
    wrapper = type("Doubled", (gymnasium.wrappers.FlattenObservation,), {"__module__": cell.__name__})
    cell.Celled, cell.Doubled = env, wrapper
    sys.modules[cell.__name__] = cell
    cloudpickle.register_pickle_by_value(cell)
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    gymnasium.register("Celled-v0", env)
    try:
        factory = GA3C("Celled-v0", Budget(updates=1), n_agents=2, lockstep=True, wrappers=[wrapper])
        packet = pickle.dumps(factory)
        assert pickle.loads(packet) == factory
        return packet
    finally:
        cloudpickle.unregister_pickle_by_value(cell)
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
        del sys.modules[cell.__name__], gymnasium.registry["Celled-v0"]


SCRIPT = """
import pickle
import gymnasium
from tests.algos.rl.simulator import Simulator
from workbench import GA3C, Budget

class Scripted(Simulator):
    pass

gymnasium.register("Scripted-v0", "__main__:Scripted", vector_entry_point="__main__:Scripted")
packet = pickle.dumps(GA3C("Scripted-v0", Budget(updates=1), n_agents=2, lockstep=True))
assert gymnasium.registry["Scripted-v0"].entry_point == "__main__:Scripted"
"""


def out_of_a_script(folder) -> bytes:
    (script := folder / "script.py").write_text(SCRIPT)
    try:
        return runpy.run_path(str(script), run_name="__main__")["packet"]
    finally:
        gymnasium.registry.pop("Scripted-v0", None)


THERE = """
import pickle, sys
import gymnasium
for name, packet in pickle.load(sys.stdin.buffer).items():
    factory = pickle.loads(packet)
    assert name in gymnasium.registry
    trial = factory({}, 0)
    print(trial.train_phase(lambda _: None)["episode_length"], trial.game.obs_shape)
"""


def test_what_a_cell_registers_and_wraps_and_a_script_by_its_own_name_travels_to_a_fresh_process(tmp_path):
    packets = {"Celled-v0": out_of_a_cell(), "Scripted-v0": out_of_a_script(tmp_path)}
    here = {"env": FROM_HERE, "capture_output": True, "check": False}
    done = subprocess.run([sys.executable, "-c", THERE], input=pickle.dumps(packets), **here)
    assert done.stdout.decode().splitlines() == ["4.0 (2,)", "1.0 (1,)"], done.stderr.decode()[-2000:]


MARKED = """
import gymnasium
from tests.algos.rl.test_environment import Sampled

class Paid(Sampled):
    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, {reward}, *rest

class Seen(gymnasium.ObservationWrapper):
    def observation(self, observation):
        return observation * {scale}

gymnasium.register("Paid-v0", {entry})
"""


@pytest.mark.parametrize("entry", ['"marked:Paid"', "Paid", "lambda: Paid()"])
@pytest.mark.parametrize(
    "made", [lambda **how: GA3C("marked:Paid-v0", **how), lambda **how: SB3("PPO", "marked:Paid-v0", **how)]
)
def test_the_code_of_an_environment_counts_for_its_trainable_s_mark(tmp_path, monkeypatch, entry, made):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))

    def mark(reward="1.0", scale="1.0") -> str | None:
        (tmp_path / "marked.py").write_text(MARKED.format(reward=reward, scale=scale, entry=entry))
        sys.modules.pop("marked", None)
        gymnasium.registry.pop("Paid-v0", None)
        linecache.clearcache()
        return source_mark(made(wrappers=["marked:Seen"]))

    try:
        one = mark()
        assert mark() == one
        assert mark(reward="2.0") != one
        assert mark(scale="2.0") != one
    finally:
        sys.modules.pop("marked", None)
        gymnasium.registry.pop("Paid-v0", None)


def test_a_cell_that_is_run_again_counts_where_it_arrives():
    first, second = pickle.dumps(GA3C("Sampled-v0")), None
    old = gymnasium.registry["Sampled-v0"]
    try:
        gymnasium.registry["Sampled-v0"] = gymnasium.envs.registration.EnvSpec(
            "Sampled-v0", Sampled, kwargs={"length": 2}
        )
        second = pickle.dumps(GA3C("Sampled-v0"))
        pickle.loads(first)
        assert gymnasium.registry["Sampled-v0"].kwargs == {}
        pickle.loads(second)
        assert gymnasium.registry["Sampled-v0"].kwargs == {"length": 2}
    finally:
        gymnasium.registry["Sampled-v0"] = old


def test_nothing_is_carried_that_the_other_side_knows_and_classes_are():
    assert "packet" in GA3C("CartPole-v1", wrappers=[gymnasium.wrappers.FlattenObservation]).__getstate__()
    assert "packet" not in GA3C("CartPole-v1").__getstate__()
    assert "packet" not in GA3C("CartPole-v1", wrappers=[FLATTEN]).__getstate__()


def test_a_package_whose_name_begins_as_gymnasiums_is_carried():
    gymnasium.register("Armed-v0", type("Armed", (Sampled,), {"__module__": "gymnasium_robotics.arms"}))
    try:
        assert "packet" in GA3C("Armed-v0").__getstate__()
    finally:
        del gymnasium.registry["Armed-v0"]


def test_minigrid_plays_with_a_wrapper_by_name_and_is_refused_with_the_way_out_without():
    pytest.importorskip("minigrid")
    game = "minigrid:MiniGrid-Empty-5x5-v0"
    with pytest.raises(InvalidInput, match=r"MiniGrid-Empty-5x5-v0 has observations Dict.*wrappers="):
        GA3C(game)
    settings = {"wrappers": ["minigrid.wrappers:ImgObsWrapper"], "n_agents": 2, "lockstep": True, "min_games": 1}
    trial = GA3C(game, Budget(updates=2), **settings)({}, 0)
    assert (trial.game.obs_shape, trial.game.n_actions) == ((3, 7, 7), 7)
    assert trial.train_phase(lambda _: None)["games"] >= 1
    trial.close()


def test_a_knowledge_base_alone_has_no_module_imported(own_module):
    from workbench.algos.games import Games
    from workbench.algos.search import FullRuns, ListSearcher
    from workbench.study.file import study_from_record
    from workbench.study.study import Study

    trainable = GA3C("own_module:Elsewhere-v0", Budget(updates=1), n_agents=2, lockstep=True)
    scheduler = FullRuns(ListSearcher([{"gamma": 0.9}]), n_trials=1, n_phases=1)
    study = Study("named", scheduler, trainable)
    within = Study("within", scheduler, Games({"one": trainable}, {"one": (0, 1)}))
    assert study_from_record("named", study.spec).trainable == trainable
    del sys.modules["own_module"], gymnasium.registry["Elsewhere-v0"]
    for one in (study, within):
        with pytest.raises(InvalidInput, match=r"names code of own_module.*with its file.*import own_module"):
            study_from_record(one.name, one.spec)
        assert "own_module" not in sys.modules


def test_a_command_that_names_the_module_may_import_it(own_module, tmp_path, capsys):
    from workbench.algos.search import FullRuns, ListSearcher
    from workbench.cli.main import main
    from workbench.knowledge import StudyLog
    from workbench.study.study import Study

    trainable = GA3C("own_module:Elsewhere-v0", Budget(updates=1), n_agents=2, lockstep=True)
    study = Study("named", FullRuns(ListSearcher([{"gamma": 0.9}]), n_trials=1, n_phases=1), trainable)
    StudyLog(tmp_path / "kb.db", "named", study.spec).close()
    del sys.modules["own_module"], gymnasium.registry["Elsewhere-v0"]
    command = ["confirm", "named", "--db", str(tmp_path / "kb.db")]
    assert main(command) == 2
    assert "names code of own_module, which a knowledge base alone" in (said := capsys.readouterr().err)
    assert said.endswith("resume it with its file, or with --import own_module\n")
    assert main([*command, "--import", "own_moduel"]) == 2
    assert "there is no module 'own_moduel'" in capsys.readouterr().err
    assert main([*command, "--import", "own_module"]) == 2
    assert "has nothing to confirm: no phase has ended" in capsys.readouterr().err


@pytest.mark.parametrize(("kind", "together"), [(GA3C, {"n_groups": 1}), (HTS, {"n_executors": 1})])
@pytest.mark.parametrize(
    ("env_kwargs", "told"),
    [({"most": 1}, "the port is taken"), ({"begins": False}, "no answer"), ({"first": np.nan}, "NaN")],
)
def test_environments_that_do_not_all_come_about_or_begin_are_closed(kind, together, env_kwargs, told):
    Simulator.running.clear()
    trial = kind("WorkbenchSimulator-v0", Budget(frames=9), n_agents=2, env_kwargs=env_kwargs, **together)({}, 0)
    with pytest.raises((OSError, InvalidInput), match=told):
        trial.train_phase(silent)
    trial.close()
    assert Simulator.running == []


def test_an_environment_whose_wrapper_fails_is_closed():
    def broken(env):
        raise OSError("no screen")

    Simulator.running.clear()
    with pytest.raises(InvalidInput, match="no screen"):
        Recipe("WorkbenchSimulator-v0", {}, [broken]).make()
    assert Simulator.running == []
