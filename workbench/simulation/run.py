"""One study in virtual time: driven to its end, measured, and kept in a knowledge base if wanted."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.core.answers import fresh
from workbench.core.drive import drive
from workbench.core.garbage import uncollected
from workbench.core.places import db_path
from workbench.core.protocols import Event, Kind, Scheduler
from workbench.core.size import Size, full_runs
from workbench.simulation.cluster import VirtualCluster
from workbench.simulation.executor import JobModel, PhaseModel, SimulatedExecutor
from workbench.simulation.outcome import Outcome, Tally
from workbench.simulation.race import Race


def simulate(
    scheduler: Scheduler,
    model: PhaseModel | JobModel,
    cluster: VirtualCluster | None = None,
    *,
    seed: int = 0,
    events: list[Event] | None = None,
) -> Outcome:
    """Run a study in virtual time.

    Parameters
    ----------
    scheduler : Scheduler
        A fresh one; a copy of it is driven, so it stays fresh.
    model : PhaseModel or JobModel
        What trials do.
    cluster : VirtualCluster, optional
        By default four equal nodes.
    seed : int
        The study's seed, from which the trials' seeds are derived.
    events : list, optional
        Filled with everything that happens, as a real study would log it.
    """
    cluster = cluster or VirtualCluster()
    scheduler = fresh(scheduler)
    with uncollected():
        if events is None and not isinstance(model, JobModel) and not cluster.hazards.any:
            race = Race(scheduler, model, cluster, seed)
            race.run()
            tally = race.tally
        else:
            executor, tally = SimulatedExecutor(model, cluster), Tally(events)
            executor.open(0.0)
            drive(scheduler, executor, tally, seed=seed)
    return tally.outcome(full_runs(scheduler), scheduler.n_phases, cluster.n_slots)


def keep(db: str | Path, name: str, spec: Mapping[str, Any], events: Sequence[Event], size: Size) -> None:
    """Put a simulated study into a knowledge base, marked as simulated in its spec and in its first event.

    That event tells its size, `workbench.core.size.size_of` the scheduler.

    Raises
    ------
    StudyError
        A study of that name is there already.
    """
    from workbench.knowledge import StudyLog

    log = StudyLog(db_path(db), name, {**spec, "simulated": True})
    try:
        end = max((event.at for event in events), default=0.0)
        first, last = (
            Event(Kind.STUDY_STARTED, 0.0, data={"simulated": True, "size": size.to_json()}),
            Event(Kind.STUDY_ENDED, end),
        )
        log.append([first, *events, last])
    finally:
        log.close()
