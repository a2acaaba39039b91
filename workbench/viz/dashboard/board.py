"""What every view of a study shows, kept up to date event by event, and what changed since viewers last heard."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from workbench.core.clock import SeenClock
from workbench.core.describe import explain_of
from workbench.core.errors import StudyError
from workbench.core.garbage import uncollected
from workbench.core.living import NO_SLOT, LivingSlots
from workbench.core.measured import one_line
from workbench.core.protocols import BEGUN, Event, Explain, Kind
from workbench.core.record import size_of_record, space_of_record
from workbench.core.showing import reason_text, titled
from workbench.core.size import Size
from workbench.core.space import CONFIG_ID, Space
from workbench.knowledge import Frames
from workbench.knowledge.frames import METRICS, SLOTS, SPANS, FrameReader
from workbench.viz.dashboard.derived import Fates, SlotTime, counted
from workbench.viz.dashboard.feed import Feed, News
from workbench.viz.dashboard.form import fields
from workbench.viz.dashboard.lines import Lines
from workbench.viz.dashboard.rates import NAMES
from workbench.viz.dashboard.reported import Reported
from workbench.viz.dashboard.spans import OUTCOMES, SpanTable
from workbench.viz.dashboard.trial_rows import TrialRows
from workbench.viz.figures import theme

_TICK_S = 1.0  # between two words on a clock that goes on with nothing else to tell
_AT_FIRST = 200  # trials that a viewer of a large study is told of before all others

Message = tuple[dict[str, Any], list[bytes]]
"""Content in JSON's types, and its float32 tables: spans [n, 7] and points [m, 5]."""


class Board:
    """A study as its viewers see it.

    `snapshot` gives all of it, `delta` what changed since the last delta. Tables travel as float32:
    spans as index, slot, trial, phase, started_s, ended_s (NaN while open), outcome (index into `OUTCOMES`);
    points as trial, x (seconds trained), score, end (whether the phase's last), frames (NaN: not told).

    Parameters
    ----------
    name : str
        The study.
    size : Size
        How large it is, as far as is known before its first event tells.
    explain : Explain, optional
        Puts its scheduler's reasons into words.
    title : str, optional
        The study for people to read, where that is more than its name.
    space : Space, optional
        What its configurations are points of, where that is known.
    simulated : bool
        Whether its time is not real, and stands between two events.

    Attributes
    ----------
    driven : bool
        Whether somebody drives the study, as far as is known.
    importance : list of dict
        What the forests say, as `workbench.analysis.forests.Answer`.
    ledger : Ledger
        What the events say of every trial, and what the study is after.
    rows : TrialRows
        The trials as the table has them.
    reported : Reported
        Their curves and rates.
    """

    def __init__(
        self,
        name: str,
        size: Size,
        explain: Explain = reason_text,
        *,
        title: str = "",
        space: Space | None = None,
        simulated: bool = False,
    ) -> None:
        self.name = name
        self.title = title or name
        self.space = space
        self._fields = fields(space)
        self._size = size
        self._simulated = simulated
        self.driven = True
        self._clock, self._now = SeenClock(), 0.0
        self._slots, self._waits = LivingSlots(), ""
        self._reader = FrameReader()
        self.ledger = self._reader.ledger
        self._spans = SpanTable(self._reader.spans)
        self._lines = Lines(self.ledger, explain)
        self.rows = TrialRows(self._reader, self._lines)
        self.reported = Reported(self.ledger)
        self._lines_sent = 0
        self._touched: set[int] = set()
        self._numbers: dict[str, Any] = {}  # what only events change
        self._meta: dict[str, Any] = {}  # too
        self._names: dict[str, None] = {}  # of hyperparameters, in the order they came
        self._phases_seen = 0
        self._phases_left: tuple[float, float] | None = None
        self._slot_time = SlotTime(self._reader, self._spans)
        self._usage = self._slot_time.now()
        self._fates = Fates(self.ledger)
        self.importance: list[dict[str, Any]] = []
        self._stale = True
        self._lacking = ""  # why events are
        self._sent: dict[str, Any] = {}  # the small things, as viewers know them

    def take(self, news: News) -> None:
        """Take in what is new in the log; points wait until there are no more to come.

        Raises
        ------
        StudyError
            Something could not be taken in, now or before: what came with it is lacking ever after.
        """
        if not self._lacking:
            try:
                self._take(news)
            except Exception as err:  # noqa: BLE001  whatever it was
                self._lacking = one_line(err)
        if self._lacking:
            raise StudyError(f"what is shown is not whole, for an event could not be taken in ({self._lacking})")

    def _take(self, news: News) -> None:
        if not (len(news.points) or news.events or self.reported.reading):
            return
        for event in news.events:
            self._event(event)
        if news.events:
            self._numbers, self._meta = {}, {}
            self._slot_time.take(news.events)
        if len(news.points):
            self.ledger.pass_to(news.points["at"].max())
        self.reported.take(news.points, more=news.more)
        self._stale |= bool(news.events) or not news.more

    @property
    def size(self) -> Size:
        """How large the study is."""
        return self.ledger.size or self._size

    def learn(self, *, driven: bool | None = None, importance: list[dict[str, Any]] | None = None) -> None:
        """Take in what the log does not tell: whether somebody drives the study, and what the forests say."""
        if driven is not None and driven != self.driven:
            self.driven, self._stale = driven, True
        if driven is not None:
            self._now = self._clock.now(self.ledger.at, driven=driven and not self._simulated)
            waits = NO_SLOT if driven and self._slots.lacking else ""
            self._stale |= waits != self._waits
            self._waits = waits
        if importance is not None and importance != self.importance:
            self.importance, self._stale = importance, True

    @property
    def stale(self) -> bool:
        """Whether there is something that viewers have not been sent."""
        return bool(self._stale or self._touched or self._lines.number > self._lines_sent)

    @property
    def ended(self) -> bool:
        """Whether the study has come to its end; an interrupted one may go on."""
        return self.ledger.study == "ended"

    def frames(self) -> Frames:
        """The documented frames, without metrics."""
        return self._reader.frames(pd.DataFrame(columns=METRICS))

    def state(self) -> dict[str, Any]:
        """Give the small things: counts, occupancy, survival, best scores, the clock."""
        if not self._numbers:
            self._numbers = counted(self._reader, self._fates, self.size)
            self._phases_left = self.ledger.phases_left(self.size)
            self._usage = self._slot_time.now()
        at, standing, usage = max(self.ledger.at, self._now), self.ledger.standing(driven=self.driven), self._usage
        running = standing == "running"
        occupied, idle = usage.shares(at)
        limit_s = self.ledger.left_s(at)
        return {
            **self._numbers,
            **self.rows.remarks(None),
            "importance": self.importance,
            "state": standing,
            "waits": self._waits if running else "",
            "reading": self.reported.reading,
            "at_s": round(at, 2),
            "occupancy": occupied,
            "idle": idle,
            "busy": [usage.running, usage.alive] if standing in ("running", "paused") else [0, 0],
            "left_s": usage.left_s(at, self._phases_left, limit_s) if running and self._phases_left else None,
            "frames_per_s": round(self.reported.rates.frames_per_s, 1) if running else 0.0,
        }

    def bars(self, most: int) -> tuple[pd.DataFrame, pd.DataFrame, int]:
        """Give the latest spans, at most so many, all slots, as `Frames` has them, and how many spans are left out."""
        spans, slots = self._reader.spans, self._reader.slots
        latest = pd.DataFrame(spans[-most:], columns=SPANS)
        return latest, pd.DataFrame(slots, columns=SLOTS), len(spans) - len(latest)

    def snapshot(self) -> Message:
        """Give everything a new viewer needs."""
        with uncollected():
            trials = self.rows.all()
        return {**self._head(), "trials": trials}, self._tables()

    def snapshot_in_parts(self) -> Iterator[Message]:
        """Give the same of a large study bit by bit: what head and first rows need, then, as a delta, the rest."""
        if len(self.ledger) <= _AT_FIRST:
            yield self.snapshot()
            return
        first = {*self.rows.leading(_AT_FIRST, "last_score")}
        if self.ledger.best is not None:  # it stands at the top
            first.add(self.ledger.best[1])
        yield {**self._head(), "partial": True, "trials": [self.rows.of(n) for n in first]}, [b"", b""]
        with uncollected():
            rest = [self.rows.of(n) for n in self.ledger.trials if n not in first]
        content = {"partial": False, "trials": rest, "log": [], "rates": [False, []]}
        yield content, self._tables()

    def _tables(self) -> list[bytes]:
        return [self._spans.all().tobytes(), self.reported.curves.all().tobytes()]

    def _head(self) -> dict[str, Any]:
        return {**self._small(), "rates": [True, self.reported.rates.samples], "log": self._lines.since(0)}

    def _small(self) -> dict[str, Any]:
        return {**self.state(), "meta": self.meta()}

    def delta(self) -> Message | None:
        """Give what changed since the last delta, and take it as sent; ``None`` if nothing did."""
        if not (self.stale or self._now >= self._sent.get("at_s", 0.0) + _TICK_S):
            return None
        spans = self._spans.changes()
        dropped, points = self.reported.curves.changes()
        small = self._small()
        content = {
            **{name: value for name, value in small.items() if name not in self._sent or value != self._sent[name]},
            "trials": [self.rows.of(number) for number in sorted(self._touched) if number in self.ledger],
            "log": self._lines.since(self._lines_sent),
            "void": self._lines.take_void(),
            "dropped": dropped,
            "rates": self.reported.rates.changes(),
        }
        self.take_as_sent(small)
        return content, [spans.tobytes(), points.tobytes()]

    def take_as_sent(self, small: dict[str, Any] | None = None) -> None:
        """Every viewer has all there is, by a snapshot say; `small`: the small things, where they are at hand."""
        self._sent = self._small() if small is None else small
        self.reported.take_as_sent()
        self._spans.changes()
        self._touched.clear()
        self._lines_sent = self._lines.number
        self._lines.take_void()
        self._stale = False

    # -- taking in --------------------------------------------------------------------------------------------

    def _event(self, event: Event) -> None:
        if event.kind in BEGUN:
            self._touched.update(self._reader.open_span)  # whose phases were lost with the driver before
        self._reader.read(event)
        self._clock.see(event)
        self._slots.see(event, self.ledger.n_in_the_way)
        self._fates.take(event)
        self._lines.take(event)
        self.rows.take(event)
        self.reported.see(event)
        if event.trial is not None:
            self._touched.add(event.trial)
            if event.kind is Kind.RUN:
                self._names |= dict.fromkeys(name for name in event.data["config"] if name != CONFIG_ID)
            else:
                self._phases_seen = max(self._phases_seen, 1 + (event.phase or 0))

    # -- telling ----------------------------------------------------------------------------------------------

    def meta(self) -> dict[str, Any]:
        """Give what changes rarely, as when a study is resumed with more trials: names, sizes, colours."""
        if self._meta:
            return self._meta
        n_phases = self.size.n_phases or max(1, self._phases_seen)
        n_greys = max(n_phases, self._phases_seen)  # of a trial that was extended, phases beyond those that were meant
        self._meta = {
            "name": self.title,
            "n_trials": self.size.n_trials,
            "may_be_fewer": self.size.may_be_fewer,
            "n_phases": self.size.n_phases,
            "expected": list(self.size.began),
            "minimum": list(self.size.fewest),
            "hyperparameters": list(self._names),
            "fields": self._fields,
            "states": theme.STATE_COLORS,
            "minimise": self.ledger.aim.mode == "min",  # the one place where the page reads the direction of scores
            "phases_on_light": theme.phase_greys(n_greys, dark=False),
            "phases_on_dark": theme.phase_greys(n_greys, dark=True),
            "outcomes": OUTCOMES,
            "rates": NAMES,
        }
        return self._meta


def board_of(name: str, feed: Feed) -> Board:
    """Make the board of a study by its record; what its feed gives is still to be taken in."""
    spec = feed.spec
    explain = explain_of(spec.get("scheduler"))
    size, space, simulated = size_of_record(spec), space_of_record(spec), bool(spec.get("simulated"))
    return Board(name, size, explain, title=titled(name, spec), space=space, simulated=simulated)
