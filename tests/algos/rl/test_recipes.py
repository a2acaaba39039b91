"""A checkpoint's environment: given back as it was trained in, or refused with what no file holds."""

import enum
import math
import re
from collections import OrderedDict
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from workbench.algos.rl.checkpoint import load_agent
from workbench.algos.rl.evaluate import evaluate
from workbench.algos.rl.ga3c.trial import GA3C
from workbench.algos.rl.games import find_game
from workbench.algos.rl.watch import watch
from workbench.core.budget import Budget
from workbench.core.errors import InvalidInput

BY_NAME = f"{__name__}:Pays"


class Told(gymnasium.Env):
    """Keeps what it was told, and ends after one step."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, told=None):
        self.told = told

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), 1.0, True, False, {}


gymnasium.register("Told-v0", Told)


class Pays(gymnasium.RewardWrapper):
    def __init__(self, env, times=1, plus=None):
        super().__init__(env)
        self.times, self.plus = times, plus

    def reward(self, reward):
        return float(self.times * reward)


def doubled(env):
    return Pays(env, 2)


def twice(times, env):
    return Pays(env, times)


class Factory:
    """Wraps in two ways, neither of which can be imported."""

    def __call__(self, env):
        return self.wrap(env)

    def wrap(self, env):
        return Pays(env, 2)


class Level(enum.IntEnum):
    EASY = 1


def saved(folder: Path, **settings) -> Path:
    """Train an agent for one update and give its checkpoint."""
    agents = GA3C("Told-v0", Budget(updates=1), n_agents=2, lockstep=True, min_games=1, **settings)
    first = agents({}, 0)
    first.train_phase(lambda _: None)
    first.save(folder)
    first.close()
    again = agents({}, 0)  # what goes on has its game from its settings
    again.load(folder)
    again.close()
    return folder


@pytest.mark.parametrize(
    ("told", "back"),
    [
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("word"), "word"),
        ((1, (2, "b")), (1, (2, "b"))),
        ({1: 2, "b": [None, b"c", 1j]}, {1: 2, "b": [None, b"c", 1j]}),
        ({1, 2}, {1, 2}),
        ({"n": np.int64(3), "at": (np.float64(1), math.inf)}, {"n": 3, "at": (1.0, math.inf)}),
    ],
)
def test_arguments_come_back_as_they_were_and_numpys_numbers_as_pythons(tmp_path, told, back):
    recipe = load_agent(saved(tmp_path, env_kwargs={"told": told})).game.recipe
    assert repr(recipe.kwargs) == repr({"told": back})


@pytest.mark.parametrize(
    "told",
    [
        np.array([1, 2]),
        [np.array([1, 2])],
        np.longdouble(1),
        np.datetime64("2026-01-01"),
        Level.EASY,
        OrderedDict(a=1),
        frozenset({1}),
        Path("maze.txt"),
    ],
)
def test_an_argument_that_no_file_gives_back_is_named_and_asked_for(tmp_path, told):
    checkpoint = saved(tmp_path, env_kwargs={"told": told})
    line = r"on Told-v0 with env_kwargs\['told'\], .+, which no checkpoint holds.*game=find_game\('Told-v0', env_kwargs"
    for name in (None, "Told-v0"):
        with pytest.raises(InvalidInput, match=line) as refused:
            load_agent(checkpoint, name)
        assert "\n" not in str(refused.value)
    game = find_game("Told-v0", env_kwargs={"told": told})
    model, again, _ = load_agent(checkpoint, game)
    assert evaluate(model, again, 1).returns == [1.0]
    with pytest.raises(InvalidInput, match=line):
        watch(checkpoint, tmp_path / "game.gif")


def test_a_wrappers_arguments_are_held_as_the_environments_are(tmp_path):
    held = {BY_NAME: {"times": np.int64(3), "plus": (1, 2)}}
    model, game, _ = load_agent(saved(tmp_path, wrappers=[held]))
    assert game.recipe.wrappers == [{BY_NAME: {"times": 3, "plus": (1, 2)}}]
    assert evaluate(model, game, 1).returns == [3.0]
    lost = {BY_NAME: {"plus": abs}}
    with pytest.raises(InvalidInput, match=f"with the wrapper {re.escape(repr(lost))}, which no checkpoint holds"):
        load_agent(saved(tmp_path, env_kwargs={"told": 1}, wrappers=[lost]))


@pytest.mark.parametrize(
    ("wrapper", "held"),
    [
        (Pays, BY_NAME),
        ({Pays: {"times": 2}}, {BY_NAME: {"times": 2}}),
        (partial(Pays, times=2), {BY_NAME: {"times": 2}}),
        (partial(partial(Pays, times=2), plus=(1, 2)), {BY_NAME: {"times": 2, "plus": (1, 2)}}),
        ({partial(Pays, times=2, plus=1): {"times": 3}}, {BY_NAME: {"times": 3, "plus": 1}}),
        (partial(Pays), BY_NAME),
        (doubled, f"{__name__}:doubled"),
    ],
)
def test_a_wrapper_is_held_by_its_name_with_the_keywords_of_a_partial(tmp_path, wrapper, held):
    game = find_game("Told-v0", wrappers=[wrapper])
    model, again, _ = load_agent(saved(tmp_path, wrappers=[wrapper]))
    assert again.recipe.wrappers == [held]
    assert evaluate(model, again, 1).returns == evaluate(model, game, 1).returns


@pytest.mark.parametrize(
    "wrapper",
    [lambda env: Pays(env, 2), partial(lambda env, n: Pays(env, n), n=2), partial(twice, 2), Factory(), Factory().wrap],
    ids=["lambda", "partial of a lambda", "partial with a position", "object", "method"],
)
def test_a_wrapper_without_a_name_trains_and_is_asked_for_where_its_agent_plays(tmp_path, wrapper):
    def local(env):
        return Pays(env, 2)

    for wrap in (wrapper, local):
        checkpoint = saved(tmp_path, wrappers=[wrap])
        with pytest.raises(InvalidInput, match=r"with the wrapper .+, which no checkpoint holds.*wrappers=") as refused:
            load_agent(checkpoint)
        assert "\n" not in str(refused.value)
        model, game, _ = load_agent(checkpoint, find_game("Told-v0", wrappers=[wrap]))
        assert evaluate(model, game, 1).returns == [2.0]
