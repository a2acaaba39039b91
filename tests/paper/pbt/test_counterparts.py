"""Ours beside the PBT paper's numbers."""

import pytest

from tests.paper.recorded import ABOUT, verdicts
from workbench.paper.experiment import keep_table


def test_the_toy_problem_s_numbers_are_means_of_the_seeds(tmp_path) -> None:
    finals = {"PBT": (1.19, 1.21), "grid": (0.2, 0.3)}
    rows = [
        {"reading": "as chosen", "variant": v, "seed": s, "final": q}
        for v, qs in finals.items()
        for s, q in enumerate(qs)
    ]
    keep_table(tmp_path / "pbt-toy", rows, ABOUT)
    found = verdicts(tmp_path, "PBT", "Fig. 2")
    assert found == {"grid search, about": ("differs", 0.25), "PBT, about": ("agrees", pytest.approx(1.2))}


def test_a_population_agrees_where_its_interval_is_on_the_published_side(tmp_path) -> None:
    gains = {"10": (0.9, 0.95), "20": (0.7, 0.8)}  # the paper's: 0.986 and 1.2
    rows = [
        {"design": "population", "value": n, "final": 100 * gain, "random_final": 100.0}
        for n, both in gains.items()
        for gain in both
    ]
    keep_table(tmp_path / "pbt-design", rows, ABOUT)
    found = verdicts(tmp_path, "PBT", "Fig. 5(a)")
    assert found["PBT over random search, 10 members"] == ("agrees", pytest.approx(0.925))
    assert found["PBT over random search, 20 members"] == ("differs", pytest.approx(0.75))
    assert found["PBT over random search, 40 members"] == ("not run", None)
