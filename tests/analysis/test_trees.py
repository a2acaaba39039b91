import numpy as np
import pytest

from workbench.analysis.trees import Forest, as_good_shuffled


@pytest.mark.parametrize("depth", [1, 6])
def test_a_forest_is_scikit_learns_to_the_bit(depth) -> None:
    from sklearn.ensemble import RandomForestRegressor

    rng = np.random.default_rng(0)
    x, asked = rng.normal(size=(40, 3)), rng.normal(size=(9, 3))
    y = x[:, 0] + 0.1 * rng.normal(size=40)
    settings = {"n_estimators": 5, "max_depth": depth, "min_samples_leaf": 2, "max_features": 0.67, "random_state": 7}
    ours, theirs = Forest(settings, x, y), RandomForestRegressor(**settings).fit(x, y)
    assert ours.predict(asked).tolist() == theirs.predict(asked).tolist()
    assert ours.shares().tolist() == theirs.feature_importances_.tolist()
    assert Forest(settings, x, np.ones(40)).shares().tolist() == [0, 0, 0]


def test_what_a_forest_is_asked_out_of_bag_its_trees_have_not_drawn() -> None:
    """A single tree that knows its own by heart: what it has drawn it is not asked."""
    rng = np.random.default_rng(0)
    x, y = np.arange(30.0)[:, None], rng.normal(size=30)
    forest = Forest({"n_estimators": 1, "random_state": 3}, x, y)
    told = forest.out_of_bag()
    drawn = np.isnan(told)
    assert 0.5 < drawn.mean() < 0.8
    assert forest.predict(x)[drawn].tolist() == y[drawn].tolist()
    assert told[~drawn].tolist() == forest.predict(x)[~drawn].tolist() != y[~drawn].tolist()


def test_in_noise_one_table_in_twenty_escapes() -> None:
    tables = (np.random.default_rng(n) for n in range(20, 40))
    told = [not as_good_shuffled(rng.random((24, 3)), rng.normal(size=24)) for rng in tables]
    assert sum(told) <= 2


@pytest.mark.parametrize("follows", [lambda x: 3 * x[:, 0], lambda x: 2.0 * (x[:, 1] > 0.7)])
def test_a_signal_among_noise_is_no_luck(follows) -> None:
    rng = np.random.default_rng(0)
    x = rng.random((46, 5))
    assert not as_good_shuffled(x, follows(x) + 0.7 * rng.normal(size=46))


def test_rows_of_a_configuration_are_shuffled_together() -> None:
    """Noise of 24 configurations, four rows each: rows shuffled apart would never come up to it."""
    rng = np.random.default_rng(1)
    x, y = rng.random((24, 3)).repeat(4, axis=0), rng.normal(size=24).repeat(4)
    assert as_good_shuffled(x, y)
    assert as_good_shuffled(x[:8], y[:8])  # two configurations tell nothing
