"""`benchmarks/choosing.py`: what the choice costs by itself, the second check of docs/comparisons.md."""

import numpy as np
import pytest

from benchmarks.choosing import RULES, discounted, finalists, interquartile, latest, line, main, median, regrets

RISING = np.array([[[0.0, 0.0, 2.0, 4.0], [0.0, 4.0, 4.0, 6.0]]])  # one configuration, two seeds


def test_rules_worked_by_hand() -> None:
    assert latest(RISING, 0.0) == [5.0]
    assert latest(RISING, 0.5) == [(2 + 4 + 4 + 6) / 4]
    assert interquartile(RISING, 0.5) == [4.0]
    assert median(np.array([[[1.0], [2.0], [9.0]]]), 1.0) == [2.0]
    mean_curve = 5 + 3 / 2 + 2 / 4 + 0 / 8
    assert discounted(RISING, 0.25) == pytest.approx(mean_curve / (1 + 1 / 2 + 1 / 4 + 1 / 8))
    assert line(RISING, 0.5, 1.0) == [5.0]  # through two points
    assert line(RISING, 0.5, 0.5) == [4.5]
    two = np.array([[[3.0], [0.0]], [[2.0], [8.0]]])
    assert finalists(two, 0.5, best=1).tolist() == [1.5, -np.inf]  # the first seed knows no better


def test_every_split_of_the_seeds_counts_once() -> None:
    """Three configurations, three seeds, flat curves: each seed chooses in turn, the two others judge."""
    scores = np.array([[9.0, 1.0, 0.0], [5.0, 5.0, 5.0], [0.0, 0.0, 4.0]])[:, :, None].repeat(2, axis=2)
    # Seed 0 chooses the first, worth 0.5 to the others: 4.5 short of the best, whose lead over the median is 3.
    # Seeds 1 and 2 choose the second, the best by the others too.
    assert regrets(scores, 1) == pytest.approx(np.full((len(RULES), 2), 4.5 / 3 / 3))


def test_the_command_tells_every_rule_on_this_projects_curves(monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.argv", ["choosing.py"])
    main()
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert head == "| 2 seeds choose | the table | mean | mean, judged by the last half |"
    assert [row.split(" | ")[0].strip("| ") for row in rows] == list(RULES)
    assert all(float(cell) >= 0 for row in rows for cell in row.strip("| ").split(" | ")[1:])
