"""The papers' numbers stand once each, and agree with one another where the papers derive them."""

import pytest

from workbench.paper.published import ALL, published


def test_every_number_has_one_name() -> None:
    names = [(number.paper, number.where, number.what) for number in ALL]
    assert len(names) == len(set(names))
    assert {number.paper for number in ALL} == {"HyperTrick", "GA3C", "BA3C", "PBT", "HTS-RL"}


def test_hyperbands_completion_rate_follows_from_its_brackets() -> None:
    # Table 2: 27, 9, 6 and 4 configurations, each worth 27 units
    shares = [published("HyperTrick", "Table 2", f"alpha, s = {s}").value for s in (3, 2, 1, 0)]
    together = sum(n * share for n, share in zip((27, 9, 6, 4), shares, strict=True)) / 46
    assert together == pytest.approx(published("HyperTrick", "Table 2", "alpha").value, abs=0.01)


def test_importances_are_shares() -> None:
    for game in ("boxing", "centipede", "ms_pacman", "pong"):
        shares = [n.value for n in ALL if n.where == "Table 4" and n.what.endswith(f", {game}")]
        assert len(shares) == 3
        assert sum(shares) == pytest.approx(100, abs=1)


def test_a_number_that_no_paper_has() -> None:
    with pytest.raises(KeyError):
        published("GA3C", "Table 3", "after one day, tetris")
