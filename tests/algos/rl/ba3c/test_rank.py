"""Distributed BA3C: its gradients and updates, the straggler rule, the paper's network, phases, deaths, learning."""

import multiprocessing
import os
import signal
import threading

import numpy as np
import pytest
import torch

from tests.algos.rl.ba3c.gangs import Fed, fixed_rollout, ranks_of, silent, train
from workbench.algos.rl.a3c.trial import A3C
from workbench.algos.rl.ba3c.exchange import MAX_LAG, N_STATS, Stats, flat
from workbench.algos.rl.ba3c.local_gang import LocalGang
from workbench.algos.rl.ba3c.rank import _aged
from workbench.algos.rl.ba3c.shard_server import Contribution
from workbench.algos.rl.ba3c.trial import BA3C
from workbench.algos.rl.checkpoint import load_agent
from workbench.algos.rl.envs import Rules, find_game, make_agents
from workbench.algos.rl.ga3c.trial import GA3C
from workbench.algos.rl.model import make_model
from workbench.core.budget import Budget
from workbench.core.errors import InvalidInput, PeerLost
from workbench.core.protocols import ranks_needed

CARTPOLE = {"game": "CartPole-v1", "min_games": 1, "evaluate_every": None, "peer_timeout_s": 120.0}


def cartpole(updates=5, **settings) -> BA3C:
    """Games of two steps, of which some end in every update: a phase has exactly so many."""
    small = {"n_agents": 4, "batch": 8, "max_episode_frames": 2}
    return BA3C(phase=Budget(updates=updates), **{**CARTPOLE, **small, **settings})


def weights(trial) -> np.ndarray:
    return flat(list(trial.model.parameters()))


def close(ranks):
    for rank in ranks:
        rank.close()


# -- one gradient, one update -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("game", "network"), [("Pong", "small"), ("CartPole-v1", "mlp"), ("CartPole-v1", "mlp-separate")]
)
def test_a_rollout_split_over_ranks_gives_the_gradient_of_a3c_and_ga3c(game, network):
    b1, seed, n_ranks = 0.5, 5, 3
    shared = {"game": game, "network": network, "device": "cpu", "precision": "float32"}
    a3c, ga3c = A3C(**shared, n_agents=2)({}, seed), GA3C(**shared)({}, seed)
    rollout = fixed_rollout(ga3c.game)
    a3c._open()
    wanted = flat(ga3c.learner.gradients(rollout)[0])
    np.testing.assert_allclose(flat(a3c.learner.gradients(rollout, a3c._copies[1])[0]), wanted, rtol=0, atol=1e-6)
    a3c.close()

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
        ranks = ranks_of(cartpole(20, n_ranks=3, max_episode_frames=None), {"learning_rate": 1e-2}, seed=3)
        for _ in range(2):
            train(ranks)
            assert all(np.array_equal(weights(rank), weights(ranks[0])) for rank in ranks)
        runs.append(weights(ranks[0]))
        played = [rank.player.episodes.returns for rank in ranks]
        assert played[0] != played[1] != played[2]  # each plays games of its own
        close(ranks)
    assert np.array_equal(*runs)


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


# -- the straggler rule ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("straggler", "n_servers"), [(0, 1), (2, 1), (0, 3), (2, 3)])
def test_updates_are_made_while_a_rank_is_held_up_and_its_gradient_is_dropped(straggler, n_servers):
    """The straggler is let go by the third update alone: were it awaited, there would be none. So for rank 0 too, and
    for a rank that serves others the while."""
    ranks = ranks_of(cartpole(updates=3, n_ranks=3, n_awaited=2, n_servers=n_servers))
    third, update = threading.Event(), ranks[0]._update
    gather = ranks[straggler].player.gather

    def updated(contributions, squares):
        made = update(contributions, squares)
        if made.version == 3:
            third.set()
        return made

    def held_up():
        assert third.wait(60)
        return gather()

    ranks[0]._update, ranks[straggler].player.gather = updated, held_up
    metrics = train(ranks)
    assert metrics["updates"] == 3
    assert metrics["train_batch_mean"] == 16  # two ranks' batches of 8
    assert ranks[0].dropped == 1
    assert all(rank.learner.updates == 3 for rank in ranks)
    close(ranks)


@pytest.mark.parametrize("n_servers", [1, 2])
def test_asynchronously_every_gradient_is_an_update_and_some_are_stale(n_servers):
    ranks = ranks_of(cartpole(updates=40, n_ranks=2, synchronous=False, n_servers=n_servers))
    metrics = train(ranks)
    assert metrics["train_batch_mean"] == 8  # the effective batch is the local one
    assert metrics["updates"] == 40
    assert metrics["dropped"] == 0
    close(ranks)


def test_a_stale_gradients_lag_is_its_age_more():
    lags = np.zeros(MAX_LAG + 1, np.float32)
    lags[[0, 2, MAX_LAG]] = 3, 4, 5
    stats = Stats(12, 0, 0, 0, 0, 0, 0, lags)
    aged = _aged(Contribution(1, 10, np.concatenate([np.zeros(4, np.float32), stats.array()])), 12)
    assert {lag: n for lag, n in enumerate(aged) if n} == {2: 3, 4: 4, MAX_LAG: 5}
    assert len(stats.array()) == N_STATS


# -- the paper's network --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("width", "published"), [(256, 538_119), (128, 332_295), (64, 229_383), (32, 177_927), (16, 152_199)]
)
def test_parameter_counts_are_the_published_ones(width, published):
    """They differ by 1608 a neuron: 5·5·64 inputs, a bias, 6 actions and a value. The rest, 126 471, is four
    convolutions without biases on 16 planes, and 7 biases of the outputs. The text alone (4 frames in colour: 12
    planes; biases unsaid) gives other numbers: 3200 fewer for the planes, 192 more for biases."""
    game = find_game("Pong", rgb=True)
    model = make_model(game, f"ba3c-{width}")
    count = sum(p.numel() for p in model.parameters())
    convolutions = 16 * 32 * 25 + 32 * 32 * 25 + 32 * 64 * 25 + 64 * 64 * 9
    assert count == published == width * (1600 + 1 + 6 + 1) + convolutions + 7
    boxing = make_model(find_game("Boxing", rgb=True), f"ba3c-{width}")  # 18 actions: another number
    assert sum(p.numel() for p in boxing.parameters()) == published + 12 * (width + 1)
    assert game.obs_shape == (12, 84, 84)
    assert model(torch.zeros(2, 12, 84, 84, dtype=torch.uint8))[0].shape == (2, 6)


def test_frames_in_colour_are_planes_of_the_newest_four():
    game = find_game("Pong", rgb=True)
    colour, grey = (make_agents(g, 2, 3, Rules(noop_max=0)) for g in (game, find_game("Pong")))
    for _ in range(8):
        shown, plain = colour.recv().obs, grey.recv().obs
        colour.send(np.array([2, 3]))
        grey.send(np.array([2, 3]))
    assert shown.shape == (2, 12, 84, 84)
    assert shown.dtype == np.uint8
    luma = shown.reshape(2, 4, 3, 84, 84).astype(float).transpose(0, 1, 3, 4, 2) @ [0.299, 0.587, 0.114]
    assert np.abs(luma - plain).mean() < 2
    colour.close()
    grey.close()


def test_pong_in_colour_trains_saves_and_plays(tmp_path):
    trial = BA3C(
        "Pong",
        Budget(updates=2),
        n_ranks=1,
        n_agents=2,
        batch=8,
        evaluate_every=None,
        max_episode_frames=20,
        min_games=1,
    )({}, 0)
    assert trial.settings.network == "ba3c-128"
    metrics = trial.train_phase(silent)
    assert metrics["frames"] >= 2 * 8 * 4
    trial.save(tmp_path)
    model, game, _ = load_agent(tmp_path)
    assert game.obs_shape == (12, 84, 84)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), trial.model.parameters(), strict=True))
    trial.close()


# -- phases, checkpoints, deaths ------------------------------------------------------------------------------------


SHARDED = {"n_awaited": 1, "n_servers": 2}
AHEAD = {"plays_on": True}


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
    close(again)


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


def test_a_checkpoint_passes_to_other_systems_and_back(tmp_path):
    ours = cartpole(n_ranks=1)({}, 0)
    ours.train_phase(silent)
    ours.save(tmp_path)
    other = GA3C("CartPole-v1", phase=Budget(updates=2), n_agents=2)({}, 1)
    other.load(tmp_path)
    assert np.array_equal(weights(other), weights(ours))
    other.train_phase(silent)
    (tmp_path / "back").mkdir()
    other.save(tmp_path / "back")
    ours.load(tmp_path / "back")
    assert np.array_equal(weights(other), weights(ours))
    ours.train_phase(silent)
    ours.close()
    other.close()


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


def test_a_dead_process_ends_the_phase_with_its_name_and_leaves_no_other_behind():
    others = set(multiprocessing.active_children())
    gang = BA3C(phase=Budget(updates=10**9), n_ranks=2, n_agents=2, batch=8, **CARTPOLE)({}, 0)

    def kill(metrics):
        if metrics.get("updates") and gang._processes[0].is_alive():
            os.kill(gang._processes[0].pid, signal.SIGKILL)

    with pytest.raises(PeerLost, match=r"the process of rank 1 died \(exit code -9\)"):
        gang.train_phase(kill)
    gang.close()
    gang.close()
    assert set(multiprocessing.active_children()) <= others


def test_ctrl_c_is_heard_by_rank_0_alone():
    gang = BA3C(phase=Budget(updates=20), n_ranks=2, n_agents=2, batch=8, **CARTPOLE)({}, 0)
    os.kill(gang._processes[0].pid, signal.SIGINT)  # as it comes up
    assert gang.train_phase(silent)["updates"] >= 20
    os.kill(gang._processes[0].pid, signal.SIGINT)
    assert gang.train_phase(silent)["updates"] >= 40
    gang.close()


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
    for every, out in ((24, scores), (None, plain)):
        ranks = ranks_of(cartpole(40, n_ranks=2, evaluate_every=every, evaluate_games=3, max_episode_frames=None))
        out += [train(ranks).get("eval_score") for _ in range(2)]
        out.append(weights(ranks[0]))
        close(ranks)
    assert 1 <= scores[0] <= 500
    assert scores[1] != scores[0]  # of update 72, not 24: another policy, other games
    assert plain[:2] == [None, None]
    assert np.array_equal(scores[2], plain[2])


# -- settings -------------------------------------------------------------------------------------------------------


def test_the_settings_are_the_papers():
    paper = BA3C()
    assert (paper.learning_rate, paper.adam_eps, paper.beta1, paper.beta2) == (1e-3, 1e-8, 0.8, 0.75)
    assert (paper.batch, paper.n_agents, paper.t_max, paper.gamma, paper.entropy_beta) == (32, 10, 5, 0.99, 0.01)
    assert (paper.network, paper.max_average_norm) == ("ba3c-128", 0.1)
    assert (paper.evaluate_every, paper.evaluate_games) == (1000, 50)


def test_what_has_no_meaning_is_refused():
    assert ranks_needed(BA3C(**CARTPOLE)) == 2
    assert ranks_needed(GA3C("CartPole-v1")) == 1
    with pytest.raises(InvalidInput, match="unknown hyperparameter of BA3C 'n_trainers'"):
        BA3C.check(["n_trainers"])
    with pytest.raises(InvalidInput, match="n_awaited from 1 to n_ranks"):
        cartpole(n_ranks=2, n_awaited=3)
    with pytest.raises(InvalidInput, match="the asynchronous BA3C awaits nobody"):
        cartpole(n_ranks=2, n_awaited=1, synchronous=False)
    with pytest.raises(InvalidInput, match=r"n_servers is 1 to n_ranks, got 3 of 2 ranks"):
        cartpole(n_ranks=2, n_awaited=1, n_servers=3)
    for how in ({}, {"n_awaited": 2}):
        with pytest.raises(InvalidInput, match=r"all 2 gradients has an all-reduce and no servers: got n_servers=2"):
            cartpole(n_ranks=2, n_servers=2, **how)
    with pytest.raises(InvalidInput, match="averages gradients"):
        cartpole(reduction="sum")
    with pytest.raises(InvalidInput, match="beta1 in"):
        cartpole(beta1=1.0)
    with pytest.raises(InvalidInput, match="cannot read"):
        cartpole(network="ba3c-128")


OTHERS = ({"n_awaited": 1}, {"synchronous": False}, SHARDED, {"synchronous": False, "n_servers": 2}, AHEAD)
SLOW_HOWS = [pytest.param(how, marks=pytest.mark.slow) for how in OTHERS]


@pytest.mark.parametrize("how", [{}, *SLOW_HOWS])
def test_two_ranks_learn_cartpole(how):
    """Random play scores about 22; two ranks come above 120 within 200 000 frames, usually sooner."""
    factory = BA3C(phase=Budget(frames=20_000), n_ranks=2, n_agents=16, batch=80, **CARTPOLE, **how)
    config = {"learning_rate": 3e-3, "gamma": 0.95, "t_max": 10, "beta1": 0.9, "beta2": 0.999, "init": "orthogonal"}
    ranks, scores = ranks_of(factory, config), []
    while len(scores) < 10 and max(scores, default=0) < 120:
        scores.append(train(ranks)["score"])
    close(ranks)
    assert scores[-1] >= 120, scores
