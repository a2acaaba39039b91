"""A study as plain HTML and a picture: what a stored notebook shows when no kernel stands behind it."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import pandas as pd

from workbench.core.ledger import standing_in
from workbench.core.showing import four_digits, setting, so_many
from workbench.viz.dashboard.board import Board
from workbench.viz.figures import theme
from workbench.viz.figures.occupancy import slot_rows

_WIDTH, _LABELS, _ROW = 760, 130, 16
_MOST_BARS = 3000  # the latest
_BEST = 10  # trials in the table


def static_html(board: Board) -> str:
    """Draw a board as it stands: a line of numbers, the Gantt chart, and the trials that began each phase."""
    now = board.state()
    spans, slots, earlier = board.bars(_MOST_BARS)
    best, share = now["best"], now["occupancy"]
    numbers = [
        escape(now["state"]),
        f"{so_many(now['trials_started'], 'trial')} begun",
        f"{so_many(now['phases_ended'], 'phase')} ended",
        f"luckiest phase: best score {four_digits(best[-1][1])} (trial {best[-1][2]})" if best else "",
        "" if share is None else f"{share:.1%} of slot time occupied",
        f"{now['at_s']:.0f} s",
        escape(f"failed: {'; '.join(now['failures'])}") if now["failures"] else "",
    ]
    return (
        "<div style='font-size:13px'>"
        f"<strong>{escape(board.title)}</strong>: {' · '.join(part for part in numbers if part)}"
        f"{_gantt(spans, slots, now['at_s'])}{_left_out(earlier)}{_survival_table(now['survival'])}"
        f"{_best_table(board.rows.best(_BEST), now['state'], now['trials_started'])}</div>"
    )


def studies_table(rows: Iterable[Mapping[str, Any]]) -> str:
    """Write a row a study."""
    known = list(rows)
    return _table(list(known[0]), [row.values() for row in known]) if known else "<p>no study yet</p>"


def _gantt(spans: pd.DataFrame, slots: pd.DataFrame, until_s: float) -> str:
    """Draw a row a slot and a bar a phase: a picture, for of SVG in a page untrusted notebooks keep the words alone."""
    rows = slot_rows(slots, spans)
    if rows.empty or until_s <= 0:
        return ""
    per_s = (_WIDTH - _LABELS) / until_s
    height = int(rows["y"].max() * _ROW) + _ROW + 20
    colors = theme.phase_greys(int(spans["phase"].max()) + 1 if len(spans) else 0)
    labels = [
        f'<text x="{_LABELS - 6}" y="{y * _ROW + 12:.0f}" text-anchor="end">{label}</text>'
        for y, label in zip(rows["y"], rows["label"], strict=True)
    ]
    bars = [
        f'<rect x="{_LABELS + begun * per_s:.1f}" y="{y * _ROW + 2:.0f}" '
        f'width="{max(0.5, (over - begun) * per_s):.1f}" height="{_ROW - 3}" fill="{colors[phase]}" '
        f'opacity="{0.35 if outcome in ("held", "lost", "stopped") else 1}"/>'
        for y, begun, over, phase, outcome in _bars(spans, rows, until_s)
    ]
    unit = theme.clock(until_s)
    axis = f'<text x="{_WIDTH}" y="{height - 4}" text-anchor="end">{until_s / unit.seconds:.3g} {unit.unit}</text>'
    drawn = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" '
        f'font-size="10" font-family="sans-serif" fill="{theme.INK}">{"".join(labels)}{"".join(bars)}'
        f'<text x="{_LABELS}" y="{height - 4}">0</text>{axis}</svg>'
    )
    source = f"data:image/svg+xml;base64,{base64.b64encode(drawn.encode()).decode()}"
    return f"<p><img alt='slots over time' style='max-width:100%' src='{source}'></p>"


def _left_out(earlier: int) -> str:
    """Say that there were bars where none are drawn: nothing else tells them from idle slots."""
    return f"<p>Slots over time without the {so_many(earlier, 'earliest bar')}.</p>" if earlier else ""


def _bars(spans: pd.DataFrame, rows: pd.DataFrame, until_s: float) -> "zip[tuple[float, float, float, int, str]]":
    bars = spans.merge(rows[["node", "slot", "y"]], on=["node", "slot"])
    over = bars["ended_s"].astype(float).fillna(until_s)
    columns = (bars["y"], bars["started_s"], over, bars["phase"], bars["outcome"])
    return zip(*columns, strict=True)


def _survival_table(survival: Sequence[Mapping[str, Any]]) -> str:
    if not survival:
        return ""
    names = ["began", "completed", "stopped", "failed"]
    return _table(["phase", *(row["phase"] for row in survival)], [[n, *(row[n] for row in survival)] for n in names])


def _best_table(trials: Sequence[Mapping[str, Any]], study: str, n_trials: int) -> str:
    if not trials:
        return ""
    names = list(dict.fromkeys(name for t in trials for name in t["config"]))  # some apply to some trials only
    rows = [
        [
            t["trial"],
            standing_in(study, t["state"], in_phase=t["in_phase"]),
            t["last"],
            t["best"],
            *(t["config"].get(name) for name in names),
            t["why"],
        ]
        for t in trials
    ]
    only = f"<p>The {len(trials)} best of {n_trials} trials, by their luckiest phases:</p>" if n_trials > _BEST else ""
    return only + _table(["trial", "state", "last score", "best score", *names, "verdict"], rows)


def _table(names: Iterable[Any], rows: Iterable[Iterable[Any]]) -> str:
    """Write a table with every word escaped; GitHub keeps attributes, and no styles."""
    head = "".join(f'<th align="left">{escape(str(name))}</th>' for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{escape(_number(value))}</td>' for value in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _number(value: object) -> str:
    return "–" if value is None else setting(value)
