"""Two drivers of one study, by whatever way they came to be: the log is one driver's work, and stays so."""

import errno
import fcntl
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.knowledge.studies import a_study
from tests.support import FROM_HERE
from workbench.core.errors import DatabaseError, StudyError
from workbench.core.protocols import Event, Kind
from workbench.knowledge import StudyLog, check, driver_of, repair
from workbench.knowledge.lock import lock_path


@pytest.fixture
def driver(db):
    log = StudyLog(db, "pong", {})
    yield log
    log.close()


def test_through_a_link_to_the_file_or_to_its_folder(db, driver, tmp_path) -> None:
    (tmp_path / "link.db").symlink_to(db)
    (tmp_path / "folder").symlink_to(tmp_path, target_is_directory=True)
    for path in (tmp_path / "link.db", tmp_path / "folder" / "kb.db", tmp_path / "folder" / "link.db"):
        assert driver_of(path, "pong") is not None
        with pytest.raises(StudyError, match=f"is being driven by process {os.getpid()} on "):
            StudyLog(path, "pong", {}, resume=True)


def test_through_a_second_name_of_the_file(db, driver, tmp_path) -> None:
    os.link(db, tmp_path / "other.db")
    with pytest.raises(DatabaseError, match=r"has several names \(hard links\)"):
        StudyLog(tmp_path / "other.db", "pong", {}, resume=True)


def test_after_the_lock_was_removed_whoever_comes_second_goes_on_and_the_first_ends(db, driver) -> None:
    events = a_study()
    driver.append(events[:5])
    lock_path(db, "pong").unlink()
    second = StudyLog(db, "pong", {}, resume=True)
    second.append([Event(Kind.STUDY_RESUMED, 2.0)])
    for more in (events[5:8], [Event(Kind.PROGRESS, 3.0, 0, 0, 0, {"metrics": {"pps": 1.0}})]):
        with pytest.raises(StudyError, match="another driver has taken study 'pong' over: this one ends"):
            driver.append(more)
    second.append(events[5:8])
    assert [e.kind for e in second.events()] == [e.kind for e in [*events[:5], second.events()[5], *events[5:8]]]
    second.close()


def test_a_file_system_without_locks_is_told_and_makes_nobody_a_driver(db, monkeypatch) -> None:
    def unknown(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    StudyLog(db, "pong", {}).close()
    monkeypatch.setattr("fcntl.flock", unknown)
    assert driver_of(db, "pong") is None
    with pytest.raises(DatabaseError, match=r"pong.lock cannot be locked \(No locks available\): put it on another"):
        StudyLog(db, "pong", {}, resume=True)


def test_a_lock_that_may_not_be_opened_counts_as_held() -> None:
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        db = Path(place, "kb.db")
        lock_path(db, "pong").touch(mode=0)
        was = os.geteuid()
        if was == 0:
            os.seteuid(65534)  # nobody: root may open everything
        try:
            assert driver_of(db, "pong") == "an unknown process"
        finally:
            os.seteuid(was)


def test_a_lock_removed_between_being_opened_and_being_taken_is_taken_again(db, monkeypatch) -> None:
    from workbench.knowledge import lock as locks

    taken = []

    def removed_the_first_time(file, *rest, lock=locks._lock) -> None:
        if not taken:
            lock_path(db, "pong").unlink()
        taken.append(file)
        lock(file, *rest)

    monkeypatch.setattr(locks, "_lock", removed_the_first_time)
    log = StudyLog(db, "pong", {})
    assert len(taken) == 2
    assert driver_of(db, "pong") is not None
    log.close()


@pytest.mark.parametrize("looks", [1, 9, 10])
def test_who_looks_for_a_driver_is_none_and_is_waited_for(db, monkeypatch, looks) -> None:
    """Not for ever: the tenth refusal is taken for an answer."""
    StudyLog(db, "pong", {}).close()
    waits: list[float] = []
    with open(lock_path(db, "pong")) as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        assert driver_of(db, "pong") is None

        def wait(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == looks:
                fcntl.flock(looking, fcntl.LOCK_UN)

        monkeypatch.setattr("time.sleep", wait)
        if looks < 10:
            StudyLog(db, "pong", {}, resume=True).close()
        else:
            with pytest.raises(StudyError, match="is being driven by process"):
                StudyLog(db, "pong", {}, resume=True)
    assert len(waits) == min(looks, 9)


def test_names_whose_locks_were_one(db) -> None:
    names = ["pong 13", "pong\u2013", "pong%13", "pong%2013", "p" * 100, "p" * 99 + "q", "字" * 66, "字" * 65 + "学"]
    locks = {lock_path(db, name).name for name in names}
    assert len(locks) == len(names)
    assert max(len(lock.encode()) for lock in locks) < 255
    logs = [StudyLog(db, name, {}) for name in names]
    for log in logs:
        log.close()
    assert lock_path(db, "other.pong") != lock_path(db.with_name(f"{db.name}.other"), "pong")


def test_a_forked_child_does_not_keep_the_lock(db) -> None:
    script = (
        "import os, sys, time\n"
        "from workbench.knowledge import StudyLog\n"
        f"log = StudyLog({str(db)!r}, 'pong', {{}})\n"
        "if os.fork() == 0:\n"
        "    print('up', flush=True); sys.stdin.read(); os._exit(0)\n"
        "sys.stdout.close(); os.kill(os.getpid(), 9)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **FROM_HERE},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"up\n"
    child.wait()
    try:
        assert driver_of(db, "pong") is None
        StudyLog(db, "pong", {}, resume=True).close()
    finally:
        child.communicate()


def test_of_a_log_that_two_drivers_wrote_in_turns_it_is_said_what_repair_cannot(db) -> None:
    events = a_study()
    twice = [*events[:12], events[11], *events[12:]]  # a phase that both have ended
    log = StudyLog(db, "pong", {})
    log.append(twice)
    log.close()
    left = [found for found in check(db) if not found.repairable]
    assert repair(db) == []
    assert [found for found in check(db) if not found.repairable] == left
    assert any("was not the phase due" in str(found) for found in left)
    assert any("cannot be mended: " in str(found) and "start another study" in str(found) for found in left)
