"""A figure as a file: HTML always; PNG and SVG through kaleido or a browser, where there is one."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from workbench.core.errors import InvalidInput, unknown
from workbench.core.places import whole_file

FORMATS = ("html", "png", "svg")

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PATIENCE_S = 120

# One figure after the other: side by side they would all be held in memory.
_PAGE = """<!doctype html><meta charset="utf-8"><body><script>{plotly}</script><script>
const sizes = {sizes}, figures = {figures}, drawn = [];
(async () => {{
  for (const [k, figure] of figures.entries()) {{
    const picture = document.createElement("img");
    picture.alt = await Plotly.toImage(figure, sizes[k]).catch((error) => `${{error}}`);
    drawn.push(picture);
  }}
  document.body.replaceChildren(...drawn);
}})();
</script></body>"""


def write_figure(fig: go.Figure, path: str | Path, *, width: int = 900, height: int | None = None) -> Path:
    """Write a figure to a file, of the kind its name ends in.

    Parameters
    ----------
    fig : Figure
    path : path
        Ending in .html (one page that loads nothing), .png (twice as many pixels as `width`) or .svg.
    width, height : int
        Of a picture, in CSS pixels; by default as high as the figure is.

    Raises
    ------
    InvalidInput
        Another ending, a picture where neither kaleido nor a browser is at hand, or a place that takes no file.
    """
    target = Path(path)
    kind = target.suffix.removeprefix(".").lower()
    check_kind(kind)
    size = {"width": width, "height": height or fig.layout.height or 400}
    with whole_file(target) as part:
        if kind == "html":
            fig.write_html(part, include_plotlyjs=True, full_html=True)
        elif find_spec("kaleido") is not None:
            fig.write_image(part, format=kind, scale=2, **size)
        else:
            [picture] = _drawn([(fig.to_json() or "{}", {"format": kind, "scale": 2 if kind == "png" else 1, **size})])
            part.write_bytes(picture)
    return target


def check_kind(kind: str) -> None:
    """Refuse a kind of file that no figure can be written to here.

    Raises
    ------
    InvalidInput
        There is no such kind, or neither kaleido nor a browser is at hand for a picture.
    """
    if kind not in FORMATS:
        raise unknown("kind of file", kind, FORMATS)
    if kind != "html" and find_spec("kaleido") is None:
        _browser()


def pictures(figures: Sequence[str]) -> list[bytes]:
    """Draw figures as PNG, all by one start of a browser, which takes longer than a figure.

    Parameters
    ----------
    figures : sequence of str
        Each as plotly's JSON, and as high as its layout says.

    Raises
    ------
    InvalidInput
        No browser is at hand, or it could not draw one of them.
    """
    heights = [json.loads(figure).get("layout", {}).get("height") or 400 for figure in figures]
    sizes = [{"format": "png", "scale": 1.5, "width": 900, "height": height} for height in heights]
    return _drawn(list(zip(figures, sizes, strict=True))) if figures else []


def _browser() -> str:
    named = os.environ.get("CHROMIUM")
    for name in [named] if named else _BROWSERS:
        if path := shutil.which(name):
            return path
    if named:
        raise InvalidInput(
            f"CHROMIUM={named} in the environment is no program that can be run: correct it, or unset it for a browser "
            "that is installed"
        )
    raise InvalidInput(
        "a picture needs a browser: install chromium (or set CHROMIUM to one), or pip install kaleido; "
        "a file that ends in .html needs neither"
    )


def _drawn(figures: Sequence[tuple[str, Mapping[str, object]]]) -> list[bytes]:
    """Let a headless browser draw figures, and read the pictures off the page it leaves."""
    browser = _browser()
    drawn = ",".join(figure for figure, _ in figures).replace("<", "\\u003c")
    sizes = json.dumps([size for _, size in figures])
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "figure.html"
        page.write_text(_PAGE.format(plotly=get_plotlyjs(), figures=f"[{drawn}]", sizes=sizes), encoding="utf-8")
        command = [browser, "--headless", "--disable-gpu", f"--user-data-dir={folder}/profile", "--dump-dom"]
        command += ["--no-sandbox"] if os.geteuid() == 0 else []  # root has none
        command += ["--virtual-time-budget=30000", page.as_uri()]
        patience_s = _PATIENCE_S + 10 * len(figures)
        try:
            done = subprocess.run(command, capture_output=True, timeout=patience_s, check=False)
        except subprocess.TimeoutExpired:
            raise InvalidInput(f"{browser} did not draw the figure within {patience_s} s: write it as .html") from None
    reader = _Pictures()
    reader.feed(done.stdout.decode("utf-8", "replace"))
    bad = next((words for words in reader.found if not words.startswith("data:")), None)
    if bad is not None or len(reader.found) != len(figures):
        said = bad or (done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it said nothing"])[0]
        raise InvalidInput(f"{browser} could not draw the figure ({said}): write it as .html")
    return [_bytes(url) for url in reader.found]


def _bytes(url: str) -> bytes:
    head, _, body = url.partition(",")
    return base64.b64decode(body) if head.endswith(";base64") else unquote(body).encode()


class _Pictures(HTMLParser):
    """Finds the pictures that the page left as the words of images."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "img":
            self.found.append(dict(attrs).get("alt") or "")
