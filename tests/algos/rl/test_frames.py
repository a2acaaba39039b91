"""Frames made here beside the library's, on real emulators: at most one grey level apart, at resets too."""

import numpy as np
import pytest
import torch

from workbench.algos.rl import envs, frames
from workbench.algos.rl.envs import make_envs
from workbench.algos.rl.frames import SIDE, AreaProduct, Frames, overlaps, own_frames_pay
from workbench.algos.rl.games import Rules, find_game

needs_instructions = pytest.mark.skipif(not own_frames_pay(), reason="this processor has no 8-bit dot products")


def streams(game, rules, n_steps, batch_size=None):
    """Play each agent by actions of its own; give what each saw, and whether its games began and ended there."""
    env = make_envs(game, 2, 3, rules, batch_size=batch_size, n_threads=2)
    chosen = np.random.default_rng(0).integers(0, game.n_actions, (2, 10 * n_steps))
    seen = [[] for _ in range(2)]
    while min(map(len, seen)) < n_steps:
        step = env.recv()
        for k, i in enumerate(step.env_ids):
            seen[i].append((step.obs[k], step.rewards[k], step.terminated[k], step.truncated[k], step.started[k]))
        env.send(np.array([chosen[i, min(len(seen[i]), 10 * n_steps - 1)] for i in step.env_ids]))
    env.close()
    return [stream[:n_steps] for stream in seen]


@needs_instructions
@pytest.mark.parametrize(
    ("name", "rules", "n_steps", "batch_size"),
    [
        ("Breakout", Rules(), 250, None),  # long enough for a game of five lives
        ("Pong", Rules(max_episode_frames=60), 40, 1),
        ("MsPacman", Rules(repeat_action_probability=0.25, fire_on_reset=True), 60, None),
    ],
)
def test_they_are_the_librarys_within_one_grey_level(monkeypatch, name, rules, n_steps, batch_size):
    game = find_game(name)
    own = streams(game, rules, n_steps, batch_size)
    monkeypatch.setattr(envs, "own_frames_pay", lambda: False)
    monkeypatch.setattr(envs, "Frames", None)  # whoever asked for one would fail
    theirs = streams(game, rules, n_steps, batch_size)
    differences, ends = [], np.zeros(3, int)
    for mine, other in zip(own, theirs, strict=True):
        for (obs, *told), (expected, *expected_told) in zip(mine, other, strict=True):
            assert told == expected_told
            assert (obs.shape, obs.dtype) == (expected.shape, expected.dtype)
            differences.append(np.abs(obs.astype(int) - expected))
            ends += told[1:]
    assert np.max(differences) <= 1
    assert np.mean(differences) < 0.1
    terminated, truncated, started = ends
    assert started >= 2
    if name == "Breakout":
        assert terminated
    if name == "Pong":
        assert truncated


@needs_instructions
def test_an_average_is_exact_before_it_is_rounded():
    screens = np.random.default_rng(0).integers(0, 256, (3, 210, 160), dtype=np.uint8)
    screens[0], screens[1, :, ::2] = 255, 0
    rows, columns = overlaps(210, 84), overlaps(160, 84)
    expected = np.einsum("bij,ik,jl->bkl", screens.astype(float), rows / rows.sum(0), columns / columns.sum(0))
    frames = AreaProduct()(screens)
    assert np.abs(frames - expected).max() <= 0.5 + 1e-3
    assert (frames[0] == 255).all()


@needs_instructions
@pytest.mark.parametrize("ids", [[2, 0], [0, 1]])
def test_what_was_shown_is_never_written_again(ids):
    frames, screens = Frames(3 if 2 in ids else 2), np.full((2, 210, 160), 7, np.uint8)
    ids, no = np.array(ids), np.zeros(2, bool)
    first = frames.show(screens, ids, ~no)
    kept = first.copy()
    second = frames.show(screens + 1, ids, no)
    assert (first == kept).all()
    assert second[0, :, 0, 0].tolist() == [0, 0, 7, 8]
    third = frames.show(screens + 2, ids[::-1].copy(), no)
    assert third[1, :, 0, 0].tolist() == [0, 7, 8, 9]
    assert frames.show(screens + 3, ids, np.array([True, False]))[:, :, 0, 0].tolist() == [[0, 0, 0, 10], [7, 8, 9, 10]]
    assert (first == kept).all()
    assert second[0, :, 0, 0].tolist() == [0, 0, 7, 8]


def test_overlaps_of_areas_worked_by_hand():
    assert overlaps(5, 2).tolist() == [[2, 0], [2, 0], [1, 1], [0, 2], [0, 2]]
    assert set(overlaps(160, 84).sum(0).tolist()) == {40}


@pytest.mark.parametrize(("name", "rgb"), [("AirRaid", False), ("Pong", True)])
def test_taller_screens_and_colours_are_left_to_the_library(monkeypatch, name, rgb):
    monkeypatch.setattr(envs, "Frames", None)
    game = find_game(name, rgb=rgb)
    env = make_envs(game, 1, 0, n_threads=1)
    assert env.recv().obs.shape == (1, *game.obs_shape)
    env.close()


def test_without_the_instructions_the_library_makes_them(monkeypatch):
    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: False)
    assert not own_frames_pay.__wrapped__()


@needs_instructions
@pytest.mark.parametrize("there", [True, False])
def test_a_torch_whose_operators_changed_leaves_the_frames_to_the_library(monkeypatch, there):
    def changed():
        if not there:
            raise AttributeError("'_OpNamespace' 'onednn' object has no attribute 'qlinear_prepack'")
        return lambda screens: screens[:, :SIDE, :SIDE] // 2  # others than were asked for

    own_frames_pay.cache_clear()
    monkeypatch.setattr(frames, "area_product", changed)
    try:
        assert not own_frames_pay()
    finally:
        own_frames_pay.cache_clear()
