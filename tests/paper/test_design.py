"""PBT's design space: ratios to random search, and the paper's from its table."""

import pandas as pd
import pytest

from workbench.paper.design import improvements, published_improvements


def test_ratios_are_taken_within_a_repetition():
    rows = [
        ("exploit", "truncation", 200.0, 100.0),
        ("exploit", "truncation", 300.0, 300.0),
        ("exploit", "none", 90.0, 100.0),
        ("exploit", "none", 270.0, 300.0),
    ]
    found = improvements(pd.DataFrame(rows, columns=["design", "value", "final", "random_final"]))
    assert found[["group", "name", "source"]].values.tolist() == [
        ["exploit", "truncation", "simulated"],
        ["exploit", "none", "simulated"],
    ]
    assert found["value"].tolist() == pytest.approx([1.5, 0.9])
    assert found.loc[0, ["low", "high"]].tolist() == [1, 2]


def test_the_paper_gains_from_twenty_members_on():
    """Of ten: 1511/1742, 4110/3970, 5509/5635 and 1958/1838."""
    found = published_improvements()
    assert found["value"][0] == pytest.approx((0.86739 + 1.03526 + 0.97764 + 1.06529) / 4, abs=1e-4)
    assert (found["value"][1:] > 1.1).all()
    assert (found["source"] == "published").all()
