"""The two pictures of PBT's Fig. 2 (arXiv 1711.09846): where the members go, and what it is worth."""

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.viz.figures import theme

_INKS = theme.GROUP_COLORS[:6]
_GOAL = 1.2  # the highest Q there is
_BIG, _SMALL = 9.0, 3.0  # a dot's size decreases with iteration, as in the paper


def toy_problem(paths: pd.DataFrame) -> go.Figure:
    """Draw a column a variant: the members' ways through the θ plane above, Q against the step below.

    Parameters
    ----------
    paths : DataFrame
        One row a step: variant, member, step, theta0, theta1, q, as `workbench.paper.pbt.ablations.paths` gives it.
        Variants come in the order in which they stand there.
    """
    variants = list(dict.fromkeys(paths["variant"]))
    if not variants:
        return theme.empty_note(theme.figure("PBT on its toy problem"), "nothing has been run yet")
    fig = theme.figure("PBT on its toy problem, and its ablations", 560).update_layout(margin={"t": 96})
    make_subplots(2, len(variants), shared_yaxes=True, horizontal_spacing=0.03, vertical_spacing=0.16, figure=fig)
    for column, variant in enumerate(variants, 1):
        of_variant = paths[paths["variant"] == variant]
        for member, path in of_variant.groupby("member"):
            _draw(fig, path.sort_values("step"), int(str(member)), column)
        axis = "" if column == 1 else str(column)
        head = {"text": f"<b>{theme.text(variant)}</b>", "showarrow": False, "font": {"size": 13}}
        fig.add_annotation(head | {"x": 0.5, "xref": f"x{axis} domain", "y": 1.03, "yref": f"y{axis} domain"})
        fig.add_hline(_GOAL, line={"color": theme.INK, "dash": "dot", "width": 1}, row=2, col=column)
        fig.update_xaxes(title="θ<sub>0</sub>", range=[-0.05, 1.0], row=1, col=column)
        fig.update_xaxes(title="step", row=2, col=column)
    fig.update_yaxes(title="θ<sub>1</sub>", range=[-0.05, 1.0], row=1, col=1)
    fig.update_yaxes(range=[min(float(paths["q"].min()), 0.0) - 0.1, _GOAL + 0.15], row=2)
    fig.update_yaxes(title="Q", row=2, col=1)
    fig.update_layout(legend={"y": 1.1})
    return fig


def _draw(fig: go.Figure, path: pd.DataFrame, member: int, column: int) -> None:
    ink = _INKS[member % len(_INKS)]
    done = path["step"] / path["step"].max()
    place = {"name": f"member {member}", "legendgroup": f"member {member}"}
    dots = go.Scatter(
        x=path["theta0"],
        y=path["theta1"],
        mode="markers",
        marker={"color": ink, "size": _BIG - (_BIG - _SMALL) * done, "opacity": 0.6, "line": {"width": 0}},
        customdata=path[["step", "q"]],
        hovertemplate="step %{customdata[0]}: θ = (%{x:.3f}, %{y:.3f}), Q = %{customdata[1]:.3f}<extra></extra>",
        showlegend=False,
        **place,
    )
    line = go.Scatter(
        x=path["step"],
        y=path["q"],
        mode="lines",
        line={"color": ink, "width": 2},
        hovertemplate="step %{x}: Q = %{y:.3f}<extra></extra>",
        showlegend=column == 1,
        **place,
    )
    fig.add_trace(dots, row=1, col=column)
    fig.add_trace(line, row=2, col=column)
