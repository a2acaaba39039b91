"""The Atari studies beside the published numbers, on recordings of a small log whose numbers are known."""

from dataclasses import replace

import pytest

from tests.knowledge.test_knowledge import a_study
from workbench.knowledge import StudyLog, record
from workbench.paper import atari
from workbench.paper.published import published
from workbench.paper.scoreboard import scoreboard

TRAINABLE = {"kind": "ga3c", "game": "Boxing", "phase": {"frames": 200_000}}


@pytest.fixture
def root(tmp_path):
    """A HyperTrick study of 9 s and a Hyperband study that took twice as long."""
    for name, slower in (("hypertrick", 1), ("hyperband", 2)):
        scheduler = {"kind": name, "n_trials": 3, "n_phases": 2} | ({"eviction_rate": 0.9} if slower == 1 else {})
        with_log = StudyLog(tmp_path / "kb.db", name, {"seed": 0, "scheduler": scheduler, "trainable": TRAINABLE})
        with_log.append([replace(event, at=event.at * slower) for event in a_study()])
        with_log.close()
        record(tmp_path / "kb.db", name, tmp_path / f"boxing-{name}")
    return tmp_path


def test_nothing_recorded_leaves_the_numbers_out(tmp_path) -> None:
    assert atari.recorded_studies("boxing", tmp_path) == {}
    assert list(atari.numbers(tmp_path)) == []


def test_scale_is_told_in_words(root) -> None:
    told = atari.scale_of(atari.recorded_studies("boxing", root)["hypertrick"])
    assert told == "3 trials of up to 2 phases of 200,000 frames on 2 nodes"


def test_measured_numbers_of_a_known_log(root) -> None:
    found = {number: (value, agrees) for number, value, agrees, *_ in atari.numbers(root)}
    alpha = published("HyperTrick", "Table 1", "measured alpha, boxing")
    best = published("HyperTrick", "Table 1", "best score, boxing")
    ratio = published("HyperTrick", "Table 3", "wall time, HyperTrick over Hyperband, boxing")
    # 3 of 6 phases ended; Eq. 9: (1 - 0.1²) / (2 · 0.9) = 55 % were to be expected
    assert found == {alpha: (pytest.approx(50), False), best: (5.0, False), ratio: (0.5, True)}


def test_the_scoreboard_takes_the_measured_ratio_before_the_simulated_one(root) -> None:
    rows = {row.number.what: row.ours for row in scoreboard(root)}
    assert rows["wall time, HyperTrick over Hyperband, boxing"].source == "measured"
    assert rows["wall time, HyperTrick over Hyperband, pong"] is None
