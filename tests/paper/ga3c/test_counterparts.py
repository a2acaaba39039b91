"""Ours beside the GA3C paper's numbers."""

import pytest

from tests.paper.recorded import ABOUT, verdicts
from workbench.paper.experiment import keep_table
from workbench.paper.ga3c.published import TABLE_2
from workbench.paper.scoreboard import page, scoreboard


def test_measured_numbers_are_read_off_the_recording_and_may_differ(tmp_path) -> None:
    rows = [
        {"network": name, "ga3c_pps": ga3c * (1.1 if name == "small" else 0.1), "a3c_pps": a3c, "ratio": 1.0}
        for name, (a3c, ga3c) in TABLE_2.items()
    ]
    keep_table(tmp_path / "ga3c-networks", rows, ABOUT)
    found = verdicts(tmp_path, "GA3C", "Table 2")
    assert found["GA3C, small"] == ("agrees", pytest.approx(1361 * 1.1))
    assert found["GA3C, large-1"][0] == "differs"
    assert found["A3C, large-1"][0] == "agrees"
    assert found["GA3C over A3C, large-1"] == ("differs", 1.0)
    assert "measured at scale 'minutes' on 2 cores, 2026-01-01" in page(scoreboard(tmp_path))


def test_the_better_least_training_batch_is_found_from_the_last_scores(tmp_path) -> None:
    scores = {"0": 10.0, "20": 50.0, "80": 70.0}
    rows = [{"variant": v, "seed": 0, "frames": f, "score": s * f} for v, s in scores.items() for f in (1, 2)]
    keep_table(tmp_path / "ga3c-training-batch", rows, ABOUT)
    assert verdicts(tmp_path, "GA3C", "Fig. 7") == {
        "best least training batch, from": ("agrees", 80),
        "best least training batch, to": ("differs", 80),
    }
