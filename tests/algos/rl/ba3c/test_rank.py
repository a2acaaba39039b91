"""Distributed BA3C's gradients and updates: those of one rank with all experiences, and who is waited for."""

import socket
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tests.algos.rl.ba3c.gangs import CARTPOLE, Fed, cartpole, close, hold_up, nothing, ranks_of, train, weights
from tests.algos.rl.rollouts import fixed_rollout
from tests.support import silent
from workbench.algos.rl.ba3c.connection import Connection
from workbench.algos.rl.ba3c.exchange import MAX_LAG, N_STATS, Stats, flat
from workbench.algos.rl.ba3c.local_gang import LocalGang
from workbench.algos.rl.ba3c.peers import Peers
from workbench.algos.rl.ba3c.rank import _aged
from workbench.algos.rl.ba3c.shard_server import Contribution
from workbench.algos.rl.ga3c.trial import GA3C
from workbench.algos.rl.learner import Update
from workbench.algos.rl.meter import Meter
from workbench.core.budget import Budget

# -- meeting --------------------------------------------------------------------------------------------------------


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")


def together(peers, do) -> list:
    """Do something as each rank, in a thread of its own; who fails parts, or the others would wait for it."""

    def one(peer):
        try:
            return do(peer)
        except BaseException:
            peer.leave()
            raise

    with ThreadPoolExecutor(len(peers)) as pool:
        return list(pool.map(one, peers))


@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("::1", marks=needs_ipv6)])
def test_ranks_meet_at_any_address_as_often_as_they_are_told_to_take_over_rank_0s_state_and_sum(host):
    peers = [Peers(rank, 2, 60.0) for rank in range(2)]

    def meet(peer):
        peer.assemble(nothing)
        state = [torch.full((2,), 7.0 + peer.rank), torch.full((1, 1), 9.0 * peer.rank)]
        counters = peer.agree({"updates": 3 + peer.rank}, state, nothing, reduces=True)
        summed = peer.sum(np.array([1, peer.rank], np.float32), nothing)
        return counters["updates"], [tensor.tolist() for tensor in state], summed.tolist()

    for _ in range(2):  # nobody has left before the second time
        peers[1].join(peers[0].listen(host))
        assert together(peers, meet) == [(3, [[7, 7], [[0]]], [2, 1])] * 2
    for peer in peers:
        peer.leave()


# -- one gradient, one update -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("game", "network"), [("Pong", "small"), ("CartPole-v1", "mlp"), ("CartPole-v1", "mlp-separate")]
)
def test_a_rollout_split_over_ranks_gives_the_gradient_of_ga3c(game, network):
    b1, seed, n_ranks = 0.5, 5, 3
    shared = {"game": game, "network": network, "init": "uniform", "device": "cpu", "precision": "float32"}
    ga3c = GA3C(**shared)({}, seed)
    wanted = flat(ga3c.learner.gradients(fixed_rollout(ga3c.game))[0])
    ranks = ranks_of(
        Fed(
            **{**CARTPOLE, **shared},
            phase=Budget(updates=1),
            n_ranks=n_ranks,
            n_agents=1,
            beta1=b1,
            max_average_norm=None,
        ),
        seed=seed,
    )
    train(ranks)
    for rank in ranks:  # after one step Adam's mean is (1 - b1) times the gradient
        np.testing.assert_allclose(flat(rank.learner.optimizer.mean) / (1 - b1), wanted, rtol=0, atol=1e-6)
    close(ranks)


def test_ranks_of_batch_b_make_the_updates_of_one_rank_with_n_times_b():
    """Real processes, gloo between them."""
    settings = {**CARTPOLE, "phase": Budget(updates=3), "n_agents": 1}
    gang = Fed(n_ranks=2, **settings)({}, 7)
    assert isinstance(gang, LocalGang)
    metrics = gang.train_phase(silent)
    together = weights(gang.chief)
    gang.close()
    alone = Fed(n_ranks=1, **settings).rank({}, 7, 0)
    before = weights(alone)
    alone.train_phase(silent)
    assert metrics["updates"] == 3
    assert metrics["train_batch_mean"] == 24
    assert np.abs(weights(alone) - before).max() > 1e-3
    np.testing.assert_allclose(together, weights(alone), rtol=0, atol=1e-6)
    alone.close()


def test_all_ranks_hold_the_same_bits_after_every_phase_and_the_same_seed_gives_them_again():
    runs = []
    for _ in range(2):
        ranks = ranks_of(cartpole(12, n_ranks=3, max_episode_frames=None), {"learning_rate": 1e-2}, seed=3)
        for _ in range(2):
            train(ranks)
            assert all(np.array_equal(weights(rank), weights(ranks[0])) for rank in ranks)
        runs.append(weights(ranks[0]))
        played = [rank.player.episodes.returns for rank in ranks]
        assert played[0] != played[1] != played[2]  # each plays games of its own
        close(ranks)
    assert np.array_equal(*runs)


def test_rank_0_scores_the_games_of_every_update_in_the_order_of_ranks_whenever_messages_come(monkeypatch):
    ready = Connection.ready
    monkeypatch.setattr(Connection, "ready", lambda self, seconds=0.0: seconds > 0 and ready(self, seconds))
    ranks = ranks_of(cartpole(40, n_ranks=2, max_episode_frames=None))
    told: dict[int, list[list[float]]] = {0: [], 1: []}

    def noting(rank, summary):
        def noted():
            told[rank.rank].append(summary()["returns"])
            return summary()

        return noted

    for rank in ranks:
        rank.player.summary = noting(rank, rank.player.summary)
    train(ranks)
    games = [game for update in zip(told[0], told[1], strict=True) for returns in update for game in returns]
    assert list(ranks[0].episodes.returns) == games
    assert all(map(any, told.values()))  # both have ended some
    close(ranks)


def test_experiences_of_a_batch_are_exactly_as_many_as_asked_for_and_none_is_lost():
    ranks = ranks_of(cartpole(updates=20, n_ranks=2, batch=7, max_episode_frames=None))
    metrics = train(ranks)
    assert metrics["train_batch_mean"] == 14
    for rank in ranks:
        group, pool = rank._groups[0], len(rank.player.pool)
        assert sum(g.steps for g in rank._groups) == 20 * 7 + pool + int(group._t[group._segment >= 0].sum())
    assert metrics["steps"] == sum(g.steps for rank in ranks for g in rank._groups)
    assert metrics["episodes"] == sum(rank.player.episodes.finished for rank in ranks)
    assert sorted(ranks[0].episodes.returns) == sorted(r for rank in ranks for r in rank.player.episodes.returns)
    close(ranks)


def test_games_of_environments_that_are_no_more_are_not_told_of_those_that_come_after():
    (rank,) = ranks_of(cartpole(n_ranks=1))
    rank._open()
    rank.player.contribution(0.0)
    rank.player.gather()  # games of two steps, of which nothing is told
    rank.close()
    before = rank.player.episodes.finished
    rank._open()
    told = rank.player.played()
    assert len(told.returns) == rank.player.episodes.finished - before > 0
    rank.close()


@pytest.mark.parametrize("how", [{}, {"n_awaited": 1}])
def test_every_rank_counts_the_games_and_steps_of_all(how):
    """By a server, what comes in after the last update is known to rank 0 alone."""
    ranks = ranks_of(cartpole(updates=5, n_ranks=2, **how))
    for _ in range(2):
        train(ranks)
        first, other = (rank._metrics(rank._meter.reading(), None) for rank in ranks)
        for name in ("games", "episodes", "steps", "frames"):
            assert 0 < other[name] <= first[name]
            assert how or other[name] == first[name]
    close(ranks)


class StoppedError(Exception):
    pass


def test_a_trial_that_starts_from_another_in_mid_phase_has_a_whole_phase_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.algos.rl.trial.PROGRESS_S", 0.0)

    def in_mid_phase(metrics):
        if metrics["updates"] == 15:
            raise StoppedError

    donor = cartpole(20, n_ranks=1)({}, 0)
    with pytest.raises(StoppedError):
        donor.train_phase(in_mid_phase)
    donor.save(tmp_path)
    trial = cartpole(20, n_ranks=1, start_from=str(tmp_path))({}, 1)
    metrics = trial.train_phase(silent)
    assert metrics["updates"] == 15 + 20
    assert metrics["games"] == metrics["episodes"] - donor.finished
    close([donor, trial])


@pytest.mark.parametrize("how", [{}, {"n_awaited": 1}])
def test_a_gpu_is_waited_for_between_new_weights_and_the_next_actions(how):
    """On a GPU both are under way in streams of their own; there is none here: what is called says it."""
    ranks = ranks_of(cartpole(3, n_ranks=2, **how))
    called: list[str] = []
    learner, player = ranks[1].learner, ranks[1].player
    changes = (player, "take") if how else (learner, "step")

    def noting(owner, name):
        real = getattr(owner, name)
        setattr(owner, name, lambda *given: (called.append(name), real(*given))[1])

    for owner, name in (changes, (learner, "settle"), (learner, "predict")):
        noting(owner, name)
    train(ranks)
    close(ranks)
    after = [called[i + 1] for i, name in enumerate(called) if name == changes[1]]
    assert set(after) == {"settle"}


@pytest.mark.parametrize("n_servers", [1, 2])
def test_a_rank_that_serves_acts_with_one_copy_of_the_weights_which_every_phase_begins_with_the_newest(n_servers):
    """What predicts on a GPU keeps every network it has met."""
    ranks, acted = ranks_of(cartpole(3, n_ranks=2, n_awaited=1, n_servers=n_servers)), []

    def noting(rank):
        predict = rank.learner.predict

        def noted(obs, model):
            acted.append((rank, model, flat(list(model.parameters()))))
            return predict(obs, model)

        rank.learner.predict = noted

    for rank in ranks:
        noting(rank)
    networks = {}
    for _ in range(2):
        acted.clear()
        newest = weights(ranks[0])
        train(ranks)
        for rank in ranks:
            played = [(model, numbers) for whose, model, numbers in acted if whose is rank]
            assert (played[0][1] == newest).all()
            networks.setdefault(rank, []).extend(model for model, _ in played)
    assert all(len(set(found)) == 1 for found in networks.values())
    assert (ranks[0].model in networks[ranks[0]], ranks[1].model in networks[ranks[1]]) == (False, n_servers == 1)
    close(ranks)


# -- the straggler rule ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("straggler", "n_servers"), [(0, 1), (2, 1), (0, 3), (2, 3)])
def test_updates_are_made_while_a_rank_is_held_up_and_its_gradient_is_dropped(straggler, n_servers):
    """The straggler is let go by the third update alone: were it awaited, there would be none. So for rank 0 too, and
    for a rank that serves others the while."""
    ranks = ranks_of(cartpole(updates=3, n_ranks=3, n_awaited=2, n_servers=n_servers))
    hold_up(ranks, straggler)
    metrics = train(ranks)
    assert metrics["updates"] == 3
    assert metrics["train_batch_mean"] == 16  # two ranks' batches of 8
    assert ranks[0].kept["dropped"] == 1
    assert all(rank.learner.updates == 3 for rank in ranks)
    close(ranks)


@pytest.mark.parametrize("n_servers", [1, 2])
def test_asynchronously_every_gradient_is_an_update_and_some_are_stale(n_servers):
    ranks = ranks_of(cartpole(updates=40, n_ranks=2, synchronous=False, n_servers=n_servers))
    metrics = train(ranks)
    assert metrics["train_batch_mean"] == 8  # the effective batch is the local one
    assert metrics["updates"] == 40
    assert metrics["dropped"] <= 1  # the other rank's, after the last update
    close(ranks)


def test_a_stale_gradients_lag_is_its_age_more():
    lags = np.zeros(MAX_LAG + 1, np.float32)
    lags[[0, 2, MAX_LAG]] = 3, 4, 5
    stats = Stats(12, 0, 0, 0, 0, 0, 0, lags)
    aged = _aged(Contribution(1, 10, np.concatenate([np.zeros(4, np.float32), stats.array()])), 12)
    assert {lag: n for lag, n in enumerate(aged) if n} == {2: 3, 4: 4, MAX_LAG: 5}
    ancient = _aged(Contribution(1, 10, stats.array()), 200)
    assert {lag: n for lag, n in enumerate(ancient) if n} == {MAX_LAG: 12}
    assert len(stats.array()) == N_STATS


def test_a_contribution_is_a_batchs_gradient_and_the_sums_of_its_losses():
    rank = Fed(**CARTPOLE, phase=Budget(updates=1), n_ranks=1).rank({}, 5, 0)
    rank._open()
    grads, loss = rank.learner.gradients(fixed_rollout(rank.game))
    numbers = rank.player.contribution(1.5)
    stats = Stats.of(numbers[-N_STATS:])
    np.testing.assert_allclose(numbers[:-N_STATS], flat(grads), rtol=0, atol=1e-6)
    sums = [stats.experiences, stats.policy_loss, stats.value_loss, stats.entropy]
    assert sums == pytest.approx([24, *(24 * float(part) for part in loss[1:])], rel=1e-5)
    assert (stats.episodes, stats.seconds, stats.lags[0]) == (1, 1.5, 24)
    rank.close()


def test_an_update_of_several_gradients_tells_the_mean_loss_of_all_experiences_and_their_lags():
    """One gradient is of the newest weights, of version 5; the other is of version 3, and its experiences one older."""
    rank = cartpole(n_ranks=2, synchronous=False).rank({}, 0, 0)
    rank.learner.updates, lags = 5, np.zeros((2, MAX_LAG + 1))
    lags[0, 0], lags[1, 1] = 6, 2
    told = [Stats(6, 12.0, 6.0, 3.0, 7, 1, 0, lags[0]), Stats(2, 4.0, 10.0, 1.0, 3, 0, 0, lags[1])]
    brought = [Contribution(number, 5 - 2 * number, stats.array()) for number, stats in enumerate(told)]
    squares = np.full(len(list(rank.model.parameters())), 4.0)
    step = rank._update(brought, squares)
    reading = rank._meter.reading()
    assert step.version == rank.learner.updates == 6
    assert {lag: n for lag, n in enumerate(reading.lags) if n} == {0: 6, 1 + 2: 2}
    found = reading.since()
    assert [found[name] for name in ("policy_loss", "value_loss", "entropy")] == [2, 2, 0.5]
    assert found["grad_norm"] == pytest.approx(2 * len(squares) ** 0.5)
    rank.close()


def test_data_points_a_second_are_of_the_time_since_the_last_reading():
    """6 in the first 10 seconds, 16 in the next 2."""
    rank, meter = cartpole(n_ranks=2).rank({}, 0, 0), Meter()
    readings = []
    for n, at in ((6, 10.0), (16, 12.0)):
        meter.add_update(Update(np.zeros(n, np.int64), 0.0, 0.0, 0.0, 0.0), 0)
        readings.append(meter.reading())
        readings[-1].seconds = at
    earlier, later = readings
    assert rank._metrics(later, earlier)["data_points_per_s"] == 8
    assert rank._metrics(later, None)["data_points_per_s"] == 22 / 12
    rank.close()


def test_a_rank_built_anew_in_mid_trial_does_not_draw_the_first_games_again():
    rank = cartpole(n_ranks=2).rank({}, 0, 1)
    first = rank._generators[0].random()
    agreed = {"updates": 10, "steps": 80, "episodes": 4, "before": rank._phase.before, "loads": 0}
    rank._open()
    rank._peers = SimpleNamespace(agree=lambda *given, **told: agreed, leave=lambda: None)
    rank._agree()
    assert (rank.learner.updates, rank.steps, rank.finished) == (10, 80, 4)
    assert rank.player._opened().generator is rank._generators[0]
    assert rank._generators[0].random() != first
    rank.close()
