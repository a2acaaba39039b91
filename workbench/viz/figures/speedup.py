"""How much faster one system is than another, as the variance of step times grows."""

from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go

from workbench.viz.figures import theme

_COLORS = {"gamma": theme.BLUE, "lognormal": theme.ORANGE, "pareto": theme.GREEN}


def speedup_by_variance(
    speedups: pd.DataFrame,
    title: str = "Speed-up over the synchronous baseline",
    published: Mapping[str, float] | None = None,
) -> go.Figure:
    """Draw measured speed-ups with their intervals, and the expectation beside them.

    Parameters
    ----------
    speedups : DataFrame
        law : str
            Of the step times; a colour each.
        cv : float
            Their standard deviation over their mean.
        speedup, low, high : float
            Measured, with its interval; NaN where nothing was measured.
        expected : float
            From the law alone.
    title : str
    published : Mapping of str to float, optional
        Speed-ups that are told without the variance they belong to: name → a line across.
    """
    fig = theme.figure(title, x="standard deviation of step times / mean", y="speed-up (×)")
    fig.update_xaxes(rangemode="tozero").update_yaxes(rangemode="tozero")
    if speedups.empty:
        return theme.empty_note(fig, "nothing was measured")
    fig.add_hline(y=1, line={"color": theme.INK, "width": 1, "dash": "dot"})
    for name, value in (published or {}).items():
        words = {"text": f"published: {theme.text(name)} {value:g}", "font": {"size": 12}}
        line = {"color": theme.INK, "width": 1.5, "dash": "longdashdot"}
        fig.add_hline(y=value, line=line, annotation=words, annotation_position="top left")
    for law, rows in speedups.sort_values("cv").groupby("law", sort=False):
        color = _COLORS.get(str(law), theme.PURPLE)
        name = theme.text(law)
        fig.add_trace(_expected(rows, name, color))
        if rows["speedup"].notna().any():
            fig.add_trace(_measured(rows[rows["speedup"].notna()], name, color))
    return fig


def _expected(rows: pd.DataFrame, name: str, color: str) -> go.Scatter:
    return go.Scatter(
        x=rows["cv"],
        y=rows["expected"],
        name=f"{name}, expected",
        mode="lines+markers" if len(rows) == 1 else "lines",
        marker={"symbol": "line-ew-open", "size": 14, "color": color},
        line={"color": color, "width": 2, "dash": "dash"},
        hovertemplate=f"{name}: expected %{{y:.2f}}× at %{{x:.3g}}<extra></extra>",
    )


def _measured(rows: pd.DataFrame, name: str, color: str) -> go.Scatter:
    return go.Scatter(
        x=rows["cv"],
        y=rows["speedup"],
        error_y=theme.error_bars(rows["speedup"], rows["low"], rows["high"], thickness=1.5),
        name=f"{name}, measured",
        mode="markers",
        marker={"size": 9, "color": color, "line": {"width": 1, "color": "white"}},
        hovertemplate=f"{name}: measured %{{y:.2f}}× at %{{x:.3g}}<extra></extra>",
    )
