"""Studies in virtual time: one whose clock goes on, and some that are kept as their drivers would."""

from pathlib import Path

from tests.events import write_log
from tests.support import MemoryLog, RandomTimes, simulate, virtual_executor
from workbench.core.describe import describe
from workbench.core.drive import drive
from workbench.core.protocols import Event, Kind, Scheduler
from workbench.core.record import provenance
from workbench.knowledge import KnowledgeBase
from workbench.simulation.executor import SimulatedExecutor
from workbench.study.study import Study


class Clocked(SimulatedExecutor):
    """A little time passes whenever somebody looks at the clock, as it does on a real cluster."""

    @property
    def now(self) -> float:
        self._now += 1e-6
        return self._now


def kept(db: Path, study: Study, n: int = 60) -> list[Event]:
    """Log what the study does at first, in virtual time; give what the log has of it."""
    log = MemoryLog()
    drive(study.scheduler, virtual_executor(RandomTimes(), 2), log, stop=lambda: len(log) >= n)
    events = log[:n]
    while events[-1].kind is not Kind.DECISION:
        events.pop()
    told = provenance(2, scheduler=study.scheduler)
    write_log(db, study.name, [Event(Kind.STUDY_STARTED, 0.0, data=told), *events], study.spec)
    return events


def keep(db: Path, name: str, scheduler: Scheduler, aim: dict[str, str] | None = None, seed: int = 0) -> list[dict]:
    """Write a simulated study into a knowledge base; what trials of it scored best, by configuration."""
    spec = {"scheduler": describe(scheduler), "trainable": {"kind": "quadratic"}, "seed": 0}
    events = simulate(scheduler, seed=seed)
    write_log(db, name, [Event(Kind.STUDY_STARTED, 0.0, data={"aim": aim or {}}), *events], spec)
    with KnowledgeBase(db) as kb:
        trials = kb[name].frames().trials
    best = trials.sort_values(["phases", "last_score"], ascending=[False, bool(aim)])
    return best.to_dict("records")
