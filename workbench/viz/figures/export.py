"""A figure as a file: HTML always; PNG and SVG through kaleido or a browser, where there is one."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from workbench.core.errors import InvalidInput, unknown

FORMATS = ("html", "png", "svg")

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PATIENCE_S = 120

_PAGE = """<!doctype html><meta charset="utf-8"><body><script>{plotly}</script><script>
const figure = {figure};
Plotly.toImage(figure, {size}).then((url) => {{
  document.body.replaceChildren(Object.assign(document.createElement("img"), {{ alt: url }}));
}});
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

    Returns
    -------
    Path

    Raises
    ------
    InvalidInput
        Another ending, or a picture where neither kaleido nor a browser is at hand.
    """
    target = Path(path)
    kind = target.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise unknown("kind of file", kind, FORMATS)
    size = {"width": width, "height": height or fig.layout.height or 400}
    target.parent.mkdir(parents=True, exist_ok=True)
    if kind == "html":
        fig.write_html(target, include_plotlyjs=True, full_html=True)
    elif find_spec("kaleido") is not None:
        fig.write_image(target, format=kind, scale=2, **size)
    else:
        target.write_bytes(_drawn(fig, kind, size, _browser()))
    return target


def _browser() -> str:
    names = [os.environ.get("CHROMIUM"), *_BROWSERS]
    for name in names:
        if name and (path := shutil.which(name)):
            return path
    raise InvalidInput(
        "a picture needs a browser: install chromium (or set CHROMIUM to one), or pip install kaleido; "
        "a file that ends in .html needs neither"
    )


def _drawn(fig: go.Figure, kind: str, size: dict[str, int], browser: str) -> bytes:
    """Let a headless browser draw the figure, and read the picture off the page it leaves."""
    figure = (fig.to_json() or "{}").replace("<", "\\u003c")
    request = json.dumps({"format": kind, "scale": 2 if kind == "png" else 1, **size})
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "figure.html"
        page.write_text(_PAGE.format(plotly=get_plotlyjs(), figure=figure, size=request), encoding="utf-8")
        command = [browser, "--headless", "--disable-gpu", f"--user-data-dir={folder}/profile", "--dump-dom"]
        command += ["--no-sandbox"] if os.geteuid() == 0 else []  # root has none
        command += ["--virtual-time-budget=30000", page.as_uri()]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_PATIENCE_S, check=False)
        except subprocess.TimeoutExpired:
            raise InvalidInput(f"{browser} did not draw the figure within {_PATIENCE_S} s: write it as .html") from None
    reader = _Picture()
    reader.feed(done.stdout.decode("utf-8", "replace"))
    head, comma, body = reader.url.partition(",")
    if not comma:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it said nothing"]
        raise InvalidInput(f"{browser} could not draw the figure ({said[0]}): write it as .html")
    return base64.b64decode(body) if head.endswith(";base64") else unquote(body).encode()


class _Picture(HTMLParser):
    """Finds the picture that the page left as the words of an image."""

    url = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        words = dict(attrs).get("alt") or ""
        if tag == "img" and words.startswith("data:"):
            self.url = words
