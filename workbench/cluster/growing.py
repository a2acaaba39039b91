"""How many workers a cluster has: made larger or smaller, and how many it is to have; their threads do not count."""

import warnings
from contextlib import suppress
from typing import Any

from distributed import Client

from workbench.cluster.tasks import AWAY
from workbench.core.errors import InvalidInput, first_line
from workbench.core.showing import so_many


def scale(cluster: Any, nodes: int) -> None:
    """Ask a cluster for so many workers; one that adapts stops adapting.

    Raises
    ------
    InvalidInput
        It was not started from here, has the hosts that it was made with, or fails at it.
    """
    if cluster is None or not hasattr(cluster, "scale"):
        raise InvalidInput("this cluster was not started from here and cannot be scaled from here: add workers to it")
    if not getattr(cluster, "_supports_scaling", True):  # Dask would drop hosts for good, and know of no others
        raise InvalidInput(f"{type(cluster).__name__} has the hosts it was made with: start one with others")
    try:
        cluster.scale(nodes)
        if (adaptive := getattr(cluster, "_adaptive", None)) is not None:  # it adapts on if that was refused
            adaptive.stop()  # as Dask's own widget does: its next look would undo what was asked for
    except InvalidInput:
        raise
    except Exception as err:  # noqa: BLE001  anybody's cluster: a wish that fails ends no study
        raise InvalidInput(f"the cluster cannot be scaled to {nodes} ({first_line(err)})") from None


def planned_workers(cluster: Any) -> float | None:
    """Tell how many workers a cluster is to have, of one that adapts the most; ``None`` where nobody here knows.

    Of one over SSH Dask counts hosts, which may have several workers each.
    """
    adaptive = getattr(cluster, "_adaptive", None)
    if adaptive is not None and adaptive.periodic_callback is not None:  # else it has been stopped
        return float(adaptive.maximum)
    plan = getattr(cluster, "plan", None) if getattr(cluster, "_supports_scaling", False) else None
    return None if plan is None else len(plan)


def warn_of_threads(client: Client) -> None:
    """Warn that a worker of several threads is one slot all the same: Dask's own tasks would take a thread each."""
    with suppress(*AWAY):
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        if (most := max((worker["nthreads"] for worker in workers), default=1)) > 1:
            warnings.warn(
                f"{so_many(len(workers), 'worker')} of up to {most} threads: each is one slot; for more start more "
                "processes, threads_per_worker=1 or --nthreads 1",
                stacklevel=2,
            )
