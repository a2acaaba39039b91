"""How many trials reach each phase, against what the eviction rate promises."""

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from workbench.core.ledger import standing_in
from workbench.viz.figures import theme

_PARTS = {
    "continued": ("went on", theme.BLUE),
    "waiting": ("waiting", theme.PURPLE),
    "finished": ("finished", theme.GREEN),
    "stopped": ("stopped", theme.VERMILLION),
    "failed": ("failed", theme.GREY),
    "running": ("running", theme.SKY),
}
_HATCHED = {"shape": "/", "solidity": 0.25, "fgcolor": "white", "fillmode": "overlay"}


def phase_survival(
    survival: pd.DataFrame,
    expected: Sequence[float] | None = None,
    minimum: Sequence[float] | None = None,
    *,
    state: str = "running",
) -> go.Figure:
    """Draw the trials that began each phase, by what became of them there.

    Parameters
    ----------
    survival : DataFrame
        From `workbench.analysis.survival`: phase, mode; trials continued, waiting, finished, stopped, failed, running.
    expected : sequence of float, optional
        Trials expected to begin each phase, if the scheduler knows; HyperTrick's by Eq. 1 of arXiv 1902.02725.
    minimum : sequence of float, optional
        Fewest that can begin each phase, however they score; HyperTrick's are all in the first, then those let through
        the one before unconditionally (Eq. 2).
    state : str
        Of the study, as in `workbench.knowledge.Frames`: where it no longer runs, trials under way are cut off.
    """
    fig = theme.figure("Trials that began each phase")
    fig.update_layout(barmode="stack", bargap=0.25)
    fig.update_xaxes(title="phase", showgrid=False)
    fig.update_yaxes(title="trials", rangemode="tozero")
    if survival.empty:
        return theme.empty_note(fig, "no phase has begun yet")
    named = survival[survival["phase"] % theme.every_so_many(len(survival)) == 0]
    fig.update_xaxes(tickvals=named["phase"], ticktext=_ticks(named))
    for column, (words, color) in _PARTS.items():
        if survival[column].sum() > 0:
            name = standing_in(state, words, in_phase=True)
            hover = f"phase %{{x}}: %{{y}} {name}<extra></extra>"
            marker = {"color": color, "line": {"width": 0}, "pattern": _HATCHED if column == "running" else {}}
            fig.add_bar(x=survival["phase"], y=survival[column], name=name, marker=marker, hovertemplate=hover)
    _curve(fig, survival["phase"], expected, "expected", "solid", "circle")
    _curve(fig, survival["phase"], minimum, "fewest", "dot", "diamond")
    return fig


def _ticks(survival: pd.DataFrame) -> list[str]:
    """Write each phase's mode under its number, where there is room."""
    if len(survival) > 12:
        return [str(phase) for phase in survival["phase"]]
    return [
        f"{phase}<br><i>{theme.text('last' if mode == 'finished' else mode)}</i>"
        if isinstance(mode, str)
        else str(phase)
        for phase, mode in zip(survival["phase"], survival["mode"], strict=True)
    ]


def _curve(
    fig: go.Figure, phases: pd.Series, heights: Sequence[float] | None, name: str, dash: str, symbol: str
) -> None:
    if heights is None:
        return
    shown = list(heights)[: len(phases)]
    fig.add_trace(
        go.Scatter(
            x=phases[: len(shown)],
            y=shown,
            name=name,
            mode="lines+markers",
            line={"color": theme.ORANGE, "dash": dash, "width": 2},
            marker={"symbol": symbol, "size": 7, "color": theme.ORANGE, "line": {"width": 1, "color": "white"}},
            hovertemplate=f"phase %{{x}}: {name} %{{y:.1f}}<extra></extra>",
        )
    )
