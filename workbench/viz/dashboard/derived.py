"""What only events change of a study's numbers: survival, occupancy, best scores, failures."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from workbench import analysis
from workbench.core.ledger import Ledger, TrialState
from workbench.knowledge.frames import FrameReader
from workbench.viz.dashboard.spans import SpanTable

_LIVES = ["slot", "joined_s", "lost_s"]


@dataclass
class Usage:
    """Where the slots' time went up to an instant, and how it goes on until the next event.

    Attributes
    ----------
    at_s : float
        The instant.
    used : Occupancy
        Up to it.
    running, held, alive : int
        Slots that run a phase, hold a trial at a barrier, and live, from then on.
    ended_s : array
        Seconds that each phase took which has ended.
    begun_s : array
        When each phase under way began, seconds on the study's clock.
    """

    at_s: float
    used: analysis.Occupancy
    running: int
    held: int
    alive: int
    ended_s: npt.NDArray[np.float64]
    begun_s: npt.NDArray[np.float64]

    def left_s(self, now_s: float, phases_left: float) -> list[float] | None:
        """Estimate how long the study still takes, as `analysis.time_left`."""
        found = analysis.time_left(self.ended_s, now_s - self.begun_s, phases_left, self.alive)
        return None if found is None else [round(end, 1) for end in found]

    def shares(self, now_s: float) -> tuple[float | None, float | None]:
        """Give the shares of slot time occupied and idle up to `now_s`, 0 to 1; ``None`` before any slot has lived."""
        passed = max(0.0, now_s - self.at_s)
        alive = self.used.alive + passed * self.alive
        if not alive > 0:
            return None, None
        occupied = self.used.ran + self.used.lost + passed * self.running
        idle = self.used.idle + passed * max(0, self.alive - self.running - self.held)
        return round(occupied / alive, 4), round(idle / alive, 4)


def usage(reader: FrameReader, spans: SpanTable) -> Usage:
    """Measure the slots' time up to the last event; between events nothing changes but the clock."""
    at_s = reader.ledger.at
    slots = reader.slots
    lives = pd.DataFrame([(r["slot"], r["joined_s"], r.get("lost_s")) for r in slots], columns=_LIVES)
    used = analysis.occupancy(spans.frame(), lives, at_s)
    alive = {r["slot"] for r in slots if "lost_s" not in r}
    on: dict[str, set[int]] = {"running": set(), "held": set()}
    for span in reader.open_span.values():
        if span["outcome"] in on and span["slot"] in alive:
            on[span["outcome"]].add(span["slot"])
    ended = np.array([r["wall_s"] for r in reader.phases.values() if "wall_s" in r])
    begun = np.array([s["started_s"] for s in reader.open_span.values() if s["outcome"] == "running"])
    return Usage(at_s, used, len(on["running"]), len(on["held"]), len(alive), ended, begun)


def numbers(reader: FrameReader, n_phases: int | None) -> dict[str, Any]:
    """Count and rank. Of narrow tables: of a large study whole frames would take most of a second."""
    trials, phases, decisions = _tables(reader)
    survival = analysis.survival(trials, phases, decisions, n_phases)
    best = analysis.best_so_far(phases, reader.ledger.aim.mode)
    ledger = reader.ledger
    return {
        "trials_started": len(trials),
        "trials_ended": ledger.n_over,
        "phases_ended": ledger.phases_ended,
        "slots": [[r["slot"], r["node"], r["joined_s"], r.get("lost_s")] for r in reader.slots],
        "paused": ledger.paused,
        "failures": _failures(ledger),
        "survival": [{k: None if v != v else v for k, v in row.items()} for row in survival.to_dict("records")],
        "best": [[at, score, int(trial), int(phase)] for at, score, trial, phase in best.to_numpy().tolist()],
    }


def _failures(ledger: Ledger) -> list[str]:
    failed = [(n, TrialState.FAILED.value, ledger.trials[n].error) for n in ledger.in_state(TrialState.FAILED)]
    if not failed:
        return []  # as nearly always: the frames take a quarter of a refresh
    return analysis.failure_lines(pd.DataFrame(failed, columns=["trial", "state", "error"], dtype=object))


def _tables(reader: FrameReader) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Trials, phases and decisions, with the columns that `numbers` needs; words stay as they are, for speed."""
    trials = [(number, trial.standing, trial.mode) for number, trial in reader.ledger.trials.items()]
    phases = [(r["trial"], r["phase"], r.get("ended_s"), r.get("score")) for r in reader.phases.values()]
    decisions = [(r["trial"], r["phase"], r["verdict"], r["mode"], r["reason"]) for r in reader.decisions]
    return (
        pd.DataFrame(trials, columns=["trial", "state", "mode"], dtype=object),
        pd.DataFrame(phases, columns=["trial", "phase", "ended_s", "score"]),
        pd.DataFrame(decisions, columns=["trial", "phase", "verdict", "mode", "reason"], dtype=object),
    )


def finite(value: Any) -> float | None:
    """Give a number that JSON can hold, else ``None``."""
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None
