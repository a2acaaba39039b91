import numpy as np
import pandas as pd

from workbench.analysis.variants import final_scores, score_table, variant_bands, worst_falls

CURVES = pd.DataFrame(
    [
        ("b", 0, 100, 1.0),
        ("b", 0, 200, 2.0),
        ("b", 1, 104, 3.0),
        ("b", 1, 204, 8.0),
        ("a", 0, 100, 5.0),
        ("a", 0, 200, 6.0),
    ],
    columns=["variant", "seed", "frames", "score"],
)


def test_seeds_are_summed_up_point_by_point_in_the_variants_order():
    found = variant_bands(CURVES)
    assert found.to_dict("list") == {
        "scheduler": ["b", "b", "a", "a"],
        "at": [102, 202, 100, 200],
        "median": [2, 5, 5, 6],
        "low": [1, 2, 5, 6],
        "high": [3, 8, 5, 6],
        "n_seeds": [2, 2, 1, 1],
    }


def test_curves_may_run_along_something_else() -> None:
    assert variant_bands(CURVES.assign(seconds=CURVES["frames"] / 10), "seconds")["at"].tolist() == [10.2, 20.2, 10, 20]


def test_final_scores_are_the_last_of_every_seed():
    assert final_scores(CURVES)[["variant", "seed", "score"]].to_numpy().tolist() == [
        ["b", 0, 2.0],
        ["b", 1, 8.0],
        ["a", 0, 6.0],
    ]


def test_the_worst_fall_is_below_the_best_so_far_not_the_best_of_all():
    scores = np.array([[10.0, 4.0, 20.0, 15.0], [1.0, 2.0, 3.0, 4.0]])
    assert worst_falls(scores, as_share=False).tolist() == [6, 0]
    assert worst_falls(scores, as_share=True).tolist() == [0.6, 0]


def test_scores_are_laid_out_by_seed_and_phase_in_whatever_order_they_come():
    runs = pd.DataFrame([(1, 2, 8.0), (0, 1, 1.0), (1, 1, 3.0), (0, 2, 2.0)], columns=["seed", "phase", "score"])
    assert score_table(runs).tolist() == [[1, 2], [3, 8]]
