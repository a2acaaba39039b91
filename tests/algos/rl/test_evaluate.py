"""Evaluation protocols, scores between games, checkpoints read by others than their trial."""

from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from tests.algos.rl.test_agents import GAME, Scripted
from workbench.algos.games import Games
from workbench.algos.replay import Replay
from workbench.algos.rl import envs
from workbench.algos.rl import evaluate as module
from workbench.algos.rl.ba3c.trial import BA3C
from workbench.algos.rl.checkpoint import CHECKPOINT, load_agent, read_checkpoint
from workbench.algos.rl.evaluate import BA3C_PROTOCOL, GA3C_PROTOCOL, Evaluation, evaluate
from workbench.algos.rl.ga3c.trial import GA3C
from workbench.algos.rl.games import find_game
from workbench.algos.rl.model import make_model
from workbench.algos.rl.watch import watch
from workbench.cli.main import main
from workbench.core.budget import Budget
from workbench.core.errors import InvalidInput
from workbench.paper.ga3c.table_3 import TABLE_3, normalised


def test_the_papers_protocols(monkeypatch):
    starts = []
    real = module.make_envs
    monkeypatch.setattr(module, "make_envs", lambda *a, **kw: starts.append((a[1:], kw)) or real(*a, **kw))
    game = find_game("CartPole-v1")
    model = make_model(game)
    drawn, greedy = GA3C_PROTOCOL.play(model, game, seed=1), BA3C_PROTOCOL.play(model, game, seed=1)
    assert len(drawn.returns) == 30
    assert len(greedy.returns) == 50
    assert all(given[2].noop_max == 30 for given, _ in starts)
    assert len({seed for (_, seed, _), _ in starts}) == 2  # every batch of games starts from seeds of its own
    assert (drawn.lengths == drawn.returns).all()
    assert np.unique(drawn.returns).size > 1
    assert drawn.returns.tolist() == GA3C_PROTOCOL.play(model, game, seed=1).returns.tolist()
    assert drawn.returns.tolist() != GA3C_PROTOCOL.play(model, game, seed=2).returns.tolist()


def test_greedy_play_takes_the_likeliest_action():
    game = find_game("CartPole-v1")
    model = make_model(game)
    with torch.no_grad():
        model.head.weight.zero_()
        model.head.bias.copy_(torch.tensor([0.1, 0.0, 0.0]))  # always to the left, if greedy
    assert evaluate(model, game, 20, greedy=True).returns.max() <= 12
    assert evaluate(model, game, 20).returns.max() > 12


def test_a_game_that_is_over_counts_no_more_while_others_are_played(monkeypatch):
    """Each step pays its number; what begins anew after the second step, or would after the fifth, is not counted."""
    ends = {(0, 2): "terminated", (0, 4): "terminated", (1, 5): "truncated"}
    monkeypatch.setattr(module, "make_envs", lambda *given, **told: Scripted(2, ends))
    played = evaluate(make_model(GAME), GAME, 2)
    assert (played.returns.tolist(), played.lengths.tolist()) == ([1 + 2, 1 + 2 + 3 + 4 + 5], [2, 5])


@pytest.mark.parametrize(
    ("returns", "mean", "std"),
    [
        ([19.25, 19.4], 19.325, 0.075),
        ([0.00042, 0.0004], 0.00041, 1e-5),
        ([-0.0123456, -0.0123456], -0.0123, 0),
        ([0, 0], 0, 0),
    ],
)
def test_a_summary_tells_scores_of_any_size(returns, mean, std):
    told = Evaluation(np.array(returns), np.ones(2, np.int64)).summary()
    assert (told["mean"], told["std"]) == (mean, std)


def test_evaluation_leaves_every_generator_and_weight_alone():
    trial = GA3C(game="CartPole-v1", lockstep=True)({}, 0)
    np.random.seed(3)
    before = (
        [g.bit_generator.state for g in trial._generators],
        np.random.get_state()[1].tolist(),
        torch.random.get_rng_state().tolist(),
        [p.detach().clone() for p in trial.model.parameters()],
    )
    GA3C_PROTOCOL.play(trial.model, trial.game)
    assert [g.bit_generator.state for g in trial._generators] == before[0]
    assert np.random.get_state()[1].tolist() == before[1]
    assert torch.random.get_rng_state().tolist() == before[2]
    assert all(torch.equal(a, b) for a, b in zip(trial.model.parameters(), before[3], strict=True))


def test_no_games_and_what_is_no_seed_are_refused_in_a_line(tmp_path, capsys):
    trial = GA3C("CartPole-v1")({}, np.int64(1))
    trial.save(tmp_path)  # a plain seed: NumPy's is none of JSON's numbers
    for n_games in (0, -1, 2.5):
        with pytest.raises(InvalidInput, match=f"n_episodes games, a whole number from 1, got {n_games}"):
            evaluate(trial.model, trial.game, n_games)
    assert main(["evaluate", str(tmp_path), "--seed", "-1"]) == 2
    assert "a seed is a whole number from 0, got -1" in capsys.readouterr().err
    for refused in (lambda: watch(tmp_path, tmp_path / "game.gif", seed=-1), lambda: GA3C("CartPole-v1")({}, -1)):
        with pytest.raises(InvalidInput, match="a seed is a whole number from 0, got -1"):
            refused()


def test_normalised_scores():
    assert normalised(-18, "pong") == 0
    assert normalised(16, "pong") == 1
    assert normalised(18, "pong", "ga3c") == 1
    assert normalised(92, "boxing") == pytest.approx(94 / 12)
    assert normalised(198, "ms_pacman") == normalised(1748, "name_this_game") == 0  # interchanged in the paper
    with pytest.raises(InvalidInput, match="unknown game in GA3C's Table 3 'pang': did you mean 'pong'"):
        normalised(0, "pang")


def test_the_table_names_games_as_the_emulator_does():
    assert [find_game(name).name for name in TABLE_3] == list(TABLE_3)


def test_a_checkpoint_gives_back_its_agent(tmp_path):
    trial = GA3C(game="Pong", network="large-4", precision="float32")({}, 0)
    trial.save(tmp_path)
    model, game, _ = load_agent(tmp_path)
    assert game == trial.game
    assert all(torch.equal(a, b.cpu()) for a, b in zip(model.parameters(), trial.model.parameters(), strict=True))


def test_a_checkpoint_plays_its_own_game_or_one_that_its_network_fits(tmp_path):
    GA3C(game="CartPole-v1")({}, 0).save(tmp_path)
    assert load_agent(tmp_path, "CartPole-v1").game.name == "CartPole-v1"
    with pytest.raises(InvalidInput, match="holds mlp-separate for CartPole-v1, 2 actions; this one is mlp-sep"):
        load_agent(tmp_path, "Acrobot-v1")
    with pytest.raises(InvalidInput, match="trained on CartPole-v1, and its network 'mlp-separate' cannot read pong"):
        load_agent(tmp_path, "Pong")


def test_a_checkpoint_of_another_network_is_refused_in_words(tmp_path):
    GA3C(game="Pong", precision="float32")({}, 0).save(tmp_path)
    for other, words in (
        (GA3C(game="Boxing", precision="float32"), "this one is small for boxing, 18 actions"),
        (GA3C(game="Pong", network="large-4", precision="float32"), "this one is large-4 for pong, 6 actions"),
    ):
        trial = other({}, 0)
        before = trial.model.head.weight.detach().clone()
        with pytest.raises(InvalidInput, match=f"another network: it holds small for pong, 6 actions; {words}"):
            trial.load(tmp_path)
        assert torch.equal(trial.model.head.weight, before)


def test_a_checkpoint_of_stable_baselines3_is_no_broken_one(tmp_path):
    torch.save({"parameters": {}, "counters": "{}"}, tmp_path / CHECKPOINT)
    with pytest.raises(InvalidInput, match="is of Stable-Baselines3"):
        load_agent(tmp_path)


def test_the_agent_of_a_trial_around_it_is_found_and_one_of_several_is_asked_for(tmp_path):
    agent = GA3C(game="CartPole-v1", lockstep=True)
    around = [Replay([{}], agent), Games({"one": agent, "two": agent}, {"one": (0, 500), "two": (0, 500)})]
    for trial, place in zip((make({}, 0) for make in around), ("replay", "games"), strict=True):
        (tmp_path / place).mkdir()
        trial.save(tmp_path / place)
        trial.close()
    assert load_agent(tmp_path / "replay").game.name == "CartPole-v1"
    assert GA3C(game="CartPole-v1", start_from=str(tmp_path / "replay"))
    with pytest.raises(InvalidInput, match=r"games holds 2 agents, game-0, game-1: name .* such as .*game-0"):
        load_agent(tmp_path / "games")
    with pytest.raises(InvalidInput, match="holds 2 agents"):
        GA3C(game="CartPole-v1", start_from=str(tmp_path / "games"))
    assert load_agent(tmp_path / "games" / "game-1").game.name == "CartPole-v1"


def test_checkpoints_that_are_missing_or_cut_short(tmp_path):
    with pytest.raises(InvalidInput, match=r"there is no checkpoint in .*expected a directory with a file trial\.pt"):
        read_checkpoint(tmp_path)
    GA3C(game="CartPole-v1")({}, 0).save(tmp_path)
    whole = (tmp_path / CHECKPOINT).read_bytes()
    (tmp_path / CHECKPOINT).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidInput, match="cannot be read, it may be cut short"):
        GA3C(game="CartPole-v1")({}, 0).load(tmp_path)


RULES = {"noop_max": 7, "max_episode_frames": 40, "repeat_action_probability": 0.25, "fire_on_reset": True}


@pytest.fixture
def emulators(monkeypatch):
    """What every emulator is started with, of those settings."""
    started, real = [], envs.open_emulators

    def start(*given, **settings):
        names = {"max_episode_frames": "max_num_frames_per_episode", "fire_on_reset": "use_fire_reset"}
        started.append({name: settings[names.get(name, name)] for name in RULES})
        return real(*given, **settings)

    monkeypatch.setattr(envs, "open_emulators", start)
    return started


def test_ba3c_evaluates_by_the_rules_it_trains_by(emulators):
    small = {"n_ranks": 1, "n_agents": 1, "batch": 4, "evaluate_every": 1, "evaluate_games": 1, "init": "uniform"}
    trial = BA3C("Pong", Budget(updates=2), min_games=1, device="cpu", **small, **RULES)({}, 0)
    metrics = trial.train_phase(lambda metrics: None)
    trial.close()
    assert "eval_score" in metrics
    assert len(emulators) >= 3  # training's, and one an evaluation
    assert all(started == RULES for started in emulators)


def test_a_checkpoint_is_played_by_the_rules_it_was_trained_by(tmp_path, emulators, capsys, monkeypatch):
    monkeypatch.setitem(module.PROTOCOLS, "ga3c", replace(GA3C_PROTOCOL, n_episodes=1))
    GA3C("Pong", n_agents=2, device="cpu", init="uniform", **RULES)({}, 0).save(tmp_path)
    assert asdict(load_agent(tmp_path).rules) == RULES
    assert main(["evaluate", str(tmp_path), "--protocol", "ga3c"]) == 0
    assert '"mean_length": 10.0' in capsys.readouterr().out  # 40 frames, every game
    watch(tmp_path, tmp_path / "game.gif", max_steps=3)
    assert emulators == [RULES | {"noop_max": 30}, RULES]  # the protocol says how games begin
