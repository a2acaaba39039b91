"""Notes and tags: in the log, whether or not somebody drives the study, and in the frames."""

import pandas as pd
import pytest

from tests.knowledge.studies import a_study
from workbench.core.errors import StudyError
from workbench.core.protocols import Event, Kind
from workbench.knowledge import Controls, Inbox, KnowledgeBase, StudyLog, check
from workbench.knowledge.inbox import inbox_path, send, settle
from workbench.knowledge.remarks import tags_of


@pytest.fixture
def db(tmp_path):
    path = tmp_path / "kb.db"
    log = StudyLog(path, "one", {"seed": 0})
    log.append([*a_study(), Event(Kind.STUDY_ENDED, 30.0)])
    log.close()
    return path


def frames(db):
    with KnowledgeBase(db) as kb:
        return kb["one"].frames()


def test_what_is_written_on_a_study_that_nobody_drives_stands_in_its_log_at_once(db):
    controls = Controls(db, "one")
    controls.tag("good", 1)
    controls.tag("good", 1)  # twice is once
    controls.tag("night")
    controls.tag("bad", 0)
    controls.untag("bad", 0)
    controls.note('diverges\n"late"', 1)
    controls.note("of the study")
    found = frames(db)
    assert list(found.tags.fillna(-1).itertuples(index=False, name=None)) == [(1, "good", 30.0), (-1, "night", 30.0)]
    assert found.notes["text"].tolist() == ['diverges\n"late"', "of the study"]
    assert found.notes["trial"].isna().tolist() == [False, True]
    assert found.state == "ended"
    assert list(check(db)) == []
    assert list(inbox_path(db, "one").iterdir()) == []


@pytest.mark.parametrize(("kind", "read"), [("csv", pd.read_csv), ("parquet", pd.read_parquet)])
def test_tags_and_notes_go_to_files_as_the_other_tables_do(db, tmp_path, kind, read):
    controls = Controls(db, "one")
    controls.tag("good", 1)
    controls.note("of the study")
    frames(db).export(tmp_path / "out", kind)
    assert read(tmp_path / "out" / f"tags.{kind}")[["trial", "tag"]].to_numpy().tolist() == [[1, "good"]]
    [note] = read(tmp_path / "out" / f"notes.{kind}").to_dict("records")
    assert (note["text"], pd.isna(note["trial"])) == ("of the study", True)


def test_a_tag_is_as_old_as_it_was_put_on_first_unless_it_was_taken_off_since():
    said = [("tag", 1.0), ("tag", 2.0), ("untag", 3.0), ("tag", 4.0)]
    rows = [{"action": a, "accepted": True, "trial": 0, "data": {"tag": "good"}, "at_s": at} for a, at in said]
    assert [tags_of(rows[:n]) for n in (2, 3, 4)] == [{0: {"good": 1.0}}, {}, {0: {"good": 4.0}}]


@pytest.mark.parametrize("tag", ["", "two words", "a,b", "a:b", "lr>1", "-no", "x" * 41, "a\x00"])
def test_a_tag_is_a_word_that_the_filter_can_name(db, tag):
    Controls(db, "one").tag(tag, 0)
    assert frames(db).tags.empty
    assert "a tag is one word" in frames(db).interventions["why"].iloc[-1]


def test_the_longest_note_is_kept_whole_and_a_longer_one_refused(db):
    for length in (2000, 2001):
        Controls(db, "one").note("x" * length)
    assert frames(db).notes["text"].tolist() == ["x" * 2000]
    assert "a note is 1 to 2000 characters" in frames(db).interventions["why"].iloc[-1]


def test_what_makes_no_sense_is_refused_in_the_log(db):
    controls = Controls(db, "one")
    controls.note(" ", 0)
    controls.note("x", 99)
    assert frames(db).notes.empty
    asked = frames(db).interventions
    assert asked["accepted"].tolist() == [False, False]
    assert "there is no trial 99" in asked["why"].iloc[1]


def test_the_driver_answers_where_there_is_one_and_other_requests_wait_for_it(db):
    with KnowledgeBase(db) as kb:
        log = StudyLog(db, "one", kb["one"].spec, resume=True)
    Controls(db, "one").tag("good", 0)
    assert frames(db).tags.empty
    send(db, "one", "stop", 0)
    log.close()
    Controls(db, "one").tag("better", 0)
    assert frames(db).tags["tag"].tolist() == ["good", "better"]
    assert len(list(inbox_path(db, "one").iterdir())) == 1  # the wish to stop


def test_a_note_that_was_answered_by_somebody_who_died_before_removing_it_is_not_answered_again(db):
    send(db, "one", "note", text="once")
    (file,) = inbox_path(db, "one").iterdir()
    request = file.read_bytes()
    settle(db, "one")
    file.write_bytes(request)
    settle(db, "one")
    assert frames(db).notes["text"].tolist() == ["once"]
    assert list(inbox_path(db, "one").iterdir()) == []


def test_a_note_that_a_driver_answered_and_left_behind_meanwhile_is_not_answered_again(db, monkeypatch):
    request = send(db, "one", "note", text="once")

    def after_another(path, study, *, resume):
        log = StudyLog(path, study, resume=resume)
        answer = {"request": request, "action": "note", "by": "person", "text": "once", "accepted": True}
        log.append([Event(Kind.INTERVENTION, 30.0, data=answer)])
        log.close()
        return StudyLog(path, study, resume=resume)

    monkeypatch.setitem(settle.__globals__, "StudyLog", after_another)
    settle(db, "one")
    assert frames(db).notes["text"].tolist() == ["once"]


def test_a_request_is_not_taken_before_it_is_whole(db, monkeypatch):
    def cut_short(*_: object) -> None:
        raise OSError("the power went")

    monkeypatch.setattr("os.replace", cut_short)
    with pytest.raises(StudyError, match="the power went"):
        send(db, "one", "note", text="half")
    assert list(Inbox(db, "one")()) == []
