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
    return int(np.random.SeedSequence([study_seed, trial]).generate_state(1)[0] >> 1)
