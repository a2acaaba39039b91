"""What the page is drawn in: contrast on both grounds, and states told apart without red and green."""

import itertools
import re
from html import escape
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.viz.dashboard.conftest import in_order, slots_drawn
from workbench.core.protocols import Event, Kind
from workbench.core.size import Size
from workbench.viz import figures
from workbench.viz.dashboard.board import Board
from workbench.viz.dashboard.feed import News
from workbench.viz.dashboard.front import CODE, CSS
from workbench.viz.dashboard.static import static_html
from workbench.viz.figures import theme

LIGHT, DARK = "#ffffff", "#212121"  # JupyterLab's grounds
INKS = {LIGHT: ("#212121", "#5f5f5f"), DARK: ("#ffffff", "#bdbdbd")}  # its font colours 1 and 2

# Machado, Oliveira, Fernandes (2009), "A physiologically-based model for simulation of color vision deficiency":
# deuteranopia, on linear RGB.
DEUTERANOPIA = np.array(
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
)


def linear(color):
    share = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """Contrast ratio, 1 to 21 (WCAG 2)."""
    light, dark = sorted((float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def mixed(ink, ground, share):
    parts = [round(share * int(ink[k : k + 2], 16) + (1 - share) * int(ground[k : k + 2], 16)) for k in (1, 3, 5)]
    return "#" + "".join(f"{part:02x}" for part in parts)


@pytest.mark.parametrize("ground", [LIGHT, DARK])
def test_every_mark_stands_out_from_both_grounds(ground):
    neutral = int(re.search(r"--wb-neutral: color-mix\(in srgb, var\(--wb-ink\) (\d+)%", CSS)[1]) / 100
    marks = {**theme.STATE_COLORS, "neutral": mixed(INKS[ground][0], ground, neutral)}
    marks |= {f"phase {k}": c for k, c in enumerate(theme.phase_greys(12, dark=ground == DARK))}
    marks |= {f"font {k}": c for k, c in enumerate(INKS[ground])}
    assert {name: contrast(color, ground) for name, color in marks.items() if contrast(color, ground) < 3} == {}


def test_states_differ_without_red_and_green_or_by_shape_and_dash():
    """Colours that a deuteranope takes for one another have another shape in the table, another dash as a curve."""
    marks = dict(re.findall(r'"?([a-z][a-z ]*)"?: "(.)"', re.search(r"const MARKS = \{(.*)\};", CODE)[1]))
    dashes = dict(re.findall(r'"?([a-z][a-z ]*)"?: (\[[\d, ]*\])', re.search(r"const DASHES = \{(.*)\};", CODE)[1]))
    assert marks.keys() == dashes.keys() == theme.STATE_COLORS.keys()
    assert len(set(marks.values())) == len(marks)
    assert confused({state: (color, dashes[state]) for state, color in theme.STATE_COLORS.items()}) == []


def test_studies_differ_by_colour_or_dash_and_ten_of_them_without_red_and_green_too():
    lines = [theme.study_line(k) for k in range(36)]
    assert len({*lines}) == len(lines)
    assert confused(dict(enumerate(lines[:10]))) == []


def confused(lines):
    """Pairs of lines, each a colour and a dash, that a deuteranope takes for one another."""
    seen = {name: np.cbrt(np.clip(DEUTERANOPIA @ linear(color), 0, 1)) for name, (color, _) in lines.items()}
    return [
        (one, other)
        for one, other in itertools.combinations(lines, 2)
        if np.abs(seen[one] - seen[other]).max() < 0.1 and lines[one][1] == lines[other][1]
    ]


def is_grey(color):
    return len({color[1:3], color[3:5], color[5:7]}) == 1


def test_lightness_is_the_phase_in_figures_and_in_stored_pages_too():
    board = Board("study", Size(4, 2, 2))
    board.take(News([event for event in in_order() if event.kind is not Kind.PROGRESS]))
    bars = re.findall(r'<rect [^>]*fill="([^"]+)"', slots_drawn(static_html(board)))
    frames = board.frames()
    drawn = [
        figures.node_occupancy(frames.spans, frames.slots, frames.wall_s),
        figures.score_by_phase(frames.phases, frames.trials),
    ]
    for trace in (trace for fig in drawn for trace in fig.data if trace.type in ("bar", "scatter")):
        bars += [color for color in np.atleast_1d(trace.marker.color).tolist() if color and color != theme.LAND]
    assert bars
    assert [color for color in bars if not is_grey(color)] == []


def test_a_stored_page_puts_hyperparameters_under_their_names_though_some_trials_lack_them():
    board = Board("study", Size(4, 2, 2))
    ended = {"score": 1.0, "metrics": {"score": 1.0}}
    events = [Event(Kind.STUDY_STARTED, 0.0), Event(Kind.SLOT_JOINED, 0.0, slot=0, data={"node": "n"})]
    for number, config in enumerate(({"lr": 0.125}, {"momentum": 0.25, "lr": 0.5})):
        data = {"config": config, "parent": None, "seed": 0}
        events += [Event(Kind.RUN, 0.0, number, 0, data=data), Event(Kind.PHASE_STARTED, 0.0, number, 0, 0)]
        events += [Event(Kind.PHASE_ENDED, 1.0, number, 0, 0, ended)]
    board.take(News([*events, Event(Kind.STUDY_ENDED, 1.0)]))
    html = static_html(board)
    rows = [re.findall(r"<t[dh][^>]*>([^<]*)", row) for row in html.split("<tr>")]
    (head,) = (row for row in rows if "verdict" in row)
    assert head == ["trial", "state", "last score", "best score", "lr", "momentum", "verdict"]
    assert [row[:6] for row in rows[rows.index(head) + 1 :]] == [
        ["0", "cut off", "1", "1", "0.125", "–"],
        ["1", "cut off", "1", "1", "0.5", "0.25"],
    ]


def test_the_slots_of_a_stored_page_are_a_picture_of_which_no_word_is_left_without_it():
    board = Board("study", Size(4, 2, 2))
    board.take(News([event for event in in_order() if event.kind is not Kind.PROGRESS]))
    html = static_html(board)
    drawn = ElementTree.fromstring(slots_drawn(html))
    assert (drawn.tag, drawn.get("width")) == ("{http://www.w3.org/2000/svg}svg", "760")
    words = [of.text for of in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert words[:3] == ["<b>n</b> · 0", "<b>n</b> · 1", "m"]
    assert "<svg" not in html  # which a page that is not trusted drops, and keeps its words
    assert not any(escape(word, quote=False) in html for word in words[:2])


def test_a_stored_page_says_how_many_bars_it_leaves_out(monkeypatch):
    board = Board("study", Size(4, 2, 2))
    board.take(News([event for event in in_order() if event.kind is not Kind.PROGRESS]))
    assert "earliest" not in static_html(board)
    monkeypatch.setattr("workbench.viz.dashboard.static._MOST_BARS", 4)
    html = static_html(board)
    assert slots_drawn(html).count("<rect ") == 4
    assert f"without the {len(board.frames().spans) - 4} earliest bars" in html


def test_phases_are_told_apart_by_lightness_alone():
    for dark in (False, True):
        greys = [int(color[1:3], 16) for color in theme.phase_greys(5, dark=dark)]
        assert np.diff(greys).min() >= 20
        assert all(len({color[1:3], color[3:5], color[5:7]}) == 1 for color in theme.phase_greys(5, dark=dark))
