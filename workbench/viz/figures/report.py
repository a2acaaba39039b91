"""One HTML page a study: figures, tables, settings, to be read without a network."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs, get_plotlyjs_version

from workbench.core.errors import InvalidInput, file_errors
from workbench.core.places import is_device, whole_file
from workbench.core.toml import toml_lines
from workbench.viz.figures import theme

MOST_ROWS = 3000

LIBRARY = f"plotly-{get_plotlyjs_version()}.min.js"
"""The file beside the reports of a folder that holds what draws their figures, once for all of them."""

# Nothing is loaded from any network, whatever slips into the page: the browser itself is told so.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'{beside}; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:"
)
_BESIDE = " 'self' file:"
_MARK = "rl-workbench-study"  # holds the identity of the study whose page it is

_STYLE = """
:root { --ground: #ffffff; --ink: #1d2126; --soft: #5d6670; --line: #d9dde2; color-scheme: light dark; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #15181c; --ink: #e4e7ea; --soft: #9aa3ad; --line: #343a42; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1120px; padding: 28px 24px 64px; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 26px; margin: 0 0 2px; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 36px 0 8px; }
p.note { color: var(--soft); margin: 0 0 16px; }
nav ul { columns: 2 22em; margin: 16px 0 8px; padding-left: 18px; font-size: 13px; }
nav a { color: inherit; }
pre { overflow: auto; padding: 10px 14px; border: 1px solid var(--line); border-radius: 6px; font-size: 13px; }
th button { all: unset; cursor: pointer; }
th button:focus-visible { outline: 2px solid var(--ink); }
th[aria-sort="ascending"] button::after { content: " ▲" / ""; }
th[aria-sort="descending"] button::after { content: " ▼" / ""; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; }
th, td { padding: 4px 12px 4px 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; }
td.number, th.number { text-align: right; }
.summary th { min-width: 11em; font-weight: 500; }
.summary td { overflow-wrap: anywhere; }
.scroll { overflow: auto; max-height: 32em; border: 1px solid var(--line); border-radius: 6px; padding: 0 0 0 12px; }
.scroll thead th { position: sticky; top: 0; background: var(--ground); white-space: nowrap; }
figure { margin: 20px 0 0; overflow-x: auto; }
.plot { min-width: 640px; }
figcaption { color: var(--soft); font-size: 13px; max-width: 80ch; }
details > summary { cursor: pointer; font-size: 18px; font-weight: 700; margin: 32px 0 8px; }
.plot .main-svg text { fill: var(--ink) !important; }
.plot .hoverlayer text { fill: inherit !important; }
@media print { .scroll { max-height: none; overflow: visible; } }
"""

_SORT = """
for (const table of document.querySelectorAll("table.sortable")) {
  const [head, body] = [table.tHead.rows[0], table.tBodies[0]];
  const first = [...body.rows];
  const valueOf = (row, k) => {
    const cell = row.cells[k];
    const words = cell.dataset.value ?? cell.textContent;
    if (words === "–") return null;
    return head.cells[k].className === "number" ? Number(words) : words;
  };
  [...head.cells].forEach((cell, k) => {
    cell.firstChild.onclick = () => {
      const was = cell.getAttribute("aria-sort");
      for (const other of head.cells) other.removeAttribute("aria-sort");
      if (was === "descending") return body.append(...first); // as it came
      const sign = was ? -1 : 1;
      cell.setAttribute("aria-sort", was ? "descending" : "ascending");
      body.append(...[...first].sort((one, other) => {
        const [a, b] = [valueOf(one, k), valueOf(other, k)];
        if (a === null || b === null) return (a === null) - (b === null);
        return sign * (typeof a === "number" ? a - b : a.localeCompare(b));
      }));
    };
  });
}
"""

_DRAW = """
if (!window.Plotly) document.getElementById("missing").hidden = false;
else for (const holder of document.querySelectorAll(".plot")) {
  const drawn = JSON.parse(document.getElementById(holder.id + "-data").textContent);
  Plotly.newPlot(holder, drawn.data, drawn.layout, {responsive: true, displaylogo: false});
}
"""


def report_html(
    title: str,
    summary: Mapping[str, Any],
    figures: Mapping[str, go.Figure],
    tables: Mapping[str, pd.DataFrame] | None = None,
    *,
    note: str = "",
    settings: Mapping[str, Any] | None = None,
    whole: bool = True,
    identity: str = "",
) -> str:
    """Write a study's report as one HTML page that loads nothing from any network.

    Parameters
    ----------
    title : str
        Heading, for example the study's name.
    summary : Mapping
        Label → value of the table at the top; a mapping as value becomes "name = value" lines.
    figures : Mapping of str to Figure
        Caption → figure, in order. An empty caption is left out; make captions differ by a space if need be.
    tables : Mapping of str to DataFrame, optional
        Heading → table, in order, for example the trials and the decision log; each can be folded away, and sorted by
        any column. At most `MOST_ROWS` rows are written, and the page says so.
    note : str
        A line under the heading.
    settings : Mapping, optional
        What ran, in JSON's types; written as TOML.
    whole : bool
        Whether plotly.js (some 5 MB) is inside if there are figures; else the page takes it from `LIBRARY` beside it.
    identity : str
        The study's, if it has one: by it the page is told from that of another.

    Returns
    -------
    str
        The page. Every word is escaped.
    """
    places = [
        (f"figure-{k}", fig.layout.title.text or escape(caption)) for k, (caption, fig) in enumerate(figures.items())
    ]
    places += [(f"table-{k}", escape(heading)) for k, heading in enumerate(tables or {})]
    places += [("settings", "Settings")] if settings else []
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="note">{escape(note)}</p>' if note else "",
        _missing() if figures and not whole else "",
        _summary_table(summary),
        _contents(places),
        *(_figure(k, caption, fig) for k, (caption, fig) in enumerate(figures.items())),
        *(_section(k, heading, frame) for k, (heading, frame) in enumerate((tables or {}).items())),
        _settings(settings) if settings else "",
    ]
    policy = _POLICY.format(beside="" if whole else _BESIDE)
    library = f"<script>{get_plotlyjs()}</script>" if whole else f'<script src="{LIBRARY}"></script>'
    scripts = f"{library}\n<script>{_DRAW}</script>" if figures else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        + (f'<meta name="{_MARK}" content="{escape(identity)}">\n' if identity else "")
        + f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + f"\n<script>{_SORT}</script>\n{scripts}\n</body>\n</html>\n"
    )


def write_report(
    path: str | Path,
    title: str,
    summary: Mapping[str, Any],
    figures: Mapping[str, go.Figure],
    tables: Mapping[str, pd.DataFrame] | None = None,
    *,
    note: str = "",
    settings: Mapping[str, Any] | None = None,
    whole: bool = False,
    identity: str = "",
) -> Path:
    """Write `report_html` to a file, and `LIBRARY` beside it unless it is to be whole.

    A report already there is replaced, whole or not at all, unless it is marked as another study's, `identity` says
    whose; a device or a pipe is written to, and has `LIBRARY` inside.

    Returns
    -------
    Path
        Where it was written, absolute. Missing folders are made.

    Raises
    ------
    InvalidInput
        A folder has this name, or another study's report, it ends as no page does, or it cannot be written.
    """
    target = Path(path).absolute()
    if target.is_dir():
        raise InvalidInput(f"a report is one file, and {target} is a folder: give a name in it")
    if target.suffix.lower() not in ("", ".html", ".htm") and not is_device(target):
        raise InvalidInput(f"a report is a page of HTML, got {target.name}: end its name in .html")
    whole = whole or is_device(target)
    if target.is_file() and not is_device(target):
        _refuse_anothers(target, identity)
    page = report_html(title, summary, figures, tables, note=note, settings=settings, whole=whole, identity=identity)
    library = target.with_name(LIBRARY)
    with whole_file(target) as part:
        part.write_text(page, encoding="utf-8")
        if figures and not whole and not library.is_file():
            with whole_file(library) as beside:
                beside.write_text(get_plotlyjs(), encoding="utf-8")
    return target


def _refuse_anothers(page: Path, identity: str) -> None:
    """Refuse to replace the report of another study, as of a second knowledge base in the folder.

    One without a mark, as of before, is taken for the study's own.
    """
    with file_errors(f"{page} cannot be written"), page.open("rb") as there:
        mark = re.search(rf'<meta name="{_MARK}" content="(\w+)">'.encode(), there.read(2000))
    if mark and identity and mark[1].decode() != identity:
        raise InvalidInput(f"{page} is the report of another study: choose another name, or remove that one")


def table_html(frame: pd.DataFrame) -> str:
    """Write a table with every cell escaped, numbers to the right with four significant digits, and sorted by all."""
    numeric = [pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind) for kind in frame.dtypes]
    classes = [' class="number"' if is_number else "" for is_number in numeric]
    head = "".join(
        f'<th{c}><button type="button">{escape(str(name))}</button></th>'
        for name, c in zip(frame.columns, classes, strict=True)
    )
    rows = (
        "<tr>" + "".join(_cell(value, c) for value, c in zip(row, classes, strict=True)) + "</tr>"
        for row in frame.head(MOST_ROWS).itertuples(index=False, name=None)
    )
    return f'<table class="sortable"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def _cell(value: Any, kind: str) -> str:
    """Write a cell, and beside a number that its words do not tell in full what the page's script sorts it by."""
    words = cell_html(value)
    is_number = kind != "" and isinstance(value, float) and value == value
    told = not is_number or (math.isfinite(value) and float(words) == value)
    full = "" if told else f' data-value="{json.dumps(value)}"'  # JSON's Infinity is JavaScript's
    return f"<td{kind}{full}>{words}</td>"


def cell_html(value: Any) -> str:
    """Write one value, escaped: nothing for a missing one, a mapping as "name = value" parts."""
    if isinstance(value, Mapping):
        return "; ".join(f"{escape(str(key))} = {cell_html(part)}" for key, part in value.items()) or "–"
    if value is None or value is pd.NaT or (isinstance(value, float) and value != value):
        return "–"
    if isinstance(value, float):
        return theme.setting(value)
    return escape(str(value))


def _missing() -> str:
    words = f"The figures need {LIBRARY}, which stands beside this page where it was written: keep them together."
    return f'<p class="note" id="missing" hidden>{words}</p>'


def _contents(places: Sequence[tuple[str, str]]) -> str:
    """Write links to the parts; their titles are HTML, as plotly's are."""
    items = "".join(f'<li><a href="#{place}">{words}</a></li>' for place, words in places)
    return f'<nav aria-label="contents"><ul>{items}</ul></nav>' if places else ""


def _settings(settings: Mapping[str, Any]) -> str:
    return f'<h2 id="settings">Settings</h2><pre>{escape(chr(10).join(toml_lines(settings)))}</pre>'


def _summary_table(summary: Mapping[str, Any]) -> str:
    rows = (f"<tr><th>{escape(str(label))}</th><td>{cell_html(value)}</td></tr>" for label, value in summary.items())
    return f'<table class="summary"><tbody>{"".join(rows)}</tbody></table>' if summary else ""


def _figure(k: int, caption: str, fig: go.Figure) -> str:
    # Inside a script element only "<" can end it early; as \u003c it is the same JSON.
    data = json.dumps(json.loads(fig.to_json()), separators=(",", ":")).replace("<", "\\u003c")
    height = int(fig.layout.height or 400)
    figcaption = f"<figcaption>{escape(caption)}</figcaption>" if caption.strip() else ""
    return (
        f'<figure><div class="plot" id="figure-{k}" style="height:{height}px"></div>{figcaption}</figure>\n'
        f'<script type="application/json" id="figure-{k}-data">{data}</script>'
    )


def _section(k: int, heading: str, frame: pd.DataFrame) -> str:
    rest = len(frame) - MOST_ROWS
    cut = f'<p class="note">The first {MOST_ROWS} of {len(frame)} rows.</p>' if rest > 0 else ""
    body = table_html(frame) if len(frame) else '<p class="note">Nothing yet.</p>'
    return (
        f'<details open id="table-{k}"><summary>{escape(heading)} ({len(frame)})</summary>{cut}'
        f'<div class="scroll">{body}</div></details>'
    )
