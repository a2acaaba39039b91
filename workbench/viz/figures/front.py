"""A second objective against the score, and the front of trials that no other beats in both."""

import pandas as pd
import plotly.graph_objects as go

from workbench.core.aim import sign_of
from workbench.viz.figures import theme
from workbench.viz.figures.scales import scale_of


def objectives(front: pd.DataFrame, second: str, second_mode: str = "max") -> go.Figure:
    """Draw a point a trial, and a line through those on the front.

    Parameters
    ----------
    front : DataFrame
        From `workbench.analysis.front`: trial, phase, score, second, on_front.
    second : str
        What the second objective is called.
    second_mode : str
        ``max`` or ``min``, as of `workbench.analysis.front`: on which side of a point what it attains ends.
    """
    fig = theme.figure(f"Score against {second}", x=theme.text(second), y="score")
    if front.empty:
        return theme.empty_note(fig, f"no phase has ended with a metric {second}")
    if scale_of(front["second"]).kind == "log":
        fig.update_xaxes(theme.LOGARITHMIC)
    best = front[front["on_front"]].sort_values("second")
    fig.add_trace(_points(front[~front["on_front"]], second, "another is as good in both", "markers", theme.GREY))
    fig.add_trace(_points(best, second, "on the front", "lines+markers", theme.VERMILLION))
    return fig.update_traces(line_shape="vh" if sign_of(second_mode, "second_mode") > 0 else "hv")


def _points(rows: pd.DataFrame, second: str, name: str, mode: str, ink: str) -> go.Scatter:
    hover = [
        f"trial {row.trial}, after phase {row.phase}<br>score {theme.number(row.score)}<br>"
        f"{theme.text(second)} {theme.number(row.second)}"
        for row in rows.itertuples()
    ]
    return go.Scatter(
        x=rows["second"],
        y=rows["score"],
        mode=mode,
        name=name,
        line={"color": ink},
        marker={"color": ink, "size": 8},
        customdata=rows["trial"],
        hovertext=hover,
        hovertemplate="%{hovertext}<extra></extra>",
    )
