"""What was claimed and what fresh seeds say, on tables made by hand."""

import numpy as np
import pandas as pd
import pytest

from workbench.analysis import claims, confirmed, leader_of, up_to
from workbench.analysis.confirmed import deciding


def trials_of(*rows: tuple[int, bool, int, float]) -> pd.DataFrame:
    """Make a table of (candidate, confirms, phases, last score)."""
    table = pd.DataFrame(rows, columns=["candidate", "confirms", "phases", "last_score"])
    return table.assign(trial=range(len(table)), state="finished", mode="finished")


def phases_of(trials: pd.DataFrame, earlier: float = 0.0) -> pd.DataFrame:
    """Make their phases: the last with the last score, those before with another."""
    rows = [
        (trial, phase, last if phase == n - 1 else earlier)
        for trial, n, last in trials[["trial", "phases", "last_score"]].itertuples(index=False)
        for phase in range(n)
    ]
    return pd.DataFrame(rows, columns=["trial", "phase", "score"])


def confirmed_of(*rows: tuple[int, bool, int, float], mode: str = "max", judged_by: str = "mean") -> pd.DataFrame:
    trials = trials_of(*rows)
    return confirmed(trials, phases_of(trials), mode, judged_by)


CHOSEN = [(0, False, 3, 10.0), (1, False, 3, 30.0), (1, False, 3, 50.0), (2, False, 1, 99.0), (3, False, 0, np.nan)]


def test_claims_are_means_over_seeds_of_those_that_ran_furthest_first() -> None:
    table = claims(trials_of(*CHOSEN, (1, True, 3, 1000.0)))
    assert table.to_dict("records") == [
        {"candidate": 1, "trial": 1, "phases": 3, "claimed": 40.0, "claimed_on": 2},
        {"candidate": 0, "trial": 0, "phases": 3, "claimed": 10.0, "claimed_on": 1},
        {"candidate": 2, "trial": 3, "phases": 1, "claimed": 99.0, "claimed_on": 1},
    ]
    assert claims(trials_of(*CHOSEN), "min")["candidate"].tolist() == [0, 1, 2]
    under_way = claims(trials_of((0, False, 3, 90.0), (0, False, 2, 90.0), (1, False, 3, 10.0)))
    assert under_way[["candidate", "phases"]].to_numpy().tolist() == [[1, 3], [0, 2]]  # so far all of its seeds are


def test_claims_are_joined_as_the_study_judged_them() -> None:
    wild = [(0, False, 3, score) for score in (1.0, 2.0, 3.0, 90.0)]
    steady = [(1, False, 3, score) for score in (4.0, 4.0, 5.0, 6.0)]
    table = trials_of(*wild, *steady)
    found = {judge: claims(table, judged_by=judge) for judge in ("mean", "median", "iqm")}
    assert {judge: rows["candidate"].tolist() for judge, rows in found.items()} == {
        "mean": [0, 1],
        "median": [1, 0],
        "iqm": [1, 0],
    }
    assert found["mean"]["claimed"].tolist() == [24.0, 4.75]
    assert found["median"]["claimed"].tolist() == [4.5, 2.5]
    assert found["iqm"]["claimed"].tolist() == [4.5, 2.5]
    assert confirmed_of(*wild, *steady, (1, True, 3, 5.0), judged_by="median")["claimed"].tolist() == [4.5]


def test_the_configuration_that_the_scheduler_would_take_stands_first() -> None:
    table = trials_of(*CHOSEN)
    assert claims(table, leader=3)["candidate"].tolist() == [2, 1, 0]
    assert claims(table, leader=2)["candidate"].tolist() == [1, 0, 2]  # it names a trial of it
    assert claims(table, leader=4)["candidate"].tolist() == [1, 0, 2]  # of which nothing has come
    reasons = [{"leader": 0}, {"leader": 3, "place": 1}, {"leader": None}, {"place": 2}]
    assert leader_of(pd.DataFrame({"reason": reasons})) == 3
    assert leader_of(pd.DataFrame({"reason": reasons[2:]})) is None


def test_phases_that_a_person_added_do_not_put_a_configuration_first() -> None:
    rows = [(0, False, 3, 10.0), (1, False, 4, 2.0), (2, False, 3, 30.0), (3, False, 2, 99.0), (1, True, 3, 20.0)]
    trials = trials_of(*rows)
    phases = phases_of(trials, earlier=20.5)
    told = up_to(trials, phases, 3)
    assert claims(told)[["candidate", "phases", "claimed"]].to_numpy().tolist() == [
        [2, 3, 30.0],
        [1, 3, 20.5],
        [0, 3, 10.0],
        [3, 2, 99.0],
    ]
    (row,) = confirmed(told, phases).to_dict("records")  # what was confirmed before it was extended stays so
    assert (row["candidate"], row["claimed"], row["confirmed"]) == (1, 20.5, 20.0)
    assert up_to(trials, phases, None) is trials  # of a study of no known size
    assert claims(trials)["candidate"].tolist() == [1, 2, 0, 3]


@pytest.mark.parametrize("ended", [("cut off", ""), ("running", ""), ("failed", "failed"), ("stopped", "person")])
@pytest.mark.parametrize("ran", [3, 4])  # none of the phases that a person added, or one
def test_how_phases_that_a_person_added_end_changes_nothing_of_what_is_claimed(ended, ran) -> None:
    trials = trials_of((0, False, ran, 6.0), (0, False, 3, 9.0), (1, False, 3, 8.0), (1, False, 3, 8.0))
    trials.loc[0, ["state", "mode"]] = ended
    told = claims(up_to(trials, phases_of(trials, earlier=6.0), 3))
    assert told[["candidate", "claimed", "claimed_on"]].to_numpy().tolist() == [[1, 8.0, 2], [0, 7.5, 2]]


@pytest.mark.parametrize("fell", [{"state": "failed", "mode": "failed"}, {"mode": "person"}])
def test_a_seed_that_fell_does_not_sink_its_configuration(fell) -> None:
    rows = [(0, False, 3, 9.0), (0, False, 3, 9.0), (0, False, 1, 0.0), *[(1, False, 3, 5.0)] * 3, (2, False, 2, 7.0)]
    table = trials_of(*rows)
    table.loc[table["trial"].isin([2, 6]), list(fell)] = list(fell.values())
    best, second, alone = claims(table).to_dict("records")
    assert best == {"candidate": 0, "trial": 0, "phases": 3, "claimed": 9.0, "claimed_on": 2}
    assert second == {"candidate": 1, "trial": 3, "phases": 3, "claimed": 5.0, "claimed_on": 3}
    assert alone == {"candidate": 2, "trial": 6, "phases": 2, "claimed": 7.0, "claimed_on": 1}  # it has no other


@pytest.mark.parametrize("state", ["running", "set aside", "cut off"])
def test_a_repetition_on_its_way_does_not_sink_its_configuration(state) -> None:
    seeds = [(0, False, 3, 9.0), (0, False, 3, 8.0), (0, False, 1, 4.0)]
    table = trials_of(*seeds, (1, False, 3, 6.0), (2, False, 2, 7.0))
    table.loc[[2, 4], ["state", "mode"]] = [state, "repeating"]
    best, second, alone = claims(table).to_dict("records")
    assert best == {"candidate": 0, "trial": 0, "phases": 3, "claimed": 8.5, "claimed_on": 2}
    assert (second["candidate"], alone["candidate"]) == (1, 2)  # of the last nothing has come to its end


def test_one_lucky_seed_stands_after_means_of_as_many_phases() -> None:
    steady = [(0, False, 3, score) for score in (8.0, 9.0, 10.0, 11.0)]
    rows = [*steady, (1, False, 3, 99.0), (2, False, 3, 8.0), (2, False, 3, 9.0), (3, False, 1, 0.0)]
    assert claims(trials_of(*rows))["candidate"].tolist() == [0, 2, 1, 3]
    assert claims(trials_of(*rows), "min")["candidate"].tolist() == [2, 0, 1, 3]


def test_fresh_seeds_reverse_what_luck_had_chosen() -> None:
    lucky = [(1, True, 3, score) for score in (1.0, 2.0, 3.0, 4.0, 20.0)]
    steady = [(0, True, 3, score) for score in (8.0, 9.0, 10.0, 11.0)]
    table = confirmed_of(*CHOSEN, *lucky, *steady, (0, True, 2, -50.0))
    assert table["candidate"].tolist() == [0, 1]
    assert table["confirmed"].tolist() == [9.5, 6.0]
    assert table["confirmed_on"].tolist() == [4, 5]  # the one that has not run as far is left out
    assert np.isnan(table["beaten_by_first"].iloc[0])
    assert table["beaten_by_first"].iloc[1] == 0.8
    half = 3.1824 * 1.2910 / 2  # t(0.975, 3), and the deviation of the four
    assert table.loc[0, ["low", "high"]].tolist() == pytest.approx([9.5 - half, 9.5 + half], abs=1e-3)


def test_fresh_scores_after_few_phases_stand_after_those_of_more_and_are_not_held_against_them() -> None:
    fresh = [(1, True, 3, 45.0), (1, True, 3, 35.0), (2, True, 1, 99.0), (2, True, 1, 98.0), (0, True, 3, 10.0)]
    for mode, order in (("max", [1, 0, 2]), ("min", [0, 1, 2])):
        table = confirmed_of(*CHOSEN, *fresh, (0, True, 3, 9.0), mode=mode)
        assert table["candidate"].tolist() == order
        assert table["beaten_by_first"].isna().tolist() == [True, False, True]


def test_more_fresh_seeds_do_not_put_a_configuration_before_one_that_beats_it() -> None:
    """Else to try a known loser on more of them would make it the one to take."""
    many = [(0, True, 3, score) for score in (10.0, 11.0, 12.0)]
    table = confirmed_of(*CHOSEN, *many, (1, True, 3, 99.0))
    assert table["candidate"].tolist() == [1, 0]
    assert table["beaten_by_first"].iloc[1] == 1


def test_fresh_seeds_that_ran_further_count_by_what_they_had_after_as_many_phases() -> None:
    trials = trials_of((0, False, 1, 1.0), (0, True, 3, 3.0), (0, True, 1, 2.0))
    (row,) = confirmed(trials, phases_of(trials, earlier=1.0)).to_dict("records")
    assert (row["phases"], row["confirmed"], row["confirmed_on"]) == (1, 1.5, 2)


def test_a_configuration_whose_fresh_seeds_all_failed_was_tried_and_is_not_the_one_to_take() -> None:
    trials = trials_of(*CHOSEN, (1, True, 3, 4.0), (1, True, 1, np.nan), (0, True, 3, 3.0), (0, True, 3, 2.0))
    fails = trials["confirms"] & (trials["candidate"] == 1)
    trials.loc[fails, ["phases", "state"]] = [0, "failed"]
    claimed, fresh = claims(trials), confirmed(trials, phases_of(trials))
    assert claimed["candidate"].iloc[0] == 1
    assert fresh[["candidate", "confirmed_on"]].to_numpy().tolist() == [[0, 2], [1, 0]]
    assert fresh[["confirmed", "low", "beaten_by_first"]].iloc[1].isna().all()
    assert deciding(claimed, fresh)["candidate"].tolist() == [0]
    alone = fresh[fresh["candidate"] == 1]
    assert deciding(claimed, alone).empty
    assert deciding(claimed, fresh[fresh["candidate"] == 0]).empty


def test_lower_is_better_where_the_study_minimises() -> None:
    table = confirmed_of(*CHOSEN, (0, True, 3, 5.0), (1, True, 3, 4.0), mode="min")
    assert table["candidate"].tolist() == [1, 0]
    assert table["beaten_by_first"].iloc[1] == 1.0


@pytest.mark.parametrize("rows", [(), CHOSEN])
def test_nothing_confirmed_is_an_empty_table(rows) -> None:
    assert len(confirmed_of(*rows)) == 0


@pytest.mark.parametrize("seeds", [1, 2])
def test_one_fresh_seed_has_no_interval_nor_have_equal_ones(seeds) -> None:
    (row,) = confirmed_of(*CHOSEN, *[(1, True, 3, 4.0)] * seeds).to_dict("records")
    assert (row["confirmed"], row["confirmed_on"]) == (4.0, seeds)
    assert np.isnan([row["low"], row["high"]]).all()
