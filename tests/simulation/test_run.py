"""One study in virtual time, of phases whose times and scores are known."""

import numpy as np

from workbench.algos.search import FullRuns, GridSearcher, RandomSearcher
from workbench.simulation import simulate
from workbench.simulation.cluster import VirtualCluster


class Counting:
    """Phases take 1 s, 2 s, … by trial; a score is the trial's number plus the phase's."""

    def phase(self, trial, phase, config, seed):
        return 1.0 + trial, float(trial + phase)


def test_an_outcome_is_what_the_log_says(small) -> None:
    scheduler = FullRuns(RandomSearcher(small.space), 3, 2)
    outcome = simulate(scheduler, Counting(), VirtualCluster(2))
    # node 0: trial 0 until 2, trial 2 until 8; node 1: trial 1 until 4
    assert outcome.makespan == 8
    assert outcome.occupancy == 12 / 16
    assert outcome.completion_rate == 1
    assert (outcome.best_score, outcome.best_trial, outcome.time_to_best) == (3, 2, 8)
    assert outcome.best_by(np.array([0.5, 1.0, 2.0, 4.0, 5.0, 9.0])).tolist() == [-np.inf, 0, 1, 2, 2, 3]
    assert outcome.busy_slots(np.array([0.0, 4.0, 8.0])).tolist() == [2, 1]
    assert scheduler.ask().trial == 0  # it was a copy that ran


def test_a_trial_that_completes_no_phase_counts_as_one_that_ran_none(small) -> None:
    class LastDiverges(Counting):
        def phase(self, trial, phase, config, seed):
            return 1.0, np.nan if trial == 2 else 0.0

    outcome = simulate(FullRuns(RandomSearcher(small.space), 3, 2), LastDiverges(), VirtualCluster(2))
    assert outcome.phases_run().tolist() == [2, 2, 0]
    assert (outcome.trials, outcome.phases, outcome.retries, outcome.completion_rate) == (3, 4, 1, 4 / 6)


def test_of_equal_scores_the_first_is_the_best(small) -> None:
    class Plateau:
        def phase(self, trial, phase, config, seed):
            return 1.0 + trial, 1.0

    for events in (None, []):
        outcome = simulate(FullRuns(RandomSearcher(small.space), 2, 2), Plateau(), VirtualCluster(2), events=events)
        assert (outcome.best_trial, outcome.time_to_best) == (0, 1)


def test_a_completion_rate_counts_the_configurations_there_are(small) -> None:
    scheduler = FullRuns(GridSearcher(small.space, 2), 100, 2)
    assert simulate(scheduler, Counting()).completion_rate == 1
