"""GA3C trials from outside: batches, settings, checkpoints to start from, threads, learning."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.support import silent
from workbench.algos.rl.ba3c.trial import BA3C
from workbench.algos.rl.checkpoint import load_agent
from workbench.algos.rl.evaluate import evaluate
from workbench.algos.rl.ga3c.trial import AUTHORS, GA3C
from workbench.algos.rl.games import Rules
from workbench.core.budget import Budget
from workbench.core.errors import InvalidInput

TINY = GA3C(game="CartPole-v1", phase=Budget(updates=20), n_agents=8, emulator_threads=1)


def test_metrics_of_a_phase():
    trial = GA3C(game="CartPole-v1", phase=Budget(frames=2000), n_predictors=2, n_trainers=2)({"t_max": 5}, 0)
    metrics = trial.train_phase(silent)
    trial.close()
    assert metrics["frames"] == metrics["steps"] >= 2000
    assert metrics["train_batch_mean"] >= 40
    assert 1 <= metrics["predict_batch_mean"] <= 32
    assert 0 <= metrics["policy_lag_mean"] <= metrics["policy_lag_p95"] + 1
    assert 0 < metrics["entropy"] <= math.log(2) + 1e-6
    assert metrics["pps"] > metrics["tps"] > 0
    trained = metrics["train_batch_mean"] * metrics["updates"]
    assert trained <= metrics["steps"]
    assert all(isinstance(v, int | float) for k, v in metrics.items() if k != "returns")


def test_a_parents_checkpoint_keeps_the_childs_own_draws(tmp_path):
    parent, child = TINY({}, 1), TINY({}, 2)
    parent.save(tmp_path)
    own = child._generators[0].bit_generator.state
    child.load(tmp_path)
    assert child._generators[0].bit_generator.state == own
    assert all(torch.equal(a, b) for a, b in zip(parent.model.parameters(), child.model.parameters(), strict=True))


def test_starved_settings_do_not_deadlock():
    """A minimum batch that the queue cannot hold, and several trainers to hoard it."""
    settings = GA3C(
        game="CartPole-v1",
        phase=Budget(updates=4),
        n_agents=2,
        n_groups=2,
        n_trainers=3,
        training_queue=1,
        min_training_batch=100,
    )
    for lockstep in (False, True):
        trial = replace(settings, lockstep=lockstep)({"t_max": 2}, 0)
        metrics = trial.train_phase(silent)
        assert metrics["updates"] >= 4
        assert metrics["train_batch_mean"] >= 100
        trial.close()


@pytest.mark.parametrize("lockstep", [False, True])
@pytest.mark.parametrize(("t_max", "least"), [(2, 40), (2, 80), (5, 40), (7, 80)])
def test_no_batch_is_smaller_than_the_minimum_and_nothing_is_lost(t_max, least, lockstep):
    """Eight agents and eight more segments hold 32 experiences of t_max 2: less than the least batch."""
    settings = GA3C("CartPole-v1", Budget(updates=6), n_agents=8, n_trainers=2, min_training_batch=least, min_games=1)
    trial = replace(settings, lockstep=lockstep)({"t_max": t_max}, 0)
    batches, train = [], trial.learner.train
    trial.learner.train = lambda rollout: batches.append(len(rollout)) or train(rollout)
    for _ in range(2):
        trial.train_phase(silent)
    assert min(batches) >= least
    assert len(batches) >= 12
    queues = trial._queues
    waiting = [*trial._gathered, *(queues.ready.get() for _ in range(queues.ready.qsize()))]
    copied = len(trial._pool) + sum(len(queues.left.get()) for _ in range(queues.left.qsize()))
    unfinished = sum(int(group._t[group._segment >= 0].sum()) for group in trial._groups)
    assert sum(batches) + copied + int(trial._segments.lengths[waiting].sum()) + unfinished == trial.steps
    trial.close()


def test_configs_are_checked_before_anything_starts():
    TINY.check(["learning_rate", "gamma", "t_max"])
    with pytest.raises(InvalidInput, match="unknown hyperparameter of GA3C 'learningrate': did you mean"):
        TINY.check(["learningrate"])
    with pytest.raises(InvalidInput, match="unknown hyperparameter of GA3C 'game'"):
        TINY({"game": "Pong"}, 0)
    TINY.check(["n_trainers"])
    with pytest.raises(InvalidInput, match="n_trainers changes nothing in GA3C with lockstep=True"):
        replace(TINY, lockstep=True, n_groups=1).check(["n_trainers"])
    started = replace(TINY, lockstep=True, n_groups=1, start_from="there")
    for name, because in (("n_trainers", "lockstep=True"), ("init", "start_from='there'")):
        with pytest.raises(InvalidInput, match=f"{name} changes nothing in GA3C with {because}"):
            started.check([name])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"game": "Pnog"}, "unknown game 'Pnog'"),
        ({"game": "Pendulum-v1"}, "discrete"),
        ({"game": "CartPole-v1", "network": "small"}, "cannot read"),
        ({"t_max": 2.5}, "t_max a whole number from 1, got 2.5"),
        ({"t_max": 0}, "t_max"),
        ({"learning_rate": math.nan}, "learning_rate a number above 0, got nan"),
        ({"learning_rate": "fast"}, "learning_rate"),
        ({"gamma": 1.5}, r"gamma in \(0, 1\], got 1.5"),
        ({"init": "xavier"}, "unknown init"),
        ({"device": "gpu"}, "unknown device"),
        ({"device": None}, "unknown device 'None'"),
        ({"network": ["small"]}, r"network a word, got \['small'\]"),
        ({"start_from": 3}, "start_from a directory, or None, got 3"),
        ({"phase": 100}, "phase is a Budget"),
        ({"lockstep": "false"}, "GA3C needs lockstep true or false, got 'false'"),
        ({"fire_on_reset": 1}, "fire_on_reset true or false, got 1"),
        ({"clip_rewards": "no"}, "clip_rewards true or false, or None, got 'no'"),
        (
            {"game": "CartPole-v1", "repeat_action_probability": 0.25},
            "repeat_action_probability is of Atari's emulator, and CartPole-v1 .* without: .*StickyAction",
        ),
        ({"game": "CartPole-v1", "fire_on_reset": True}, "fire_on_reset is of Atari's emulator, and CartPole-v1 "),
    ],
)
def test_settings_are_checked(setting, message):
    with pytest.raises(InvalidInput, match=message):
        GA3C(**setting)


def test_there_are_no_more_groups_than_agents():
    """Of a space that draws both it would be the smallest numbers of agents that cannot be tried."""
    assert GA3C("CartPole-v1")({"n_agents": 1}, 0).mix.groups == 1
    assert GA3C("CartPole-v1", n_groups=1)({"n_agents": 3}, 0).mix.groups == 1


def test_one_agent_is_enough_for_the_deterministic_mode_which_has_one_group():
    trial = GA3C("CartPole-v1", Budget(updates=1), n_agents=1, lockstep=True, min_games=1)({}, 0)
    assert trial.train_phase(silent)["games"] >= 1
    trial.close()


def test_numpys_numbers_are_played_by_and_saved(tmp_path):
    numbers = {"noop_max": np.int64(3), "max_episode_frames": np.int64(40), "fire_on_reset": np.bool_(True)}
    numbers |= {"score_window": np.int64(20), "lockstep": np.bool_(True), "repeat_action_probability": np.float32(0.25)}
    trial = GA3C("Pong", Budget(frames=np.int64(40)), n_agents=1, min_games=1, **numbers)({}, 0)
    trial.train_phase(silent)
    trial.save(tmp_path)
    assert load_agent(tmp_path).rules == Rules(3, 40, 0.25, True)
    trial.close()


@pytest.mark.slow  # BA3C, of the same gradients, learns among the quick tests
@pytest.mark.parametrize("seed", [1, 2])
def test_it_learns_cartpole(seed):
    """Up to 800 000 frames, evaluated after every 100 000: a mean return of 450 over 20 whole games."""
    trial = GA3C(game="CartPole-v1", phase=Budget(frames=100_000))({"learning_rate": 1e-3, "t_max": 2}, seed)
    means = []
    for _ in range(8):
        trial.train_phase(silent)
        means.append(evaluate(trial.model, trial.game, 20, seed=9).mean)
        if means[-1] >= 450:
            break
    trial.close()
    assert means[-1] >= 450, means


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_defaults_learn_cartpole_within_150_000_frames(seed):
    """A mean return of 450 over the last 100 games, with free-running threads; one trunk for both came to about 100."""
    trial = GA3C("CartPole-v1", Budget(frames=10_000), score_window=100)({"learning_rate": 7e-4, "t_max": 5}, seed)
    assert trial.mix.groups == 2
    means = []
    while trial.steps < 150_000 and (not means or means[-1] < 450):
        trial.train_phase(silent)
        means.append(np.mean(trial.episodes.returns))
    trial.close()
    assert means[-1] >= 450, means


def test_the_authors_settings_are_those_of_their_code():
    ours = GA3C("Pong")
    theirs = GA3C("Pong", **AUTHORS)
    assert (theirs.init, theirs.reduction, theirs.max_grad_norm, theirs.min_training_batch) == (
        "uniform",
        "sum",
        None,
        0,
    )
    assert (theirs.rmsprop_eps, theirs.eps_inside_root, theirs.learning_rate) == (0.1, True, 3e-4)
    squares = theirs.make_optimizer([torch.zeros(2)]).state_dict()["square_avg"]
    assert squares[0].tolist() == [1, 1]
    assert (theirs.n_agents, theirs.n_predictors, theirs.n_trainers, theirs.training_queue) == (32, 2, 2, 100)
    assert all(getattr(ours, name) != value for name, value in AUTHORS.items())  # no more than what differs


@pytest.mark.slow
def test_the_first_steps_leave_a_network_of_pictures_as_it_is():
    """From accumulators of 0 they are of ten learning rates, and values end up far from any return."""
    losses = {}
    for initial_square in (None, 0.0):
        settings = GA3C(
            "Pong", phase=Budget(frames=10_000), lockstep=True, initial_square=initial_square, n_agents=16, min_games=1,
            max_episode_frames=1000, emulator_threads=1,
        )  # fmt: skip
        trial = settings({}, seed=0)
        losses[initial_square] = trial.train_phase(lambda metrics: None)["value_loss"]
        trial.close()
    assert losses[None] < 0.3
    assert losses[0.0] > 3 * losses[None]
    starts = {game: GA3C(game)({}, 0).learner.optimizer.square_avg[0].max().item() for game in ("Pong", "CartPole-v1")}
    assert starts == {"Pong": 1, "CartPole-v1": 0}


def test_a_checkpoint_of_the_shared_network_is_refused_in_one_line_and_still_plays(tmp_path):
    shared = GA3C("CartPole-v1", network="mlp")({}, 0)
    shared.save(tmp_path)
    with pytest.raises(InvalidInput, match="holds mlp for CartPole-v1, 2 actions; this one is mlp-separate for") as err:
        GA3C("CartPole-v1", start_from=str(tmp_path))
    assert "\n" not in str(err.value)
    model, *_ = load_agent(tmp_path)
    assert model.critic is None
    for one, other in zip(model.parameters(), shared.model.parameters(), strict=True):
        assert torch.equal(one, other.cpu())


def test_what_statistics_begin_at_is_refused_where_a_checkpoint_brings_them(tmp_path):
    GA3C("CartPole-v1")({}, 0).save(tmp_path)
    started = GA3C("CartPole-v1", start_from=str(tmp_path))
    with pytest.raises(InvalidInput, match=r"initial_square changes nothing in GA3C with start_from=.*out of"):
        started.check(["initial_square"])
    replace(started, start_from="there").check(["initial_square"])  # of what is elsewhere nothing is known


def test_what_statistics_begin_at_counts_where_the_checkpoint_s_are_adams(tmp_path):
    donor = BA3C("CartPole-v1", n_ranks=1)({}, 0)
    donor.save(tmp_path)
    donor.close()
    trial = GA3C("CartPole-v1", start_from=str(tmp_path))({"initial_square": 0.5}, 0)
    assert all((square == 0.5).all() for square in trial.learner.optimizer.square_avg)


def test_a_trial_that_should_start_from_nothing(tmp_path):
    with pytest.raises(InvalidInput, match="there is no checkpoint in"):
        GA3C("CartPole-v1", Budget(updates=1), start_from=str(tmp_path / "none"))({}, 1)


@pytest.mark.parametrize("lockstep", [False, True])
def test_a_phase_that_was_interrupted_is_run_to_its_end_elsewhere_and_no_further(tmp_path, monkeypatch, lockstep):
    monkeypatch.setattr("workbench.algos.rl.trial.PROGRESS_S", 0.001)
    factory = replace(TINY, phase=Budget(updates=24), lockstep=lockstep)
    first = factory({}, 0)

    def leave(metrics):
        if metrics["updates"] >= 6:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        first.train_phase(leave)
    done = first.learner.updates
    first.save(tmp_path)
    first.close()
    assert 6 <= done < 24
    second = factory({}, 0)
    second.load(tmp_path)
    ended = second.train_phase(silent)
    assert 24 <= ended["updates"] < 24 + done  # another 24 would come to more
    assert ended["games"] == ended["episodes"]  # those of before count as well
    assert 48 <= second.train_phase(silent)["updates"] < 48 + done
    second.close()


@pytest.mark.parametrize(("shape", "given", "begin"), [((2, 1, 3, 3), None, 1), ((2, 2), None, 0), ((2, 2), 0.5, 0.5)])
def test_rmsprops_means_begin_at_1_where_there_are_convolutions_if_nobody_says_otherwise(shape, given, begin):
    made = GA3C("CartPole-v1", initial_square=given).make_optimizer([torch.zeros(2), torch.zeros(shape)])
    assert [set(square.flatten().tolist()) for square in made.square_avg] == [{begin}, {begin}]


@pytest.mark.parametrize(("inside", "root"), [(True, 2), (False, math.sqrt(3.75) + 0.25)])
def test_rmsprop_is_told_its_settings(inside, root):
    """A gradient of 6, clipped to 3: g = .75 · 2 + .25 · 9 = 3.75."""
    settings = GA3C(
        "CartPole-v1",
        learning_rate=0.5,
        rmsprop_decay=0.75,
        rmsprop_eps=0.25,
        eps_inside_root=inside,
        initial_square=2.0,
        max_grad_norm=3.0,
    )
    weight = torch.zeros(1)
    settings.make_optimizer([weight]).step([torch.tensor([6.0])])
    assert weight.item() == pytest.approx(-0.5 * 3 / root)


@pytest.mark.parametrize(("lockstep", "ready"), [(False, 3), (True, 4)])
def test_a_group_asks_when_its_share_of_agents_is_ready_and_in_turn_when_all_are(lockstep, ready, monkeypatch):
    monkeypatch.setattr("workbench.algos.rl.trial.make_envs", lambda *given, batch_size, **told: batch_size)
    assert GA3C("CartPole-v1", agents_ready=0.7, lockstep=lockstep)({}, 0)._start_envs(4, 0) == ready


def test_in_lockstep_an_action_is_of_the_weights_that_chose_it():
    """One agent, an update a step: its next action is drawn first, and is one update old when it is trained on."""
    settings = GA3C(
        "CartPole-v1", Budget(updates=8), n_agents=1, n_groups=1, lockstep=True, min_training_batch=1, min_games=1
    )
    trial = settings({"t_max": 1}, 0)
    metrics = trial.train_phase(silent)
    trial.close()
    assert np.flatnonzero(trial._meter.reading().lags).tolist() == [0, 1]
    assert metrics["train_batch_mean"] == 1  # no more than the least
