"""The score against each of the hyperparameters that matter most, the others as they were tried."""

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.viz.figures import theme
from workbench.viz.figures.curves import config_lines
from workbench.viz.figures.hyperparameters import value_axis
from workbench.viz.figures.scales import positions, scale_of


def partial_dependence(table: pd.DataFrame, remark: str) -> go.Figure:
    """Draw a panel a hyperparameter: what forests predict for its values on average, with a 95 % band.

    Parameters
    ----------
    table : DataFrame
        Of `workbench.analysis.partial_dependence`: hyperparameter, value, score, low, high. Empty: the words are shown.
    remark : str
        Why there is none.
    """
    title = "What score each value brings, on average over the configurations tried"
    if table.empty:
        return theme.empty_note(theme.figure(title, 240), remark, axes=False)
    names = list(table["hyperparameter"].unique())
    fig = theme.figure(title, 360).update_layout(showlegend=False)
    make_subplots(1, len(names), shared_yaxes="all", horizontal_spacing=0.04, figure=fig)
    for k, name in enumerate(names, 1):
        rows = table[table["hyperparameter"] == name]
        scale = scale_of(rows["value"].repeat(2))  # each stands here once, though many configurations have it
        value_axis(fig, "x", name, scale, abreast=len(names), row=1, col=k)
        at = positions(rows["value"], scale)
        for bound, fill in (("low", None), ("high", "tonexty")):
            line = {"width": 0, "color": theme.BLUE}
            edge = go.Scatter(x=at, y=rows[bound], mode="lines", line=line, fill=fill, hoverinfo="skip")
            fig.add_trace(edge, row=1, col=k)
        hover = [
            f"predicted score {theme.number(score)}<br>95 %: {theme.number(low)} to {theme.number(high)}"
            + config_lines({name: value}, [name])
            for value, score, low, high in rows[["value", "score", "low", "high"]].itertuples(index=False)
        ]
        fig.add_trace(
            go.Scatter(
                x=at,
                y=rows["score"],
                mode="lines+markers",
                line={"color": theme.BLUE},
                hovertext=hover,
                hovertemplate="%{hovertext}<extra></extra>",
            ),
            row=1,
            col=k,
        )
    fig.update_yaxes(title="predicted score", row=1, col=1)
    return fig
