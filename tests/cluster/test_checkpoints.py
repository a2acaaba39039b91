from dataclasses import replace

import pytest
import torch

from tests.support import Deterministic
from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.place import Place
from workbench.core.errors import CheckpointError, InvalidInput


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
    with pytest.raises(CheckpointError, match=r"phase.txt is not what was written"):
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


@pytest.mark.parametrize("write", [lambda path: path.write_text("9"), lambda path: torch.save({}, path)])
def test_a_trial_that_takes_the_directory_for_a_file_is_told(tmp_path, write) -> None:
    class Mistaken(Deterministic):
        def save(self, path) -> None:
            write(path)

        def load(self, path) -> None:
            path.read_text()

    store = CheckpointStore(str(tmp_path))
    with pytest.raises(InvalidInput, match=r"Mistaken.save\(path\) .* path is a directory: .* path / "):
        store.save(Mistaken({"lr": 1e-3}, 0), 0, 0)
    with pytest.raises(InvalidInput, match=r"Mistaken.load\(path\) .* path is a directory"):
        store.load(Mistaken({"lr": 1e-3}, 0), store.save(trained(1), 0, 0))


def test_a_checkpoint_without_one_of_its_files_is_refused(tmp_path) -> None:
    store = CheckpointStore(str(tmp_path))
    name = store.save(trained(3), 0, 2)
    (tmp_path / name / "phase.txt").unlink()
    with pytest.raises(CheckpointError, match=r"refused: phase.txt is missing"):
        store.load(trained(0), name)


def kept(store, trial: int = 0) -> list[int]:
    return sorted(phase for _, phase in store.before(f"trial-{trial:05d}/phase-999"))


def test_the_best_one_is_kept_beside_the_newest(store) -> None:
    for phase, score in enumerate([1.0, 9.0, 3.0, 2.0, 4.0]):
        store.save(trained(phase + 1), 0, phase, score)
    assert kept(store) == [1, 3, 4]
    store.save(trained(6), 0, 5, 10.0)
    assert kept(store) == [4, 5]


def test_the_lowest_one_is_kept_where_scores_are_minimised(store) -> None:
    lower = replace(store, mode="min")
    for phase, score in enumerate([3.0, 1.0, 2.0, 4.0, 5.0]):
        lower.save(trained(phase + 1), 0, phase, score)
    assert kept(store) == [1, 3, 4]


def test_one_that_another_trial_started_from_is_kept_for_good(store) -> None:
    donor = store.save(trained(1), 0, 0)
    store.pin(donor)
    for phase in range(1, 5):
        store.save(trained(phase + 1), 0, phase)
    assert kept(store) == [0, 3, 4]
    store.load(Deterministic({"lr": 1e-3}, 0), donor)


def test_disk_use_is_the_bytes_of_what_is_kept(store) -> None:
    assert store.disk_use() == 0
    for phase in range(3):
        store.save(trained(phase + 1), 0, phase)
    used = store.disk_use()
    assert 2 * 100 < used < 2 * 1000
    store.save(trained(4), 0, 3)
    assert store.disk_use() == used


def test_what_a_killed_worker_left_half_saved_goes_with_the_old_ones(tmp_path) -> None:
    store = CheckpointStore(str(tmp_path))
    leftover = tmp_path / "trial-00000" / ".phase-000.deadbeef"
    leftover.mkdir(parents=True)
    for phase in range(3):
        store.save(trained(phase + 1), 0, phase)
    assert not leftover.exists()
    assert kept(store) == [1, 2]


def test_stores_whose_names_only_begin_alike_hold_nothing_in_common(tmp_path) -> None:
    """A URL would be chained at the colons."""
    here, there = (CheckpointStore(str(tmp_path / name)) for name in ("a", "a::b"))
    names = [store.save(trained(phases), 0, 0) for phases, store in enumerate((here, there), 1)]
    there.remove()
    fresh = Deterministic({"lr": 1e-3}, 0)
    here.load(fresh, names[0])
    assert fresh.phase == 1
    assert not (tmp_path / "a::b").exists()


@pytest.mark.parametrize("url", [False, True])
def test_what_is_no_checkpoint_is_neither_counted_nor_removed(tmp_path, url) -> None:
    """Whoever names a place may have other things there."""
    store = CheckpointStore(f"file://{tmp_path}" if url else str(tmp_path))
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "trial-00000.tex").write_bytes(bytes(5000))
    assert store.disk_use() == 0
    store.save(trained(1), 0, 0)
    assert store.disk_use() < 1000
    store.remove()
    assert [path.name for path in tmp_path.rglob("*")] == ["thesis", "trial-00000.tex"]


@pytest.mark.parametrize("url", ["{}/place", "file://{}/place", "memory://{}/place"])
def test_a_place_is_marked_as_the_study_s_that_claims_it_first(tmp_path, url) -> None:
    place = Place(url.format(tmp_path))
    assert place.owner() == ""
    assert [place.claim(identity) for identity in ("one", "other", "one")] == ["one", "one", "one"]
    assert not place.holds_any()
    place.remove()
    assert place.claim("other") == "other"


def test_a_place_that_cannot_be_reached_is_nobody_s(tmp_path) -> None:
    """Whoever saves there is told."""
    (tmp_path / "file").touch()
    assert Place(str(tmp_path / "file" / "place")).claim("one") == ""


@pytest.mark.parametrize("pattern", ["night[12]", "night*", "night?"])
def test_no_store_touches_another_whose_name_fits_its_own_as_a_pattern(tmp_path, pattern) -> None:
    others = [CheckpointStore(str(tmp_path / name)) for name in ("night1", "night2")]
    names = [other.save(trained(1), 0, 0) for other in others]
    mine = CheckpointStore(str(tmp_path / pattern))
    for phase in range(4):
        mine.load(trained(0), mine.save(trained(phase + 1), 0, phase))
    mine.remove()
    assert [other.has(name) for other, name in zip(others, names, strict=True)] == [True, True]
    for url in (f"memory://{tmp_path.name}/{pattern}", f"file://{tmp_path}/{pattern}"):  # fsspec would expand it
        with pytest.raises(InvalidInput, match="would stand for other places as well"):
            CheckpointStore(url).remove()
