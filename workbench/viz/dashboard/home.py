"""The studies of a knowledge base as a page to begin from: live, opened and compared by clicks."""

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import traitlets

from workbench.core.clock import SeenClock
from workbench.core.errors import StudyError, WorkbenchError
from workbench.core.ledger import Ledger, share_of
from workbench.core.places import DEFAULT_DB, db_path
from workbench.core.protocols import Kind
from workbench.core.record import size_of_record
from workbench.core.showing import titled
from workbench.knowledge import KnowledgeBase, RecordedStudy, driver_of, names_taken
from workbench.knowledge.frames import intervention_row
from workbench.knowledge.reader import Seen
from workbench.knowledge.remarks import tags_of
from workbench.knowledge.schema import Held
from workbench.viz.dashboard.board import Message
from workbench.viz.dashboard.comparison import Comparison
from workbench.viz.dashboard.dashboard import Dashboard
from workbench.viz.dashboard.derived import finite
from workbench.viz.dashboard.live import Live
from workbench.viz.dashboard.static import studies_table
from workbench.viz.figures import theme


class Home(Live):
    """All studies of a knowledge base, the newest first: one that is selected is opened, several are compared.

    Parameters
    ----------
    db : path, optional
        The knowledge base; one that is not there yet is waited for.
    refresh_s : float
        Seconds between two looks.

    Raises
    ------
    DatabaseError
        What is there is no knowledge base, or a damaged one.

    Attributes
    ----------
    selected : list of str
        Names of studies, set by clicks or from Python: of one the dashboard is shown, of several the comparison.
    filter : str
        Leaves the studies with all of these words in their name, state or settings, ``tag:good`` those with the tag.
    board : Dashboard, Comparison or None
        What is open.

    Examples
    --------
    >>> page = home()  # doctest: +SKIP
    >>> page.selected = ["monday", "tuesday"]  # doctest: +SKIP
    """

    selected = traitlets.List(traitlets.Unicode()).tag(sync=True)
    filter = traitlets.Unicode("").tag(sync=True)
    _kind = traitlets.Unicode("home").tag(sync=True)
    _shown = traitlets.Unicode("").tag(sync=True)  # the model of what is open

    def __init__(self, db: str | Path = DEFAULT_DB, *, refresh_s: float = 2.0) -> None:
        self._db = db_path(db)
        with suppress(Held):  # which is said and waited for, as where it comes later
            names_taken(self._db)  # refuses what is there and is no knowledge base
        self._kb: KnowledgeBase | None = None
        self._studies: dict[str, _Followed] = {}
        self._sent: list[dict[str, Any]] | None = None
        self._problem = ""  # why what is selected cannot be opened
        self.board: Dashboard | Comparison | None = None
        super().__init__(f"studies of {db}", refresh_s)
        self.observe(lambda _: self._switched(), ["selected"])

    # -- what it shows -------------------------------------------------------------------------------------------

    def _take(self) -> None:
        self._open()
        if self._kb is not None:
            self._studies = {name: self._followed(name, self._kb) for name in self._kb}
        if (rows := self._rows()) != self._sent:
            self._sent, self._asked = rows, True
        if self._problem:
            raise StudyError(self._problem)

    def _open(self) -> None:
        """Open the knowledge base once it is there, and anew where its file was deleted and another took its place."""
        if self._kb is not None and self._kb.replaced:
            self._kb.close()
            self._kb, self._studies = None, {}
        if self._kb is None and self._db.exists():
            self._kb = KnowledgeBase(self._db)

    def _followed(self, name: str, kb: KnowledgeBase) -> "_Followed":
        """Read what is new of a study; all of one that was begun under a name that had been deleted."""
        if (known := self._studies.get(name)) is not None:
            with suppress(StudyError):
                known.read()
                return known
        study = _Followed(kb[name], self._db)
        study.read()
        return study

    def _switched(self) -> None:
        """Open what is selected."""
        with self._lock:
            self._show(list(self.selected))
        self._wake.set()

    def _show(self, names: list[str]) -> None:
        """Open one study, or several beside one another; what was open is closed."""
        before, self.board = self.board, None
        self._problem = ""
        try:
            if names:
                self.board = Dashboard(self._db, names[0]) if len(names) == 1 else Comparison(self._db, *names)
        except WorkbenchError as err:
            self._problem = str(err)
        except Exception:  # noqa: BLE001  marimo makes no widget outside a cell
            words = f"{'Dashboard' if len(names) == 1 else 'Comparison'}({str(self._db)!r}, {str(names)[1:-1]})"
            self._problem = f"this notebook cannot open a view within a view: show {words} in a cell"
        self._shown = "" if self.board is None else f"anywidget:{self.board.model_id}"
        if before is not None:
            before.close()

    def _snapshot(self) -> Iterator[Message]:
        colors = {"states": theme.STATE_COLORS, "db": str(self._db)}
        yield {"studies": self._sent or [], **colors}, []

    def _html(self) -> str:
        names = ("title", "state", "trials", "phases", "best", "seconds", "began")
        called = {"title": "name", "best": "luckiest phase"}
        return studies_table({called.get(name, name): row[name] for name in names} for row in self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        return [study.row() for study in reversed(self._studies.values())]

    def _leave(self) -> None:
        if self.board is not None:
            self.board.close()
        if self._kb is not None:
            self._kb.close()


class _Followed:
    """What is told of one study: a fold of its events, without points."""

    def __init__(self, study: RecordedStudy, db: Path) -> None:
        self._study, self._db = study, db
        self._ledger = Ledger()
        self._seen: Seen | None = None
        self._asked: list[Mapping[str, Any]] = []
        self._driven = False
        self._clock, self._now = SeenClock(), 0.0

    def read(self) -> None:
        was_driven = self._is_driven()  # before: who leaves has a last word
        events, self._seen = self._study.events_since(self._seen)
        for event in events:
            self._ledger.see(event)
            self._clock.see(event)
            if event.kind is Kind.INTERVENTION:
                self._asked.append(intervention_row(event))
        self._ledger.pass_to(self._study.last_metric_s)
        self._driven = was_driven or self._is_driven()
        in_real_time = self._driven and not self._study.spec.get("simulated")
        self._now = self._clock.now(self._ledger.at, driven=in_real_time)

    def _is_driven(self) -> bool:
        return self._ledger.study == "running" and driver_of(self._db, self._study.name) is not None

    def row(self) -> dict[str, Any]:
        ledger, spec = self._ledger, self._study.spec
        size = size_of_record(spec, ledger.size)
        kinds = (spec.get(part) for part in ("scheduler", "trainable"))
        return {
            "name": self._study.name,
            "title": titled(self._study.name, spec),
            "state": ledger.standing(driven=self._driven),
            "trials": len(ledger),
            "phases": ledger.phases_ended,
            "expected": finite(ledger.expected_phases(size)),
            "share": share_of(ledger, size),
            "best": None if ledger.best is None else finite(ledger.best[0]),
            "seconds": round(self._now, 2),  # as of a dashboard: another rounding made another minute of it
            "began": time.strftime("%Y-%m-%d %H:%M %z", time.localtime(self._study.created_unix)),
            "what": " · ".join(str(kind.get("kind", "")) for kind in kinds if isinstance(kind, Mapping)),
            "tags": [*tags_of(self._asked).get(None, ())],
        }


def home(db: str | Path = DEFAULT_DB) -> Home:
    """Show the studies of a knowledge base; a click opens a study's dashboard, two ticks compare studies."""
    return Home(db)
