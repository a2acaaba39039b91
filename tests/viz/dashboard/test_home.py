"""The studies of a knowledge base, opened and compared."""

import sqlite3
from contextlib import closing

import pytest

from tests.viz.dashboard.conftest import SPEC, Telling, ends_while_read, in_order
from workbench import home
from workbench.core.errors import DatabaseError
from workbench.core.protocols import Event, Kind
from workbench.knowledge import Controls, StudyLog, backup, delete, schema
from workbench.viz.dashboard import Comparison, Dashboard, Home

FOREVER = 3600.0


class _Telling(Telling, Home):
    pass


def write(db, name, *more):
    log = StudyLog(db, name, SPEC)
    log.append([*in_order(), *more])
    return log


@pytest.fixture
def page(db):
    shown = _Telling(db, refresh_s=FOREVER)
    shown.until("snapshot")  # its thread has had its first look, and has no more to say
    yield shown
    shown.close()


def test_a_knowledge_base_that_is_not_there_yet_is_waited_for(page, db):
    page.refresh()
    assert "no study yet" in page._repr_html_()
    assert page.error == ""
    write(db, "<b>one").close()
    page.refresh()
    assert "&lt;b&gt;one" in page._repr_html_()
    assert ">luckiest phase</th>" in page._repr_html_()


def test_studies_are_told_with_progress_and_best_score_and_only_when_something_is_new(page, db):
    write(db, "over", Event(Kind.STUDY_ENDED, 20.0)).close()
    running = write(db, "running")
    Controls(db, "over").tag("good")
    page.refresh()
    told = page.said[-1]
    assert told["type"] == "snapshot"
    assert [(s["name"], s["state"]) for s in told["studies"]] == [("running", "running"), ("over", "ended")]
    assert (told["studies"][1]["best"], told["studies"][1]["trials"]) == (5.0, 4)
    assert told["studies"][1]["phases"] == sum(event.kind is Kind.PHASE_ENDED for event in in_order())
    assert told["studies"][1]["tags"] == ["good"]
    page.refresh()
    assert page.said[-1]["type"] == "beat"
    running.close()  # its driver dies
    page.refresh()
    assert page.said[-1]["studies"][0]["state"] == "abandoned"


def test_a_study_s_clock_goes_on_within_its_phases(page, db):
    write(db, "running", Event(Kind.PROGRESS, 3600.0, 3, 0, 1, {"metrics": {"score": 1.0}})).close()
    page.refresh()
    assert page.said[-1]["studies"][0]["seconds"] == 3600.0


def test_home_and_a_dashboard_tell_one_time(page, db):
    """Of 20 minutes and 1.46 s home made 1.5 s, and its page 20:02."""
    write(db, "over", Event(Kind.STUDY_ENDED, 1201.46)).close()
    page.refresh()
    board = Dashboard(db, "over", refresh_s=FOREVER)
    content, _ = board._board.snapshot()
    board.close()
    assert page.said[-1]["studies"][0]["seconds"] == content["at_s"] == 1201.46


def test_a_study_s_clock_goes_on_though_nothing_is_logged(page, db, here):
    running = write(db, "running")
    played = StudyLog(db, "played", {**SPEC, "simulated": True})
    played.append(in_order())
    page.refresh()
    before = [study["seconds"] for study in page.said[-1]["studies"]]
    here.at += 600.0
    page.refresh()
    assert [study["seconds"] for study in page.said[-1]["studies"]] == [before[0], before[1] + 600.0]
    for log in (running, played):
        log.close()
    page.refresh()
    assert [study["seconds"] for study in page.said[-1]["studies"]] == before


def test_progress_is_of_a_study_s_time_where_that_is_nearer_its_end(page, db):
    """As `follow` has it: a study of an hour is done then, however few of its phases have ended."""
    log = StudyLog(db, "an hour", SPEC)
    log.append([Event(Kind.STUDY_STARTED, 0.0, data={"aim": {"max_hours": 1.0}}), *in_order()[1:]])
    log.append([Event(Kind.SLOT_JOINED, 3240.0, slot=7, data={"node": "a"})])
    log.close()
    page.refresh()
    assert page.said[-1]["studies"][0]["share"] == 0.9


def test_when_a_study_began_is_told_with_its_zone(page, db, in_the_east):
    write(db, "one").close()
    page.refresh()
    assert page.said[-1]["studies"][0]["began"].endswith(f" {in_the_east}")


def test_a_driver_that_ends_while_its_study_is_read_is_not_taken_for_dead(page, db):
    running = write(db, "running")
    page.refresh()
    with ends_while_read(running):
        page.refresh()
    page.refresh()
    assert [m["studies"][0]["state"] for m in page.said if m.get("studies")] == ["running", "ended"]


def test_a_simulated_study_is_marked(page, db):
    StudyLog(db, "played", {**SPEC, "simulated": True}).close()
    page.refresh()
    [study] = page.said[-1]["studies"]
    assert (study["name"], study["title"]) == ("played", "played (simulated)")
    assert "<td>played (simulated)</td>" in page._repr_html_()


def test_one_study_is_opened_several_are_compared_and_what_cannot_be_is_said(page, db):
    for name in ("one", "two"):
        write(db, name, Event(Kind.STUDY_ENDED, 20.0)).close()
    page.selected = ["one"]
    page.refresh()
    first = page.board
    assert isinstance(first, Dashboard)
    assert page._shown == f"anywidget:{first.model_id}"
    page.selected = ["one", "two"]
    page.refresh()
    assert isinstance(page.board, Comparison)
    assert first.comm is None  # closed
    page.selected = ["gone"]
    page.refresh()
    assert (page.board, page._shown) == (None, "")
    assert "unknown study 'gone'" in page.error
    page.selected = []
    page.refresh()
    assert page.error == ""


def test_a_study_begun_under_a_name_that_was_deleted_is_another(page, db):
    write(db, "again", Event(Kind.STUDY_ENDED, 20.0)).close()
    page.selected = ["again"]
    page.refresh()
    delete(db, "again")
    log = StudyLog(db, "again", SPEC)
    log.append(in_order()[:9])
    page.refresh()
    [told] = page.said[-1]["studies"]
    assert (told["state"], told["seconds"]) == ("running", round(max(e.at for e in in_order()[:9]), 2))
    assert page.error == ""
    page.board.refresh()
    assert "is not what was opened" in page.board.error
    log.close()


def test_a_knowledge_base_that_was_deleted_and_made_anew_is_another(page, db):
    write(db, "old").close()
    page.refresh()
    _delete_file(db)
    page.refresh()
    write(db, "new").close()
    page.refresh()
    _delete_file(db)
    write(db, "newer").close()  # between two looks
    page.refresh()
    told = [[study["name"] for study in message["studies"]] for message in page.said if message["type"] == "snapshot"]
    assert told == [[], ["old"], [], ["new"], ["newer"]]
    assert page.error == ""


def test_of_a_knowledge_base_that_was_restored_an_open_study_says_so(page, db, tmp_path):
    write(db, "one").close()
    copy = backup(db, tmp_path / "copies" / "copy.db")
    log = StudyLog(db, "one", resume=True)
    log.append([Event(Kind.STUDY_ENDED, 20.0)])
    log.close()
    page.selected = ["one"]
    page.refresh()
    _delete_file(db)
    copy.rename(db)
    page.board.refresh()
    assert "'one' is not what was opened: it was deleted" in page.board.error
    page.refresh()  # or its thread, which the selection has woken, has seen it before
    assert [(s["name"], s["state"]) for s in page.until("snapshot")["studies"]] == [("one", "abandoned")]
    assert page.error == ""


def test_a_knowledge_base_that_another_process_holds_is_waited_for(db, monkeypatch):
    write(db, "one").close()
    monkeypatch.setattr(schema, "_WAIT_S", 0)
    with closing(sqlite3.connect(db)) as greedy:
        greedy.execute("PRAGMA locking_mode = EXCLUSIVE")
        greedy.execute("BEGIN EXCLUSIVE")
        page = _Telling(db, refresh_s=FOREVER)
        page.refresh()
        assert "is held by another process" in page.error
    page.refresh()
    assert (page.error, [study["name"] for study in page._rows()]) == ("", ["one"])
    page.close()


def _delete_file(db):
    for file in db.parent.glob(f"{db.name}*"):  # and what SQLite keeps beside it
        file.unlink()


def test_home_is_the_package_s_own_word(db):
    page = home(db)
    assert isinstance(page, Home)
    page.close()


def test_what_is_there_and_is_no_knowledge_base_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DatabaseError, match="is a folder, and a knowledge base is a file"):
        home(tmp_path)
    with pytest.raises(DatabaseError, match="cannot be read as a knowledge base"):
        home(tmp_path / "notes.txt")
