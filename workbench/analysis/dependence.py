"""How the score depends on one hyperparameter, the others as they were tried: partial dependence of the forests."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from workbench.analysis.importance import (
    Importance,
    drawn_again,
    encoded,
    explained,
    importance,
)
from workbench.analysis.trees import Floats, Forest, rows_of_configurations
from workbench.core.domains import spaced

COLUMNS = ["hyperparameter", "value", "score", "low", "high"]
_MOST_VALUES = 20
_RESAMPLES = 60


def partial_dependence(
    trials: pd.DataFrame,
    phases: pd.DataFrame,
    hyperparameters: Sequence[str],
    *,
    phase: int | None = None,
    most: int = 4,
    seed: int = 0,
    fitted: Importance | None = None,
) -> pd.DataFrame:
    """Predict the mean score over all configurations, had they one value of a hyperparameter in common.

    By the forest that `importance` chose, for the most important hyperparameters.

    Parameters
    ----------
    trials, phases, hyperparameters, phase, seed
        As of `importance`.
    most : int
        Hyperparameters at most.
    fitted : Importance, optional
        What `importance` has returned, if it has been asked.

    Returns
    -------
    DataFrame
        A row a hyperparameter and value that was tried (20 of them at most, spread evenly over the configurations):
        hyperparameter, value, score, low, high (95 % by bootstrap over configurations). Empty where `importance` is.

    References
    ----------
    Friedman, Annals of Statistics 29 (2001), Sec. 8.2.
    """
    fitted = fitted or importance(trials, phases, hyperparameters, phase=phase, seed=seed)
    if fitted.problem:
        return pd.DataFrame(columns=COLUMNS)
    rows, y = explained(trials, phases, phase)
    names = [name for name in hyperparameters if name in set(fitted.table["hyperparameter"])]
    x = encoded(rows[names])
    rng = np.random.default_rng(seed)
    draws = [np.arange(len(y)), *drawn_again(rows_of_configurations(x), _RESAMPLES, rng)]
    forests = [Forest(fitted.settings, x[draw], y[draw]) for draw in draws]
    parts = []
    for name in fitted.table["hyperparameter"].head(most):
        feature = names.index(name)
        tried = values_tried(rows[name], x[:, feature])
        means = np.array([mean_scores(forest, x, feature, [at for _, at in tried]) for forest in forests])
        low, high = np.quantile(means[1:], [0.025, 0.975], axis=0)
        values = [value for value, _ in tried]
        parts.append(pd.DataFrame(dict(zip(COLUMNS, [name, values, means[0], low, high], strict=True))))
    return pd.concat(parts, ignore_index=True)


def values_tried(values: pd.Series, encoded_as: npt.NDArray[np.float64]) -> list[tuple[Any, float]]:
    """Choose values that were tried, in order, with what the forests know each as."""
    known = pd.DataFrame({"value": values.to_numpy(), "at": encoded_as})
    known = known[known["value"].notna()].drop_duplicates("at").sort_values("at")
    chosen = known.iloc[spaced(len(known), _MOST_VALUES)]
    return list(zip(chosen["value"].tolist(), chosen["at"].tolist(), strict=True))


def mean_scores(forest: Forest, x: Floats, features: int | list[int], at: npt.ArrayLike) -> Floats:
    """Predict for all configurations with a feature, or several, set as in each row of `at`; their means [rows]."""
    at = np.asarray(at)
    asked = np.tile(x, (len(at), 1))
    asked[:, features] = np.repeat(at, len(x), axis=0)
    means: Floats = forest.predict(asked).reshape(len(at), len(x)).mean(axis=1)
    return means
