"""Figures of the papers that need a form of their own: ours beside the published, estimates, sweeps, adjustment."""

from collections.abc import Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go

from workbench.viz.figures import theme

PUBLISHED = {"color": "rgba(0,0,0,0)", "line": {"color": theme.INK, "width": 1.5}, "pattern": {"shape": "/"}}
"""How a published number is drawn everywhere: hatched and hollow, never in the colour of a measurement."""


def beside(
    names: Sequence[str],
    ours: Mapping[str, Sequence[float]],
    published: Mapping[str, Sequence[float]],
    title: str,
    y_title: str,
    *,
    log: bool = False,
) -> go.Figure:
    """Draw our numbers as bars beside the published ones.

    Parameters
    ----------
    names : sequence of str
        What each group of bars is of.
    ours, published : Mapping
        Series → its values, in the order of `names`; a published series stands beside ours of the same name.
    title, y_title : str
        The title says what ours were run on.
    log : bool
        Draw values on a logarithmic axis.
    """
    fig = theme.figure(title)
    fig.update_layout(barmode="group")
    fig.update_xaxes(type="category")  # names may be numbers
    fig.update_yaxes(title=y_title, type="log" if log else "linear")
    colors = theme.SERIES_COLORS[:4]
    for n, (series, values) in enumerate(ours.items()):
        hover = f"{theme.text(series)}, ours: %{{y:{theme.SCORE}}} for %{{x}}<extra></extra>"
        marker = {"color": colors[n % len(colors)]}
        name = f"{theme.text(series)}, ours"
        fig.add_trace(go.Bar(x=list(names), y=list(values), name=name, marker=marker, hovertemplate=hover))
        if series in published:
            line = {"color": colors[n % len(colors)], "width": 1.5}
            hollow = PUBLISHED | {"line": line, "pattern": {"shape": "/", "fgcolor": line["color"]}}
            hover = f"{theme.text(series)}, published: %{{y:{theme.SCORE}}} for %{{x}}<extra></extra>"
            name = f"{theme.text(series)}, published"
            beside_it = list(published[series])
            fig.add_trace(go.Bar(x=list(names), y=beside_it, name=name, marker=hollow, hovertemplate=hover))
    return fig


def estimates(rows: pd.DataFrame, title: str, x_title: str, reference: float | None = None) -> go.Figure:
    """Draw numbers with their intervals, one under the other, in groups.

    Parameters
    ----------
    rows : DataFrame
        group, name : str
            A colour a group; a line a name, in the order in which they stand there.
        value, low, high : float
            NaN where there is no interval.
        source : {"measured", "simulated", "published"}, optional
            Without it all were measured; what was published is drawn hollow.
    title, x_title : str
    reference : float, optional
        Where a dotted line is drawn: what the numbers are to be read against.
    """
    fig = theme.figure(title, 150 + 30 * len(rows), x=x_title)
    fig.update_yaxes(autorange="reversed", type="category")
    if rows.empty:
        return theme.empty_note(fig, "nothing was measured")
    if reference is not None:
        fig.add_vline(reference, line={"color": theme.INK, "dash": "dot", "width": 1})
    sourced = rows if "source" in rows else rows.assign(source="measured")
    inks = dict(zip(sourced["group"].unique(), theme.GROUP_COLORS[:4], strict=False))
    for (group, source), part in sourced.groupby(["group", "source"], sort=False):
        ink = inks.get(group, theme.PURPLE)
        symbol = "diamond-open" if source == "published" else "circle"
        fig.add_trace(
            go.Scatter(
                x=part["value"],
                y=[f"{theme.text(row.group)}: {theme.text(row.name)}" for row in part.itertuples(index=False)],
                mode="markers",
                name=f"{theme.text(group)}, {source}",
                marker={"color": ink, "size": 10, "symbol": symbol, "line": {"width": 2}},
                error_x=theme.error_bars(part["value"], part["low"], part["high"], thickness=1.5),
                hovertemplate=f"%{{y}}: %{{x:{theme.SCORE}}}<extra></extra>",
            )
        )
    return fig


def sweep(rows: pd.DataFrame, measure: str, title: str, x_title: str, y_title: str) -> go.Figure:
    """Draw one measure of a sweep over a setting.

    Parameters
    ----------
    rows : DataFrame
        value (of the setting, as text, in order) and the column `measure`.
    measure, title, x_title, y_title : str
    """
    fig = theme.figure(title, height=320)
    fig.update_xaxes(title=x_title, type="category")
    fig.update_yaxes(title=y_title, rangemode="tozero")
    if rows.empty:
        return theme.empty_note(fig, "nothing was measured")
    line = {"color": theme.BLUE, "width": 2}
    hover = f"%{{y:{theme.SCORE}}} at %{{x}}<extra></extra>"
    values = [theme.text(value) for value in rows["value"]]
    drawn = go.Scatter(x=values, y=rows[measure], mode="lines+markers", line=line, hovertemplate=hover, name=measure)
    return fig.add_trace(drawn).update_layout(showlegend=False)  # the axis has its name


def adjustment(path: pd.DataFrame, title: str) -> go.Figure:
    """Draw automatic adjustment: how many agents, predictors and trainers, and the updates a second they gave (Fig. 2).

    Parameters
    ----------
    path : DataFrame
        n_agents, n_predictors, n_trainers, tps; one row a reading, in order.
    title : str
    """
    fig = theme.figure(title, x="reading", y="agents · 10 predictors · 10 trainers")
    right = {"title": {"text": "updates a second"}, "overlaying": "y", "side": "right", "showgrid": False}
    right["tickmode"] = "auto"  # by default plotly sets its numbers beside those at the left, round or not
    fig.update_layout(yaxis2=right)
    readings = list(range(len(path)))
    for column, times, color in (
        ("n_agents", 1, theme.BLUE),
        ("n_predictors", 10, theme.ORANGE),
        ("n_trainers", 10, theme.GREEN),
    ):
        name = column.removeprefix("n_")
        line = {"color": color, "shape": "hv", "width": 2}
        hover = f"%{{customdata}} {name}<extra></extra>"
        drawn = path[column] * times
        fig.add_trace(
            go.Scatter(x=readings, y=drawn, customdata=path[column], name=name, line=line, hovertemplate=hover)
        )
    line = {"color": theme.VERMILLION, "width": 1, "dash": "dot"}
    hover = f"%{{y:{theme.SCORE}}} updates a second<extra></extra>"
    return fig.add_trace(
        go.Scatter(x=readings, y=path["tps"], name="updates a second", yaxis="y2", line=line, hovertemplate=hover)
    )
