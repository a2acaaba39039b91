"""Documented pandas frames, derived from a study's events. `docs/log.md` lists every column with its unit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from workbench.core.aim import Aim
from workbench.core.errors import unknown
from workbench.core.ledger import Ledger, TrialState, standing_in
from workbench.core.protocols import RESERVED_METRICS, Config, Event, Kind
from workbench.core.size import Size
from workbench.core.space import CONFIG_ID
from workbench.knowledge.remarks import notes_of, tags_of
from workbench.knowledge.sheets import with_json, write_frame

TRIALS = [
    "trial",
    "state",
    "phases",
    "last_score",
    "best_score",
    "started_s",
    "ended_s",
    "parent",
    "parent_phase",
    "candidate",
    "confirms",
    "seed",
    "mode",
    "error",
]
_IN_RECORD = [name for name in TRIALS if name not in ("trial", "state", "parent")]  # so named in a `TrialRecord`
PHASES = ["trial", "phase", "slot", "node", "started_s", "ended_s", "wall_s", "score", "retries"]
SPANS = ["slot", "node", "trial", "phase", "started_s", "ended_s", "outcome"]
DECISIONS = ["at_s", "trial", "phase", "verdict", "mode", "reason"]
METRICS = ["seq", "trial", "phase", "at_s", "name", "value"]
INTERVENTIONS = ["at_s", "trial", "action", "accepted", "why", "by", "data"]
SLOTS = ["slot", "node", "joined_s", "lost_s"]
RESERVED = frozenset({*TRIALS, "phase", "score", "trials", "step", "member", "founder", "previous", "copied", "study"})
"""What no hyperparameter may be called: columns of the tables that it would stand in."""
_DICTS = {"decisions": "reason", "interventions": "data"}  # frame → its column of dicts
FRAMES = ["trials", "phases", "spans", "decisions", "interventions", "metrics", "slots"]
_REMARKS = ["tags", "notes"]  # read off the interventions when they are asked for


@dataclass(frozen=True)
class Frames:
    """A study as tables. Times are seconds on the study's clock (see `Event.at`).

    Attributes
    ----------
    trials : DataFrame
        One row a trial: trial, state (running, held, paused, stopped, failed, finished, set aside by a person, who may
        have paused the whole study, or cut off where its study no longer runs), phases (completed), last_score,
        best_score, started_s, ended_s, parent, parent_phase (the phase whose checkpoint of the parent's it began with;
        NaN where it began with none), candidate (the trial's own number; of several seeds of one configuration, the
        candidate they are judged as), confirms (whether it repeats its candidate with a fresh seed, after the search),
        seed, mode (of the last decision), error (with its place in the user's code, where that is known); then a
        column a hyperparameter.
    phases : DataFrame
        One row a phase begun: trial, phase, slot, node, started_s, ended_s (NaN while it runs), wall_s, score,
        retries (attempts lost, but for those called ``left``); then a column a metric the phase returned (frames, pps,
        …).
    spans : DataFrame
        One row a stretch of a slot's time given to one trial: slot, node, trial, phase, started_s, ended_s, outcome
        (running, ended, lost, held, stopped). Time not covered is idle.
    decisions : DataFrame
        One row a verdict: at_s, trial, phase, verdict, mode, reason (a dict: rank, threshold, …).
    interventions : DataFrame
        One row a request of a person: at_s, trial, action, accepted, why (it was refused), by, data (a dict).
    metrics : DataFrame
        One row a point: seq, trial, phase, at_s, name, value.
    slots : DataFrame
        One row a stretch of a slot's life: slot, node, joined_s, lost_s (NaN while it lives).
    state : str
        running, paused, ended, interrupted, or abandoned: its driver died without a word.
    wall_s : float
        Seconds from the first event to the last, or to the last metric point where that came later.
    size : Size or None
        How large the study was meant to be, as its first event tells; ``None`` where it does not, in older logs.
    aim : Aim
        Whether scores are maximised or minimised, and what else the study was after.
    why_over : str
        What ended it before its scheduler was done: a target, a limit; empty if nothing did.
    configs : Mapping
        Trial → its hyperparameters as they were logged: in `trials` whole numbers are fractions where some trials have
        none.
    """

    trials: pd.DataFrame
    phases: pd.DataFrame
    spans: pd.DataFrame
    decisions: pd.DataFrame
    interventions: pd.DataFrame
    metrics: pd.DataFrame
    slots: pd.DataFrame
    state: str
    wall_s: float
    size: Size | None = None
    aim: Aim = field(default_factory=Aim)
    why_over: str = ""
    configs: Mapping[int, Config] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        rows = ", ".join(f"{name} {len(getattr(self, name))}" for name in FRAMES)
        return f"Frames({self.state}, {self.wall_s:.4g} s; rows: {rows})"

    @property
    def searched(self) -> pd.DataFrame:
        """`phases` without those of trials that confirm others, which are no part of the search."""
        confirming = self.trials.loc[self.trials["confirms"].astype(bool), "trial"]
        return self.phases[~self.phases["trial"].isin(confirming)]

    @property
    def hyperparameters(self) -> list[str]:
        """Names of the columns of `trials` that hold the configuration, its number in a table of curves left out."""
        return [name for name in self.trials.columns if _is_hyperparameter(name)]

    @property
    def tags(self) -> pd.DataFrame:
        """The tags that stand, a row each: trial (missing where the whole study bears it), tag, at_s."""
        by_trial = tags_of(self.interventions.to_dict("records"))
        rows = [(trial, tag, at_s) for trial, tags in by_trial.items() for tag, at_s in tags.items()]
        return pd.DataFrame(rows, columns=["trial", "tag", "at_s"]).astype({"trial": "Int64"})

    @property
    def notes(self) -> pd.DataFrame:
        """What people noted, a row each: trial (missing where it is on the whole study), at_s, text, by."""
        by_trial = notes_of(self.interventions.to_dict("records"))
        rows = [(trial, *note.values()) for trial, notes in by_trial.items() for note in notes]
        return pd.DataFrame(rows, columns=["trial", "at_s", "text", "by"]).astype({"trial": "Int64"})

    def export(self, folder: str | Path, format: Literal["csv", "parquet"] = "csv") -> list[Path]:  # noqa: A002
        """Write every frame to a file of its own, ``trials.csv`` and so on; files already there are replaced.

        Parameters
        ----------
        folder : path
            Made if it is missing.
        format : {"csv", "parquet"}
            Columns that hold a dict become JSON. In Parquet, whose columns have one type each, those that hold several,
            or whole numbers beyond 64 bits, become text.
        """
        if format not in ("csv", "parquet"):
            raise unknown("format", str(format), ("csv", "parquet"))
        target = Path(folder)
        names = [*FRAMES, *_REMARKS]
        written = [target / f"{name}.{format}" for name in names]
        for name, path in zip(names, written, strict=True):
            frame: pd.DataFrame = getattr(self, name)
            write_frame(frame if name not in _DICTS else with_json(frame, _DICTS[name]), path)
        return written


def frames_of(events: Sequence[Event], metrics: pd.DataFrame | None = None, *, driven: bool = True) -> Frames:
    """Derive all frames from events in order, and from metric points if there are any; `driven`: by somebody, now."""
    reader = FrameReader()
    for event in events:
        reader.read(event)
    return reader.frames(pd.DataFrame(columns=METRICS) if metrics is None else metrics, driven=driven)


@dataclass
class FrameReader:
    """Goes through a study's events in order, once, keeping what a row needs; frames can be taken at any moment."""

    ledger: Ledger = field(default_factory=Ledger)
    phases: dict[tuple[int, int], dict[str, Any]] = field(default_factory=dict)
    spans: list[dict[str, Any]] = field(default_factory=list)
    decisions: list[Event] = field(default_factory=list)
    interventions: list[dict[str, Any]] = field(default_factory=list)
    slots: list[dict[str, Any]] = field(default_factory=list)
    nodes: dict[int, str] = field(default_factory=dict)
    workers: dict[int, int] = field(default_factory=dict)  # of each slot: a gang's has several
    open_span: dict[int, dict[str, Any]] = field(default_factory=dict)  # trial → its span under way

    def read(self, event: Event) -> None:
        """Take in the next event."""
        self.ledger.see(event)
        match event.kind:
            case Kind.PHASE_STARTED:
                self._phase_started(event)
            case Kind.PHASE_ENDED:
                self._phase_ended(event)
            case Kind.DECISION:
                self._decision(event)
            case Kind.PHASE_FAILED | Kind.TRIAL_FAILED:
                if self._close_span(event, "lost") and event.data.get("why") != "left":  # which costs no attempt
                    self.phases[event.trial, event.phase]["retries"] += 1  # type: ignore[index]
            case Kind.TRIAL_STOPPED:
                self._close_span(event, "stopped")
            case Kind.INTERVENTION:
                self.interventions.append(intervention_row(event))
            case Kind.SLOT_JOINED:
                self.nodes[event.slot] = event.data["node"]  # type: ignore[index]
                self.workers[event.slot] = event.data.get("workers", 1)  # type: ignore[index]
                self.slots.append({"slot": event.slot, "node": event.data["node"], "joined_s": event.at})
            case Kind.SLOT_LOST:
                self._slot_lost(event)
            case Kind.STUDY_STARTED | Kind.STUDY_RESUMED:
                self._left_under_way(event)
                for row in self.slots:
                    row.setdefault("lost_s", event.at)
            case Kind.STUDY_ENDED | Kind.STUDY_INTERRUPTED:
                self._left_under_way(event)

    def _phase_started(self, event: Event) -> None:
        assert event.trial is not None
        assert event.phase is not None
        node = self.nodes.get(-1 if event.slot is None else event.slot, "")
        place = {"slot": event.slot, "node": node, "started_s": event.at}
        row = self.phases.setdefault(
            (event.trial, event.phase), {"trial": event.trial, "phase": event.phase, "retries": 0}
        )
        row.update(place)
        span = {"trial": event.trial, "phase": event.phase, **place, "outcome": "running"}
        self.spans.append(span)
        self.open_span[event.trial] = span

    def _phase_ended(self, event: Event) -> None:
        assert event.trial is not None
        assert event.phase is not None
        row = self.phases[event.trial, event.phase]
        row.update({k: v for k, v in event.data.get("metrics", {}).items() if k not in RESERVED_METRICS})
        row.update(ended_s=event.at, wall_s=event.at - row["started_s"], score=event.data["score"])
        self._close_span(event, "ended")

    def _decision(self, event: Event) -> None:
        assert event.trial is not None
        self.decisions.append(event)
        held = self.open_span.pop(event.trial, None)
        if held is not None:  # a verdict on a trial that was held
            held["ended_s"] = event.at
        if self.ledger.trials[event.trial].state is TrialState.HELD:
            self._hold(event)

    def _hold(self, event: Event) -> None:
        """A held trial keeps its slot: time given, but not used."""
        last = next(span for span in reversed(self.spans) if span["trial"] == event.trial)
        span = {**last, "started_s": event.at, "ended_s": float("nan"), "outcome": "held"}
        self.spans.append(span)
        self.open_span[event.trial] = span  # type: ignore[index]

    def _close_span(self, event: Event, outcome: str) -> bool:
        """End what a trial has under way; tell whether there was anything."""
        span = self.open_span.pop(event.trial, None)  # type: ignore[arg-type]
        if span is not None:
            _end(span, event.at, outcome)
        return span is not None

    def _slot_lost(self, event: Event) -> None:
        for row in reversed(self.slots):
            if row["slot"] == event.slot:
                row["lost_s"] = event.at
                return

    def _left_under_way(self, event: Event) -> None:
        """A driver has ended, or another begins, for the one before died: whatever it left under way was lost."""
        for span in self.open_span.values():
            _end(span, event.at, "lost")
        self.open_span.clear()

    def frames(self, metrics: pd.DataFrame, *, driven: bool = True) -> Frames:
        """Give the frames as of the last event read."""
        state = self.ledger.standing(driven=driven)
        self.ledger.pass_to(metrics["at_s"].max())
        return Frames(
            trials=_frame((self._row(number, state) for number in self.ledger.trials), TRIALS),
            phases=_frame(self.phases.values(), PHASES),
            spans=_frame(self.spans, SPANS),
            decisions=_frame(map(_decision_row, self.decisions), DECISIONS),
            interventions=_frame(self.interventions, INTERVENTIONS),
            metrics=metrics,
            slots=_frame(self.slots, SLOTS),
            state=state,
            wall_s=self.ledger.at,
            size=self.ledger.size,
            aim=self.ledger.aim,
            why_over=self.ledger.why_over,
            configs={number: _hyperparameters(trial.config) for number, trial in self.ledger.trials.items()},
        )

    def _row(self, number: int, study: str) -> dict[str, Any]:
        """A row of the frame `trials`: what is not known of a trial has no entry."""
        trial = self.ledger.trials[number]
        state = standing_in(study, trial.standing, in_phase=number in self.open_span)
        entries = {name: value for name in _IN_RECORD if (value := getattr(trial, name)) is not None}
        config = {name: value for name, value in trial.config.items() if name not in TRIALS}
        return {**config, "trial": number, "state": state, "parent": trial.parent, **entries}


def _end(span: dict[str, Any], at: float, outcome: str) -> None:
    """End a span; nothing that ran ends with the wait of a held trial, whatever ends that."""
    span.update(ended_s=at, outcome="held" if span["outcome"] == "held" else outcome)


def _decision_row(event: Event) -> dict[str, Any]:
    """A row of the frame `decisions`."""
    reason = {key: value for key, value in event.data.items() if key not in ("verdict", "mode")}
    decision = {"verdict": event.data["verdict"], "mode": event.data.get("mode"), "reason": reason}
    return {"at_s": event.at, "trial": event.trial, "phase": event.phase, **decision}


def intervention_row(event: Event) -> dict[str, Any]:
    """A row of the frame `interventions`."""
    of_request = {"action", "accepted", "why", "by", "request"}
    data = {key: value for key, value in event.data.items() if key not in of_request}
    request = {key: event.data.get(key) for key in ("action", "accepted", "why", "by")}
    return {"at_s": event.at, "trial": event.trial, **request, "data": data}


def _hyperparameters(config: Config) -> Config:
    return {name: value for name, value in config.items() if _is_hyperparameter(name)}


def _is_hyperparameter(name: str) -> bool:
    return name not in TRIALS and name != CONFIG_ID


def _frame(rows: Any, columns: list[str]) -> pd.DataFrame:
    frame = pd.DataFrame(list(rows))
    return frame.reindex(columns=[*columns, *(name for name in frame.columns if name not in columns)])
