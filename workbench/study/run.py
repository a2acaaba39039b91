"""A study under way: its driver's thread, from the log's first event to its last."""

import atexit
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.core.answers import fresh
from workbench.core.drive import drive
from workbench.core.errors import FirstTrialsFailed
from workbench.core.failures import Hopeless
from workbench.core.ledger import Ledger, TrialState
from workbench.core.machine import allow_cluster
from workbench.core.places import absolute_place
from workbench.core.pool import refuse_without_processes
from workbench.core.protocols import Event, Kind, Scheduler
from workbench.core.record import RUN_SETTINGS, last_end, provenance
from workbench.core.resume import refuse_another, take_up, warn_of_new_code
from workbench.core.size import size_of
from workbench.study.attached import AttachedStudy
from workbench.study.callbacks import Callbacks
from workbench.study.progress import Progress, WatchedLog
from workbench.study.saved import claim_place, pin_parents, refuse_without_checkpoints

if TYPE_CHECKING:
    import pandas as pd

    from workbench.core.interventions import Request
    from workbench.knowledge import StudyLog
    from workbench.study.study import Study

_STOP = "stop study"


class StudyRun(AttachedStudy):
    """A study driven by a thread of this process, or over. Made by `Study.start`.

    If the process ends before it, the study is interrupted; `Study.start` with `resume` goes on with it.
    One that is `confirming` runs trials that confirm others and no more, these first.
    """

    def __init__(self, study: "Study", *, resume: bool = False, confirming: "Sequence[Request] | None" = None) -> None:
        from workbench.knowledge import Inbox, StudyLog

        self._only_confirm, self._asked = confirming is not None, [*(confirming or ())]
        self.db, self.name = Path(study.db).absolute(), study.name  # whatever folder the process goes to
        self.study = study = replace(study, db=self.db, checkpoints=absolute_place(study.checkpoints))
        if study.client is None:  # before anything is written
            refuse_without_processes("a study starts worker processes", "pass client=")
            allow_cluster(study.nodes or 1)
            if study.gpus_per_slot is not None:
                from workbench.cluster.gpus import gpus_for

                gpus_for(study.nodes or 1, study.gpus_per_slot)
        study.check_travels()
        scheduler = fresh(study.scheduler)
        size = size_of(scheduler)
        self._progress = Progress(size)
        self.error: BaseException | None = None
        self._stopping = threading.Event()
        self._over = threading.Event()
        log = StudyLog(self.db, study.name, study.spec, resume=resume)
        try:
            self._inbox = Inbox(self.db, study.name, log.identity)
            self._inbox.waiting([_STOP])  # of a driver that has ended
            self._inbox.done()
            past = log.events()
            scheduler, ledger, began = self._take_up(scheduler, log, past)
            self._place = claim_place(study, log.identity)
        except BaseException:
            log.close()
            raise
        self._thread = threading.Thread(
            target=self._drive, args=(scheduler, log, ledger, past, began), name=f"study {study.name}", daemon=True
        )
        atexit.register(self._tell_cut_off)
        self._thread.start()

    def _take_up(self, scheduler: Scheduler, log: "StudyLog", past: Sequence[Event]) -> tuple[Scheduler, Ledger, Event]:
        """Bring the scheduler to where the log ends; give the log's fold too, and the event that comes next.

        The clock goes on from the last sign of life of a driver that was killed within its phases: set back to its last
        event, what those had reported until then would lie among what is reported from now on.
        """
        study = self.study
        scheduler, ledger, raised = take_up(study.name, scheduler, study.spec, log.spec, past)
        ledger.pass_to(log.last_metric_s)
        if past:
            refuse_another(study.name, asdict(study.aim), ledger.aim.kept())
        record = provenance(
            study.nodes if study.client is None else None, scheduler=study.scheduler, trainable=study.trainable
        )
        warn_of_new_code(study.name, past, record)
        refuse_without_checkpoints(study, past, ledger)
        for event in past:
            self._progress.see(event)
        settings = {key: getattr(study, key) for key in RUN_SETTINGS}
        record = {**record, "aim": study.aim.to_json(), "settings": settings}
        if study.checkpoints is not None:
            record["checkpoints"] = study.checkpoints
        if self._only_confirm:
            record["confirms"] = True
        if raised is not None:
            record["n_trials"] = raised
        if raised is not None or not past:
            record["size"] = size_of(scheduler).to_json()
        return scheduler, ledger, Event(Kind.STUDY_RESUMED if past else Kind.STUDY_STARTED, ledger.at, data=record)

    # -- waiting and stopping ---------------------------------------------------------------------------------

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the study is over, at most `timeout` seconds; tell whether it is. Raises what ended it badly."""
        over = self._over.wait(timeout)
        if over and self.error is not None:
            raise self.error
        return over

    def stop(self) -> None:
        """Ask the study to end now; phases under way are lost, everything reported is kept. It can be resumed."""
        self._stopping.set()

    def confirm(self, top: int = 3, seeds: int = 10) -> "pd.DataFrame":
        """Train the best configurations again on fresh seeds, as a part of the study, and wait for it.

        As many phases as the study gave each. Results and report then show what is confirmed before what is claimed.
        Asked again, only what is missing runs, and what was interrupted goes on; the best are those by fresh seeds
        then, before others that are claimed.

        Parameters
        ----------
        top : int
            How many configurations.
        seeds : int
            Fresh seeds of each, none of which the study has used.

        Returns
        -------
        DataFrame
            As of `workbench.analysis.confirmed`.

        Raises
        ------
        StudyError
            The study is still running, has no score, or hands weights from trial to trial, so that no configuration
            stands for what was trained.
        InvalidInput
            `top` or `seeds` is no whole number >= 1.
        """
        self.wait()
        return confirm(self.study, top, seeds)

    @property
    def stopped(self) -> bool:
        """Whether it was asked to end, here by `stop` or from elsewhere."""
        return self._stopping.is_set()

    @property
    def running(self) -> bool:
        """Whether the study is still being driven."""
        return not self._over.is_set()

    @property
    def progress(self) -> Progress:
        """How far the study is."""
        self._progress.go_on(driven=self.running)
        return self._progress

    def _note(self) -> str:
        used = f" · checkpoints: {self.study.checkpoint_store.disk_use() / 2**20:.1f} MiB"
        used += f" · {self.study.layout}" if self.running and self.study.layout else ""
        return used + (" · driven by a thread of this process, ends with it, can be resumed" if self.running else "")

    # -- the driver's thread ----------------------------------------------------------------------------------

    def _drive(
        self, scheduler: Scheduler, log: "StudyLog", ledger: Ledger, past: Sequence[Event], began: Event
    ) -> None:
        study, hopeless = self.study, Hopeless()
        callbacks = Callbacks(study)
        watched = WatchedLog(log, self._progress, self._stopped_within, hopeless, callbacks)
        fail_fast = study.fail_fast and not self._progress.phases_ended
        said = partial(_said, hopeless, ledger, scheduler.n_trials)

        def why_over() -> str | None:
            if self._only_confirm:
                return None
            return study.aim.why_over(ledger.best and ledger.best[0], ledger.searching_s(executor.now))

        try:
            callbacks.begin(study, past)
            pin_parents(study, ledger)
            watched.append([began])
            ledger.see(began)
            with study.executor(log.identity, lambda: self._stopped_within(0)) as executor:
                executor.open(ledger.at)
                ended = drive(
                    scheduler,
                    executor,
                    watched,
                    seed=study.seed,
                    ledger=ledger,
                    inbox=partial(self._requests, log, ledger),
                    only_confirm=self._only_confirm,
                    stop=lambda: self._stopping.is_set() or (fail_fast and bool(hopeless.cause)) or bool(why_over()),
                )
                self._inbox.done()
                at, why = executor.now, None if ended or self._stopping.is_set() else why_over()
            if not ended and fail_fast and hopeless.cause:
                raise FirstTrialsFailed(f"study {self.name!r} stopped: {said()}", hopeless.cause)
            over = Event(
                Kind.STUDY_ENDED if ended or why else Kind.STUDY_INTERRUPTED, at, data={"why": why} if why else {}
            )
            watched.append([replace(last_end(past), at=at) if self._only_confirm else over])
        except BaseException as err:  # noqa: BLE001  handed to whoever waits
            self._end_badly(err, watched, said, past)
        finally:
            self._leave(log, callbacks)

    def _leave(self, log: "StudyLog", callbacks: Callbacks) -> None:
        """Give the study up, and answer the notes and tags that came when nobody asked for them here any more."""
        from workbench.knowledge.inbox import settle

        try:
            if self._place is not None:
                with suppress(OSError):  # of a disk that is away
                    self._place.close()  # first: who sees the study driven by nobody may resume it
            log.close()
            with suppress(Exception):  # they wait on
                settle(self.db, self.name)
            callbacks.close()
        finally:
            self._over.set()  # whatever else has failed: somebody waits for it
            atexit.unregister(self._tell_cut_off)

    def _tell_cut_off(self) -> None:
        """Say where a script ends while its study runs: without an error it would look as if all were well."""
        if self._thread.is_alive() and not self._stopping.is_set():
            warnings.warn(
                f"study {self.name!r} is cut off, for the script ends and nobody waits for it: let the script end with "
                "run.wait() or run.follow(), or begin by study.launch() what is to outlive it; this one goes on by "
                "study.start(resume=True)",
                stacklevel=2,
            )

    def _stopped_within(self, seconds: float) -> bool:
        """Wait for the study to be asked to end, also from elsewhere: nobody takes requests while the log waits."""
        return self._stopping.wait(seconds) or self._inbox.holds(_STOP)

    def _requests(self, log: "StudyLog", ledger: Ledger) -> "Sequence[Request]":
        """Take what people ask; asked about twice a second, so that here it is noticed too when the log has gone."""
        log.check_there()
        requests, self._asked = [*self._asked, *self._inbox()], []
        if any(request.action == _STOP and request.id not in ledger.requests for request in requests):
            self._stopping.set()
        return requests

    def _end_badly(
        self, err: BaseException, watched: WatchedLog, said: Callable[[], str], past: Sequence[Event]
    ) -> None:
        self.error = err
        self._progress.state = "interrupted"
        data = {"error": said() if isinstance(err, FirstTrialsFailed) else repr(err)}
        with suppress(Exception):  # the log itself may be what failed
            at = self._progress.at
            ends = [replace(last_end(past), at=at)] if self._only_confirm else []
            watched.append([Event(Kind.STUDY_INTERRUPTED, at, data=data), *ends])


def see_through(run: StudyRun, watch: Callable[[], object]) -> bool:
    """Watch a study to its end. Ctrl-C ends it cleanly, a second one leaves at once; tell whether the first came.

    Once dask_jobqueue has been imported it is a `SystemExit`. The study runs on where nobody reads any more what is
    told of it.
    """
    try:
        try:
            watch()
        except OSError:  # of what it is told to: the study's own would come again
            run.wait()
    except (KeyboardInterrupt, SystemExit):
        with suppress(OSError):
            sys.stderr.write("\nending the study; press Ctrl-C again to leave at once\n")
        run.stop()
        run.wait()
        return True
    return False


def start_to_confirm(study: "Study", top: int, seeds: int) -> StudyRun:
    """Confirm a study's best configurations in a background thread; see `StudyRun.confirm`."""
    from workbench.study.confirm import requests_to_confirm

    return StudyRun(study, resume=True, confirming=requests_to_confirm(study, top, seeds))


def confirm(study: "Study", top: int = 3, seeds: int = 10) -> "pd.DataFrame":
    """Confirm a study's best configurations; see `StudyRun.confirm`."""
    from workbench.study.results import Results

    run = start_to_confirm(study, top, seeds)
    if see_through(run, run.wait):
        raise KeyboardInterrupt(f"confirm(top={top}, seeds={seeds}) again trains what is missing")
    return Results.open(study.db, study.name).confirmed


def _said(hopeless: Hopeless, ledger: Ledger, n_trials: int) -> str:
    """Tell what the first trials failed of and what to do: none of those that failed is tried again."""
    if (lost := ledger.n_in(TrialState.FAILED)) >= n_trials:
        return f"{hopeless.cause}; {hopeless.cure} and begin another study, for this one has no trial left"
    goes_on = f"resume the study, where the {lost} that failed are not tried again"
    return f"{hopeless.cause}; {hopeless.cure} and {goes_on}, or let it go on with fail_fast=False"
