"""Several studies on the same axes: which found a good trial sooner."""

from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go

from workbench.viz import theme

_DASHES = ("solid", "dash", "dot", "dashdot")


def compare_best(best: Mapping[str, pd.DataFrame], until_s: Mapping[str, float]) -> go.Figure:
    """Draw every study's best score so far against its own clock.

    Parameters
    ----------
    best : Mapping of str to DataFrame
        By study: from `workbench.analysis.best_so_far` (at_s, best_score, trial, phase).
    until_s : Mapping of str to float
        By study: its clock now, s.
    """
    fig = theme.figure("Best score so far, study by study")
    fig.update_yaxes(title="best score")
    unit = theme.clock(max(until_s.values(), default=0.0))
    fig.update_xaxes(title=f"time since the study began [{unit.unit}]", rangemode="tozero")
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
                line={"shape": "hv", "width": 2, "dash": _DASHES[k // 7 % len(_DASHES)]},
                customdata=[*frame["trial"], last["trial"]],
                hovertemplate=f"{theme.text(name)}: %{{y:.4g}} at %{{x:.3g}} {unit.unit} (trial %{{customdata}})"
                "<extra></extra>",
            )
        )
    return fig


def compare_survival(survival: Mapping[str, pd.DataFrame]) -> go.Figure:
    """Draw the share of every study's trials that began each phase.

    Parameters
    ----------
    survival : Mapping of str to DataFrame
        By study: from `workbench.analysis.survival` (phase, began).
    """
    fig = theme.figure("Share of the trials that began each phase")
    fig.update_xaxes(title="phase", dtick=1)
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
                line={"dash": _DASHES[k // 7 % len(_DASHES)]},
                customdata=frame["began"],
                hovertemplate=f"{theme.text(name)}, phase %{{x}}: %{{customdata}} trials (%{{y:.0%}})<extra></extra>",
            )
        )
    return fig if fig.data else theme.empty_note(fig, "no phase has begun yet")
