"""A study: a scheduler, a trainable and a cluster, driven to the end, remembered, resumable."""

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.algos.function.factory import as_factory
from workbench.algos.search.seeded import Seeded
from workbench.core.aim import Aim
from workbench.core.answers import check_scheduler
from workbench.core.checks import POSITIVE, TRUTH, check, check_named, plain_seed, whole
from workbench.core.describe import describe
from workbench.core.domains import scalar
from workbench.core.errors import InvalidInput, first_line
from workbench.core.failures import short
from workbench.core.machine import layout, slots_here
from workbench.core.places import DEFAULT_DB, check_checkpoints, check_study_name, db_path, in_home
from workbench.core.protocols import RESERVED_METRICS, Executor, Scheduler, TrainableFactory, ranks_needed
from workbench.core.record import RUN_SETTINGS
from workbench.core.script import pickled
from workbench.core.seeds import JUDGES
from workbench.core.showing import settings_html
from workbench.study.attached import AttachedStudy
from workbench.study.callbacks import Callback
from workbench.study.hyperparameters import check_hyperparameters, warn_of_phases
from workbench.study.run import StudyRun, see_through
from workbench.study.saved import checkpoint_store, refuse_used_place, silence_told

if TYPE_CHECKING:
    from distributed import Client

    from workbench.cluster.checkpoints import CheckpointStore
    from workbench.viz.dashboard import Dashboard


@dataclass(frozen=True)
class Study:
    """What to run, and where.

    Parameters
    ----------
    name : str
        Unique in its knowledge base.
    scheduler : Scheduler
        A fresh one; the study works on copies, so the object stays fresh.
    trainable : TrainableFactory
        What a trial is: ``GA3C(...)``; a function of your own that yields a score once a phase, see
        `Function`; or what is called with ``(config, seed)`` and gives a `Trainable`, such as a class. It travels to
        the workers, from a notebook's cell too.
    db : path
        The knowledge base; checkpoints go beside it.
    nodes : int, optional
        Worker processes of the local cluster, one trial each, or one rank of a trial that needs several
        (`BA3C.n_ranks`). By default one a core that this process may use, fewer where that leaves each less than 1 GiB
        of memory or the GPUs do not suffice. Ignored when `client` is given.
    gpus_per_slot : float, optional
        GPUs of this machine that each worker process of the local cluster sees; below 1 several share one. Without, or
        with 0, none are handed out. Not used when `client` is given.
    client : distributed.Client, optional
        Of any running Dask cluster; it is left running.
    weight : float
        Its share of that cluster's slots, against those of other studies that run on it.
    seed : int
        Every trial's seed is derived from it.
    seeds : int
        Trials of each configuration, which differ in their seed and are judged together: see `Seeded`.
    judged_by : str
        ``mean``, ``median`` or ``iqm`` of their scores.
    checkpoints : str or path, optional
        A directory all workers see, or an fsspec URL, instead of the place beside `db`.
    max_retries : int
        Further attempts at a phase after a crash, a stall or an exception.
    stall_s : float
        Longest silence of a running phase before its worker is given up, seconds; its nanny then replaces it.
    fail_fast : bool
        Whether to stop when the first trials, as many as there are slots and three at least, all fail in their first
        phase of the same error: the code is at fault then. Also when a function ends in a phase that no trial has come
        through: it yields less often than there are phases, or when one that yields no state is to hand weights on. The
        study can be resumed once it is corrected.
    mode : str
        ``max``, or ``min`` to minimise the score. Scores are logged, tabled and drawn as the trainable gives them.
    max_hours, target_score : float, optional
        The study ends once it has been driven so long, the time that `confirm` took left out, or once a phase ends with
        a score as good; what is under way then is lost. Resumed with another limit, or with none, it goes on.
    second, second_mode : str, optional
        A metric that the trainable returns beside the score, and whether it is maximised (``max``) or minimised. The
        scheduler does not hear of it; results and the report hold it against the score.
    callbacks : sequence of callables
        Called with the events of every append to the log, in the driver's thread: ``lambda events: …``, or one of
        `workbench.study.export`. One that raises is called no more. They are no part of the record.

    Examples
    --------
    >>> run = Study("first", HyperTrick(...), GA3C("Pong", ...)).start()  # doctest: +SKIP
    >>> run.wait()  # doctest: +SKIP
    """

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
    callbacks: Sequence[Callback] = ()
    gpus_per_slot: float | None = None
    weight: float = 1.0

    _repr_html_ = settings_html

    def __post_init__(self) -> None:
        object.__setattr__(self, "db", db_path(self.db))
        object.__setattr__(self, "trainable", as_factory(self.trainable))
        for name in ("nodes", *RUN_SETTINGS):  # the log keeps them
            object.__setattr__(self, name, scalar(getattr(self, name)))
        if self.gpus_per_slot == 0:  # a study that is resumed by its name has those of its last driver, if not told so
            object.__setattr__(self, "gpus_per_slot", None)
        check_named(self, "judged_by", tuple(JUDGES))
        self._take_seeds()
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
        _ = self.aim  # checks what it is made of; records of before, which are shown, may have what follows
        if self.second in RESERVED_METRICS:
            raise InvalidInput(f"second names a metric that trials return beside score, got {self.second!r}")
        if self.second is None and self.second_mode != "max":
            raise InvalidInput(f"second_mode {self.second_mode!r} is of a second objective: name it, second=, as well")
        check_hyperparameters(self.scheduler, self.trainable)
        warn_of_phases(self.scheduler, self.trainable)

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
        here = self.nodes is not None and self.client is None
        return layout(self.nodes or 1, ranks_needed(self.trainable)) if here else ""

    @property
    def aim(self) -> Aim:
        """What the study is after, and what ends it early."""
        return Aim(self.mode, self.target_score, self.max_hours, self.second, self.second_mode)

    def _take_seeds(self) -> None:
        """Run several seeds as told here; what a scheduler that does so itself says holds, unless this differs."""
        if not isinstance(self.scheduler, Seeded):
            if self.seeds != 1:
                object.__setattr__(self, "scheduler", Seeded(self.scheduler, self.seeds, self.judged_by))
            return
        for name, usual in (("seeds", 1), ("judged_by", "mean")):
            here, there = getattr(self, name), getattr(self.scheduler, name)
            if here not in (usual, there):
                raise InvalidInput(f"the study says {name}={here!r}, its Seeded scheduler {there!r}: say it once")

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

    def check_travels(self) -> None:
        """Refuse what is trained if it cannot be sent to workers, in the way Dask will send it.

        Raises
        ------
        InvalidInput
            With what of it cannot be pickled.
        """
        try:
            pickled(self.trainable)
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
        from workbench.cluster.place import Place

        store = replace(self.checkpoint_store, study=identity)
        marked = self.client is None and Place(store.root).owner() == identity  # this machine is all there is
        cluster: AbstractContextManager[Client] = (
            local_client(self.nodes or 1, gpus_per_slot=self.gpus_per_slot, unless=unless)
            if self.client is None
            else nullcontext(self.client)
        )
        with cluster as client:
            executor = DaskExecutor(
                client,
                as_factory(self.trainable),
                replace(store, marked=marked),
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

    def start(self, *, resume: bool = False) -> StudyRun:
        """Run the study in a background thread, and return at once.

        Raises
        ------
        StudyError
            The study exists (and `resume` is false), does not exist (and `resume` is true), or is being driven; or its
            place of checkpoints is another's.
        InvalidInput
            What is trained cannot be sent to workers, there are too few GPUs, or no `client` in a daemonic process,
            which may start no workers.
        SchedulerError
            The log of a study to resume does not fit the scheduler.
        DatabaseError
            The knowledge base cannot be used.
        """
        with silence_told(self.checkpoint_store.root):
            if not resume and unique_name(self.name, self.db) == self.name:  # else it is refused for that
                refuse_used_place(self)
            return StudyRun(self, resume=resume)

    def launch(self, *, resume: bool = False) -> AttachedStudy:
        """Run the study in a process of its own, and return once it is under way there.

        It goes on whatever becomes of this kernel or terminal; find it again with ``AttachedStudy(db, name)``. What the
        process has to say goes to a file beside the knowledge base, ending in ``.out``.

        Raises
        ------
        InvalidInput
            `client` belongs to a cluster that would end with this process, or something cannot be pickled.
        StudyError, SchedulerError, DatabaseError
            As `start`.
        """
        from workbench.study.launch import launch

        self.check_travels()  # start() could not send it either
        scheduler = None
        if self.client is not None:
            if self.client.cluster is not None:
                raise InvalidInput(
                    "launch() cannot use this client: its cluster was made by this process and would end with it; "
                    "connect to a cluster of its own by address, Client('tcp://…'), or leave client out"
                )
            scheduler = str(self.client.scheduler.address), self.client.security
        there = replace(self, db=Path(self.db).absolute())
        object.__setattr__(there, "client", None)  # what is not used with one is not looked at without it
        launch(there, resume=resume, scheduler=scheduler)
        return AttachedStudy(there.db, self.name)

    def run(self, *, resume: bool = False) -> StudyRun:
        """Run the study to its end. Ctrl-C ends it cleanly; it can then be resumed."""
        run = self.start(resume=resume)
        see_through(run, run.wait)
        return run

    def dashboard(self) -> "Dashboard":
        """Open the live view of this study, whoever drives it; it must have begun.

        Raises
        ------
        DatabaseError, StudyError
            It has not.
        """
        return AttachedStudy(self.db, self.name).dashboard()


def unique_name(name: str, db: str | Path = DEFAULT_DB) -> str:
    """Return `name`, or ``name-2``, ``name-3``, … where the knowledge base has, or is getting, such a study."""
    from workbench.knowledge import driver_of, names_taken

    taken, path = names_taken(db), db_path(db)
    names = chain([name], (f"{name}-{i}" for i in count(2)))
    return next(n for n in names if n not in taken and driver_of(path, n) is None)


def nodes_here(trainable: object, gpus_per_slot: float | None = None) -> int:
    """Give the workers of a local cluster that nobody has told how many there should be."""
    n_ranks = ranks_needed(trainable)
    if not gpus_per_slot:
        return slots_here(n_ranks)
    from workbench.cluster.gpus import most_nodes

    return slots_here(n_ranks, most=most_nodes(gpus_per_slot))
