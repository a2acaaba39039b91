import re

import pandas as pd
import pytest

from workbench.viz.figures import (
    best_and_nodes,
    best_so_far,
    compare_best,
    hyperparameters_over_time,
    landscape,
    partial_dependence,
    score_by_hyperparameter,
    space_by_phase,
    theme,
    toy_problem,
)


def test_every_colour_is_used_once_and_phases_are_in_order():
    assert len(set(theme.STATE_COLORS.values())) == len(theme.STATE_COLORS)
    assert len(set(theme.phase_greys(27))) == len(set(theme.value_colors(27))) == 27
    assert theme.phase_greys(0) == theme.value_colors(0) == []


def test_words_from_a_log_are_escaped():
    assert theme.figure("<b>x</b>").layout.title.text == "&lt;b&gt;x&lt;/b&gt;"
    assert theme.number("<i>") == "&lt;i&gt;"
    assert theme.number(0.000123456) == "0.0001235"
    assert theme.number(True) == "True"


def test_of_a_long_name_both_ends_are_kept_and_it_is_escaped():
    assert theme.brief("<learning_rate>") == "&lt;learning_rate&gt;"
    assert theme.brief("x" * 28) == "x" * 28
    assert theme.brief("convolutional", 9) == "conv…onal"
    assert theme.brief("optimizer.schedule.of.the.critic") == "optimizer.sch…" + ".of.the.critic"


def test_what_an_empty_figure_says_is_no_wider_than_it():
    (note,) = theme.empty_note(
        theme.figure("x"), "; ".join(f"<{k}>: 0 trials, 20 are needed" for k in range(9))
    ).layout.annotations
    lines = note.text.split("<br>")
    assert len(lines) > 2
    assert max(map(len, lines)) < 100
    assert "&lt;8&gt;: 0 trials" in note.text


def test_two_lines_of_a_legend_have_room_below_the_title_however_high_the_figure_is():
    for height in (200, 2000):
        fig = theme.figure("x", height)
        margin = fig.layout.template.layout.margin
        above = (fig.layout.legend.y - 1) * (height - margin.t - margin.b)
        assert above + 2 * 19 + 12 + 15 <= margin.t  # px: two lines, and the title's place and size


@pytest.mark.parametrize(("n_phases", "ticks"), [(6, "0 2 4"), (9, "0 3 6"), (27, "0 7 14 21")])
def test_a_colour_bar_as_high_as_two_slots_has_room_for_its_numbers(n_phases, ticks):
    bar = theme.phase_colorbar(theme.phase_greys(n_phases)).marker.colorbar
    assert " ".join(bar.ticktext) == ticks


def test_a_clock_fits_the_study():
    assert [theme.clock(s).unit for s in (10, 1000, 100_000)] == ["s", "min", "h"]


def test_who_changes_the_template_of_a_figure_changes_no_other():
    theme.figure("one").layout.template.layout.font.size = 99
    assert theme.figure("other").layout.template.layout.font.size == theme.template().layout.font.size == 13


def test_figures_of_several_panels_have_the_template_of_those_of_one(frames) -> None:
    """With Plotly's own below it, which came with the panels, they had other lines, and seven kilobytes more."""
    names = ["lr", "net"]
    member = pd.DataFrame({"member": [0], "phase": 0, "trial": 0, "score": 1.0, "lr": 0.1})
    value = pd.DataFrame({"hyperparameter": ["lr"], "value": 0.1, "score": 1.0, "low": 0.5, "high": 1.5})
    step = pd.DataFrame({"variant": ["PBT"], "member": 0, "step": 1, "theta0": 0.5, "theta1": 0.5, "q": 0.7})
    drawn = [
        score_by_hyperparameter(frames.phases, frames.trials, names),
        space_by_phase(frames.phases, frames.trials, names),
        hyperparameters_over_time(member, ["lr"]),
        partial_dependence(value, ""),
        landscape(pd.DataFrame({"phase": [0], "trials": 1, "lr": 0.1, "t_max": 5, "score": 1.0}), ""),
        toy_problem(step),
        best_and_nodes(
            {"one": pd.DataFrame({"at_s": [1.0], "best_score": 1.0, "trial": 0, "phase": 0})},
            {"one": frames.spans},
            {"one": frames.slots},
            {"one": 20.0},
        ),
    ]
    assert [fig.layout.template == theme.template() for fig in drawn] == [True] * 7
    assert all(len(list(fig.select_xaxes())) > 1 for fig in drawn[:2])


def test_the_ground_is_transparent():
    layout = theme.template().layout
    assert layout.paper_bgcolor == layout.plot_bgcolor == "rgba(0,0,0,0)"


def _luminance(color):
    parts = (
        [int(part, 16) for part in re.findall(r"..", color[1:])] if color[0] == "#" else re.findall(r"[\d.]+", color)
    )
    shares = [float(part) / 255 for part in parts]
    linear = [s / 12.92 if s <= 0.03928 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("ground", ["rgb(255, 255, 255)", "rgb(33, 33, 33)"])  # JupyterLab's, light and dark
def test_phases_stand_out_from_either_ground(ground):
    for color in (*theme.phase_greys(10), *theme.value_colors(10)):
        low, high = sorted(_luminance(c) for c in (color, ground))
        assert (high + 0.05) / (low + 0.05) > 1.7


def test_scores_of_thousands_are_pointed_at_in_full() -> None:
    """D3 writes numbers by these words as Python does, but for zeros at the end; by ``.4g`` 10889 was 1.089e+04."""
    digits = re.fullmatch(r"\.(\d)~g", theme.SCORE)[1]
    assert [format(score, f".{digits}g") for score in (10889.0, 10894.0, 0.25)] == ["10889", "10894", "0.25"]
    best = pd.DataFrame({"at_s": [1.0], "best_score": [10889.0], "trial": [0], "phase": [0]})
    (told,) = compare_best({"one": best}, {"one": 2.0}).data
    assert f"%{{y:{theme.SCORE}}} at" in told.hovertemplate
    assert f"%{{y:{theme.SCORE}}} at" in best_so_far(best).data[-1].hovertemplate
