"""The numbers and claims of the HTS-RL paper (NeurIPS 2020): nothing here was measured by this project."""

from functools import partial

from workbench.paper.numbers import claims_of, numbers_of

_of = partial(numbers_of, "HTS-RL")
_claims = partial(claims_of, "HTS-RL")

NUMBERS = [
    *_of("Fig. 4 (left)", "ratio", {"speed-up at low step-time variance, about": 1.5}),
    *_of("Fig. 4 (left)", "ratio", {"speed-up at high step-time variance, above": 5}),
    *_of("Methods", "update", {"the policy that acts lags by exactly": 1}),
]

IN_THE_SAME_TIME = "scores in limited training time (values lost); whether above the baseline's is our question"

CLAIMS = [
    *_claims("Fig. 4 (left)", "the speed-up grows with the variance of step times"),
    *_claims("Conclusion", "as many steps train as well as without concurrency"),
    *_claims("Table 1", IN_THE_SAME_TIME),
    *_claims("Methods", "results do not depend on the actors"),
    *_claims("Abstract", "asynchronous methods learn less from as many steps"),
    *_claims(
        "Tables 1 to 5", "scores and times, by actors and intervals", why_not="neither values nor ranges in our text"
    ),
]
