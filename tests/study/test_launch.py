"""Studies in a process of their own: what becomes of them when the notebook that started them does not."""

import io
import os
import re
import signal
import termios
import textwrap
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.events import runs, write_log
from tests.support import SPACE, Deterministic, Waits
from workbench import AttachedStudy, FullRuns, RandomSearcher, Study
from workbench.core.errors import DatabaseError, InvalidInput, StudyError
from workbench.core.protocols import Event, Kind
from workbench.core.size import Size
from workbench.knowledge import StudyLog, backup, carry, delete, driver_of, output_path
from workbench.knowledge.inbox import inbox_path

ROOT = Path(__file__).parents[2]

_CELL = """
import multiprocessing
from tests.support import SPACE, Waits
from workbench import FullRuns, RandomSearcher, Study

multiprocessing.set_start_method("spawn")

class Mine(Waits):  # lives in this notebook only
    def __call__(self, config, seed):
        assert multiprocessing.get_start_method() == "spawn"  # the notebook's choice is its trials'
        return super().__call__(config, seed)

run = Study("outlives", FullRuns(RandomSearcher(SPACE), 3, 2), Mine({go!r}, 1), {db!r}, nodes=1).launch()
run
"""


def phases_run(study) -> list[tuple]:
    phases = study.frames().phases
    assert (phases["phases_run"] == phases["phase"] + 1).all()
    return sorted(zip(phases["trial"], phases["phase"], strict=True))


@pytest.mark.timeout(420)
def test_a_launched_study_outlives_its_kernel(tmp_path) -> None:
    from jupyter_client.manager import start_new_kernel

    go, db = tmp_path / "go", tmp_path / "kb.db"
    kernel, cells = start_new_kernel(startup_timeout=120, kernel_name="python3", cwd=str(ROOT))
    try:
        said = []
        reply = cells.execute_interactive(
            textwrap.dedent(_CELL.format(go=str(go), db=str(db))), timeout=300, output_hook=said.append
        )
        assert reply["content"]["status"] == "ok", reply["content"]
        shown = [m["content"]["data"]["text/plain"] for m in said if m["msg_type"] == "execute_result"]
        assert "driven by a process of its own" in shown[0]
        run = AttachedStudy(db, "outlives")
        driver = driver_of(db, "outlives")
        assert f"process {kernel.provisioner.pid} " not in driver
        kernel.interrupt_kernel()
        kernel.shutdown_kernel(now=True)
        assert driver_of(db, "outlives") == driver
    finally:
        cells.stop_channels()
        kernel.shutdown_kernel(now=True)
    assert run.running
    assert not run.wait(0.0)
    go.touch()
    assert run.wait(300)
    assert run.progress.state == "ended"
    assert (run.progress.trials_ended, run.progress.phases_ended) == (3, 6)
    assert phases_run(run) == [(t, p) for t in range(3) for p in range(2)]


@pytest.mark.timeout(420)
@pytest.mark.slow
def test_a_launched_study_is_stopped_resumed_and_missed(client, tmp_path) -> None:
    from distributed import Client

    go, db = tmp_path / "go", tmp_path / "kb.db"
    with Client(client.scheduler.address, security=client.security, set_as_default=False) as by_address:
        study = Study("away", FullRuns(RandomSearcher(SPACE), 3, 2), Waits(str(go), 1), db, client=by_address)
        run = study.launch()
        with pytest.raises(StudyError, match="is being driven by process"):
            study.launch(resume=True)
        while run.progress.phases_ended < 2:
            assert not run.wait(0.05)
        run.stop()
        assert run.wait(300)
        assert repr(run).startswith("away: interrupted")
        run.stop()  # nobody is there to be asked
        with pytest.raises(StudyError, match="exists in"):
            study.launch()

        again = study.launch(resume=True)
        while again.progress.state != "running":
            assert not again.wait(0.05)
        os.kill(int(re.match(r"process (\d+)", driver_of(db, "away"))[1]), signal.SIGKILL)
        with pytest.raises(StudyError, match="died without a word: resume it"):
            again.wait(300)
        assert "died without a word" in repr(again)

        go.touch()
        last = study.start(resume=True)
        assert last.wait(300)
        assert phases_run(last) == [(t, p) for t in range(3) for p in range(2)]
    assert output_path(db, "away").exists()


def test_a_study_in_a_thread_is_stopped_from_elsewhere_and_its_process_lives_on(client, tmp_path) -> None:
    study = Study(
        "here", FullRuns(RandomSearcher(SPACE), 2, 2), Waits(str(go := tmp_path / "go"), 1), tmp_path / "kb.db",
        client=client,
    )  # fmt: skip
    run = study.start()
    away = AttachedStudy(study.db, "here")
    away.controls.pause(7)  # an answer tells that it hears
    while run.frames().interventions.empty:
        assert not run.wait(0.05)
    away.stop()
    assert run.wait(300)
    assert run.stopped
    frames = run.frames()
    assert frames.state == "interrupted"
    assert frames.interventions[["action", "accepted"]].values.tolist()[-1] == ["stop study", True]
    assert not list(inbox_path(study.db, "here").glob("*.json"))
    away.stop()  # nobody is there to be asked
    away.controls.stop_study()  # nor is who drives it next
    go.touch()
    assert study.run(resume=True).progress.state == "ended"


def test_who_follows_a_name_follows_the_study_that_bears_it_now(tmp_path) -> None:
    db, begun = tmp_path / "kb.db", Event(Kind.STUDY_STARTED, 0.0)
    log = StudyLog(db, "again", {})
    log.append([begun, Event(Kind.STUDY_ENDED, 20.0)])
    log.close()
    run = AttachedStudy(db, "again")
    assert (run.progress.state, run.progress.at) == ("ended", 20.0)
    delete(db, "again")
    log = StudyLog(db, "again", {})
    log.append([begun])
    assert (run.progress.state, run.progress.at) == ("running", 0.0)
    log.close()


def test_the_clock_of_who_follows_goes_on_within_a_phase(tmp_path, monkeypatch) -> None:
    here = SimpleNamespace(at=0.0)
    monkeypatch.setattr("workbench.core.clock.time", SimpleNamespace(monotonic=lambda: here.at))
    logs = [StudyLog(tmp_path / "kb.db", name, {"simulated": name == "played"}) for name in ("real", "played")]
    for log in logs:
        log.append([Event(Kind.STUDY_STARTED, 0.0), Event(Kind.SLOT_JOINED, 3.0, slot=0, data={"node": "n"})])
    following = [AttachedStudy(tmp_path / "kb.db", name) for name in ("real", "played")]
    assert [run.progress.at for run in following] == [3.0, 3.0]
    here.at = 600.0
    assert [run.progress.at for run in following] == [603.0, 3.0]
    for log in logs:
        log.close()
    assert [run.progress.at for run in following] == [3.0, 3.0]


def test_who_follows_a_study_follows_the_one_that_was_unpacked_in_its_place(tmp_path) -> None:
    db = tmp_path / "kb.db"
    write_log(db, "one", [Event(Kind.STUDY_STARTED, 0.0), runs(0.0, 0, {}), runs(1.0, 1, {})])
    copy = backup(db, tmp_path / "copies" / "copy.db")
    write_log(db, "one", [runs(2.0, n, {}) for n in range(2, 9)], resume=True)
    run = AttachedStudy(db, "one")
    assert run.progress.trials_started == 9
    delete(db, "one")
    carry(copy, "one", db)
    write_log(db, "one", [runs(3.0, n, {}) for n in range(2, 12)], resume=True)
    assert run.progress.trials_started == 12


def test_a_study_that_cannot_be_asked_to_stop_says_so(tmp_path) -> None:
    """Something else is where its requests would be."""
    log = StudyLog(tmp_path / "kb.db", "deaf", {})
    log.append([Event(Kind.STUDY_STARTED, 0.0)])
    run = AttachedStudy(tmp_path / "kb.db", "deaf")
    inbox_path(tmp_path / "kb.db", "deaf").touch()
    with pytest.raises(StudyError, match=r"cannot be asked to stop beside .* make space there, or end process \d+"):
        run.stop()
    log.close()
    run.stop()  # nobody is there to be asked


def test_what_cannot_be_launched_is_refused_here(client, tmp_path) -> None:
    study = Study("no", FullRuns(RandomSearcher(SPACE), 3, 2), Deterministic, tmp_path / "kb.db", client=client)
    with pytest.raises(InvalidInput, match="would end with it; connect"):
        study.launch()
    lock, searcher = threading.Lock(), RandomSearcher(SPACE)
    with pytest.raises(InvalidInput, match="cannot be sent to workers"):
        replace(study, client=None, trainable=lambda config, seed: lock).launch()
    searcher.lock = lock
    with pytest.raises(InvalidInput, match=r"cannot be sent to .* use start\(\)"):
        replace(study, client=None, scheduler=FullRuns(searcher, 3, 2)).launch()
    with pytest.raises(DatabaseError, match="no knowledge base"):
        AttachedStudy(tmp_path / "kb.db", "no")
    (tmp_path / "file").touch()
    here = replace(study, client=None, nodes=1)
    with pytest.raises(DatabaseError, match=r"file/x\.db cannot be made .*: choose another place"):
        replace(here, db=tmp_path / "file" / "x.db").launch()
    with pytest.raises(DatabaseError, match="no knowledge base"):
        replace(here, db=tmp_path / "new" / "x.db").launch(resume=True)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_study_that_is_driven_here_is_not_launched_and_it_is_said_how_it_is_held(tmp_path) -> None:
    study = Study("one", FullRuns(RandomSearcher(SPACE), 3, 2), Deterministic, tmp_path / "kb.db", nodes=1)
    log = StudyLog(tmp_path / "kb.db", "one", study.spec)
    for resume in (False, True):
        with pytest.raises(StudyError, match=r"this one: AttachedStudy\(.*\) looks at it, and its stop\(\) ends it$"):
            study.launch(resume=resume)
    assert not output_path(tmp_path / "kb.db", "one").exists()
    log.close()


@pytest.mark.parametrize(("written", "told"), [("", "resume it$"), ("killed", r"what it wrote stands in .*\.out$")])
def test_where_the_words_of_a_dead_driver_stand_is_told_if_there_are_any(tmp_path, written, told) -> None:
    db = tmp_path / "kb.db"
    write_log(db, "one", [Event(Kind.STUDY_STARTED, 0.0)])
    output_path(db, "one").write_text(written)
    with pytest.raises(StudyError, match=told):
        AttachedStudy(db, "one").wait()


def test_what_a_driver_before_the_last_wrote_is_not_taken_for_the_last_one_s(tmp_path) -> None:
    db = tmp_path / "kb.db"
    write_log(db, "one", [Event(Kind.STUDY_STARTED, 0.0)])
    said = output_path(db, "one")
    said.write_text("killed")
    os.utime(said, (1e9, 1e9))  # in 2001
    with pytest.raises(StudyError, match=r"died without a word: resume it$"):
        AttachedStudy(db, "one").wait()


@pytest.mark.timeout(420)
def test_what_is_not_used_with_a_client_keeps_no_study_from_being_launched(tmp_path) -> None:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=0, processes=False, protocol="tcp", dashboard_address=None) as cluster,
        Client(cluster.scheduler_address, set_as_default=False) as client,
    ):
        scheduler = FullRuns(RandomSearcher(SPACE), 3, 2)
        there = Study("there", scheduler, Deterministic, tmp_path / "kb.db", client=client, gpus_per_slot=64)
        run = there.launch()
        assert run.running
        run.stop()
        assert run.wait(300)


def test_a_study_in_a_thread_says_so(client, tmp_path) -> None:
    go = tmp_path / "go"
    study = Study("here", FullRuns(RandomSearcher(SPACE), 2, 2), Waits(str(go), 1), tmp_path / "kb.db", client=client)
    run = study.start()
    assert "driven by a thread of this process" in repr(run)
    assert "can be resumed" in run._repr_html_()
    assert all(name in study._repr_html_() for name in ("here", "FullRuns", "RandomSearcher"))
    board = study.dashboard()
    assert board.controls.study == "here"
    board.close()
    go.touch()
    said = io.StringIO()
    assert run.follow(out=said) is run
    assert "trials: 2, 2 started, 2 ended · phases: 4" in said.getvalue().splitlines()[-1]
    assert "driven" not in repr(run)


def _seen(told: str, columns: int) -> str:
    """Give what a terminal shows of what it was told, its rows joined."""
    rows, row, column = [""], 0, 0
    for n, goes_up, sign in re.findall(r"\x1b\[(\d*)(?:(A)|[JK])|(.)", told, re.DOTALL):
        if goes_up:
            row -= int(n)
        elif sign == "\r":
            column = 0
        elif not sign:
            rows[row:] = [rows[row][:column]]
        else:
            if sign == "\n" or column == columns:
                row, column = row + 1, 0
                rows += [""] * (row == len(rows))
            if sign != "\n":
                rows[row] = rows[row][:column] + sign + rows[row][column + 1 :]
                column += 1
    return "".join(rows)


def test_on_a_narrow_terminal_a_line_of_several_rows_is_replaced_too(tmp_path) -> None:
    log = StudyLog(db := tmp_path / "kb.db", "narrow", {})
    begins = Event(Kind.STUDY_STARTED, 0.0, data={"size": Size(16, 16, 4, 40.0).to_json()})
    log.append([begins, runs(1.0, 0, {"lr": 1.0})])
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, 40))
    told = b""
    with open(ours, "rb", buffering=0) as screen, open(theirs, "w", encoding="utf-8") as out:
        run = AttachedStudy(db, "narrow")
        following = threading.Thread(target=run.follow, args=(0.01, out), daemon=True)
        following.start()
        while told.count(b"trials:") < 3:
            told += screen.read(4096)
        log.append([Event(Kind.STUDY_ENDED, 2.0)])
        log.close()
        while not told.endswith(b"phases: 0\r\n"):
            told += screen.read(4096)
        following.join()
    seen = _seen(told.decode(), 40)
    assert seen.count("trials:") == 1
    assert seen.endswith("trials: 16, 1 started, 0 ended · phases: 0")
