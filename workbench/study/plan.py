"""What a study is: a scheduler, a trainable, a place and limits, checked; and what they come to."""

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.algos.function.factory import as_factory
from workbench.algos.search.searchers import ListSearcher
from workbench.algos.search.seeded import Seeded
from workbench.core.aim import Aim
from workbench.core.answers import check_scheduler
from workbench.core.checks import POSITIVE, TRUTH, check, check_named, plain_seed, whole
from workbench.core.describe import describe
from workbench.core.domains import scalar
from workbench.core.errors import InvalidInput, StudyError, first_line
from workbench.core.failures import short
from workbench.core.machine import layout, slots_here
from workbench.core.places import DEFAULT_DB, check_checkpoints, check_study_name, in_home
from workbench.core.protocols import Event, Executor, Scheduler, TrainableFactory, ranks_needed
from workbench.core.record import RUN_SETTINGS
from workbench.core.seeds import JUDGES
from workbench.core.space import searcher_in, space_of

if TYPE_CHECKING:
    from distributed import Client

    from workbench.cluster.checkpoints import CheckpointStore
    from workbench.knowledge import RecordedStudy

_NO_OBJECTIVES = {"trial", "phase", "node"}  # columns of the table of phases that tell which one it is

Callback = Callable[[Sequence[Event]], None]
"""Called with the events of every append to the log, in order, once they are written; progress inside phases is among
them. It may have ``begin(study, past)``, called first, with the events of earlier drivers, and ``close()``."""


@dataclass(frozen=True)
class Plan:
    """The settings of a `Study`, which says what each is; checked."""

    name: str
    scheduler: Scheduler
    trainable: TrainableFactory | Callable[..., Iterator[Any]]
    db: str | Path = DEFAULT_DB
    nodes: int | None = None
    client: "Client | None" = None
    seed: int = 0
    seeds: int = 1
    judged_by: str = "mean"
    checkpoints: str | None = None
    max_retries: int = 2
    stall_s: float = 300.0
    fail_fast: bool = True
    mode: str = "max"
    max_hours: float | None = None
    target_score: float | None = None
    second: str | None = None
    second_mode: str = "max"
    callbacks: "Sequence[Callback]" = ()
    gpus_per_slot: float | None = None
    weight: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "db", Path(self.db))
        object.__setattr__(self, "trainable", as_factory(self.trainable))
        for name in ("nodes", *RUN_SETTINGS):  # the log keeps them
            object.__setattr__(self, name, scalar(getattr(self, name)))
        check_named(self, "judged_by", tuple(JUDGES))
        if self.seeds != 1 and not isinstance(self.scheduler, Seeded):
            object.__setattr__(self, "scheduler", Seeded(self.scheduler, self.seeds, self.judged_by))
        check_study_name(self.name)
        self._check_where()
        if self.nodes is None and self.client is None:
            object.__setattr__(self, "nodes", nodes_here(self.trainable, self.gpus_per_slot))
        if not whole(1).or_none().fits(self.nodes):
            raise InvalidInput(f"a study needs a whole number of nodes >= 1, got {self.nodes!r}")
        if not POSITIVE.fits(self.weight):
            raise InvalidInput(f"a study's weight is a number above 0, got {self.weight!r}")
        if not TRUTH.fits(self.fail_fast):
            raise InvalidInput(f"fail_fast is true or false, got {self.fail_fast!r}")
        if self.client is None and (self.nodes or 0) < (n_ranks := ranks_needed(self.trainable)):
            raise InvalidInput(
                f"a trial needs a gang of {n_ranks} nodes, the study has {self.nodes}: raise nodes, or lower n_ranks"
            )
        object.__setattr__(self, "seed", plain_seed(self.seed))
        check(self, whole(0), "max_retries")
        check(self, POSITIVE, "stall_s")
        check_scheduler(self.scheduler)
        if not (isinstance(self.callbacks, Sequence) and all(map(callable, self.callbacks))):
            raise InvalidInput(f"callbacks is a list of functions of a list of events, got {self.callbacks!r}")
        _ = self.aim  # checks what it is made of
        if self.second in _NO_OBJECTIVES:
            raise InvalidInput(f"second names a metric that trials return beside score, got {self.second!r}")
        self._check_space()

    @property
    def spec(self) -> dict[str, Any]:
        """What the log keeps of this study, in JSON's types."""
        return {
            "scheduler": describe(self.scheduler),
            "trainable": describe(self.trainable),
            "seed": self.seed,
        }

    @property
    def layout(self) -> str:
        """Say what its slots get of this machine; nothing of a cluster that is no part of it."""
        return "" if self.nodes is None or self.client is not None else layout(self.nodes)

    @property
    def aim(self) -> Aim:
        """What the study is after, and what ends it early."""
        return Aim(self.mode, self.target_score, self.max_hours, self.second, self.second_mode)

    def _check_where(self) -> None:
        if isinstance(self.checkpoints, os.PathLike):
            object.__setattr__(self, "checkpoints", os.fspath(self.checkpoints))
        if self.checkpoints is not None:
            check_checkpoints(self.checkpoints)
            object.__setattr__(self, "checkpoints", in_home(self.checkpoints))
            if Path(self.checkpoints).is_file():
                raise InvalidInput(
                    f"{self.checkpoints} is a file: a study's checkpoints are in a directory, name another"
                )
        if self.client is None:
            return
        if self.gpus_per_slot is not None:
            from workbench.cluster.gpus import check_share

            check_share(self.gpus_per_slot)  # of a local cluster it is checked against the GPUs there are
        from distributed import Client

        if not isinstance(self.client, Client) or self.client.scheduler is None:
            raise InvalidInput(
                f"a study's client is a distributed.Client of a running cluster, got {short(self.client)}: "
                "pass Client('tcp://…') or Client(cluster)"
            )

    def _check_space(self) -> None:
        if not (names := _names_in(self.scheduler)):
            return
        from workbench.knowledge.frames import RESERVED

        if reserved := sorted(set(names) & RESERVED):
            raise InvalidInput(f"hyperparameters cannot be called {', '.join(reserved)}: the tables use these names")
        check = getattr(self.trainable, "check", None)
        if check is not None:
            check(names)

    def check_travels(self) -> None:
        """Refuse what is trained if it cannot be sent to workers, in the way Dask will send it.

        Raises
        ------
        InvalidInput
            With what of it cannot be pickled.
        """
        import cloudpickle

        try:
            cloudpickle.dumps(self.trainable)
        except Exception as err:  # noqa: BLE001  pickling runs whatever code an object brings along
            raise InvalidInput(
                f"{short(self.trainable)} cannot be sent to workers ({first_line(err)}): "
                "make files, connections, locks and generators within it, not outside"
            ) from None

    @contextmanager
    def executor(
        self, identity: str = "", unless: Callable[[], bool] = lambda: False
    ) -> Generator[Executor, None, None]:
        """Bring up what the study runs on; `identity` tells its phases from other studies' on the same cluster.

        `unless` is asked meanwhile, as by `local_client`.
        """
        from workbench.cluster.dask import DaskExecutor
        from workbench.cluster.local import local_client

        cluster: AbstractContextManager[Client] = (
            local_client(self.nodes or 1, gpus_per_slot=self.gpus_per_slot, unless=unless)
            if self.client is None
            else nullcontext(self.client)
        )
        with cluster as client:
            executor = DaskExecutor(
                client,
                as_factory(self.trainable),
                replace(self.checkpoint_store, study=identity),
                self.max_retries,
                self.stall_s,
                identity,
                self.weight,
            )
            try:
                yield executor
            finally:
                executor.close()

    @property
    def checkpoint_store(self) -> "CheckpointStore":
        """Where its checkpoints are; `disk_use()` tells how much they take."""
        return replace(checkpoint_store(self.db, self.name, self.checkpoints), mode=self.mode)


def _names_in(scheduler: Scheduler) -> list[str]:
    """Name the hyperparameters of a space, or of listed configurations; none where nobody can tell beforehand."""
    if (space := space_of(scheduler)) is not None:
        return list(space)
    searcher = searcher_in(scheduler)
    configs = searcher.configs if isinstance(searcher, ListSearcher) else ()
    return list(dict.fromkeys(name for config in configs for name in config if isinstance(name, str)))


def nodes_here(trainable: object, gpus_per_slot: float | None = None) -> int:
    """Give the workers of a local cluster that nobody has told how many there should be."""
    nodes = slots_here(ranks_needed(trainable))
    if gpus_per_slot is None:
        return nodes
    from workbench.cluster.gpus import most_nodes

    return max(1, min(nodes, most_nodes(gpus_per_slot)))


def checkpoint_store(db: str | Path, name: str, elsewhere: str | None = None) -> "CheckpointStore":
    """Give a study's checkpoints: beside its knowledge base, unless they were put elsewhere."""
    from workbench.cluster.checkpoints import CheckpointStore

    beside = Path(db).parent / f"{Path(db).stem}.checkpoints" / name
    return CheckpointStore(in_home(elsewhere) if elsewhere else str(beside.absolute()))


def best_checkpoint(db: str | Path, name: str) -> str | None:
    """Give the path or URL of the checkpoint of a study's best score; ``None`` where it has none, or is simulated.

    Raises
    ------
    DatabaseError, StudyError
        There is no such file, or no such study in it.
    """
    from workbench.core import record
    from workbench.core.ledger import Ledger
    from workbench.knowledge import KnowledgeBase

    with KnowledgeBase(db) as kb:
        study = kb[name]
        events = [] if study.spec.get("simulated") else study.events()
    best = record.best_checkpoint(events, Ledger(events))
    return best and f"{checkpoint_store(db, name, record.recorded_place(events)).root}/{best}"


def anothers_place(place: str, name: str, cure: str = "") -> StudyError:
    """Say that another study's checkpoints go to a place."""
    cure = cure or f"give study {name!r} a place of its own, or remove that file if the other study is gone"
    return StudyError(f"{place} is another study's place of checkpoints, as {place}/.study says: {cure}")


def check_whose(place: str, study: "RecordedStudy") -> None:
    """Refuse a place that was named for a study's checkpoints if its mark is another's.

    Raises
    ------
    StudyError
    """
    from workbench.cluster.place import Place

    if Place(place).owner() not in ("", study.identity):
        raise anothers_place(place, study.name, f"name that of study {study.name!r}")
