"""What each slot did when: the Gantt chart of a study, and its occupancy over time."""

from typing import Any

import pandas as pd
import plotly.graph_objects as go

from workbench.viz.figures import theme
from workbench.viz.figures.thinned import halved

_TOLD = 3000  # bars that tell when and where they ran, as axes do: of more each tells its trial alone
_HATCH = {"held": "/", "lost": "x", "stopped": "x"}


def node_occupancy(
    spans: pd.DataFrame,
    slots: pd.DataFrame,
    until_s: float,
    *,
    occupancy: float | None = None,
    named: bool = False,
    n_phases: int | None = None,
) -> go.Figure:
    """Draw a row a slot, the slots of a node together, with a bar a phase run there (as Figs. 2 and 3 of 1902.02725).

    Parameters
    ----------
    spans, slots : DataFrame
        As in `workbench.knowledge.Frames`. Bars that have not ended reach to `until_s`.
    until_s : float
        The study's clock, seconds.
    occupancy : float, optional
        Share of slot-seconds used, 0 to 1, for the title (`workbench.analysis.occupancy`).
    named : bool
        Write every trial's number into its bars, as Figs. 2 and 3 do: for small studies.
    n_phases : int, optional
        So many greys, by default as many as ran: one for each phase of all studies that stand beside each other.

    Returns
    -------
    Figure
        One trace a phase, of many phases one in all; of thousands of bars each tells its trial alone. Held time,
        lost attempts and what a person stopped are hatched; grey is idle, blank is a slot that was not there.
    """
    rows = slot_rows(slots, spans)
    share = "" if occupancy is None or pd.isna(occupancy) else f": {occupancy:.1%} occupied"
    fig = theme.figure(f"Slots over time{share}", height=140 + (26 if len(rows) < 40 else 14) * max(2, len(rows)))
    unit = theme.clock(until_s)
    fig.update_xaxes(title=f"time since the study began [{unit.unit}]", range=[0, until_s / unit.seconds or 1])
    fig.update_yaxes(title="node" if (rows["slots"] == 1).all() else "node · slot", autorange="reversed")
    fig.update_yaxes(showgrid=False, tickvals=rows["y"], ticktext=rows["label"])
    fig.update_layout(barmode="overlay", bargap=0)
    if rows.empty:
        return theme.empty_note(fig, "no slot has joined yet")
    fig.add_trace(_lives(slots, rows, until_s, unit))
    bars = span_bars(spans, rows, until_s)
    if len(bars) > _TOLD:
        bars["hover"] = None
    colors = theme.phase_greys(n_phases or (int(bars["phase"].max()) + 1 if len(bars) else 0))
    if len(colors) > theme.LEGEND_PHASES:  # a trace a phase would take minutes for a thousand, and no legend names them
        fig.add_trace(_bars(bars, [colors[phase] for phase in bars["phase"]], unit))
    else:
        for key, group in bars.groupby("phase"):
            phase = int(str(key))
            fig.add_trace(_bars(group, colors[phase], unit, name=f"phase {phase}", legendgroup=phase))
    if named:
        fig.update_traces(texttemplate="%{customdata}", textposition="inside", insidetextanchor="middle", textangle=0)
    _explain(fig, colors, set(bars["outcome"]))
    return fig


def occupancy_over_time(occupancy: pd.DataFrame) -> go.Figure:
    """Draw how many slots ran a phase, lost an attempt, were held or idle, stacked, over time.

    Parameters
    ----------
    occupancy : DataFrame
        From `workbench.analysis.occupancy_over_time`: from_s, to_s (s); ran, lost, held, idle (slots).
    """
    fig = theme.figure("Slots in use", height=260, y="slots").update_yaxes(rangemode="tozero")
    unit = theme.time_axis(fig, float(occupancy["to_s"].max()) if len(occupancy) else 0.0)
    fig.update_xaxes(unifiedhovertitle={"text": f"%{{x:.3g}} {unit.unit}"})
    if occupancy.empty:
        return theme.empty_note(fig, "no slot has joined yet")
    x = [*(occupancy["from_s"] / unit.seconds), float(occupancy["to_s"].iloc[-1]) / unit.seconds]
    kinds = {"ran": theme.BLUE, "lost": theme.VERMILLION, "held": theme.PURPLE, "idle": theme.GREY}
    for kind, color in kinds.items():
        if occupancy[kind].max() > 1e-9:
            line = {"width": 0, "color": color, "shape": "hv"}
            hover = f"%{{y:.2f}} slots {kind}<extra></extra>"
            fig.add_trace(
                go.Scatter(
                    x=x,
                    y=[*occupancy[kind], occupancy[kind].iloc[-1]],
                    name=kind,
                    stackgroup="all",
                    line=line,
                    hovertemplate=hover,
                )
            )
    return fig.update_layout(hovermode="x unified")


def slot_rows(slots: pd.DataFrame, spans: pd.DataFrame) -> pd.DataFrame:
    """Lay the slots out, one below another, with a little space between nodes.

    Returns
    -------
    DataFrame
        One row a slot of a node: node, slot, slots (how many that node has), y (position), label. Slots that no event
        announced, but that ran something, come too.
    """
    known = pd.concat([slots[["node", "slot"]], spans[["node", "slot"]]]).dropna().drop_duplicates()
    known = known.assign(first=known.groupby("node")["slot"].transform("min")).sort_values(["first", "node", "slot"])
    known["slots"] = known.groupby("node")["slot"].transform("size")
    y, above, positions = 0.0, None, []
    for node, on_node in zip(known["node"], known["slots"], strict=True):
        y += 0.0 if above is None else 1.0 if node == above or on_node == 1 else 1.5
        positions.append(y)
        above = node
    rows = known.assign(y=positions, label=[_label(*row) for row in known[["node", "slot", "slots"]].to_numpy()])
    return rows[["node", "slot", "slots", "y", "label"]].reset_index(drop=True)


def span_bars(spans: pd.DataFrame, rows: pd.DataFrame, until_s: float) -> pd.DataFrame:
    """Give each span its row: the spans' columns, y, wall_s (seconds up to now) and hover (HTML, escaped)."""
    bars = spans.merge(rows, on=["node", "slot"]).astype({"started_s": float, "ended_s": float})
    over = bars["ended_s"].fillna(until_s)
    bars["wall_s"] = (over - bars["started_s"]).clip(lower=0.0)
    bars["hover"] = [
        f"trial {trial} · phase {phase}<br>{theme.text(node)} · slot {slot}<br>{begun:.1f}–{end:.1f} s"
        f" ({end - begun:.1f} s)<br>{theme.text(outcome)}"
        for trial, phase, node, slot, begun, end, outcome in zip(
            *(bars[c] for c in ("trial", "phase", "node", "slot", "started_s")), over, bars["outcome"], strict=True
        )
    ]
    return bars


def _explain(fig: go.Figure, colors: list[str], outcomes: set[str]) -> None:
    if len(colors) > theme.LEGEND_PHASES:
        fig.add_trace(theme.phase_colorbar(colors))
    else:
        for phase, color in enumerate(colors):
            fig.add_trace(theme.legend_bar(f"phase {phase}", {"color": color}, legendgroup=phase, legendrank=phase))
    for outcome in sorted(_HATCH.keys() & outcomes):
        marker = {"color": theme.GREY, "pattern": _pattern(_HATCH[outcome])}
        fig.add_trace(theme.legend_bar(outcome, marker, legendrank=2000))


def _label(node: object, slot: object, on_node: int) -> str:
    name = str(node) if len(str(node)) <= 28 else f"…{str(node)[-27:]}"
    return theme.text(name if on_node == 1 else f"{name} · {slot}")


def _lives(slots: pd.DataFrame, rows: pd.DataFrame, until_s: float, unit: theme.Clock) -> go.Bar:
    """The ground the phases stand on: grey while a slot was there, so what stays grey is idle."""
    alive = slots.merge(rows, on=["node", "slot"]).astype({"joined_s": float, "lost_s": float})
    length = alive["lost_s"].fillna(until_s) - alive["joined_s"]
    return go.Bar(
        x=length / unit.seconds,
        base=alive["joined_s"] / unit.seconds,
        y=alive["y"],
        width=0.8,
        orientation="h",
        name="idle",
        marker={"color": theme.LAND, "line": {"width": 0}},
        hoverinfo="skip",
        legendrank=3000,
    )


def _bars(bars: pd.DataFrame, color: str | list[str], unit: theme.Clock, **legend: Any) -> go.Bar:
    told = bars["hover"].notna().all()
    marker = {
        "color": color,
        "line": {"width": 0.6, "color": "rgba(255,255,255,0.75)"},
        "pattern": _pattern([_HATCH.get(outcome, "") for outcome in bars["outcome"]]),
    }
    began, took = bars["started_s"] / unit.seconds, bars["wall_s"] / unit.seconds
    return go.Bar(
        x=took if told else halved(took),
        base=began if told else halved(began),
        y=bars["y"],
        width=0.8,
        orientation="h",
        marker=marker,
        customdata=bars["trial"],
        hovertext=bars["hover"] if told else None,
        hovertemplate="%{hovertext}<extra></extra>" if told else "trial %{customdata}<extra></extra>",
        showlegend=False,
        **legend,
    )


def _pattern(shape: str | list[str]) -> dict[str, object]:
    return {"shape": shape, "fgcolor": "rgba(255,255,255,0.85)", "size": 7, "solidity": 0.35, "fillmode": "overlay"}
