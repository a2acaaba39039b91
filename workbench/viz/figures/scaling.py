"""How something grows with size, such as speed with nodes: measured, modelled and published points, told apart."""

import pandas as pd
import plotly.graph_objects as go

from workbench.viz.figures import theme

_COLORS = theme.GROUP_COLORS[:6]
_LOOKS: dict[str, dict[str, object]] = {
    "measured": {"mode": "lines+markers", "marker": {"size": 9, "symbol": "circle"}, "line": {"width": 2}},
    "model": {"mode": "lines", "line": {"width": 2, "dash": "dash"}},
    "published": {"mode": "markers", "marker": {"size": 12, "symbol": "diamond-open", "line": {"width": 2}}},
    "linear": {"mode": "lines", "line": {"width": 1.5, "dash": "dot"}},
}
"""Source → how it is drawn: only what was measured has filled marks; the paper's own are hollow."""


def scaling(points: pd.DataFrame, title: str, y_title: str, x_title: str = "nodes") -> go.Figure:
    """Draw a quantity over a size, both axes logarithmic.

    Parameters
    ----------
    points : DataFrame
        series : str
            A line each; a published series of the name of ours has its colour.
        source : {"measured", "model", "published", "linear"}
            Filled marks, dashed line, hollow diamonds, dotted line.
        x, value : float
        low, high : float, optional
            An interval; NaN where there is none.
    title, y_title, x_title : str
        The titles of the axes with their units.
    """
    fig = theme.figure(title, 420)
    fig.update_xaxes(title=x_title, type="log", tickvals=sorted(points["x"].unique()))
    fig.update_yaxes(title=y_title, type="log")
    if points.empty:
        return theme.empty_note(fig, "nothing was measured")
    names = points.loc[points["source"] != "linear", "series"].unique()
    inks = {name: _COLORS[n % len(_COLORS)] for n, name in enumerate(names)}
    for (series, source), rows in points.groupby(["series", "source"], sort=False):
        fig.add_trace(_trace(rows.sort_values("x"), str(series), str(source), inks.get(series, theme.INK)))
    return fig


def _trace(rows: pd.DataFrame, series: str, source: str, ink: str) -> go.Scatter:
    name = f"{theme.text(series)}, {source}"
    trace = go.Scatter(
        x=rows["x"],
        y=rows["value"],
        name=name,
        hovertemplate=f"{name}: %{{y:{theme.SCORE}}} at %{{x}}<extra></extra>",
        **_LOOKS[source],
    )
    trace.update(line_color=ink, marker_color=ink)
    if source == "measured" and "low" in rows and rows["low"].notna().any():
        trace.error_y = theme.error_bars(rows["value"], rows["low"], rows["high"], thickness=1.5)
    return trace
