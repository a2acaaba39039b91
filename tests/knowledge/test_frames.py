"""What the frames say of a log."""

import pandas as pd
import pytest

from tests.knowledge.studies import RUN, a_study
from workbench.analysis import occupancy
from workbench.core.protocols import Event, Kind
from workbench.knowledge import Frames, frames_of
from workbench.knowledge.frames import DECISIONS, METRICS, PHASES, SLOTS, SPANS, TRIALS


def test_a_trial_that_is_taken_up_again_keeps_its_parent() -> None:
    child = {**RUN, "parent": 0}
    events = [Event(Kind.RUN, 0.0, 0, 0, data=RUN), Event(Kind.RUN, 1.0, 1, 1, data=child)]
    events += [Event(Kind.RUN, 2.0, t, 2, data={**RUN, "parent": t}) for t in (0, 1)]
    parents = frames_of(events).trials.set_index("trial")["parent"]
    assert pd.isna(parents[0])
    assert parents[1] == 0


def test_configurations_stand_as_they_were_logged_where_some_lack_a_hyperparameter() -> None:
    configs = {0: {"lr": 0.1, "layers": 3}, 1: {"lr": 0.2}}
    frames = frames_of([Event(Kind.RUN, 0.0, t, 0, data={**RUN, "config": c}) for t, c in configs.items()])
    assert frames.configs == configs
    assert all(type(frames.configs[t][name]) is type(value) for t, c in configs.items() for name, value in c.items())


def test_hyperparameters_that_parquet_has_no_type_for_are_written_as_text(tmp_path) -> None:
    configs = [{"batch": 32, "wide": 2**70, "lr": 1, "name": "a"}, {"batch": "auto", "wide": 1, "lr": 0.5}]
    frames = frames_of([Event(Kind.RUN, 0.0, t, 0, data={**RUN, "config": c}) for t, c in enumerate(configs)])
    frames.export(tmp_path, "parquet")
    trials = pd.read_parquet(tmp_path / "trials.parquet")
    assert trials["batch"].tolist() == ["32", "auto"]
    assert trials["wide"].tolist() == [str(2**70), "1"]
    assert trials["lr"].tolist() == [1.0, 0.5]
    assert trials["name"].isna().tolist() == [False, True]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_metric_may_be_called_as_a_column_of_dicts_is(tmp_path, kind) -> None:
    ended = {"score": 1.0, "metrics": {"score": 1.0, "data": 7.0, "reason": 3.0}, "checkpoint": None}
    begun = [Event(Kind.RUN, 0.0, 0, 0, data=RUN), Event(Kind.PHASE_STARTED, 0.0, 0, 0, 0)]
    frames = frames_of([*begun, Event(Kind.PHASE_ENDED, 1.0, 0, 0, 0, ended)])
    frames.export(tmp_path, kind)
    phases = getattr(pd, f"read_{kind}")(tmp_path / f"phases.{kind}")
    assert phases[["data", "reason"]].values.tolist() == [[7.0, 3.0]]


def test_trials_that_confirm_others_are_no_part_of_the_search() -> None:
    again = {**RUN, "candidate": 0, "confirms": True}
    events = [Event(Kind.RUN, 0.0, 0, 0, data=RUN), Event(Kind.RUN, 0.0, 1, 0, data=again)]
    for t in (0, 1):
        events.append(Event(Kind.PHASE_STARTED, 0.0, t, 0, t))
        events.append(Event(Kind.PHASE_ENDED, 1.0, t, 0, t, {"score": t, "metrics": {"score": t}}))
    frames = frames_of(events)
    assert frames.phases["trial"].tolist() == [0, 1]
    assert frames.searched["trial"].tolist() == [0]


@pytest.mark.parametrize("last", [Kind.STUDY_ENDED, Kind.STUDY_INTERRUPTED])
def test_no_trial_runs_in_a_study_that_is_over(last) -> None:
    events = [Event(Kind.STUDY_STARTED, 0.0), Event(Kind.RUN, 0.0, 0, 0, data=RUN)]
    assert frames_of(events).trials["state"].tolist() == ["running"]
    assert frames_of([*events, Event(last, 1.0)]).trials["state"].tolist() == ["cut off"]


def test_a_trial_that_was_extended_waits_in_a_paused_study() -> None:
    asked = {"accepted": True, "by": "person"}
    over = {"verdict": "stop", "mode": "finished"}
    events = [
        *(Event(Kind.RUN, 0.0, t, 0, data=RUN) for t in (0, 1)),
        *(Event(Kind.PHASE_STARTED, 0.0, t, 0, t) for t in (0, 1)),
        Event(Kind.INTERVENTION, 1.0, data={"action": "pause study", "request": "a", **asked}),
        Event(Kind.PHASE_ENDED, 2.0, 0, 0, 0, {"score": 1.0}),
        Event(Kind.DECISION, 2.0, 0, 0, data=over),
        Event(Kind.INTERVENTION, 3.0, 0, data={"action": "extend", "phases": 1, "request": "b", **asked}),
    ]
    goes_on = Event(Kind.INTERVENTION, 4.0, data={"action": "resume study", "request": "c", **asked})
    assert frames_of(events).trials["state"].tolist() == ["set aside", "running"]
    assert frames_of([*events, goes_on]).trials["state"].tolist() == ["running", "running"]


def test_the_clock_goes_on_with_metrics_while_no_phase_ends() -> None:
    point = pd.DataFrame([(1, 0, 0, 60.0, "score", 1.0)], columns=METRICS)
    assert [frames_of(a_study()[:7], points).wall_s for points in (None, point)] == [0.0, 60.0]
    assert frames_of(a_study(), point.assign(at_s=8.0)).wall_s == 9.0


def test_frames_are_shown_in_a_line_with_the_rows_of_each() -> None:
    shown = repr(frames_of(a_study()))
    assert shown.startswith("Frames(ended, 9 s; rows: trials 3, phases 4, spans 6, ")
    assert shown.endswith("slots 3)")


def test_frames_of_a_small_study() -> None:
    frames = frames_of(a_study())
    trials = frames.trials.set_index("trial")
    assert trials["state"].to_dict() == {0: "finished", 1: "stopped", 2: "failed"}
    assert trials["phases"].to_dict() == {0: 2, 1: 1, 2: 0}
    assert (trials.loc[0, "last_score"], trials.loc[0, "best_score"]) == (4.0, 5.0)
    assert trials.loc[2, "error"] == "diverged"
    assert frames.hyperparameters == ["lr"]

    phases = frames.phases.set_index(["trial", "phase"])
    assert phases.loc[(0, 0), ["started_s", "ended_s", "wall_s", "retries"]].tolist() == [2.0, 4.0, 2.0, 1]
    assert phases["retries"].to_dict() == {(0, 0): 1, (0, 1): 0, (1, 0): 0, (2, 0): 1}  # the last attempt, too
    assert phases.loc[(0, 0), "frames"] == 40
    assert pd.isna(phases.loc[(2, 0), "ended_s"])

    spans = [
        tuple(row) for row in frames.spans[["slot", "trial", "phase", "started_s", "ended_s", "outcome"]].to_numpy()
    ]
    assert spans == [
        (0, 0, 0, 0.0, 1.0, "lost"),
        (1, 1, 0, 0.0, 6.0, "ended"),
        (0, 0, 0, 2.0, 4.0, "ended"),
        (0, 0, 0, 4.0, 6.0, "held"),
        (0, 0, 1, 6.0, 9.0, "ended"),
        (1, 2, 0, 6.0, 7.0, "lost"),
    ]
    assert frames.slots["lost_s"].fillna(-1).tolist() == [1.0, -1, -1]
    assert (frames.state, frames.wall_s) == ("ended", 9.0)


@pytest.mark.parametrize("events", [[], a_study()])
def test_frames_have_the_documented_columns_full_or_empty(events) -> None:
    frames = frames_of(events)
    for name, columns in {
        "trials": TRIALS,
        "phases": PHASES,
        "spans": SPANS,
        "decisions": DECISIONS,
        "metrics": METRICS,
        "slots": SLOTS,
    }.items():
        assert list(getattr(frames, name).columns)[: len(columns)] == columns
        assert name in (Frames.__doc__ or "")


@pytest.mark.parametrize("cut", range(len(a_study())))
def test_frames_can_be_read_at_any_moment_of_a_study(cut) -> None:
    frames = frames_of(a_study()[:cut])
    assert frames.state == "running"
    assert (frames.spans["outcome"] == "running").sum() <= 2


def test_a_driver_that_died_leaves_no_span_open_once_another_takes_up() -> None:
    events = [*a_study()[:7], Event(Kind.STUDY_RESUMED, 5.0)]
    frames = frames_of(events)
    assert frames.spans["outcome"].tolist() == ["lost", "lost"]
    assert frames.spans["ended_s"].tolist() == [5.0, 5.0]
    assert frames.slots["lost_s"].tolist() == [5.0, 5.0]


def test_each_stretch_of_a_slot_s_life_ends_when_it_was_lost() -> None:
    events = [*a_study()[:10], Event(Kind.SLOT_LOST, 3.0, slot=0, data={"node": "a"}), Event(Kind.STUDY_RESUMED, 5.0)]
    slots = frames_of(events).slots
    assert slots[["slot", "joined_s", "lost_s"]].to_numpy().tolist() == [[0, 0.0, 1.0], [1, 0.0, 5.0], [0, 2.0, 3.0]]


def test_a_phase_is_on_the_node_that_its_slot_is_on_now() -> None:
    events = a_study()
    events[9] = Event(Kind.SLOT_JOINED, 2.0, slot=0, data={"node": "c"})
    frames = frames_of(events)
    assert frames.spans["node"].tolist() == ["a", "b", "c", "c", "c", "b"]
    assert frames.phases["node"].tolist() == ["c", "b", "c", "b"]


def test_the_number_of_a_configuration_in_a_table_is_no_hyperparameter() -> None:
    frames = frames_of([Event(Kind.RUN, 0.0, 0, 0, data={**RUN, "config": {"lr": 0.1, "config_id": 7}})])
    assert frames.hyperparameters == ["lr"]
    assert frames.configs == {0: {"lr": 0.1}}
    assert frames.trials["config_id"].tolist() == [7]


def test_a_request_s_row_has_what_was_asked_and_by_whom() -> None:
    asked = {"request": "0-1", "action": "extend", "by": "me", "accepted": True, "phases": 2}
    (row,) = frames_of([Event(Kind.INTERVENTION, 3.0, data=asked)]).interventions.to_dict("records")
    expected = {"at_s": 3.0, "trial": None, "action": "extend", "accepted": True, "why": None, "by": "me"}
    assert row == {**expected, "data": {"phases": 2}}


def test_the_time_of_a_phase_that_a_person_stopped_was_neither_lost_nor_used_to_its_end() -> None:
    spans = frames_of([*a_study()[:11], Event(Kind.TRIAL_STOPPED, 3.0, 0, 0, data={"by": "person"})]).spans
    assert spans[["trial", "ended_s", "outcome"]].iloc[-1].tolist() == [0, 3.0, "stopped"]


def test_a_worker_that_was_told_to_leave_costs_no_attempt() -> None:
    lost = Event(Kind.PHASE_FAILED, 3.0, 0, 0, 0, {"why": "left", "error": "the worker on a was told to leave"})
    frames = frames_of([*a_study()[:11], lost])
    assert frames.spans[["trial", "ended_s", "outcome"]].iloc[-1].tolist() == [0, 3.0, "lost"]
    assert frames.phases["retries"].sum() == frames_of(a_study()[:11]).phases["retries"].sum()


HELD_TO = [
    Event(Kind.TRIAL_STOPPED, 5.0, 0, 0, data={"by": "person"}),
    Event(Kind.TRIAL_FAILED, 5.0, 0, 0, data={"error": "its worker died"}),
    Event(Kind.STUDY_RESUMED, 5.0),
]


@pytest.mark.parametrize("last", HELD_TO, ids=lambda event: str(event.kind))
def test_time_at_a_barrier_was_held_whatever_ended_it(last) -> None:
    spans = frames_of([*a_study()[:13], last]).spans
    assert spans.loc[spans["trial"] == 0, "outcome"].tolist() == ["lost", "ended", "held"]
    assert spans["ended_s"].iloc[-1] == 5.0


@pytest.mark.parametrize("turn", [Kind.STUDY_ENDED, Kind.STUDY_INTERRUPTED])
def test_a_phase_that_is_cut_off_as_the_study_ends_is_lost(turn) -> None:
    events = [
        Event(Kind.STUDY_STARTED, 0.0),
        Event(Kind.SLOT_JOINED, 0.0, slot=0, data={"node": "a"}),
        Event(Kind.RUN, 1.0, 0, 0, data=RUN),
        Event(Kind.PHASE_STARTED, 1.0, 0, 0, 0),
        Event(turn, 4.0),
    ]
    frames = frames_of(events)
    assert frames.spans[["ended_s", "outcome"]].to_numpy().tolist() == [[4.0, "lost"]]
    used = occupancy(frames.spans, frames.slots, frames.wall_s)
    assert (used.ran, used.lost, used.idle) == (0.0, 3.0, 1.0)
    again = frames_of([*events, Event(Kind.STUDY_RESUMED, 9.0)])
    assert again.spans["ended_s"].tolist() == [4.0]
