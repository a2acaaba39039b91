import errno
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from fsspec import AbstractFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from tests.support import Deterministic, breaking, saved
from workbench.cluster import checkpoints, manifest, place
from workbench.cluster.checkpoints import CheckpointStore, part_name
from workbench.cluster.place import Place
from workbench.core.errors import CheckpointError, InvalidInput, PlaceAway


@pytest.fixture(params=["directory", "url"])
def store(request, tmp_path):
    return CheckpointStore(str(tmp_path) if request.param == "directory" else f"memory://{tmp_path.name}")


def trained(phases: int) -> Deterministic:
    trial = Deterministic({"lr": 1e-3}, 0)
    for _ in range(phases):
        trial.train_phase(lambda _: None)
    return trial


def test_a_trial_goes_on_from_what_was_saved(store) -> None:
    name = saved(store, trained(3), 5, 2)
    fresh = Deterministic({"lr": 1e-3}, 0)
    store.load(fresh, name)
    assert fresh.phase == 3


def test_only_the_newest_are_kept(store) -> None:
    names = [saved(store, trained(phase + 1), 0, phase) for phase in range(4)]
    fresh = Deterministic({"lr": 1e-3}, 0)
    for name in names[2:]:
        store.load(fresh, name)
    for name in names[:2]:
        with pytest.raises(CheckpointError, match=r"no .*checkpoint at"):
            store.load(fresh, name)


def test_saving_the_same_phase_again_replaces_it(store) -> None:
    saved(store, trained(1), 0, 0)
    name = saved(store, trained(2), 0, 0)
    fresh = Deterministic({"lr": 1e-3}, 0)
    store.load(fresh, name)
    assert fresh.phase == 2


def test_a_damaged_checkpoint_is_refused(tmp_path) -> None:
    store = CheckpointStore(str(tmp_path))
    name = saved(store, trained(3), 0, 2)
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
        saved(store, Full({"lr": 1e-3}, 0), 0, 0)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


@pytest.mark.parametrize("full", [False, True])
def test_a_save_that_fails_of_a_full_disk_says_so_whatever_its_library_says(tmp_path, monkeypatch, full) -> None:
    class Torch(Deterministic):
        def save(self, path) -> None:
            raise RuntimeError("unexpected pos 64 vs 0")

    def write(directory: Path) -> None:
        if full:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(manifest, "_probe", write)
    with pytest.raises(OSError if full else RuntimeError, match="No space" if full else "unexpected pos"):
        saved(CheckpointStore(str(tmp_path)), Torch({"lr": 1e-3}, 0), 0, 0)


@pytest.mark.parametrize("write", [lambda path: path.write_text("9"), lambda path: torch.save({}, path)])
def test_a_trial_that_takes_the_directory_for_a_file_is_told(tmp_path, write) -> None:
    class Mistaken(Deterministic):
        def save(self, path) -> None:
            write(path)

        def load(self, path) -> None:
            path.read_text()

    store = CheckpointStore(str(tmp_path))
    with pytest.raises(InvalidInput, match=r"Mistaken.save\(path\) .* path is a directory: .* path / "):
        saved(store, Mistaken({"lr": 1e-3}, 0), 0, 0)
    with pytest.raises(InvalidInput, match=r"Mistaken.load\(path\) .* path is a directory"):
        store.load(Mistaken({"lr": 1e-3}, 0), saved(store, trained(1), 0, 0))


def test_a_checkpoint_without_one_of_its_files_is_refused(tmp_path) -> None:
    store = CheckpointStore(str(tmp_path))
    name = saved(store, trained(3), 0, 2)
    (tmp_path / name / "phase.txt").unlink()
    with pytest.raises(CheckpointError, match=r"refused: phase.txt is missing"):
        store.load(trained(0), name)


def kept(store, trial: int = 0) -> list[int]:
    return sorted(999 - older for _, older in store.before(f"trial-{trial:05d}/phase-999"))


def test_the_best_one_is_kept_beside_the_newest(store) -> None:
    for phase, score in enumerate([1.0, 9.0, 3.0, 2.0, 4.0]):
        saved(store, trained(phase + 1), 0, phase, score)
    assert kept(store) == [1, 3, 4]
    saved(store, trained(6), 0, 5, 10.0)
    assert kept(store) == [4, 5]


def test_of_those_that_are_equally_good_the_last_is_kept(store) -> None:
    for phase, score in enumerate([9.0, 9.0, 3.0, 2.0, 4.0]):
        saved(store, trained(phase + 1), 0, phase, score)
    assert kept(store) == [1, 3, 4]


def test_older_ones_of_a_trial_are_listed_newest_first(store) -> None:
    for trial, phase in ((0, 0), (0, 1), (0, 2), (0, 3), (1, 0)):
        saved(replace(store, keep=9), trained(phase + 1), trial, phase)
    names = [f"trial-00000/phase-00{phase}" for phase in (2, 1, 0)]
    assert list(store.before("trial-00000/phase-003")) == list(zip(names, (1, 2, 3), strict=True))


def test_the_lowest_one_is_kept_where_scores_are_minimised(store) -> None:
    lower = replace(store, mode="min")
    for phase, score in enumerate([3.0, 1.0, 2.0, 4.0, 5.0]):
        saved(lower, trained(phase + 1), 0, phase, score)
    assert kept(store) == [1, 3, 4]


@pytest.mark.parametrize("damaged", ["{", "[]", '{"score": "high"}'])
def test_one_whose_manifest_is_damaged_is_no_best_and_keeps_none_from_being_saved(tmp_path, damaged) -> None:
    store = CheckpointStore(str(tmp_path))
    for phase, score in enumerate([9.0, 3.0, 2.0, 1.0]):
        name = saved(store, trained(phase + 1), 0, phase, score)
        if phase == 0:
            (tmp_path / name / "manifest.json").write_text(damaged)
            with pytest.raises(CheckpointError, match=r"no whole checkpoint at .*: it cannot be read"):
                store.load(trained(0), name)
    assert kept(store) == [1, 2, 3]


def test_one_that_another_trial_started_from_is_kept_for_good(store) -> None:
    donor = saved(store, trained(1), 0, 0)
    store.pin(donor)
    for phase in range(1, 5):
        saved(store, trained(phase + 1), 0, phase)
    assert kept(store) == [0, 3, 4]
    store.load(Deterministic({"lr": 1e-3}, 0), donor)


def test_disk_use_is_the_bytes_of_what_is_kept(store) -> None:
    assert store.disk_use() == 0
    for phase in range(3):
        saved(store, trained(phase + 1), 0, phase)
    used = store.disk_use()
    assert 2 * 100 < used < 2 * 1000
    saved(store, trained(4), 0, 3)
    assert store.disk_use() == used


def test_what_a_killed_worker_left_half_saved_goes_with_the_old_ones(tmp_path) -> None:
    store = CheckpointStore(str(tmp_path))
    leftover = tmp_path / "trial-00000" / ".phase-000.deadbeef"
    leftover.mkdir(parents=True)
    for phase in range(3):
        saved(store, trained(phase + 1), 0, phase)
    assert not leftover.exists()
    assert kept(store) == [1, 2]


def test_what_a_killed_worker_left_half_saved_goes_once_the_phase_is_saved(tmp_path) -> None:
    """It stayed as long as the checkpoint did: of a trial's last phase for good."""
    store = CheckpointStore(str(tmp_path))
    for leftover in (".phase-000.deadbeef", ".phase-000.part.deadbeef", ".phase-001.deadbeef"):
        (tmp_path / "trial-00000" / leftover).mkdir(parents=True)
    saved(store, trained(1), 0, 0)
    assert sorted(path.name for path in (tmp_path / "trial-00000").iterdir()) == [".phase-001.deadbeef", "phase-000"]


def test_a_folder_without_a_manifest_is_no_checkpoint(tmp_path) -> None:
    store = CheckpointStore(str(tmp_path))
    name = saved(store, trained(1), 0, 0)
    assert store.has(name)
    (tmp_path / name / "manifest.json").unlink()
    assert not store.has(name)


@pytest.fixture
def out_of_reach(tmp_path, monkeypatch):
    """A store at a URL that can be neither written nor read, and what waits on this machine to be sent there."""

    def refuse(*_) -> None:
        raise OSError("the network is down")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(Place, "upload", refuse)
    monkeypatch.setattr(Place, "fetch", refuse)
    return CheckpointStore(f"memory://{tmp_path.name}"), lambda: [p for p in tmp_path.rglob("*") if p.is_file()]


def test_a_part_that_was_sent_waits_on_this_machine_no_more(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = CheckpointStore(f"memory://{tmp_path.name}")
    store.save_part(trained(1), 0, 1)
    assert store.has(part_name(0, 1))
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    store.remove_part(part_name(0, 1))
    assert not store.has(part_name(0, 1))


def test_what_was_sent_leaves_no_folder_of_its_trial_on_this_machine(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = CheckpointStore(f"memory://{tmp_path.name}")
    for trial in (0, 1):
        store.send(store.set_down(trained(1), trial, 0))
        store.save_part(trained(1), trial, 1)
    assert not list(tmp_path.rglob("trial-*"))


def test_what_could_not_be_sent_is_found_on_this_machine_until_it_is_removed(out_of_reach) -> None:
    store, waiting = out_of_reach
    with pytest.raises(OSError, match="the network is down"):
        store.save_part(trained(1), 0, 1)
    part, fresh = part_name(0, 1), Deterministic({"lr": 1e-3}, 0)
    assert store.has(part)
    store.load(fresh, part)
    assert fresh.phase == 1
    store.remove_part(part)
    assert not store.has(part)
    with pytest.raises(OSError, match="the network is down"):  # it may be there: it is not said to be missing
        store.load(fresh, part)
    store.set_down(trained(2), 0, 1)
    store.remove()
    assert not waiting()


def test_what_waits_on_this_machine_is_not_for_another_study_that_has_the_url_later(out_of_reach) -> None:
    """Trials have the same numbers in both."""
    store, waiting = out_of_reach
    mine, another = replace(store, study="mine"), replace(store, study="another")
    with pytest.raises(OSError, match="the network is down"):
        mine.save_part(trained(1), 0, 1)
    assert (mine.has(part_name(0, 1)), another.has(part_name(0, 1))) == (True, False)
    store.remove()
    assert not waiting()


def test_what_could_not_be_sent_waits_no_longer_than_until_a_later_one_arrives(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = CheckpointStore(f"memory://{tmp_path.name}")
    for phase in (0, 1):
        store.set_down(trained(1), 0, phase)
    other = store.set_down(trained(1), 1, 0)
    store.send(store.set_down(trained(1), 0, 2))
    assert [path.parent.name for path in tmp_path.rglob("manifest.json")] == ["trial-00001-phase-000"]
    assert store.has(other)


def test_what_was_sent_in_part_is_read_where_it_waits(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store, fresh = CheckpointStore(f"memory://{tmp_path.name}"), Deterministic({"lr": 1e-3}, 0)
    name = store.set_down(trained(2), 0, 0)
    MemoryFileSystem().pipe_file(f"/{tmp_path.name}/{name}/phase.txt", b"9")
    store.load(fresh, name)
    assert fresh.phase == 2


@pytest.mark.parametrize("lasts", [False, True])
def test_where_a_store_cannot_be_looked_into_no_checkpoint_is_missing(tmp_path, monkeypatch, lasts) -> None:
    """Whatever the library behind it raises; one that fails once is asked again."""
    store, look, failed = CheckpointStore(f"memory://{tmp_path.name}"), MemoryFileSystem.ls, []
    first, second = (saved(store, trained(phase + 1), 0, phase) for phase in (0, 1))

    def fail(self, *given, **how):
        if lasts or not failed:
            failed.append(given)
            raise RuntimeError("no route\nto host")
        return look(self, *given, **how)

    monkeypatch.setattr(place, "_WAITS_S", (0.0,))
    monkeypatch.setattr(MemoryFileSystem, "ls", fail)
    if lasts:
        with pytest.raises(PlaceAway, match=rf"^trial-00000 cannot be looked into at {store.root}: no route to host$"):
            list(store.before(second))
    else:
        assert list(store.before(second)) == [(first, 1)]


def test_what_a_place_cannot_be_asked_for_is_not_missing(tmp_path, monkeypatch) -> None:
    """Most file systems behind fsspec say then that it is: a trial would begin anew, and a donor be removed."""
    store = CheckpointStore(f"memory://{tmp_path.name}")
    name, fresh = saved(store, trained(1), 0, 0), Deterministic({"lr": 1e-3}, 0)
    store.pin(name)
    with monkeypatch.context() as away:
        away.setattr(place, "_WAITS_S", (0.0,))
        away.setattr(MemoryFileSystem, "exists", AbstractFileSystem.exists)
        away.setattr(MemoryFileSystem, "info", breaking("no route to host"))
        with pytest.raises(PlaceAway, match=rf"^{name} cannot be read from {store.root}: no route to host$"):
            store.load(fresh, name)
        with pytest.raises(PlaceAway, match=rf"^{name} cannot be looked for at {store.root}: no route to host$"):
            store.has(name)
        with pytest.raises(OSError, match="no route to host"):
            Place(store.root).delete(name)
    store.load(fresh, name)
    assert fresh.phase == 1


def test_the_manifest_is_sent_last(tmp_path, monkeypatch) -> None:
    sent = []
    monkeypatch.setattr(MemoryFileSystem, "put_file", lambda self, here, there: sent.append(there.rpartition("/")[2]))
    saved(CheckpointStore(f"memory://{tmp_path.name}"), trained(1), 0, 0)
    assert sent == ["phase.txt", "manifest.json"]


@pytest.fixture
def asked(monkeypatch):
    """What a place at a URL was asked for, in vain as long as there are errors left; it is tried four times."""

    class Asked(list):
        errors: list[Exception]

        def write(self, files, path, raw) -> None:
            self.append(raw)
            if self.errors:
                raise self.errors.pop()

    asked = Asked()
    monkeypatch.setattr(place, "_WAITS_S", (0.0,) * 3)
    monkeypatch.setattr(MemoryFileSystem, "pipe_file", lambda *given: asked.write(*given))
    return asked


def test_what_a_network_fails_is_tried_again(asked) -> None:
    asked.errors = [OSError("it hiccups") for _ in range(3)]
    Place("memory://place").write("it", b"1")
    assert asked == [b"1"] * 4
    asked.errors = [ValueError("it is broken\n for good") for _ in range(9)]
    with pytest.raises(OSError, match=r"^it cannot be written to memory://place: it is broken for good$"):
        Place("memory://place").write("it", b"2")
    assert asked[4:] == [b"2"] * 4


def test_where_each_try_takes_long_there_are_fewer(asked, monkeypatch) -> None:
    """A store that swallows what it is asked fails each try after a minute; meanwhile its worker shows no life."""
    now = [0.0]

    class Slow(list):
        def pop(self) -> Exception:
            now[0] += 70.0
            return super().pop()

    asked.errors = Slow(OSError("no answer") for _ in range(9))
    monkeypatch.setattr(place, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: None))
    with pytest.raises(OSError, match="no answer"):
        Place("memory://place").write("it", b"1")
    assert now[0] == 140.0


@pytest.mark.parametrize("error", [FileNotFoundError("no bucket"), PermissionError("not yours"), InvalidInput("no")])
def test_what_is_refused_is_not_tried_again(asked, error) -> None:
    asked.errors = [error]
    with pytest.raises(InvalidInput if isinstance(error, InvalidInput) else OSError, match=str(error)):
        Place("memory://place").write("it", b"1")
    assert asked == [b"1"]


def test_of_a_read_that_broke_off_nothing_is_left_among_what_is_read(tmp_path, monkeypatch) -> None:
    store, fresh, tried = CheckpointStore(f"memory://{tmp_path.name}"), Deterministic({"lr": 1e-3}, 0), []
    name, get = saved(store, trained(2), 0, 0), MemoryFileSystem.get

    def breaks_off(self, there, here, **how) -> None:
        tried.append(here)
        if len(tried) > 1:
            return get(self, there, here, **how)
        Path(here).mkdir()
        (Path(here) / "phase.txt").write_text("9")
        raise OSError("the cable is cut")

    monkeypatch.setattr(place, "_WAITS_S", (0.0,))
    monkeypatch.setattr(MemoryFileSystem, "get", breaks_off)
    store.load(fresh, name)
    assert (fresh.phase, len(tried)) == (2, 2)


def test_a_file_that_is_removed_while_it_is_counted_takes_no_space(tmp_path) -> None:
    assert place._size(tmp_path / "removed") == 0


def test_stores_whose_names_only_begin_alike_hold_nothing_in_common(tmp_path) -> None:
    """A URL would be chained at the colons."""
    here, there = (CheckpointStore(str(tmp_path / name)) for name in ("a", "a::b"))
    names = [saved(store, trained(phases), 0, 0) for phases, store in enumerate((here, there), 1)]
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
    saved(store, trained(1), 0, 0)
    assert store.disk_use() < 1000
    (tmp_path / "trial-7").mkdir()
    (tmp_path / "trial-7" / "notes.txt").touch()
    store.remove()
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    assert left == {"thesis", "thesis/trial-00000.tex", "trial-7", "trial-7/notes.txt"}


@pytest.mark.parametrize("url", ["{}/place", "file://{}/place", "memory://{}/place"])
def test_a_place_is_marked_as_the_study_s_that_claims_it_first(tmp_path, url) -> None:
    there = Place(url.format(tmp_path))
    assert there.owner() == ""
    assert [there.claim(identity) for identity in ("one", "other", "one")] == ["one", "one", "one"]
    assert not there.holds_any()
    there.remove()
    assert there.claim("other") == "other"


@pytest.mark.parametrize("links", [True, False])
def test_a_mark_that_was_left_empty_is_written_by_the_next(tmp_path, monkeypatch, links) -> None:
    """As by a driver that was killed, or had no space, as it made it."""
    there, mark = Place(str(tmp_path)), tmp_path / ".study"

    def refused(*_) -> None:
        raise OSError(errno.EPERM, "this file system has no links")

    if not links:
        monkeypatch.setattr(os, "link", refused)
    mark.touch()
    assert [there.claim(identity) for identity in ("one", "other")] == ["one", "one"]
    there.remove()
    assert [there.claim(identity) for identity in ("two", "other")] == ["two", "two"]
    assert [*tmp_path.iterdir()] == [mark]


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("now", ["gone", "empty", "another's"])
def test_a_folder_that_has_lost_its_study_s_mark_is_away(tmp_path, monkeypatch, marked, now) -> None:
    monkeypatch.setattr(checkpoints, "_found", set())
    there, away = tmp_path / "there", tmp_path / "away"
    store = CheckpointStore(str(there), study="mine", marked=marked)
    Place(store.root).claim("mine")
    if not marked:  # whoever has not found it may be on another machine
        saved(store, trained(1), 0, 0)
    there.rename(away)
    if now != "gone":
        there.mkdir()
    if now == "another's":
        Place(store.root).claim("another's")
    before = list(tmp_path.rglob("*"))
    for use in (
        lambda: saved(store, trained(2), 0, 1),
        lambda: store.save_part(trained(2), 0, 1),
        lambda: list(store.before("trial-00000/phase-001")),
        lambda: store.pin("trial-00000/phase-000"),
    ):
        with pytest.raises(PlaceAway, match="bring that folder back"):
            use()
    assert list(tmp_path.rglob("*")) == before
    if now == "another's":
        (there / ".study").unlink()
    if now != "gone":
        there.rmdir()
    away.rename(there)
    saved(store, trained(2), 0, 1)


@pytest.mark.parametrize("study", ["", "mine"])
def test_a_folder_that_has_no_mark_and_never_had_is_taken_as_it_is(tmp_path, monkeypatch, study) -> None:
    monkeypatch.setattr(checkpoints, "_found", set())
    store = CheckpointStore(str(tmp_path / "c"), study=study)
    saved(store, trained(1), 0, 0)
    (tmp_path / "c").rename(tmp_path / "moved")
    saved(store, trained(2), 0, 1)


def test_a_place_that_cannot_be_reached_is_nobody_s(tmp_path) -> None:
    """Whoever saves there is told."""
    (tmp_path / "file").touch()
    there = Place(str(tmp_path / "file" / "place"))
    assert there.claim("one") == ""
    assert there.holds_any() is None


@pytest.mark.parametrize("pattern", ["night[12]", "night*", "night?"])
def test_no_store_touches_another_whose_name_fits_its_own_as_a_pattern(tmp_path, pattern) -> None:
    others = [CheckpointStore(str(tmp_path / name)) for name in ("night1", "night2")]
    names = [saved(other, trained(1), 0, 0) for other in others]
    mine = CheckpointStore(str(tmp_path / pattern))
    for phase in range(4):
        mine.load(trained(0), saved(mine, trained(phase + 1), 0, phase))
    mine.remove()
    assert [other.has(name) for other, name in zip(others, names, strict=True)] == [True, True]
    for url in (f"memory://{tmp_path.name}/{pattern}", f"file://{tmp_path}/{pattern}"):  # fsspec would expand it
        with pytest.raises(InvalidInput, match="would stand for other places as well"):
            CheckpointStore(url).remove()
