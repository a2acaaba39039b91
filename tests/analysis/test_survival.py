import pandas as pd
import pytest

from workbench.analysis import completion_rate, phase_modes, survival

LET_GO_ON, FAILED_NEXT = (3.0, 0, 0, "continue", "collecting", {}), (5.0, 0, 1, "stop", "failed", {})


def decided(*rows):
    return pd.DataFrame(rows, columns=["at_s", "trial", "phase", "verdict", "mode", "reason"])


def test_counts_worked_by_hand(frames):
    table = survival(frames.trials, frames.phases, frames.decisions, n_phases=3).set_index("phase")
    assert table.loc[0, ["began", "completed", "continued", "stopped", "running"]].tolist() == [3, 2, 1, 1, 1]
    assert table.loc[1, ["began", "completed", "finished", "running"]].tolist() == [1, 1, 1, 0]
    assert table.loc[2, ["began", "completed", "running"]].tolist() == [0, 0, 0]
    assert table["mode"].tolist() == ["selecting", "finished", None]


def test_what_began_is_all_accounted_for(frames):
    table = survival(frames.trials, frames.phases, frames.decisions)
    parts = table[["continued", "waiting", "stopped", "finished", "failed", "running"]].sum(axis=1)
    assert parts.tolist() == table["began"].tolist()


@pytest.mark.parametrize(
    ("state", "mode", "failed", "stopped"),
    [("failed", "failed", [0, 1], [0, 0]), ("stopped", "person", [0, 0], [0, 1])],
)
def test_a_trial_cut_short_counts_in_the_phase_it_was_in(state, mode, failed, stopped):
    trials = pd.DataFrame({"trial": [0], "state": [state], "mode": [mode]})
    phases = pd.DataFrame({"trial": [0, 0], "phase": [0, 1], "ended_s": [3.0, float("nan")]})
    table = survival(trials, phases, decided(LET_GO_ON, FAILED_NEXT))
    assert table["failed"].tolist() == failed
    assert table["stopped"].tolist() == stopped
    assert table["running"].tolist() == [0, 0]


def test_a_trial_that_was_set_aside_and_then_stopped_counts_once():
    trials = pd.DataFrame({"trial": [0], "state": ["stopped"], "mode": ["person"]})
    phases = pd.DataFrame({"trial": [0], "phase": [0], "ended_s": [3.0]})
    table = survival(trials, phases, decided(LET_GO_ON, FAILED_NEXT))
    assert table[["began", "continued", "stopped", "running"]].to_numpy().tolist() == [[1, 0, 1, 0]]


def test_a_trial_that_was_stopped_while_it_waited_and_then_extended_went_on():
    """Its scheduler's answer to the stop, "failed", left its phase to nobody, as if it still ran."""
    rows = [(3.0, 0, 0, "pause", "waiting", {}), (4.0, 0, 0, "stop", "failed", {}), (9.0, 0, 1, "stop", "extended", {})]
    trials = pd.DataFrame({"trial": [0], "state": ["stopped"], "mode": ["extended"]})
    phases = pd.DataFrame({"trial": [0, 0], "phase": [0, 1], "ended_s": [3.0, 9.0]})
    table = survival(trials, phases, decided(*rows))
    counts = table[["began", "continued", "stopped", "finished", "running"]].to_numpy().tolist()
    assert counts == [[1, 1, 0, 0, 0], [1, 0, 0, 1, 0]]
    assert table["mode"].tolist() == ["waiting", None]  # of the scheduler's own decisions: of neither answer


@pytest.mark.parametrize("verdict", ["pause", "hold"])
def test_a_trial_that_is_paused_or_held_waits_until_its_next_phase_begins(verdict):
    """Of ten trials that a rung had paused all "went on", where two of them did."""
    trials = pd.DataFrame({"trial": [0, 1], "state": ["paused", "running"], "mode": ["rung"] * 2})
    judged = decided(*((3.0, trial, 0, verdict, "rung", {}) for trial in (0, 1)))
    before = pd.DataFrame({"trial": [0, 1], "phase": [0, 0], "ended_s": [3.0, 3.0]})
    after = pd.DataFrame({"trial": [0, 1, 1], "phase": [0, 0, 1], "ended_s": [3.0, 3.0, float("nan")]})
    counts = [survival(trials, phases, judged).loc[0, ["continued", "waiting"]].tolist() for phases in (before, after)]
    assert counts == [[0, 2], [1, 1]]


def test_a_trial_that_was_stopped_before_it_began_counts_nowhere():
    trials = pd.DataFrame({"trial": [0, 1], "state": ["stopped"] * 2, "mode": ["person"] * 2})
    phases = pd.DataFrame({"trial": [0], "phase": [0], "ended_s": [float("nan")]})
    table = survival(trials, phases, decided((2.0, 1, 0, "stop", "failed", {})))
    assert table[["began", "stopped", "running"]].to_numpy().tolist() == [[1, 1, 0]]


def test_a_released_hold_counts_once():
    rows = [(3.0, 0, 0, "hold", "rung", {}), (9.0, 0, 0, "stop", "rung", {})]
    trials = pd.DataFrame({"trial": [0], "state": ["stopped"], "mode": ["rung"]})
    phases = pd.DataFrame({"trial": [0], "phase": [0], "ended_s": [2.0]})
    table = survival(trials, phases, decided(*rows))
    assert table[["began", "continued", "stopped"]].to_numpy().tolist() == [[1, 0, 1]]


def test_decisions_on_trials_left_out_do_not_count():
    rows = [(3.0, n, 0, "stop", "finished", {}) for n in (0, 1)]
    trials = pd.DataFrame({"trial": [0], "state": ["finished"], "mode": ["finished"]})
    phases = pd.DataFrame({"trial": [0], "phase": [0], "ended_s": [2.0]})
    table = survival(trials, phases, decided(*rows))
    assert table[["began", "finished", "reported"]].to_numpy().tolist() == [[1, 1, 1]]


def test_the_last_collected_report_opens_selection():
    reason = {"reported": 4, "collecting_reports": 4}
    decisions = decided((3.0, 0, 0, "continue", "collecting", reason))
    assert phase_modes(decisions)["mode"].tolist() == ["selecting"]
    assert phase_modes(decisions)["collecting_reports"].tolist() == [4]
    reason["collecting_reports"] = 5
    assert phase_modes(decisions)["mode"].tolist() == ["collecting"]


def test_a_seed_that_waits_for_the_others_of_its_configuration_does_not_change_the_mode():
    """The next report met "seeds", of one score so far, as often as one seed was ahead of the others."""
    judged = {"reported": 2, "collecting_reports": 4, "candidate": 1}
    rows = [(3.0, 2, 0, "continue", "collecting", judged), (4.0, 4, 0, "pause", "seeds", {"reported": 1, "seeds": 2})]
    assert phase_modes(decided(*rows)).to_numpy().tolist() == [[0, "collecting", 2, 4.0]]
    assert phase_modes(decided(rows[1])).empty
    ran_on = [(5.0, 4, 0, "pause", "seeds", {}), (6.0, 5, 0, "continue", "kept", {})]
    assert phase_modes(decided(*ran_on, *ran_on))["reported"].tolist() == [2]  # a trial's score once


def test_what_schedulers_compare_with_is_not_taken_for_the_scores_of_a_phase() -> None:
    """The median rule counts the others, Hyperband a bracket's rung, Sure all that have reported anything."""
    median = {"reported": 1, "best": 1.0, "median": 2.0}
    rows = [(3.0, trial, 0, "continue", "collecting", median | {"reported": trial}) for trial in (0, 1)]
    assert phase_modes(decided(*rows))["reported"].tolist() == [2]
    sure = [(3.0, trial, 4, "stop", "dropped", {"place": 9, "reported": 40, "kept": 2}) for trial in (0, 1, 2)]
    assert phase_modes(decided(*sure)).iloc[0]["reported"] == 3


def test_completion_counts_ended_phases(frames):
    assert completion_rate(int(frames.phases["ended_s"].notna().sum()), n_configs=3, n_phases=2) == 3 / 6


def test_nothing_yet(nothing):
    assert survival(nothing.trials, nothing.phases, nothing.decisions).empty
    empty = survival(nothing.trials, nothing.phases, nothing.decisions, n_phases=2)
    assert empty["began"].tolist() == [0, 0]
    assert completion_rate(0, 3, 2) == 0.0
