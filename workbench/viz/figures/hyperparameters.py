"""The score against each hyperparameter, phase by phase (as Figs. 5 and 7 of arXiv 1902.02725)."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.viz.figures import theme
from workbench.viz.figures.curves import config_lines, cut_short
from workbench.viz.figures.scales import Scale, positions, scale_of
from workbench.viz.figures.thinned import MOST_POINTS, some_of, thin_groups

_COLUMNS = 3
_LABEL = 10  # px: the size of words on an axis
_NAMES = 64  # signs of the names below more panels side by side, in all
_TOLD = 8  # hyperparameters that a point tells of; of more its panel's alone: all in every panel would be megabytes
_TURN, _MOST_SIGNS = 40, 132  # degrees: words below panels are turned, if there are more signs of them in all


def score_by_hyperparameter(phases: pd.DataFrame, trials: pd.DataFrame, hyperparameters: Sequence[str]) -> go.Figure:
    """Draw a panel a hyperparameter: the score at the end of every phase against the value tried.

    Parameters
    ----------
    phases, trials : DataFrame
        As in `workbench.knowledge.Frames`.
    hyperparameters : sequence of str
        Columns of `trials` that hold the configuration.

    Returns
    -------
    Figure
        Points coloured by phase, the last one of a trial that was stopped or failed as a cross: such are data too.
        Of more than `thinned.MOST_POINTS` some of each phase: its best, its worst and others at random.
    """
    few = hyperparameters if len(hyperparameters) <= _TOLD else []
    scored = scored_points(phases, trials, few)
    points = scored[scored["drawn"]]
    title = some_of("Score against each hyperparameter", len(points), len(scored), "scores")
    if points.empty or not hyperparameters:
        fig = theme.figure(title, y="score")
        return theme.empty_note(fig, "no phase has ended yet" if hyperparameters else "nothing was varied")
    scales = [scale_of(trials[name]) for name in hyperparameters]
    columns = min(_COLUMNS, len(scales))
    fig = _panels(title, math.ceil(len(scales) / columns), columns, max(map(_below, scales)))
    colors = theme.phase_greys(int(points["phase"].max()) + 1)
    for k, (name, scale) in enumerate(zip(hyperparameters, scales, strict=True)):
        place = {"row": k // columns + 1, "col": k % columns + 1}
        values = tried(points, trials, name)
        across = positions(values, scale)
        told = points
        if not few:
            told = points.assign(hover=points["hover"] + [config_lines({name: value}, [name]) for value in values])
        value_axis(fig, "x", name, scale, **place)
        if len(colors) > theme.LEGEND_PHASES:  # a trace a phase would take minutes for a thousand
            fig.add_trace(_panel_points(told, across, colors, showlegend=False), **place)
            continue
        for phase, group in told.groupby("phase"):
            words = f"phase {phase}"
            legend = {"name": words, "legendgroup": words, "showlegend": k == 0}
            fig.add_trace(_panel_points(group, across[group.index], colors, **legend), **place)
    fig.update_yaxes(title="score", col=1)
    _explain(fig, points, colors)
    return fig


def scored_points(phases: pd.DataFrame, trials: pd.DataFrame, hyperparameters: Sequence[str]) -> pd.DataFrame:
    """Give every score, to be pointed at with its configuration.

    Returns
    -------
    DataFrame
        One row a phase that ended: trial, phase, score, state, cut (whether the trial was stopped or failed and this
        is its last score), drawn (whether it is among those that a figure has room for), hover (HTML, escaped, of what
        is drawn). Hyperparameters, whose names may be any, are no columns: see `tried`.
    """
    ended = phases.loc[phases["ended_s"].notna() & phases["score"].notna(), ["trial", "phase", "score"]]
    names = [name for name in hyperparameters if name not in ("phase", "score", "state")]
    points = ended.merge(trials[["trial", "state", *names]], on="trial").sort_values(["phase", "trial"])
    drawn = thin_groups(points["phase"], points["trial"], points["score"], MOST_POINTS)
    words = [
        f"trial {row['trial']} ({theme.text(row['state'])}), phase {row['phase']}<br>score {theme.number(row['score'])}"
        + config_lines(row, names)
        for row in points[drawn].to_dict("records")
    ]
    hover = pd.Series(words, index=points.index[drawn], dtype=object)
    scored = points[["trial", "phase", "score", "state"]]
    return scored.assign(cut=cut_short(points, points["state"]), drawn=drawn, hover=hover)


def tried(points: pd.DataFrame, trials: pd.DataFrame, name: str) -> pd.Series:
    """Give the value of a hyperparameter that the trial of every point ran with."""
    return points["trial"].map(trials.set_index("trial")[name])


def value_axis(
    fig: go.Figure, axis: Literal["x", "y"], name: str, scale: Scale, *, abreast: int = _COLUMNS, **place: int
) -> None:
    """Make the axis of a panel, ``row`` and ``col`` of `abreast` side by side, one of a hyperparameter's values."""
    update: Callable[..., object] = fig.update_xaxes if axis == "x" else fig.update_yaxes
    room = theme.LONGEST_NAME if abreast <= _COLUMNS else _NAMES // abreast
    look: dict[str, Any] = {"title": theme.brief(name, room), "type": "linear", "zeroline": False}
    if scale.kind == "log":
        look |= theme.LOGARITHMIC
    elif scale.kind == "category":
        labels = [theme.brief(word) for word in scale.order]
        look |= {"tickvals": list(range(len(labels))), "ticktext": labels, "range": [-0.5, len(labels) - 0.5]}
        look |= {"tickfont": {"size": _LABEL}, "ticklabeloverflow": "allow"}
        look |= {"tickangle": -_TURN if axis == "x" and _crowded(scale, abreast) else 0}
    update(**look, **place)


def _crowded(scale: Scale, abreast: int = _COLUMNS) -> bool:
    """Whether words side by side below a panel have no room between them, and are turned."""
    return sum(len(theme.brief(word)) + 2 for word in scale.order) > _MOST_SIGNS // max(abreast, _COLUMNS)


def longest_label(scale: Scale) -> float:
    """Give about how long the longest word on an axis is [px]; 0 on an axis of numbers."""
    return 0.6 * _LABEL * max((len(theme.brief(word)) for word in scale.order), default=0)


def _below(scale: Scale) -> int:
    """Give how far down turned labels reach [px]."""
    return round(longest_label(scale) * math.sin(math.radians(_TURN))) if _crowded(scale) else 0


def match_across(fig: go.Figure, scale: Scale) -> go.Figure:
    """Give the panels one horizontal axis; words have one already, as each has the same range.

    Where axes that match have a range of their own, plotly forgets to find that of the vertical axes.
    """
    return fig if scale.kind == "category" else fig.update_xaxes(matches="x")


def _panels(title: str, rows: int, columns: int, below: int) -> go.Figure:
    """Start a figure of panels with so much room below each for turned labels, besides that for a title [px]."""
    inner = 26 + 250 * rows  # px, without the margins
    apart = (min(0.16, 0.6 / rows) * inner + below) / (inner + below * rows)
    fig = theme.figure(title, inner + 124 + below * rows)
    spaces = {"horizontal_spacing": 0.04, "vertical_spacing": apart}
    return make_subplots(rows, columns, shared_yaxes="all", figure=fig, **spaces)


def _panel_points(points: pd.DataFrame, across: pd.Series, colors: list[str], **legend: Any) -> go.Scatter:
    marker = {
        "color": [colors[phase] for phase in points["phase"]],
        "size": 8,
        "symbol": theme.symbols(points["cut"]),
        "line": {"width": 0.5, "color": "white"},
        "opacity": 0.9,
    }
    return theme.trial_points(points, across, points["score"], marker, **legend)


def _explain(fig: go.Figure, points: pd.DataFrame, colors: list[str]) -> None:
    theme.explain_crosses(fig, points["cut"])
    if len(colors) > theme.LEGEND_PHASES:
        fig.add_trace(theme.phase_colorbar(colors))
