"""Environments of single agents: they come and go, and play as each would by itself."""

import numpy as np
import pytest

from workbench.algos.rl.apart import EnvsApart
from workbench.algos.rl.envs import make_envs
from workbench.algos.rl.games import find_game

PLAYING = (1, 3, 3, 1, 2, 3, 1, 1, 3)


def alone(game, number: int):
    return make_envs(game, 1, seed=number)


@pytest.mark.parametrize("name", ["CartPole-v1", "Pong"])
def test_each_agent_plays_on_from_where_it_was_let_go(name):
    game, generator = find_game(name), np.random.default_rng(0)
    envs, singles = EnvsApart(game, 3, lambda number: alone(game, number)), [alone(game, n) for n in range(3)]
    for playing in PLAYING * 3:
        envs.playing = playing
        step = envs.recv()
        assert step.env_ids.tolist() == list(range(playing))
        actions = generator.integers(0, game.n_actions, playing)
        for number in range(playing):
            single = singles[number].recv()
            np.testing.assert_array_equal(step.obs[number], single.obs[0])
            assert step.rewards[number] == single.rewards[0]
            assert step.terminated[number] == single.terminated[0]
            assert step.truncated[number] == single.truncated[0]
            assert step.started[number] == single.started[0]
            singles[number].send(actions[number : number + 1])
        envs.playing = 3  # whenever that is said: those have an action that were seen
        envs.send(actions)
    for each in (envs, *singles):
        each.close()


def test_what_networks_see_lies_in_memory_as_it_does_of_many():
    game = find_game("Pong")
    envs, many = EnvsApart(game, 2, lambda number: alone(game, number)), make_envs(game, 2, seed=0)
    envs.playing = 2
    assert envs.recv().obs.strides == many.recv().obs.strides
    envs.close()
    many.close()


def test_an_agent_that_never_played_has_no_environment_and_all_others_are_closed():
    class Closing:
        def __init__(self, number):
            self.number, self.envs = number, alone(game, number)

        def recv(self):
            return self.envs.recv()

        def close(self):
            self.envs.close()
            closed.append(self.number)
            if self.number == 1:
                raise OSError("cannot be closed")

    game = find_game("CartPole-v1")
    closed = []
    envs = EnvsApart(game, 3, Closing)
    envs.playing = 2
    step = envs.recv()
    assert len(step.obs) == envs.playing
    with pytest.raises(OSError, match="cannot be closed"):
        envs.close()
    envs.close()
    assert sorted(closed) == [0, 1]
