import math

from tests.algos.search.arena import asked, told
from tests.support import SPACE
from workbench.algos.search import MedianStopping, RandomSearcher
from workbench.core.protocols import Report


def begun(n=6, n_phases=3, **settings) -> MedianStopping:
    return asked(MedianStopping(RandomSearcher(SPACE), n, n_phases, **settings), n)


def test_worked_by_hand() -> None:
    scheduler = begun()
    assert [told(scheduler, t, 0, s) for t, s in enumerate([1.0, 2.0, 3.0])] == [("continue", "collecting")] * 3
    assert told(scheduler, 3, 0, 1.9) == ("stop", "selecting")  # the median of 1, 2, 3 is 2
    assert told(scheduler, 4, 0, 1.95) == ("continue", "selecting")  # of 1, 1.9, 2, 3 it is 1.95: not below
    # second phase: the running averages of 0, 1, 2 are 1.5, 1, 3.5; trial 4's best is its first
    for trial, score in [(0, 2.0), (1, 0.0), (2, 4.0)]:
        told(scheduler, trial, 1, score)
    decision = scheduler.tell(Report(4, 1, -9.0))[4]
    assert (str(decision.verdict), decision.reason["median"], decision.reason["best"]) == ("continue", 1.5, 1.95)
    assert told(scheduler, 0, 2, 0.0) == ("stop", "finished")


def test_nobody_is_stopped_in_the_grace_phases() -> None:
    scheduler = begun(grace_phases=2, min_reports=1)
    assert told(scheduler, 0, 0, 5.0) == ("continue", "collecting")
    assert told(scheduler, 1, 0, 0.0) == ("continue", "collecting")
    told(scheduler, 0, 1, 5.0)
    assert told(scheduler, 1, 1, 0.0) == ("stop", "selecting")


def test_vizier_s_own_rule_waits_for_completed_trials() -> None:
    scheduler = begun(completed_only=True, min_reports=1)
    told(scheduler, 0, 0, 5.0)
    assert told(scheduler, 1, 0, 0.0) == ("continue", "collecting")
    told(scheduler, 0, 1, 6.0)
    told(scheduler, 0, 2, 7.0)
    assert told(scheduler, 1, 1, 5.4) == ("stop", "selecting")  # below (5 + 6) / 2
    assert told(scheduler, 2, 0, 5.0) == ("continue", "selecting")
    assert told(scheduler, 2, 1, 5.7) == ("continue", "selecting")  # above it, though below the 6


def test_a_failure_leaves_no_trace() -> None:
    scheduler = begun(min_reports=1)
    scheduler.tell(Report(0, 0, math.nan, failed=True))
    assert told(scheduler, 1, 0, -5.0) == ("continue", "collecting")
