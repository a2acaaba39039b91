"""What a study is after: scores minimised outside and maximised inside, targets and limits."""

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.support import SPACE, MemoryLog, RandomTimes, virtual_executor
from workbench import (
    ASHA,
    PBT,
    Hyperband,
    HyperTrick,
    MedianStopping,
    RandomSearcher,
    SuccessiveHalving,
    analysis,
)
from workbench.algos.search.seeded import Seeded
from workbench.cluster.checkpoints import CheckpointStore
from workbench.core.aim import MODES, Aim
from workbench.core.describe import read_back
from workbench.core.drive import drive, replay
from workbench.core.errors import InvalidInput
from workbench.core.ledger import Ledger
from workbench.core.protocols import Decision, Event, Kind, Report, Verdict
from workbench.knowledge.frames import SLOTS, SPANS
from workbench.viz import figures

MINIMISE = Event(Kind.STUDY_STARTED, 0.0, data={"aim": {"mode": "min"}})
SCHEDULERS = [
    lambda: HyperTrick(RandomSearcher(SPACE), 12, 4),
    lambda: MedianStopping(RandomSearcher(SPACE), 12, 4),
    lambda: ASHA(RandomSearcher(SPACE), 12, 4, 2),
    lambda: SuccessiveHalving(RandomSearcher(SPACE), 12, 4, 2),
    lambda: Hyperband(RandomSearcher(SPACE), eta=2, n_phases=4),
    lambda: PBT(RandomSearcher(SPACE), 6, 4, exploit="t-test"),
]


@dataclass
class Turned:
    """A phase model whose scores are another's, negated: losses."""

    model: RandomTimes

    def phase(self, *about) -> tuple[float, float]:
        duration, score = self.model.phase(*about)
        return duration, -score


def driven(scheduler, model, *events: Event) -> tuple[MemoryLog, Ledger]:
    log, ledger = MemoryLog(events), Ledger(events)
    assert drive(scheduler, virtual_executor(model, 3), log, ledger=ledger)
    return log, ledger


@pytest.mark.parametrize("make", SCHEDULERS, ids=lambda make: type(make()).__name__)
def test_losses_minimised_run_as_their_negatives_maximised_and_are_logged_as_they_are(make) -> None:
    highest, best = driven(make(), RandomTimes(3))
    lowest, least = driven(make(), Turned(RandomTimes(3)), MINIMISE)
    assert [(e.kind, e.at, e.trial, e.phase) for e in lowest[1:]] == [(e.kind, e.at, e.trial, e.phase) for e in highest]
    scores = [[e.data["score"] for e in log if e.kind is Kind.PHASE_ENDED] for log in (lowest, highest)]
    assert scores[0] == [-score for score in scores[1]]
    assert least.best == (min(scores[0]), best.best[1]) == (-best.best[0], best.best[1])
    assert [t.best_score for t in least.trials.values()] == [-t.best_score for t in best.trials.values()]
    assert replay(make(), lowest).best == least.best


def test_scores_in_a_reason_are_told_as_the_trainable_gave_them() -> None:
    log, _ = driven(MedianStopping(RandomSearcher(SPACE), 12, 4), Turned(RandomTimes(3)), MINIMISE)
    told = [e.data for e in log if e.kind is Kind.DECISION and e.data["mode"] == "selecting"]
    losses = {e.data["score"] for e in log if e.kind is Kind.PHASE_ENDED}
    assert told
    for reason in told:
        assert reason["best"] in losses
        assert (reason["best"] > reason["median"]) == (reason["verdict"] == "stop")
        assert ("> the median" if reason["verdict"] == "stop" else "≤ the median") in MedianStopping.explain(reason)
    nothing = Aim("min").outward(Decision(Verdict.CONTINUE, {"best": 0.0, "median": None}), ("best", "median"))
    assert nothing.reason == {"best": 0.0, "median": None, "minimised": True}


def test_scores_in_lists_are_turned_back_and_what_is_no_score_stays() -> None:
    """A user's scheduler says what it likes in its reasons."""
    given = {"best": [3.0, [1, None]], "place": "third", "known": True, "n": 2}
    told = Aim("min").outward(Decision(Verdict.CONTINUE, given), ("best", "place", "known"))
    assert told.reason == {"best": [-3.0, [-1, None]], "place": "third", "known": True, "n": 2, "minimised": True}


def test_scores_in_a_reason_on_several_seeds_are_turned_back_too() -> None:
    scheduler = Seeded(MedianStopping(RandomSearcher(SPACE), 8, 4), seeds=2)
    log, _ = driven(scheduler, Turned(RandomTimes(3)), MINIMISE)
    told = [e.data for e in log if e.kind is Kind.DECISION and e.data["mode"] == "selecting"]
    assert told
    for reason in told:
        assert (reason["best"] > reason["median"]) == (reason["verdict"] == "stop")


def test_t_tests_hear_of_returns_in_the_same_direction() -> None:
    report = Report(0, 0, 2.0, returns=(1.0, 3.0))
    assert Aim("min").inward(report) == Report(0, 0, -2.0, returns=(-1.0, -3.0))
    assert Aim().inward(report) is report


def test_a_score_that_is_not_a_number_is_the_best_of_nothing() -> None:
    events = [Event(Kind.RUN, 0.0, 0, 0, data={"config": {}, "seed": 0, "parent": None})]
    events += [Event(Kind.PHASE_ENDED, 1.0 + k, 0, k, data={"score": s}) for k, s in enumerate((math.nan, 4.0, 2.0))]
    assert Ledger(events).best == (4.0, 0)
    assert Ledger([MINIMISE, *events]).best == (2.0, 0)


def test_numpy_s_numbers_are_written_as_python_s() -> None:
    aim = Aim(target_score=np.float32(3.0), max_hours=np.int64(2))
    assert json.loads(json.dumps(aim.to_json())) == Aim(target_score=3.0, max_hours=2).to_json()


def test_a_target_and_a_time_end_a_study() -> None:
    assert Aim(target_score=3.0).why_over(2.9, 0.0) is None
    assert Aim(target_score=3.0).why_over(None, 0.0) is None
    assert Aim(target_score=3.0).why_over(3.0, 0.0) == "the target score, 3, is reached: 3"
    assert Aim("min", target_score=3.0).why_over(3.1, 0.0) is None
    assert "is reached: 2.5" in Aim("min", target_score=3.0).why_over(2.5, 0.0)
    assert Aim(max_hours=0.5).why_over(None, 1799.0) is None
    assert Aim(max_hours=0.5).why_over(None, 1800.0) == "its time, 0.5 h, is up"
    assert [Aim(max_hours=0.5).left_s(at) for at in (0.0, 1700.0, 1900.0)] == [1800, 100, 0]
    assert Aim().left_s(5.0) == math.inf


def test_an_aim_is_written_down_as_far_as_it_is_not_the_usual_one() -> None:
    assert Aim().to_json() == {}
    assert str(Aim()) == ""
    aim = Aim("min", 0.1, 2.0, "size", "min")
    assert read_back(Aim, json.loads(json.dumps(aim.to_json())) | {"of a later version": 1}) == aim
    told = "score minimised; second objective size, minimised; until a score of 0.1; at most 2 h"
    assert str(aim) == told


@pytest.mark.parametrize("kept", [{"second_mode": "min"}, {"second": "wall_s"}])
def test_the_aim_of_a_study_that_would_be_refused_now_can_be_read(kept) -> None:
    assert read_back(Aim, kept).to_json() == kept


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"mode": "low"}, "mode is one of max, min, got 'low'"),
        ({"max_hours": 0}, r"the hours of a study \(max_hours\) are a number above 0 or None, got 0"),
        ({"max_hours": "2"}, "got '2'"),
        ({"target_score": math.nan}, "target_score is a finite number"),
        ({"second": "score"}, "beside score"),
    ],
)
def test_a_wrong_aim_is_refused(wrong, said) -> None:
    with pytest.raises(InvalidInput, match=said):
        Aim(**wrong)


PHASES = pd.DataFrame({"trial": [0, 1], "phase": [0, 0], "ended_s": [1.0, 2.0], "score": [1.0, 2.0], "size": [1, 2]})
TRIALS = pd.DataFrame(
    {"trial": [0, 1], "candidate": [0, 1], "state": "finished", "mode": "finished", "last_score": [1.0, 2.0]}
    | {"phases": 1, "confirms": False, "x": [0.1, 0.2]}
)


def _summed_up(mode: str) -> dict[str, Any]:
    spans, slots = (pd.DataFrame(columns=names) for names in (SPANS, SLOTS))
    phases = PHASES.assign(retries=0)
    return analysis.summarise(TRIALS, phases, spans, slots, wall_s=2.0, n_configs=2, n_phases=1, mode=mode)


@pytest.mark.parametrize(
    "take",
    [
        lambda mode: analysis.best_so_far(PHASES, mode),
        _summed_up,
        lambda mode: analysis.claims(TRIALS, mode),
        lambda mode: analysis.best_trial(PHASES.assign(member=0), mode),
        lambda mode: analysis.front(PHASES, "size", mode),
        lambda mode: analysis.front(PHASES, "size", second_mode=mode),
        lambda mode: figures.population_curves(PHASES.assign(member=0), mode),
        lambda mode: figures.objectives(analysis.front(PHASES, "size"), "size", mode),
        lambda mode: figures.parallel_coordinates(TRIALS, ["x"], mode),
        lambda mode: figures.landscape(PHASES[["phase", "score"]].assign(trials=2, x=[0, 1], y=[0, 1]), "", mode),
        lambda mode: CheckpointStore("there", mode=mode),
    ],
)
def test_a_direction_has_two_words_wherever_it_is_asked_for(take) -> None:
    for mode in MODES:
        take(mode)
    with pytest.raises(InvalidInput, match="mode is one of max, min, got 'minimize'"):
        take("minimize")
