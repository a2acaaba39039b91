"""Kinds of trials, by curves worked out by hand."""

import numpy as np

from workbench.paper.hypertrick.evictions import kinds


def test_kinds_are_told_by_whole_curves() -> None:
    seconds = [1.0, 1.0, 5.0, 5.0]
    scores = [[1, 2, 3], [4, 8, 2], [5, 6, 7], [1, 1, 2]]  # means 2, 4.7, 6, 1.3; the second falls by three quarters
    curves = np.array([[(s, score) for score in curve] for s, curve in zip(seconds, scores, strict=True)])
    found = {kind: np.flatnonzero(of).tolist() for kind, of in kinds(curves).items()}
    assert found == {"fast_low": [0], "slow_low": [3], "unstable": [1], "steady": [0, 2, 3]}
