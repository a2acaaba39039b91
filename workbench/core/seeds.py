"""Seeds, kept apart from configurations, so that one config can be repeated with many seeds."""

from functools import lru_cache

import numpy as np


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
    """Derive a seed for one purpose from another, in [0, 2**31): independent between keys."""
    return int(np.random.SeedSequence([seed, *keys]).generate_state(1)[0] >> 1)


def scheduler_generator(seed: int) -> np.random.Generator:
    """Give a scheduler its draws: none of its searcher's, which has the same seed and draws configurations from it.

    Were they the same, the draw that orders equal scores would follow a hyperparameter.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
