"""Playing one batch ahead: how far, what is left, what fails; and ranks that do."""

import threading
from itertools import count

import pytest

from tests.algos.rl.ba3c.gangs import nothing, ranks_of, train
from workbench.algos.rl.ba3c.ahead import Ahead
from workbench.algos.rl.ba3c.trial import BA3C
from workbench.core.budget import Budget

CARTPOLE = {"game": "CartPole-v1", "min_games": 1, "evaluate_every": None, "peer_timeout_s": 120.0}


def test_it_plays_one_batch_ahead_and_no_further_and_what_is_left_opens_the_next_phase():
    numbers, third = count(), threading.Event()

    def play():
        number = next(numbers)
        if number == 2:
            third.set()
        return f"batch {number}"

    ahead = Ahead(play)
    ahead.start()
    assert [ahead.next(nothing), ahead.next(nothing)] == ["batch 0", "batch 1"]
    assert third.wait(60)
    left = ahead.close()
    assert (left, next(numbers)) == ("batch 2", 3)  # none was begun after it
    again = Ahead(play, left)
    again.start()
    assert [again.next(nothing), again.next(nothing)] == ["batch 2", "batch 4"]
    again.close()


def test_what_fails_in_playing_is_raised_where_the_batch_is_awaited():
    ahead = Ahead(lambda: 1 / 0)
    ahead.start()
    with pytest.raises(ZeroDivisionError):
        ahead.next(nothing)
    assert ahead.close() is None


def test_waiting_for_a_batch_shows_life_and_can_be_called_off_and_playing_ends_at_its_next_step():
    class Enough(Exception):
        pass

    def enough():
        raise Enough

    step = threading.Event()

    def play():
        while True:
            step.wait(0.01)
            ahead.check()

    ahead = Ahead(play)
    ahead.start()
    with pytest.raises(Enough):
        ahead.next(enough)
    assert ahead.close() is None
    with pytest.raises(Enough):  # also where there is no wait
        Ahead(play, "batch").next(enough)


@pytest.mark.parametrize("how", [{"n_ranks": 1}, {"n_ranks": 2}, {"n_ranks": 2, "n_awaited": 1, "n_servers": 2}])
def test_a_rank_plays_while_its_gradient_is_taken_and_the_lag_tells_it(how):
    """No gradient is taken before the next batch has been played: in turn, that would be never."""
    factory = BA3C(
        **CARTPOLE, **how, phase=Budget(updates=6), n_agents=4, t_max=2, batch=8, max_episode_frames=2, plays_on=True
    )
    ranks = ranks_of(factory)
    before = threading.active_count()
    for rank in ranks:
        wait_for_the_next_batch(rank)
    for phase in (1, 2):
        metrics = train(ranks)
        assert metrics["updates"] == 6 * phase
        assert metrics["policy_lag_mean"] >= 5 / 6  # all but a trial's first batch are of older weights
        players = [rank.player for rank in ranks]
        assert all(player._left is not None for player in players)
        told = [player._counted_steps - player._left.steps for player in players]  # what is left is told next time
        assert metrics["steps"] == sum(told)
        assert metrics["episodes"] == sum(p._counted_episodes - len(p._left.returns) for p in players)
        assert threading.active_count() == before
    for rank in ranks:
        rank.close()


def wait_for_the_next_batch(rank) -> None:
    played = threading.Semaphore(0)
    gather, gradients = rank.player.gather, rank.learner.gradients

    def gathered():
        rollout = gather()
        played.release()
        return rollout

    def taken(*args):
        assert played.acquire(timeout=60)  # the batch that comes next: the first one's has been taken below
        return gradients(*args)

    def first(*args):
        assert played.acquire(timeout=60)
        rank.learner.gradients = taken
        return taken(*args)

    rank.player.gather, rank.learner.gradients = gathered, first


def test_a_game_that_hangs_in_the_thread_that_plays_is_no_sign_of_life():
    (rank,) = ranks_of(BA3C(**CARTPOLE, n_ranks=1, plays_on=True))
    rank._open()
    signs = []

    class Hanging:
        def next(self, alive):
            for _ in range(3):
                alive()
            rank._groups[0].steps += 1
            for _ in range(3):
                alive()
            raise ZeroDivisionError

    rank.player._alive, rank.player._ahead = lambda: signs.append(rank.player._opened().steps), Hanging()
    with pytest.raises(ZeroDivisionError):
        rank.player.contribution(0.0)
    rank.close()
    assert signs == [1]
