"""Every trial's own seed."""

import numpy as np

from workbench.core.seeds import JUDGES, scheduler_generator, trial_seed


def test_trial_seeds_depend_on_study_and_trial_alone() -> None:
    seeds = [trial_seed(s, t) for s in range(20) for t in range(50)]
    assert len(set(seeds)) == len(seeds)
    assert seeds[0] == trial_seed(0, 0)
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_a_scheduler_draws_nothing_that_its_searcher_of_the_same_seed_draws() -> None:
    for seed in range(50):
        own = scheduler_generator(seed).random(50)
        assert (own == scheduler_generator(seed).random(50)).all()
        assert not set(own) & set(np.random.default_rng(seed).random(500))


def test_scores_of_several_seeds_are_joined_as_worked_by_hand() -> None:
    assert {name: judge([9.0, 1.0, 2.0, 3.0]) for name, judge in JUDGES.items()} == {
        "mean": 3.75,
        "median": 2.5,
        "iqm": 2.5,
    }
    assert {name: judge([1.0, 2.0, 6.0]) for name, judge in JUDGES.items()} == {"mean": 3.0, "median": 2.0, "iqm": 3.0}
