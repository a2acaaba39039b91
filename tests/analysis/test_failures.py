"""The distinct errors of failed trials."""

import pandas as pd

from workbench.analysis import failure_lines, failures


def test_failures_are_grouped_the_most_frequent_first() -> None:
    errors = [None, "KeyError: 'a' (t.py:1 in f)", "ValueError: 1 (t.py:2 in g)", "ValueError: 2 (t.py:2 in g)", None]
    states = ["finished", *["failed"] * 4]
    trials = pd.DataFrame({"trial": range(5), "state": states, "error": errors})
    assert failures(trials).to_numpy().tolist() == [
        ["ValueError: 1 (t.py:2 in g)", 2, 2],
        ["KeyError: 'a' (t.py:1 in f)", 1, 1],
        ["no error was recorded", 1, 4],
    ]
    assert failure_lines(trials)[0] == "ValueError: 1 (t.py:2 in g), 2 trials"
    assert failure_lines(trials.head(1)) == []
    assert failure_lines(trials.head(0)) == []
