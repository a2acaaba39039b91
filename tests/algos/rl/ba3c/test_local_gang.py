"""Phases of a gang: checkpoints, stops, dead processes, interrupts, evaluation."""

import multiprocessing
import os
import runpy
import signal
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tests.algos.rl.ba3c.gangs import (
    AHEAD,
    CARTPOLE,
    SHARDED,
    cartpole,
    close,
    ranks_of,
    silent,
    train,
    weights,
)
from workbench.algos.rl.ba3c.local_gang import LocalGang
from workbench.algos.rl.ba3c.trial import BA3C
from workbench.algos.rl.ga3c.trial import GA3C
from workbench.core.budget import Budget
from workbench.core.errors import InvalidInput, PeerLost
from workbench.core.seeds import derived


@pytest.mark.parametrize("how", [{}, {"n_awaited": 1}, {"synchronous": False}, SHARDED, AHEAD])
def test_a_checkpoint_is_rank_0s_and_goes_on_with_new_ranks(tmp_path, how):
    factory = cartpole(n_ranks=2, **how)
    ranks = ranks_of(factory)
    first = train(ranks)
    ranks[0].save(tmp_path)
    close(ranks)
    again = ranks_of(factory)
    again[0].load(tmp_path)
    assert np.array_equal(weights(again[0]), weights(ranks[0]))
    mean = ranks[0].learner.optimizer.mean
    assert all(torch.equal(a, b) for a, b in zip(again[0].learner.optimizer.mean, mean, strict=True))
    second = train(again)
    assert second["updates"] == first["updates"] + 5 == 10
    assert second["steps"] > first["steps"]
    assert again[1].learner.updates == 10
    if not how:  # each has taken the steps of Adam itself
        assert np.array_equal(weights(again[1]), weights(again[0]))
    close(again)


def test_all_ranks_of_a_gang_that_loads_begin_anew_as_new_ones_do_however_many_updates_they_had_seen(tmp_path):
    factory = cartpole(n_ranks=2)
    ranks = ranks_of(factory)
    train(ranks)
    ranks[0].save(tmp_path)
    ranks[0].load(tmp_path)  # of as many updates as the other rank has seen
    again = ranks_of(factory)
    again[0].load(tmp_path)
    for gang in (ranks, again):
        train(gang)
    assert np.array_equal(weights(again[0]), weights(ranks[0]))
    close([*ranks, *again])


def test_a_gang_may_start_from_another_trials_checkpoint(tmp_path):
    other = GA3C("CartPole-v1", Budget(updates=4), n_agents=2, lockstep=True, min_games=1, max_episode_frames=9)({}, 1)
    other.train_phase(silent)
    other.save(tmp_path)
    ranks = ranks_of(cartpole(n_ranks=2, start_from=str(tmp_path)))
    assert np.array_equal(weights(ranks[0]), weights(other))
    assert train(ranks)["updates"] == 4 + 5
    assert ranks[1].learner.updates == 9
    other.close()
    close(ranks)


@pytest.mark.parametrize("how", [{}, {"n_awaited": 1}, SHARDED, AHEAD, AHEAD | SHARDED])
def test_stopping_in_mid_phase_ends_every_rank_and_the_trial_can_go_on(how, monkeypatch):
    class Stopped(Exception):
        pass

    def stop(metrics):
        raise Stopped

    monkeypatch.setattr("workbench.algos.rl.trial.PROGRESS_S", 0.02)
    monkeypatch.setattr("workbench.algos.rl.ba3c.connection.ALIVE_S", 0.02)
    ranks = ranks_of(cartpole(updates=10**9, n_ranks=2, **how))
    before = threading.active_count()
    for _ in range(3):
        with pytest.raises((Stopped, PeerLost)) as caught:
            train(ranks, stop)
        assert caught.type is Stopped  # rank 0's own reason, not its partner's loss
        assert threading.active_count() == before
    close(ranks)


def test_ctrl_c_is_rank_0_s_a_dead_process_ends_the_phase_with_its_name_and_a_closed_gang_waits_for_nobody(monkeypatch):
    """One gang: a process of its own has torch to import."""
    others = set(multiprocessing.active_children())
    gang = BA3C(phase=Budget(updates=20), n_ranks=2, n_agents=2, batch=8, **CARTPOLE)({}, 0)
    os.kill(gang._processes[0].pid, signal.SIGINT)  # as it comes up
    assert gang.train_phase(silent)["updates"] >= 20
    os.kill(gang._processes[0].pid, signal.SIGINT)
    done = gang.train_phase(silent)["updates"]
    assert done >= 40

    def kill(metrics):
        if metrics["updates"] > done:
            monkeypatch.setattr("workbench.algos.rl.trial.PROGRESS_S", 60.0)  # the lost connection says it, and no look
            os.kill(gang._processes[0].pid, signal.SIGKILL)

    monkeypatch.setattr("workbench.algos.rl.trial.PROGRESS_S", 0.0)
    with pytest.raises(PeerLost, match=r"the process of rank 1 died \(exit code -9\)"):
        gang.train_phase(kill)
    gang.close()
    gang.close()
    assert set(multiprocessing.active_children()) <= others

    def waiting(metrics):
        raise TimeoutError("it waits for ranks that are no more")

    with pytest.raises(RuntimeError, match=r"this gang is closed.*build the trial anew"):
        gang.train_phase(waiting)


def test_a_process_that_may_start_none_has_no_gang(monkeypatch):
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    with pytest.raises(InvalidInput, match=r"^a gang starts a process .* \(it is daemonic.* alone \(n_ranks=1\)$"):
        BA3C(phase=Budget(updates=1), n_ranks=2, **CARTPOLE)({}, 0)


@pytest.mark.parametrize("how", [{}, {"n_awaited": 1}, SHARDED, AHEAD, AHEAD | SHARDED])
def test_numbers_that_blow_up_end_the_phase_on_every_rank(how):
    ranks = ranks_of(cartpole(n_ranks=2, updates=50, **how), {"learning_rate": 1e30})
    with pytest.raises(FloatingPointError, match="training diverged"):
        train(ranks)
    close(ranks)


def test_one_rank_of_several_cannot_train_alone():
    trial = cartpole(n_ranks=2).rank({}, 0, 0)
    with pytest.raises(InvalidInput, match="one rank of 2 cannot train alone"):
        trial.train_phase(silent)
    trial.close()


def test_evaluation_plays_greedy_games_every_so_many_updates_and_does_not_touch_training():
    scores, plain = [], []
    for every, out in ((12, scores), (None, plain)):
        ranks = ranks_of(cartpole(20, n_ranks=2, evaluate_every=every, evaluate_games=3, max_episode_frames=None))
        out += [train(ranks).get("eval_score") for _ in range(2)]
        out.append(weights(ranks[0]))
        close(ranks)
    assert 1 <= scores[0] <= 500
    assert scores[1] != scores[0]  # of update 36, not 12: another policy, other games
    assert plain[:2] == [None, None]
    assert np.array_equal(scores[2], plain[2])


def test_evaluations_are_of_greedy_games_of_their_own_and_those_due_before_are_not_played_again(monkeypatch):
    """Updates 5 to 9 of seed 8: those of 6 and 9 are due, that of 3 has been played."""
    played = []

    def noting(model, game, n_games, rules, *, seed, greedy, **told):
        played.append((n_games, greedy, seed))
        return SimpleNamespace(mean=7.0)

    monkeypatch.setattr("workbench.algos.rl.ba3c.rank.evaluate", noting)
    alone = cartpole(5, n_ranks=1, evaluate_every=3, evaluate_games=4).rank({}, 8, 0)
    alone.learner.updates = 4
    assert alone.train_phase(silent)["eval_score"] == 7
    assert played == [(4, True, derived(8, 5, updates)) for updates in (6, 9)]
    other = cartpole(n_ranks=2, evaluate_every=3).rank({}, 8, 1)
    played.clear()
    for updates in (11, 13, 14, 15):
        alone._evaluate_if_due(updates)
        other._evaluate_if_due(updates)  # rank 0 does
    assert [seed for *_, seed in played] == [derived(8, 5, updates) for updates in (13, 15)]  # 12 was slept over
    close([alone, other])


def test_the_last_evaluation_is_told_by_a_trial_that_goes_on_from_a_checkpoint(tmp_path):
    """Until the next is due, as by one that stays on its worker."""
    first = cartpole(n_ranks=1, evaluate_every=5, evaluate_games=2).rank({}, 0, 0)
    measured = first.train_phase(silent)["eval_score"]
    first.save(tmp_path)
    first.close()
    again = cartpole(n_ranks=1, evaluate_every=10_000).rank({}, 0, 0)
    again.load(tmp_path)
    assert again.train_phase(silent)["eval_score"] == measured
    again.close()


@pytest.mark.parametrize("how", [{"n_ranks": 1}, {"n_ranks": 2}, {"n_ranks": 2, "n_awaited": 1}])
def test_what_left_during_its_last_evaluation_makes_up_for_it_and_trains_no_further(tmp_path, monkeypatch, how):
    played = []

    def leaving(*given, meanwhile, **told):
        played.append(told["seed"])
        if len(played) == 2:
            raise InterruptedError
        return SimpleNamespace(mean=float(len(played)))

    monkeypatch.setattr("workbench.algos.rl.ba3c.rank.evaluate", leaving)
    factory = cartpole(4, evaluate_every=2, **how)
    ranks = ranks_of(factory)
    with pytest.raises((InterruptedError, PeerLost)):
        train(ranks)
    ranks[0].save(tmp_path)
    close(ranks)
    again = ranks_of(factory)
    again[0].load(tmp_path)
    metrics = train(again)
    close(again)
    assert (metrics["updates"], metrics["eval_score"]) == (4, 3)
    assert played[0] in [derived(0, 5, updates) for updates in (2, 3)]  # a rank that sleeps sees the next
    assert played[1:] == [derived(0, 5, 4)] * 2


@pytest.mark.parametrize("how", [{}, {"n_awaited": 1}])
def test_a_phase_that_was_interrupted_is_run_to_its_end_by_new_ranks_and_no_further(tmp_path, monkeypatch, how):
    monkeypatch.setattr("workbench.algos.rl.trial.PROGRESS_S", 0.0)
    factory = cartpole(updates=20, n_ranks=2, **how)
    ranks = ranks_of(factory)

    def leave(metrics):
        if metrics["updates"] >= 5:
            raise InterruptedError

    with pytest.raises((InterruptedError, PeerLost)):
        train(ranks, leave)
    done = ranks[0].learner.updates
    ranks[0].save(tmp_path)
    close(ranks)
    assert 5 <= done < 20
    again = ranks_of(factory)
    again[0].load(tmp_path)
    assert train(again)["updates"] == 20  # another 20 would come to more
    assert train(again)["updates"] == 40
    close(again)


def test_a_gang_whose_processes_cannot_be_started_leaves_nothing_open() -> None:
    closed = []

    class Unsendable:
        n_ranks = 2

        def __init__(self):
            self.lock = threading.Lock()

        def rank(self, config, seed, rank):
            return SimpleNamespace(close=lambda: closed.append(rank))

    with pytest.raises(Exception, match="pickle"):
        LocalGang(Unsendable(), {}, 0)
    assert closed == [0]


SCRIPT = """
from workbench import BA3C, Budget

class Mine(BA3C):
    def rank(self, config, seed, rank):
        return super().rank(config, seed, rank)

settings = {"n_agents": 2, "batch": 8, "min_games": 1, "evaluate_every": None, "max_episode_frames": 2}
gang = Mine("CartPole-v1", Budget(updates=3), n_ranks=2, **settings)({}, 0)
print(gang.train_phase(lambda metrics: None)["updates"])
gang.close()
"""


def test_a_script_builds_a_gang_with_classes_of_its_own_wherever_it_stands(tmp_path, capfd) -> None:
    """Nobody but rank 0 runs it: it has no ``if __name__ == "__main__":``."""
    (script := tmp_path / "script.py").write_text(SCRIPT)
    runpy.run_path(str(script), run_name="__main__")  # which is then this process's main module
    assert capfd.readouterr() == ("3\n", "")
