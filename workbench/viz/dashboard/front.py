"""What runs in the page: one module and one style sheet, which all widgets of a page share."""

from hashlib import blake2b
from importlib.resources import files

PARTS = [
    "paint.js",
    "store.js",
    "filter.js",
    "selection.js",
    "table.js",
    "views.js",
    "curves.js",
    "controls.js",
    "export.js",
    "detail.js",
    "remarks.js",
    "stage.js",
    "comparison.js",
    "home.js",
    "page.js",
]


def _read(name: str) -> str:
    return files("workbench.viz.dashboard").joinpath("front", name).read_text(encoding="utf-8")


BOOT = _read("boot.js")
"""The module of each widget: it asks for the front end, unless the page has it."""
CODE = "\n".join(map(_read, PARTS))
"""The front end: a module that exports `render` and `forget`."""
CSS = _read("dashboard.css")
"""Its style sheet."""
VERSION = blake2b(f"{CODE}{CSS}".encode(), digest_size=8).hexdigest()
