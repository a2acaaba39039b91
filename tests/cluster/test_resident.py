"""Which trial lives on a worker, and what it goes on from where it does not."""

import os
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import SPACE, Deterministic, saved
from workbench import FullRuns, RandomSearcher, Study
from workbench.cluster.checkpoints import CheckpointStore, part_name
from workbench.cluster.parcel import parcelled
from workbench.cluster.resident import Resident
from workbench.cluster.task import PhaseTask
from workbench.core.errors import CheckpointError, NoState
from workbench.core.protocols import Job


class Trial(Deterministic):
    """A trial that can be saved within a phase, and knows whether it was closed."""

    resumes_midway, closed = True, False

    def close(self) -> None:
        self.closed = True
        raise RuntimeError("it does not go in peace")


@pytest.fixture
def store(tmp_path) -> CheckpointStore:
    return CheckpointStore(str(tmp_path), keep=9)


def task(
    store: CheckpointStore, phase: int, checkpoint: str | None = None, trial: int = 0, kind=Trial, **more
) -> PhaseTask:
    given = {"study": "study", "topic": "driver", "attempt": 0, **more}
    return PhaseTask(Job(trial, phase, {"lr": 1e-3}, trial, checkpoint), parcelled(kind, store.root), store, **given)


def copied(store: CheckpointStore, phase: int, checkpoint: str, start: str | None, first: int) -> PhaseTask:
    """A phase of trial 1, which began in phase `first` with the weights of `start`."""
    due = task(store, phase, checkpoint, trial=1)
    return replace(due, job=replace(due.job, start=start, first=first))


def run_in(
    store: CheckpointStore, trial: int, phases: Iterable[int], damaged: Collection[int], trained: int = 0
) -> str:
    """Run phases of a trial that has trained for so many, damage some of its checkpoints, and give the last."""
    trainable = Deterministic({"lr": 1e-3}, trial)
    trainable.phase, name = trained, ""
    for phase in phases:
        trainable.train_phase(lambda _: None)
        name = saved(store, trainable, trial, phase)
        if phase in damaged:
            (Path(store.root) / name / "phase.txt").write_text("77")
    return name


def lives(store: CheckpointStore) -> tuple[Resident, Trial, str]:
    """A worker on which a trial lives that has run phase 0, the trial, and its checkpoint."""
    resident = Resident()
    trial, again, recovered = resident.bring_up(task(store, 0))
    assert (again, recovered) == (0, "")
    resident.begins()
    trial.train_phase(lambda _: None)
    resident.has_run(task(store, 0))
    return resident, trial, saved(store, trial, 0, 0)


def test_a_trial_lives_on_from_phase_to_phase(store) -> None:
    resident, trial, name = lives(store)
    assert resident.bring_up(task(store, 1, name)) == (trial, 0, "")
    assert not trial.closed


@pytest.mark.parametrize(
    ("phase", "more", "comes_up_at"),
    [
        (0, {}, 0),  # its report was lost, and the phase is to be run again
        (2, {}, 1),  # the phase between ran elsewhere
        (1, {"topic": "the next driver"}, 1),  # which does not know how far it has come
        (1, {"trial": 1}, 1),  # a copy
    ],
)
def test_another_phase_driver_or_trial_is_brought_up_anew_and_the_old_one_closed(
    store, phase, more, comes_up_at
) -> None:
    resident, trial, name = lives(store)
    other, again, recovered = resident.bring_up(task(store, phase, name if phase else None, **more))
    assert (other.phase, again, recovered) == (comes_up_at, 0, "")
    assert other is not trial
    assert trial.closed


def test_only_the_study_whose_trial_it_is_closes_it(store) -> None:
    resident, trial, name = lives(store)
    resident.close("another study")
    assert resident.bring_up(task(store, 1, name))[0] is trial
    resident.close("study")
    assert trial.closed
    assert resident.bring_up(task(store, 1, name))[0] is not trial


@pytest.mark.parametrize(
    ("damaged", "source", "again", "ran"),
    [
        ((2,), "trial-00000/phase-001", 1, "1 phase"),
        ((1, 2), "trial-00000/phase-000", 2, "2 phases"),
        ((0, 1, 2), "the beginning", 3, "3 phases"),
    ],
)
def test_from_a_damaged_checkpoint_a_trial_goes_back_to_the_newest_whole_one(
    store, damaged, source, again, ran
) -> None:
    name = run_in(store, 0, range(3), damaged)
    fresh, to_run, told = Resident().bring_up(task(store, 3, name))
    assert (fresh.phase, to_run) == (3 - again, again)
    assert told.startswith(f"went on from {source} and ran {ran} again, because ")
    assert "phase.txt is not what was written" in told


@pytest.mark.parametrize("first", [0, 2, 5])  # its donor was ahead, level, or behind
@pytest.mark.parametrize(
    ("damaged", "donors", "source", "again"),
    [
        ((1,), (), "trial-00001/phase-{}", 1),
        ((0, 1), (), "trial-00000/phase-001", 2),
        ((0, 1), (1,), "trial-00000/phase-000", 3),
    ],
)
def test_a_copy_goes_back_to_a_checkpoint_of_its_own_and_then_to_its_donors(
    store, first, damaged, donors, source, again
) -> None:
    start = run_in(store, 0, range(2), donors)
    name = run_in(store, 1, range(first, first + 2), [first + n for n in damaged], trained=2)
    copy, to_run, told = Resident().bring_up(copied(store, first + 2, name, start, first))
    assert (copy.phase, to_run) == (4 - again, again)
    assert f"went on from {source.format(f'{first:03d}')} and ran {again} phase" in told


@pytest.mark.parametrize("ended", [0, 1])
def test_a_copy_of_whose_weights_none_are_left_fails_and_never_begins_anew(store, ended) -> None:
    start = run_in(store, 0, range(2), range(2))
    name = run_in(store, 1, range(2, 2 + ended), range(9)) if ended else start
    with pytest.raises(
        CheckpointError, match=r"trial 1 has its weights from trial-00000/phase-001, and there is nothing"
    ):
        Resident().bring_up(copied(store, 2 + ended, name, start, 2))


def test_of_a_trial_that_saves_nothing_there_is_no_copy(store) -> None:
    class Stateless(Deterministic):
        def load(self, path: Path) -> None:
            raise NoState("it yielded no state")

    start = run_in(store, 0, range(2), ())
    due = replace(copied(store, 2, start, start, 2), factory=parcelled(Stateless, store.root))
    with pytest.raises(NoState, match=r"trial 1 has its weights from .* go on from: it yielded no state"):
        Resident().bring_up(due)


def test_a_trial_whose_parent_had_no_weights_begins_anew_where_it_began(store) -> None:
    name = run_in(store, 1, range(2, 4), range(9))
    _, again, told = Resident().bring_up(copied(store, 4, name, None, 2))
    assert again == 2
    assert told.startswith("went on from the beginning and ran 2 phases again, because ")


def test_a_phase_that_was_saved_in_part_is_gone_on_with_once(store) -> None:
    resident, trial, name = lives(store)
    resident.bring_up(task(store, 1, name))
    assert not resident.save_part(task(store, 1, name))  # it has not begun
    resident.begins()
    trial.phase = 55  # somewhere within
    assert resident.save_part(task(store, 1, name))
    other = Resident()
    assert other.bring_up(task(store, 1, name))[0].phase == 55
    other.has_run(task(store, 1, name))
    assert not other.save_part(task(store, 1, name))
    other.forget_part(task(store, 1, name))
    assert not store.has(part_name(0, 1))
    assert Resident().bring_up(task(store, 1, name))[0].phase == 1


def test_of_a_trial_that_cannot_go_on_within_a_phase_no_part_is_saved(store) -> None:
    resident = Resident()
    resident.bring_up(task(store, 0, kind=Deterministic))
    resident.begins()
    assert not resident.save_part(task(store, 0, kind=Deterministic))


def test_a_part_that_is_damaged_is_left_for_the_checkpoint_before_it(store) -> None:
    resident, _, name = lives(store)
    resident.bring_up(task(store, 1, name))
    resident.begins()
    assert resident.save_part(task(store, 1, name))
    (Path(store.root) / part_name(0, 1) / "phase.txt").write_text("77")
    assert Resident().bring_up(task(store, 1, name))[0].phase == 1


def test_a_trial_begins_in_its_workers_folder_wherever_the_one_before_went(client, db, tmp_path) -> None:
    homes = set(client.run(os.getcwd).values())

    def train(config):
        began = os.getcwd()
        os.chdir(tmp_path)
        yield float(began in homes)

    run = Study("wanders", FullRuns(RandomSearcher(SPACE), 3, 1), train, db, client=client, max_retries=0).run()
    assert run.frames().phases["score"].tolist() == [1.0] * 3  # three on two workers
