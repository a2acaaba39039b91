"""Servers of slices: the same weights as one server's, one accepted set for all, one version for a rank."""

import random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.algos.rl.ba3c.gangs import connected, nothing
from workbench.algos.rl.ba3c.exchange import flat, unflat
from workbench.algos.rl.ba3c.parameter_server import ParameterServer
from workbench.algos.rl.ba3c.shard_server import Contribution, Follower, Step
from workbench.algos.rl.ba3c.shards import Shard, cut
from workbench.algos.rl.optim import SharedAdam
from workbench.core.errors import PeerLost

SHAPES = [(5, 3), (3,), (2, 2, 4), (1,), (7,)]  # 42 weights, which no cut meets
SIZE = 42


def learner(most=0.1) -> SharedAdam:
    rng = np.random.default_rng(0)
    weights = [torch.from_numpy(rng.normal(size=shape).astype(np.float32)) for shape in SHAPES]
    return SharedAdam(weights, 0.01, beta1=0.8, beta2=0.75, eps=1e-2, max_average_norm=most)


def gradients(n_updates, n_ranks, scale=1.0) -> np.ndarray:
    return (scale * np.random.default_rng(1).normal(size=(n_updates, n_ranks, SIZE))).astype(np.float32)


class Gang:
    """A chief and its followers, each with a learner of its own, in this process; gradients are handed in by hand."""

    def __init__(self, n_servers, n_ranks, n_awaited, *, synchronous=True, most=0.1, last=10**6, size=SIZE) -> None:
        self.learners = [learner(most) for _ in range(n_servers)]
        self.parts, self.last, self.accepted, self.squares = cut(size, n_servers), last, [], []
        self.lines = [connected() for _ in range(n_servers - 1)]
        shards = [Shard(adam, part) for adam, part in zip(self.learners, self.parts, strict=True)]
        self.followers = [
            Follower({}, shard, 0, chief=theirs, n_ranks=n_ranks)
            for shard, (_, theirs) in zip(shards[1:], self.lines, strict=True)
        ]
        self.chief = ParameterServer(
            {},
            shards[0],
            0,
            [ours for ours, _ in self.lines],
            n_awaited=n_awaited,
            synchronous=synchronous,
            update=self.update,
            count=lambda *told: None,
        )
        self.servers = [self.chief, *self.followers]

    def update(self, contributions, squares) -> Step:
        self.accepted.append([c.rank for c in contributions])
        self.squares.append(squares)
        version = len(self.accepted)
        return Step(self.learners[0].scales(np.sqrt(squares).tolist()), version, version >= self.last)

    def hand_in(self, server, rank, version, gradient) -> None:
        self.servers[server].push(Contribution(rank, version, gradient[self.parts[server]]), {}, nothing)

    def bring(self, rank, version, gradient) -> None:
        for server in [*range(1, len(self.servers)), 0]:
            self.hand_in(server, rank, version, gradient)

    def answers(self, rank) -> list:
        return [server.pull(rank, 30) for server in self.servers]

    def close(self) -> None:
        for line in self.lines:
            for end in line:
                end.close()
        for server in self.servers:
            server.close()


@pytest.mark.parametrize("most", [None, 0.1])
@pytest.mark.parametrize("n_servers", [1, 2, 3, 4])
def test_servers_of_slices_make_the_steps_of_adam_over_all(n_servers, most):
    """Of hand-made gradients, the same ones accepted; by one server to the last bit."""
    whole, gang = learner(most), Gang(n_servers, 3, 2, most=most)
    made = gradients(5, 3, scale=3.0)
    clipped = 0
    for version, brought in enumerate(made):
        for rank in (2, 0, 1):  # rank 1 is late
            gang.bring(rank, version, brought[rank])
        mean = np.sum([brought[0], brought[2]], axis=0) / 2
        whole.step(unflat(mean, whole.params))
        clipped += most is not None and any(scale < 1 for scale in whole.scales(np.sqrt(gang.squares[-1]).tolist()))
        for rank in range(3):
            answers = gang.answers(rank)
            assert [weights.version for weights in answers] == [version + 1] * n_servers
            got = np.concatenate([weights.numbers for weights in answers])
            np.testing.assert_allclose(got, flat(whole.params), rtol=0, atol=0 if n_servers == 1 else 1e-6)
    assert gang.accepted == [[0, 2]] * 5
    assert clipped == (most is not None) * 5
    gang.close()


class Arrivals:
    """Ranks that hand in slices in any order, each the chief's last, and go on when they are answered."""

    def __init__(self, gang, n_ranks, seed) -> None:
        self.gang, self.random, self.made = gang, random.Random(seed), gradients(200, n_ranks)
        self.to_do = {rank: self.servers() for rank in range(n_ranks)}  # rank → servers to hand its gradient in at
        self.version, self.n_brought = [0] * n_ranks, [0] * n_ranks

    def servers(self) -> list[int]:
        others = list(range(1, len(self.gang.servers)))
        self.random.shuffle(others)
        return [*others, 0]

    def gradient(self, rank) -> np.ndarray:
        return self.made[self.n_brought[rank], rank]

    def hand_in_one(self) -> None:
        """One slice of one rank; if an update comes of it, it is of the same ranks' gradients at all servers."""
        ready = [rank for rank, servers in self.to_do.items() if servers]
        if not ready:
            return
        rank = self.random.choice(ready)
        n_updates = len(self.gang.accepted)
        self.gang.hand_in(self.to_do[rank].pop(0), rank, self.version[rank], self.gradient(rank))
        if len(self.gang.accepted) > n_updates:
            mean = np.mean([self.gradient(accepted) for accepted in self.gang.accepted[-1]], axis=0)
            wanted = [float(torch.linalg.vector_norm(t)) ** 2 for t in unflat(mean, self.gang.learners[0].params)]
            np.testing.assert_allclose(self.gang.squares[-1], wanted, rtol=1e-4)

    def fetch(self) -> None:
        """Whoever is answered gets slices of one version, and brings the next gradient unless the phase is over. Some
        ask late."""
        for rank in [rank for rank, servers in self.to_do.items() if not servers and self.random.random() < 0.4]:
            if (answer := self.gang.chief.pull(rank, 0)) is None:
                continue
            others = [follower.pull(rank, 30) for follower in self.gang.followers]
            assert {(w.version, w.over) for w in others} == {(answer.version, answer.over)}
            self.version[rank] = answer.version
            self.n_brought[rank] += 1
            self.to_do[rank] = self.servers()
            if answer.over:
                del self.to_do[rank]


@settings(max_examples=40)
@given(st.integers(2, 4), st.integers(2, 3), st.integers(0, 3), st.integers(1, 6), st.integers(0, 2**32))
def test_every_update_is_of_one_accepted_set_and_every_answer_of_one_version(n_ranks, n_servers, k, last, seed):
    """k = 0 is asynchronous. No server is told anything but by the chief."""
    k = min(k, n_ranks - 1)
    gang = Gang(n_servers, n_ranks, k or 1, synchronous=k > 0, last=last, most=None)
    arrivals = Arrivals(gang, n_ranks, seed)
    try:
        while arrivals.to_do:
            arrivals.hand_in_one()
            arrivals.fetch()
        assert [len(ranks) for ranks in gang.accepted] == [k or 1] * last
        gang.chief.collect([Shard(gang.learners[0], part) for part in gang.parts[1:]], nothing)
        for follower in gang.followers:
            follower.wait_until_over(nothing)
        for adam, part in zip(gang.learners, gang.parts, strict=True):
            assert np.array_equal(flat(gang.learners[0].params)[part], flat(adam.params)[part])
    finally:
        gang.close()


# -- failures -------------------------------------------------------------------------------------------------------


def test_an_update_that_is_refused_is_made_by_no_server():
    gang = Gang(3, 2, 1)
    before = [flat(adam.params) for adam in gang.learners]
    gang.chief._update = lambda contributions, squares: 1 / 0
    with pytest.raises(ZeroDivisionError):
        gang.bring(0, 0, gradients(1, 1)[0, 0])
    gang.close()  # nobody goes on waiting
    assert all(np.array_equal(flat(adam.params), old) for adam, old in zip(gang.learners, before, strict=True))


def test_a_follower_whose_chief_is_lost_says_so_to_its_own_rank():
    gang = Gang(2, 2, 1)
    gang.lines[0][0].close()
    with pytest.raises(PeerLost, match="rank 0 closed the connection"):
        gang.followers[0].wait_until_over(nothing)
    with pytest.raises(PeerLost, match="rank 0 closed the connection"):
        gang.followers[0].pull(1, 30)
    gang.close()


def test_a_chief_whose_follower_is_lost_says_so_and_makes_no_update():
    gang = Gang(2, 2, 1)
    gang.lines[0][1].close()
    with pytest.raises(PeerLost, match="rank 1 "):
        gang.hand_in(0, 0, 0, gradients(1, 1)[0, 0])
    assert gang.accepted == []
    gang.close()
