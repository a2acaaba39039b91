"""The numbers of the HTS-RL paper (NeurIPS 2020): nothing here was measured by this project."""

from functools import partial

from workbench.paper.numbers import numbers_of

_of = partial(numbers_of, "HTS-RL")

NUMBERS = [
    *_of("Fig. 4 (left)", "ratio", {"speed-up at low step-time variance, about": 1.5}),
    *_of("Fig. 4 (left)", "ratio", {"speed-up at high step-time variance, above": 5}),
]
