"""A random forest, tree for tree scikit-learn's, and whether it has found more than there is in shuffled scores."""

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Folds = list[npt.NDArray[np.int64]]

_SHUFFLED, _MAY_BE_AS_GOOD = 39, 1  # of 40 that are alike, one is among the best two in 5 % of cases
_ASKED = {"n_estimators": 20, "max_depth": 8, "min_samples_leaf": 3, "max_features": 0.67, "random_state": 0}


class Forest:
    """A random forest, tree for tree scikit-learn's; what that does around trees as small as ours takes thrice as long.

    Parameters
    ----------
    settings : dict
        Of ``RandomForestRegressor``.
    x, y : ndarray
        What to fit: [n, features] and [n].
    """

    def __init__(self, settings: dict[str, Any], x: Floats, y: Floats) -> None:
        from sklearn import config_context
        from sklearn.tree import DecisionTreeRegressor

        own = {name: value for name, value in settings.items() if name not in ("n_estimators", "random_state")}
        draw = np.random.RandomState(settings["random_state"])
        seeds = [draw.randint(np.iinfo(np.int32).max) for _ in range(settings["n_estimators"])]
        again = np.random.RandomState()  # seeded anew, for to make one takes longer than a tree
        known, target = np.ascontiguousarray(x, np.float32), np.reshape(y, (-1, 1))
        self._known, self._trees, self._left_out = known, [], []
        with config_context(skip_parameter_validation=True, assume_finite=True):  # else it looks through `times`
            for seed in seeds:
                again.seed(seed)
                times = np.bincount(again.randint(0, len(y), len(y)), minlength=len(y))
                self._left_out.append(times == 0)
                again.seed(seed)
                tree = DecisionTreeRegressor(random_state=again, **own)
                self._trees.append(tree.fit(known, target, sample_weight=times, check_input=False).tree_)

    def predict(self, x: Floats) -> Floats:
        """Mean over the trees [n]."""
        asked = np.ascontiguousarray(x, np.float32)
        mean: Floats = sum(tree.predict(asked)[:, 0] for tree in self._trees) / len(self._trees)
        return mean

    def shares(self) -> Floats:
        """Each feature's share of the variance reduction [features]; 0 where no tree divides anything."""
        each = [tree.compute_feature_importances() for tree in self._trees if tree.node_count > 1]
        means: Floats = np.mean(each or [np.zeros(self._trees[0].n_features)], axis=0)
        return means / (means.sum() or 1.0)

    def out_of_bag(self) -> Floats:
        """Mean over the trees that have not seen it, of each row that was fitted [n]; NaN where all have."""
        total, count = np.zeros(len(self._known)), np.zeros(len(self._known))
        for tree, left_out in zip(self._trees, self._left_out, strict=True):
            total[left_out] += tree.predict(self._known[left_out])[:, 0]
            count += left_out
        means: Floats = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
        return means


def rows_of_configurations(x: Floats) -> Folds:
    """List the rows of each configuration, in the order of their first ones [configurations]."""
    _, first, number = np.unique(x, axis=0, return_index=True, return_inverse=True)
    return [np.flatnonzero(number.ravel() == k) for k in np.argsort(first)]


def as_good_shuffled(x: Floats, y: Floats, seed: int = 0) -> bool:
    """Tell whether a forest finds as much in shuffled scores as in these: then what it finds may be luck.

    One of fixed settings is fitted to the scores and to 39 shuffles of them, and judged by R² on what each of its trees
    has not drawn. Two shuffles that come up to the scores are enough: of scores that follow nothing one in twenty
    escapes. It is configurations that are shuffled, each with the mean of its rows.

    Parameters
    ----------
    x, y : ndarray
        Hyperparameters [n, features] and scores [n].
    seed : int
        Of the shuffles.
    """
    rows = rows_of_configurations(x)
    x, y = x[[of[0] for of in rows]], np.array([y[of].mean() for of in rows])
    rng, found, as_good = np.random.default_rng([seed, 1]), _found(x, y), 0
    for _ in range(_SHUFFLED):
        as_good += _found(x, rng.permutation(y)) >= found
        if as_good > _MAY_BE_AS_GOOD:
            return True
    return False


def _found(x: Floats, y: Floats) -> float:
    told = Forest(_ASKED, x, y).out_of_bag()
    return r2_of(y, np.where(np.isnan(told), y.mean(), told))


def r2_of(truth: Floats, guess: Floats) -> float:
    """Of trials that all scored the same a forest knows all there is: 1."""
    if np.ptp(truth) == 0:
        return 1.0
    return float(1 - np.sum((truth - guess) ** 2) / np.sum((truth - truth.mean()) ** 2))
