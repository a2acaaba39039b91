"""A phase on a worker without a cluster: what it tells of its end, and what makes it stop."""

import errno
import os
import subprocess
import threading
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from tests.cluster.test_leaving import Alone
from tests.clusters.trials import Paced
from tests.support import saved, silent, small_disk
from workbench.cluster import manifest, place, worker
from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.leaving import Leaving
from workbench.cluster.place import Place
from workbench.cluster.task import PhaseTask
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Job


@pytest.fixture
def alone(monkeypatch) -> Alone:
    monkeypatch.setattr(worker, "_PLACE_RETRY_S", 0.0)
    return Alone(monkeypatch)


def fails_once_with(error: Exception):
    """Give a trial's `save` that fails the first time."""
    errors = [error]

    def save(path: Path) -> None:
        if errors:
            raise errors.pop()
        (path / "at.json").write_text("[1, 0, 10]")

    return save


@pytest.mark.parametrize(
    ("error", "retry"),
    [(ValueError("once"), True), (FloatingPointError("loss is nan"), False), (InvalidInput("it is wrong"), False)],
)
def test_what_comes_out_the_same_a_second_time_is_said_not_to_be_tried_again(alone, tmp_path, error, retry) -> None:
    def fail() -> None:
        raise error

    result = alone.run(CheckpointStore(str(tmp_path)), Paced(1, 0.0), on_end=fail)
    assert (result["error"], result["retry"]) == (f"{type(error).__name__}: {error}", retry)
    assert "left" not in result
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_waited_for_and_that_is_said_though_something_has_just_been_said(alone, tmp_path) -> None:
    full = fails_once_with(OSError(errno.ENOSPC, "No space left on device"))
    result = alone.run(CheckpointStore(str(tmp_path)), Paced(1, 0.0), save=full)
    assert alone.said == ["waiting for disk space to save a checkpoint"]
    assert (tmp_path / result["checkpoint"] / "at.json").exists()


def test_a_disk_that_refuses_is_not_waited_for(alone, tmp_path) -> None:
    result = alone.run(
        CheckpointStore(str(tmp_path)), Paced(1, 0.0), save=fails_once_with(OSError(errno.EACCES, "Permission denied"))
    )
    assert "Permission denied" in result["error"]
    assert alone.said == []


def test_a_place_that_is_read_only_for_a_while_is_waited_for(alone, tmp_path) -> None:
    def remount(how: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True)

    alone.proved = True
    with small_disk(tmp_path / "disk") as disk:
        alone.on_note = partial(remount, "rw")
        result = alone.run(CheckpointStore(str(disk)), Paced(1, 0.0), on_end=partial(remount, "ro"))
        assert alone.said == [f"waiting for the place of checkpoints {disk}: Read-only file system"]
        assert (disk / result["checkpoint"] / "at.json").exists()


@pytest.mark.parametrize("proved", [False, True])
@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE])
def test_a_place_that_fails_is_waited_for_if_it_has_taken_others(alone, tmp_path, monkeypatch, number, proved) -> None:
    make, errors = manifest.private_folder, [OSError(number, os.strerror(number))]

    def fail_once(path: Path) -> Path:
        if errors:
            raise errors.pop()
        return make(path)

    monkeypatch.setattr(manifest, "private_folder", fail_once)
    alone.proved = proved
    result = alone.run(CheckpointStore(str(tmp_path)), Paced(1, 0.0))
    assert ("metrics" in result) == proved
    assert len(alone.said) == proved
    assert proved or os.strerror(number) in result["error"]


def test_a_place_that_cannot_be_looked_into_has_lost_no_checkpoint(alone, tmp_path, monkeypatch) -> None:
    store, phases = CheckpointStore(str(tmp_path)), Place.phases
    name, moved = saved(store, Paced(1, 0.0)({}, 0), 0, 0), tmp_path / "moved"
    (tmp_path / name).rename(moved)

    def fail_once(place: Place, folder: str) -> list[int]:
        if moved.exists():
            raise OSError(errno.EIO, "Input/output error")
        return phases(place, folder)

    monkeypatch.setattr(Place, "phases", fail_once)
    alone.proved, alone.on_note = True, lambda: moved.rename(tmp_path / name)
    result = alone.run(store, Paced(1, 0.0), upon=name)
    assert alone.said == [f"waiting for the place of checkpoints {tmp_path}: Input/output error"]
    assert "recovered" not in result
    assert (tmp_path / result["checkpoint"] / "at.json").exists()


def test_a_trial_that_moves_while_the_folder_is_away_begins_when_it_is_back(alone, tmp_path) -> None:
    there, away, built = tmp_path / "there", tmp_path / "away", []
    store = CheckpointStore(str(there), study="study", marked=True)
    Place(store.root).claim("study")
    name = saved(store, Paced(1, 0.0)({}, 0), 0, 0)
    there.rename(away)

    def how(config, seed):
        built.append(seed)
        return Paced(1, 0.0)(config, seed)

    alone.proved, alone.on_note = True, lambda: away.rename(there)
    result = alone.run(store, how, upon=name)
    (note,) = alone.said
    assert note.startswith(f"waiting for the place of checkpoints {there}: its file .study is gone")
    assert "recovered" not in result
    assert len(built) == 1


@pytest.mark.parametrize("proved", [False, True])
def test_a_trial_that_moves_while_a_store_is_out_of_reach_begins_when_it_is_back(
    alone, tmp_path, monkeypatch, proved
) -> None:
    """An outage of minutes would cost every attempt of each trial that is resumed, copied or retried meanwhile."""
    store, get, away = CheckpointStore(f"memory://{tmp_path.name}"), MemoryFileSystem.get, [True]
    name = saved(store, Paced(1, 0.0)({}, 0), 0, 0)

    def cut(self, *given, **how) -> None:
        if away:
            raise OSError("no route to host")
        get(self, *given, **how)

    monkeypatch.setattr(place, "_WAITS_S", (0.0,))
    monkeypatch.setattr(MemoryFileSystem, "get", cut)
    alone.proved, alone.on_note = proved, away.clear
    result = alone.run(store, Paced(1, 0.0), upon=name)
    error = f"{name} cannot be read from {store.root}: no route to host"
    assert alone.said == [f"waiting for the place of checkpoints {store.root}: {error}"] * proved
    assert ("metrics" in result) == proved
    assert "recovered" not in result
    assert proved or error in result["error"]


@pytest.mark.parametrize("away", ["get", "info"])  # asked for the checkpoint; for a part of the phase that is due
def test_a_trial_that_waited_for_its_store_goes_on_with_what_it_has_learnt(alone, tmp_path, monkeypatch, away) -> None:
    store, ask, cut = CheckpointStore(f"memory://{tmp_path.name}"), getattr(MemoryFileSystem, away), [True]
    trained = Paced(1, 0.0)({"lr": 1e-3}, 0)
    for _ in range(3):
        trained.train_phase(silent)
    name = saved(store, trained, 0, 0)

    def asked(self, *given, **how):
        if cut:
            raise OSError("no route to host")
        return ask(self, *given, **how)

    monkeypatch.setattr(place, "_WAITS_S", (0.0,))
    monkeypatch.setattr(MemoryFileSystem, away, asked)
    alone.proved, alone.on_note = True, cut.clear
    result = alone.run(store, Paced(1, 0.0), upon=name)
    assert len(alone.said) == 1
    assert result["metrics"]["total"] == 4.0


@pytest.mark.parametrize("stopped", [False, True])
def test_a_trial_waits_for_a_store_that_takes_its_question_and_does_not_answer(
    alone, tmp_path, monkeypatch, stopped
) -> None:
    """Its silence is no stall of the trial's, and who wants the phase no more does not wait for it."""
    store, get, answers = CheckpointStore(f"memory://{tmp_path.name}"), MemoryFileSystem.get, threading.Event()
    name = saved(store, Paced(1, 0.0)({}, 0), 0, 0)

    def hang(self, *given, **how) -> None:
        assert answers.wait(300)
        get(self, *given, **how)

    def on_note() -> None:
        if stopped:
            alone.here.cancelled.add(("topic", ""))
        else:
            answers.set()

    monkeypatch.setattr(place, "_SILENT_S", 0.01)
    monkeypatch.setattr(MemoryFileSystem, "get", hang)
    alone.proved, alone.on_note = True, on_note
    result = alone.run(store, Paced(1, 0.0), upon=name)
    answers.set()
    assert set(alone.said) == {f"waiting for the place of checkpoints {store.root} to answer"}
    assert ("metrics" in result) == (not stopped)
    assert not stopped or result["error"] == "PhaseCancelled"


@pytest.mark.parametrize("number", [errno.EROFS, errno.EIO])
def test_what_a_trial_finds_read_only_elsewhere_is_its_own_affair(alone, tmp_path, number) -> None:
    alone.proved = True
    result = alone.run(
        CheckpointStore(str(tmp_path)), Paced(1, 0.0), save=fails_once_with(OSError(number, os.strerror(number)))
    )
    assert os.strerror(number) in result["error"]
    assert alone.said == []


@pytest.mark.parametrize(
    ("cancelled", "driver", "runs"),
    [
        (("topic", ""), "topic", False),
        (("topic", "trial-0-phase-0-attempt-0"), "topic", False),
        (("topic", "trial-0-phase-0-attempt-1"), "topic", True),
        (("another topic", ""), "topic", True),
        (None, "topic of the next driver", False),
    ],
)
def test_a_phase_stops_where_it_is_wanted_no_more(alone, tmp_path, cancelled, driver, runs) -> None:
    alone.here.driver["study"] = alone.driver = driver
    alone.here.cancelled |= {cancelled} if cancelled else set()
    result = alone.run(CheckpointStore(str(tmp_path)), Paced(1, 0.0))
    assert ("metrics" in result) == runs
    assert runs or result["error"].startswith("PhaseCancelled")


def test_metrics_are_told_a_few_times_a_second_at_most(alone, monkeypatch) -> None:
    now = [7.0]
    monkeypatch.setattr(worker, "time", SimpleNamespace(monotonic=lambda: now[0]))
    report = worker._Reporter(PhaseTask(Job(0, 0, {}, 0), None, None, "study", "topic", 0), alone.here)
    for _ in range(1000):
        report({"frames": 1.0})
    assert alone.n_told == 1
    now[0] += worker._REPORT_EVERY_S
    report({"frames": 2.0})
    assert alone.n_told == 2


def test_a_driver_whose_word_has_not_come_is_asked_for(alone, tmp_path) -> None:
    alone.here.driver["study"] = "topic of the driver before"
    assert "metrics" in alone.run(CheckpointStore(str(tmp_path)), Paced(1, 0.0))
    assert alone.here.driver["study"] == "topic"


@pytest.mark.parametrize("proved", [False, True])
def test_a_place_that_has_taken_others_is_away_for_the_moment(alone, tmp_path, monkeypatch, proved) -> None:
    def refuse(*_) -> None:
        raise OSError("the network is down")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(Place, "upload", refuse)
    alone.proved = proved
    result = alone.run(CheckpointStore(f"memory://{tmp_path.name}"), Paced(1, 0.0))
    assert "the network is down" in result["error"]
    assert result["retry"] == proved


def test_that_a_checkpoint_has_arrived_is_told_to_the_driver_there_is_by_then(alone, tmp_path, monkeypatch) -> None:
    told = []
    monkeypatch.setattr(Leaving, "tell", lambda _, __, topic, message: told.append((topic, message["arrived"])))
    take_over = partial(alone.here.driver.update, study="topic of the next driver")
    alone.run(CheckpointStore(f"file://{tmp_path}/c"), Paced(1, 0.0), on_end=take_over)
    alone.here.uploads.wait(lambda note: None)
    assert told == [("topic of the next driver", "trial-00000/phase-000")]
