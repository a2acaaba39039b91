"""How the score depends on two hyperparameters together, and how that moves from phase to phase."""

from collections.abc import Sequence

import pandas as pd

from workbench.analysis.dependence import mean_scores, values_tried
from workbench.analysis.importance import (
    FEWEST_TRIALS,
    Importance,
    encoded,
    explained,
    importance,
    phases_with_enough,
)
from workbench.analysis.trees import Floats, Forest
from workbench.core.domains import spaced


def landscape(
    trials: pd.DataFrame,
    phases: pd.DataFrame,
    hyperparameters: Sequence[str],
    *,
    most_phases: int = 4,
    seed: int = 0,
    fitted: Importance | None = None,
) -> pd.DataFrame:
    """Predict the score of some phases over the two most important hyperparameters, the others as they were tried.

    What is best after a short time need not be best after a long one: a landscape that moves says how far early scores
    can be trusted. One forest a phase, with the settings that `importance` chose for the last scores.

    Parameters
    ----------
    trials, phases, hyperparameters, seed
        As of `importance`.
    most_phases : int
        Of more phases than this with enough trials, the first, the last and some between are taken.
    fitted : Importance, optional
        What `importance` has returned, if it has been asked.

    Returns
    -------
    DataFrame
        A row a phase and pair of values that were tried: phase, trials (configurations with a score in it, of more
        than 1000 those that are drawn), the two hyperparameters under their names, score. Empty where `importance` is,
        or with fewer than two hyperparameters.

    References
    ----------
    Mohan et al., AutoML 2023 (arXiv 2304.02396), who drew such landscapes at several times of training.
    """
    fitted = fitted or importance(trials, phases, hyperparameters, seed=seed)
    pair = list(fitted.table["hyperparameter"][:2])
    known = [(phase, *explained(trials, phases, phase)) for phase in phases_with_enough(trials, phases)]
    enough = [
        (phase, rows, y) for phase, rows, y in known if len(y) >= FEWEST_TRIALS and rows[pair].notna().any().all()
    ]
    if fitted.problem or len(pair) < 2 or not enough:
        return pd.DataFrame(columns=["phase", "trials", *(pair if len(pair) == 2 else []), "score"])
    names = [name for name in hyperparameters if name in set(fitted.table["hyperparameter"])]
    parts = [_of_phase(names, pair, fitted, *enough[k]) for k in spaced(len(enough), most_phases)]
    return pd.concat(parts, ignore_index=True)


def _of_phase(
    names: list[str], pair: list[str], fitted: Importance, phase: int, rows: pd.DataFrame, y: Floats
) -> pd.DataFrame:
    """Predict over the grid of the values tried, for all configurations with the pair set; mean over these."""
    x = encoded(rows[names])
    forest = Forest(fitted.settings, x, y)
    across, up = (values_tried(rows[name], x[:, names.index(name)]) for name in pair)
    grid = [(one, other) for _, one in across for _, other in up]
    score = mean_scores(forest, x, [names.index(name) for name in pair], grid)
    values = [(one, other) for one, _ in across for other, _ in up]
    table = pd.DataFrame(values, columns=pair).assign(score=score)
    table.insert(0, "trials", len(y))
    table.insert(0, "phase", phase)
    return table
