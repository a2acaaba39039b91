"""How steadily variants learn, on numbers worked by hand."""

import pandas as pd

from workbench.paper.ba3c.stability import stability


def test_stability_worked_by_hand() -> None:
    """The first seed falls from 30 to 10 and ends there, the second only rises."""
    rows = [
        {"variant": "asynchronous", "seed": seed, "phase": phase, "score": score, "policy_lag_mean": 2.0}
        for seed, scores in enumerate(([10.0, 30.0, 10.0], [10.0, 20.0, 30.0]))
        for phase, score in enumerate(scores)
    ]
    (found,) = stability(pd.DataFrame(rows)).to_dict("records")
    assert (found["n"], found["last_score"], found["best_score"], found["worst_fall"]) == (2, 20.0, 30.0, 10.0)
    assert (found["worst_fall_low"], found["worst_fall_high"]) == (0.0, 20.0)
    assert (found["ended_below_half"], found["policy_lag_mean"]) == (1, 2.0)
