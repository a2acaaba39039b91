"""Stable-Baselines3 as a trainable: phases change nothing, scores are of whole games, checkpoints whole and safe."""

import pickle
import random

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces

from tests.algos.rl.simulator import Simulator
from tests.support import silent
from workbench.algos.rl.episodes import Episodes
from workbench.algos.search import FullRuns
from workbench.core.budget import Budget
from workbench.core.domains import Choice, Uniform
from workbench.core.errors import InvalidInput
from workbench.core.seeds import derived
from workbench.study.hyperparameters import check_hyperparameters

stable_baselines3 = pytest.importorskip("stable_baselines3")
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize  # noqa: E402

from workbench.algos.rl.sb3 import settings as settings_module  # noqa: E402
from workbench.algos.rl.sb3.draws import Draws  # noqa: E402
from workbench.algos.rl.sb3.factory import SB3  # noqa: E402
from workbench.algos.rl.sb3.make import counted  # noqa: E402

NET = {"policy_kwargs": {"net_arch": [8]}}
SMALL_PPO = {"n_steps": 32, "batch_size": 32, "n_epochs": 1, **NET}
OFF = {"learning_starts": 20, "buffer_size": 500, "batch_size": 8, "train_freq": 4, **NET}


class Goal(gymnasium.Env):
    """Dict observations and continuous actions: reach a number; a game is 5 steps."""

    observation_space = spaces.Dict(
        observation=spaces.Box(-1, 1, (2,), np.float32),
        achieved_goal=spaces.Box(-1, 1, (1,), np.float32),
        desired_goal=spaces.Box(-1, 1, (1,), np.float32),
    )
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.at, self.goal = 0, np.zeros(1, np.float32), self.np_random.uniform(-1, 1, 1).astype(np.float32)
        return self._seen(), {}

    def step(self, action):
        self.t += 1
        self.at = np.clip(self.at + action, -1, 1).astype(np.float32)
        reward = float(self.compute_reward(self.at, self.goal, {}))
        return self._seen(), reward, self.t == 5, False, {}

    def compute_reward(self, achieved, desired, info):
        return 1.0 - np.abs(achieved - desired).sum(-1)

    def _seen(self):
        return {
            "observation": np.array([self.t / 5, 0], np.float32),
            "achieved_goal": self.at,
            "desired_goal": self.goal,
        }


class Picture(gymnasium.Env):
    observation_space = spaces.Box(0, 255, (40, 40, 3), np.uint8)
    action_space = spaces.MultiDiscrete([2, 3])

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.t += 1
        return self.observation_space.sample(), 2.0, False, self.t == 3, {}


class Broken(Goal):
    """Gives NaN, infinity or more than float32 holds in its third step, or when it begins its second game."""

    def __init__(self, where):
        self.where, self.games = where, 0

    def reset(self, *, seed=None, options=None):
        obs, info = super().reset(seed=seed)
        self.games += 1
        return self._broken(obs, self.where == "reset" and self.games == 2), info

    def step(self, action):
        obs, reward, *ends = super().step(action)
        third = self.t == 3
        reward = {"reward": np.inf, "large reward": 1e39}.get(self.where, reward) if third else reward
        if self.where == "large" and third:
            obs["observation"] = np.full(2, 1e39)
        return self._broken(obs, self.where == "obs" and third), reward, *ends

    def _broken(self, obs, now):
        return {**obs, "observation": np.full(2, np.nan, np.float32)} if now else obs


gymnasium.register("SB3Goal-v0", Goal)
gymnasium.register("SB3Broken-v0", Broken)


class Lives(gymnasium.Env):
    """Three lives of two steps, each step worth 5."""

    observation_space, action_space = spaces.Box(0, 1, (1,), np.float32), spaces.Discrete(2)
    ale = property(lambda self: self)

    def lives(self):
        return 3 - self.t // 2

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.t += 1
        return np.zeros(1, np.float32), 5.0, self.t == 6, False, {}


gymnasium.register("SB3Lives-v0", Lives)


class Shifted(Lives):
    """Takes actions that are counted from another number than 0, and keeps which they were."""

    def __init__(self, actions):
        self.action_space, self.seen = actions, set()

    def step(self, action):
        assert self.action_space.contains(action)
        self.seen.add(tuple(np.atleast_1d(action).tolist()))
        return super().step(action)


gymnasium.register("SB3Shifted-v0", Shifted)


class Spaces(Lives):
    """Shows samples of a space, takes actions of another."""

    def __init__(self, shown=Lives.observation_space, actions=Lives.action_space):
        self.observation_space, self.action_space = shown, actions

    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample(), super().reset()[1]

    def step(self, action):
        return self.observation_space.sample(), *super().step(action)[1:]


gymnasium.register("SB3Spaces-v0", Spaces)


class Text(Picture):
    observation_space = spaces.Text(3)


gymnasium.register("SB3Picture-v0", Picture)
gymnasium.register("SB3Text-v0", Text)


def ppo(**changes):
    given = {"phase": Budget(frames=64), "hyperparameters": SMALL_PPO, "min_games": 1, **changes}
    return SB3("PPO", "CartPole-v1", **given)


KINDS = {
    "ppo": ppo(),
    "ppo on several": ppo(n_envs=2, normalize=True),
    "a2c": SB3("A2C", "CartPole-v1", Budget(frames=60), NET, min_games=1),
    "dqn": SB3("DQN", "CartPole-v1", Budget(frames=60), OFF, min_games=1),
    "sac": SB3("SAC", "SB3Goal-v0", Budget(frames=40), OFF, min_games=1),
    "td3 with noise": SB3(
        "TD3",
        "Pendulum-v1",
        Budget(frames=40),
        {**OFF, "action_noise": 0.1},
        env_kwargs={"max_episode_steps": 40},
        min_games=1,
    ),
    "her": SB3("SAC", "SB3Goal-v0", Budget(frames=40), {**OFF, "replay_buffer_class": "HerReplayBuffer"}, min_games=1),
    "pictures": SB3("PPO", "SB3Picture-v0", Budget(frames=32), {**SMALL_PPO, "policy_kwargs": {}}, min_games=1),
}
CONTRIB = {
    "ARS": ("CartPole-v1", {"n_delta": 2, **NET}),
    "TQC": ("SB3Goal-v0", OFF),
    "RecurrentPPO": ("CartPole-v1", {**SMALL_PPO, "policy_kwargs": {"lstm_hidden_size": 8}}),
}


def train(trial, phases):
    for _ in range(phases):
        trial.train_phase(silent)


def weights(trial):
    return torch.cat([w.flatten() for w in trial.model.policy.state_dict().values()])


def same_games(factory, seed, frames):
    """Learn the same frames by one plain call of SB3's `learn`."""
    arguments = factory.arguments()
    env = DummyVecEnv([lambda: gymnasium.make(factory.env)] * factory.n_envs)
    plain = settings_module.algorithm_class(factory.algorithm)("MlpPolicy", env, seed=seed, device="auto", **arguments)
    return plain.learn(frames)


@pytest.mark.parametrize("name", ["ppo", "dqn"])
def test_phases_change_nothing_of_what_is_learned(name):
    factory = KINDS[name]
    trial = factory({}, 3)
    for _ in range(3):
        metrics = trial.train_phase(silent)
        random.random(), np.random.random(), torch.rand(1)  # what else the process draws is nothing to a trial
    if name == "dqn":  # `learn` counts its exploration by its own length
        factory = SB3(**{**vars(factory), "total_frames": metrics["frames"]})
        trial = factory({}, 3)
        while trial.model.num_timesteps < metrics["frames"]:
            trial.train_phase(silent)
    plain = same_games(factory, 3, metrics["frames"])
    assert plain.num_timesteps == trial.model.num_timesteps == metrics["frames"]
    own = torch.cat([w.flatten() for w in plain.policy.state_dict().values()])
    torch.testing.assert_close(weights(trial), own, rtol=0, atol=0)
    trial.close()


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_problem_learns_scores_and_goes_on_from_a_checkpoint(name, tmp_path):
    factory, seen = KINDS[name], []
    first, second = factory({}, 0), factory({}, 0)
    metrics = first.train_phase(seen.append)
    assert metrics["games"] == metrics["episodes"] >= 1
    assert metrics["score"] == pytest.approx(np.mean(list(first.episodes.returns)))
    assert metrics["frames"] >= factory.phase.amount
    assert metrics["updates"] > 0
    first.save(tmp_path)
    second.load(tmp_path)
    torch.testing.assert_close(weights(second), weights(first), rtol=0, atol=0)
    more = second.train_phase(silent)
    assert more["updates"] > metrics["updates"]
    assert more["frames"] > metrics["frames"]
    assert not torch.equal(weights(second), weights(first))
    first.close()
    second.close()


@pytest.mark.parametrize("name", CONTRIB)
def test_algorithms_of_contrib_go_by_their_names(name, tmp_path):
    pytest.importorskip("sb3_contrib")
    env, hyperparameters = CONTRIB[name]
    factory = SB3(name, env, Budget(frames=32), hyperparameters, min_games=1)
    first, second = factory({}, 0), factory({}, 1)
    metrics = first.train_phase(silent)
    first.save(tmp_path)
    second.load(tmp_path)
    assert second.train_phase(silent)["updates"] > metrics["updates"] > 0
    first.close()
    second.close()


def test_updates_are_those_that_sb3_counts_epochs_of_ppos():
    epochs = {**SMALL_PPO, "batch_size": 8, "n_epochs": 3}  # of four steps of the optimiser each
    trial = ppo(phase=Budget(updates=6), hyperparameters=epochs)({}, 0)
    metrics = trial.train_phase(silent)
    assert (metrics["updates"], metrics["frames"]) == (6, 2 * 32)
    trial.close()


def test_scores_are_of_the_games_that_ended_in_the_phase_in_raw_rewards():
    trial = ppo(normalize=True, min_games=12, score_window=20, phase=Budget(episodes=4))({}, 0)
    ended = 0
    for _ in range(2):
        metrics = trial.train_phase(silent)
        played = list(trial.episodes.returns)[-int(metrics["games"]) :]
        assert metrics["games"] >= 12
        assert metrics["score"] == metrics["episode_length"] == pytest.approx(np.mean(played))  # CartPole pays 1 a step
        assert metrics["returns"] == played[-10:]
        ended += metrics["games"]
        assert metrics["episodes"] == ended
    trial.close()


LIFE, CLIP = (f"stable_baselines3.common.atari_wrappers:{name}" for name in ("EpisodicLifeEnv", "ClipRewardEnv"))
CLIP_OF_GYMNASIUM = {"gymnasium.wrappers:ClipReward": {"min_reward": -1, "max_reward": 1}}


@pytest.mark.parametrize("wrappers", [[LIFE], [CLIP], [LIFE, CLIP], [CLIP_OF_GYMNASIUM]])
def test_scores_are_of_whole_games_in_raw_rewards_where_learning_is_of_lives_and_of_clipped_ones(wrappers):
    factory = SB3(
        "PPO",
        "SB3Lives-v0",
        Budget(frames=32),
        SMALL_PPO,
        min_games=1,
        wrappers=wrappers,
    )
    trial, learned = factory({}, 0), []
    played, train = trial.model.rollout_buffer, trial.model.train
    trial.model.train = lambda: (learned.extend([played.rewards.copy(), played.episode_starts.copy()]), train())
    metrics = trial.train_phase(silent)
    assert (metrics["score"], metrics["episode_length"]) == (30.0, 6.0)
    rewards, starts = learned
    assert set(rewards.flatten()) == ({5.0} if wrappers == [LIFE] else {1.0})
    # three lives of a game of six steps, of which SB3 does not see the two that begin the second and the third
    assert starts.sum() == (3 * 8 if LIFE in wrappers else 6)
    trial.close()


def test_progress_shows_life_and_what_it_raises_ends_the_phase(monkeypatch):
    class EnoughError(Exception):
        pass

    monkeypatch.setattr("workbench.algos.rl.sb3.trial.PROGRESS_S", 0.0)
    trial, seen = ppo()({}, 0), []

    def enough(metrics):
        seen.append(metrics)
        if metrics["updates"]:
            raise EnoughError

    with pytest.raises(EnoughError):
        trial.train_phase(enough)
    assert [m["frames"] for m in seen[:3]] == [1, 2, 3]
    assert all("returns" not in m for m in seen)
    trial.close()


class Falters(gymnasium.Wrapper):
    """Fails once, where it has taken the step and not told of it yet."""

    steps = 0

    def step(self, action):
        Falters.steps += 1
        told = self.env.step(action)
        if Falters.steps == 40:
            raise OSError("no answer")
        return told


@pytest.mark.parametrize("ended_by", ["progress", "the game"])
def test_after_a_phase_that_was_cut_short_a_trial_trains_no_more(ended_by, monkeypatch):
    monkeypatch.setattr("workbench.algos.rl.sb3.trial.PROGRESS_S", 0.0)
    monkeypatch.setattr(Falters, "steps", 0)
    trial = ppo(wrappers=[Falters])({}, 0)

    def enough(metrics):
        if ended_by == "progress" and metrics["frames"] == 20:
            raise OSError("enough")

    with pytest.raises(OSError, match="enough" if ended_by == "progress" else "no answer"):
        trial.train_phase(enough)
    with pytest.raises(RuntimeError, match="this trial has failed; start a new one"):
        trial.train_phase(silent)
    trial.close()


def test_a_long_update_shows_life_as_well(monkeypatch):
    monkeypatch.setattr("workbench.algos.rl.sb3.trial.PROGRESS_S", 0.0)
    trial, seen = ppo(hyperparameters={**SMALL_PPO, "n_epochs": 5})({}, 0), []
    trial.train_phase(lambda m: seen.append(m["frames"]))
    assert seen.count(32) == 1 + 5  # after the step, and at each of the update's five
    trial.close()


def test_a_copy_keeps_its_own_hyperparameters_and_takes_statistics_and_weights(tmp_path):
    factory = SB3("SAC", "SB3Goal-v0", Budget(frames=40), OFF, min_games=1)
    donor = factory({"learning_rate": 1e-2}, 0)
    donor.train_phase(silent)
    donor.save(tmp_path)
    copied, fixed = factory({"learning_rate": 1e-4, "gamma": 0.5}, 1), factory({"ent_coef": 0.3}, 2)
    for copy in (copied, fixed):
        copy.load(tmp_path)
        torch.testing.assert_close(weights(copy), weights(donor), rtol=0, atol=0)
        assert copy.model.replay_buffer.pos == donor.model.replay_buffer.pos
    assert copied.model.log_ent_coef.item() == donor.model.log_ent_coef.item()
    assert float(fixed.model.ent_coef_tensor) == pytest.approx(0.3)
    assert len(copied.model.actor.optimizer.state) == len(donor.model.actor.optimizer.state) > 0
    assert copied.model.actor.optimizer.param_groups[0]["lr"] == 1e-4
    assert copied.train_phase(silent)["learning_rate"] == 1e-4
    assert copied.model.gamma == 0.5
    for trial in (donor, copied, fixed):
        trial.close()


def test_replay_buffers_come_back_whole_and_into_another_size_the_newest(tmp_path):
    factory = SB3("DQN", "CartPole-v1", Budget(frames=60), {**OFF, "buffer_size": 50}, min_games=1)
    donor = factory({}, 0)
    donor.train_phase(silent)
    donor.save(tmp_path)
    same, larger, smaller = factory({}, 1), factory({"buffer_size": 80}, 1), factory({"buffer_size": 10}, 1)
    for copy in (same, larger, smaller):
        copy.load(tmp_path)
    theirs, pos = donor.model.replay_buffer, donor.model.replay_buffer.pos
    assert theirs.full
    in_order = np.roll(theirs.observations, -pos, 0)
    np.testing.assert_array_equal(same.model.replay_buffer.observations, theirs.observations)
    assert (same.model.replay_buffer.pos, same.model.replay_buffer.full) == (pos, True)
    np.testing.assert_array_equal(larger.model.replay_buffer.observations[:50], in_order)
    assert (larger.model.replay_buffer.pos, larger.model.replay_buffer.full) == (50, False)
    np.testing.assert_array_equal(smaller.model.replay_buffer.observations, in_order[-10:])
    assert (smaller.model.replay_buffer.pos, smaller.model.replay_buffer.full) == (0, True)
    without = SB3(**{**vars(factory), "keep_replay": False})({}, 0)
    without.train_phase(silent)
    (tmp_path / "without").mkdir()
    without.save(tmp_path / "without")
    empty = factory({}, 1)
    empty.load(tmp_path / "without")
    assert empty.model.replay_buffer.size() == 0


@pytest.mark.parametrize("name", ["dqn", "her"])
def test_a_trial_that_has_played_keeps_none_of_its_own_steps_when_it_loads(name, tmp_path):
    for keep in (True, False):
        factory = SB3(**{**vars(KINDS[name]), "keep_replay": keep})
        first, second = factory({}, 0), factory({}, 1)
        first.train_phase(silent)
        (tmp_path / str(keep)).mkdir()
        first.save(tmp_path / str(keep))
        for _ in range(2):
            second.train_phase(silent)
        second.load(tmp_path / str(keep))
        theirs, own = first.model.replay_buffer, second.model.replay_buffer
        assert own.size() == (theirs.size() if keep else 0)
        if name == "her":  # it draws from games, wherever in the buffer they are
            assert (own.ep_length > 0).sum() == ((theirs.ep_length > 0).sum() if keep else 0)
        for trial in (first, second):
            trial.close()


def test_her_without_its_replay_buffer_waits_for_a_game_before_it_learns_on(tmp_path):
    her = {**OFF, "replay_buffer_class": "HerReplayBuffer", "learning_starts": 0}
    factory = SB3("SAC", "SB3Goal-v0", Budget(frames=40), her, min_games=1, keep_replay=False)
    first, second = factory({}, 0), factory({}, 0)
    updates = first.train_phase(silent)["updates"]
    first.save(tmp_path)
    second.load(tmp_path)
    metrics = second.train_phase(silent)
    assert metrics["frames"] == 80
    assert metrics["updates"] - updates == 40 // 4 - 1  # games are of five steps, rollouts of four
    for trial in (first, second):
        trial.close()


@pytest.mark.parametrize("seed", [0, 1])  # as one that is resumed, and as one that PBT copies
@pytest.mark.parametrize("name", ["dqn", "sac", "her"])
def test_without_its_replay_buffer_a_trial_learns_once_that_holds_learning_starts_steps_again(name, seed, tmp_path):
    factory = SB3(**{**vars(KINDS[name]), "keep_replay": False})
    first, second = factory({}, 0), factory({}, seed)
    before = first.train_phase(silent)
    assert before["updates"] == before["frames"] // 4 - 20 // 4
    first.save(tmp_path)
    second.load(tmp_path)
    after = second.train_phase(silent)
    assert after["updates"] - before["updates"] == (after["frames"] - before["frames"]) // 4 - 20 // 4
    for trial in (first, second):
        trial.close()


def test_a_replay_buffer_too_small_for_learning_starts_is_enough_when_it_is_full():
    factory = SB3("DQN", "CartPole-v1", Budget(frames=60), {**OFF, "buffer_size": 10}, min_games=1)
    trial = factory({}, 0)
    metrics = trial.train_phase(silent)
    assert metrics["updates"] == metrics["frames"] // 4 - 20 // 4
    trial.close()


def drawn(draws, device):
    with draws.lent():
        return [random.random(), np.random.random(), torch.rand(1).item(), torch.rand(1, generator=device).item()]


def test_a_devices_own_generator_is_lent_saved_and_restored_as_the_others_are():
    device = torch.Generator()  # as a GPU's, beside the CPU's
    shared = {"torch": torch.default_generator, "cuda": device}
    mine, other, on_cpu = Draws(shared), Draws(shared), Draws({"torch": torch.default_generator})
    drawn(mine, device)
    saved, before = mine.state(), device.get_state()
    numbers = drawn(mine, device)
    assert torch.equal(device.get_state(), before)  # given back as it was
    other.restore(saved)
    assert drawn(other, device) == numbers
    on_cpu.restore(saved)
    other.restore(on_cpu.state())  # which holds none of a GPU's
    assert drawn(other, device)[:3] == numbers[:3]
    assert set(on_cpu.state()) == {"python", "numpy", "torch"}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_what_is_drawn_on_a_gpu_comes_back(tmp_path):
    factory = SB3(**{**vars(KINDS["sac"]), "device": "cuda"})
    first, second = factory({}, 0), factory({}, 0)
    first.train_phase(silent)
    first.save(tmp_path)
    second.load(tmp_path)
    actions = []
    for trial in (first, second):
        with trial._draws.lent():
            actions.append(torch.rand(3, device="cuda").tolist())
        trial.close()
    assert actions[0] == actions[1]


def test_running_means_come_back(tmp_path):
    donor, copy = KINDS["ppo on several"]({}, 0), KINDS["ppo on several"]({}, 1)
    donor.train_phase(silent)
    donor.save(tmp_path)
    copy.load(tmp_path)
    theirs, own = donor.model.get_vec_normalize_env(), copy.model.get_vec_normalize_env()
    np.testing.assert_array_equal(own.obs_rms.mean, theirs.obs_rms.mean)
    assert own.obs_rms.count == theirs.obs_rms.count
    assert own.ret_rms.var == theirs.ret_rms.var
    assert isinstance(own.ret_rms.var, float | np.ndarray)
    copy.train_phase(silent)


def test_returns_are_normalised_by_the_trials_own_gamma():
    trial = ppo(normalize=True)({"gamma": 0.5}, 0)
    assert trial.model.get_vec_normalize_env().gamma == trial.model.gamma == 0.5
    trial.close()


def test_who_goes_on_from_a_checkpoint_plays_other_games_and_draws_on_only_of_its_own_seed(tmp_path):
    first, same, copied = ppo()({}, 0), ppo()({}, 0), ppo()({}, 1)
    frames, own, seeds = first.train_phase(silent)["frames"], copied._draws.state()["python"], []
    first.save(tmp_path)
    for trial in (same, copied):
        trial.model.env.seed = seeds.append
        trial.load(tmp_path)
    assert seeds == [derived(seed, 2, frames) for seed in (0, 1)]
    assert same._draws.state()["numpy"] == first._draws.state()["numpy"]
    assert same.model._n_updates == copied.model._n_updates == first.model._n_updates > 0
    assert copied._draws.state()["python"] == own
    for trial in (first, same, copied):
        trial.close()


@pytest.mark.parametrize("name", ["ppo", "dqn", "her"])
def test_a_trials_model_is_saved_and_loaded_as_any_of_sb3s(name, tmp_path):
    trial = KINDS[name]({}, 0)
    trial.train_phase(silent)
    trial.model.save(tmp_path / "best.zip")
    loaded = type(trial.model).load(tmp_path / "best.zip", gymnasium.make(trial.settings.env))
    own = torch.cat([w.flatten() for w in loaded.policy.state_dict().values()])
    torch.testing.assert_close(own, weights(trial), rtol=0, atol=0)
    loaded.learn(64)
    assert loaded._current_progress_remaining == pytest.approx(0.0, abs=0.05)  # of these 64 steps, not of the trial's
    trial.close()


def test_a_model_taken_out_plays_as_the_trial_s_own_with_the_means_taken_out_beside_it(tmp_path):
    trial = ppo(normalize=True)({}, 0)
    trial.train_phase(silent)
    own = trial.model.get_vec_normalize_env()
    trial.model.save(tmp_path / "best.zip")
    own.save(tmp_path / "means.pkl")
    env = VecNormalize.load(tmp_path / "means.pkl", DummyVecEnv([lambda: gymnasium.make("CartPole-v1")]))
    env.training = env.norm_reward = False
    seen = np.array([[1.0, 2.0, 0.1, -1.0]])
    assert abs(seen - own.normalize_obs(seen)).min() > 0.1
    np.testing.assert_array_equal(env.normalize_obs(seen), own.normalize_obs(seen))
    values = [
        model.policy.predict_values(model.policy.obs_to_tensor(env.normalize_obs(seen))[0])
        for model in (trial.model, type(trial.model).load(tmp_path / "best.zip"))
    ]
    assert values[0] == values[1]
    trial.close()


def test_exploration_goes_on_from_where_it_was(tmp_path):
    first, second = KINDS["dqn"]({}, 0), KINDS["dqn"]({}, 0)
    first.train_phase(silent)
    first.save(tmp_path)
    second.load(tmp_path)
    model = first.model
    assert second.model.exploration_rate == model.exploration_schedule(model._current_progress_remaining) > 0
    for trial in (first, second):
        trial.close()


def test_a_checkpoint_never_runs_code(tmp_path):
    class Evil:
        def __reduce__(self):
            return (print, ("run",))

    (tmp_path / "trial.pt").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(InvalidInput, match="no checkpoint of PPO can be read"):
        ppo()({}, 0).load(tmp_path)
    torch.save({"counters": "{}", "x": Evil()}, tmp_path / "trial.pt")
    with pytest.raises(InvalidInput, match="no checkpoint of PPO can be read"):
        ppo()({}, 0).load(tmp_path)


def test_checkpoints_of_others_are_refused(tmp_path):
    KINDS["a2c"]({}, 0).save(tmp_path)
    with pytest.raises(InvalidInput, match=r"is of A2C, not of PPO"):
        ppo()({}, 0).load(tmp_path)
    with pytest.raises(InvalidInput, match=r"another network.*policy_kwargs out of the search space"):
        KINDS["a2c"]({"policy_kwargs.net_arch": 16}, 0).load(tmp_path)


def test_training_that_blows_up_is_said_to_diverge():
    trial = ppo(hyperparameters={**SMALL_PPO, "max_grad_norm": 1e30})({"learning_rate": 1e30}, 0)
    with pytest.raises(FloatingPointError, match=r"diverged.*smaller learning rate"):
        train(trial, 5)


@pytest.mark.parametrize("algorithm", ["PPO", "SAC"])
@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("obs", "an observation"),
        ("large", "an observation"),
        ("reset", "an observation"),
        ("reward", "a reward"),
        ("large reward", "a reward"),
    ],
)
@pytest.mark.filterwarnings("error:overflow")
def test_an_environment_that_gives_no_number_is_named(algorithm, where, told):
    settings = SMALL_PPO if algorithm == "PPO" else OFF
    trial = SB3(algorithm, "SB3Broken-v0", Budget(frames=64), settings, min_games=1, env_kwargs={"where": where})({}, 0)
    with pytest.raises(InvalidInput, match=rf"SB3Broken-v0 has given {told} that is NaN or infinite"):
        trial.train_phase(silent)
    trial.close()


def test_a_game_given_actions_that_are_no_numbers_is_not_to_blame():
    trial = KINDS["td3 with noise"]({}, 0)
    trial.train_phase(silent)
    with torch.no_grad():
        next(trial.model.actor.parameters()).fill_(np.nan)
    with pytest.raises(FloatingPointError, match=r"training diverged: a weight is no longer a number"):
        trial.train_phase(silent)
    trial.close()


@pytest.mark.parametrize(
    ("algorithm", "actions", "all_of_them"),
    [
        ("PPO", spaces.Discrete(3, start=-1), {(-1,), (0,), (1,)}),
        ("DQN", spaces.Discrete(2, start=5), {(5,), (6,)}),
        ("PPO", spaces.MultiDiscrete([2, 2], start=[1, -1]), {(1, -1), (1, 0), (2, -1), (2, 0)}),
        ("PPO", spaces.MultiDiscrete([2, 2], dtype=np.int32), {(0, 0), (0, 1), (1, 0), (1, 1)}),
        ("DQN", spaces.Discrete(2, dtype=np.int8), {(0,), (1,)}),
    ],
)
def test_actions_are_counted_from_where_the_environment_counts_them_and_in_its_numbers(algorithm, actions, all_of_them):
    settings = SMALL_PPO if algorithm == "PPO" else OFF
    given = {"min_games": 1, "env_kwargs": {"actions": actions}}
    trial = SB3(algorithm, "SB3Shifted-v0", Budget(frames=64), settings, **given)({}, 0)
    trial.train_phase(silent)
    assert trial.model.env.envs[0].unwrapped.seen == all_of_them
    trial.close()


def test_words_stand_for_the_objects_that_sb3_wants():
    factory = ppo(
        hyperparameters={
            **SMALL_PPO,
            "learning_rate": "lin_0.01",
            "policy_kwargs": {"activation_fn": "ReLU", "optimizer_class": "torch.optim:SGD"},
        },
        total_frames=128,
    )
    trial = factory({"policy_kwargs.net_arch": 4}, 0)
    policy = trial.model.policy
    assert isinstance(policy.mlp_extractor.policy_net[1], torch.nn.ReLU)
    assert policy.mlp_extractor.policy_net[0].out_features == 4
    assert isinstance(policy.optimizer, torch.optim.SGD)
    rates = [trial.train_phase(silent)["learning_rate"] for _ in range(2)]
    assert rates == pytest.approx([0.005, 0.0])  # after half of the trial, and at its end
    trial.close()


def test_explorations_fall_over_the_whole_trial_and_not_over_a_phase():
    dqn = {**OFF, "exploration_fraction": 0.5, "exploration_final_eps": 0.0}
    trial = SB3("DQN", "CartPole-v1", Budget(frames=100), dqn, total_frames=400, min_games=1)({}, 0)
    rates = [trial.train_phase(silent)["exploration_rate"] for _ in range(3)]
    assert rates == pytest.approx([0.5, 0.0, 0.0], abs=0.05)
    trial.close()


REFUSED = {
    "algorithm": (("PP0", "CartPole-v1", {}), r"unknown algorithm 'PP0': did you mean 'PPO'"),
    "hyperparameter": (("PPO", "CartPole-v1", {"lr": 1}), "hyperparameter of PPO 'lr'; known: batch_size.*, vf_coef$"),
    "another's": (("PPO", "CartPole-v1", {"buffer_size": 9}), r"hyperparameter of PPO 'buffer_size'"),
    "of the policy": (
        ("PPO", "CartPole-v1", {"policy_kwargs": {"arch": 1}}),
        r"policy_kwargs hyperparameter.*net_arch",
    ),
    "dotted": (("PPO", "CartPole-v1", {"policy_kwargs.arch": 1}), r"policy_kwargs hyperparameter of PPO 'arch'"),
    "schedule": (("PPO", "CartPole-v1", {"learning_rate": "lin_x"}), r"write for example 'lin_0.001'"),
    "class": (("PPO", "CartPole-v1", {"policy_kwargs": {"activation_fn": "Rulu"}}), r"'my_module:Rulu'"),
    "actions": (("SAC", "CartPole-v1", {}), r"SAC cannot play CartPole-v1.*only supports.*Box.*Discrete"),
    "value": (
        ("PPO", "CartPole-v1", {"batch_size": 1}),
        r"PPO cannot play CartPole-v1 with these settings.*batch_size",
    ),
    "environment": (("PPO", "CartPol-v1", {}), r"environment CartPol-v1 cannot be made.*"),
    "class of an environment": (("PPO", Goal, {}), r"gymnasium.register\('Mine-v0', MyEnv\)"),
    "text": (("PPO", "SB3Text-v0", {}), r"PPO cannot play SB3Text-v0.*put wrappers=\['gymnasium"),
    "table": (("PPO", "CartPole-v1", 3), r"hyperparameters is a table"),
}


def test_a_wrapper_s_running_means_are_refused_and_vecnormalize_s_taken():
    with pytest.raises(InvalidInput, match=r"NormalizeReward of environment CartPole-v1 keeps running means"):
        ppo(wrappers=["gymnasium.wrappers:NormalizeReward"])
    assert ppo(normalize=True).normalize


@pytest.mark.parametrize(
    ("space", "shown", "within"),
    [
        (spaces.Discrete(3), 2, True),
        (spaces.Discrete(3), np.int64(-1), False),
        (spaces.Discrete(3), 3, False),
        (spaces.MultiDiscrete([2, 3]), np.array([1, 2]), True),
        (spaces.MultiDiscrete([2, 3]), np.array([2, 1]), False),
        (spaces.MultiBinary(2), np.array([0, 1]), True),
        (spaces.MultiBinary(2), np.array([0, 2]), False),
        (spaces.Box(-1, 1, (2,)), np.array([5.0, 0.0]), True),
    ],
)
@pytest.mark.parametrize("inside", [False, True])
def test_numbers_that_are_not_of_their_space_are_told(space, shown, within, inside):
    env = Picture()
    env.observation_space = spaces.Dict(part=space) if inside else space
    env.reset = lambda **settings: ({"part": shown} if inside else shown, {})
    game = counted(env, Episodes(1, 1), "Mine-v0")
    if within:
        game.reset()
        return
    with pytest.raises(InvalidInput, match=r"what Mine-v0 gives cannot be taken \(ValueError: an observation .*, of "):
        game.reset()


FLATTEN = "gymnasium.wrappers:FlattenObservation"
UNREAD = {
    "several rows": (spaces.MultiDiscrete([[2, 3], [2, 2]]), r"MultiDiscrete.*, and SB3 reads .* of one axis"),
    "a number": (spaces.Box(0, 1, ()), r"Box\(0.0, 1.0, \(\), float32\), and SB3 reads Box of one axis at least"),
    "a number in a dict": (spaces.Dict(a=spaces.Box(0, 1, ())), r"Box.* within a Dict, and"),
    "one of two": (spaces.OneOf([spaces.Discrete(2), spaces.Box(0, 1, (2,))]), r"OneOf"),
    "a dict in a dict": (spaces.Dict(a=spaces.Dict(b=spaces.Discrete(2))), r"Dict\('b'.* within a Dict, and"),
    "counted from 2": (spaces.Discrete(4, start=2), r"Discrete\(4, start=2\), .* counted from 0"),
    "each from its own": (spaces.MultiDiscrete([2, 2], start=[0, 1]), r"MultiDiscrete.* counted from 0"),
    "normalised": (spaces.Discrete(4), r"Discrete\(4\), and SB3 reads Box with normalize=True, alone"),
}


def refused_and_played_flattened(says, **given):
    with pytest.raises(InvalidInput, match=says) as caught:
        SB3("PPO", "SB3Spaces-v0", **given)
    assert "\n" not in str(caught.value)
    trial = SB3("PPO", "SB3Spaces-v0", Budget(frames=32), min_games=1, wrappers=[FLATTEN], **given)({}, 0)
    assert trial.train_phase(silent)["games"] > 1
    trial.close()


@pytest.mark.parametrize("kind", UNREAD)
@pytest.mark.filterwarnings("ignore")
def test_observations_that_sb3_cannot_read_are_refused_with_the_wrapper_that_helps(kind):
    space, line = UNREAD[kind]
    given = {"hyperparameters": SMALL_PPO, "env_kwargs": {"shown": space}, "normalize": kind == "normalised"}
    says = f"^PPO cannot play SB3Spaces-v0: it shows {line}.*: put .*{FLATTEN}"
    refused_and_played_flattened(says, **given)


@pytest.mark.parametrize("space", [spaces.Box(0, 1, (0,)), spaces.Sequence(spaces.Discrete(2))])
def test_observations_that_nothing_flattens_ask_for_a_wrapper_of_one_s_own(space):
    with pytest.raises(InvalidInput, match=r"it shows (Box|Sequence).*: put a wrapper .*'my_module:MyWrapper'\]$"):
        SB3("PPO", "SB3Spaces-v0", env_kwargs={"shown": space})


@pytest.mark.parametrize(
    "actions",
    [
        spaces.MultiDiscrete([[2, 3], [2, 2]]),
        spaces.MultiBinary([2, 2]),
        spaces.Box(0, 3, (2,), np.int64),
        spaces.Dict(a=spaces.Discrete(2)),
    ],
)
def test_actions_that_sb3_does_not_give_are_refused_with_those_that_it_does(actions):
    told = r"^PPO cannot play SB3Spaces-v0: it has actions .*, and SB3 plays Box of floats, .*'my_module:MyWrapper'\]$"
    with pytest.raises(InvalidInput, match=told) as caught:
        SB3("PPO", "SB3Spaces-v0", env_kwargs={"actions": actions})
    assert "\n" not in str(caught.value)


SMALL = spaces.Box(0, 255, (35, 60, 3), np.uint8)


@pytest.mark.parametrize("space", [SMALL, spaces.Box(0, 255, (1, 7, 7), np.uint8), spaces.Dict(seen=SMALL)])
def test_pictures_too_small_for_sb3_s_convolutions_are_refused_before_a_trial_with_what_reads_them(space):
    given = {"hyperparameters": {**SMALL_PPO, "policy_kwargs": {}}, "env_kwargs": {"shown": space}}
    says = rf"shows pictures of shape \(.*\), and SB3's network for pictures reads 36 pixels a side .*: put .*{FLATTEN}"
    refused_and_played_flattened(says, **given)
    if not isinstance(space, spaces.Dict):
        SB3("PPO", "SB3Spaces-v0", policy="MlpPolicy", **given)
        own = "stable_baselines3.common.torch_layers:FlattenExtractor"
        given["hyperparameters"]["policy_kwargs"] = {"features_extractor_class": own}
        SB3("PPO", "SB3Spaces-v0", Budget(frames=32), min_games=1, **given)({}, 0).close()


def test_the_smallest_pictures_that_sb3_s_convolutions_read_are_taken():
    space = spaces.Box(0, 255, (36, 60, 3), np.uint8)
    given = {"hyperparameters": {**SMALL_PPO, "policy_kwargs": {}}, "env_kwargs": {"shown": space}}
    SB3("PPO", "SB3Spaces-v0", Budget(frames=32), min_games=1, **given)({}, 0).close()


def test_an_algorithm_that_reads_vectors_alone_is_told_with_the_wrapper_that_makes_one():
    with pytest.raises(InvalidInput, match=r"ARS has no policy that reads Dict.*, only .*: put .*:FlattenObservation"):
        SB3("ARS", "SB3Goal-v0")


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_one_line(case):
    (algorithm, env, hyperparameters), line = REFUSED[case]
    with pytest.raises(InvalidInput, match=line) as caught:
        SB3(algorithm, env, hyperparameters=hyperparameters)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("algorithm", "hyperparameters"),
    [
        ("RecurrentPPO", {"n_steps": 33, "batch_size": 32}),
        ("RecurrentPPO", {"n_steps": 32, "batch_size": 1}),
        ("MaskablePPO", {"n_steps": 65, "batch_size": 64}),
        ("A2C", {"n_steps": 1, "normalize_advantage": True}),
    ],
)
def test_a_batch_of_one_that_would_be_divided_by_its_deviation_is_refused(algorithm, hyperparameters):
    if algorithm != "A2C":
        pytest.importorskip("sb3_contrib")
    with pytest.raises(InvalidInput, match=rf"{algorithm} divides advantages.*one stands alone.*other sizes"):
        SB3(algorithm, "CartPole-v1", hyperparameters=hyperparameters)
    SB3(algorithm, "CartPole-v1", hyperparameters={**hyperparameters, "normalize_advantage": False})
    fitting = {"n_steps": 32} if algorithm == "A2C" else {"n_steps": 32, "batch_size": 32}
    SB3(algorithm, "CartPole-v1", hyperparameters={**hyperparameters, **fitting})


def test_a_hyperparameter_in_the_wrong_place_is_told_where_it_stands():
    with pytest.raises(InvalidInput, match=r"no setting 'n_steps'.*hyperparameters={'n_steps': 128}"):
        SB3("PPO", "CartPole-v1", n_steps=128)
    with pytest.raises(InvalidInput, match=r"no setting 'total_timesteps': phase=Budget\(frames=…\) is .* n_phases"):
        SB3("PPO", "CartPole-v1", total_timesteps=100_000)
    with pytest.raises(InvalidInput, match=r"unknown setting of SB3 'n_env': did you mean .*'n_envs'"):
        SB3("PPO", "CartPole-v1", n_env=2)


@pytest.mark.parametrize("name", ["n_envs", "normalize"])
def test_a_setting_in_the_place_of_a_hyperparameter_is_told_where_it_stands(name):
    where = rf"{name} is no hyperparameter but SB3's own setting, the same for all trials: SB3\(…, {name}=…\)"
    with pytest.raises(InvalidInput, match=where):
        ppo(hyperparameters={name: True})
    with pytest.raises(InvalidInput, match=where):
        check_hyperparameters(FullRuns({name: Choice([1, 2])}, 2, 2), ppo())


@pytest.mark.parametrize(
    ("algorithm", "given", "name"),
    [
        ("PPO", {"batch_size": 52.4}, "batch_size"),
        ("DQN", {"train_freq": 2.5}, "train_freq"),  # an int | tuple
        ("RecurrentPPO", {"batch_size": 64.0}, "batch_size"),  # an int | None
        ("RecurrentPPO", {"policy_kwargs": {"lstm_hidden_size": 8.5}}, "lstm_hidden_size"),
    ],
)
def test_a_fraction_of_what_is_counted_is_refused_by_its_name(algorithm, given, name):
    if algorithm == "RecurrentPPO":
        pytest.importorskip("sb3_contrib")
    with pytest.raises(InvalidInput, match=rf"^{algorithm} needs {name} a whole number, got [\d.]+: .*step=1"):
        SB3(algorithm, "CartPole-v1", hyperparameters=given)


def test_a_fraction_of_what_is_counted_is_refused_of_a_space_and_a_trial():
    needs = "PPO needs n_epochs a whole number"
    with pytest.raises(InvalidInput, match=rf"a trial of {{'n_epochs': .*}} could not begin \({needs}"):
        check_hyperparameters(FullRuns({"n_epochs": Uniform(2, 10)}, 2, 2), ppo())
    with pytest.raises(InvalidInput, match=needs):
        ppo()({"n_epochs": 2.5}, 0)
    check_hyperparameters(FullRuns({"n_epochs": Uniform(2, 10, step=1), "gamma": Uniform(0.9, 1)}, 2, 2), ppo())


@pytest.mark.filterwarnings("error")
def test_batches_that_do_not_divide_what_is_played_are_told_by_trials_alone():
    with pytest.warns(UserWarning, match="You have specified a mini-batch size of 48"):
        ppo(hyperparameters={**SMALL_PPO, "n_steps": 64, "batch_size": 48})({}, 0).close()
    check_hyperparameters(FullRuns({"batch_size": Choice([32, 48])}, 2, 2), ppo(hyperparameters={"n_steps": 64}))


def test_what_is_no_word_is_refused():
    with pytest.raises(InvalidInput, match=r"SB3 needs algorithm a word, got \['PPO'\]"):
        SB3(["PPO"], "CartPole-v1")
    with pytest.raises(InvalidInput, match=r"SB3 needs policy a word, or None, got 3"):
        SB3("PPO", "CartPole-v1", policy=3)


def test_what_is_neither_true_nor_false_is_refused():
    with pytest.raises(InvalidInput, match="SB3 needs normalize true or false, got 'no'"):
        SB3("PPO", "CartPole-v1", normalize="no")


def test_libraries_that_are_missing_are_one_line(monkeypatch):
    def missing(module):
        raise ModuleNotFoundError(module)

    settings_module.algorithm_class.cache_clear()
    monkeypatch.setattr(settings_module, "import_module", missing)
    with pytest.raises(InvalidInput, match=r"needs Stable-Baselines3: pip install 'rl-workbench\[sb3\]'"):
        SB3("PPO", "CartPole-v1")
    monkeypatch.setattr(
        settings_module,
        "import_module",
        lambda name: stable_baselines3 if name == "stable_baselines3" else missing(name),
    )
    with pytest.raises(InvalidInput, match=r"TQC is of sb3-contrib, which is not installed: pip install sb3-contrib"):
        SB3("TQC", "Pendulum-v1")
    settings_module.algorithm_class.cache_clear()


def test_games_that_never_end_are_an_error_that_says_what_to_set(monkeypatch):
    monkeypatch.setattr("workbench.algos.rl.sb3.trial.ATARI_EPISODE_FRAMES", 50)
    gymnasium.register("SB3Endless-v0", lambda: gymnasium.wrappers.TransformReward(Picture(), float))
    monkeypatch.setattr(Picture, "step", lambda self, action: (self.observation_space.sample(), 0.0, False, False, {}))
    trial = SB3("PPO", "SB3Endless-v0", Budget(frames=32), {**SMALL_PPO, "policy_kwargs": {}})({}, 0)
    with pytest.raises(
        InvalidInput, match=r"no game of SB3Endless-v0 has ended.*env_kwargs={'max_episode_steps': 1000}"
    ):
        trial.train_phase(silent)


def test_what_dqn_counts_to_its_next_target_and_explores_by_comes_back(tmp_path):
    factory = KINDS["dqn"]
    first, second, third = factory({}, 0), factory({}, 0), factory({}, 0)
    first.train_phase(silent)
    first.save(tmp_path)
    for trial in (second, third):
        trial.load(tmp_path)
    assert second.model._n_calls == first.model._n_calls > 0
    fresh = factory({}, 0)
    drawn = [[int(trial.model.action_space.sample()) for _ in range(40)] for trial in (second, third, fresh)]
    assert drawn[0] == drawn[1] != drawn[2]  # not the first actions again
    for trial in (first, second, third, fresh):
        trial.close()


def test_n_step_returns_do_not_run_from_a_game_cut_off_into_the_next(tmp_path):
    """Of the last row kept the return is its own reward and no more: what follows is another game's."""
    hyperparameters = {"n_steps": 5, "learning_starts": 10, "buffer_size": 2000, "gamma": 1.0}
    factory = SB3("DQN", "CartPole-v1", Budget(frames=120), hyperparameters, min_games=1)
    first, second = factory({}, 0), factory({}, 0)
    first.train_phase(silent)
    first.save(tmp_path)
    second.load(tmp_path)
    seam = second.model.replay_buffer.pos - 1
    second.train_phase(silent)
    sample = second.model.replay_buffer._get_samples(np.array([seam]))
    assert sample.rewards.tolist() == [[1.0]]
    for trial in (first, second):
        trial.close()


def test_environments_of_a_trial_that_does_not_come_about_are_closed():
    Simulator.running.clear()
    with pytest.raises(InvalidInput, match="the port is taken"):
        SB3("PPO", "WorkbenchSimulator-v0", n_envs=2, env_kwargs={"most": 1})
    assert Simulator.running == []
    no_layer = {"policy_kwargs": {"net_arch": [-1]}}
    with pytest.raises(InvalidInput, match="PPO cannot play WorkbenchSimulator-v0 with these settings"):
        SB3("PPO", "WorkbenchSimulator-v0", hyperparameters=no_layer)({}, 0)
    assert Simulator.running == []
