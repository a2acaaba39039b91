import numpy as np
import pandas as pd
import pytest

from workbench import analysis
from workbench.core.protocols import Event, Kind
from workbench.knowledge.frames import METRICS, FrameReader
from workbench.viz.dashboard.derived import Fates, SlotTime
from workbench.viz.dashboard.spans import SpanTable

SLOTS, TRIALS, PHASES = 4, 12, 3
NO_METRICS = pd.DataFrame(columns=METRICS)


class Drawn:
    """A study in which anything happens that a log can tell: crashes, holds, slots lost late, people, resumptions."""

    def __init__(self, seed):
        self.rng, self.at = np.random.default_rng(seed), 0.0
        self.free, self.dead = list(range(SLOTS)), []
        self.on, self.next, self.waiting = {}, 0, {}  # trial → (slot, phase); trial → phase to begin

    def event(self, kind, trial=None, phase=None, slot=None, data=None):
        self.at += float(self.rng.exponential(1.0))
        return Event(kind, self.at, trial, phase, slot, data or {})

    def begin(self):
        yield self.event(Kind.STUDY_STARTED)
        for slot in range(SLOTS):
            yield self.event(Kind.SLOT_JOINED, slot=slot, data={"node": f"n{slot % 2}"})

    def step(self):
        acts = [self.start, self.end, self.crash, self.person, self.lose, self.join, self.resume]
        act = self.rng.choice(acts, p=[0.3, 0.4, 0.08, 0.08, 0.06, 0.06, 0.02])
        yield from act()

    def start(self):
        if not self.free:
            return
        if self.waiting and self.rng.random() < 0.5:
            trial, phase = self.waiting.popitem()
        elif self.next < TRIALS:
            trial, phase, self.next = self.next, 0, self.next + 1
            config = {"config": {"lr": float(self.rng.random())}, "parent": None, "seed": trial}
            if trial and self.rng.random() < 0.2:  # a part of the study, none of the search
                config |= {"own_phases": PHASES, "by": "person", "confirms": True, "candidate": 0}
            yield self.event(Kind.RUN, trial, 0, data=config)
            if self.rng.random() < 0.1:  # a person is quicker than its slot
                yield self.event(Kind.TRIAL_STOPPED, trial, 0, data={"by": "person"})
                yield self.event(Kind.DECISION, trial, 0, data={"verdict": "stop", "mode": "failed"})
                return
        else:
            return
        self.on[trial] = self.free.pop(), phase
        yield self.event(Kind.PHASE_STARTED, trial, phase, self.on[trial][0])

    def taken(self):
        trial = int(self.rng.choice([*self.on]))
        return trial, *self.on.pop(trial)

    def end(self):
        if not self.on:
            return
        trial, slot, phase = self.taken()
        score = float("nan") if self.rng.random() < 0.1 else float(self.rng.normal())
        yield self.event(Kind.PHASE_ENDED, trial, phase, slot, {"score": score, "metrics": {}})
        last = phase == PHASES - 1
        verdict = "stop" if last else str(self.rng.choice(["continue", "hold", "pause", "stop"]))
        mode = "finished" if last else str(self.rng.choice(["collecting", "selecting", "seeds", "kept"]))
        why = {"mode": mode, "collecting_reports": 3.5, "reported": int(self.rng.integers(5))}
        if mode == "kept":
            why = {"mode": mode}
        yield self.event(Kind.DECISION, trial, phase, data={"verdict": verdict, **why})
        if verdict == "hold":
            yield self.event(Kind.DECISION, trial, phase, data={"verdict": "continue", "mode": "released"})
        self.free.append(slot)
        if verdict != "stop":
            self.waiting[trial] = phase + 1

    def crash(self):
        if not self.on:
            return
        trial, slot, phase = self.taken()
        self.free.append(slot)
        yield self.event(Kind.PHASE_FAILED, trial, phase, slot, {"why": "exception"})
        if self.rng.random() < 0.5:
            self.waiting[trial] = phase
            return
        yield self.event(Kind.TRIAL_FAILED, trial, phase, slot, {"why": "exception", "error": "ValueError: bad"})
        yield self.event(Kind.DECISION, trial, phase, data={"verdict": "stop", "mode": "failed"})

    def person(self):
        if self.waiting and self.rng.random() < 0.3:  # one that had ended its phase
            trial, phase = self.waiting.popitem()
            last = max(phase - 1, 0)
        elif self.on:
            trial, slot, phase = self.taken()
            self.free.append(slot)
            last = phase
        else:
            return
        yield self.event(Kind.TRIAL_STOPPED, trial, last, data={"by": "person"})
        yield self.event(Kind.DECISION, trial, last, data={"verdict": "stop", "mode": "failed"})
        if self.rng.random() < 0.3:  # and taken up again
            asked = {"request": "r", "action": "extend", "accepted": True, "by": "person", "phases": 1}
            yield self.event(Kind.INTERVENTION, trial, data=asked)
            self.waiting[trial] = phase

    def lose(self):
        if not self.on:
            return
        trial, slot, phase = self.taken()
        yield self.event(Kind.SLOT_LOST, slot=slot, data={"node": f"n{slot % 2}"})
        yield self.event(Kind.PHASE_FAILED, trial, phase, slot, {"why": "slot lost"})
        self.waiting[trial] = phase
        self.dead.append(slot)

    def join(self):
        if self.dead:
            slot = self.dead.pop()
            yield self.event(Kind.SLOT_JOINED, slot=slot, data={"node": f"n{slot % 2}"})
            self.free.append(slot)

    def resume(self):
        """The driver died; another begins, with new slots."""
        yield self.event(Kind.STUDY_RESUMED)
        self.waiting |= {trial: phase for trial, (_, phase) in self.on.items()}
        self.on.clear()
        self.dead, self.free = list(range(SLOTS)), []


def plain(table):
    return [{k: None if v != v else v for k, v in row.items()} for row in table.to_dict("records")]


def followed(seed):
    """Compare at every twentieth step; give the frames as they stand at the end."""
    reader = FrameReader()
    spans = SpanTable(reader.spans)
    time, fates, drawn = SlotTime(reader, spans), Fates(reader.ledger), Drawn(seed)
    for k, batch in enumerate([list(drawn.begin()), *(list(drawn.step()) for _ in range(150))]):
        for event in batch:
            reader.read(event)
            fates.take(event)
        time.take(batch)
        if k % 20:
            continue
        frames = reader.frames(NO_METRICS)
        told = analysis.survival(analysis.searching(frames.trials), frames.searched, frames.decisions, PHASES)
        assert fates.survival(PHASES) == plain(told)
        assert fates.best == [[*row] for row in analysis.best_so_far(frames.searched).itertuples(index=False)]
        assert fates.failures() == analysis.failure_lines(frames.trials)
        used, now = analysis.occupancy(frames.spans, frames.slots, frames.wall_s), time.now()
        assert (now.lived, now.ran, now.lost, now.held) == pytest.approx((used.alive, used.ran, used.lost, used.held))
        assert now.shares(now.at_s) == pytest.approx((used.share, used.idle / used.alive), abs=1e-4)
        assert sorted(now.ended_s) == pytest.approx(sorted(frames.phases["wall_s"].dropna()))
    return reader.frames(NO_METRICS)


def test_kept_up_to_date_it_is_what_the_analysis_says():
    studies = [followed(seed) for seed in range(3)]
    assert {"held", "lost", "stopped"} <= {outcome for frames in studies for outcome in frames.spans["outcome"]}
    assert {"failed", "stopped", "finished"} <= {state for frames in studies for state in frames.trials["state"]}
