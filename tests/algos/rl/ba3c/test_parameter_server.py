"""The first k of n: who is averaged, who is dropped, who waits."""

import numpy as np
import pytest

from tests.algos.rl.ba3c.gangs import nothing
from workbench.algos.rl.ba3c.parameter_server import ParameterServer
from workbench.algos.rl.ba3c.shard_server import Contribution, Step


class Mean:
    """One weight, which is the newest mean of gradients."""

    part, at = slice(0, 1), np.zeros(1, np.float32)

    def weights(self):
        return self.at

    def squares(self, gradient):
        return [float(gradient[0]) ** 2]

    def step(self, gradient, scales):
        self.at = gradient


class Books:
    """A server without ranks elsewhere, and what it does."""

    def __init__(self, n_awaited, *, synchronous=True, last=10**6):
        self.heard, self.updates, self.last = [], [], last
        self.server = ParameterServer(
            {},
            Mean(),
            0,
            n_awaited=n_awaited,
            synchronous=synchronous,
            update=self.update,
            count=lambda contribution, message, dropped: self.heard.append((contribution.rank, dropped)),
        )

    def update(self, contributions, squares):
        self.updates.append([(c.rank, c.version) for c in contributions])
        version = len(self.updates)
        return Step([1.0], version, over=version >= self.last)

    def push(self, rank, version, number=0.0):
        self.server.push(Contribution(rank, version, np.array([number], np.float32)), {}, nothing)


def test_an_update_is_the_mean_of_the_first_k_and_a_later_gradient_is_dropped():
    books = Books(2)
    books.push(2, 0, 3.0)
    assert books.server.pull(2, 0) is None
    books.push(0, 0, 1.0)
    for rank in (0, 2):
        weights = books.server.pull(rank, 0)
        assert (weights.version, weights.numbers.tolist()) == (1, [2.0])
    books.push(1, 0, 100.0)  # too late
    assert books.updates == [[(0, 0), (2, 0)]]
    assert books.heard == [(2, False), (0, False), (1, True)]
    assert books.server.pull(1, 0).version == 1  # it goes on with the newest weights
    assert books.server.pull(1, 0) is None  # an answer each
    books.server.close()


def test_a_straggler_may_miss_several_updates_and_takes_part_again():
    books = Books(2)
    for version in range(3):
        books.push(0, version)
        books.push(1, version)
    books.push(2, 0)
    assert books.server.pull(2, 0).version == 3
    assert books.server.pull(0, 0).version == 3  # who fetches its answer late, too
    books.push(2, 3)
    books.push(0, 3)
    assert books.updates[-1] == [(0, 3), (2, 3)]
    books.server.close()


def test_asynchronously_every_gradient_is_applied_however_old():
    books = Books(1, synchronous=False)
    books.push(0, 0)
    books.push(0, 1)
    books.push(1, 0)
    assert books.updates == [[(0, 0)], [(0, 1)], [(1, 0)]]
    assert not any(dropped for _, dropped in books.heard)
    books.server.close()


@pytest.mark.parametrize("synchronous", [True, False])
def test_after_the_last_update_what_comes_is_dropped_and_all_are_sent_home(synchronous):
    books = Books(1, synchronous=synchronous, last=1)
    books.push(0, 0)
    books.push(1, 0)
    assert len(books.updates) == 1
    assert books.heard == [(0, False), (1, True)]
    assert all(books.server.pull(rank, 0).over for rank in (0, 1))
    books.server.close()


def test_an_update_that_fails_is_raised_where_it_was_brought():
    books = Books(1)
    books.server._update = lambda ready, squares: 1 / 0
    with pytest.raises(ZeroDivisionError):
        books.push(0, 0)
    books.server.close()
