"""Emulators that are used again: the next trial sees what it would see on new ones, and nobody else's games."""

import subprocess
import sys

import numpy as np
import pytest

from workbench.algos.rl import emulators
from workbench.algos.rl.envs import make_envs
from workbench.algos.rl.games import Rules, find_game

STICKY = Rules(max_episode_frames=60, repeat_action_probability=0.25)


@pytest.fixture(autouse=True)
def none_kept(monkeypatch):
    monkeypatch.setattr(emulators, "_kept", [])
    monkeypatch.setattr(emulators, "_playing", 0)
    monkeypatch.setattr(emulators, "_most_playing", 0)


def played(seed, n_steps, n_envs):
    envs = make_envs(find_game("Pong"), n_envs, seed, STICKY, n_threads=2)
    env, seen, rng = envs._env, [], np.random.default_rng(seed)
    for _ in range(n_steps):
        step = envs.recv()
        seen.append((step.obs, step.rewards, step.terminated, step.truncated, step.started))
        envs.send(rng.integers(0, 6, len(step.env_ids)))
    envs.close()
    envs.close()
    return env, seen


def test_used_ones_play_as_new_ones_do_however_they_were_left():
    new, expected = played(2, 20, n_envs=1)
    emulators._kept.clear()
    for left_after in (0, 15, 16):  # games are cut off at step 15, reset at 16
        used, _ = played(1, left_after, n_envs=1)
        again, seen = played(2, 20, n_envs=1)
        assert again is used is not new
        for one, other in zip(seen, expected, strict=True):
            for part, same in zip(one, other, strict=True):
                np.testing.assert_array_equal(part, same)


def test_only_those_of_the_same_rules_and_process_are_taken(monkeypatch):
    emulators.keep_emulators(first := opened())
    assert opened(frames=64) is not first
    assert opened(rom="breakout") is not first
    with monkeypatch.context() as patch:
        patch.setattr(emulators.os, "getpid", lambda: -1)
        assert opened() is not first
    assert opened() is first


def test_two_at_once_have_two():
    one, two = (make_envs(find_game("Pong"), 1, 0, STICKY) for _ in range(2))
    assert one._env is not two._env
    one.close()
    two.close()
    assert len(emulators._kept) == 2


def opened(n_envs=1, frames=60, batch_size=None, rom="pong"):
    """Emulators as `make_envs` opens them, but without seeds, which take as long again."""
    rules = {"max_num_frames_per_episode": frames, "batch_size": batch_size or n_envs, "num_threads": 1}
    return emulators.open_emulators(rom, n_envs, **rules)


def test_few_are_kept_the_newest_and_none_that_play_on_by_themselves(monkeypatch):
    monkeypatch.setattr(emulators, "MOST_KEPT", 1)
    for frames in (60, 61):
        emulators.keep_emulators(last := opened(frames=frames))
    assert [env for _, env in emulators._kept] == [last]
    emulators.keep_emulators(opened(2, batch_size=1))
    assert [env for _, env in emulators._kept] == [last]
    emulators.keep_emulators(two := opened(2))
    assert [env for _, env in emulators._kept] == [two]  # that many have played at once, and they fill it


def test_as_many_are_kept_as_have_played_at_once(monkeypatch):
    monkeypatch.setattr(emulators, "MOST_KEPT", 1)
    both = [opened(2), opened()]
    for env in both:
        emulators.keep_emulators(env)
    assert [env for _, env in emulators._kept] == both
    assert [opened(2), opened()] == both
    for env in both:
        emulators.keep_emulators(env)
    emulators.keep_emulators(last := opened(frames=61))
    assert [env for _, env in emulators._kept] == [both[1], last]


def test_none_outlive_the_interpreter():
    script = (
        "import atexit; atexit.register(lambda: print(len(emulators._kept)))\n"  # the first registered runs last
        "from workbench.algos.rl import emulators\n"
        "emulators.keep_emulators(emulators.open_emulators('pong', 1, batch_size=1, num_threads=1))\n"
        "print(len(emulators._kept))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("1\n0\n", "")
