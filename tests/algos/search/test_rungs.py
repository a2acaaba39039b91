"""Rungs: how many trials run how far."""

from workbench.algos.search.rungs import Rung, rung_ends, rungs_by_eta, rungs_by_rate


def test_rungs_divide_by_eta_or_drop_a_share() -> None:
    assert rungs_by_eta(27, 27, 3) == [Rung(27, 1), Rung(9, 3), Rung(3, 9), Rung(1, 27)]
    assert rungs_by_eta(10, 10, 3, 2) == [Rung(10, 3), Rung(3, 10)]
    assert rung_ends(10, 3) == [1, 3, 10]
    assert rung_ends(1000, 10) == [1, 10, 100, 1000]
    assert [r.n_trials for r in rungs_by_rate(12, 4, 0.25)] == [12, 9, 7, 5]
    assert [r.n_trials for r in rungs_by_rate(6, 2, 0.25)] == [6, 5]  # a half is rounded up
    assert [r.n_trials for r in rungs_by_rate(2, 3, 0.5)] == [2, 1, 1]  # one at least
    assert [r.n_trials for r in rungs_by_rate(1, 3, 0.9)] == [1, 1, 1]
    assert rung_ends(33, 2.2) == [1, 3, 6, 15, 33]  # though 33 / 2.2 comes out a hair below 15
    assert rungs_by_eta(33, 33, 2.2)[1].n_trials == 15
