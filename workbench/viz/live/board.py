"""What every view of a study shows, kept up to date event by event, and what changed since viewers last heard."""

import math
from collections import deque
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from workbench import analysis
from workbench.core.protocols import Config, Event, Kind
from workbench.knowledge import Frames
from workbench.knowledge.frames import METRICS, TRIALS, FrameReader
from workbench.viz import theme
from workbench.viz.live.curves import Curves
from workbench.viz.live.feed import FRAMES, SCORE, MetricPoint
from workbench.viz.live.plan import Plan
from workbench.viz.live.rates import NAMES, Rates
from workbench.viz.live.words import line_of

OUTCOMES = ["running", "ended", "lost", "held", "stopped"]
MOST_POINTS = 60_000
_LIST_LINES = 300

Message = tuple[dict[str, Any], list[bytes]]
"""Content in JSON's types, and its float32 tables: spans [n, 7] and points [m, 4]."""


class Board:
    """A study as its viewers see it.

    `snapshot` gives all of it, `delta` what changed since the last delta. Tables travel as float32:
    spans as index, slot, trial, phase, started_s, ended_s (NaN while open), outcome (index into `OUTCOMES`);
    points as trial, x (seconds trained), score, end (whether the phase's last).
    """

    def __init__(self, name: str, plan: Plan) -> None:
        self.name = name
        self.plan = plan
        self.curves = Curves()
        self.rates = Rates()
        self._reader = FrameReader()
        self._pace: dict[int, tuple[float, float, float]] = {}  # trial → frames, at_s, frames a second
        self._why: dict[int, str] = {}
        self._lists = {name: deque[dict[str, Any]](maxlen=_LIST_LINES) for name in ("decisions", "troubles")}
        self._lines_new: list[dict[str, Any]] = []
        self._lines = 0  # written so far
        self._paused = False  # whether a person has paused the study
        self._touched: set[int] = set()
        self._open_sent: set[int] = set()  # spans that viewers know as not over
        self._spans_sent = 0
        self._slow: dict[str, Any] = {}  # what only events change
        self._importance: dict[str, Any] | None = None
        self._stale = True

    def take(self, news: Iterable[Event | MetricPoint]) -> None:
        """Take in what the log has to say, in order of time."""
        for item in news:
            if isinstance(item, MetricPoint):
                self._point(item)
            else:
                self._event(item)

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
        return sum(row["phases"] for row in self._reader.trials.values())

    @property
    def ended(self) -> bool:
        """Whether the study has come to its end; an interrupted one may go on."""
        return self._reader.state == "ended"

    def config(self, trial: int) -> Config | None:
        """Give a trial's hyperparameters; ``None`` if there is no such trial."""
        row = self._reader.trials.get(trial)
        return None if row is None else {key: value for key, value in row.items() if key not in TRIALS}

    def frames(self) -> Frames:
        """The documented frames, without metrics."""
        return self._reader.frames(pd.DataFrame(columns=METRICS))

    def snapshot(self) -> Message:
        """Give everything a new viewer needs."""
        spans = _span_table(self._reader.spans, range(len(self._reader.spans)))
        content = {
            **self._state(),
            "meta": self._meta(),
            "rates": [True, self.rates.samples],
            "trials": [self._trial(number) for number in self._reader.trials],
            "log": sorted((line for lines in self._lists.values() for line in lines), key=itemgetter("n")),
        }
        return content, [spans.tobytes(), self.curves.all(MOST_POINTS).tobytes()]

    def delta(self) -> Message | None:
        """Give what changed since the last delta, and take it as sent; ``None`` if nothing did."""
        if not (self._stale or self._touched or self._lines_new):
            return None
        new = set(range(self._spans_sent, len(self._reader.spans)))
        spans = _span_table(self._reader.spans, sorted(new | self._closed()))
        dropped, points = self.curves.changes()
        content = {
            **self._state(),
            "trials": [self._trial(number) for number in sorted(self._touched) if number in self._reader.trials],
            "log": self._lines_new,
            "dropped": dropped,
            "rates": self.rates.changes(),
        }
        self.take_as_sent()
        return content, [spans.tobytes(), points.tobytes()]

    def take_as_sent(self) -> None:
        """Every viewer has all there is, by a snapshot say."""
        self.curves.take_as_sent()
        self.rates.changes()
        self._spans_sent = len(self._reader.spans)
        self._open_sent = {k for k, span in enumerate(self._reader.spans) if _is_open(span)}
        self._touched.clear()
        self._lines_new = []
        self._stale = False

    # -- taking in --------------------------------------------------------------------------------------------

    def _point(self, point: MetricPoint) -> None:
        self._reader.at = max(self._reader.at, point.at)
        self._stale = True
        if point.name == SCORE:
            self.curves.add(point.trial, point.phase, point.at, point.value)
        elif point.name == FRAMES:
            self._follow(point)
        else:
            self.rates.add(point.trial, point.at, point.name, point.value)

    def _follow(self, point: MetricPoint) -> None:
        """Keep the pace at which a trial's frames, counted since it began, grow."""
        before, since, rate = self._pace.get(point.trial, (point.value, point.at, 0.0))
        if point.at > since and point.value >= before:  # it falls when a trial goes back to its checkpoint
            rate = (point.value - before) / (point.at - since)
        self._pace[point.trial] = (point.value, point.at, rate)
        self.rates.add(point.trial, point.at, "frames_per_s", rate)

    def _event(self, event: Event) -> None:
        self._reader.read(event)
        self._stale = True
        self._slow = {}
        self._write_down(event)
        if event.kind is Kind.INTERVENTION and event.data.get("accepted") and event.trial is None:
            self._paused = {"pause study": True, "resume study": False}.get(str(event.data["action"]), self._paused)
        if event.trial is None:
            return
        self._touched.add(event.trial)
        if event.kind is Kind.PHASE_STARTED:
            self.curves.start(event.trial, event.phase or 0, event.at)
        elif event.kind is Kind.PHASE_ENDED:
            self.curves.end(event.trial, event.phase or 0, event.at, float(event.data["score"]))
        off_slot = event.kind is Kind.DECISION and event.data.get("verdict") != "continue"
        if off_slot or event.kind in (Kind.PHASE_FAILED, Kind.TRIAL_FAILED, Kind.TRIAL_STOPPED):
            self._pace.pop(event.trial, None)
            self.rates.drop(event.trial, event.at)

    def _write_down(self, event: Event) -> None:
        """Keep the event's line, if it has one, and why the trial's last verdict fell."""
        by_hand = event.trial is not None and self._reader.trials[event.trial].get("mode") == "person"
        if event.kind is Kind.TRIAL_STOPPED and event.trial is not None:
            self._why[event.trial] = "stopped by a person"
        if event.kind is Kind.DECISION and by_hand:
            return  # the scheduler, told that a person stopped the trial, agrees
        line = line_of(event)
        if line is None:
            return
        line["n"] = self._lines = self._lines + 1
        self._lists[line["list"]].append(line)
        self._lines_new.append(line)
        if event.kind is Kind.DECISION and event.trial is not None:
            self._why[event.trial] = line["why"]

    # -- telling ----------------------------------------------------------------------------------------------

    def _meta(self) -> dict[str, Any]:
        names: dict[str, None] = {}
        for row in self._reader.trials.values():
            names |= dict.fromkeys(key for key in row if key not in TRIALS)
        return {
            "name": self.name,
            "n_trials": self.plan.n_trials,
            "n_phases": self.plan.n_phases,
            "expected": list(self.plan.expected),
            "minimum": list(self.plan.minimum),
            "hyperparameters": list(names),
            "states": theme.STATE_COLORS,
            "phase_colors": theme.phase_colors(self.plan.n_phases or self._phases_begun()),
            "outcomes": OUTCOMES,
            "rates": NAMES,
        }

    def _state(self) -> dict[str, Any]:
        """The small things, sent whole each time."""
        if not self._slow:
            self._slow = self._derive()
        ended = self._slow["phases_ended"]
        expected = self.plan.expected_phases
        at, running = self._reader.at, self._reader.state == "running"
        eta = at / ended * max(expected - ended, 0.0) if running and ended and expected else None
        return {
            **self._slow,
            "state": self._reader.state,
            "importance": self._importance,
            "at_s": round(at, 2),
            "eta_s": None if eta is None else round(eta, 1),
            "frames_per_s": round(sum(rate for _, _, rate in self._pace.values()), 1),
        }

    def _derive(self) -> dict[str, Any]:
        frames = self.frames()
        phases, trials = frames.phases, frames.trials
        survival = analysis.survival(trials, phases, frames.decisions, self.plan.n_phases)
        reports = analysis.phase_modes(frames.decisions).set_index("phase")[["reported", "collecting_reports"]]
        survival = survival.join(reports, on="phase")
        best = analysis.best_so_far(phases)
        share = analysis.occupancy(frames.spans, frames.slots, self._reader.at).share
        return {
            "trials_started": len(trials),
            "trials_ended": int(trials["state"].isin(["stopped", "finished", "failed"]).sum()),
            "phases_ended": int(phases["ended_s"].notna().sum()),
            "expected_phases": self.plan.expected_phases,
            "occupancy": None if math.isnan(share) else round(share, 4),
            "slots": [[r["slot"], r["node"], r["joined_s"], r.get("lost_s")] for r in self._reader.slots],
            "paused": self._paused,
            "survival": survival.astype(object).where(survival.notna(), None).to_dict("records"),
            "best": best.to_numpy().tolist(),
        }

    def _trial(self, number: int) -> dict[str, Any]:
        row = self._reader.trials[number]
        return {
            "trial": number,
            "state": row["state"],
            "phases": row["phases"],
            "last": _number(row.get("last_score")),
            "best": _number(row.get("best_score")),
            "parent": row.get("parent"),
            "why": self._why.get(number, ""),
            "error": str(row.get("error") or "")[:500],
            "config": self.config(number),
        }

    def _closed(self) -> set[int]:
        return {k for k in self._open_sent if not _is_open(self._reader.spans[k])}

    def _phases_begun(self) -> int:
        return 1 + max((phase for _, phase in self._reader.phases), default=0)


def _span_table(spans: list[dict[str, Any]], which: Iterable[int]) -> npt.NDArray[np.float32]:
    rows = [
        (
            k,
            -1 if s["slot"] is None else s["slot"],
            s["trial"],
            s["phase"],
            s["started_s"],
            s.get("ended_s", math.nan),
            OUTCOMES.index(s["outcome"]),
        )
        for k, s in ((k, spans[k]) for k in which)
    ]
    return np.array(rows, np.float32).reshape(-1, 7)


def _is_open(span: Mapping[str, Any]) -> bool:
    return math.isnan(span.get("ended_s", math.nan))


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None
