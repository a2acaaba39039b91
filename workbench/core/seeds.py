"""Seeds, kept apart from configurations, so that one config can be repeated with many seeds and judged by all."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt


@lru_cache(maxsize=10_000)  # schedulers that are compared meet the same seeds
def trial_seed(study_seed: int, trial: int) -> int:
    """Derive a trial's own seed: independent between trials, the same in every process and on resume.

    Returns
    -------
    int
        In [0, 2**31), which every library here accepts.
    """
    return derived(study_seed, trial)


def derived(seed: int, *keys: int) -> int:
    """Derive a seed for one purpose from another, in [0, 2**31): independent between keys.

    But for zeros at their end, which change nothing: keys of one length, or that end in others, keep apart.
    """
    return int(np.random.SeedSequence([seed, *keys]).generate_state(1)[0] >> 1)


def scheduler_generator(seed: int) -> np.random.Generator:
    """Give a scheduler its draws: none of its searcher's, which has the same seed and draws configurations from it.

    Were they the same, the draw that orders equal scores would follow a hyperparameter.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))


def interquartile_mean(scores: npt.ArrayLike) -> float:
    """Give the mean of the middle half of all scores: a quarter, rounded down, is left out at either end.

    References
    ----------
    Agarwal et al., NeurIPS 2021 (arXiv 2108.13264), Sec. 4.3.
    """
    values = np.sort(np.asarray(scores, dtype=float), axis=None)
    cut = values.size // 4
    return float(values[cut : values.size - cut].mean())


JUDGES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": lambda values: sum(values) / len(values),
    "median": lambda values: float(np.median(values)),
    "iqm": interquartile_mean,
}
"""What the scores of one configuration's seeds come to."""
