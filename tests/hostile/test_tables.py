"""What a trial measures and saves can neither replace a table's columns nor pass for the workbench's own files."""

import os
from pathlib import Path

import pytest

from tests.knowledge.studies import a_study
from tests.support import Deterministic, saved
from workbench.cluster.checkpoints import CheckpointStore
from workbench.core.errors import CheckpointError, WorkbenchError
from workbench.core.measured import numbers, parted
from workbench.core.protocols import Event, Kind
from workbench.knowledge.frames import PHASES, TRIALS, frames_of


@pytest.mark.parametrize("name", [name for name in PHASES if name != "score"])
def test_a_metric_named_as_a_column_is_refused_at_the_trial(name) -> None:
    for take in (numbers, parted):
        with pytest.raises(WorkbenchError, match=f"a metric cannot be called '{name}'"):
            take({"score": 1.0, name: 7.0})


def test_a_metric_named_as_a_column_is_passed_over_on_reading() -> None:
    def spoiled(event: Event) -> Event:
        if event.kind is not Kind.PHASE_ENDED:
            return event
        metrics = {**event.data.get("metrics", {}), **dict.fromkeys(PHASES, -7.0)}
        return Event(event.kind, event.at, event.trial, event.phase, event.slot, {**event.data, "metrics": metrics})

    plain, read = frames_of(a_study()), frames_of([spoiled(event) for event in a_study()])
    assert read.phases[PHASES].equals(plain.phases[PHASES])


def test_a_hyperparameter_named_as_a_column_is_passed_over_on_reading() -> None:
    def spoiled(event: Event) -> Event:
        if event.kind is not Kind.RUN:
            return event
        config = {**event.data["config"], **dict.fromkeys(TRIALS, 9), "ended_s": "never", "state": "<b>"}
        return Event(event.kind, event.at, event.trial, event.phase, event.slot, {**event.data, "config": config})

    plain, read = frames_of(a_study()), frames_of([spoiled(event) for event in a_study()])
    assert read.trials.equals(plain.trials)


def manifest(path: Path) -> None:
    (path / "manifest.json").write_text("{}")


def dangling(path: Path) -> None:
    (path / "weights").symlink_to(path / "nowhere")


def elsewhere(path: Path) -> None:
    (path / "weights").symlink_to("/etc/hostname")


def folder(path: Path) -> None:
    (path / "weights").symlink_to("/etc", target_is_directory=True)


def pipe(path: Path) -> None:
    os.mkfifo(path / "weights")


@pytest.mark.parametrize("leave", [manifest, dangling, elsewhere, folder, pipe])
@pytest.mark.parametrize("url", [False, True])
def test_a_checkpoint_with_a_manifest_or_a_link_of_its_own_is_refused_at_once(tmp_path, leave, url) -> None:
    trial = Deterministic({}, 0)
    trial.save = leave  # type: ignore[method-assign]
    store = CheckpointStore(f"file://{tmp_path}/c" if url else str(tmp_path / "c"))
    with pytest.raises(CheckpointError, match=r"save\(\) (wrote manifest.json|left 'weights')"):
        saved(store, trial, 0, 0)
    assert store.disk_use() == 0


def test_the_use_of_a_disk_with_links_that_lead_nowhere_is_added_up(tmp_path) -> None:
    for root in (str(tmp_path / "c"), f"file://{tmp_path}/c"):
        store = CheckpointStore(root)
        saved(store, Deterministic({}, 0), 0, 0)
        (tmp_path / "c" / "loop").unlink(missing_ok=True)
        (tmp_path / "c" / "loop").symlink_to(tmp_path / "c")
        (tmp_path / "c" / "nowhere").unlink(missing_ok=True)
        (tmp_path / "c" / "nowhere").symlink_to(tmp_path / "x")
        assert store.disk_use() > 0


@pytest.mark.parametrize("name", ["../outside/phase-000", "/etc", "trial-00000/../../x", "trial-00000/phase-000/.."])
def test_a_checkpoints_name_cannot_lead_out_of_its_folder(tmp_path, name) -> None:
    store = CheckpointStore(str(tmp_path / "c"))
    for use in (lambda: store.load(Deterministic({}, 0), name), lambda: store.pin(name)):
        with pytest.raises(CheckpointError, match="is not a checkpoint's name"):
            use()
    assert not list(tmp_path.iterdir())


def test_checkpoints_are_private_whatever_the_umask(tmp_path) -> None:
    before = os.umask(0)
    try:
        saved(CheckpointStore(str(tmp_path / "kb.checkpoints" / "one")), Deterministic({}, 0), 0, 0)
    finally:
        os.umask(before)
    assert (tmp_path / "kb.checkpoints").stat().st_mode & 0o077 == 0
