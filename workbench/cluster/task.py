"""One phase as it travels to a worker."""

from dataclasses import dataclass, field

from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.children import chosen_method
from workbench.cluster.parcel import Parcel
from workbench.core.protocols import Job


@dataclass(frozen=True)
class PhaseTask:
    """One phase as it travels to a worker.

    Attributes
    ----------
    job : Job
    factory : Parcel
        Not itself: what cannot be unpickled on a worker would break its line to Dask's scheduler.
    store : CheckpointStore
    study : str
        The study's identity: the same for every driver it ever has.
    topic : str
        Where progress goes; each driver has one of its own.
    attempt : int
        The attempt's mark, which no other of the same driver's bears.
    rank, n_ranks : int
        Which rank of the trial this worker runs, and of how many.
    address : str
        Where rank 0 is, for the others; only the trainable reads it.
    again : int
        Phases that rank 0 runs again before the due one, so the others must too.
    proved : bool
        Whether the place of checkpoints has taken any of this study's.
    start_method : str or None
        How processes begin that the trial starts: as the driver's would.
    """

    job: Job
    factory: Parcel
    store: CheckpointStore
    study: str
    topic: str
    attempt: int
    rank: int = 0
    n_ranks: int = 1
    address: str = ""
    again: int = 0
    proved: bool = False
    start_method: str | None = field(default_factory=chosen_method)

    @property
    def label(self) -> dict[str, int]:
        """What every message about it begins with."""
        return {"trial": self.job.trial, "phase": self.job.phase, "attempt": self.attempt, "rank": self.rank}


def attempt_name(job: Job, mark: int) -> str:
    """Name one attempt at one phase of one trial; to forbid the name forbids no other."""
    return f"trial-{job.trial}-phase-{job.phase}-attempt-{mark}"
