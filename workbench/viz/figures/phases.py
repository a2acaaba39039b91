"""Which trials a study keeps, phase by phase: their scores, and their places in the search space.

As Figs. 4 and 5 of arXiv 1902.02725.
"""

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.core.domains import spaced
from workbench.core.showing import so_many
from workbench.viz.figures import theme
from workbench.viz.figures.hyperparameters import match_across, scored_points, tried, value_axis
from workbench.viz.figures.scales import positions, scale_of, shares
from workbench.viz.figures.thinned import halved, some_of

_MOST_COUNTS = 30  # or so, of trials above the phases they ended: of more phases only some have room
_SIZE, _SIZES = 9.0, (6, 16)  # px; markers, and those of the smallest and the largest value of a third hyperparameter


def score_by_phase(phases: pd.DataFrame, trials: pd.DataFrame) -> go.Figure:
    """Draw the distribution of the scores at each phase's end, with every score and how many there are.

    Parameters
    ----------
    phases, trials : DataFrame
        As in `workbench.knowledge.Frames`.

    Returns
    -------
    Figure
        A box a phase, of all scores, and a point a trial: a cross where it was stopped or failed with that score. Of
        more than `thinned.MOST_POINTS` some of each phase: its best, its worst and others at random.
    """
    points = scored_points(phases, trials, [])
    title = some_of("Scores at the end of each phase", int(points["drawn"].sum()), len(points), "scores")
    fig = theme.figure(title, x="phase", y="score")
    fig.update_xaxes(zeroline=False).update_yaxes(zeroline=False)
    if points.empty:
        return theme.empty_note(fig, "no phase has ended yet")
    ended = points.groupby("phase")["trial"].count()
    last = int(ended.index.max())
    box = {"boxpoints": False, "hoverinfo": "skip", "showlegend": False, "width": 0.7}
    fig.add_trace(
        go.Box(
            x=points["phase"],
            y=halved(points["score"]),
            fillcolor=theme.LAND,
            line={"color": theme.INK, "width": 1},
            **box,
        )
    )
    fig.add_trace(_spread_points(points[points["drawn"]], theme.phase_greys(last + 1)))
    counts = ended[ended.index % max(1, (last + 1) // _MOST_COUNTS) == 0].items()
    above = [{"text": str(n), "x": phase} for phase, n in counts]
    above.append({"text": "trials", "x": 0, "xref": "paper", "xanchor": "right"})
    look = {"y": 1, "yref": "paper", "yanchor": "bottom", "showarrow": False, "font": {"size": 12}}
    fig.update_layout(annotations=[words | look for words in above])  # all at once: each look is checked by Plotly
    fig.update_xaxes(range=[-0.6, last + 0.6], dtick=max(1, (last + 1) // 12))
    if points["cut"].any():
        theme.explain_crosses(fig, points["cut"])
        fig.update_layout(legend_y=1.08, margin_t=90)
    return fig


def space_by_phase(
    phases: pd.DataFrame, trials: pd.DataFrame, hyperparameters: Sequence[str], most_panels: int = 4
) -> go.Figure:
    """Draw where in the search space the trials of each phase lie, and how they scored in it.

    Parameters
    ----------
    phases, trials : DataFrame
        As in `workbench.knowledge.Frames`.
    hyperparameters : sequence of str
        Columns of `trials`: across, up, and, if there is a third, the size of the marker.
    most_panels : int
        Of more phases than this, the first, the last and some between are drawn.

    Returns
    -------
    Figure
        A panel a phase with the trials that ended it, coloured by the score they ended it with; a trial that was
        stopped or failed with that score is a cross. Of more than `thinned.MOST_POINTS` scores some of each phase.
    """
    names = list(hyperparameters)[:3]
    points = scored_points(phases, trials, names)
    if points.empty or len(names) < 2:
        needed = "no phase has ended yet" if len(names) > 1 else "two hyperparameters are needed to draw a space"
        return theme.empty_note(theme.figure("Search space, phase by phase"), needed)
    values = [tried(points, trials, name) for name in names]
    sizes = _sizes(values[2]) if len(names) > 2 else pd.Series(_SIZE, index=points.index)
    known = sorted(map(int, points["phase"].unique()))
    chosen = [known[k] for k in spaced(len(known), most_panels)]
    ended = points.groupby("phase")["trial"].count()
    titles = [f"phase {phase}: {so_many(ended[phase], 'trial')}" for phase in chosen]
    fig = theme.figure(some_of("Search space, phase by phase", int(points["drawn"].sum()), len(points), "scores"))
    make_subplots(1, len(chosen), shared_yaxes=True, horizontal_spacing=0.03, subplot_titles=titles, figure=fig)
    fig.update_annotations(font={"size": 13})
    across, up = (scale_of(trials[name]) for name in names[:2])
    x, y = positions(values[0], across), positions(values[1], up)
    for k, phase in enumerate(chosen, start=1):
        group = points[points["drawn"] & (points["phase"] == phase)]
        at = group.index
        fig.add_trace(_places(group, x[at], y[at], sizes[at]), row=1, col=k)
        value_axis(fig, "x", names[0], across, abreast=len(chosen), row=1, col=k)
        value_axis(fig, "y", names[1] if k == 1 else "", up, row=1, col=k)
    match_across(fig, across)
    if len(names) > 2:
        fig.add_trace(theme.legend_marker(f"size: {theme.text(names[2])}, {_ends(values[2])}", "circle"))
    theme.explain_crosses(fig, points["cut"])
    bar = {"title": {"text": "score", "side": "right"}, "thickness": 12, "outlinewidth": 0}
    return fig.update_layout(coloraxis={"colorscale": theme.scale(), "colorbar": bar}, legend_y=1.1, margin_t=100)


def _spread_points(points: pd.DataFrame, colors: Sequence[str]) -> go.Scatter:
    """Draw every score, the trials of a phase side by side in the order of their numbers."""
    place = points.groupby("phase")["trial"].rank(method="first", pct=True)
    n = points.groupby("phase")["trial"].transform("count")
    across = points["phase"] + 0.6 * (place - 0.5 - 0.5 / n)
    marker = {"color": [colors[phase] for phase in points["phase"]], "size": 7, "symbol": theme.symbols(points["cut"])}
    return theme.trial_points(points, across, points["score"], marker, showlegend=False)


def _places(group: pd.DataFrame, x: pd.Series, y: pd.Series, sizes: pd.Series) -> go.Scatter:
    marker = {"color": group["score"], "coloraxis": "coloraxis", "size": sizes, "opacity": 0.9}
    marker["symbol"] = theme.symbols(group["cut"])
    return theme.trial_points(group, x, y, marker, showlegend=False)


def _sizes(values: pd.Series) -> "pd.Series[float]":
    """Give markers' diameters [px], by the third hyperparameter."""
    small, large = _SIZES
    return small + (large - small) * shares(values, scale_of(values)).fillna(0.5)


def _ends(values: pd.Series) -> str:
    """Name the smallest and the largest value, in the sense of their axis."""
    scale = scale_of(values)
    if scale.kind == "category":
        return f"{theme.text(scale.order[0])} to {theme.text(scale.order[-1])}"
    return f"{theme.setting(float(values.min()))} to {theme.setting(float(values.max()))}"
