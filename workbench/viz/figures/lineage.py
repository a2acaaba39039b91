"""Who copied whom in a population: member by member along the clock, and as the tree of descent."""

from itertools import chain, repeat

import pandas as pd
import plotly.graph_objects as go

from workbench.viz.figures import theme

_ROW = 16  # pixels a member or a trial, where there are many


def founder_inks(founders: pd.Series) -> dict[int, str]:
    """Give the founders of most trials a colour each, and those that no colour is left for grey."""
    most = founders.value_counts(sort=False).sort_index().sort_values(ascending=False, kind="stable").index
    inks = chain(theme.GROUP_COLORS, repeat(theme.GREY))
    return {int(founder): ink for founder, ink in zip(most, inks, strict=False)}


def member_lineage(lineage: pd.DataFrame, wall_s: float) -> go.Figure:
    """Draw each member's life along the study's clock, coloured by the founder its weights descend from.

    Parameters
    ----------
    lineage : DataFrame
        From `workbench.analysis.lineage`: trial, member, parent, parent_phase, first_phase, copied, founder, started_s
        and ended_s (s; NaN while the trial lives).
    wall_s : float
        The study's clock, seconds: how far living trials reach.

    Returns
    -------
    Figure
        A line a member; where it copied another, a thin line from the donor and a mark. Of a trial that a person lets
        run on, what is beside the trial that its member goes on as is left out.
    """
    fig = theme.figure("Members and whom they copied", max(300, 140 + _ROW * lineage["member"].nunique()))
    unit = theme.time_axis(fig, wall_s)
    fig.update_yaxes(title="member", autorange="reversed", dtick=1 if lineage["member"].nunique() <= 20 else None)
    if lineage.empty:
        return theme.empty_note(fig, "no trial has begun yet")
    inks = founder_inks(lineage["founder"])
    member_of = dict(zip(lineage["trial"], lineage["member"], strict=True))
    went_on = lineage.sort_values("trial").groupby("member")["started_s"].shift(-1)
    lineage = lineage.assign(ended_s=lineage["ended_s"].fillna(wall_s).clip(upper=went_on.fillna(wall_s)))
    for founder, group in lineage.groupby(_told_apart(lineage["founder"], inks), dropna=False):
        fig.add_trace(_lives(group, _name(founder), inks[group["founder"].iloc[0]], unit))
    copies = lineage[lineage["copied"]]
    if len(copies):
        fig.add_trace(_jumps(copies, member_of, unit))
        fig.add_trace(_marks(copies, inks, unit))
        fig.add_trace(theme.legend_marker("copied weights", "circle"))
    return fig


def phylogenetic_tree(tree: pd.DataFrame) -> go.Figure:
    """Draw the descent of all weights: a line a trial, from its first phase to its last, branching off its parent's.

    Parameters
    ----------
    tree : DataFrame
        From `workbench.analysis.phylogeny`: trial, founder, y, x0, x1, from_x, from_y, survives, best.

    Returns
    -------
    Figure
        Coloured by founder; what died out is faint, the best trial's descent is thick.
    """
    fig = theme.figure("Descent of the weights", max(320, 120 + min(6 * len(tree), 700)))
    fig.update_xaxes(title="phases of the member", rangemode="tozero")
    fig.update_yaxes(visible=False)
    if tree.empty:
        return theme.empty_note(fig, "no trial has begun yet")
    inks = founder_inks(tree["founder"])
    founders = _told_apart(tree["founder"], inks)
    with_best = set(founders[tree["best"]])
    for (founder, survives, best), group in tree.groupby([founders, "survives", "best"], dropna=False):
        style = {"color": inks[group["founder"].iloc[0]], "width": 4 if best else 2 if survives else 1}
        x, y = _branches(group)
        fig.add_trace(
            go.Scatter(
                x=x,
                y=y,
                mode="lines",
                line=style,
                opacity=1.0 if survives or best else 0.45,
                name=_name(founder),
                legendgroup=_name(founder),
                showlegend=bool(best or (survives and founder not in with_best)),
                hoverinfo="skip",
            )
        )
    fig.add_trace(_tips(tree, inks))
    return fig


def _told_apart(founders: pd.Series, inks: dict[int, str]) -> pd.Series:
    """Give the founders that have a colour of their own, NA for the others: a legend of all has no room."""
    return founders.astype("Int64").where(founders.map(inks) != theme.GREY)


def _name(founder: object) -> str:
    return "from other trials" if founder is pd.NA else f"from trial {founder}"


def _lives(group: pd.DataFrame, name: str, ink: str, unit: theme.Clock) -> go.Scatter:
    """Join the lines of these trials; None ends a line."""
    x: list[float | None] = []
    y: list[float | None] = []
    for row in group.to_dict("records"):
        x += [row["started_s"] / unit.seconds, row["ended_s"] / unit.seconds, None]
        y += [row["member"], row["member"], None]
    return go.Scatter(x=x, y=y, mode="lines", line={"color": ink, "width": 4}, name=name, hoverinfo="skip")


def _jumps(copies: pd.DataFrame, member_of: dict[int, int], unit: theme.Clock) -> go.Scatter:
    x: list[float | None] = []
    y: list[float | None] = []
    for row in copies.to_dict("records"):
        at = row["started_s"] / unit.seconds
        x += [at, at, None]
        y += [member_of[int(row["parent"])], row["member"], None]
    return go.Scatter(x=x, y=y, mode="lines", line={"color": theme.INK, "width": 1}, showlegend=False, hoverinfo="skip")


def _marks(copies: pd.DataFrame, inks: dict[int, str], unit: theme.Clock) -> go.Scatter:
    hover = [
        f"trial {row['trial']}: member {row['member']} goes on from phase {row['first_phase']}"
        f"<br>with the weights of trial {row['parent']} after its phase {row['parent_phase']}"
        for row in copies.to_dict("records")
    ]
    colors = [inks[int(founder)] for founder in copies["founder"]]
    marker = {"size": 7, "color": colors, "line": {"width": 1, "color": "white"}}
    at = copies["started_s"] / unit.seconds
    return theme.trial_points(copies.assign(hover=hover), at, copies["member"], marker, showlegend=False)


def _branches(group: pd.DataFrame) -> tuple[list[float | None], list[float | None]]:
    """Draw each trial's line, and the way to it from its parent's: down where it branched off, then across."""
    x: list[float | None] = []
    y: list[float | None] = []
    for row in group.to_dict("records"):
        if not pd.isna(row["from_x"]):
            x += [row["from_x"], row["from_x"]]
            y += [row["from_y"], row["y"]]
        x += [row["x0"], row["x1"], None]
        y += [row["y"], row["y"], None]
    return x, y


def _tips(tree: pd.DataFrame, inks: dict[int, str]) -> go.Scatter:
    hover = [
        f"trial {row['trial']} (member {row['member']}), "
        + (f"phases {row['x0']} to {row['x1'] - 1}" if row["x1"] > row["x0"] else "no phase ended yet")
        + ("" if pd.isna(row["parent"]) else f"<br>from trial {row['parent']}")
        for row in tree.to_dict("records")
    ]
    marker = {"size": 5, "color": [inks[int(founder)] for founder in tree["founder"]]}
    return theme.trial_points(tree.assign(hover=hover), tree["x1"], tree["y"], marker, showlegend=False)
