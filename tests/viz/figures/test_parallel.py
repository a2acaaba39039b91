import numpy as np
import pandas as pd
import pytest

from tests.viz.figures.conftest import HOSTILE
from workbench.viz.figures import parallel_coordinates


def test_a_line_a_trial_from_its_values_to_its_score(frames):
    fig = parallel_coordinates(frames.trials, frames.hyperparameters)
    assert list(fig.layout.xaxis.ticktext) == ["lr", "net", "last score"]  # the third was not varied
    lines = {}
    for trace in fig.data:
        for trial, y in zip(np.reshape(trace.customdata, (-1, 4)), np.reshape(trace.y, (-1, 4)), strict=True):
            lines[int(trial[0])] = y
    assert sorted(lines) == [0, 1, 2]  # trial 3 has no score yet
    np.testing.assert_allclose(lines[0][[0, 2]], [0.0, 1.0])  # the smallest lr, the best score
    np.testing.assert_allclose(lines[1][[0, 2]], [0.5, 0.0])
    np.testing.assert_allclose(lines[2][[0, 2]], [1.0, (3.0 - 0.5) / 4.5])
    words = " ".join(a.text for a in fig.layout.annotations) + " ".join(
        t for trace in fig.data for t in trace.hovertext
    )
    assert HOSTILE not in words
    assert "&lt;script&gt;" in words


def test_of_many_trials_some_are_drawn_and_the_best_over_the_others() -> None:
    trials = pd.DataFrame({"trial": range(400), "state": "finished", "lr": range(1, 401), "last_score": range(400)})
    fig = parallel_coordinates(trials, ["lr"])
    drawn = np.concatenate([np.reshape(trace.customdata, (-1, 3))[:, 0] for trace in fig.data])
    assert fig.layout.title.text == f"Trials through their hyperparameters: {len(drawn)} of 400 trials, drawn at random"
    assert 298 <= len(set(drawn)) == len(drawn) <= 300
    assert {0, 399} <= set(drawn)
    assert 399 in fig.data[-1].customdata
    assert fig.data[-1].hovertext[0].startswith(f"trial {fig.data[-1].customdata[0]} (finished)")


def test_long_names_leave_room_for_others(frames):
    name = "critic_" + "x" * 80 + "_rate"
    fig = parallel_coordinates(frames.trials.assign(**{name: range(4)}), ["lr", name])
    short = fig.layout.xaxis.ticktext[1]
    assert len(short) == 28
    assert short.startswith("critic_")
    assert short.endswith("_rate")
    assert f"{name} = 0" in fig.data[0].hovertext[0] + fig.data[-1].hovertext[0]


def test_words_stay_beside_their_axis_and_numbers_are_whole(frames):
    names = [f"h{k}" for k in range(10)]
    columns = {name: ["convolutional_small", "convolutional_large", "dense", "dense"] for name in names}
    fig = parallel_coordinates(
        frames.trials.assign(**columns, whole=[123456789012.0, 123456789013.0, 0, 0]), [*names, "whole"]
    )
    labels = {a.x: {b.text for b in fig.layout.annotations if b.x == a.x} for a in fig.layout.annotations}
    assert labels[0] == {"conv…small", "conv…large", "dense"}
    assert not any("…" in label for label in labels[10])


def test_scores_are_as_far_apart_as_they_are(frames):
    trials = pd.concat([frames.trials.iloc[[0]]] * 5, ignore_index=True)
    trials = trials.assign(trial=range(5), lr=np.arange(5) + 1.0, last_score=[-21.0, -21.0, -20.9, -20.8, 15.0])
    drawn = [y for trace in parallel_coordinates(trials, ["lr"]).data for y in np.reshape(trace.y, (-1, 3))[:, 1]]
    assert sorted(drawn) == pytest.approx([0, 0, 0.1 / 36, 0.2 / 36, 1])


def test_every_axis_is_a_line_of_the_same_ink(frames):
    assert parallel_coordinates(frames.trials, ["lr"]).layout.xaxis.zeroline is False  # it would lie over the first


def test_the_best_is_drawn_over_the_others(frames):
    over = {m: parallel_coordinates(frames.trials, frames.hyperparameters, m).data[-1] for m in ("max", "min")}
    assert {mode: set(trace.customdata) for mode, trace in over.items()} == {"max": {0}, "min": {1}}


def test_nothing_to_draw_is_said(frames, nothing):
    assert "ended" in parallel_coordinates(nothing.trials, []).layout.annotations[0].text
    assert "varied" in parallel_coordinates(frames.trials, []).layout.annotations[0].text
