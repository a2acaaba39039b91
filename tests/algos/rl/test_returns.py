"""Returns and segments against a slow reference written from the definition."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.algos.rl.games import Game
from workbench.algos.rl.returns import generalised_advantages, n_step_returns
from workbench.algos.rl.rollout import Segments


def slow_return(rewards, cuts, bootstrap, gamma, t):
    """Sum forward from t, term by term, as Sec. 3.2 writes it."""
    total, discount = 0.0, 1.0
    while True:
        total += discount * rewards[t]
        discount *= gamma
        if cuts[t]:
            return total + discount * bootstrap[t]
        t += 1


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 6), st.sampled_from([0.5, 0.9, 0.99, 1.0]))
def test_random_rollouts_with_terminals_and_truncations(seed, steps, agents, gamma):
    rng = np.random.default_rng(seed)
    rewards = rng.normal(size=(steps, agents))
    cuts = rng.random((steps, agents)) < 0.2
    cuts[-1] = True
    terminal = rng.random((steps, agents)) < 0.5  # the rest are truncations and the rollout's end
    bootstrap = np.where(terminal, 0, rng.normal(size=(steps, agents)))
    got = n_step_returns(rewards, cuts, bootstrap, gamma)
    for t in range(steps):
        for agent in range(agents):
            expected = slow_return(rewards[:, agent], cuts[:, agent], bootstrap[:, agent], gamma, t)
            assert abs(got[t, agent] - expected) <= 1e-6 * max(1, abs(expected))


def test_hand_worked():
    rewards = np.array([[1.0], [2.0], [4.0]])
    cuts = np.array([[False], [True], [True]])
    got = n_step_returns(rewards, cuts, np.array([[9.0], [0.0], [8.0]]), 0.5)
    assert got[:, 0].tolist() == [2.0, 2.0, 8.0]


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1))
def test_segments_of_any_length_become_one_flat_rollout(seed):
    rng = np.random.default_rng(seed)
    store = Segments(Game("toy", False, (3,), np.dtype(np.float32), 2, 1), n=8, t_max=5)
    for array in (store.obs, store.rewards, store.bootstrap):
        array[...] = rng.normal(size=array.shape)
    store.actions[...] = rng.integers(0, 2, store.actions.shape)
    store.versions[...] = rng.integers(0, 9, store.versions.shape)
    store.lengths[...] = rng.integers(1, 6, 8)
    ids = rng.permutation(8)[: rng.integers(1, 9)].tolist()
    rollout = store.rollout(ids, 0.9)
    at = 0
    for segment in ids:
        length = store.lengths[segment]
        cuts = np.arange(length) == length - 1
        for t in range(length):
            bootstrap = np.full(length, store.bootstrap[segment])
            expected = slow_return(store.rewards[segment], cuts, bootstrap, 0.9, t)
            assert abs(rollout.returns[at] - expected) <= 1e-6 * max(1, abs(expected))
            assert (rollout.obs[at] == store.obs[segment, t]).all()
            assert rollout.actions[at] == store.actions[segment, t]
            assert rollout.versions[at] == store.versions[segment, t]
            at += 1
    assert at == len(rollout) == len(rollout.obs)


def test_generalised_advantages_by_hand():
    """Two agents, three steps; the first's second step ends its episode."""
    rewards = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    values = np.array([[10.0, 10.0], [20.0, 20.0], [30.0, 30.0]])
    following = np.array([[20.0, 20.0], [0.0, 30.0], [40.0, 40.0]])
    cuts = np.array([[False, False], [True, False], [True, True]])
    errors = rewards + 0.5 * following - values
    found = generalised_advantages(rewards, values, following, cuts, 0.5, 0.5)
    assert found[2].tolist() == errors[2].tolist() == [-7, -7]
    assert found[1].tolist() == [-18, -3 - 7 / 4]
    assert found[0].tolist() == [1 - 18 / 4, 1 + 0.25 * found[1, 1]]
