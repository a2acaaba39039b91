"""How all figures look: one palette, one template, times in a unit a person reads."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from textwrap import wrap
from typing import Any, NamedTuple

import pandas as pd
import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from workbench.core import showing

# Okabe & Ito (2008), "Color Universal Design": told apart with any common colour vision.
ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILLION, PURPLE, GREY = (
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#F0E442",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
    "#999999",
)

SERIES_COLORS = (BLUE, ORANGE, GREEN, VERMILLION, SKY, PURPLE, YELLOW)
"""Colours of series, in the order in which the template gives them out."""

GROUP_COLORS = (BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY, YELLOW)
"""Colours of groups, whatever their number of lines: the same seven, the pale ones last."""

STATE_COLORS = {
    "finished": "#008A62",
    "running": "#2A7FC0",
    "cut off": "#5B89A8",
    "held": "#B35F98",
    "paused": "#A26F00",
    "set aside": "#6B6FD4",
    "stopped": "#D2500A",
    "failed": "#808080",
}
"""Colour of a trial's state, and of what became of a trial in a phase; at least 3 : 1 on white and on a dark ground."""

STUDY_COLORS = ("#2A7FC0", "#D2500A", "#008A62", "#B35F98", "#A26F00", "#6B6FD4")
"""Colours of studies that stand side by side, where hue means the study; at least 3 : 1 likewise."""

_STUDY_DASHES = ((), (6, 3), (2, 3), (8, 3, 2, 3), (4, 2), (1, 2))  # px drawn, px left out, …

INK = "#7a7a7a"  # contrast 4.3 on white and on JupyterLab's dark background: no figure knows which it is on
FAINT = "rgba(128,128,128,0.22)"
LAND = "rgba(128,128,128,0.13)"

Look = Mapping[str, Any]
"""How something is drawn, in plotly's own names."""

LOGARITHMIC: Look = {"type": "log", "nticks": 4, "exponentformat": "power"}
"""An axis on which each decade has a number, of many only some, and of one or two also what lies between."""

SCORE = ".6~g"
"""How plotly writes a score that is pointed at: one of thousands in full, as `number` does, not as 1.089e+04."""

LEGEND_PHASES = 5  # more phases than this are read off a colour bar: beside the crosses a legend has no room for them

_LINE = 72  # characters of a line in an empty figure
_MARGIN = {"l": 64, "r": 24, "t": 72, "b": 52}  # px
_ABOVE = 5  # px from the data to the legend, however high the figure is: two lines of it have room below the title
_MOST_NUMBERS = 30  # of phases, on an axis
_MOST_TICKS = 4  # of a colour bar, which may be no higher than two slots
LONGEST_NAME = 28  # characters of a name beside others on an axis

_SEQUENCE = "Viridis"
_SEQUENCE_RANGE = (0.26, 0.84)  # further out it vanishes on JupyterLab's dark ground, or on white


@cache
def template() -> go.layout.Template:
    """Build the template of every figure, of which each takes a copy: transparent, grey ink, faint grid."""
    axis = {
        "gridcolor": FAINT,
        "linecolor": INK,
        "zerolinecolor": FAINT,
        "tickcolor": INK,
        "ticks": "outside",
        "ticklen": 4,
        "showline": True,
        "title": {"standoff": 8, "font": {"size": 13}},
        "tickfont": {"size": 12},
        "automargin": True,
    }
    layout = go.Layout(
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif", "size": 13, "color": INK},
        title={"font": {"size": 15}, "x": 0, "xref": "paper", "xanchor": "left", "y": 1, "yref": "container"}
        | {"yanchor": "top", "pad": {"t": 12}},
        legend={
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "yanchor": "bottom",
            "font": {"size": 12},
            "traceorder": "normal",
        },
        margin=_MARGIN,
        xaxis=axis,
        yaxis=axis,
        colorway=list(SERIES_COLORS),
        hoverlabel={"align": "left", "font": {"size": 12}},
        colorscale={"sequential": _SEQUENCE},
    )
    return go.layout.Template(layout=layout)


def figure(title: str, height: int = 380, *, x: str | None = None, y: str | None = None) -> go.Figure:
    """Start a figure with the template and the titles of its axes; `title` may come from a log, so it is escaped.

    Its legend names a lone study or fate, too, which plotly would leave out.
    """
    shown = {"template": template(), "title": {"text": text(title)}, "height": height, "showlegend": True}
    legend = {"y": 1 + _ABOVE / (height - _MARGIN["t"] - _MARGIN["b"])}
    axes = {f"{axis}axis": {"title": {"text": words}} for axis, words in (("x", x), ("y", y)) if words is not None}
    return go.Figure(layout={**shown, "legend": legend, **axes})


def time_axis(fig: go.Figure, longest_s: float, what: str = "time since the study began") -> "Clock":
    """Make the horizontal axis the study's clock, or another; give its unit."""
    unit = clock(longest_s)
    fig.update_xaxes(title=f"{what} [{unit.unit}]", rangemode="tozero")
    return unit


def value_colors(n: int) -> list[str]:
    """Give colours of values from low to high, dark to light in order (viridis), as "rgb(r, g, b)"."""
    low, high = _SEQUENCE_RANGE
    steps = [low + (high - low) * (k / max(1, n - 1)) for k in range(n)]
    return [str(color) for color in sample_colorscale(_SEQUENCE, steps)] if steps else []


def phase_greys(n_phases: int, *, dark: bool | None = None) -> list[str]:
    """Give one grey a phase, dark to light in order: in every view lightness is the phase, and nothing else is.

    At least 3 : 1 on a white ground or on JupyterLab's dark one; where the ground is not known, 1.7 : 1 on either.
    """
    low, high = {True: (112, 240), False: (30, 145), None: (72, 196)}[dark]
    steps = [round(low + (high - low) * (k / max(1, n_phases - 1))) for k in range(n_phases)]
    return [f"#{step:02x}{step:02x}{step:02x}" for step in steps]


def study_line(k: int) -> tuple[str, tuple[int, ...]]:
    """Give colour and dash (px drawn, px left out, …) of the k-th study: 36 pairs.

    Both change from one study to the next, since to some people two of the colours are one.
    """
    n = len(STUDY_COLORS)
    return STUDY_COLORS[k % n], _STUDY_DASHES[(k + k // n) % len(_STUDY_DASHES)]


def scale(colors: Sequence[str] | None = None) -> list[tuple[float, str]]:
    """Give a plotly colour scale of these colours, two or more, by default of those of values."""
    colors = colors or value_colors(32)
    return [(k / (len(colors) - 1), color) for k, color in enumerate(colors)]


def text(words: object) -> str:
    """Escape what comes from a log: plotly reads labels and hover texts as HTML."""
    return escape(str(words), quote=False)


def brief(name: object, most: int = LONGEST_NAME) -> str:
    """Write a name where there is little room, escaped: of a longer one how it begins and how it ends."""
    words, half = str(name), most // 2
    return text(words if len(words) <= most else f"{words[: most - half - 1]}…{words[-half:]}")


def number(value: object) -> str:
    """Write a number as `showing.four_digits`, anything else as it is, escaped."""
    return text(showing.four_digits(value))


def setting(value: object) -> str:
    """Write a hyperparameter's value as `showing.setting`, escaped."""
    return text(showing.setting(value))


class Clock(NamedTuple):
    """A unit of time fit for an axis: divide seconds by `seconds` to get `unit`."""

    unit: str
    seconds: float


def clock(longest_s: float) -> Clock:
    """Choose seconds, minutes or hours, by the longest time to show."""
    if longest_s < 300:
        return Clock("s", 1.0)
    return Clock("min", 60.0) if longest_s < 3 * 3600 else Clock("h", 3600.0)


def every_so_many(n_phases: int) -> int:
    """Choose which phases have their number on an axis: each, or of more than 30 every second, third, …"""
    return max(1, -(-n_phases // _MOST_NUMBERS))


def empty_note(fig: go.Figure, words: str, *, axes: bool = True) -> go.Figure:
    """Say in the middle of an empty figure, with or without its axes, why there is nothing in it yet."""
    if not axes:
        fig.update_xaxes(visible=False).update_yaxes(visible=False)
    lines = "<br>".join(text(line) for line in wrap(words, _LINE))
    fig.add_annotation(text=lines, x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False, font={"size": 14})
    return fig


def legend_bar(name: str, marker: Mapping[str, object], **place: object) -> go.Bar:
    """Build an empty bar that stands in the legend: a real one lends it the look of its first bar, hatch and all."""
    return go.Bar(x=[None], y=[None], name=name, marker=marker, orientation="h", hoverinfo="skip", **place)


def legend_marker(name: str, symbol: str) -> go.Scatter:
    """Build an empty trace that explains a marker's shape in the legend."""
    marker = {"symbol": symbol, "size": 8, "color": INK}
    return go.Scatter(x=[None], y=[None], mode="markers", name=name, marker=marker, hoverinfo="skip", legendrank=2000)


def trial_points(
    points: pd.DataFrame, x: pd.Series | Sequence[float], y: pd.Series | Sequence[float], marker: Look, **look: object
) -> go.Scatter:
    """Build points that are trials: a row of `points` each, with its number as ``trial`` and its words as ``hover``."""
    words: Look = {"hovertext": points["hover"], "hovertemplate": "%{hovertext}<extra></extra>"}
    return go.Scatter(x=x, y=y, mode="markers", marker=marker, customdata=points["trial"], **words, **look)


def explain_crosses(fig: go.Figure, cut: pd.Series) -> None:
    """Explain in the legend the crosses of `symbols`, if there are any."""
    if cut.any():
        fig.add_trace(legend_marker("last score of a stopped or failed trial", "x"))


def symbols(cut: Iterable[bool]) -> list[str]:
    """Choose a cross for the last score of a trial that was stopped or failed, else a circle."""
    return ["x" if was_cut else "circle" for was_cut in cut]


def error_bars(value: pd.Series, low: pd.Series, high: pd.Series, **look: object) -> dict[str, object]:
    """Describe the interval around each value, for plotly's ``error_x`` and ``error_y``."""
    around = {"array": (high - value).clip(lower=0), "arrayminus": (value - low).clip(lower=0)}
    return {"type": "data", "symmetric": False, **around, **look}


def phase_colorbar(colors: Sequence[str]) -> go.Scatter:
    """Build an invisible trace that brings a colour bar of the phases, whose colours these are."""
    ticks = list(range(0, len(colors), -(-len(colors) // _MOST_TICKS)))
    return colorbar_trace("phase", ticks, [str(phase) for phase in ticks], len(colors) - 1, scale(colors))


def colorbar_trace(
    title: str, values: Sequence[float], labels: Sequence[str], high: float, colorscale: Sequence[tuple[float, str]]
) -> go.Scatter:
    """Build an invisible trace that brings a colour bar from 0 to `high` with these ticks."""
    bar = {
        "title": {"text": text(title), "side": "right", "font": {"size": 13}},
        "tickvals": list(values),
        "ticktext": [text(label) for label in labels],
        "thickness": 12,
        "outlinewidth": 0,
    }
    marker = {
        "color": [0, high],
        "cmin": 0,
        "cmax": high,
        "colorscale": colorscale,
        "colorbar": bar,
        "showscale": True,
    }
    return go.Scatter(x=[None, None], y=[None, None], mode="markers", marker=marker, showlegend=False, hoverinfo="skip")
