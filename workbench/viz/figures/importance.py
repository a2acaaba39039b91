"""How much each hyperparameter explains of the scores, or why that cannot be said (Fig. 8 of arXiv 1902.02725)."""

import pandas as pd
import plotly.graph_objects as go

from workbench.viz.figures import theme

_BARS = [
    ("importance", "low", "high", "share of the forest's variance reduction", theme.BLUE),
    ("permutation", "permutation_low", "permutation_high", "fall of R² on unseen trials when shuffled", theme.ORANGE),
]


def hyperparameter_importance(table: pd.DataFrame, remark: str) -> go.Figure:
    """Draw a pair of bars a hyperparameter, with their 95 % intervals.

    Parameters
    ----------
    table : DataFrame
        `workbench.analysis.Importance.table`: hyperparameter, importance, low, high, permutation, permutation_low,
        permutation_high, the most important first. Empty: the words are shown instead.
    remark : str
        How good the forest is, or why there is none.
    """
    fig = theme.figure("Which hyperparameters the scores follow", max(240, 150 + 60 * len(table)))
    if table.empty:
        return theme.empty_note(fig, remark, axes=False)
    fig.update_layout(barmode="group", bargap=0.3)
    fig.update_xaxes(title=theme.text(remark), title_font={"size": 11})
    fig.update_yaxes(autorange="reversed", showgrid=False, type="category")  # names may be numbers
    names = [theme.text(name) for name in table["hyperparameter"]]
    for column, low, high, words, color in _BARS:
        fig.add_trace(
            go.Bar(
                x=table[column],
                y=names,
                orientation="h",
                name=words,
                marker={"color": color},
                error_x=theme.error_bars(table[column], table[low], table[high], color=theme.INK, thickness=1.2),
                customdata=table[[low, high]],
                hovertemplate=f"%{{y}}: %{{x:.3f}} ({words})<br>95 %: %{{customdata[0]:.3f}} to %{{customdata[1]:.3f}}"
                "<extra></extra>",
            )
        )
    return fig
