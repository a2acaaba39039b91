"""The score over two hyperparameters, phase by phase: where the best values lie, and whether they stay there."""

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.core.aim import sign_of
from workbench.core.showing import so_many
from workbench.viz.figures import theme
from workbench.viz.figures.curves import config_lines
from workbench.viz.figures.hyperparameters import match_across, value_axis
from workbench.viz.figures.scales import positions, scale_of


def landscape(table: pd.DataFrame, remark: str, mode: str = "max") -> go.Figure:
    """Draw a panel a phase: what a forest predicts over two hyperparameters, and a star on its best.

    Every panel has the colours of its own scores, from its lowest to its highest: scores grow with the phases, and what
    is compared is where they are high.

    Parameters
    ----------
    table : DataFrame
        Of `workbench.analysis.landscape`: phase, trials, two hyperparameters, score. Empty: the words are shown.
    remark : str
        Why there is none.
    mode : str
        "max", or "min" where low scores are good.
    """
    title = "Predicted score over the two hyperparameters that matter most, phase by phase"
    if table.empty:
        return theme.empty_note(theme.figure(title, 240), remark, axes=False)
    across, up = [name for name in table.columns if name not in ("phase", "trials", "score")]
    chosen = list(table["phase"].unique())
    scales = {name: scale_of(table[name]) for name in (across, up)}
    counts = table.groupby("phase")["trials"].first()
    titles = [f"phase {phase}: {so_many(counts[phase], 'configuration')}" for phase in chosen]
    fig = theme.figure(title, 380).update_layout(showlegend=False)
    make_subplots(1, len(chosen), shared_yaxes=True, horizontal_spacing=0.03, subplot_titles=titles, figure=fig)
    fig.update_annotations(font={"size": 13})
    for k, phase in enumerate(chosen, start=1):
        rows = table[table["phase"] == phase]
        x, y = (positions(rows[name], scales[name]) for name in (across, up))
        fig.add_trace(_map(rows, x, y, (across, up)), row=1, col=k)
        best = (sign_of(mode) * rows["score"]).idxmax()
        marker = {"symbol": "star", "size": 14, "color": "white", "line": {"width": 1, "color": "black"}}
        fig.add_trace(
            go.Scatter(x=[x[best]], y=[y[best]], mode="markers", marker=marker, hoverinfo="skip"), row=1, col=k
        )
        value_axis(fig, "x", across, scales[across], abreast=len(chosen), row=1, col=k)
        value_axis(fig, "y", up if k == 1 else "", scales[up], row=1, col=k)
    return match_across(fig, scales[across])  # where the star lies is compared


def _map(rows: pd.DataFrame, x: pd.Series, y: pd.Series, names: tuple[str, str]) -> go.Heatmap:
    """Draw a cell a pair of values, as a matrix: of columns plotly takes small values for one beside far larger."""
    told = rows.to_dict("records")
    words = [f"predicted score {theme.number(row['score'])}{config_lines(row, names)}" for row in told]
    cells = pd.DataFrame({"x": x, "y": y, "score": rows["score"], "hover": words})
    scores, hover = (cells.pivot_table(what, "y", "x", aggfunc="first") for what in ("score", "hover"))
    look = {"colorscale": theme.scale(), "showscale": False, "hovertemplate": "%{hovertext}<extra></extra>"}
    return go.Heatmap(x=scores.columns, y=scores.index, z=scores, hovertext=hover, **look)
