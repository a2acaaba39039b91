import pandas as pd

from workbench.viz.figures import hyperparameter_importance

HOSTILE = "<script>alert(1)</script>"


def test_a_pair_of_bars_with_intervals_a_hyperparameter():
    names = ["hyperparameter", "importance", "low", "high", "permutation", "permutation_low", "permutation_high"]
    table = pd.DataFrame(
        [("lr", 0.7, 0.5, 0.8, 0.4, 0.1, 0.6), (HOSTILE, 0.3, 0.31, 0.5, 0.0, -0.1, 0.1)], columns=names
    )
    fig = hyperparameter_importance(table, "R² 0.50")
    shares, falls = fig.data
    assert list(shares.x) == [0.7, 0.3]
    assert list(falls.x) == [0.4, 0.0]
    assert shares.y[1] == "&lt;script&gt;alert(1)&lt;/script&gt;"
    assert list(shares.error_x.arrayminus) == [0.7 - 0.5, 0.0]
    assert fig.layout.xaxis.title.text == "R² 0.50"


def test_no_bars_without_skill():
    fig = hyperparameter_importance(pd.DataFrame(), f"no importance: {HOSTILE}")
    assert not fig.data
    assert "&lt;script&gt;" in fig.layout.annotations[0].text
