"""Trainables too large to travel with every phase."""

import os
import pickle
import warnings

import numpy as np
import pytest

from tests.support import SPACE, Deterministic, MemoryLog
from workbench.algos.search import FullRuns, RandomSearcher
from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.parcel import Parcel, parcelled
from workbench.cluster.place import Place
from workbench.core.drive import drive
from workbench.core.errors import CheckpointError, InvalidInput
from workbench.core.protocols import Kind


class WithData:
    """A factory that brings 12 MB along."""

    def __init__(self) -> None:
        self.data = np.arange(1.5e6)

    def __call__(self, config, seed):
        assert self.data.sum() == np.arange(1.5e6).sum()
        return Deterministic(config, seed)


def files(folder):
    return [path.name for path in folder.glob("*") if path.is_file()]


def test_a_small_one_travels_with_the_phase(tmp_path) -> None:
    parcel = parcelled(Deterministic, str(tmp_path / "c"))
    assert pickle.loads(pickle.dumps(parcel)).open() is Deterministic
    parcel.remove()
    assert not (tmp_path / "c").exists()


def only_in(pid: int) -> type[Deterministic]:
    """Be unpickled, in the process of this number alone."""
    if os.getpid() != pid:
        raise ModuleNotFoundError("No module named 'mine'")
    return Deterministic


class OfMyModule:
    """A factory that a worker cannot import."""

    def __reduce__(self):
        return only_in, (os.getpid(),)


def test_what_a_worker_cannot_import_fails_its_trial_with_that_word_and_no_worker_is_lost(executor_of) -> None:
    executor, log = executor_of(OfMyModule(), max_retries=0), MemoryLog()
    assert drive(FullRuns(RandomSearcher(SPACE), 2, 1), executor, log)
    failed = [event for event in log if event.kind is Kind.TRIAL_FAILED]
    assert [(event.data["why"], event.data["error"]) for event in failed] == [
        ("exception", "ModuleNotFoundError: No module named 'mine'")
    ] * 2
    assert not [event for event in log if event.kind is Kind.SLOT_LOST]


@pytest.mark.parametrize("url", [False, True])
def test_a_large_one_lies_beside_the_checkpoints_as_long_as_it_is_wanted(tmp_path, url) -> None:
    parcel = parcelled(WithData(), f"memory://{tmp_path.name}" if url else str(tmp_path / "c"))
    assert isinstance(parcel, Parcel)
    assert len(pickle.dumps(parcel)) < 1000
    assert np.array_equal(pickle.loads(pickle.dumps(parcel)).open().data, WithData().data)
    parcel.remove()
    with pytest.raises(OSError, match=r"trainable-\w+\.pickle cannot be read from"):
        parcel.open()
    parcel.remove()  # somebody else was faster


def test_what_is_not_what_was_sent_is_not_run(tmp_path) -> None:
    parcel = parcelled(WithData(), str(tmp_path))
    (tmp_path / parcel.name).write_bytes(b"cos\nabort\n(tR.")  # would end this process
    with pytest.raises(CheckpointError, match="is not the trainable that was sent: it is not run"):
        parcel.open()


def test_a_place_that_refuses_it_is_told_in_one_line(tmp_path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        InvalidInput, match=r"^a trainable of 11 MiB is read from beside the checkpoints: .*file/c: .*$"
    ):
        parcelled(WithData(), str(tmp_path / "file" / "c"))


def test_what_a_killed_driver_left_goes_with_the_checkpoints_and_nothing_else_does(tmp_path) -> None:
    parcel = parcelled(WithData(), str(tmp_path / "c"))
    (tmp_path / "c" / "trainable-mine.pickle").touch()
    Place(str(tmp_path / "c")).remove()
    assert files(tmp_path / "c") == ["trainable-mine.pickle"]
    assert not (tmp_path / "c" / parcel.name).exists()


def test_a_study_of_a_large_one_sends_it_through_no_task(executor_of, tmp_path) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Sending large graph")  # Dask's, of tasks of 10 MB
        executor, log = executor_of(WithData()), MemoryLog()
        assert len(files(tmp_path / "checkpoints")) == 1
        assert drive(FullRuns(RandomSearcher(SPACE), 3, 2), executor, log)
    assert sum(event.kind is Kind.PHASE_ENDED for event in log) == 6
    executor.close()
    assert files(tmp_path / "checkpoints") == []
    assert CheckpointStore(str(tmp_path / "checkpoints")).disk_use() > 0
