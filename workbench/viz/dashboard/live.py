"""A widget that looks at the log from a thread of its own, and tells its views what it saw."""

import threading
from collections.abc import Iterator
from html import escape
from typing import Any
from uuid import uuid4

import anywidget
import traitlets

from workbench.core.measured import one_line
from workbench.viz.dashboard.board import Message
from workbench.viz.dashboard.front import BOOT, CODE, CSS, VERSION
from workbench.viz.dashboard.stored import VIEW, Stored
from workbench.viz.dashboard.wire import Wire

_RARELY_S = 5.0  # between two looks once all has ended: a study may be resumed, confirmed, or given a note


class Live(anywidget.AnyWidget):  # type: ignore[misc]
    """One thread, any number of views. What it shows is for its kinds to say, by the methods at the end.

    Parameters
    ----------
    title : str
        What it is about, in words.
    refresh_s : float
        Seconds between two looks.

    Attributes
    ----------
    error : str
        Why the log cannot be read, or shown, at the moment; empty when all is well.
    """

    _esm = BOOT

    error = traitlets.Unicode("").tag(sync=True)
    _kind = traitlets.Unicode("dashboard").tag(sync=True)  # the page that draws it
    _key = traitlets.Unicode("").tag(sync=True)  # by which the views of one model find their store
    _every = traitlets.Float(0.5).tag(sync=True)  # seconds between two looks: a page takes silence for death by it
    _version = traitlets.Unicode(VERSION).tag(sync=True)  # of the front end

    _thread: threading.Thread | None = None
    _told = False  # whether there was news at the last look: the beat after it tells a view that missed them
    _unseen = False  # whether a page took its last view away, and none has been heard of since
    _is_read = True  # what is shown; a long log is read by the thread, beside the front end that comes up

    def __init__(self, title: str, refresh_s: float) -> None:
        self._title, self._refresh_s = title, refresh_s
        self._lock = threading.Lock()  # held by whoever touches what is read, or the wire
        self._wire = Wire(lambda content, tables: self.send(content, tables))
        self._wake = threading.Event()
        self._asked = False  # whether a viewer waits for a snapshot
        self._closing = False
        super().__init__(_key=uuid4().hex, _every=refresh_s)
        self._stored = Stored(self._key, title, self._repr_html_)
        # ipykernel sends what a view says to the shell its widget last spoke from. This one speaks from a thread of its
        # own, which counts as the main shell, and there a pressed button would wait for the end of the running cell.
        self.comm._reply_subshell_for = None  # let it go where the view asks: JupyterLab names a subshell
        self.on_msg(self._heard)
        self._thread = threading.Thread(target=self._watch, name=f"dashboard {title}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread and the views. The study is not touched."""
        if self._thread is not None:  # none: it never came up
            self._closing = True
            self._wake.set()
            if self._thread is not threading.current_thread():
                self._thread.join()
            with self._lock:
                self._leave()
        super().close()

    def refresh(self) -> None:
        """Look at the log now, and tell the viewers what is new."""
        with self._lock:
            self._look()

    @property
    def running(self) -> bool:
        """Whether the thread looks at the log: until the widget is closed."""
        return self._thread is not None and self._thread.is_alive()

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Add what a notebook shows when no kernel stands behind it any more."""
        bundle = super()._repr_mimebundle_(**kwargs)
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        if data is not None:
            data["text/html"] = self._repr_html_()
        return bundle

    def _repr_html_(self) -> str:
        with self._lock:
            return self._html()

    def _ipython_display_(self) -> None:
        """Show the living view, and beside it what the notebook keeps; once closed, its last state alone."""
        if not self._closing:
            self._stored.show(super()._repr_mimebundle_()[0][VIEW], drawn=self._is_read)
            return
        from IPython.display import display

        said = f"{self._title} as it was when this view was closed: open another to see it live"
        page = {"text/html": f"{self._repr_html_()}<p><em>{escape(said)}</em></p>", "text/plain": said}
        display(page, raw=True)  # type: ignore[no-untyped-call]

    # -- the watching thread ------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Look at the log, rarely once all has ended; a thread, since a task would stand still while a cell runs."""
        while not self._closing:
            with self._lock:
                over = self._look()
            if self._is_read:  # else there is nothing to draw yet
                self._stored.update(now=over)
            rest_s = max(self._refresh_s, _RARELY_S) if over else self._refresh_s
            self._wake.wait(None if self._unseen else rest_s)  # nobody closes what a cell that is run again had shown
            self._wake.clear()
        if self._is_read:
            self._stored.update(now=True)

    def _look(self) -> bool:
        """Take in the news and send them; tell whether all has ended. Called with the lock held.

        Quiet looks beat. After the end one does and the rest are silent: a server takes a kernel that speaks for one in
        use, and keeps what it says for pages that have been closed.
        """
        trouble = self._stored.error
        try:
            self._take()
        except Exception as err:  # noqa: BLE001  a viewer must outlive a file that is moved, locked or replaced
            trouble = one_line(err)
        over = self._is_over()
        try:
            self._tell(over)
        except Exception as err:  # noqa: BLE001  and whatever a log's values do to what is told of them
            trouble = trouble or one_line(err)
            self._wire.lose()
            self._told = True
        if trouble != self.error:
            self.error = trouble
        return over

    def _tell(self, over: bool) -> None:
        if self._asked:
            self._tell_all()
            self._told = True
            return
        news = self._delta()
        if news is not None:
            self._stored.outdated = True
        if news is not None or self._told or not over:
            self._wire.delta(news)
        self._told = news is not None

    def _heard(self, _: Any, content: Any, __: Any) -> None:
        """A view wants a snapshot, the front end, or something done. Runs on any thread the kernel likes: be brief."""
        kind = content.get("type") if isinstance(content, dict) else None
        if kind == "ask":
            self._ask(content)
        elif kind == "front":
            self._wire.say({"type": "front", "code": CODE, "css": CSS})
        elif kind == "snapshot":
            self._unseen, self._asked = False, True  # the thread looks, and tells everything
            self._wake.set()
        elif kind == "unseen":  # in one page; there may be others
            self._unseen = True
            self._wire.say({"type": "seen?"})
        elif kind == "seen":
            self._unseen = False
            self._wake.set()

    def _tell_all(self) -> None:
        self._asked = False
        self._stored.outdated = True
        parts = self._snapshot()
        self._wire.snapshot(next(parts))
        for part in parts:
            self._wire.delta(part)

    # -- what it shows; all but `_ask` are called with the lock held ----------------------------------------------

    def _take(self) -> None:
        """Read what is new."""
        raise NotImplementedError

    def _snapshot(self) -> Iterator[Message]:
        """Give everything that a new viewer needs, and take it as sent: what is seen first, then the rest as deltas."""
        raise NotImplementedError

    def _delta(self) -> Message | None:
        """Give what changed since the last one; ``None`` if nothing did, or if it has to be a snapshot."""
        return None

    def _html(self) -> str:
        """Draw it as a page that needs no kernel."""
        raise NotImplementedError

    def _is_over(self) -> bool:
        """Tell whether all has ended, so that nothing changes unless it is taken up again."""
        return False

    def _ask(self, content: dict[str, Any]) -> None:
        """Do what a view asks."""

    def _leave(self) -> None:
        """Let go of what is held open."""
