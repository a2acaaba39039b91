"""Evaluated agents: one is judged by its games, several by how they differ."""

import json
import math

import pytest

from workbench.core.errors import DatabaseError
from workbench.paper.evaluated import EVALUATIONS, evaluated, evaluations_of, mean_score
from workbench.paper.learned import page_of_what_was_learned


def kept(folder, *means) -> list[dict]:
    folder.mkdir()
    lines = [json.dumps({"game": "pong", "mean": mean, "std": 1.5, "n_episodes": 30}) for mean in means]
    (folder / EVALUATIONS).write_text("\n".join(lines) + "\n")
    return evaluations_of(folder)


def test_one_agent_is_judged_by_its_games(tmp_path) -> None:
    found = mean_score(kept(tmp_path / "alone", 19.0))
    assert found.value == 19
    # Student's t of 29 degrees of freedom, 2.045, times 1.5 / sqrt(29): the spread was told of the games themselves
    assert (found.low, found.high) == (pytest.approx(18.430, abs=1e-3), pytest.approx(19.570, abs=1e-3))


@pytest.mark.parametrize("games", [1, 30])
def test_one_game_and_games_that_all_end_alike_are_no_certainty(games) -> None:
    found = mean_score([{"mean": 21.0, "std": 0.0, "n_episodes": games}])
    assert found == (21, -math.inf, math.inf)


def test_of_several_agents_it_counts_how_they_differ(tmp_path) -> None:
    found = mean_score(kept(tmp_path / "three", 18.0, 19.0, 20.0))
    assert found.value == 19
    assert (found.low, found.high) == (pytest.approx(16.516, abs=1e-3), pytest.approx(21.484, abs=1e-3))  # 4.303 / √3


def test_what_was_learned_tells_every_agent(tmp_path) -> None:
    kept(tmp_path / "three", 18.0, 19.0, 20.04)
    kept(tmp_path / "alone", 19.0)
    assert [name for name, _ in evaluated(tmp_path)] == ["alone", "three"]
    page = page_of_what_was_learned(tmp_path)
    assert "| `alone`, `three` | pong | 4 agents | 19.0; 18.0, 19.0, 20.0: means of 30 games |" in page


@pytest.mark.parametrize("left", ["", '{"game": "pong", "me'])
def test_an_evaluation_that_was_interrupted_is_none(tmp_path, left) -> None:
    kept(tmp_path / "whole", 19.0)
    kept(tmp_path / "cut", 18.0)
    (tmp_path / "cut" / EVALUATIONS).write_text(left)
    with pytest.raises(DatabaseError, match=f"no evaluation of cut in {tmp_path}"):
        evaluations_of(tmp_path / "cut")
    assert "| `whole` | pong |" in page_of_what_was_learned(tmp_path)


def test_a_recording_without_an_evaluation_is_told(tmp_path) -> None:
    with pytest.raises(DatabaseError, match=f"no evaluation of nobody in {tmp_path}"):
        evaluations_of(tmp_path / "nobody")
