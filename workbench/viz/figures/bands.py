"""Several curves with their intervals: how schedulers fare over many repetitions."""

import pandas as pd
import plotly.graph_objects as go

from workbench.viz.figures import theme

_COLORS = theme.SERIES_COLORS
_DASHES = ("solid", "dash", "dot")
_HEIGHT, _AROUND, _LEGEND_LINE = 380, 190, 30  # pixels: at least; what is not legend; a line of it


def bands(curves: pd.DataFrame, title: str, x_title: str, y_title: str) -> go.Figure:
    """Draw one line a scheduler, its interval shaded; where there are more than colours, further ones are dashed.

    Parameters
    ----------
    curves : DataFrame
        scheduler, at, median, low, high.
    title, x_title, y_title : str
    """
    height = max(_HEIGHT, _AROUND + _LEGEND_LINE * curves["scheduler"].nunique())
    fig = theme.figure(title, height, x=x_title, y=y_title)
    if curves.empty:
        return theme.empty_note(fig, "nothing was compared")
    for n, (name, curve) in enumerate(curves.groupby("scheduler", sort=False)):
        color = _COLORS[n % len(_COLORS)]
        around = pd.concat([curve["low"], curve["high"][::-1]])
        fig.add_trace(
            go.Scatter(
                x=pd.concat([curve["at"], curve["at"][::-1]]),
                y=around,
                fill="toself",
                fillcolor=color,
                opacity=0.2,
                line={"width": 0},
                legendgroup=str(name),
                showlegend=False,
                hoverinfo="skip",
            )
        )
        hover = f"{theme.text(name)}: %{{y:{theme.SCORE}}} at %{{x:{theme.SCORE}}}<extra></extra>"
        line = {"color": color, "width": 2, "dash": _DASHES[n // len(_COLORS) % len(_DASHES)]}
        fig.add_trace(
            go.Scatter(
                x=curve["at"],
                y=curve["median"],
                name=theme.text(name),
                line=line,
                legendgroup=str(name),
                hovertemplate=hover,
            )
        )
    return fig
