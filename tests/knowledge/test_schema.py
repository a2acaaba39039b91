"""What another version of the workbench wrote: files are refused in one line, settings new since do no harm."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from workbench.core.errors import DatabaseError
from workbench.knowledge import KnowledgeBase, StudyLog, check, names_taken, repair, schema
from workbench.knowledge.schema import VERSION, database_errors, open_for_writing


@pytest.mark.parametrize(
    ("version", "do"), [(VERSION - 1, "choose another file, or use the workbench that wrote it"),
                        (VERSION + 1, "upgrade the workbench")]
)  # fmt: skip
def test_a_file_of_another_version_is_refused_in_one_line_and_left_as_it_is(tmp_path, version, do) -> None:
    path = tmp_path / "kb.db"
    StudyLog(path, "one", {}).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = path.read_bytes()
    for use in (KnowledgeBase, check, lambda file: StudyLog(file, "one", {}, resume=True)):
        with pytest.raises(DatabaseError) as refused:
            use(path)
        assert str(refused.value) == f"{path} has schema version {version}, this workbench reads only {VERSION}: {do}"
    assert path.read_bytes() == before


def test_writers_keep_a_file_whole_through_a_power_cut_and_lock_no_reader_out(tmp_path) -> None:
    with closing(open_for_writing(tmp_path / "kb.db")) as connection:
        settings = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        kept = [connection.execute(f"PRAGMA {setting}").fetchone()[0] for setting in settings]
    assert kept == ["wal", 1, 1, 60_000]  # synchronous: normal; ms for another's lock


def test_two_that_make_a_file_at_once_make_one(tmp_path, monkeypatch) -> None:
    path, came_between = tmp_path / "kb.db", []

    def and_another_makes_it(connection: sqlite3.Connection, is_empty=schema._is_empty) -> bool:
        empty = is_empty(connection)
        if not came_between:
            came_between.append(True)
            StudyLog(path, "first", {}).close()
        return empty

    monkeypatch.setattr(schema, "_is_empty", and_another_makes_it)
    StudyLog(path, "second", {}).close()
    with KnowledgeBase(path) as kb:
        assert list(kb) == ["first", "second"]


def test_a_folder_is_told_from_a_file_that_is_not_there_with_what_it_holds(tmp_path) -> None:
    with pytest.raises(DatabaseError, match=f"is a folder, .*: name one in it, {tmp_path}/study.db"):
        KnowledgeBase(tmp_path)
    StudyLog(tmp_path / "kb.db", "one", {}).close()
    for use in (KnowledgeBase, check, lambda file: StudyLog(file, "one", {}, resume=True)):
        with pytest.raises(DatabaseError, match=f"is a folder, .*: name one in it, {tmp_path}/kb.db"):
            use(tmp_path)


def test_a_file_that_may_not_be_written_to_is_told_from_one_that_cannot_be_read(tmp_path) -> None:
    path = tmp_path / "kb.db"
    StudyLog(path, "one", {}).close()
    with (
        closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection,
        pytest.raises(DatabaseError, match=r"kb.db cannot be written to \(attempt to write a readonly database\): see"),
        database_errors(path),
    ):
        connection.execute("DELETE FROM studies")


@pytest.mark.parametrize("use", [check, repair, lambda path: StudyLog(path, "one", resume=True)])
def test_a_file_beside_which_nothing_can_be_written_is_not_said_to_be_damaged(tmp_path, use) -> None:
    """As on a read-only disk, where root may not write either."""
    path = tmp_path / "kb.db"
    StudyLog(path, "one", {}).close()
    (tmp_path / "kb.db-wal").mkdir()
    with pytest.raises(DatabaseError, match=r"kb.db cannot be opened with .* beside it \(unable .*\): see to the r"):
        use(path)


@pytest.mark.parametrize("use", [KnowledgeBase, check, names_taken, lambda path: StudyLog(path, "one", {})])
def test_a_file_on_the_way_and_one_too_short_for_a_database_are_refused_and_left_as_they_are(tmp_path, use) -> None:
    """SQLite takes some such short files for empty databases."""
    text, inside = tmp_path / "text.db", tmp_path / "text.db" / "new" / "kb.db"
    text.write_text("x")
    with pytest.raises(
        DatabaseError, match=f"^there can be no knowledge base at {inside}, for {text} is a file: choose"
    ):
        use(inside)
    with pytest.raises(
        DatabaseError, match=rf"^{text} cannot be read as a knowledge base \(it is shorter than any\): rest"
    ):
        use(text)
    assert text.read_text() == "x"


@pytest.mark.parametrize("use", [KnowledgeBase, check, names_taken, lambda path: StudyLog(path, "one", {})])
def test_a_path_longer_than_sqlite_opens_is_refused_and_nothing_made(tmp_path, use) -> None:
    longest = tmp_path.joinpath(*["d" * 100] * 5)
    longest = longest.with_name("d" * (504 - len(os.fsencode(longest.parent / "x" / "kb.db")) + 1)) / "kb.db"
    StudyLog(longest, "one", {}).close()
    one_more = longest.with_name("kb2.db")
    with pytest.raises(
        DatabaseError, match=f"^{one_more} is a path of 505 bytes, and SQLite opens 504 at most: choose"
    ):
        use(one_more)
    assert not one_more.exists()


@pytest.mark.parametrize("use", [KnowledgeBase, check, names_taken, lambda path: StudyLog(path, "one", resume=True)])
def test_another_user_s_file_is_told_in_one_line(use) -> None:
    with TemporaryDirectory() as folder:  # which that user may look into
        path = Path(folder, "kb.db")
        StudyLog(path, "one", {}).close()
        os.chmod(folder, 0o755)
        os.chmod(path, 0)
        before = os.geteuid()
        if not before:
            os.seteuid(65534)
        try:
            with pytest.raises(DatabaseError, match=r"kb.db cannot be opened with .* \(unable .*\): see to the rights"):
                use(path)
        finally:
            os.seteuid(before)
