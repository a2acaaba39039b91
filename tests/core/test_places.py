"""Where a knowledge base is, and files that are written whole or not at all."""

import errno
import os
from pathlib import Path

import plotly.graph_objects as go
import pytest

from tests.events import begun, ended, runs, write_log
from tests.support import SPACE, Deterministic
from workbench import AttachedStudy, Explorer, FullRuns, KnowledgeBase, RandomSearcher, Study
from workbench.core.errors import InvalidInput
from workbench.core.places import db_path, whole_file, whole_folder
from workbench.study.results import Results
from workbench.viz.figures import write_figure

TAKES_DB = {
    "path": db_path,
    "study": lambda db: Study("one", FullRuns(RandomSearcher(SPACE), 1, 1), Deterministic, db),
    "knowledge base": KnowledgeBase,
    "results": lambda db: Results.open(db, "one"),
    "attached": lambda db: AttachedStudy(db, "one"),
}


@pytest.mark.parametrize("bad", [None, 3, b"kb.db"])
@pytest.mark.parametrize("name", TAKES_DB)
def test_a_knowledge_base_that_is_no_path_is_refused_in_one_line(name, bad) -> None:
    with pytest.raises(InvalidInput, match=f"^a knowledge base is a file, named by its path, got {bad!r}: write for "):
        TAKES_DB[name](bad)


def test_a_knowledge_base_is_named_by_a_word_or_a_path_and_may_begin_at_home(monkeypatch) -> None:
    monkeypatch.setenv("HOME", "/somewhere")
    assert db_path("~/kb.db") == db_path(Path("~/kb.db")) == Path("/somewhere/kb.db")


def test_a_whole_file_takes_the_place_of_another_with_its_rights(tmp_path) -> None:
    target = tmp_path / "new" / "one.csv"
    with whole_file(target) as part:
        part.write_text("one")
    target.chmod(0o600)
    with whole_file(target) as part:
        part.write_text("two")
    assert (target.read_text(), target.stat().st_mode & 0o777) == ("two", 0o600)
    assert list(target.parent.iterdir()) == [target]
    link = tmp_path / "link.csv"
    link.symlink_to(target)
    with whole_file(link) as part:
        part.write_text("three")
    assert (target.read_text(), link.is_symlink()) == ("three", True)


def test_of_a_file_that_fails_nothing_stays_and_what_was_there_does(tmp_path) -> None:
    target = tmp_path / "one.csv"
    target.write_text("one")

    def half() -> None:
        with whole_file(target) as part:
            part.write_text("tw")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(part))

    with pytest.raises(InvalidInput, match=r"one\.csv cannot be written: No space left on device: make space$"):
        half()
    assert target.read_text() == "one"
    assert list(tmp_path.iterdir()) == [target]


def test_no_file_takes_the_place_of_a_database(tmp_path) -> None:
    db, link = tmp_path / "kb", tmp_path / "link"
    write_log(db, "one", [], {"scheduler": {"kind": "full"}, "seed": 0, "trainable": {"kind": "own"}})
    link.symlink_to(db)
    before = db.read_bytes()
    for name in (db, link):
        with pytest.raises(InvalidInput, match=r"/kb is a database: choose another name$"), whole_file(name) as part:
            part.write_text("one")
    assert db.read_bytes() == before
    assert not list(tmp_path.glob("*.part"))


def test_of_two_that_write_one_folder_each_writes_its_own_and_the_first_has_it(tmp_path) -> None:
    first, second = (whole_folder(tmp_path / "rec") for _ in range(2))
    mine, others = first.__enter__(), second.__enter__()
    (mine / "events").write_text("mine")
    (others / "events").write_text("others")
    second.__exit__(None, None, None)
    with pytest.raises(InvalidInput, match=r"rec exists: choose another name$"):
        first.__exit__(None, None, None)
    assert [(path.name, (path / "events").read_text()) for path in tmp_path.iterdir()] == [("rec", "others")]


WRITERS = {
    "figure": lambda db, place: write_figure(go.Figure(), place / "one.html"),
    "frames": lambda db, place: Results.open(db, "one").frames.export(place),
    "schedule": lambda db, place: Results.open(db, "one").write_schedule(place / "one.json"),
    "report": lambda db, place: Results.open(db, "one").write_report(place / "one.html"),
    "explorer": lambda db, place: Explorer(db).write(place),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_place_that_takes_no_file_is_told_in_one_line(tmp_path, name) -> None:
    db, place = tmp_path / "kb.db", tmp_path / "a file"
    place.write_text("here")
    spec = {"scheduler": {"kind": "full", "n_trials": 1, "n_phases": 1}, "seed": 0, "trainable": {"kind": "own"}}
    write_log(db, "one", [runs(0.0, 0, {"lr": 0.1}), begun(0.0, 0, 0), ended(4.0, 0, 0, 0, 1.0)], spec)
    with pytest.raises(InvalidInput, match=r"^[^\n]*a file/[^\n]* cannot be written: [^\n]*$"):
        WRITERS[name](db, place)
    assert place.read_text() == "here"
