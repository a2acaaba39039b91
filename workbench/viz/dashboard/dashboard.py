"""The live dashboard: one widget, one thread that looks at the log, any number of views."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import traitlets

from workbench.core.errors import WorkbenchError
from workbench.core.garbage import uncollected
from workbench.knowledge import Controls
from workbench.viz.dashboard.asking import ask
from workbench.viz.dashboard.board import Message, board_of
from workbench.viz.dashboard.estimator import Estimator
from workbench.viz.dashboard.explored import Explored
from workbench.viz.dashboard.feed import Feed
from workbench.viz.dashboard.static import static_html

_AT_ONCE = 20_000  # events: a longer log is not waited for where a dashboard is made


@dataclass(frozen=True)
class Still:
    """A study at one moment, as HTML and as text."""

    html: str
    text: str

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return self.text


class Dashboard(Explored):
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
        Why the log cannot be read, or shown, at the moment; empty when all is well.

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

    importance = traitlets.Bool(True).tag(sync=True)

    def __init__(self, db: str | Path, name: str, *, refresh_s: float = 0.5) -> None:
        self._feed = Feed(db, name)
        self._board = board_of(name, self._feed)
        self._viewed = False  # whether any view has been told of the study
        self._is_read = False
        if self._feed.n_events <= _AT_ONCE:
            self._read()
        self.controls = Controls(db, name)
        self._estimator = Estimator()
        super().__init__(self._board.title, refresh_s)
        self.observe(lambda _: self._wake.set(), ["importance"])

    def still(self) -> "Still":
        """Picture the study as it stands now, without a widget: it outlives the kernel in a stored notebook."""
        with self._lock:
            if self._unseen:
                self._look()
            return Still(self._html(), f"{self._board.title}: {self._board.state()['state']}")

    # -- what it shows -------------------------------------------------------------------------------------------

    def _read(self) -> None:
        """Read what had been logged before; whoever needs it first, with the lock held."""
        if self._is_read:
            return
        with uncollected():
            self._board.take(self._feed.news())
        self._board.learn(driven=self._feed.driven)
        if not self._viewed:
            self._board.take_as_sent()  # a viewer begins with a snapshot
        self._is_read = True

    def _take(self) -> None:
        self._read()
        if self._asked and self._board.reported.reading:  # whoever waits is told what is known; the points follow
            self._wake.set()
            return
        news = self._feed.news()
        self._board.take(news)
        if news.more and self._viewed:  # until then they do not hold up the view that comes
            self._wake.set()
        self._board.learn(driven=self._feed.driven)
        if self.importance and not self._board.reported.reading:  # its tables take a while
            self._estimator.look(self._board.ledger, self._board.frames)
            self._board.learn(importance=self._estimator.answers)

    def _snapshot(self) -> Iterator[Message]:
        self._viewed = True
        self._board.take_as_sent()
        return self._board.snapshot_in_parts()

    def _delta(self) -> Message | None:
        return self._board.delta()

    def _html(self) -> str:
        self._read()
        return static_html(self._board)

    def _is_over(self) -> bool:
        return self._board.ended and not self._board.reported.reading

    def _leave(self) -> None:
        self._feed.close()
        self._estimator.close()

    def _ask(self, content: dict[str, Any]) -> None:
        """Put a wish into the study's inbox and say so; the answer will come by the log."""
        trial = content.get("trial")
        try:
            with self._lock:
                self._read()
                known = self._board.ledger.trials.get(trial) if isinstance(trial, int) else None
                config = None if known is None else known.config
            request = ask(self.controls, content, config, self._board.space)
        except (WorkbenchError, OSError) as err:
            self._wire.say({"type": "refused", "why": str(err)})
        else:
            self._wire.say({"type": "asked", "request": request, "action": content["action"], "trial": trial})
            self._wake.set()
