"""HTS-RL's storage: what executors record, against scripted environments, and returns against loops over episodes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.algos.rl.test_agents import GAME, Scripted
from workbench.algos.rl.hts.executor import Executor
from workbench.algos.rl.hts.storage import Storage

GAMMA, LAMBDA = 0.9, 0.7


def record(ends, n_rows, n_envs=2, intervals=1):
    """Record rows of scripted environments; the value of an observation is 1000 more than itself."""
    store = Storage(GAME, n_rows, n_envs)
    executor = Executor(Scripted(n_envs, ends), np.random.default_rng(0), 0)
    for interval in range(intervals):
        executor.t = 0
        while executor.t < n_rows:
            policy = np.full((n_envs, 3), 1 / 3, np.float32)
            executor.step(policy, 1000 + executor.obs[:, 0], interval, store)
    return store, executor


def values_of(store):
    return 1000 + store.last_obs[:, 0]


def test_rows_hold_what_was_seen_done_and_got():
    store, executor = record({}, 4)
    assert store.obs[:, 1, 0].tolist() == [100, 101, 102, 103]
    assert store.rewards[:, 1].tolist() == [1, 2, 3, 4]  # of the step to the next observation
    assert store.values[:, 0].tolist() == [1000, 1001, 1002, 1003]
    assert store.last_obs[:, 0].tolist() == [4, 104]
    assert store.played.all()
    assert executor.steps == 8
    assert np.stack(executor.envs.sent).tolist() == store.actions.tolist()
    assert store.log_probs == pytest.approx(np.log(1 / 3))
    assert (store.versions == 0).all()


def test_the_next_interval_goes_on_where_the_last_one_ended():
    store, _ = record({}, 3, intervals=2)
    assert store.obs[:, 0, 0].tolist() == [3, 4, 5]
    assert (store.versions == 1).all()


def test_a_row_that_only_resets_is_not_trained_on():
    store, executor = record({(0, 2): "terminated"}, 5)
    assert store.played[:, 0].tolist() == [True, True, False, True, True]
    assert store.rewards[2, 0] == 0  # not the void reward of 77
    rollout = store.rollout(values_of(store), t_max=99, gamma=GAMMA, clip_rewards=False)
    assert len(rollout) == executor.steps == 9
    assert 2 not in rollout.obs[rollout.obs[:, 0] < 100, 0]  # an ended episode's last observation


def test_returns_by_hand():
    """Agent 0 is truncated at its second step, agent 1 dies at its third; the rest is cut by the interval's end."""
    store, _ = record({(0, 2): "truncated", (1, 3): "terminated"}, 4)
    rollout = store.rollout(values_of(store), t_max=99, gamma=0.5, clip_rewards=False)
    expected = {
        0: 1 + 0.5 * (2 + 0.5 * 1002),  # bootstraps from the value of the episode's true last observation, 2
        1: 2 + 0.5 * 1002,
        3: 4 + 0.5 * 1004,  # observation 3 is the next episode's first: row 2 only reset
        100: 1 + 0.5 * (2 + 0.5 * 3),
        101: 2 + 0.5 * 3,
        102: 3,
    }
    assert dict(zip(rollout.obs[:, 0].tolist(), rollout.returns.tolist(), strict=True)) == pytest.approx(expected)


def test_returns_are_cut_after_t_max_rewards():
    store, _ = record({}, 4, n_envs=1)
    rollout = store.rollout(values_of(store), t_max=2, gamma=0.5, clip_rewards=True)
    assert rollout.returns.tolist() == [1 + 0.5 * (1 + 0.5 * 1002), 1 + 0.5 * 1002, 1 + 0.5 * (1 + 0.5 * 1004), 503]


def test_a_loss_is_clipped_to_1_as_a_gain_is():
    store, _ = record({}, 2, n_envs=1)
    store.rewards[:] = [[-3.0], [0.5]]
    assert store._trained_on(True).tolist() == [[-1], [0.5]]
    assert store._trained_on(False).tolist() == [[-3], [0.5]]


def slow_returns(store, agent, t_max, lam):
    """Walk each row forward until something ends; returns, or (with lambda) sums of discounted errors."""
    found, n = [], len(store)
    for start in range(n):
        if not store.played[start, agent]:
            continue
        total, discount = 0.0, 1.0
        for t in range(start, n):
            following = store.values[t + 1, agent] if t + 1 < n else values_of(store)[agent]
            following = 0.0 if store.terminated[t, agent] else following
            over = store.terminated[t, agent] or store.truncated[t, agent] or t == n - 1
            if lam is None:
                total += discount * store.rewards[t, agent]
                discount *= GAMMA
                if over or (t + 1) % t_max == 0:
                    total += discount * following
                    break
            else:
                total += discount * (store.rewards[t, agent] + GAMMA * following - store.values[t, agent])
                discount *= GAMMA * lam
                if over:
                    break
        found.append(total)
    return found


ENDS = st.dictionaries(
    st.tuples(st.integers(0, 1), st.integers(1, 12)), st.sampled_from(["terminated", "truncated"]), max_size=8
)


@settings(max_examples=60)
@given(ENDS, st.integers(1, 12), st.integers(1, 5), st.sampled_from([0.0, LAMBDA, 1.0]))
def test_returns_and_advantages_agree_with_slow_loops(ends, n_rows, t_max, lam):
    store, executor = record(ends, n_rows)
    last = values_of(store)
    rollout = store.rollout(last, t_max=t_max, gamma=GAMMA, clip_rewards=False)
    by_lambda, advantages, log_probs = store.advantages(last, gamma=GAMMA, gae_lambda=lam, clip_rewards=False)
    assert len(rollout) == len(by_lambda) == len(advantages) == len(log_probs) == executor.steps
    of = np.nonzero(store.played)[1]  # whose each row is
    for agent in range(2):
        mine = of == agent
        exact = {"rel": 1e-5, "abs": 1e-2}  # float32, of values about 1000
        assert rollout.returns[mine] == pytest.approx(slow_returns(store, agent, t_max, None), **exact)
        slow = np.array(slow_returns(store, agent, t_max, lam))
        assert advantages[mine] == pytest.approx(slow, **exact)
        values = store.values[:, agent][store.played[:, agent]]
        assert by_lambda.returns[mine] == pytest.approx(slow + values, **exact)
