"""Slices of the weights: cut, clipped by the whole, taken over; and gangs with several servers."""

import multiprocessing
import os
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.algos.rl.ba3c.gangs import CARTPOLE, Fed, close, hold_up, nothing, ranks_of, train
from tests.support import silent
from workbench.algos.rl.ba3c.connection import connect, receive
from workbench.algos.rl.ba3c.exchange import flat
from workbench.algos.rl.ba3c.peers import Peers
from workbench.algos.rl.ba3c.shards import Shard, cut, undone_if_cut_short
from workbench.algos.rl.ba3c.trial import BA3C
from workbench.algos.rl.optim import SharedAdam
from workbench.core.budget import Budget
from workbench.core.errors import PeerLost

# -- slices ---------------------------------------------------------------------------------------------------------


@given(st.integers(1, 10_000), st.integers(1, 64))
def test_slices_are_contiguous_and_almost_equal(n, n_servers):
    parts = cut(n, n_servers)
    assert len(parts) == n_servers
    assert [i for part in parts for i in range(part.start, part.stop)] == list(range(n))
    sizes = [part.stop - part.start for part in parts]
    assert max(sizes) - min(sizes) <= 1


def test_clipping_is_by_the_norm_of_the_whole_tensor():
    """[3, 0 | 0, 4] has the norm 5, an average of 1.25; its halves, of 1.5 and of 2, would be scaled otherwise."""
    adam = SharedAdam([torch.zeros(4)], 0.1, beta1=0.5, max_average_norm=0.1)
    shards = [Shard(adam, part) for part in cut(4, 2)]
    gradient = np.array([3, 0, 0, 4], np.float32)
    squares = np.sum([shard.squares(gradient[shard.part]) for shard in shards], axis=0)
    assert squares.tolist() == [25.0]
    scales = adam.scales(np.sqrt(squares).tolist())
    assert scales == [pytest.approx(0.08)]
    shards[0].step(gradient[:2], scales)
    np.testing.assert_allclose(adam.mean[0], [0.5 * 0.24, 0, 0, 0], atol=1e-7)


def test_a_slice_is_taken_over_with_its_averages():
    here, there = (SharedAdam([torch.zeros(5, 3), torch.zeros(7)], 0.1) for _ in range(2))
    part = cut(22, 3)[1]
    Shard(there, part).step(np.arange(1, 8, dtype=np.float32), [1.0, 1.0])
    Shard(here, part).load(Shard(there, part).state())
    for ours, theirs in ((here.params, there.params), (here.mean, there.mean), (here.square, there.square)):
        assert any(t.any() for t in theirs)
        assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_what_is_cut_short_is_undone():
    tensors = [torch.ones(2, 2), torch.zeros(3)]
    with undone_if_cut_short(tensors):
        tensors[0] += 1

    def cut_short():
        with undone_if_cut_short(tensors):
            tensors[1] += 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cut_short()
    assert [t.flatten().tolist() for t in tensors] == [[2] * 4, [0] * 3]


# -- runs -----------------------------------------------------------------------------------------------------------


def weights_of_a_run(n_servers) -> np.ndarray:
    """Rank 2 is held up until the third update, so that all are of ranks 0 and 1."""
    ranks = ranks_of(Fed(**CARTPOLE, phase=Budget(updates=3), n_ranks=3, n_awaited=2, n_servers=n_servers), seed=3)
    updates_of = hold_up(ranks, 2)
    assert train(ranks)["dropped"] == 1
    assert updates_of == [[0, 1]] * 3
    assert ranks[2].player.version == 3  # the newest
    state = ranks[0].learner.optimizer
    numbers = np.concatenate([flat(tensors) for tensors in (state.params, state.mean, state.square)])
    close(ranks)
    return numbers


def test_several_servers_end_with_one_servers_weights_and_averages():
    one = weights_of_a_run(1)
    for n_servers in (2, 3):
        np.testing.assert_allclose(weights_of_a_run(n_servers), one, rtol=0, atol=1e-6)


def test_a_phase_that_is_cut_short_is_undone_where_others_hold_its_slices(monkeypatch):
    class Stopped(Exception):
        pass

    def stop(metrics):
        if metrics["updates"] > 2:
            ranks[0].kept["eval_score"] = 8.0  # as an evaluation does
            raise Stopped

    monkeypatch.setattr("workbench.algos.rl.trial.PROGRESS_S", 0.02)
    factory = BA3C(**CARTPOLE, phase=Budget(updates=10**9), n_ranks=2, n_awaited=1, n_servers=2, n_agents=2, batch=8)
    ranks = ranks_of(factory)
    before = flat(ranks[0].learner.optimizer.params)
    ranks[0].kept = {"dropped": 3, "eval_score": 7.0}
    with pytest.raises(Stopped):
        train(ranks, stop)
    assert np.array_equal(flat(ranks[0].learner.optimizer.params), before)
    assert (ranks[0].learner.updates, float(ranks[0].learner.optimizer.steps)) == (0, 0)
    assert ranks[0].kept == {"dropped": 3, "eval_score": 7.0}
    for rank in ranks:  # and it is begun again
        rank.settings = replace(rank.settings, phase=Budget(updates=10))
    assert train(ranks)["updates"] >= 10
    close(ranks)


@pytest.mark.slow
def test_a_server_that_dies_in_mid_phase_ends_it_and_the_trial_goes_on_from_its_checkpoint(tmp_path):
    """Three processes, of which rank 1 serves a slice."""
    factory = BA3C(**CARTPOLE, phase=Budget(updates=5), n_ranks=3, n_awaited=2, n_servers=2, n_agents=2, batch=8)
    others = set(multiprocessing.active_children())
    gang = factory({}, 0)
    reached = gang.train_phase(silent)["updates"]
    gang.save(tmp_path)
    gang.chief.settings = replace(gang.chief.settings, phase=Budget(updates=10**9))

    def kill(metrics):
        if metrics.get("updates", 0) > reached and gang._processes[0].is_alive():
            os.kill(gang._processes[0].pid, signal.SIGKILL)

    with pytest.raises(PeerLost, match=r"^the process of rank 1 died \(exit code -9\): start again") as lost:
        gang.train_phase(kill)
    assert "rank 2" not in str(lost.value)
    gang.close()
    assert set(multiprocessing.active_children()) <= others
    again = ranks_of(factory)
    again[0].load(tmp_path)
    assert train(again)["updates"] >= reached + 5
    for rank in again:
        rank.close()


def test_a_rank_that_is_lost_before_all_have_met_keeps_no_server_waiting():
    peers = [Peers(rank, 3, 60.0, n_servers=2) for rank in range(2)]
    address = peers[0].listen("127.0.0.1")
    peers[1].join(address)
    told: dict[int, str] = {}

    def meet(peer):
        with pytest.raises(PeerLost) as lost:
            peer.assemble(nothing)
        told[peer.rank] = str(lost.value)
        peer.leave()

    threads = [threading.Thread(target=meet, args=(peer,)) for peer in peers]
    for thread in threads:
        thread.start()
    third = connect(address, 2, 30)
    assert len(receive(third, nothing)[0]["servers"]) == 1
    third.close()  # rank 1 waits for it
    for thread in threads:
        thread.join(60)
    assert told == {
        rank: f"rank {other} closed the connection: it has died, or was stopped" for rank, other in ((0, 2), (1, 0))
    }
