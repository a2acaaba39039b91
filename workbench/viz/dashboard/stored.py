"""What a notebook keeps of a dashboard: a page of its last state, beside the living view and out of its way."""

import contextlib
import time
from collections.abc import Callable
from html import escape
from typing import Any

from workbench.core.measured import one_line

VIEW = "application/vnd.jupyter.widget-view+json"
_EVERY_S = 20.0  # between two pages while the study runs


class Stored:
    """The page in the cells that show a dashboard; replaced as the study goes on, so that the last one is stored.

    A view that lives hides it. A notebook that is opened on GitHub, by nbconvert, or on a kernel that never ran it
    shows the page; the place of the view, which cannot come to life there, takes no room.

    Parameters
    ----------
    key : str
        Of the dashboard.
    name : str
        What it shows.
    draw : callable
        Gives the state as HTML.

    Attributes
    ----------
    outdated : bool
        Whether there is news since the page was drawn; without, it is not drawn again.
    error : str
        Why the last page could not be drawn; empty when all is well.
    """

    def __init__(self, key: str, name: str, draw: Callable[[], str]) -> None:
        self._key, self._name, self._draw = key, name, draw
        self._shown: list[Any] = []  # display handles
        self._last, self._due = "", 0.0
        self.outdated, self.error = True, ""

    def show(self, view: dict[str, Any], *, drawn: bool = True) -> None:
        """Show the page and, below it, the view that hides it; if not `drawn`, the page follows with an `update`."""
        from IPython.display import display

        page = self._html(self._draw() if drawn else f"<p>{escape(self._name)}: its log is being read</p>")
        handle = display(page, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        if handle is not None:  # none: outside a notebook
            self._shown.append(handle)
        display({VIEW: view, "text/plain": f"dashboard of {self._name}"}, raw=True)  # type: ignore[no-untyped-call]

    def update(self, *, now: bool = False) -> None:
        """Replace the page, if there is something new and some time has passed, or `now`."""
        if not self._shown or not self.outdated or (not now and time.monotonic() < self._due):
            return
        self._due, self.outdated = time.monotonic() + _EVERY_S, False
        try:
            drawn, self.error = self._draw(), ""
        except Exception as err:  # noqa: BLE001  nothing ends the thread that looks
            self.outdated, self.error = True, one_line(err)
            return
        if drawn == self._last:
            return
        self._last = drawn
        for handle in self._shown:
            with contextlib.suppress(Exception):  # a kernel that shuts down closes the channel under us
                handle.update(self._html(drawn), raw=True)

    def _html(self, drawn: str) -> dict[str, str]:
        at = time.strftime("%Y-%m-%d %H:%M:%S %z")
        # Only a view without anything in it, which says that it has no model, is put out of sight.
        style = (
            f'.jp-OutputArea-child:has(.wb-still[data-of="{self._key}"]) + .jp-OutputArea-child '
            ".jupyter-widgets:not(:has(*)) { display: none; }"
        )
        said = f"{self._name} as of {at}. Run the cell to see it live."
        page = f'<div class="wb-still" data-of="{self._key}">{drawn}<p><em>{escape(said)}</em></p></div>'
        return {"text/html": f"<style>{style}</style>{page}", "text/plain": said}
