"""Environments: actions, and what happens where an episode ends."""

from itertools import pairwise

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.envs.classic_control.cartpole import CartPoleEnv, CartPoleVectorEnv
from gymnasium.envs.registration import WrapperSpec
from gymnasium.wrappers import TransformObservation, TransformReward

from workbench.algos.rl.envs import checked_actions, make_envs
from workbench.algos.rl.games import Rules, find_game
from workbench.algos.rl.rollout import Segments
from workbench.core.errors import InvalidInput


@pytest.mark.parametrize("actions", [[0, 6], [-1, 0], [0.5, 1], [0], [[0, 1]]])
def test_actions_are_checked_before_they_are_sent(actions):
    with pytest.raises(InvalidInput):
        checked_actions(np.array(actions), 2, 6)


def play(envs, n_steps, rng):
    """Collect each agent's stream: (obs, reward, terminated, truncated, started) and the actions taken at it.

    Until every agent has taken `n_steps`: where a batch holds only those that are ready, a busy machine may keep one
    waiting while the others go round many times.
    """
    streams = {i: [] for i in range(envs.n_envs)}
    while min(len(stream) for stream in streams.values()) < n_steps:
        step = envs.recv()
        actions = rng.integers(0, envs.game.n_actions, len(step.env_ids))
        for k, i in enumerate(step.env_ids):
            now = step.obs[k], step.rewards[k], step.terminated[k], step.truncated[k], step.started[k], actions[k]
            streams[int(i)].append(now)
        envs.send(actions)
    return streams


@pytest.mark.parametrize(
    ("rules", "env_kwargs"), [({}, {}), ({"max_episode_frames": 12}, {}), ({}, {"max_episode_steps": 12})]
)
def test_cartpole_matches_a_plain_loop_across_resets(rules, env_kwargs):
    envs = make_envs(find_game("CartPole-v1", env_kwargs=env_kwargs), 3, 5, Rules(**rules))
    streams = play(envs, 200, np.random.default_rng(0))
    envs.close()
    longest = 12 if rules or env_kwargs else None
    plain = gymnasium.make("CartPole-v1").unwrapped
    ends = {"terminated": 0, "truncated": 0}
    for stream in streams.values():
        assert stream[0][4]
        length = 0
        for (obs, _, ended, cut, started, action), (following, reward, t, c, s, _) in pairwise(stream):
            if started:
                plain.reset()
                plain.state, length = np.array(obs, np.float64), 0
            if ended or cut:
                assert s
                continue
            assert not s
            length += 1
            expected, expected_reward, expected_end, _, _ = plain.step(action)
            plain.state = np.array(following, np.float64)  # float32 in the vector form: do not let it drift
            np.testing.assert_allclose(following, expected, rtol=1e-4, atol=1e-4)
            assert reward == expected_reward
            assert t == expected_end
            assert c == (length == longest)
            ends["terminated"] += bool(t)
            ends["truncated"] += bool(c)
    assert ends["terminated"]
    assert bool(ends["truncated"]) == (longest is not None)


@pytest.mark.parametrize("batch_size", [None, 1])
def test_pong_truncates_and_starts_anew_with_no_transition_between(batch_size):
    game = find_game("Pong")
    envs = make_envs(game, 2, 3, Rules(0, 60), batch_size=batch_size, n_threads=2)
    streams = play(envs, 50, np.random.default_rng(0))
    envs.close()
    for stream in streams.values():
        assert len(stream) > 40
        starts = [k for k, (*_, started, _) in enumerate(stream) if started]
        cuts = [k for k, (_, _, _, truncated, *_) in enumerate(stream) if truncated]
        assert starts[:3] == [0, 16, 32]  # 15 steps of 4 frames, then one that only resets
        assert cuts[:2] == [15, 31]
        assert all(stream[k][1] == 0 for k in starts)
        first = stream[0][0]
        assert all((stream[k][0] == first).all() for k in starts)  # without no-ops every start looks alike
        assert not any((stream[k][0] == first).all() for k in cuts)  # the true last observation, not the reset's


def test_a_game_is_played_as_the_plain_emulator_does():
    """Rewards and ends of a whole game, of five lives, against ale_py's single environment, frame by frame."""
    import ale_py

    game, paid = find_game("Breakout"), 0
    envs = make_envs(game, 1, 0, Rules(noop_max=0), n_threads=1)
    ale = ale_py.ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.loadROM(ale_py.roms.get_rom_path("breakout"))
    meanings = ale.getMinimalActionSet()
    rng = np.random.default_rng(1)
    envs.recv()
    for _ in range(3000):
        action = int(rng.integers(game.n_actions))
        envs.send(np.array([action]))
        step = envs.recv()
        reward = 0
        for _ in range(4):
            reward += ale.act(meanings[action])
            if ale.game_over():
                break
        assert step.rewards[0] == reward
        paid += reward
        assert step.terminated[0] == ale.game_over()
        if ale.game_over():
            break
    else:
        pytest.fail("the game never ended")
    envs.close()
    assert paid


def test_rewards_are_raw_and_a_life_that_is_lost_ends_no_game():
    """Qbert always to the right: five cubes of 25 points, then off the edge; one of four lives is lost at step 83."""
    envs = make_envs(find_game("Qbert"), 1, 0, Rules(noop_max=0), n_threads=1)
    envs.recv()
    paid = {}
    for step in range(1, 91):
        envs.send(np.array([3]))
        shown = envs.recv()
        assert not shown.terminated[0]
        if shown.rewards[0]:
            paid[step] = float(shown.rewards[0])
    envs.close()
    assert paid == dict.fromkeys([45, 53, 60, 68, 75], 25.0)


@pytest.mark.parametrize(("name", "rgb"), [("Pong", False), ("AirRaid", False), ("Pong", True)])
def test_pictures_lie_with_channels_last_in_memory_whoever_makes_them_and_in_rollouts_too(name, rgb):
    game = find_game(name, rgb=rgb)
    envs = make_envs(game, 2, 0, n_threads=1)
    raw = envs._first[0]
    obs = envs.recv().obs
    envs.close()
    if rgb:  # (B, stack, side, side, 3): the colours of a frame stand together, the newest frame last
        assert all((obs[:, 3 * k + colour] == raw[:, k, :, :, colour]).all() for k in range(4) for colour in range(3))
    segments = Segments(game, 3, 2)
    segments.obs[[0, 2], 1], segments.lengths[:] = obs, 2
    rollout = segments.rollout([2, 0], 0.9)
    assert (rollout.obs[[3, 1]] == obs).all()
    for pictures in (obs, segments.obs[0], rollout.obs):
        assert torch.from_numpy(pictures).is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize(
    ("wrapper", "told"),
    [
        (lambda env: TransformReward(env, lambda reward: np.inf), "a reward"),
        (lambda env: TransformReward(env, lambda reward: 1e39), "a reward"),
        (
            lambda env: TransformObservation(env, lambda obs: np.where(obs == obs[1], np.nan, obs), None),
            "an observation",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore", "error:overflow")
def test_an_environment_that_gives_no_numbers_is_named_and_not_the_learning(wrapper, told):
    envs = make_envs(find_game("CartPole-v1", wrappers=[wrapper]), 2, 0)
    with pytest.raises(InvalidInput, match=rf"CartPole-v1 has given {told} that is NaN or infinite"):
        play(envs, 2, np.random.default_rng(0))
    envs.close()


class OfNoLimit(CartPoleVectorEnv):
    """Takes no limit of steps, which Gymnasium passes on where one is registered."""

    def __init__(self, num_envs):
        super().__init__(num_envs)


DOUBLE = WrapperSpec("Double", "gymnasium.wrappers:TransformReward", {"func": lambda reward: 2 * reward})


@pytest.mark.parametrize(
    ("vector_form", "wrapped", "reward"),
    [(OfNoLimit, (), 1), (CartPoleVectorEnv, (DOUBLE,), 2), ("math:NotThere", (), 1)],
    ids=["takes no limit", "would be unwrapped", "is not there"],
)
def test_copies_of_the_single_form_play_where_the_vector_form_cannot_be_made_as_registered(
    vector_form, wrapped, reward
):
    gymnasium.register(
        "TwoForms-v0",
        CartPoleEnv,
        vector_entry_point=vector_form,
        max_episode_steps=8,
        additional_wrappers=wrapped,
    )
    try:
        with pytest.warns(UserWarning, match="TwoForms-v0 plays one by one: its vector form cannot be made"):
            envs = make_envs(find_game("TwoForms-v0"), 2, 0)
        stream = play(envs, 40, np.random.default_rng(0))[0]
        envs.close()
    finally:
        del gymnasium.registry["TwoForms-v0"]
    assert [started for *_, started, _ in stream[:10]] == [True, *[False] * 8, True]  # cut off after 8
    assert {float(paid) for _, paid, _, _, started, _ in stream if not started} == {reward}


class Telling(gymnasium.Wrapper):
    """Tells in its infos what differs in length and kind from game to game, as a board's moves do."""

    def told(self):
        n = int(self.unwrapped.np_random.integers(9))
        return {"moves": np.arange(n), "winner": n if n % 2 else None, "log": {"n": "none" if n < 3 else n}}

    def reset(self, **settings):
        return self.env.reset(**settings)[0], self.told()

    def step(self, action):
        return *self.env.step(action)[:4], self.told()


def test_infos_that_fit_into_no_array_keep_no_game_from_being_played():
    envs = make_envs(find_game("CartPole-v1", wrappers=[Telling]), 4, 0)
    streams = play(envs, 40, np.random.default_rng(0))
    envs.close()
    assert sum(started for stream in streams.values() for *_, started, _ in stream) > 4


def test_the_games_of_a_batch_begin_each_by_its_own_no_ops():
    envs = make_envs(find_game("MsPacman"), 2, 0, Rules(noop_max=30), n_threads=1)
    one, other = envs.recv().obs
    envs.close()
    assert not np.array_equal(one, other)


def test_closed_environments_say_so():
    for name in ("Pong", "CartPole-v1"):
        envs = make_envs(find_game(name), 1, 0, n_threads=1)
        envs.close()
        envs.close()
        with pytest.raises(RuntimeError, match="closed"):
            envs.recv()
