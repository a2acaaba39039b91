"""Which hyperparameters the scores follow, by random forests (as App. A.2 of arXiv 1902.02725)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from workbench.analysis.trees import Floats, Folds, Forest, as_good_shuffled, r2_of, rows_of_configurations
from workbench.core.showing import so_many

FEWEST_TRIALS = 20  # ten folds of two
MOST_TRIALS = 1000  # explained; of more as many are drawn, for they would take long and tell little else
FOLDS, _SHUFFLES = 10, 5
MOST_GAP = 0.3  # R² on its own trials above that on others: more than this is called overfitting
_LARGEST_EXPONENT = 400  # of two, above 0 or below: up to it sums of squares are floats
_LOG_RATIO = 20.0  # positive values over a larger range are taken by their logarithm
COLUMNS = ["hyperparameter", "importance", "low", "high", "permutation", "permutation_low", "permutation_high"]


@dataclass(frozen=True)
class Importance:
    """What the forests found, or why they found nothing.

    Attributes
    ----------
    table : DataFrame
        One row a hyperparameter, the most important first: hyperparameter; importance (share of the forest's variance
        reduction, they sum to 1), low, high (95 % by bootstrap over configurations, and the seeds of each); permutation
        (fall of the cross-validated R² when the values are shuffled), permutation_low, permutation_high (by bootstrap
        over configurations). Empty if there is a `problem`.
    problem : str
        Why there are no numbers: too few trials, nothing varied, no skill, or no more than in shuffled scores. Empty if
        there are.
    trials : int
        Trials with a score that began with weights of their own, stopped early or not.
    drawn : int
        So many of them the forests were asked about: all, or of more than 1000 as many, drawn at random.
    r2, r2_own : float
        Of the chosen forest, on trials it had not seen (10-fold cross-validation) and on its own; NaN if there is none.
        The former is the best of as many as were compared, and so a little high.
    overfits : bool
        Whether every forest fitted its own trials much better than others, so that the least bad had to be taken.
    forests : int
        How many were compared.
    settings : dict
        The chosen forest's.
    """

    table: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=COLUMNS))
    problem: str = ""
    trials: int = 0
    drawn: int = 0
    r2: float = float("nan")
    r2_own: float = float("nan")
    overfits: bool = False
    forests: int = 0
    settings: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.problem:
            return f"no importance: {self.problem}"
        of = "" if self.drawn == self.trials else f" of {self.trials}, drawn at random"
        words = f"R² {self.r2:.2f} on unseen trials, {self.r2_own:.2f} on its own; {self.drawn} trials{of}, best of "
        return f"{words}{self.forests} forests" + ("; it overfits, take the bars with care" if self.overfits else "")


def importance(
    trials: pd.DataFrame,
    phases: pd.DataFrame,
    hyperparameters: Sequence[str],
    *,
    phase: int | None = None,
    forests: int = 100,
    resamples: int = 100,
    seed: int = 0,
) -> Importance:
    """Tell how much of the differences in score each hyperparameter explains.

    Random forests of varied settings are compared by 10-fold cross-validation; of those that do not overfit the best is
    taken. The target is the last score each trial reported, stopped early or not: leaving out the stopped ones would
    hide what makes trials bad. A configuration with several seeds counts once, by their mean; one that was run again,
    as by Hyperband from the start in every rung, is never split between what a forest knows and what it is asked.
    Of a population, those that began with others' weights are left out: see `began_anew`.
    Values over a wide positive range (learning rates) are taken by their logarithm. Whether a hyperparameter applies
    counts for the one that it depends on. Of more than 1000 configurations as many are drawn at random. Nothing is told
    if shuffled scores are explained as well, see `trees.as_good_shuffled`: in pure noise something is told in one case
    of twenty at most.

    Parameters
    ----------
    trials, phases : DataFrame
        As in `workbench.knowledge.Frames`.
    hyperparameters : sequence of str
        Columns of `trials`.
    phase : int, optional
        Take the score reported for this phase instead of the last one.
    forests : int
        Settings to compare; the paper's 100.
    resamples : int
        Bootstrap samples of the trials, for the intervals.
    seed : int
        The same data and seed give the same answer, which is remembered.
    """
    rows, by_seed = scores_by_seed(trials, phases, phase)
    by_seed = _with_squares(by_seed)
    y = _over_seeds(by_seed)
    names = [name for name in hyperparameters if rows[name].astype(str).nunique() > 1]
    if len(y) < FEWEST_TRIALS:
        heirs = len(trials) - len(began_anew(trials))
        besides = f" ({heirs} that began with others' weights are left out)" if heirs else ""
        what = "trial" if by_seed.shape[1] == 1 else "configuration"  # of several seeds each
        words = f"{so_many(len(y), what)} with a score{besides}, {FEWEST_TRIALS} are needed"
        return Importance(problem=words, trials=len(y))
    if not names:
        return Importance(problem="no hyperparameter was varied", trials=len(y))
    if np.ptp(y) == 0:
        return Importance(problem="all scores are the same", trials=len(y))
    rows, by_seed = _drawn(rows, by_seed)
    x = encoded(rows[names])
    found = _explain(x.tobytes(), by_seed.tobytes(), tuple(names), forests, resamples, seed)
    return replace(found, trials=len(y))


def explained(
    trials: pd.DataFrame, phases: pd.DataFrame, phase: int | None = None
) -> tuple[pd.DataFrame, npt.NDArray[np.float64]]:
    """Give the configurations that have a score, a row each, and what is to be explained of each [n].

    Of more than 1000 they are as many, drawn at random. Of a configuration with several seeds it is the mean of their
    scores: two of its trials in different folds would tell a forest what it is asked.
    """
    rows, scores = _drawn(*scores_by_seed(trials, phases, phase))
    return rows, _over_seeds(scores)


def began_anew(trials: pd.DataFrame) -> pd.DataFrame:
    """Leave out the trials that began with others' weights, as under PBT: those made their scores more than they did.

    Copies are made of the best, late, and with hyperparameters near to theirs: where these do nothing at all, forests
    told in nine studies of ten which ones matter.
    """
    return trials[trials["parent_phase"].isna()] if "parent_phase" in trials else trials


def _drawn(rows: pd.DataFrame, by_seed: Floats) -> tuple[pd.DataFrame, Floats]:
    """Draw `MOST_TRIALS` configurations with their scores, the same ones each time; fewer stay as they are."""
    if len(rows) <= MOST_TRIALS:
        return rows, by_seed
    kept = np.sort(np.random.default_rng(0).choice(len(rows), MOST_TRIALS, replace=False))
    return rows.iloc[kept], by_seed[kept]


def phases_with_enough(trials: pd.DataFrame, phases: pd.DataFrame) -> list[int]:
    """Give the phases that enough trials have ended with a score, to be explained on their own."""
    scored = phases[phases["score"].notna() & phases["trial"].isin(began_anew(trials)["trial"])]
    counts = scored.groupby("phase")["trial"].nunique()
    return sorted(map(int, counts.index[counts >= FEWEST_TRIALS]))


def _over_seeds(by_seed: Floats) -> Floats:
    """Mean of each configuration's seeds [n]; numpy warns of the mean of none."""
    means: Floats = np.nanmean(by_seed, axis=1) if len(by_seed) else by_seed[:, 0]
    return means


def scores_by_seed(trials: pd.DataFrame, phases: pd.DataFrame, phase: int | None = None) -> tuple[pd.DataFrame, Floats]:
    """Give the configurations that have a score, a row each, and their seeds' scores [n, seeds], NaN at the end."""
    trials = began_anew(trials)
    scores = _scores(trials, phases, phase)
    rows = trials[trials["trial"].isin(scores.index)]
    y = scores.reindex(rows["trial"]).to_numpy(float)
    if "candidate" not in trials or not rows["candidate"].duplicated().any():
        return rows, y[:, None]
    first = rows.drop_duplicates("candidate")
    seed = rows.groupby("candidate").cumcount().to_numpy()
    table = np.full((len(first), seed.max() + 1), np.nan)
    table[pd.Index(first["candidate"]).get_indexer(rows["candidate"]), seed] = y
    return first, table


def _with_squares(scores: Floats) -> Floats:
    """Scale scores whose squares no float holds, as of a loss that has diverged: all that is told is of shares.

    By a power of two, which changes no digit.
    """
    _, exponent = np.frexp(np.nanmax(np.abs(scores), initial=0.0))
    return np.ldexp(scores, -exponent) if abs(exponent) > _LARGEST_EXPONENT else scores


def encoded(configs: pd.DataFrame) -> Floats:
    """Turn hyperparameters, a column each, into numbers [n, columns]: by their logarithm over a wide positive range.

    Words are taken by their order, as are numbers with an infinite one among them, as where gradients are not clipped.

    Where a hyperparameter does not apply it has one of its values elsewhere, drawn at random, and the same for trials
    of one configuration. Any one value, or none, would tell a forest what it depends on, and take that one's
    importance. One that has a single value is set apart, for nothing else tells where it is and where it is not.
    """
    x = np.column_stack([_numbers(configs[name]) for name in configs])
    absent = np.isnan(x)
    _, number = np.unique(np.where(absent, -np.inf, x), axis=0, return_inverse=True)
    rng = np.random.default_rng(0)
    for k in np.flatnonzero(absent.any(axis=0)):
        drawn = rng.choice(x[~absent[:, k], k], number.max() + 1)
        x[:, k] = np.where(absent[:, k], drawn[number.ravel()], x[:, k])
    return x


def _numbers(values: pd.Series) -> Floats:
    """Turn a hyperparameter's values into numbers [n], NaN where it does not apply, if it has several."""
    numeric = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if numeric and not np.isinf(values).any():
        numbers = values.to_numpy(float)
    else:
        codes = pd.factorize(values if numeric else values.map(str).where(values.notna()), sort=True)[0]
        numbers = np.where(codes < 0, np.nan, codes)
    absent = np.isnan(numbers)
    if absent.all():
        return np.zeros(len(numbers))
    low, high = np.nanmin(numbers), np.nanmax(numbers)
    if low == high:
        return np.where(absent, low - 1, numbers)
    return np.log10(numbers) if low > 0 and high / _LOG_RATIO > low else numbers


def drawn_again(rows: Folds, resamples: int, rng: np.random.Generator) -> Folds:
    """Draw as many configurations as there are, with replacement; give the rows of each draw [resamples]."""
    draws = rng.integers(len(rows), size=(resamples, len(rows)))
    return [np.concatenate([rows[k] for k in draw]) for draw in draws]


def _scores(trials: pd.DataFrame, phases: pd.DataFrame, phase: int | None) -> pd.Series:
    """Give the score to explain of every trial that has one, by trial."""
    if phase is None:
        return trials.dropna(subset=["last_score"]).set_index("trial")["last_score"].astype(float)
    ended = phases[(phases["phase"] == phase) & phases["score"].notna()]
    return ended.set_index("trial")["score"].astype(float)


@lru_cache(maxsize=32)
def _explain(xs: bytes, ys: bytes, names: tuple[str, ...], forests: int, resamples: int, seed: int) -> Importance:
    x = np.frombuffer(xs).reshape(-1, len(names))
    by_seed = np.frombuffer(ys).reshape(len(x), -1)
    y = _over_seeds(by_seed)
    rng = np.random.default_rng(seed)
    rows = rows_of_configurations(x)
    folds = [
        np.concatenate([rows[k] for k in part])
        for part in np.array_split(rng.permutation(len(rows)), min(FOLDS, len(rows)))
    ]
    tried = []
    for settings in _varied(forests, rng):
        outside, own = _validate(settings, x, y, folds)
        tried.append((outside, own, settings))
    sound = [one for one in tried if one[1] - one[0] <= MOST_GAP]
    r2, r2_own, best = max(sound or tried, key=lambda one: one[0])
    known: dict[str, Any] = {"drawn": len(y), "r2": r2, "r2_own": r2_own, "forests": forests, "settings": best}
    if r2 <= 0:
        words = f"no forest predicts unseen trials better than their mean does (R² {r2:.2f}, {len(y)} trials)"
        return Importance(problem=words, **known)
    if as_good_shuffled(x, y, seed):
        words = f"shuffled scores are explained as well as these (R² {r2:.2f}, {len(y)} trials): it may be luck"
        return Importance(problem=words, **known)
    shares = _shares(best, x, by_seed, drawn_again(rows, resamples, rng), rng)
    harms = _harms(best, x, y, folds, rng)
    falls = _permuted(harms / np.mean((y - y.mean()) ** 2), drawn_again(rows, resamples, rng))
    columns = [list(names), *shares, *falls]
    table = pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))
    return Importance(table.sort_values("importance", ascending=False, ignore_index=True), overfits=not sound, **known)


def _varied(n: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Draw settings of forests; small ones, since trials are few."""
    return [
        {
            "n_estimators": int(rng.choice([5, 10, 20])),
            "max_depth": int(rng.integers(2, 9)),
            "min_samples_leaf": int(rng.integers(1, 9)),
            "max_features": float(rng.choice([0.34, 0.67, 1.0])),
            "random_state": int(rng.integers(2**31)),
        }
        for _ in range(n)
    ]


def _validate(settings: dict[str, Any], x: Floats, y: Floats, folds: Folds) -> tuple[float, float]:
    """Give R² on unseen trials, over all folds together, and the mean R² on a forest's own."""
    unseen, own = np.empty(len(y)), []
    for held_out, rest, forest in _forests(settings, x, y, folds):
        unseen[held_out] = forest.predict(x[held_out])
        own.append(r2_of(y[rest], forest.predict(x[rest])))
    return r2_of(y, unseen), float(np.mean(own))


def _forests(settings: dict[str, Any], x: Floats, y: Floats, folds: Folds) -> Iterator[tuple[Any, Any, Forest]]:
    """Give each fold, the rest, and a forest that knows the rest alone."""
    for held_out in folds:
        rest = np.setdiff1d(np.arange(len(y)), held_out)
        yield held_out, rest, Forest(settings, x[rest], y[rest])


def _shares(
    settings: dict[str, Any], x: Floats, by_seed: Floats, draws: Folds, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Importances of a forest on all configurations, and of forests on draws of them → value, low, high [features].

    Of each that is drawn the seeds are drawn again, too: how it would have scored with others is not known better.
    """
    again = np.array([Forest(settings, x[draw], _redrawn(by_seed[draw], rng)).shares() for draw in draws])
    low, high = np.quantile(again, [0.025, 0.975], axis=0)
    return Forest(settings, x, _over_seeds(by_seed)).shares(), low, high


def _redrawn(by_seed: Floats, rng: np.random.Generator) -> Floats:
    """Mean of as many of each configuration's seeds as it has, drawn with replacement [n]."""
    if by_seed.shape[1] == 1:
        return by_seed[:, 0]
    counts = np.count_nonzero(~np.isnan(by_seed), axis=1, keepdims=True)
    picked = np.take_along_axis(by_seed, (rng.random(by_seed.shape) * counts).astype(int), axis=1)
    means: Floats = np.where(np.arange(by_seed.shape[1]) < counts, picked, 0.0).sum(axis=1) / counts[:, 0]
    return means


def _harms(settings: dict[str, Any], x: Floats, y: Floats, folds: Folds, rng: np.random.Generator) -> Floats:
    """Rise of the squared error on each unseen trial when one column is shuffled [n, features]."""
    harm = np.zeros(x.shape)
    for held_out, _, forest in _forests(settings, x, y, folds):
        before = (forest.predict(x[held_out]) - y[held_out]) ** 2
        for feature in range(x.shape[1]):
            for _ in range(_SHUFFLES):
                shuffled = x[held_out].copy()
                shuffled[:, feature] = rng.choice(x[:, feature], len(held_out))
                harm[held_out, feature] += ((forest.predict(shuffled) - y[held_out]) ** 2 - before) / _SHUFFLES
    return harm


def _permuted(fall: Floats, draws: Folds) -> tuple[Floats, Floats, Floats]:
    """Fall of R² on unseen trials by shuffling each column; intervals over draws → value, low, high [features]."""
    low, high = np.quantile([fall[draw].mean(axis=0) for draw in draws], [0.025, 0.975], axis=0)
    return fall.mean(axis=0), low, high
