"""A checkpoint plays into a moving picture."""

import numpy as np
import pytest
from PIL import Image, ImageSequence

from workbench.algos.rl.ga3c.trial import GA3C
from workbench.algos.rl.games import find_game
from workbench.algos.rl.model import make_model
from workbench.algos.rl.watch import BLUE, SCREEN, WIDTH, Thought, action_names, draw, play, watch
from workbench.core.errors import InvalidInput


@pytest.mark.parametrize(
    ("game", "suffix", "kind"), [("Pong", ".gif", "image/gif"), ("CartPole-v1", ".webp", "image/webp")]
)
def test_a_checkpoint_plays_into_a_file_that_a_notebook_shows(tmp_path, game, suffix, kind):
    GA3C(game=game)({}, 0).save(tmp_path)
    shown = watch(tmp_path, tmp_path / "videos" / f"game{suffix}", max_steps=12)
    with Image.open(shown.path) as image:
        assert image.size[0] == WIDTH
        assert image.n_frames > 6
        delays = [frame.load() and frame.info["duration"] for frame in ImageSequence.Iterator(image)]
    assert sum(delays) == pytest.approx(1000 * (shown.steps + 1) / 15, abs=5)
    html = shown._repr_html_()
    assert f"data:{kind};base64," in html
    assert f"score {shown.score:g} after {shown.steps} steps" in html


def test_a_game_is_played_to_its_end_and_again_the_same_way():
    game = find_game("CartPole-v1")
    model = make_model(game)
    one, two = (list(play(model, game, 3, greedy=False, max_steps=500)) for _ in range(2))
    assert [t.action for t in one] == [t.action for t in two]
    assert 8 < len(one) < 500
    assert one[-1].score == len(one) - 1  # a point a step
    assert all(abs(t.policy.sum() - 1) < 1e-5 and 0 < t.entropy < 0.7 for t in one)


def test_what_is_drawn():
    game = find_game("Pong")
    obs = np.zeros((4, 84, 84), np.uint8)
    obs[-1, 10, 20] = 255
    policy = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0], np.float32)
    image = np.asarray(draw(game, [Thought(obs, policy, 0.5, 0.0, 2, 1.0, 1.0)] * 2, action_names(game)))
    assert (image[40:44, 80:84] == 249).all()  # the newest frame, four times as large
    assert image[:SCREEN].sum() == 16 * 249
    bars = image[SCREEN + 22 + 36 : SCREEN + 22 + 48, WIDTH // 2 + 6 : WIDTH // 2 + 96]
    assert (bars == BLUE).all()  # the third action has it all


def test_of_frames_in_colour_the_newest_is_drawn_with_all_its_planes():
    game = find_game("Pong", rgb=True)
    obs = np.zeros(game.obs_shape, np.uint8)
    obs[:9], obs[9] = 255, 90  # the newest is red alone
    thought = Thought(obs, np.full(6, 1 / 6), 0.0, 0.0, 0, 0.0, 0.0)
    assert (np.asarray(draw(game, [thought], action_names(game)))[:SCREEN] == 30 * 249 // 255).all()


@pytest.mark.parametrize("n_features", [1, 24, 25, 45, 500])
def test_observations_of_any_number_of_features_are_drawn(n_features):
    thought = Thought(np.ones(n_features, np.float32), np.full(2, 0.5), 0.0, 0.0, 0, 0.0, 0.0)
    image = np.asarray(draw(find_game("CartPole-v1"), [thought], ["left", "right"]))
    bars = (image[:SCREEN, WIDTH // 2 + 50] == BLUE).astype(int)
    assert (np.diff(bars) == 1).sum() == (n_features if n_features <= 24 else 23)


def test_actions_have_the_emulators_names():
    assert action_names(find_game("Pong")) == ["noop", "fire", "right", "left", "rightfire", "leftfire"]
    assert action_names(find_game("CartPole-v1")) == ["action 0", "action 1"]


def test_files_of_another_kind_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"unknown kind of moving picture '\.avi'"):
        watch(tmp_path, tmp_path / "game.avi")
    with pytest.raises(InvalidInput, match="there is no checkpoint"):
        watch(tmp_path, tmp_path / "game.gif")


def test_what_cannot_be_written_is_refused_before_anything_plays(tmp_path, monkeypatch):
    for given, said in (
        ({"fps": 0}, "to watch a game takes fps, a number above 0, got 0"),
        ({"fps": 60}, r"a \.gif shows 50 steps a second at most, got fps=60: write a \.webp or \.mp4"),
        ({"max_steps": 0}, "takes max_steps, a whole number from 1, got 0"),
        ({"max_steps": "all"}, "takes max_steps, a whole number from 1, got 'all'"),
    ):
        with pytest.raises(InvalidInput, match=said):
            watch(tmp_path, tmp_path / "game.gif", **given)
    monkeypatch.setattr("workbench.algos.rl.watch.find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"game\.mp4 needs imageio-ffmpeg: pip install 'rl-workbench\[video\]', or"):
        watch(tmp_path, tmp_path / "game.mp4")
