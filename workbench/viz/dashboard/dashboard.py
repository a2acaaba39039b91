"""The live dashboard: one widget, one thread that looks at the log, any number of views."""

import contextlib
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import anywidget
import traitlets

from workbench.core.describe import explain_of
from workbench.core.errors import WorkbenchError
from workbench.core.garbage import uncollected
from workbench.core.protocols import Explain
from workbench.core.record import size_of_record
from workbench.core.registry import REGISTRY
from workbench.knowledge import Controls, driver_of
from workbench.viz.dashboard.asking import ask
from workbench.viz.dashboard.board import Board, Message
from workbench.viz.dashboard.estimator import Estimator
from workbench.viz.dashboard.feed import Feed
from workbench.viz.dashboard.front import BOOT, VERSION, shared_front
from workbench.viz.dashboard.static import static_html
from workbench.viz.dashboard.stored import VIEW, Stored

_ONCE_MORE_S = 1.0  # the last state is sent again after this: a front end may have dropped it


class TrialNumbers(traitlets.List):  # type: ignore[type-arg]
    """A list of trial numbers; one number and ``None`` are taken for a list of one and of none."""

    def validate(self, obj: Any, value: Any) -> Any:
        """Check what is set."""
        if value is None and self.allow_none:
            return None
        several = [] if value is None else [*value] if isinstance(value, Iterable) else [value]
        return super().validate(obj, several)


@dataclass(frozen=True)
class Still:
    """A study at one moment, as HTML and as text."""

    html: str
    text: str

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return self.text


class Dashboard(anywidget.AnyWidget):  # type: ignore[misc]
    """Everything about a study at a glance, while it runs and after.

    It only ever reads the log, through a connection that cannot write, so it can neither hold up nor harm the study,
    which may run in this kernel, in another process, or not at all any more. What its buttons ask travels as small
    files beside the log (`workbench.knowledge.Controls`), and the study's answers come back in the log.

    Parameters
    ----------
    db : path
        The knowledge base.
    name : str
        The study.
    expected, minimum : sequence of float, optional
        Trials expected to begin each phase, and the fewest that can, to draw beside those that did; by default what the
        study's scheduler told its log.
    explain : Explain, optional
        Puts the reasons of decisions into words; by default the scheduler's own, found by its kind.
    refresh_s : float
        Seconds between two looks at the log.

    Attributes
    ----------
    selected : list of int
        The trials marked in all views, the one selected last at the end; set by clicks and keys, or from Python: a
        number alone is a list of one. Can be observed.
    filter : str
        What the views show, as a person writes it: ``state:running lr>1e-3 -adam top:10``. Brushes write into it too.
    visible : list of int or None
        The trials that the filter leaves, in the table's order, as the page says; ``None``: all, by rank. Set from
        Python, it becomes the filter.
    controls : Controls
        What the buttons do, for use from Python: stop, pause, resume, extend, clone, …
    importance : bool
        Whether to estimate hyperparameter importance, from 20 trials with a score on, in a process of its own that
        gives way to all others.
    error : str
        Why the log cannot be read at the moment; empty when all is well.

    Raises
    ------
    DatabaseError, StudyError
        There is no such file, or no such study in it.

    Examples
    --------
    >>> board = Dashboard("data/runs/workbench.db", "first-cartpole")  # doctest: +SKIP
    >>> board.observe(lambda change: print(change["new"]), "selected")  # doctest: +SKIP
    >>> board.filter = "state:running learning_rate>1e-3"  # doctest: +SKIP
    """

    _esm = BOOT

    selected = TrialNumbers(traitlets.Int()).tag(sync=True)
    filter = traitlets.Unicode("").tag(sync=True)
    visible = TrialNumbers(traitlets.Int(), default_value=None, allow_none=True).tag(sync=True)
    importance = traitlets.Bool(True).tag(sync=True)
    error = traitlets.Unicode("").tag(sync=True)
    _key = traitlets.Unicode("").tag(sync=True)  # by which the views of one model find their store
    _front = traitlets.Unicode("").tag(sync=True)  # the model that holds the front end's code
    _version = traitlets.Unicode(VERSION).tag(sync=True)

    _thread: threading.Thread | None = None
    _from_page = False  # whether a page sets a trait right now

    def __init__(
        self,
        db: str | Path,
        name: str,
        *,
        expected: Sequence[float] = (),
        minimum: Sequence[float] = (),
        explain: Explain | None = None,
        refresh_s: float = 0.5,
    ) -> None:
        self._db = Path(db)
        self._feed = Feed(db, name)
        spec = self._feed.spec
        size = size_of_record(spec)
        explain = explain or explain_of(spec.get("scheduler"), REGISTRY)
        self._board = Board(name, size, explain, expected=expected, minimum=minimum)
        with uncollected():
            self._board.take(self._feed.news())
        self._board.learn(driven=driver_of(self._db, name) is not None)
        self._board.take_as_sent()  # a viewer begins with a snapshot
        self._lock = threading.Lock()  # held by whoever touches the feed, the board or the number
        self._number = 0  # of the last delta; a viewer that misses one asks for a snapshot
        self.controls = Controls(db, name)
        self._estimator = Estimator()
        self._wake = threading.Event()
        self._asked = False  # whether a viewer waits for a snapshot
        self._closing = False
        super().__init__(_key=uuid4().hex, _front=f"anywidget:{shared_front().model_id}")
        self._stored = Stored(self._key, self._repr_html_)
        # ipykernel sends what a view says to the shell its widget last spoke from. This one speaks from a thread of its
        # own, which counts as the main shell, and there a pressed button would wait for the end of the running cell.
        self.comm._reply_subshell_for = None  # let it go where the view asks: JupyterLab names a subshell
        self.on_msg(self._heard)
        self.observe(lambda _: self._switched(), ["importance"])
        self._refresh_s = refresh_s
        self._thread = threading.Thread(target=self._watch, name=f"dashboard {name}", daemon=True)
        self._thread.start()

    @traitlets.observe("visible")
    def _made_visible(self, change: Any) -> None:
        """Set from Python, it becomes the filter; what a page says of its own filter does not."""
        if not self._from_page:
            self.filter = "" if change["new"] is None else f"trial:{listed(change['new'])}"

    def set_state(self, sync_data: Any) -> None:
        """Take what a page sets."""
        self._from_page = True
        try:
            super().set_state(sync_data)
        finally:
            self._from_page = False

    def close(self) -> None:
        """End the thread and the views. The study is not touched."""
        if self._thread is not None:  # none: it never came up
            self._closing = True
            self._wake.set()
            if self._thread is not threading.current_thread():
                self._thread.join()
            with self._lock:
                self._feed.close()
            self._estimator.close()
        super().close()

    def refresh(self) -> None:
        """Look at the log now, and tell the viewers what is new."""
        with self._lock:
            self._look()

    def still(self) -> "Still":
        """Picture the study as it stands now, without a widget: it outlives the kernel in a stored notebook."""
        with self._lock:
            return Still(static_html(self._board), f"{self._board.name}: {self._board.state()['state']}")

    @property
    def running(self) -> bool:
        """Whether the thread still looks at the log: until the study has ended or the dashboard is closed."""
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
            return static_html(self._board)

    def _ipython_display_(self) -> None:
        """Show the living view, and beside it what the notebook keeps."""
        self._stored.show(super()._repr_mimebundle_()[0][VIEW], self._board.name)

    # -- the watching thread ------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Look at the log until the study has ended; a thread, since a task would stand still while a cell runs."""
        while not self._closing:
            with self._lock:
                if self._look() and not self._asked:
                    break
            self._stored.update()
            self._wake.wait(self._refresh_s)
            self._wake.clear()
        if not self._closing:
            self._wake.wait(_ONCE_MORE_S)
        with self._lock:
            if not self._closing:
                self._tell_all()
        self._stored.update(now=True)

    def _look(self) -> bool:
        """Take in the news and send them; tell whether the study has ended. Called with the lock held."""
        try:
            self._board.take(self._feed.news())
            self._board.learn(driven=driver_of(self._db, self._board.name) is not None)
            trouble = ""
        except Exception as err:  # noqa: BLE001  a viewer must outlive a file that is moved, locked or replaced
            trouble = f"{type(err).__name__}: {err}"
        if trouble != self.error:
            self.error = trouble
        if self.importance:
            self._estimator.look(self._board.phases_ended, self._board.frames)
            self._board.learn(importance=self._estimator.answers)
        if self._asked:
            self._asked = False
            self._tell_all()
        elif (delta := self._board.delta()) is not None:
            self._number += 1
            self._tell("delta", delta)
        else:
            self._tell("beat", ({}, []))
        return self._board.ended and not trouble

    def _heard(self, _: Any, content: Any, __: Any) -> None:
        """A view wants a snapshot, or asks something of the study. Runs on any thread the kernel likes: be brief."""
        kind = content.get("type") if isinstance(content, dict) else None
        if kind == "ask":
            self._ask(content)
        if kind != "snapshot":
            return
        self._asked = True
        self._wake.set()
        if not self.running:
            with self._lock:
                self._asked = False
                self._tell_all()

    def _switched(self) -> None:
        """Importance was switched; after the end of a study no look at the log is due any more."""
        if self.importance and not self.running:
            threading.Thread(target=self._estimate_late, name="importance", daemon=True).start()
        self._wake.set()

    def _estimate_late(self) -> None:
        self._estimator.wait()
        self._estimator.look(self._board.phases_ended, self._board.frames)
        self._estimator.wait()
        with self._lock:
            if not self._closing:
                self._board.learn(importance=self._estimator.answers)
                self._tell_all()

    def _ask(self, content: dict[str, Any]) -> None:
        """Put a wish into the study's inbox and say so; the answer will come by the log."""
        trial = content.get("trial")
        with self._lock:
            config = self._board.config(trial) if isinstance(trial, int) else None
        try:
            request = ask(self.controls, content, config)
        except (WorkbenchError, OSError) as err:
            self._say({"type": "refused", "why": str(err)})
        else:
            self._say({"type": "asked", "request": request, "action": content["action"], "trial": trial})
            self._wake.set()

    def _tell_all(self) -> None:
        self._board.take_as_sent()
        self._tell("snapshot", self._board.snapshot())

    def _tell(self, kind: str, message: Message) -> None:
        content, tables = message
        self._say({"type": kind, "number": self._number, **content}, tables)

    def _say(self, content: dict[str, Any], tables: list[bytes] | None = None) -> None:
        with contextlib.suppress(Exception):  # a kernel that shuts down closes the channel under us
            self.send(content, tables)


def listed(numbers: Iterable[int]) -> str:
    """Write trial numbers with their runs short, as the filter does.

    >>> listed([3, 9, 5, 6, 7])
    '3,5-7,9'
    """
    runs: list[list[int]] = []
    for n in sorted(set(numbers)):
        if runs and runs[-1][1] == n - 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
