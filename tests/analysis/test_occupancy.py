import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.analysis import node_seconds, occupancy, occupancy_over_time
from workbench.analysis.occupancy import slot_time
from workbench.core.nodes import joined_nodes


def _slots(*rows):
    return pd.DataFrame(rows, columns=["slot", "node", "joined_s", "lost_s"])


def _spans(*rows):
    return pd.DataFrame(rows, columns=["slot", "node", "trial", "phase", "started_s", "ended_s", "outcome"])


def test_slot_seconds_worked_by_hand(frames):
    used = occupancy(frames.spans, frames.slots, frames.wall_s)
    assert used == (38 / 40, 40.0, 34.0, 4.0, 0.0, 2.0)


def test_held_time_is_given_but_unused():
    spans = _spans((0, "a", 0, 0, 0.0, 6.0, "ended"), (0, "a", 0, 0, 6.0, np.nan, "held"))
    used = occupancy(spans, _slots((0, "a", 0.0, np.nan)), 10.0)
    assert (used.share, used.held, used.idle) == (0.6, 4.0, 0.0)


def test_an_earlier_moment_knows_nothing_of_what_came_after():
    spans = _spans((0, "a", 0, 0, 0.0, 8.0, "ended"), (0, "a", 0, 1, 8.0, 14.0, "ended"))
    slots = _slots((0, "a", 0.0, 16.0), (1, "b", 12.0, np.nan))
    assert occupancy(spans, slots, 10.0) == (1.0, 10.0, 10.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("outcome", ["lost", "stopped"])
def test_a_span_outside_its_slots_life_does_not_count(outcome):
    spans = _spans((0, "a", 0, 0, 1.0, 8.0, outcome))  # the slot died at 5, the driver noticed at 8
    slots = _slots((0, "a", 0.0, 5.0), (0, "a", 9.0, np.nan))
    used = occupancy(spans, slots, 10.0)
    assert (used.alive, used.lost, used.idle) == (6.0, 4.0, 2.0)


def test_nothing_yet_is_not_a_share(nothing):
    used = occupancy(nothing.spans, nothing.slots, nothing.wall_s)
    assert np.isnan(used.share)
    assert used[1:] == (0.0,) * 5
    assert occupancy_over_time(nothing.spans, nothing.slots, 0.0).empty


def test_over_time_in_four_stretches(frames):
    over = occupancy_over_time(frames.spans, frames.slots, frames.wall_s, bins=4)
    assert over["to_s"].tolist() == [5.0, 10.0, 15.0, 20.0]
    assert over["alive"].tolist() == [2.0] * 4
    assert over["ran"].tolist() == pytest.approx([1.0, 2.0, 9 / 5, 2.0])
    assert over["lost"].tolist() == pytest.approx([4 / 5, 0.0, 0.0, 0.0])
    assert over["share"].tolist() == pytest.approx([0.9, 1.0, 0.9, 1.0])


def test_a_stretch_without_slots_has_no_share():
    over = occupancy_over_time(_spans(), _slots((0, "a", 5.0, np.nan)), 10.0, bins=2)
    assert np.isnan(over["share"][0])
    assert over["share"][1] == 0.0


@settings(max_examples=15)
@given(st.lists(st.tuples(st.floats(0, 50), st.floats(0, 50), st.sampled_from(["ended", "lost", "held"])), max_size=8))
def test_time_stretches_add_up_to_the_whole(intervals):
    rows = [(k, "n", k, 0, min(a, b), max(a, b), outcome) for k, (a, b, outcome) in enumerate(intervals)]
    slots = _slots(*((k, "n", 0.0, np.nan) for k in range(len(rows))), (99, "n", 10.0, 20.0))
    whole = occupancy(_spans(*rows), slots, 60.0)
    over = occupancy_over_time(_spans(*rows), slots, 60.0, bins=7)
    for kind in ("alive", "ran", "lost", "held", "idle"):
        assert (over[kind] * 60.0 / 7).sum() == pytest.approx(getattr(whole, kind), abs=1e-6)


def test_slot_time_names_what_the_slot_did(frames):
    kinds = slot_time(frames.spans, frames.slots, frames.wall_s)
    assert kinds["kind"].tolist() == ["ran", "lost", "ran", "ran", "ran"]


def test_a_node_costs_its_time_once_however_many_slots_it_has():
    slots = _slots((0, "a", 0.0, 6.0), (1, "a", 2.0, 8.0), (2, "a", 20.0, np.nan), (3, "b", 4.0, 5.0))
    assert node_seconds(slots, 25.0, [0.0, 3.0, 4.5, 10.0, 25.0]).tolist() == [0.0, 3.0, 5.0, 9.0, 14.0]
    assert node_seconds(slots.iloc[:0], 25.0, [1.0]).tolist() == [0.0]


def test_a_gang_costs_the_time_of_all_its_nodes():
    pair, large = map(joined_nodes, (["a", "b"], ["n1", "n2", "n3", "n4", "n5"]))
    slots = _slots((0, pair, 0.0, 10.0), (1, pair, 0.0, 10.0), (2, "b", 8.0, 12.0), (3, large, 6.0, np.nan))
    assert node_seconds(slots, 20.0, [5.0, 7.0, 20.0]).tolist() == [10.0, 19.0, 10.0 + 12.0 + 5 * 14.0]
