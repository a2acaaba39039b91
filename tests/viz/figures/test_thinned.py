import numpy as np
import pandas as pd

from workbench.viz.figures.thinned import thin_groups


def test_of_each_group_the_lowest_the_highest_and_the_same_others_stay() -> None:
    trial, phase = np.tile(np.arange(40), 3), np.repeat([0, 1, 7], 40)
    points = pd.DataFrame({"trial": trial, "phase": phase, "score": np.tile([5.0, 1.0, 9.0, *[5.0] * 37], 3)})
    assert thin_groups(points["phase"], points["trial"], points["score"], 120).all()
    kept = points[thin_groups(points["phase"], points["trial"], points["score"], 30)]
    of_phases = [set(group["trial"]) for _, group in kept.groupby("phase")]
    assert of_phases[0] == of_phases[1] == of_phases[2] >= {1, 2}
    assert 8 <= len(of_phases[0]) <= 10


def test_a_group_keeps_two_of_its_points_however_many_groups_there_are() -> None:
    points = pd.DataFrame({"trial": [0, 1, 2] * 9, "phase": np.repeat(range(9), 3), "score": [2.0, np.nan, 3.0] * 9})
    kept = thin_groups(points["phase"], points["trial"], points["score"], 5)
    assert points[kept]["trial"].tolist() == [0, 2] * 9
