"""A phase's score is of whole games that ended in it, in every system; phases wait for such games, but not for ever."""

import json
import math
from dataclasses import replace

import gymnasium
import numpy as np
import pytest

from tests.support import silent
from workbench.algos.rl.a3c.trial import A3C
from workbench.algos.rl.ba3c.trial import BA3C
from workbench.algos.rl.episodes import Episodes
from workbench.algos.rl.ga3c.trial import GA3C
from workbench.algos.rl.hts.trial import HTS
from workbench.core.budget import Budget
from workbench.core.errors import InvalidInput

SHORT = Budget(frames=100)
SYSTEMS = {
    "ga3c": GA3C("CartPole-v1", SHORT, n_agents=4),
    "ga3c in turn": GA3C("CartPole-v1", SHORT, n_agents=4, lockstep=True),
    "a3c": A3C("CartPole-v1", SHORT, n_agents=4, t_max=20),
    "a3c in turn": A3C("CartPole-v1", SHORT, n_agents=4, t_max=20, lockstep=True),
    "hts": HTS("CartPole-v1", SHORT, n_agents=4, n_executors=2, n_actors=2, device="cpu"),
    "hts baseline": HTS("CartPole-v1", SHORT, n_agents=4, n_executors=2, concurrent=False, device="cpu"),
    "ba3c": BA3C("CartPole-v1", SHORT, n_ranks=1, n_agents=4, evaluate_every=None, device="cpu"),
}


class Endless(gymnasium.Env):
    """A game that goes on for ever, or ends after so many steps."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), 1.0, False, False, {}


gymnasium.register("WorkbenchEndless-v0", Endless)


@pytest.fixture(params=SYSTEMS)
def settings(request):
    return SYSTEMS[request.param]


class EnoughError(Exception):
    pass


@pytest.mark.parametrize("name", ["ga3c in turn", "hts", "ba3c"])
def test_games_that_were_stopped_with_a_phase_are_not_missed_by_the_rest_of_it(name, tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.algos.rl.trial.PROGRESS_S", 1e-4)
    settings = replace(SYSTEMS[name], game="WorkbenchEndless-v0", max_episode_frames=90, min_games=4)
    stopped, resumed = settings({}, 0), settings({}, 0)

    def stop(metrics):
        if metrics["frames"] > 200:  # of the 360 in which four agents' first games end
            raise EnoughError

    with pytest.raises(EnoughError):
        stopped.train_phase(stop)
    assert stopped.finished == 0
    stopped.save(tmp_path)
    stopped.close()
    resumed.load(tmp_path)
    assert resumed.train_phase(silent)["score"] == 90
    resumed.close()


def test_finished_games_come_back_as_they_were_saved():
    one, other = Episodes(2, 3), Episodes(2, 3)
    one.merge([1.0, 2.0], [5, 6])
    other.merge([9.0], [9])
    other.load_state_dict(json.loads(json.dumps(one.state_dict())))
    assert (other.finished, other.since(0)) == (2, ([1.0, 2.0], [5, 6]))
    assert list(other.returns) == [1.0, 2.0]


def test_a_phases_score_is_the_mean_of_the_games_that_ended_in_it(settings):
    trial = settings({}, 0)
    ended = 0
    for _ in range(2):
        metrics = trial.train_phase(silent)
        played = list(trial.episodes.returns)[ended:]
        assert metrics["games"] == len(played) >= 10
        assert metrics["score"] == pytest.approx(np.mean(played))
        assert metrics["episode_length"] == metrics["score"]  # CartPole pays 1 a step
        assert metrics["returns"] == played[-10:]
        ended += len(played)
        assert metrics["episodes"] == ended < 100
    trial.close()


def test_a_phase_goes_on_until_enough_games_have_ended(settings):
    trial = replace(settings, phase=Budget(frames=50), min_games=12)({}, 0)
    metrics = trial.train_phase(silent)
    trial.close()
    assert metrics["games"] >= 12
    assert metrics["frames"] > 2 * 50


def test_only_the_last_games_of_a_phase_count_if_there_are_many(settings):
    trial = replace(settings, score_window=3, min_games=8)({}, 0)
    metrics = trial.train_phase(silent)
    trial.close()
    assert metrics["games"] >= 8
    assert metrics["returns"] == list(trial.episodes.returns)
    assert metrics["score"] == pytest.approx(np.mean(metrics["returns"]))
    assert len(metrics["returns"]) == 3


@pytest.mark.parametrize("name", ["ga3c", "hts", "ba3c"])
def test_seconds_wait_for_games_as_well(name):
    trial = replace(SYSTEMS[name], phase=Budget(seconds=1e-3))({}, 0)
    assert trial.train_phase(silent)["games"] >= 10
    trial.close()


def test_progress_says_nothing_of_part_of_a_game(settings, monkeypatch):
    monkeypatch.setattr("workbench.algos.rl.trial.PROGRESS_S", 1e-4)
    trial, seen = replace(settings, min_games=5)({}, 0), []
    trial.train_phase(seen.append)
    first, second = len(seen), trial.train_phase(seen.append)
    trial.close()
    for metrics in seen:
        assert ("score" in metrics) == ("episode_length" in metrics) == (metrics["episodes"] > 0)
        assert "returns" not in metrics
    if getattr(settings, "lockstep", False):
        assert seen[0]["episodes"] == 0  # there was something to leave out
    assert "score" in seen[first]  # of the phase before, as long as this one has no game
    assert all(metrics["games"] <= second["games"] for metrics in seen[first:])


PHASES = [Budget(frames=50), Budget(updates=2), Budget(episodes=3), Budget(seconds=0.01)]
# what waits for games is one for all systems, and what counts as spent another: each system, and each unit of a phase
EACH = [(name, PHASES[0]) for name in SYSTEMS] + [("ga3c", phase) for phase in PHASES[1:]]


@pytest.mark.parametrize(("name", "phase"), EACH)
def test_games_that_never_end_are_an_error_that_says_what_to_set(name, phase, monkeypatch):
    monkeypatch.setattr("workbench.algos.rl.games.ATARI_EPISODE_FRAMES", 30)  # taken where nothing limits a game
    endless = replace(SYSTEMS[name], game="WorkbenchEndless-v0", phase=phase)
    trial = endless({}, 0)
    with pytest.raises(
        InvalidInput, match=r"no game of WorkbenchEndless-v0 has ended in \d+ frames.*max_episode_frames"
    ):
        trial.train_phase(silent)
    trial.close()
    limited = replace(endless, max_episode_frames=30, min_games=2)({}, 0)
    metrics = limited.train_phase(silent)
    limited.close()
    assert metrics["score"] == 30


def test_the_limit_that_can_be_reached_is_never_taken_for_endless():
    """Whoever plays how much: in so many frames at least one of the games must end."""
    trial = GA3C("WorkbenchEndless-v0", Budget(updates=3), n_agents=5, n_groups=3, max_episode_frames=40, min_games=20)
    made = trial({}, 0)
    assert made.train_phase(silent)["games"] >= 20
    made.close()


@pytest.mark.parametrize("least", [0, -1, 2.5, math.nan, "ten"])
def test_min_games_is_checked(least):
    with pytest.raises(InvalidInput, match="GA3C needs min_games a whole number from 1"):
        GA3C("CartPole-v1", min_games=least)


def test_games_that_never_ended_are_no_part_of_those_that_follow():
    """Closed environments begin anew: what an agent had by then is not its next game's."""
    trial = SYSTEMS["ga3c in turn"]({}, 0)
    trial.train_phase(lambda metrics: None)
    trial.close()
    before = trial.episodes.finished
    trial.train_phase(lambda metrics: None)
    returns, lengths = trial.episodes.since(before)
    assert returns == lengths  # CartPole gives one a step
    assert not trial.episodes._running.any() or (trial.episodes._running <= trial.episodes._steps).all()
    trial.close()
    assert not trial.episodes._running.any()
    assert not trial.episodes._steps.any()
