import math

import numpy as np
import pytest

from tests.algos.search.arena import asked, play
from tests.support import SPACE
from workbench.algos.search import MFPBT, PBT, ListSearcher, RandomSearcher
from workbench.core.domains import Uniform
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Report
from workbench.core.space import Space

LINE = Space({"x": Uniform(0.0, 100.0)})


@pytest.mark.parametrize("exploit", ["truncation", "t-test", "tournament", "none"])
def test_one_frequency_is_pbt(exploit) -> None:
    ours, pbt = (
        play(kind(RandomSearcher(SPACE), 6, 8, exploit=exploit, seed=3, **more), 4, 5)
        for kind, more in ((MFPBT, {"intervals": (1,)}), (PBT, {}))
    )
    assert (ours.runs, ours.told, ours.reasons) == (pbt.runs, pbt.told, pbt.reasons)


def test_worked_by_hand() -> None:
    """Four members: 0 and 2 evolve after every phase, 1 and 3 after every second; losers change nothing else."""
    searcher = ListSearcher([{"x": x} for x in (10.0, 20.0, 30.0, 40.0)])
    scheduler = asked(MFPBT(searcher, 4, 4, share=0.5, explore=False, space=LINE, intervals=(1, 2)), 4)

    def told(trial, phase, score):
        decision = scheduler.tell(Report(trial, phase, score))[trial]
        return str(decision.verdict), decision.reason["mode"], decision.reason.get("donor")

    assert told(1, 0, 9.0) == ("continue", "not ready", None)
    assert told(3, 0, 1.0) == ("continue", "not ready", None)
    assert told(0, 0, 5.0) == ("continue", "kept", None)
    assert told(2, 0, 4.0) == ("stop", "exploited", 1)  # 0 leads its own two, but 1 leads all
    heir = scheduler.ask()
    assert (heir.parent, heir.config) == (1, {"x": 20.0})  # from one that evolves less often: all of it
    assert told(0, 1, 20.0) == ("continue", "kept", None)
    assert told(1, 1, 9.0) == ("continue", "kept", None)
    assert told(3, 1, 1.0) == ("stop", "exploited", 0)
    heir = scheduler.ask()
    assert (heir.parent, heir.config) == (0, {"x": 40.0})  # from one that evolves more often: the weights alone


def test_where_weights_stay_hyperparameters_come_from_those_that_evolve_as_seldom() -> None:
    """Of one that evolves more often only the weights would be taken: of members that keep theirs, nothing."""
    searcher = ListSearcher([{"x": x} for x in (10.0, 20.0, 30.0, 40.0)])
    scheduler = asked(
        MFPBT(searcher, 4, 4, share=0.5, explore=False, copy_weights=False, space=LINE, intervals=(1, 2)), 4
    )
    for trial, phase, score in ((1, 0, 9.0), (3, 0, 1.0), (0, 0, 20.0), (1, 1, 9.0)):
        scheduler.tell(Report(trial, phase, score))
    reason = scheduler.tell(Report(3, 1, 1.0))[3].reason
    assert (reason["config_of"], reason["donor"]) == (1, 3)
    assert "interval" not in reason
    heir = scheduler.ask()
    assert (heir.parent, heir.config) == (3, {"x": 20.0})


@pytest.mark.parametrize("exploit", ["truncation", "t-test", "tournament"])
@pytest.mark.parametrize("failed", [False, True])
def test_one_that_lost_all_is_saved_by_others_where_none_of_its_own_has_a_score(failed, exploit) -> None:
    """As long as nobody has one it goes on if it can; rivals whose score is not a number are of no help."""
    searcher = ListSearcher([{"x": x} for x in (10.0, 20.0, 30.0, 40.0)])
    scheduler = asked(MFPBT(searcher, 4, 4, exploit, explore=False, share=0.5, space=LINE, intervals=(1, 2)), 4)

    def told(trial, score, *, failed=False):
        decision = scheduler.tell(Report(trial, 0, score, failed=failed))[trial]
        return str(decision.verdict), decision.reason["mode"], decision.reason.get("donor")

    assert told(2, math.nan) == ("continue", "kept", None)
    assert told(1, 8.0) == ("continue", "not ready", None)
    assert told(0, math.nan, failed=failed) == ("stop", "failed" if failed else "exploited", 1)
    heir = scheduler.ask()
    assert (heir.parent, heir.config) == (1, {"x": 20.0})
    assert told(3, math.nan, failed=True) == ("stop", "failed", 1)  # its own has a score
    assert scheduler.ask().config == {"x": 20.0}


@pytest.mark.parametrize(("intervals", "saviour"), [((1, 2), 1), ((2, 1), None)])
def test_where_weights_stay_nobody_is_saved_by_one_of_which_nothing_would_be_taken(intervals, saviour) -> None:
    scheduler = asked(MFPBT(LINE, 4, 4, share=0.5, copy_weights=False, intervals=intervals), 4)
    scheduler.tell(Report(1, 0, 8.0))
    decision = scheduler.tell(Report(0, 0, math.nan))[0]
    if intervals[0] == 2:
        decision = scheduler.tell(Report(0, 1, math.nan))[0]
    assert decision.reason.get("config_of") == saviour
    assert decision.reason["mode"] == ("kept" if saviour is None else "exploited")


def test_of_equals_a_loser_copies_its_own() -> None:
    scheduler = asked(MFPBT(LINE, 4, 4, share=0.5, intervals=(1, 2)), 4)
    for trial, score in ((1, 5.0), (3, 1.0), (0, 5.0)):
        scheduler.tell(Report(trial, 0, score))
    assert scheduler.tell(Report(2, 0, 4.0))[2].reason["donor"] == 0


def test_on_a_deceptive_toy_the_patient_win() -> None:
    """Greed pays one a phase for ever; patience nothing for four phases, then three a phase: PBT stays with greed."""

    def final(scheduler) -> float:
        worth, weights = {}, {}  # of each trial: score, and phases of patience in its weights

        def score(config, trial, phase):
            parent = next(run.parent for run in reversed(runs()) if run.trial == trial)
            at, patience = worth.get(trial, worth.get(parent, 0.0)), weights.get(trial, weights.get(parent, 0))
            weights[trial] = patience = patience + 1 if config["x"] > 50 else 0
            worth[trial] = at + (1.0 if config["x"] <= 50 else 3.0 * (patience > 4))
            return worth[trial]

        asked, ask = [], scheduler.ask

        def runs():
            return asked

        def noting():
            run = ask()
            asked.extend([run] if run else [])
            return run

        scheduler.ask = noting
        play(scheduler, 12, score=score, speeds=[1.0] * 12)
        return max(worth.values())

    greedy = [final(PBT(LINE, 12, 24, seed=seed, share=0.4)) for seed in range(9)]
    patient = [final(MFPBT(LINE, 12, 24, seed=seed, share=0.4, intervals=(1, 6, 12))) for seed in range(9)]
    assert np.median(patient) > 1.3 * np.median(greedy)
    assert min(patient) > 1.3 * min(greedy)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"intervals": ()}, "intervals"),
        ({"intervals": (0,)}, "intervals"),
        ({"intervals": "12"}, "a list"),
        ({}, "8 members or more"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, words) -> None:
    with pytest.raises(InvalidInput, match=words):
        MFPBT(SPACE, 6, 8, **settings)


def test_intervals_may_be_numpy_s() -> None:
    assert MFPBT(SPACE, 4, 8, intervals=np.array([1, 2])).intervals == (1, 2)
