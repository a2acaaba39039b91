"""What runs in the page: one module and one style sheet, which all dashboards of a kernel share."""

from hashlib import blake2b
from importlib.resources import files

import anywidget
import traitlets

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
"""The module of each dashboard: it loads the front end, unless the page has it."""
CODE = "\n".join(map(_read, PARTS))
"""The front end: a module that exports `render` and `forget`."""
VERSION = blake2b(CODE.encode(), digest_size=8).hexdigest()


class Front(anywidget.AnyWidget):  # type: ignore[misc]
    """Holds the front end's code, so that it travels once to a page, however many dashboards there are."""

    # Strings, not paths: with a path anywidget watches the file and the widget is never collected.
    _esm = "export default {};"
    _css = _read("dashboard.css")

    code = traitlets.Unicode(CODE).tag(sync=True)


_shared: list[Front] = []


def shared_front() -> Front:
    """Give this kernel's front end; made at the first call, and again if somebody closed it."""
    if not _shared or _shared[0].comm is None:
        _shared[:] = [Front()]
    return _shared[0]
