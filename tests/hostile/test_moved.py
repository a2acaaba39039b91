"""The ground moves under a running study: its file, its folder, its clock, its descriptors."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.knowledge.studies import a_study
from tests.support import FROM_HERE, SPACE, Waits, without_semaphores
from workbench.algos.search import FullRuns, RandomSearcher
from workbench.core.errors import DatabaseError
from workbench.knowledge import Controls, Inbox, StudyLog
from workbench.study.study import Study


@pytest.mark.parametrize("how", ["deleted", "moved", "replaced"])
def test_a_file_that_is_gone_is_said_at_the_next_look(tmp_path, how) -> None:
    db = tmp_path / "kb.db"
    log = StudyLog(db, "one", {})
    log.append(a_study()[:3])
    log.check_there()
    if how == "replaced":
        (tmp_path / "other").write_bytes(db.read_bytes())
        (tmp_path / "other").replace(db)
    else:
        db.rename(tmp_path / "away") if how == "moved" else db.unlink()
    for use in (log.check_there, lambda: log.append(a_study()[3:5])):
        with pytest.raises(DatabaseError, match=r"was deleted, moved or replaced while study 'one' ran: put it back"):
            use()
    log.close()


def test_a_study_whose_file_is_deleted_ends_by_itself_though_nothing_is_reported(client, tmp_path) -> None:
    scheduler = FullRuns(RandomSearcher(SPACE), 1, 1)
    run = Study("one", scheduler, Waits(str(tmp_path / "never")), db=tmp_path / "kb.db", client=client).start()
    while not run.progress.trials_started:
        time.sleep(0.05)
    (tmp_path / "kb.db").unlink()
    with pytest.raises(DatabaseError, match="was deleted, moved or replaced"):
        run.wait(300)
    assert not run.running


def test_a_change_of_folder_leaves_requests_and_checkpoints_where_they_were(client, tmp_path, monkeypatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    scheduler = FullRuns(RandomSearcher(SPACE), 1, 1)
    waits = Waits(str(tmp_path / "never"))
    run = Study("one", scheduler, waits, db="kb.db", client=client, checkpoints="saved").start()
    os.chdir(tmp_path / "there")
    while not run.progress.trials_started:
        time.sleep(0.05)
    run.controls.stop(0)
    assert run.wait(60)
    assert list(run.frames().interventions["accepted"]) == [True]
    assert Path(run.study.checkpoint_store.root) == tmp_path / "here" / "saved"
    assert not list((tmp_path / "there").iterdir())


def test_a_clock_that_is_set_back_does_not_change_the_order_of_requests(tmp_path, monkeypatch) -> None:
    StudyLog(tmp_path / "kb.db", "one", {}).close()
    controls, inbox = Controls(tmp_path / "kb.db", "one"), Inbox(tmp_path / "kb.db", "one")
    clock = iter([2_000_000_000_000_000_000, 1_000_000_000_000_000_000, 3])
    monkeypatch.setattr(time, "time_ns", lambda: next(clock))
    for trial in range(3):
        controls.stop(trial)
    assert [request.trial for request in inbox()] == [0, 1, 2]


_SHIFTED = """
import os, time
real = time.time
time.time = lambda: real() + os.stat(os.environ["SHIFT"]).st_size * -7200.0
"""

_SET_BACK = """
import sys, time
from pathlib import Path
from tests.support import SPACE, Waits
from workbench import FullRuns, RandomSearcher, Study

shift, go, db = map(Path, sys.argv[1:])
run = Study("one", FullRuns(RandomSearcher(SPACE), 60, 3), Waits(str(go), 1), db=db, nodes=2).start()
while run.progress.phases_ended < 2:
    assert not run.wait(0.05)
now = time.time()
shift.write_text("1")
assert time.time() < now - 7000
go.touch()
print(run.wait(60))
run.stop()
print(run.wait(20), run.progress.phases_ended)
"""


@pytest.mark.slow
def test_a_clock_that_is_set_back_holds_no_study_up(tmp_path) -> None:
    (tmp_path / "sitecustomize.py").write_text(_SHIFTED)  # for every process, workers too
    (tmp_path / "shift").touch()
    ran = subprocess.run(
        [sys.executable, "-c", _SET_BACK, *(str(tmp_path / name) for name in ("shift", "go", "kb.db"))],
        capture_output=True,
        text=True,
        timeout=300,
        env={
            **os.environ,
            **FROM_HERE,
            "PYTHONPATH": f"{tmp_path}{os.pathsep}{FROM_HERE['PYTHONPATH']}",
            "SHIFT": str(tmp_path / "shift"),
        },
    )
    assert ran.stdout.split() == ["True", "True", "180"], ran.stderr


STUDY = """
study = {name = "few", nodes = 2}
space = {h0 = {uniform = [0, 1]}, h1 = {uniform = [0, 1]}}
scheduler = {kind = "full", n_trials = 2, n_phases = 1}
trainable = {kind = "quadratic"}
"""


def test_too_few_descriptors_are_told_in_one_line(tmp_path) -> None:
    script = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))\n"
        "import sys; from workbench.cli.main import main\n"
        "sys.exit(main(['run', sys.argv[1], '--quiet', '--db', sys.argv[3]]))\n"
    )
    refused_before_it_is_begun(tmp_path, "ulimit -n", sys.executable, "-c", script)


def test_too_few_processes_are_told_in_one_line(tmp_path) -> None:
    script = (
        "import os, resource, sys; os.getuid() or os.setreuid(65534, -1)  # root is not bound by it\n"
        "from workbench.core.machine import tasks\n"
        "resource.setrlimit(resource.RLIMIT_NPROC, 2 * (tasks() + 12,))\n"
        "from workbench.cli.main import main\n"
        "sys.exit(main(['run', sys.argv[1], '--quiet', '--db', sys.argv[3]]))\n"
    )
    refused_before_it_is_begun(tmp_path, "ulimit -u", sys.executable, "-c", script)


def test_where_the_system_makes_no_semaphore_no_study_is_begun(tmp_path) -> None:
    run = [*without_semaphores(), sys.executable, "-m", "workbench", "run"]
    refused_before_it_is_begun(tmp_path, "see to /dev/shm", *run)


def refused_before_it_is_begun(folder, said: str, *command: str) -> None:
    """Run a study by a command that cannot: it says so in a line, and the study can be begun where more is allowed."""
    (folder / "study.toml").write_text(STUDY)
    db = folder / "kb.db"
    ran = subprocess.run(
        [*command, str(folder / "study.toml"), "--db", str(db)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **FROM_HERE},
    )
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1, ran.stderr
    assert said in ran.stderr
    assert not db.exists()


def test_what_a_study_writes_is_private_whatever_the_umask(tmp_path) -> None:
    before = os.umask(0)
    try:
        log = StudyLog(tmp_path / "kb.db", "one", {})
        log.append(a_study()[:3])
        Controls(tmp_path / "kb.db", "one").stop(0)
        made = [path for path in tmp_path.rglob("*") if path.name != "kb.db-journal"]
        assert {path.suffix for path in made} >= {".db", ".db-wal", ".db-shm", ".lock", ".inbox", ".json"}
        assert [path.name for path in made if path.stat().st_mode & 0o077] == []
        log.close()
    finally:
        os.umask(before)
