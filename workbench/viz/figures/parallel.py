"""Every trial as a line through its hyperparameters to its score."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.core.aim import sign_of
from workbench.viz.figures import theme
from workbench.viz.figures.curves import config_lines
from workbench.viz.figures.scales import Scale, scale_of, shares, ticks
from workbench.viz.figures.thinned import some_of, thin_groups

_MOST_LINES = 300  # of more trials some: each tells its configuration at every axis
_BINS = 12  # colours of the score: few traces, since each costs the browser time
_CHARACTERS = 120  # beside each other, of all axes
_SCORE = "last_score"


def parallel_coordinates(trials: pd.DataFrame, hyperparameters: Sequence[str], mode: str = "max") -> go.Figure:
    """Draw an upright axis a hyperparameter, and one for the last score; a line a trial, coloured by its score.

    Plain lines rather than plotly's own kind of trace, which needs WebGL and cannot be pointed at.

    Parameters
    ----------
    trials : DataFrame
        As in `workbench.knowledge.Frames`; trials without a score are left out. Of more than 300 the best, the worst
        and others at random are drawn.
    hyperparameters : sequence of str
        Columns of `trials`. One of which all trials had the same value is left out.
    mode : str
        ``max`` or ``min``: which score is the best, and drawn over the others.
    """
    scored = trials[trials[_SCORE].notna()].sort_values(_SCORE)
    drawn = thin_groups(pd.Series(0, scored.index), scored["trial"], scored[_SCORE], _MOST_LINES).to_numpy()
    fig = theme.figure(some_of("Trials through their hyperparameters", drawn.sum(), len(scored), "trials"), 440)
    names = [name for name in hyperparameters if scored[name].astype(str).nunique() > 1]
    if scored.empty or not names:
        return theme.empty_note(fig, "no phase has ended yet" if scored.empty else "nothing was varied", axes=False)
    axes = [*names, _SCORE]
    places = np.column_stack([shares(scored[name], _scale_of(scored[name])) for name in axes])
    bins = np.round(places[:, -1] * (_BINS - 1)).astype(int)
    colors = theme.value_colors(_BINS)
    hover = _hover(scored[drawn], hyperparameters)
    for k in np.unique(bins[drawn])[:: sign_of(mode)]:
        of = drawn & (bins == k)
        fig.add_trace(_lines(places[of], scored["trial"][of], hover[bins[drawn] == k], colors[k]))
    _draw_axes(fig, scored, axes)
    return fig


def _scale_of(values: pd.Series) -> Scale:
    """Choose an axis; scores are no categories, for how far apart they are is what is looked at."""
    scale = scale_of(values)
    return Scale("linear", []) if values.name == _SCORE and scale.kind == "category" else scale


def _hover(trials: pd.DataFrame, names: Sequence[str]) -> "np.ndarray[Any, Any]":
    words = [
        f"trial {row['trial']} ({theme.text(row['state'])})<br>score {theme.number(row[_SCORE])}"
        + config_lines(row, names)
        for row in trials.to_dict("records")
    ]
    return np.array(words, dtype=object)


def _lines(places: "np.ndarray[Any, Any]", trials: pd.Series, hover: "np.ndarray[Any, Any]", color: str) -> go.Scatter:
    """Join trials into one line with gaps; `places` has shape [trials, axes]."""
    n, axes = places.shape
    return go.Scatter(
        x=np.tile(np.append(np.arange(axes, dtype=float), np.nan), n),
        y=np.column_stack([places, np.full(n, np.nan)]).ravel(),
        mode="lines+markers",
        line={"color": color, "width": 1.5},
        marker={"color": color, "size": 5},
        opacity=0.75,
        showlegend=False,
        customdata=np.repeat(trials.to_numpy(), axes + 1),
        hovertext=np.repeat(hover, axes + 1),
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _draw_axes(fig: go.Figure, trials: pd.DataFrame, axes: Sequence[str]) -> None:
    titles = [*map(theme.brief, axes[:-1]), "last score"]
    fig.update_xaxes(tickvals=list(range(len(axes))), ticktext=titles, range=[-0.4, len(axes) - 0.6], showline=False)
    fig.update_xaxes(gridcolor=theme.INK, zeroline=False, ticks="", side="top", tickfont={"size": 13})
    fig.update_yaxes(visible=False, range=[-0.04, 1.04])
    room = max(6, min(theme.LONGEST_NAME, _CHARACTERS // len(axes)))
    look = {"showarrow": False, "xanchor": "right", "xshift": -5, "font": {"size": 11, "color": theme.INK}}
    labels = []
    for k, name in enumerate(axes):
        numbers = pd.api.types.is_numeric_dtype(trials[name])  # they are never cut
        for share, label in zip(*ticks(trials[name], _scale_of(trials[name])), strict=True):
            labels.append({"x": k, "y": share, "text": theme.text(label) if numbers else theme.brief(label, room)})
    fig.update_layout(annotations=[label | look for label in labels])
