"""The one trial, or rank of a trial, that lives on a Dask worker from one phase to the next."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

from workbench.cluster.checkpoints import part_name
from workbench.cluster.children import folder_here, go_back, start_by
from workbench.cluster.task import PhaseTask
from workbench.core.errors import CheckpointError, InvalidInput, NoState
from workbench.core.failures import named, short
from workbench.core.protocols import GangFactory, Trainable
from workbench.core.showing import so_many


@dataclass
class _Live:
    study: str
    owner: str  # topic of the driver that put it here
    trial: int
    rank: int
    next_phase: int
    trainable: Trainable
    from_part: bool = False  # whether it was brought up within a phase
    within: bool = False  # whether it is in the due phase, not yet before it nor already at its end


class Resident:
    """Brings a trial up where it does not live here already, and closes it when another takes its place."""

    def __init__(self) -> None:
        self._live: _Live | None = None
        self._folder = folder_here()

    def bring_up(self, task: PhaseTask) -> tuple[Trainable, int, str]:
        """Give the trial, how many phases it must run again before the due one, and why.

        A phase that a worker which was told to leave has saved in part is gone on with. Ranks but 0 are never loaded.

        Raises
        ------
        PlaceAway
            The checkpoints are out of reach.
        CheckpointError
            The trial began with another's weights, and neither has any left; `NoState` where there never were any.
        """
        job, live = task.job, self._live
        due = (task.topic, job.trial, task.rank, job.phase)
        if live is not None and (live.owner, live.trial, live.rank, live.next_phase) == due:
            return live.trainable, task.again, ""
        task.store.check_there()
        try:
            return self._bring_up_anew(task)
        except BaseException:  # it has not what it is to go on with: whoever asks again must not find it here
            self.close()
            raise

    def _bring_up_anew(self, task: PhaseTask) -> tuple[Trainable, int, str]:
        job = task.job
        trainable, part = self._build(task), part_name(job.trial, job.phase)
        if _goes_on_within(task, trainable) and task.store.has(part):
            with suppress(CheckpointError):
                task.store.load(trainable, part)
                self._here.from_part = True
                return trainable, 0, ""
            trainable = self._build(task)
        if job.checkpoint is None or task.rank:
            return trainable, task.again, ""
        try:
            task.store.load(trainable, job.checkpoint)
        except CheckpointError as err:
            return self._recover(task, err)
        return trainable, 0, ""

    def begins(self) -> None:
        """Note that the due phase begins, after any that had to be run again before it."""
        self._here.within = True

    def has_run(self, task: PhaseTask) -> None:
        """Note that a phase has been run: the next one may go on here."""
        self._here.within, self._here.next_phase = False, task.job.phase + 1

    def forget_part(self, task: PhaseTask) -> None:
        """Remove the part of a phase that the trial went on from, once the phase is saved whole."""
        if self._here.from_part:
            self._here.from_part = False
            task.store.remove_part(part_name(task.job.trial, task.job.phase))

    def save_part(self, task: PhaseTask) -> bool:
        """Save a trial whose phase has been ended from without, if it can go on within it; tell whether it was.

        At the phase's end it is no part of it any more: whoever went on from there would train a phase too many.
        """
        live = self._live
        if live is None or not live.within or not _goes_on_within(task, live.trainable):
            return False
        with suppress(Exception):  # what cannot be saved is lost, and the worker leaves in any case
            task.store.save_part(live.trainable, task.job.trial, task.job.phase)
            return True
        return False

    def close(self, study: str | None = None) -> None:
        """Close the live trial, if there is one; or only if it is of this study."""
        if self._live is None or study not in (None, self._live.study):
            return
        gone, self._live = self._live, None
        with suppress(Exception):  # it is given up in any case; the next trial must not pay for it
            gone.trainable.close()

    @property
    def _here(self) -> _Live:
        assert self._live is not None  # it was brought up
        return self._live

    def _recover(self, task: PhaseTask, refused: CheckpointError) -> tuple[Trainable, int, str]:
        """Go on from an older checkpoint, or from the beginning; the phases that are missing must be run again.

        A trial that began with another's weights never begins anew: it would not be what lineage and schedule tell.
        """
        for source, again in _before(task):
            trainable, ran = self._build(task), so_many(again, "phase")
            with suppress(CheckpointError):
                if source:
                    task.store.load(trainable, source)
                return (
                    trainable,
                    again,
                    f"went on from {source or 'the beginning'} and ran {ran} again, because {refused}",
                )
        job, kind = task.job, NoState if isinstance(refused, NoState) else CheckpointError
        raise kind(f"trial {job.trial} has its weights from {job.start}, and there is nothing to go on from: {refused}")

    def _build(self, task: PhaseTask) -> Trainable:
        self.close()
        start_by(task.start_method)  # whatever the last trial has set
        go_back(self._folder)
        config, seed = task.job.config, task.job.seed
        factory = task.factory.open()
        trainable: Trainable
        if task.n_ranks > 1:
            trainable = cast(GangFactory, factory).rank(config, seed, task.rank)
        else:
            trainable = factory(config, seed)
            if not hasattr(trainable, "train_phase"):
                raise InvalidInput(
                    f"{named(factory)} returned {short(trainable)}, which is no trial: a factory returns an "
                    "object with train_phase, save, load and close; a function of your own yields its score once a "
                    "phase"
                )
        self._live = _Live(task.study, task.topic, task.job.trial, task.rank, task.job.phase, trainable)
        return trainable


def _before(task: PhaseTask) -> Iterator[tuple[str, int]]:
    """List what comes before the checkpoint that was refused, the trial's own first, and how many phases it lacks.

    The beginning has no name. A trial that began with another's weights has that one's checkpoints in its place.
    """
    job, store = task.job, task.store
    assert job.checkpoint is not None
    own = job.phase - job.first
    if job.checkpoint != job.start:
        yield from store.before(job.checkpoint)
        yield job.start or "", own
    if job.start is not None:
        for name, older in store.before(job.start):
            yield name, own + older


def _goes_on_within(task: PhaseTask, trainable: Trainable) -> bool:
    return task.n_ranks == 1 and getattr(trainable, "resumes_midway", False)
