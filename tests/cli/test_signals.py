"""Commands that are told to end: they leave nothing half-written behind."""

import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.study.test_pack import logged
from tests.support import files
from workbench import pack
from workbench.knowledge import KnowledgeBase, StudyLog


def written(folder: Path) -> list[Path]:
    """Files, and folders of what is on its way."""
    return [path for path in files(folder) if path.is_file() or path.suffix == ".part"]


@pytest.mark.parametrize("told", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)])
def test_a_command_that_is_told_to_end_leaves_nothing_half_written(tmp_path, told) -> None:
    logged(tmp_path / "kb.db")
    pack(tmp_path / "kb.db", "one", tmp_path / "p")
    db = tmp_path / "there" / "kb.db"
    StudyLog(db, "another", {}).close()
    before = written(db.parent)
    command = [sys.executable, "-m", "workbench", "unpack", str(tmp_path / "p"), "--db", str(db)]
    with closing(sqlite3.connect(db, isolation_level=None)) as held:
        held.execute("BEGIN IMMEDIATE")  # whoever wants to write waits, its files half-way there
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # these tests may be what nohup runs
        ) as running:
            while not (db.parent / "kb.checkpoints" / "one").exists():
                assert running.poll() is None
                time.sleep(0.05)
            running.send_signal(told)
            held.execute("ROLLBACK")
            out, err = running.communicate(timeout=60)
    assert (running.returncode, out, err) == (130, "", "workbench: interrupted\n")
    assert written(db.parent) == before
    with KnowledgeBase(db) as kb:
        assert list(kb) == ["another"]
