"""A study: a scheduler, a trainable and a cluster, driven to the end, remembered, resumable."""

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.algos.function.factory import as_factory
from workbench.algos.search.seeded import Seeded
from workbench.core.aim import Aim
from workbench.core.checks import POSITIVE, check, whole
from workbench.core.describe import describe
from workbench.core.errors import InvalidInput, StudyError
from workbench.core.failures import short
from workbench.core.machine import layout, slots_here
from workbench.core.places import DEFAULT_DB, check_study_name
from workbench.core.protocols import Executor, Scheduler, TrainableFactory, ranks_needed
from workbench.core.registry import REGISTRY
from workbench.core.showing import settings_html
from workbench.study.attached import AttachedStudy
from workbench.study.callbacks import Callback
from workbench.study.run import StudyRun

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
        GPUs of this machine that each worker process of the local cluster sees; below 1 several share one.
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
    checkpoints : str, optional
        A directory all workers see, or an fsspec URL, instead of the place beside `db`.
    max_retries : int
        Further attempts at a phase after a crash or a stall.
    stall_s : float
        Longest silence of a running phase before its worker is restarted, seconds.
    fail_fast : bool
        Whether to stop when the first trials, as many as there are slots and three at least, all fail in their first
        phase of the same error: the code is at fault then. The study can be resumed once it is corrected.
    mode : str
        ``max``, or ``min`` to minimise the score. Scores are logged, tabled and drawn as the trainable gives them.
    max_hours, target_score : float, optional
        The study ends once its clock has come so far, or once a phase ends with a score as good; what is under way then
        is lost. Resumed with another limit, or with none, it goes on.
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
    callbacks: "Sequence[Callback]" = ()
    gpus_per_slot: float | None = None
    weight: float = 1.0

    _repr_html_ = settings_html

    def __post_init__(self) -> None:
        object.__setattr__(self, "db", Path(self.db))
        object.__setattr__(self, "trainable", as_factory(self.trainable))
        if self.seeds != 1 and not isinstance(self.scheduler, Seeded):
            object.__setattr__(self, "scheduler", Seeded(self.scheduler, self.seeds, self.judged_by))
        check_study_name(self.name)
        if self.nodes is None and self.client is None:
            object.__setattr__(self, "nodes", nodes_here(self.trainable, self.gpus_per_slot))
        if self.nodes is not None and (
            isinstance(self.nodes, bool) or not isinstance(self.nodes, int) or self.nodes < 1
        ):
            raise InvalidInput(f"a study needs a whole number of nodes >= 1, got {self.nodes!r}")
        if isinstance(self.weight, bool) or not isinstance(self.weight, int | float) or not 0 < self.weight < math.inf:
            raise InvalidInput(f"a study's weight is a number above 0, got {self.weight!r}")
        if not isinstance(self.fail_fast, bool):
            raise InvalidInput(f"fail_fast is true or false, got {self.fail_fast!r}")
        if self.client is None and (self.nodes or 0) < (n_ranks := ranks_needed(self.trainable)):
            raise InvalidInput(
                f"a trial needs a gang of {n_ranks} nodes, the study has {self.nodes}: raise nodes, or lower n_ranks"
            )
        check(self, whole(0), "seed", "max_retries")
        check(self, POSITIVE, "stall_s")
        if isinstance(self.scheduler, type) or not (hasattr(self.scheduler, "ask") and hasattr(self.scheduler, "tell")):
            raise InvalidInput(f"a study's scheduler is an object such as HyperTrick(…), got {short(self.scheduler)}")
        if not (isinstance(self.callbacks, Sequence) and all(map(callable, self.callbacks))):
            raise InvalidInput(f"callbacks is a list of functions of a list of events, got {self.callbacks!r}")
        _ = self.aim  # checks what it is made of
        self._check_space()

    def start(self, *, resume: bool = False) -> StudyRun:
        """Run the study in a background thread, and return at once.

        Raises
        ------
        StudyError
            The study exists (and `resume` is false), does not exist (and `resume` is true), or is being driven; or its
            place of checkpoints holds another's.
        SchedulerError
            The log of a study to resume does not fit the scheduler.
        """
        if not resume:
            self._check_place()
        return StudyRun(self, resume=resume)

    def _check_place(self) -> None:
        from workbench.cluster.place import Place

        is_new = unique_name(self.name, self.db) == self.name  # else it is refused for that
        if is_new and self.checkpoints is not None and Place(self.checkpoints).holds_any():
            raise StudyError(
                f"{self.checkpoints} holds checkpoints already, which would mix with those of study {self.name!r}: "
                "give it a place of its own, or remove them"
            )

    def launch(self, *, resume: bool = False) -> AttachedStudy:
        """Run the study in a process of its own, and return once it is under way there.

        It goes on whatever becomes of this kernel or terminal; find it again with ``AttachedStudy(db, name)``. What the
        process has to say goes to a file beside the knowledge base, ending in ``.out``.

        Raises
        ------
        InvalidInput
            `client` belongs to a cluster that would end with this process, or something cannot be pickled.
        StudyError, SchedulerError
            As `start`.
        """
        from workbench.study.launch import launch

        address = None
        if self.client is not None:
            if self.client.cluster is not None:
                raise InvalidInput(
                    "launch() cannot use this client: its cluster was made by this process and would end with it; "
                    "connect to a cluster of its own by address, Client('tcp://…'), or leave client out"
                )
            address = str(self.client.scheduler.address)
        there = replace(self, client=None, db=Path(self.db).absolute())
        launch(there, resume=resume, scheduler_address=address)
        return AttachedStudy(there.db, self.name)

    def run(self, *, resume: bool = False) -> StudyRun:
        """Run the study to its end. Ctrl-C ends it cleanly; it can then be resumed."""
        run = self.start(resume=resume)
        try:
            run.wait()
        except KeyboardInterrupt:
            run.stop()
            run.wait()
        return run

    def dashboard(self) -> "Dashboard":
        """Open the live view of this study, whoever drives it; it must have begun.

        Raises
        ------
        DatabaseError, StudyError
            It has not.
        """
        return AttachedStudy(self.db, self.name).dashboard()

    @property
    def spec(self) -> dict[str, Any]:
        """What the log keeps of this study, in JSON's types."""
        return {
            "scheduler": describe(self.scheduler, REGISTRY),
            "trainable": describe(self.trainable, REGISTRY),
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

    def _check_space(self) -> None:
        rule = self.scheduler.scheduler if isinstance(self.scheduler, Seeded) else self.scheduler
        space = getattr(getattr(rule, "searcher", None), "space", None)
        if space is None:
            return
        from workbench.knowledge.frames import RESERVED

        if reserved := sorted(set(space) & RESERVED):
            raise InvalidInput(f"hyperparameters cannot be called {', '.join(reserved)}: the tables use these names")
        check = getattr(self.trainable, "check", None)
        if check is not None:
            check(list(space))

    @contextmanager
    def executor(self, identity: str = "") -> Generator[Executor, None, None]:
        """Bring up what the study runs on; `identity` tells its phases from other studies' on the same cluster."""
        from workbench.cluster.dask import DaskExecutor
        from workbench.cluster.local import local_client

        cluster: AbstractContextManager[Client] = (
            local_client(self.nodes or 1, gpus_per_slot=self.gpus_per_slot)
            if self.client is None
            else nullcontext(self.client)
        )
        with cluster as client:
            executor = DaskExecutor(
                client,
                as_factory(self.trainable),
                self.checkpoint_store,
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
    return CheckpointStore(elsewhere or str(beside.absolute()))


def unique_name(name: str, db: str | Path = DEFAULT_DB) -> str:
    """Return `name`, or ``name-2``, ``name-3``, … if the knowledge base holds a study of that name."""
    if not Path(db).is_file():
        return name
    from workbench.knowledge import KnowledgeBase

    with KnowledgeBase(db) as kb:
        taken = set(kb)
    return next(n for n in chain([name], (f"{name}-{i}" for i in count(2))) if n not in taken)
