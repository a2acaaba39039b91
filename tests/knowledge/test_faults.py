"""Writes that fail, wherever they fail: what is in the file afterwards is whole, and a prefix of what was written."""

import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.knowledge.studies import a_study
from tests.support import small_disk
from workbench.core.errors import DatabaseError, WorkbenchError
from workbench.core.protocols import Event, Kind
from workbench.knowledge import DiskFull, KnowledgeBase, StudyLog, backup, check

PAGE = 4096


@contextmanager
def no_file_larger_than(size: int):
    """Make every write beyond `size` bytes fail, as on a full disk (Python ignores the signal that comes with it)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def write_until_it_fails(log: StudyLog, events: list[Event]) -> int:
    """Append event by event; return how many went in."""
    for n, event in enumerate(events):
        try:
            log.append([event])
        except DiskFull:
            return n
    return len(events)


def long_study() -> list[Event]:
    return [*a_study()[:3], *[Event(Kind.PHASE_STARTED, 0.0, n, 0, data={"padding": "x" * 500}) for n in range(60)]]


@pytest.mark.parametrize("size", [*range(0, 30 * PAGE, 5 * PAGE), *range(34_000, 170_000, 7_777)])
def test_a_log_that_could_not_be_written_on_is_whole_and_can_be_written_on_later(tmp_path, size) -> None:
    path, events = tmp_path / "kb.db", long_study()
    with no_file_larger_than(size):
        try:
            log = StudyLog(path, "one", {})
        except (WorkbenchError, sqlite3.OperationalError):
            log = None
    if log is None:  # not even the tables could be made
        log = StudyLog(path, "one", {}, resume=_is_there(path))
        kept = 0
    else:
        with no_file_larger_than(size):
            kept = write_until_it_fails(log, events)
            for _ in range(2):  # trying again changes nothing
                assert kept == len(events) or write_until_it_fails(log, events[kept:]) == 0
    with KnowledgeBase(path) as kb:
        assert kb["one"].events() == events[:kept]
    assert [f for f in check(path) if f.study != "one"] == []
    for event in events[kept:]:
        log.append([event])
    log.close()
    with KnowledgeBase(path) as kb:
        assert kb["one"].events() == events


def _is_there(path) -> bool:
    with suppress(WorkbenchError), KnowledgeBase(path) as kb:
        return "one" in list(kb)
    return False


def test_the_names_of_metrics_survive_an_append_that_failed(tmp_path) -> None:
    log = StudyLog(tmp_path / "kb.db", "one", {})
    log.append(a_study()[:5])
    progress = Event(Kind.PROGRESS, 1.0, 0, 0, 0, {"metrics": {"a new name": 1.0}})
    large = Event(Kind.PHASE_STARTED, 1.0, 0, 0, data={"padding": "x" * 400_000})
    with no_file_larger_than(200_000), pytest.raises(DiskFull, match=r"cannot be written to .*: make space"):
        log.append([progress, large])
    log.append([progress])
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        assert kb["one"].metrics()["name"].tolist() == ["a new name"]
    log.close()


def test_viewers_and_a_backup_beside_a_writer_see_whole_appends_and_lock_nobody_out(tmp_path) -> None:
    path, n_appends = tmp_path / "kb.db", 300
    log = StudyLog(path, "one", {})
    over, trouble, looked = threading.Event(), [], []

    def view() -> None:
        try:
            with KnowledgeBase(path) as kb:
                while not over.is_set():
                    seen = kb["one"].events()
                    assert len(seen) % 2 == 0
                    looked.append(len(seen))
        except BaseException as err:  # noqa: BLE001  to be shown by the test
            trouble.append(err)

    def copy() -> None:
        try:
            for n in range(1000):
                if over.is_set():
                    return
                with KnowledgeBase(backup(path, tmp_path / f"copy-{n}.db")) as kb:
                    assert len(kb["one"].events()) % 2 == 0
        except BaseException as err:  # noqa: BLE001  to be shown by the test
            trouble.append(err)

    threads = [*(threading.Thread(target=view) for _ in range(3)), threading.Thread(target=copy)]
    for thread in threads:
        thread.start()
    for n in range(n_appends):
        log.append([Event(Kind.SLOT_JOINED, n, slot=n, data={"node": "a"}), Event(Kind.SLOT_LOST, n, slot=n)])
    over.set()
    for thread in threads:
        thread.join()
    assert trouble == []
    assert looked
    assert len(log.events()) == 2 * n_appends
    log.close()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=st.floats(0, 1), bytes_=st.binary(min_size=1, max_size=300), cut=st.booleans())
@example(where=0.078125, bytes_=b"\x80", cut=False)  # in the schema's words: SQLite's message is no text then
def test_a_damaged_file_is_read_or_refused_in_one_line(tmp_path_factory, where, bytes_, cut) -> None:
    path = tmp_path_factory.mktemp("damaged") / "kb.db"
    log = StudyLog(path, "one", {"seed": 0})
    log.append(a_study())
    log.close()
    whole = path.read_bytes()
    at = int(where * len(whole))
    damaged = whole[:at] if cut else whole[:at] + bytes_ + whole[at + len(bytes_) :]
    path.write_bytes(damaged)
    for use in (_read_all, lambda p: check(p), lambda p: StudyLog(p, "two", {}).close()):
        try:
            use(path)
        except WorkbenchError as err:
            assert len(str(err).splitlines()) == 1  # noqa: PT017  either outcome is right


def _read_all(path) -> None:
    with KnowledgeBase(path) as kb:
        for name in kb:
            kb[name].frames()


@pytest.mark.skipif(shutil.which("cc") is None, reason="the failing disk is written in C: needs cc")
@pytest.mark.parametrize("stride", [10, pytest.param(1, marks=pytest.mark.slow)], ids=["every tenth", "every one"])
def test_every_write_may_fail_and_what_is_there_is_whole_and_a_prefix(tmp_path, stride) -> None:
    """Input/output errors once and for good, and lack of space: at every write, sync and change of a file's length."""
    here = Path(__file__).parent
    library, folder = tmp_path / "faults.so", tmp_path / "study"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, here / "faults.c", "-ldl"], check=True)
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "tests.knowledge.faulty_disk", folder, str(stride)],
        cwd=here.parents[1],
        env={**os.environ, "LD_PRELOAD": str(library)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert found["wrong"] == []
    assert min(found["writes"]) > 50  # the disk was really asked, and these have failed in turn
    assert found["told"].keys() == {"DatabaseError", "DiskFull"}
    assert sum(found["told"].values()) > 50 / stride


def test_what_lies_on_a_full_disk_is_read_and_not_called_damaged(tmp_path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        path = disk / "kb.db"
        with closing(StudyLog(path, "one", {})) as log:
            log.append(a_study())
        fill = disk / "ballast"
        with suppress(OSError), fill.open("wb", buffering=0) as ballast:
            while True:
                ballast.write(bytes(4096))
        with KnowledgeBase(path) as kb:
            assert len(kb["one"].events()) == len(a_study())
        with pytest.raises(DatabaseError, match=r"kb\.db cannot be opened, the disk is full: make space$"):
            StudyLog(path, "one", {}, resume=True)
        fill.unlink()
        StudyLog(path, "one", {}, resume=True).close()
