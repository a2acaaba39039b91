"""Figures of a population: lineage, tree of descent, hyperparameters over time, scores."""

import pandas as pd
import pytest

from tests.analysis.test_lineage import EVENTS
from workbench.analysis import lineage, phylogeny, schedule_of, schedules
from workbench.knowledge import frames_of
from workbench.viz.figures import hyperparameters_over_time, member_lineage, phylogenetic_tree, population_curves, theme
from workbench.viz.figures.lineage import founder_inks


@pytest.fixture
def three():
    return frames_of(EVENTS)


@pytest.fixture
def known(three):
    return lineage(three.trials, three.phases, three.decisions)


@pytest.fixture
def members(three, known):
    return schedules(known, three.trials, three.phases, ["x"])


def named(fig, name):
    return next(trace for trace in fig.data if trace.name == name)


def test_members_are_coloured_by_the_founder_of_their_weights(known):
    fig = member_lineage(known, wall_s=32.0)
    founder = named(fig, "from trial 0")
    assert founder.line.color == theme.BLUE
    assert list(founder.x) == [0.0, 32.0, None, 12.0, 31.0, None, 22.0, 30.0, None]
    assert list(founder.y) == [0, 0, None, 2, 2, None, 1, 1, None]
    marks = next(trace for trace in fig.data if trace.customdata is not None)
    assert marks.customdata.tolist() == [3, 4]
    assert "with the weights of trial 3 after its phase 1" in marks.hovertext[1]


def test_a_trial_that_a_person_lets_run_on_is_not_drawn_over_the_one_its_member_goes_on_as(known):
    """Trial 2 runs to the end, beside trial 3 that its member is from second 12 on."""
    fig = member_lineage(known.assign(ended_s=known["ended_s"].where(known["trial"] != 2, 32.0)), wall_s=32.0)
    of_two = named(fig, "from trial 2")
    assert (list(of_two.x), list(of_two.y)) == ([0.0, 12.0, None], [2, 2, None])


def test_no_two_founders_share_a_colour_and_the_best_spread_have_one():
    founders = pd.Series([*range(10), 9, 9, 8])
    inks = founder_inks(founders)
    assert inks[9] == theme.BLUE
    assert [inks[founder] for founder in (5, 6, 7)] == [theme.GREY] * 3
    assert len(set(inks.values())) == 8
    rows = pd.DataFrame({"founder": founders, "trial": founders.index, "member": founders.index % 10, "parent": None})
    fig = member_lineage(rows.assign(started_s=0.0, ended_s=1.0, copied=False), 1.0)
    assert [trace.name for trace in fig.data] == [
        *(f"from trial {n}" for n in (0, 1, 2, 3, 4, 8, 9)),
        "from other trials",
    ]


def test_founders_that_share_grey_have_one_name_in_the_legend():
    n = 20
    rows = pd.DataFrame({"trial": range(n), "member": range(n), "founder": range(n), "parent": pd.NA, "first_phase": 0})
    rows = rows.assign(last_phase=1, parent_phase=pd.NA, started_s=0.0, ended_s=1.0, copied=False)
    for fig in (member_lineage(rows, 1.0), phylogenetic_tree(phylogeny(rows, best=3))):
        named_there = [trace.name for trace in fig.data if trace.showlegend is not False]
        assert named_there == [*(f"from trial {founder}" for founder in range(7)), "from other trials"]


def test_a_copy_has_a_line_from_its_donor(known):
    jumps = next(t for t in member_lineage(known, 32.0).data if t.mode == "lines" and t.line.width == 1)
    assert list(jumps.x) == [12.0, 12.0, None, 22.0, 22.0, None]
    assert list(jumps.y) == [0, 2, None, 2, 1, None]


def test_the_tree_s_best_descent_is_thick_and_what_died_out_is_faint(known):
    fig = phylogenetic_tree(phylogeny(known, best=4))
    best = named(fig, "from trial 0")
    assert best.line.width == 4
    assert list(best.x)[:3] == [0, 3, None]
    assert list(best.x)[3:8] == [1, 1, 1, 3, None]  # trial 3: leaves trial 0 after a phase, then its own line
    assert list(best.y)[3:8] == [0, 1, 1, 1, None]
    assert named(fig, "from trial 2").opacity < 0.5


def test_the_tree_tells_which_phases_a_trial_has_ended():
    begun = frames_of(EVENTS[:16])  # trial 3 was asked for, and has ended none
    hover = phylogenetic_tree(phylogeny(lineage(begun.trials, begun.phases, begun.decisions))).data[-1].hovertext
    assert "trial 0 (member 0), phases 0 to 0" in hover
    assert "trial 3 (member 2), no phase ended yet<br>from trial 0" in hover


def test_words_and_whole_numbers_are_told_as_they_are(members):
    odd = members.assign(net=[f"<{phase}>" for phase in members["phase"]], width=65536)
    best = odd[odd["member"] == 0]
    fig = hyperparameters_over_time(odd, ["net", "width"], best)
    of_members = [trace for trace in fig.data if trace.name == "a member"]
    told = [[row[2] for row in trace.customdata if row[2] is not None] for trace in of_members]
    by_member = odd.sort_values("member", kind="stable")
    assert told == [[theme.text(word) for word in by_member["net"]], ["65536"] * len(odd)]
    assert all("customdata[2]" in trace.hovertemplate for trace in of_members)
    of_best = [trace for trace in fig.data if trace.name == "of the best weights"]
    assert [row[2] for row in of_best[0].customdata][:-1] == [theme.text(word) for word in best["net"]]


def test_hyperparameters_of_every_member_and_of_the_best_weights(three, known, members):
    best = schedule_of(4, known, three.trials, three.phases, ["x"])
    fig = hyperparameters_over_time(members, ["x"], best)
    lines = named(fig, "a member")
    words = list(fig.layout.yaxis.ticktext)  # five uneven values only: an axis of categories
    assert [words[int(y)] for y in lines.y if y is not None][:6] == ["0", "0", "0", "1", "1", "0.96"]
    assert [words[int(y)] for y in named(fig, "of the best weights").y[:-1]] == ["0", "0.8", "0.96"]
    assert fig.layout.yaxis.title.text == "x"


def test_best_weights_of_a_donor_that_was_ahead_go_on_in_the_phase_of_their_copier(members):
    best = pd.DataFrame({"step": range(4), "trial": [0, 0, 0, 4], "phase": [0, 1, 2, 1], "x": [0.0, 0.0, 0.0, 0.8]})
    line = named(hyperparameters_over_time(members, ["x"], best), "of the best weights")
    assert list(line.x) == [0, 1, 2, None, 1, None]
    assert [row[0] for row in line.customdata if row[0] is not None] == [0, 0, 0, 4]
    assert line.hovertemplate.startswith("trial %{customdata[0]}, phase %{x}")


def test_words_stand_on_the_axis_escaped(members):
    hostile = members.assign(net=["<b>", "a", "a"] * 3)
    fig = hyperparameters_over_time(hostile, ["net"])
    assert list(fig.layout.yaxis.ticktext) == ["&lt;b&gt;", "a"]


def test_the_population_s_best_and_median(members):
    fig = population_curves(members)
    assert list(named(fig, "best").y) == [5.0, 7.0, 9.0]
    assert list(named(fig, "median").y) == [4.0, 6.0, 8.0]


def test_a_member_s_line_says_whose_it_is(members, pointed):
    assert pointed(population_curves(members), 0) == "trial 0 (member 0), phase 0: 5"


def test_nothing_yet(nothing):
    known = lineage(nothing.trials, nothing.phases, nothing.decisions)
    members = schedules(known, nothing.trials, nothing.phases, [])
    notes = [
        member_lineage(known, 0.0),
        phylogenetic_tree(phylogeny(known)),
        population_curves(members),
        hyperparameters_over_time(members, ["x"]),
        hyperparameters_over_time(pd.DataFrame({"phase": [0]}), []),
    ]
    assert [fig.layout.annotations[0].text for fig in notes] == [
        "no trial has begun yet",
        "no trial has begun yet",
        "no phase has ended yet",
        "no phase has ended yet",
        "nothing was varied",
    ]


def test_words_beside_a_panel_do_not_lie_over_the_one_at_its_left(members):
    word = "a network of three layers"
    named_so = members.assign(net=[f"{word} {k % 2}" for k in range(len(members))])
    panels = hyperparameters_over_time(named_so, ["x", "net"]).layout
    apart = panels.xaxis2.domain[0] - panels.xaxis.domain[1]
    assert 800 * apart > 6 * len(word)  # px of a figure in a notebook
    numbers = hyperparameters_over_time(named_so, ["net", "x"]).layout
    assert numbers.xaxis2.domain[0] - numbers.xaxis.domain[1] == pytest.approx(0.09)
