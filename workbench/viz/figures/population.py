"""A population over its phases: the scores of its members, and what became of their hyperparameters."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.core.aim import sign_of
from workbench.viz.figures import theme
from workbench.viz.figures.hyperparameters import longest_label, value_axis
from workbench.viz.figures.scales import Scale, positions, scale_of

_COLUMNS = 3
_WIDTH = 800  # px or so, of the panels of a figure in a notebook
_FAINT_MEMBER = "rgba(0,114,178,0.45)"
_MEMBER = "trial %{customdata[0]} (member %{customdata[1]})"


def population_curves(schedules: pd.DataFrame, mode: str = "max") -> go.Figure:
    """Draw every member's score phase by phase, with the best and the median of the population.

    Parameters
    ----------
    schedules : DataFrame
        From `workbench.analysis.schedules`: member, phase, trial, score.
    mode : str
        ``max`` or ``min``: which score is the best.
    """
    fig = theme.figure("Scores of the population", x="phase", y="score").update_xaxes(rangemode="tozero")
    scored = schedules.dropna(subset=["score"]).astype({"score": float})
    if scored.empty:
        return theme.empty_note(fig, "no phase has ended yet")
    lines = _joined(scored, scored["score"])
    fig.add_trace(
        go.Scatter(
            x=lines["x"],
            y=lines["y"],
            mode="lines",
            name="a member",
            line={"color": theme.GREY, "width": 1},
            customdata=lines[["trial", "member"]],
            hovertemplate=f"{_MEMBER}, phase %{{x}}: %{{y:{theme.SCORE}}}<extra></extra>",
        )
    )
    by_phase = scored.groupby("phase")["score"]
    best, median = by_phase.max() if sign_of(mode) > 0 else by_phase.min(), by_phase.median()
    for name, values, ink in (("best", best, theme.VERMILLION), ("median", median, theme.BLUE)):
        hover = f"phase %{{x}}: {name} %{{y:{theme.SCORE}}}<extra></extra>"
        fig.add_trace(
            go.Scatter(
                x=values.index,
                y=values,
                mode="lines",
                name=name,
                line={"color": ink, "width": 2.5},
                hovertemplate=hover,
            )
        )
    return fig


def hyperparameters_over_time(
    schedules: pd.DataFrame, hyperparameters: Sequence[str], best: pd.DataFrame | None = None
) -> go.Figure:
    """Draw a panel a hyperparameter: what every member ran with in each phase.

    Parameters
    ----------
    schedules : DataFrame
        From `workbench.analysis.schedules`: member, phase, trial, score, and a column a hyperparameter.
    hyperparameters : sequence of str
    best : DataFrame, optional
        From `workbench.analysis.schedule_of`: the schedule of the best weights, drawn over the members'. Where they
        were copied from a member that was ahead, phases come again: in another line.
    """
    title = "Hyperparameters over time"
    if schedules.empty or not hyperparameters:
        fig = theme.figure(title)
        return theme.empty_note(fig, "no phase has ended yet" if hyperparameters else "nothing was varied")
    columns = min(_COLUMNS, len(hyperparameters))
    rows = math.ceil(len(hyperparameters) / columns)
    between = [name for k, name in enumerate(hyperparameters) if k % columns]  # at the left there is a margin
    words = max((longest_label(scale_of(schedules[name])) for name in between), default=0.0)
    beside = max(0.09, 0.04 + words / _WIDTH)
    fig = theme.figure(title, 130 + 260 * rows)
    make_subplots(rows, columns, horizontal_spacing=beside, vertical_spacing=min(0.2, 0.6 / rows), figure=fig)
    for k, name in enumerate(hyperparameters):
        place = {"row": k // columns + 1, "col": k % columns + 1}
        _panel(fig, schedules, best, name, place, in_legend=k == 0)
    return fig


def _panel(
    fig: go.Figure,
    schedules: pd.DataFrame,
    best: pd.DataFrame | None,
    name: str,
    place: dict[str, int],
    *,
    in_legend: bool,
) -> None:
    scale = scale_of(schedules[name])
    fig.update_xaxes(title="phase", rangemode="tozero", **place)
    value_axis(fig, "y", name, scale, **place)
    member = {"name": "a member", "legendgroup": "member", "showlegend": in_legend}
    fig.add_trace(_line(schedules, name, scale, _MEMBER, _FAINT_MEMBER, 1, **member), **place)
    if best is not None and len(best):
        of_best = {"name": "of the best weights", "legendgroup": "best", "showlegend": in_legend}
        apart = best.assign(member=(best["phase"].diff() <= 0).cumsum())  # a copier begins where its donor has been
        fig.add_trace(_line(apart, name, scale, "trial %{customdata[0]}", theme.VERMILLION, 3, **of_best), **place)


def _line(
    schedules: pd.DataFrame, hyperparameter: str, scale: Scale, who: str, ink: str, width: int, **legend: Any
) -> go.Scatter:
    """Draw the values of a hyperparameter phase by phase, a line a member."""
    places = pd.Series(positions(schedules[hyperparameter], scale), index=schedules.index)
    lines = _joined(schedules, places, schedules[hyperparameter].map(theme.setting))
    return go.Scatter(
        x=lines["x"],
        y=lines["y"],
        mode="lines+markers",
        line={"color": ink, "width": width, "shape": "hv"},
        marker={"size": width + 3, "color": ink},
        customdata=lines[["trial", "member", "words"]],
        hovertemplate=who + ", phase %{x}: %{customdata[2]}<extra></extra>",
        **legend,
    )


def _joined(schedules: pd.DataFrame, y: pd.Series, words: pd.Series | None = None) -> pd.DataFrame:
    """Join the members' lines: x, y, words, trial, member, with a row of None after each member's last point."""
    points = schedules[["trial", "member"]].assign(x=schedules["phase"], y=y, words=y if words is None else words)
    gaps = pd.DataFrame({"member": points["member"].unique()})
    lines = pd.concat([points.astype(object), gaps.astype(object)])  # objects: a trial's number stays whole
    return lines.where(lines.notna(), None).sort_values("member", kind="stable", ignore_index=True)
