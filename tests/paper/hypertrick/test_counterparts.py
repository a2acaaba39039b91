"""Ours beside the HyperTrick paper's numbers."""

import pytest

from tests.paper.recorded import ABOUT, verdicts
from workbench.paper.experiment import keep_table


def test_formulas_and_the_toy_problem_need_no_recording(tmp_path) -> None:
    assert {verdict for verdict, _ in verdicts(tmp_path, "HyperTrick", "Table 2").values()} == {"agrees"}
    assert verdicts(tmp_path, "HyperTrick", "Sec. 5.2.4")["Hyperband, R = 27, eta = 3"] == ("agrees", 46)
    schedules = verdicts(tmp_path, "HyperTrick", "Figs 2, 3, 8, 9")
    assert schedules["makespan, HyperTrick"] == ("agrees", pytest.approx(10))


def test_who_is_faster_is_compared_game_by_game(tmp_path) -> None:
    ends = {f"{m}{end}": 0.0 for m in ("makespan", "time_to_best") for end in ("_low", "_high")}
    rows = [
        {"scheduler": name, "repeats": 3, "makespan": makespan, "time_to_best": best} | ends
        for name, makespan, best in (
            ("hypertrick", 50.0, 30.0),
            ("hyperband", 100.0, 60.0),
            ("hypertrick - hyperband", -50.0, -30.0),
        )
    ]
    keep_table(tmp_path / "curves-hyperband-against-hypertrick", rows, ABOUT)
    found = verdicts(tmp_path, "HyperTrick", "Table 3")
    assert found["wall time, HyperTrick over Hyperband, pong"] == ("agrees", 0.5)
    assert found["time to best score, HyperTrick over Hyperband, centipede"] == ("differs", 0.5)  # the paper's: 14.5
