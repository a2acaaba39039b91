import pytest

from tests.support import Deterministic
from workbench.cluster.checkpoints import CheckpointError, CheckpointStore


@pytest.fixture(params=["directory", "url"])
def store(request, tmp_path):
    return CheckpointStore(str(tmp_path) if request.param == "directory" else f"memory://{tmp_path.name}")


def trained(phases: int) -> Deterministic:
    trial = Deterministic({"lr": 1e-3}, 0)
    for _ in range(phases):
        trial.train_phase(lambda _: None)
    return trial


def test_a_trial_goes_on_from_what_was_saved(store) -> None:
    name = store.save(trained(3), 5, 2)
    fresh = Deterministic({"lr": 1e-3}, 0)
    store.load(fresh, name)
    assert fresh.phase == 3


def test_only_the_newest_are_kept(store) -> None:
    names = [store.save(trained(phase + 1), 0, phase) for phase in range(4)]
    fresh = Deterministic({"lr": 1e-3}, 0)
    for name in names[2:]:
        store.load(fresh, name)
    for name in names[:2]:
        with pytest.raises(CheckpointError, match=r"no .*checkpoint at"):
            store.load(fresh, name)


def test_saving_the_same_phase_again_replaces_it(store) -> None:
    store.save(trained(1), 0, 0)
    name = store.save(trained(2), 0, 0)
    fresh = Deterministic({"lr": 1e-3}, 0)
    store.load(fresh, name)
    assert fresh.phase == 2


def test_a_damaged_checkpoint_is_refused(tmp_path) -> None:
    store = CheckpointStore(str(tmp_path))
    name = store.save(trained(3), 0, 2)
    (tmp_path / name / "phase.txt").write_text("9")
    with pytest.raises(CheckpointError, match=r"phase.txt is missing or not what was written"):
        store.load(trained(0), name)


def test_a_save_that_fails_leaves_nothing_behind(tmp_path) -> None:
    class Full(Deterministic):
        def save(self, path) -> None:
            super().save(path)
            raise OSError(28, "No space left on device")

    store = CheckpointStore(str(tmp_path))
    with pytest.raises(OSError, match="No space"):
        store.save(Full({"lr": 1e-3}, 0), 0, 0)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []
