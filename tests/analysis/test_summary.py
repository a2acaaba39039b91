import json
import math
from dataclasses import replace

import pandas as pd
import pytest

from workbench.analysis import summarise


def _summary(frames, **more):
    return summarise(
        frames.trials,
        frames.phases,
        frames.spans,
        frames.slots,
        wall_s=frames.wall_s,
        n_configs=3,
        n_phases=2,
        **more,
    )


def test_numbers_worked_by_hand(frames):
    found = _summary(frames)
    assert (found["best_trial"], found["best_score"], found["best_at_s"]) == (0, 5.0, 20.0)
    assert found["occupancy"] == pytest.approx(0.95)
    assert (found["lost_s"], found["alpha"], found["wall_s"]) == (4.0, 0.5, 20.0)
    assert (found["trials"], found["phases"], found["retries"]) == (3, 3, 1)
    assert found["states"] == {"finished": 1, "stopped": 1, "running": 1}
    json.dumps(found)  # plain values only


def test_the_best_is_the_first_of_equals_in_the_sense_of_the_study_and_confirms_no_other(frames):
    def best(frames, **more):
        found = _summary(frames, **more)
        return found["best_trial"], found["best_score"], found["best_at_s"]

    equal = replace(frames, phases=frames.phases.assign(score=frames.phases["score"].replace(5.0, 1.0)))
    assert best(equal) == (0, 1.0, 10.0)
    assert best(frames, mode="min") == (1, 0.5, 11.0)
    confirming = replace(frames, trials=frames.trials.assign(confirms=frames.trials["trial"] == 0))
    assert best(confirming) == (1, 0.5, 11.0)
    assert _summary(confirming)["alpha"] == 1 / 6


def test_nothing_yet(nothing):
    found = _summary(nothing)
    assert found["best_trial"] is None
    assert math.isnan(found["best_score"])
    assert (found["alpha"], found["states"], found["retries"]) == (0.0, {}, 0)


def test_phases_that_a_person_asked_for_are_none_of_the_search(frames, nothing):
    last = frames.phases[frames.phases["ended_s"].notna()].iloc[-1]
    extended = frames.decisions.iloc[-1:].assign(trial=last["trial"], phase=last["phase"], mode="extended")
    assert _summary(frames, decisions=frames.decisions)["alpha"] == 0.5
    found = _summary(frames, decisions=pd.concat([frames.decisions, extended], ignore_index=True))
    assert (found["alpha"], found["phases"]) == (2 / 6, 3)
    assert _summary(nothing, decisions=nothing.decisions)["alpha"] == 0.0
