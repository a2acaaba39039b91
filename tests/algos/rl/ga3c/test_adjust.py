"""Automatic adjustment: the walk by itself, then a trial whose threads come and go."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from workbench.algos.rl.ga3c.adjust import Adjuster, Adjustment, Mix
from workbench.algos.rl.ga3c.trial import GA3C
from workbench.core.budget import Budget
from workbench.core.errors import InvalidInput


def test_a_change_is_kept_if_training_got_faster_and_undone_if_not():
    adjuster = Adjuster(Mix(2, 2, 2), np.random.default_rng(0), 8)
    tried = adjuster.tell(100.0)
    assert sum(abs(a - b) for a, b in zip(tried, (2, 2, 2), strict=True)) == 1
    assert adjuster.tell(99.0) == Mix(2, 2, 2)  # slower: back, and measured anew
    assert adjuster.kept == Mix(2, 2, 2)
    tried = adjuster.tell(50.0)  # the machine has become slower meanwhile
    assert adjuster.tell(51.0) != tried
    assert adjuster.kept == tried
    assert adjuster.tell(50.5) == tried  # slower than what was kept last, if not than what was before


def test_the_walk_stays_within_its_bounds_and_finds_the_best_mix():
    best = Mix(4, 2, 3)
    adjuster = Adjuster(Mix(1, 1, 1), np.random.default_rng(1), 5)
    noise = np.random.default_rng(2)
    for _ in range(200):
        assert all(1 <= n <= 5 for n in adjuster.mix)
        distance = sum((a - b) ** 2 for a, b in zip(adjuster.mix, best, strict=True))
        adjuster.tell(1000 - 50 * distance + noise.normal())
    assert adjuster.kept == best


@pytest.mark.parametrize(
    ("agents", "seen_too", "opened"),
    [
        ({"n_agents": 4, "n_groups": 1}, [(12, 3, 2), (4, 3, 3)], 16),  # emulators of groups that rest are kept
        ({"n_agents": 1, "agents_apart": True}, [(3, 3, 2), (1, 3, 3)], 8),  # as many as there may be
    ],
)
def test_threads_and_agents_come_and_go_in_a_running_phase(monkeypatch, agents, seen_too, opened):
    """Through mixes of every kind, twice: nothing is lost, nothing deadlocks, no thread stays."""
    mixes = [Mix(1, 1, 1), Mix(3, 1, 1), Mix(3, 3, 2), Mix(1, 3, 3), Mix(2, 1, 1), Mix(4, 2, 2), Mix(1, 1, 1)]
    before = set(threading.enumerate())
    monkeypatch.setattr("workbench.algos.rl.trial.PROGRESS_S", 0.02)
    settings = GA3C(game="CartPole-v1", phase=Budget(seconds=60), adjust_every_s=0.01, **agents)
    trial = settings({"t_max": 3}, 0)
    trial._adjustment.adjuster.tell = lambda rate: coming.pop(0)
    seen = []

    class EnoughError(Exception):
        pass

    def progress(metrics):
        seen.append((metrics["n_agents"], metrics["n_predictors"], metrics["n_trainers"]))
        if not coming:
            raise EnoughError

    for _ in range(2):
        coming = list(mixes)
        updates = trial.learner.updates
        with pytest.raises(EnoughError):
            trial.train_phase(progress)
        assert trial.learner.updates > updates
        assert set(threading.enumerate()) == before
    assert set(seen_too) <= set(seen)
    assert trial.n_agents == opened
    held = sum(int((group._segment >= 0).sum()) for group in trial._groups)
    assert trial._queues.free.qsize() + trial._queues.ready.qsize() + held == trial._waiting + trial.n_agents
    trial.close()


@pytest.mark.parametrize(("settings", "most"), [({"n_trainers": 9}, 9), ({"adjust_up_to": 20}, 20), ({}, 8)])
def test_there_is_room_for_as_many_groups_as_the_walk_may_come_to(settings, most):
    trial = GA3C("CartPole-v1", n_agents=2, n_groups=1, adjust_every_s=60.0, **settings)({}, 0)
    trial._open()
    for _ in range(trial._adjustment.adjuster._most - 1):
        trial._open_group(trial._group_size)
    assert len(trial._groups) == most
    for _ in range(2):
        for group in trial._groups:
            n = len(group.observe())
            group.act(np.full((n, 2), 0.5), np.zeros(n), 0, trial._queues.exchange)
    assert trial.steps == 2 * most
    assert trial._queues.free.qsize() == 2 * most  # and all may have one wait for a trainer
    trial.close()


def test_of_agents_that_are_apart_those_play_that_are_counted_whatever_the_groups():
    trial = GA3C("CartPole-v1", n_agents=3, n_groups=2, agents_apart=True)({}, 0)
    assert trial.mix == Mix(3, 1, 1)
    trial._open()
    trial._groups[0].envs.playing = 3
    assert len(trial._groups) == 1
    assert len(trial._groups[0].observe()) == 3
    trial.close()


@pytest.mark.parametrize(("seed", "predictors", "mix"), [(0, 1, (3, 8, 2)), (0, 9, (3, 9, 2)), (1, 1, (2, 1, 1))])
def test_the_walk_goes_on_from_a_checkpoint_of_its_own(tmp_path, seed, predictors, mix):
    """From the mix that was kept, within its own bounds; a trial of another seed begins with its own settings."""
    first = GA3C("CartPole-v1", n_agents=4, n_predictors=9, adjust_every_s=60.0)({}, 0)
    first._adjustment.adjuster.kept = Mix(3, 9, 2)
    first.save(tmp_path)
    again = GA3C("CartPole-v1", n_agents=4, n_predictors=predictors, adjust_every_s=60.0)({}, seed)
    again.load(tmp_path)
    assert again.mix == again._adjustment.adjuster.kept == again._adjustment.adjuster.mix == mix
    again._open()
    assert len(again._groups) == mix[0]
    again.close()


def test_it_cannot_be_combined_with_the_deterministic_mode():
    with pytest.raises(InvalidInput, match="nothing to adjust"):
        GA3C(lockstep=True, adjust_every_s=1.0)
    with pytest.raises(InvalidInput, match=r"agents_apart=True has agents come and go .*: leave lockstep False"):
        GA3C(lockstep=True, agents_apart=True)
    with pytest.raises(InvalidInput, match=r"leave agents_ready 1\.0"):
        GA3C(agents_ready=0.5, agents_apart=True)
    with pytest.raises(InvalidInput, match="adjust_every_s a number above 0, or None, got 0"):
        GA3C(adjust_every_s=0)
    with pytest.raises(InvalidInput, match="adjust_up_to a whole number from 1, got 0"):
        GA3C(adjust_up_to=0)


class Heard(Adjuster):
    """Keeps the rates that it is told; every change counts."""

    def __init__(self):
        super().__init__(Mix(1, 1, 1), np.random.default_rng(0), 8)
        self.rates = []

    def tell(self, rate):
        self.rates.append(rate)
        return super().tell(rate)


def reading(seconds, trained):
    return SimpleNamespace(seconds=seconds, sums={"trained": trained})


def test_a_mix_is_judged_also_where_phases_are_shorter_than_the_time_between_changes():
    heard = Heard()
    adjustment = Adjustment(heard, 10.0)
    for phase in ([(7, 700)], [(6, 900), (12, 1500)], [(4, 500)]):  # seconds and experiences at each look
        for look in phase:
            adjustment.look(reading(*look))
        adjustment.end_phase(reading(*phase[-1]))
    assert heard.rates == [1600 / 13, 1100 / 10]


def test_a_mix_is_judged_by_the_experiences_trained_on_since_it_began():
    heard = Heard()
    adjustment = Adjustment(heard, 10.0)
    given = [adjustment.look(reading(*look)) for look in [(12, 1200), (15, 1300), (32, 5200)]]
    assert heard.rates == [1200 / 12, 4000 / 20]
    assert [mix is None for mix in given] == [False, True, False]
    assert given[-1] == heard.mix
