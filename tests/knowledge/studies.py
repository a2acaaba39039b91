"""A small study, as a log has it."""

from workbench.core.protocols import Event, Kind

RUN = {"config": {"lr": 0.01}, "parent": None, "seed": 7}


def a_study() -> list[Event]:
    """Two slots; trial 0 loses an attempt, is held, goes on and finishes; trial 1 is stopped; trial 2 fails."""
    return [
        Event(Kind.STUDY_STARTED, 0.0),
        Event(Kind.SLOT_JOINED, 0.0, slot=0, data={"node": "a"}),
        Event(Kind.SLOT_JOINED, 0.0, slot=1, data={"node": "b"}),
        Event(Kind.RUN, 0.0, 0, 0, data=RUN),
        Event(Kind.PHASE_STARTED, 0.0, 0, 0, 0),
        Event(Kind.RUN, 0.0, 1, 0, data=RUN),
        Event(Kind.PHASE_STARTED, 0.0, 1, 0, 1),
        Event(Kind.SLOT_LOST, 1.0, slot=0, data={"node": "a"}),
        Event(Kind.PHASE_FAILED, 1.0, 0, 0, 0, {"error": "died"}),
        Event(Kind.SLOT_JOINED, 2.0, slot=0, data={"node": "a"}),
        Event(Kind.PHASE_STARTED, 2.0, 0, 0, 0),
        Event(
            Kind.PHASE_ENDED, 4.0, 0, 0, 0, {"score": 5.0, "metrics": {"score": 5.0, "frames": 40}, "checkpoint": "x"}
        ),
        Event(Kind.DECISION, 4.0, 0, 0, data={"verdict": "hold", "mode": "barrier"}),
        Event(Kind.PHASE_ENDED, 6.0, 1, 0, 1, {"score": 1.0, "metrics": {"score": 1.0}, "checkpoint": "y"}),
        Event(Kind.DECISION, 6.0, 1, 0, data={"verdict": "stop", "mode": "selecting", "rank": 0.0}),
        Event(Kind.DECISION, 6.0, 0, 0, data={"verdict": "continue", "mode": "released"}),
        Event(Kind.PHASE_STARTED, 6.0, 0, 1, 0),
        Event(Kind.RUN, 6.0, 2, 0, data=RUN),
        Event(Kind.PHASE_STARTED, 6.0, 2, 0, 1),
        Event(Kind.TRIAL_FAILED, 7.0, 2, 0, 1, {"error": "diverged"}),
        Event(Kind.DECISION, 7.0, 2, 0, data={"verdict": "stop", "mode": "failed"}),
        Event(Kind.PHASE_ENDED, 9.0, 0, 1, 0, {"score": 4.0, "metrics": {"score": 4.0}, "checkpoint": "z"}),
        Event(Kind.DECISION, 9.0, 0, 1, data={"verdict": "stop", "mode": "finished"}),
        Event(Kind.STUDY_ENDED, 9.0),
    ]
