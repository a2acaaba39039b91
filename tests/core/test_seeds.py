"""Every trial's own seed."""

from workbench.core.seeds import trial_seed


def test_trial_seeds_depend_on_study_and_trial_alone() -> None:
    seeds = [trial_seed(s, t) for s in range(20) for t in range(50)]
    assert len(set(seeds)) == len(seeds)
    assert seeds[0] == trial_seed(0, 0)
    assert all(0 <= seed < 2**31 for seed in seeds)
