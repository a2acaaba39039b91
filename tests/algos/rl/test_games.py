"""Games are found by their names; what no network here can play is refused."""

import ale_py.roms
import numpy as np
import pytest

from workbench.algos.rl.games import Rules, find_game
from workbench.algos.rl.settings import Settings
from workbench.core.errors import InvalidInput


@pytest.mark.parametrize("name", ["Pong", "pong", "ALE/Pong-v5"])
def test_a_game_goes_by_several_names(name):
    game = find_game(name)
    assert (game.name, game.obs_shape, game.n_actions, game.frames_per_step) == ("pong", (4, 84, 84), 6, 4)


def test_roms_of_several_words():
    assert find_game("MsPacman").name == find_game("ms_pacman").name == "ms_pacman"


def test_gymnasium_games():
    game = find_game("CartPole-v1")
    assert (game.obs_shape, game.n_actions, game.frames_per_step, game.atari) == ((4,), 2, 1, False)


@pytest.mark.parametrize("name", ["PongNoFrameskip-v4", "Breakout-v0"])
def test_atari_s_bare_screens_need_wrappers_or_the_game_s_own_name(name):
    with pytest.raises(InvalidInput, match=rf"{name} shows Atari's bare screens, \(210, 160, 3\).*as in 'Pong'"):
        find_game(name)
    assert find_game(name, env_kwargs={"obs_type": "ram"}).obs_shape == (128,)
    assert find_game(name, wrappers=["gymnasium.wrappers:FlattenObservation"]).obs_shape == (210 * 160 * 3,)


def test_an_unknown_game_names_its_neighbours():
    with pytest.raises(InvalidInput, match=r"unknown game 'Pogn': did you mean 'pong'"):
        find_game("Pogn")


def test_an_unknown_game_of_one_s_own_is_told_what_to_do() -> None:
    with pytest.raises(InvalidInput, match=r"one of your own: gymnasium\.register it in a cell") as refused:
        find_game("Hoper-v5")
    assert "Hopper-v5" not in str(refused.value)  # its actions are continuous
    with pytest.raises(InvalidInput, match=r"^math registers no environment 'Hoper-v5': gymnasium\.register\("):
        find_game("math:Hoper-v5")


def test_actions_must_be_discrete():
    with pytest.raises(InvalidInput, match=r"Pendulum-v1 has actions Box.*discrete"):
        find_game("Pendulum-v1")


def test_numbered_states_become_vectors():
    game = find_game("FrozenLake-v1")
    assert (game.obs_shape, game.obs_dtype) == ((16,), np.float32)


def test_the_rules_are_the_usual_ones_also_where_settings_give_none():
    assert Settings().rules == Rules() == Rules(30, None, repeat_action_probability=0.0, fire_on_reset=False)


def test_a_game_s_program_is_loaded_once_a_process(monkeypatch) -> None:
    one = find_game("Freeway")
    monkeypatch.setattr(ale_py.roms, "get_rom_path", None)
    assert find_game("ALE/Freeway-v5") is one
