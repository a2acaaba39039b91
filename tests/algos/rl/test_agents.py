"""What a group of agents records, checked against scripted environments."""

from types import SimpleNamespace

import numpy as np
import pytest

from workbench.algos.rl.agents import AgentGroup, sample
from workbench.algos.rl.envs import Step
from workbench.algos.rl.episodes import Episodes
from workbench.algos.rl.games import Game
from workbench.algos.rl.rollout import Pool, Rollout, Segments

GAME = Game("script", False, (1,), np.dtype(np.float32), 3, 1)


class Scripted:
    """Environments that show their own clock: observation = 100 * agent + steps since the start."""

    game = GAME

    def __init__(self, n_envs, ends, pay=1.0):
        self.n_envs, self.ends, self.pay = n_envs, ends, pay  # ends: (agent, clock) → "terminated" | "truncated"
        self.clock = np.zeros(n_envs, int)
        self.fresh = np.ones(n_envs, bool)
        self.sent = []

    def recv(self):
        ids = np.arange(self.n_envs)
        kinds = [None if self.fresh[i] else self.ends.get((i, self.clock[i])) for i in ids]
        started = self.fresh.copy()
        terminated = np.array([k == "terminated" for k in kinds])
        truncated = np.array([k == "truncated" for k in kinds])
        obs = (100.0 * ids + self.clock)[:, None].astype(np.float32)
        rewards = np.where(started, 77, self.pay * self.clock).astype(np.float32)  # void where an episode starts
        self.clock += 1
        self.fresh = terminated | truncated
        return Step(ids, obs, rewards, terminated, truncated, started)

    def send(self, actions):
        self.sent.append(actions.copy())

    def close(self):
        pass


def record(ends, n_steps, t_max=4, clip=False, n_envs=2, pay=1.0):
    store = Segments(GAME, 64, t_max)
    envs, episodes = Scripted(n_envs, ends, pay), Episodes(n_envs, 10)
    group = AgentGroup(envs, store, episodes, np.random.default_rng(0), clip_rewards=clip)
    free, handed = list(range(64)), []

    def exchange(finished, n):
        handed.extend(finished)
        return [free.pop(0) for _ in range(n)]

    for step in range(n_steps):
        obs = group.observe()
        group.act(np.full((n_envs, 3), 1 / 3, np.float32), 1000 + obs[:, 0], step, exchange)
    segments = []
    for s in handed:
        n = store.lengths[s]
        row = store.obs[s, :n, 0], store.rewards[s, :n], store.versions[s, :n], store.actions[s, :n]
        segments.append((*(part.tolist() for part in row), float(store.bootstrap[s])))
    return segments, group, envs


def test_full_segments_bootstrap_from_the_next_observation():
    segments, group, envs = record({}, 9, n_envs=1)
    (obs, rewards, versions, actions, bootstrap), (obs2, rewards2, *_, bootstrap2) = segments
    assert (obs, rewards, versions) == ([0, 1, 2, 3], [1, 2, 3, 4], [0, 1, 2, 3])
    assert actions == [int(sent[0]) for sent in envs.sent[:4]]
    assert bootstrap == 1004
    assert (obs2, rewards2, bootstrap2) == ([4, 5, 6, 7], [5, 6, 7, 8], 1008)
    assert group.steps == 8


def test_a_terminal_ends_a_segment_without_bootstrap_and_its_last_transition_is_kept():
    segments, group, _ = record({(0, 6): "terminated"}, 12, n_envs=1)
    assert [(s[0], s[1], s[4]) for s in segments] == [
        ([0, 1, 2, 3], [1, 2, 3, 4], 1004.0),
        ([4, 5], [5, 6], 0.0),  # the reward at the end is in
        ([7, 8, 9, 10], [8, 9, 10, 11], 1011.0),  # 6 → 7 is a reset, not a transition
    ]
    assert group.episodes.finished == 1
    assert list(group.episodes.returns) == [1 + 2 + 3 + 4 + 5 + 6]
    assert list(group.episodes.lengths) == [6]
    assert group.steps == 10


def test_a_truncation_bootstraps_from_the_episodes_true_last_observation():
    segments, group, _ = record({(0, 6): "truncated"}, 12, n_envs=1)
    assert (segments[1][0], segments[1][4]) == ([4, 5], 1006.0)
    assert list(group.episodes.returns) == [1 + 2 + 3 + 4 + 5 + 6]  # it is a whole game


@pytest.mark.parametrize("kind", ["terminated", "truncated"])
def test_an_episode_may_end_exactly_where_a_segment_is_full(kind):
    segments, *_ = record({(0, 4): kind}, 10, n_envs=1)
    assert [s[0] for s in segments] == [[0, 1, 2, 3], [5, 6, 7, 8]]
    assert segments[0][4] == (0.0 if kind == "terminated" else 1004.0)


def test_agents_in_a_batch_do_not_mix():
    segments, *_ = record({(1, 2): "terminated"}, 6)
    assert sorted(s[0] for s in segments) == [[0, 1, 2, 3], [100, 101]]


def test_rewards_are_clipped_for_training_and_raw_in_the_score():
    segments, group, _ = record({(0, 3): "terminated"}, 5, clip=True, n_envs=1)
    assert segments[0][1] == [1, 1, 1]
    assert list(group.episodes.returns) == [6]
    segments, group, _ = record({(0, 3): "terminated"}, 5, clip=True, n_envs=1, pay=-0.5)
    assert segments[0][1] == [-0.5, -1, -1]  # not their signs
    assert list(group.episodes.returns) == [-3]


def test_the_games_of_one_group_are_not_counted_as_anothers():
    store, episodes = Segments(GAME, 64, 4), Episodes(2, 10)
    groups = [
        AgentGroup(
            Scripted(1, {(0, end): "terminated"}, pay),
            store,
            episodes,
            np.random.default_rng(0),
            clip_rewards=False,
            first_agent=first,
        )
        for first, (end, pay) in enumerate([(2, 1.0), (3, 10.0)])
    ]
    free = list(range(64))
    for _ in range(4):
        for group in groups:
            group.act(
                np.ones((1, 3), np.float32) / 3, group.observe()[:, 0], 0, lambda _, n: [free.pop() for _ in range(n)]
            )
    assert (list(episodes.returns), list(episodes.lengths)) == ([3, 60], [2, 3])


def test_sampling_follows_the_policy():
    policy = np.tile(np.array([0.2, 0.0, 0.5, 0.3], np.float32), (20_000, 1))
    drawn = sample(policy, np.random.default_rng(0))
    share = np.bincount(drawn, minlength=4) / len(drawn)
    assert share[1] == 0
    np.testing.assert_allclose(share, policy[0], atol=0.015)


@pytest.mark.parametrize(("at", "action"), [(0.0, 1), (0.45, 1), (0.6, 2), (0.99, 2)])
def test_an_action_is_where_the_draw_falls_in_the_whole_of_the_policy(at, action):
    """Of probabilities that sum to 0.8; the first, of 0, is never drawn."""
    policy = np.array([[0.0, 0.4, 0.4]], np.float32)
    generator = SimpleNamespace(random=lambda shape, kind: np.full(shape, at, kind))
    assert sample(policy, generator).tolist() == [action]


def test_a_policy_that_is_no_number_still_gives_allowed_actions():
    drawn = sample(np.full((5, 3), np.nan, np.float32), np.random.default_rng(0))
    assert ((drawn >= 0) & (drawn < 3)).all()


def test_nothing_is_said_of_part_of_a_game():
    episodes = Episodes(2, 10)
    episodes.add(np.array([0, 1]), np.array([2.0, 4.0]), np.array([False, False]))
    assert episodes.means() == {}
    episodes.add(np.array([0]), np.array([5.0]), np.array([True]))
    assert episodes.means() == {"score": 7.0, "episode_length": 2.0}


def test_means_may_be_of_the_last_games_only():
    episodes = Episodes(2, 3)
    episodes.merge([100.0, 1.0], [9, 9])
    before = episodes.finished
    assert episodes.means(before) == {}
    episodes.merge([2.0], [4])
    assert episodes.means(before) == {"score": 2.0, "episode_length": 4.0}
    episodes.merge([3.0, 4.0, 5.0], [1, 2, 3])
    assert episodes.means(before) == {"score": 4.0, "episode_length": 2.0}  # as far as the window reaches


def test_a_pool_gives_the_oldest_experiences_first_and_none_twice():
    pool = Pool()
    for numbers in np.split(np.arange(6), 2):
        pool.add(Rollout(numbers[:, None], numbers, numbers.astype(np.float32), numbers))
    taken = [pool.take(n) for n in (2, 3, 1)]
    for name in ("obs", "actions", "returns", "versions"):
        assert [getattr(rollout, name).ravel().tolist() for rollout in taken] == [[0, 1], [2, 3, 4], [5]]
    assert len(pool) == 0
