"""Several studies on the same axes: which found a good trial sooner, and what made the difference."""

from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.core.showing import four_digits
from workbench.viz.figures import theme
from workbench.viz.figures.curves import joined_lines
from workbench.viz.figures.occupancy import node_occupancy


def compare_best(best: Mapping[str, pd.DataFrame], until_s: Mapping[str, float]) -> go.Figure:
    """Draw every study's best score so far against its own clock.

    Parameters
    ----------
    best : Mapping of str to DataFrame
        By study: from `workbench.analysis.best_so_far` (at_s, best_score, trial, phase).
    until_s : Mapping of str to float
        By study: its clock now, s.
    """
    fig = theme.figure("Best score so far, study by study", y="best score")
    unit = theme.time_axis(fig, max(until_s.values(), default=0.0))
    if all(frame.empty for frame in best.values()):
        return theme.empty_note(fig, "no phase has ended yet")
    for k, (name, frame) in enumerate(best.items()):
        if frame.empty:
            continue
        last = frame.iloc[-1]
        fig.add_trace(
            go.Scatter(
                x=[*(frame["at_s"] / unit.seconds), until_s[name] / unit.seconds],
                y=[*frame["best_score"], last["best_score"]],
                name=theme.text(name),
                mode="lines",
                line={"shape": "hv", "width": 2, **_line(k)},
                customdata=[*frame["trial"], last["trial"]],
                hovertemplate=f"{theme.text(name)}: %{{y:{theme.SCORE}}} at %{{x:.3g}} {unit.unit} "
                "(trial %{customdata})<extra></extra>",
            )
        )
    return fig


def best_and_nodes(
    best: Mapping[str, pd.DataFrame],
    spans: Mapping[str, pd.DataFrame],
    slots: Mapping[str, pd.DataFrame],
    until_s: Mapping[str, float],
) -> go.Figure:
    """Draw every study's best score so far and, below it on the same clock, its nodes (Fig. 6 of 1902.02725).

    Parameters
    ----------
    best, until_s : Mapping
        As of `compare_best`.
    spans, slots : Mapping of str to DataFrame
        By study: as in `workbench.knowledge.Frames`.
    """
    longest = max(until_s.values(), default=0.0)
    parts = [compare_best(best, until_s)]
    n_phases = int(max((frame["phase"].max() for frame in spans.values() if len(frame)), default=-1)) + 1
    for name, rows in slots.items():  # a study that is over earlier ends there
        ran, there = spans[name].fillna({"ended_s": until_s[name]}), rows.fillna({"lost_s": until_s[name]})
        parts.append(node_occupancy(ran, there, longest, named=True, n_phases=n_phases))
    heights = [260, *(40 + 22 * max(2, len(set(rows["slot"]))) for rows in slots.values())]
    titles = ["best score so far", *(theme.text(f"nodes, {name}") for name in slots)]
    fig = theme.figure("Best score and nodes on one clock", sum(heights) + 210)
    apart = 50 / sum(heights)
    make_subplots(
        len(parts), 1, shared_xaxes=True, row_heights=heights, vertical_spacing=apart, subplot_titles=titles, figure=fig
    )
    fig.update_layout(barmode="overlay", bargap=0, legend={"y": 1.06}, margin_t=120)
    explained: set[str] = set()
    for row, part in enumerate(parts, 1):
        for trace in part.data:
            if row > 1 and trace.name in explained:
                trace.showlegend = False
            elif trace.showlegend is not False:
                explained.add(trace.name)
            fig.add_trace(trace, row=row, col=1)
        look = part.layout.yaxis.to_plotly_json()
        fig.update_yaxes({key: look[key] for key in look if key not in ("anchor", "domain")}, row=row, col=1)
    unit = theme.clock(longest)
    fig.update_xaxes(range=[0, longest / unit.seconds or 1])
    return fig.update_xaxes(title=f"time since the study began [{unit.unit}]", row=len(parts), col=1)


def compare_survival(survival: Mapping[str, pd.DataFrame]) -> go.Figure:
    """Draw the share of every study's trials that began each phase.

    Parameters
    ----------
    survival : Mapping of str to DataFrame
        By study: from `workbench.analysis.survival` (phase, began).
    """
    fig = theme.figure("Share of the trials that began each phase", x="phase")
    n_phases = max(map(len, survival.values()), default=0)
    fig.update_xaxes(dtick=theme.every_so_many(n_phases), range=[-0.5, n_phases - 0.5] if n_phases else None)
    fig.update_yaxes(title="share of trials", rangemode="tozero", tickformat=".0%")
    for k, (name, frame) in enumerate(survival.items()):
        if frame.empty or not frame["began"].iloc[0]:
            continue
        fig.add_trace(
            go.Scatter(
                x=frame["phase"],
                y=frame["began"] / frame["began"].iloc[0],
                name=theme.text(name),
                mode="lines+markers",
                line=_line(k),
                customdata=frame["began"],
                hovertemplate=f"{theme.text(name)}, phase %{{x}}: %{{customdata}} trials (%{{y:.0%}})<extra></extra>",
            )
        )
    return fig if fig.data else theme.empty_note(fig, "no phase has begun yet")


def compare_curves(curves: Mapping[str, pd.DataFrame]) -> go.Figure:
    """Draw the learning curves of all trials of every study, one colour a study.

    Parameters
    ----------
    curves : Mapping of str to DataFrame
        By study: from `workbench.analysis.learning_curves`, with x in seconds of training.
    """
    fig = theme.figure("Learning curves, study by study")
    longest = max((float(frame["x"].max()) for frame in curves.values() if len(frame)), default=0.0)
    unit = theme.time_axis(fig, longest, "training time")
    fig.update_yaxes(title="score")
    for k, (name, frame) in enumerate(curves.items()):
        if frame.empty:
            continue
        lines = joined_lines(frame)
        fig.add_trace(
            go.Scatter(
                x=lines["x"] / unit.seconds,
                y=lines["score"],
                name=theme.text(name),
                mode="lines",
                line={"width": 1.3, **_line(k)},
                opacity=0.7,
                customdata=lines["trial"],
                hovertemplate=f"{theme.text(name)}, trial %{{customdata}}: %{{y:{theme.SCORE}}}<extra></extra>",
            )
        )
    return fig if fig.data else theme.empty_note(fig, "no score has been reported yet")


def compare_importance(tables: Mapping[str, pd.DataFrame], remarks: Mapping[str, str]) -> go.Figure:
    """Draw how much each hyperparameter explains of every study's scores, with 95 % intervals.

    Parameters
    ----------
    tables : Mapping of str to DataFrame
        By study: `workbench.analysis.Importance.table`; empty where nothing can be said.
    remarks : Mapping of str to str
        By study: how good the forest is, or why there is none.
    """
    known = {name: table for name, table in tables.items() if len(table)}
    fig = theme.figure("Which hyperparameters the scores follow, study by study", 220 + 70 * len(known))
    if not known:
        words = [f"{name}: {why}" for name, why in remarks.items()]
        fig.update_layout(height=220 + 36 * len(words))
        return theme.empty_note(fig, "; ".join(words) or "no study to compare", axes=False)
    fig.update_layout(barmode="group", bargap=0.3)
    fig.update_yaxes(autorange="reversed", showgrid=False, type="category")  # names may be numbers or dates
    silent = [f"{theme.text(name)}: {theme.text(remarks[name])}" for name in tables if name not in known]
    notes = "<br>".join(["share of the forest's variance reduction", *silent])
    fig.update_xaxes(title=notes, title_font={"size": 11})
    for k, (name, table) in enumerate(tables.items()):  # of all: a study has one colour in every figure
        if name not in known:
            continue
        value = table["importance"]
        fig.add_trace(
            go.Bar(
                x=value,
                y=[theme.text(word) for word in table["hyperparameter"]],
                orientation="h",
                name=theme.text(name),
                marker={"color": _line(k)["color"]},
                error_x=theme.error_bars(value, table["low"], table["high"], color=theme.INK, thickness=1.2),
                hovertemplate=f"{theme.text(name)}, %{{y}}: %{{x:.3f}}<br>{theme.text(remarks[name])}<extra></extra>",
            )
        )
    return fig


def compare_time_to_best(best: Mapping[str, pd.DataFrame], until_s: Mapping[str, float]) -> go.Figure:
    """Draw when each study found its best score, within the time it took in all.

    Parameters
    ----------
    best, until_s : Mapping
        As of `compare_best`.
    """
    known = {name: frame.iloc[-1] for name, frame in best.items() if len(frame)}
    fig = theme.figure("Time to the best score", 170 + 40 * len(known))
    unit = theme.time_axis(fig, max(until_s.values(), default=0.0))
    if not known:
        fig.update_yaxes(visible=False)
        return theme.empty_note(fig, "no phase has ended yet")
    names = [theme.text(name) for name in known]
    fig.update_layout(barmode="overlay", bargap=0.4)
    fig.update_yaxes(autorange="reversed", showgrid=False, type="category")  # names may be numbers or dates
    whole = [until_s[name] / unit.seconds for name in known]
    when = [row["at_s"] / unit.seconds for row in known.values()]
    hover = f"%{{y}}: %{{x:.3g}} {unit.unit} in all<extra></extra>"
    ground = {"name": "whole study", "marker": {"color": theme.FAINT}, "hovertemplate": hover}
    fig.add_trace(go.Bar(x=whole, y=names, orientation="h", **ground))
    fig.add_trace(
        go.Bar(
            x=when,
            y=names,
            orientation="h",
            name="until its best score",
            marker={"color": theme.BLUE},
            text=[f"{four_digits(row['best_score'])} (trial {row['trial']:.0f})" for row in known.values()],
            textposition="auto",
            hovertemplate=f"%{{y}}: %{{text}} at %{{x:.3g}} {unit.unit}<extra></extra>",
        )
    )
    return fig


def _line(k: int) -> dict[str, str]:
    color, dash = theme.study_line(k)
    return {"color": color, "dash": ",".join(f"{px}px" for px in dash) or "solid"}
