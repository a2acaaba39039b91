"""Scores against time or frames: every trial's learning curve, and the best of them so far."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.core.describe import why
from workbench.core.protocols import Explain
from workbench.core.showing import reason_text
from workbench.viz.figures import theme
from workbench.viz.figures.scales import scale_of, shares, ticks
from workbench.viz.figures.thinned import MOST_POINTS, halved, some_of, thin_groups

_BINS = 12  # colours along a hyperparameter: few traces, since each costs the browser time


def learning_curves(
    curves: pd.DataFrame,
    trials: pd.DataFrame,
    *,
    hyperparameters: Sequence[str] = (),
    decisions: pd.DataFrame | None = None,
    explain: Explain = reason_text,
    color: str = "state",
    x_title: str | None = None,
) -> go.Figure:
    """Draw the learning curve of every trial.

    Parameters
    ----------
    curves : DataFrame
        From `workbench.analysis.learning_curves`: trial, phase, x, score, phase_end.
    trials : DataFrame
        As in `workbench.knowledge.Frames`.
    hyperparameters : sequence of str
        Columns of `trials` to tell when a phase's end is pointed at.
    decisions : DataFrame, optional
        As in `workbench.knowledge.Frames`: tells why each trial went on or was stopped.
    explain : callable, optional
        Puts their reasons into their scheduler's words: see `workbench.core.describe.explain_of`.
    color : str
        "state", or the name of a hyperparameter.
    x_title : str, optional
        Title of the horizontal axis, with its unit; without, x is training time in seconds, and drawn in a unit that
        fits its length.

    Returns
    -------
    Figure
        One joined line a state or colour (a hundred traces would stall a browser), and one trace of phase ends, of more
        than `thinned.MOST_POINTS` of some.
    """
    if x_title is None:
        unit = theme.clock(float(curves["x"].max()) if len(curves) else 0.0)
        curves, x_title = curves.assign(x=curves["x"] / unit.seconds), f"training time [{unit.unit}]"
    fig = theme.figure("Learning curves", x=theme.text(x_title), y="score").update_xaxes(rangemode="tozero")
    if curves.empty:
        return theme.empty_note(fig, "no score has been reported yet")
    groups = _state_groups(trials) if color == "state" else _value_groups(trials, color)
    for name, (shade, members) in groups.items():
        lines = joined_lines(curves[curves["trial"].isin(members)])
        if len(lines):
            fig.add_trace(_lines(lines, name, shade, in_legend=color == "state"))
    shade_of = {trial: shade for shade, members in groups.values() for trial in members}
    ends = phase_ends(curves, trials, hyperparameters, decisions, explain)
    of = int(curves["phase_end"].sum())
    fig.update_layout(title_text=some_of("Learning curves", len(ends), of, "phase ends"))
    fig.add_traces([_ends(ends, shade_of), theme.legend_marker("end of a phase", "circle")])
    theme.explain_crosses(fig, ends["last"])
    if color != "state":
        fig.add_trace(_colorbar(trials[color], color))
    return fig


def best_so_far(best: pd.DataFrame, until_s: float | None = None) -> go.Figure:
    """Draw the best score reported so far against the study's clock.

    Parameters
    ----------
    best : DataFrame
        From `workbench.analysis.best_so_far`: at_s (s), best_score, trial, phase.
    until_s : float, optional
        The study's clock, seconds: how far the last level reaches.
    """
    fig = theme.figure("Best score so far", height=300, y="best score")
    longest = max([float(t) for t in (until_s, best["at_s"].max()) if t is not None and not pd.isna(t)], default=0.0)
    unit = theme.time_axis(fig, longest)
    fig.update_layout(margin={"t": 48})
    if best.empty:
        return theme.empty_note(fig, "no phase has ended yet")
    x = [*(best["at_s"] / unit.seconds), longest / unit.seconds]
    y = [*best["best_score"], best["best_score"].iloc[-1]]
    line = {"shape": "hv", "width": 2, "color": theme.BLUE}
    fig.add_trace(go.Scatter(x=x, y=y, mode="lines", line=line, showlegend=False, hoverinfo="skip"))
    hover = [f"trial {trial}, phase {phase}" for trial, phase in zip(best["trial"], best["phase"], strict=True)]
    fig.add_trace(
        go.Scatter(
            x=x[:-1],
            y=y[:-1],
            mode="markers",
            marker={"size": 7, "color": theme.BLUE},
            hovertext=hover,
            hovertemplate=f"%{{y:{theme.SCORE}}} at %{{x:.4g}} {unit.unit}<br>%{{hovertext}}<extra></extra>",
            customdata=best["trial"],
            showlegend=False,
        )
    )
    return fig


def joined_lines(curves: pd.DataFrame) -> pd.DataFrame:
    """Join curves into one line: trial, x, score, with a row of NaN after each trial's last point."""
    if curves.empty:
        return curves[["trial", "x", "score"]]
    breaks = pd.DataFrame({"trial": curves["trial"].unique()}).assign(x=np.nan, score=np.nan)
    return pd.concat([curves[["trial", "x", "score"]], breaks]).sort_values("trial", kind="stable", ignore_index=True)


def phase_ends(
    curves: pd.DataFrame,
    trials: pd.DataFrame,
    hyperparameters: Sequence[str],
    decisions: pd.DataFrame | None,
    explain: Explain = reason_text,
) -> pd.DataFrame:
    """Give the phase ends to point at: of more than `thinned.MOST_POINTS` the best, the worst and others of each phase.

    Returns
    -------
    DataFrame
        trial, phase, x, score, last (whether the trial stopped there), hover (HTML, escaped).
    """
    ends = curves.loc[curves["phase_end"], ["trial", "phase", "x", "score"]]
    state = dict(zip(trials["trial"], trials["state"], strict=True))
    drawn = thin_groups(ends["phase"], ends["trial"], ends["score"], MOST_POINTS)
    ends = ends.assign(last=cut_short(ends, ends["trial"].map(state)))[drawn]
    shown = trials[trials["trial"].isin(ends["trial"])]
    config = {row["trial"]: config_lines(row, hyperparameters) for row in shown.to_dict("records")}
    told = {} if decisions is None else _told(decisions.merge(ends[["trial", "phase"]]), explain)
    hover = [
        f"trial {trial} ({theme.text(state.get(trial, ''))}), phase {phase}<br>score {theme.number(score)}"
        + config.get(trial, "")
        + told.get((trial, phase), "")
        for trial, phase, score in zip(ends["trial"], ends["phase"], ends["score"], strict=True)
    ]
    return ends.assign(hover=hover)


def cut_short(points: pd.DataFrame, state: pd.Series) -> "pd.Series[bool]":
    """Tell which scores are the last of a trial that was stopped or failed: those are crosses."""
    last = points.groupby("trial")["phase"].transform("max") == points["phase"]
    return last & state.isin(["stopped", "failed"])


def config_lines(row: Mapping[Any, Any], hyperparameters: Sequence[str]) -> str:
    """Write a configuration as lines of a hover text (HTML, escaped); what does not apply has none."""
    known = [name for name in hyperparameters if row[name] is not None and row[name] == row[name]]
    return "".join(f"<br>{theme.text(name)} = {theme.setting(row[name])}" for name in known)


def _told(decisions: pd.DataFrame, explain: Explain) -> dict[tuple[int, int], str]:
    """Write verdicts with their reasons as a line of a hover text (HTML, escaped), by trial and phase."""
    rows = zip(*(decisions[name] for name in ("trial", "phase", "verdict", "mode", "reason")), strict=True)
    return {
        (trial, phase): "<br>" + theme.text(f"{verdict}: {why({'mode': mode, **reason}, explain)}")
        for trial, phase, verdict, mode, reason in rows
    }


def _state_groups(trials: pd.DataFrame) -> dict[str, tuple[str, list[int]]]:
    """Name → (colour, trials), the states in the order of the palette; a state unknown to it comes in grey."""
    states = [*theme.STATE_COLORS, *sorted(set(trials["state"].astype(str)) - set(theme.STATE_COLORS))]
    return {
        state: (theme.STATE_COLORS.get(state, theme.GREY), trials.loc[trials["state"] == state, "trial"].tolist())
        for state in states
    }


def _value_groups(trials: pd.DataFrame, name: str) -> dict[str, tuple[str, list[int]]]:
    colors = theme.value_colors(_BINS)
    share = shares(trials[name], scale_of(trials[name]))
    bins = (share * (_BINS - 1)).round()
    groups = {str(k): (colors[k], trials.loc[bins == k, "trial"].tolist()) for k in range(_BINS)}
    return {"does not apply": (theme.GREY, trials.loc[bins.isna(), "trial"].tolist()), **groups}


def _lines(lines: pd.DataFrame, name: str, shade: str, *, in_legend: bool) -> go.Scatter:
    return go.Scatter(
        x=halved(lines["x"]),
        y=halved(lines["score"]),
        name=theme.text(name),
        mode="lines",
        line={"color": shade, "width": 1.3},
        opacity=0.8,
        hoverinfo="skip",
        showlegend=in_legend,
    )


def _ends(ends: pd.DataFrame, shade_of: dict[int, str]) -> go.Scatter:
    marker = {
        "size": [8 if last else 6 for last in ends["last"]],
        "symbol": theme.symbols(ends["last"]),
        "color": [shade_of.get(trial, theme.GREY) for trial in ends["trial"]],
        "line": {"width": 0.5, "color": "white"},
    }
    return theme.trial_points(ends, ends["x"], ends["score"], marker, name="end of a phase", showlegend=False)


def _colorbar(values: pd.Series, name: str) -> go.Scatter:
    places, labels = ticks(values, scale_of(values))
    return theme.colorbar_trace(name, places, labels, 1, theme.scale())
