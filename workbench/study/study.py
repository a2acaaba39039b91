"""A study: a scheduler, a trainable and a cluster, driven to the end, remembered, resumable."""

from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.core.errors import InvalidInput, StudyError
from workbench.core.places import DEFAULT_DB
from workbench.core.showing import settings_html
from workbench.study.attached import AttachedStudy
from workbench.study.plan import Plan, anothers_place
from workbench.study.run import StudyRun, see_through

if TYPE_CHECKING:
    from workbench.viz.dashboard import Dashboard


@dataclass(frozen=True)
class Study(Plan):
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
        GPUs of this machine that each worker process of the local cluster sees; below 1 several share one. Not used
        when `client` is given.
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

    _repr_html_ = settings_html

    def start(self, *, resume: bool = False) -> StudyRun:
        """Run the study in a background thread, and return at once.

        Raises
        ------
        StudyError
            The study exists (and `resume` is false), does not exist (and `resume` is true), or is being driven; or its
            place of checkpoints is another's.
        InvalidInput
            What is trained cannot be sent to workers, or there are too few GPUs.
        SchedulerError
            The log of a study to resume does not fit the scheduler.
        DatabaseError
            The knowledge base cannot be used.
        """
        if not resume:
            self._check_place()
        return StudyRun(self, resume=resume)

    def _check_place(self) -> None:
        from workbench.cluster.place import Place

        is_new = unique_name(self.name, self.db) == self.name  # else it is refused for that
        place = self.checkpoints or self.checkpoint_store.root  # kb.db and kb.sqlite have one place
        if is_new and Place(place).holds_any():
            raise StudyError(
                f"{place} holds checkpoints already, which would mix with those of study {self.name!r}: "
                "give it a place of its own, or remove them"
            )
        if is_new and self.checkpoints is not None and Place(place).owner():
            raise anothers_place(place, self.name)

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
        there = replace(self, client=None, db=Path(self.db).absolute())
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
    """Return `name`, or ``name-2``, ``name-3``, … if the knowledge base holds a study of that name."""
    if not Path(db).is_file():
        return name
    from workbench.knowledge import KnowledgeBase

    with KnowledgeBase(db) as kb:
        taken = set(kb)
    return next(n for n in chain([name], (f"{name}-{i}" for i in count(2))) if n not in taken)
