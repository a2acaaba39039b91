"""What every view of a study shows, kept up to date event by event, and what changed since viewers last heard."""

import math
from collections import deque
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import pandas as pd

from workbench import analysis
from workbench.core.ledger import TrialState
from workbench.core.protocols import Config, Event, Explain, Kind
from workbench.core.showing import reason_text
from workbench.core.size import Size
from workbench.knowledge import Frames
from workbench.knowledge.frames import METRICS, SLOTS, SPANS, FrameReader
from workbench.viz.dashboard.feed import SCORE, News
from workbench.viz.dashboard.live_curves import LiveCurves
from workbench.viz.dashboard.rates import NAMES, Rates
from workbench.viz.dashboard.spans import OUTCOMES, SpanTable
from workbench.viz.dashboard.words import LIST_OF, LONGEST, line_of, why
from workbench.viz.figures import theme

_LIST_LINES = 300
_LIVES = ["slot", "joined_s", "lost_s"]

Message = tuple[dict[str, Any], list[bytes]]
"""Content in JSON's types, and its float32 tables: spans [n, 7] and points [m, 4]."""


class Board:
    """A study as its viewers see it.

    `snapshot` gives all of it, `delta` what changed since the last delta. Tables travel as float32:
    spans as index, slot, trial, phase, started_s, ended_s (NaN while open), outcome (index into `OUTCOMES`);
    points as trial, x (seconds trained), score, end (whether the phase's last).

    Parameters
    ----------
    name : str
        The study.
    size : Size
        How large it is, as far as is known before its first event tells.
    explain : Explain, optional
        Puts its scheduler's reasons into words.
    expected, minimum : sequence of float, optional
        Trials expected to begin each phase, and the fewest that can, instead of what the size tells.
    """

    def __init__(
        self,
        name: str,
        size: Size,
        explain: Explain = reason_text,
        *,
        expected: Sequence[float] = (),
        minimum: Sequence[float] = (),
    ) -> None:
        self.name = name
        self._given = expected, minimum
        self._size = size
        self._explain = explain
        self.curves = LiveCurves()
        self.rates = Rates()
        self._reader = FrameReader()
        self._ledger = self._reader.ledger
        self._spans = SpanTable(self._reader.spans)
        self._last_word: dict[int, Event] = {}  # by trial: its last verdict, or that a person stopped it
        self._lists = {name: deque[tuple[int, Event]](maxlen=_LIST_LINES) for name in ("decisions", "troubles")}
        self._lines = 0  # so far, of both lists
        self._lines_sent = 0
        self._touched: set[int] = set()
        self._slow: dict[str, Any] = {}  # what only events change
        self._importance: dict[str, Any] | None = None
        self._stale = True

    def take(self, news: News) -> None:
        """Take in what is new in the log."""
        points = news.points
        if not len(points) and not news.events:
            return
        if news.events:
            self._slow = {}
        for event in news.events:
            self._event(event)
        if len(points):
            self._ledger.at = max(self._ledger.at, float(points["at"].max()))
        self.curves.take(points[points["name"] == SCORE])
        self.rates.take(points, self._ledger.at)
        self._stale = True

    @property
    def size(self) -> Size:
        """How large the study is."""
        return self._ledger.size or self._size

    @property
    def importance(self) -> dict[str, Any] | None:
        """What the forests say, if they were asked: rows and words."""
        return self._importance

    @importance.setter
    def importance(self, found: dict[str, Any] | None) -> None:
        if found is not self._importance:
            self._importance, self._stale = found, True

    @property
    def phases_ended(self) -> int:
        """Phases that ended so far."""
        return self._ledger.phases_ended

    @property
    def ended(self) -> bool:
        """Whether the study has come to its end; an interrupted one may go on."""
        return self._ledger.study == "ended"

    def config(self, trial: int) -> Config | None:
        """Give a trial's hyperparameters; ``None`` if there is no such trial."""
        return self._ledger.trials[trial].config if trial in self._ledger else None

    def frames(self) -> Frames:
        """The documented frames, without metrics."""
        return self._reader.frames(pd.DataFrame(columns=METRICS))

    def state(self) -> dict[str, Any]:
        """Give the small things, those sent whole each time: counts, occupancy, survival, best scores, the clock."""
        if not self._slow:
            self._slow = self._derive()
        ended = self._slow["phases_ended"]
        expected = self.size.expected_phases
        at, running = self._ledger.at, self._ledger.study == "running"
        eta = at / ended * max(expected - ended, 0.0) if running and ended and expected else None
        return {
            **self._slow,
            "state": self._ledger.study,
            "importance": self._importance,
            "at_s": round(at, 2),
            "eta_s": None if eta is None else round(eta, 1),
            "frames_per_s": round(self.rates.frames_per_s, 1),
        }

    def bars(self, most: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Give the latest spans, at most so many, and all slots, as in `workbench.knowledge.Frames`."""
        return pd.DataFrame(self._reader.spans[-most:], columns=SPANS), pd.DataFrame(self._reader.slots, columns=SLOTS)

    def snapshot(self) -> Message:
        """Give everything a new viewer needs."""
        content = {
            **self.state(),
            "meta": self._meta(),
            "rates": [True, self.rates.samples],
            "trials": [self._trial(number) for number in self._ledger.trials],
            "log": self._log_since(0),
        }
        return content, [self._spans.all().tobytes(), self.curves.all().tobytes()]

    def delta(self) -> Message | None:
        """Give what changed since the last delta, and take it as sent; ``None`` if nothing did."""
        if not (self._stale or self._touched or self._lines > self._lines_sent):
            return None
        spans = self._spans.changes()
        dropped, points = self.curves.changes()
        content = {
            **self.state(),
            "trials": [self._trial(number) for number in sorted(self._touched) if number in self._ledger],
            "log": self._log_since(self._lines_sent),
            "dropped": dropped,
            "rates": self.rates.changes(),
        }
        self.take_as_sent()
        return content, [spans.tobytes(), points.tobytes()]

    def take_as_sent(self) -> None:
        """Every viewer has all there is, by a snapshot say."""
        self.curves.take_as_sent()
        self.rates.changes()
        self._spans.changes()
        self._touched.clear()
        self._lines_sent = self._lines
        self._stale = False

    # -- taking in --------------------------------------------------------------------------------------------

    def _event(self, event: Event) -> None:
        self._reader.read(event)
        self._write_down(event)
        if event.trial is None:
            return
        self._touched.add(event.trial)
        if event.kind is Kind.PHASE_STARTED:
            self.curves.start(event.trial, event.phase or 0, event.at)
            self.rates.join(event.trial)
        elif event.kind is Kind.PHASE_ENDED:
            self.curves.end(event.trial, event.phase or 0, event.at, float(event.data["score"]))
        off_slot = event.kind is Kind.DECISION and event.data.get("verdict") != "continue"
        if off_slot or event.kind in (Kind.PHASE_FAILED, Kind.TRIAL_FAILED, Kind.TRIAL_STOPPED):
            self.rates.drop(event.trial, event.at)

    def _write_down(self, event: Event) -> None:
        """Keep the event, if it makes a line of a list, and the last word on its trial; put into words when told."""
        if event.kind in (Kind.DECISION, Kind.TRIAL_STOPPED) and event.trial is not None:
            if event.kind is Kind.DECISION and self._ledger.trials[event.trial].mode == "person":
                return  # the scheduler, told that a person stopped the trial, agrees
            self._last_word[event.trial] = event
        where = LIST_OF.get(event.kind)
        if where is not None:
            self._lines += 1
            self._lists[where].append((self._lines, event))

    # -- telling ----------------------------------------------------------------------------------------------

    def _meta(self) -> dict[str, Any]:
        names: dict[str, None] = {}
        for trial in self._ledger.trials.values():
            names |= dict.fromkeys(trial.config)
        return {
            "name": self.name,
            "n_trials": self.size.n_trials,
            "n_phases": self.size.n_phases,
            "expected": list(self._given[0] or self.size.began),
            "minimum": list(self._given[1] or self.size.fewest),
            "hyperparameters": list(names),
            "states": theme.STATE_COLORS,
            "phase_colors": theme.phase_colors(self.size.n_phases or self._phases_begun()),
            "outcomes": OUTCOMES,
            "rates": NAMES,
        }

    def _derive(self) -> dict[str, Any]:
        """What only events change. Narrow tables: of a large study whole frames would take most of a second."""
        trials, phases, decisions = self._tables()
        survival = analysis.survival(trials, phases, decisions, self.size.n_phases)
        slots = self._reader.slots
        alive = [r for r in slots if "lost_s" not in r]
        busy = {span["slot"] for span in self._reader.open_span.values() if span["outcome"] == "running"}
        lives = pd.DataFrame([(r["slot"], r["joined_s"], r.get("lost_s")) for r in slots], columns=_LIVES)
        used = analysis.occupancy(self._spans.frame(), lives, self._ledger.at)
        return {
            "trials_started": len(trials),
            "trials_ended": self._ledger.n_over,
            "phases_ended": self._ledger.phases_ended,
            "expected_phases": self.size.expected_phases,
            "occupancy": None if math.isnan(used.share) else round(used.share, 4),
            "idle": None if math.isnan(used.share) else round(used.idle / used.alive, 4),
            "busy": [sum(r["slot"] in busy for r in alive), len(alive)],
            "slots": [[r["slot"], r["node"], r["joined_s"], r.get("lost_s")] for r in slots],
            "paused": self._ledger.paused,
            "failures": self._failures(),
            "survival": [{k: None if v != v else v for k, v in row.items()} for row in survival.to_dict("records")],
            "best": analysis.best_so_far(phases, self._ledger.aim.mode).to_numpy().tolist(),
        }

    def _failures(self) -> list[str]:
        ledger = self._ledger
        failed = [(n, TrialState.FAILED.value, ledger.trials[n].error) for n in ledger.in_state(TrialState.FAILED)]
        return analysis.failure_lines(pd.DataFrame(failed, columns=["trial", "state", "error"], dtype=object))

    def _tables(self) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        """Trials, phases and decisions, with the columns that `_derive` needs; words stay as they are, for speed."""
        reader = self._reader
        trials = [(number, trial.standing, trial.mode) for number, trial in self._ledger.trials.items()]
        phases = [(r["trial"], r["phase"], r.get("ended_s"), r.get("score")) for r in reader.phases.values()]
        decisions = [(r["trial"], r["phase"], r["verdict"], r["mode"], r["reason"]) for r in reader.decisions]
        return (
            pd.DataFrame(trials, columns=["trial", "state", "mode"], dtype=object),
            pd.DataFrame(phases, columns=["trial", "phase", "ended_s", "score"]),
            pd.DataFrame(decisions, columns=["trial", "phase", "verdict", "mode", "reason"], dtype=object),
        )

    def _log_since(self, n: int) -> list[dict[str, Any]]:
        """Put into words the lines after the n-th, those that are kept."""
        kept = (line for lines in self._lists.values() for line in lines if line[0] > n)
        return [{**line_of(event, self._explain), "n": k} for k, event in sorted(kept, key=itemgetter(0))]

    def _why(self, trial: int) -> str:
        event = self._last_word.get(trial)
        if event is None:
            return ""
        return "stopped by a person" if event.kind is Kind.TRIAL_STOPPED else why(event.data, self._explain)[:LONGEST]

    def _trial(self, number: int) -> dict[str, Any]:
        trial = self._ledger.trials[number]
        return {
            "trial": number,
            "state": trial.standing,
            "phases": trial.phases,
            "last": _number(trial.last_score),
            "best": _number(trial.best_score),
            "parent": trial.parent,
            "why": self._why(number),
            "error": (trial.error or "")[:LONGEST],
            "config": trial.config,
        }

    def _phases_begun(self) -> int:
        return 1 + max((phase for _, phase in self._reader.phases), default=0)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None
