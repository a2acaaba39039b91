"""Requests as people's tools may leave them: whatever is there, the study goes on, each request is answered once."""

import json
import os
import re
import uuid
import warnings
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import SPACE, RandomTimes, small_disk, virtual_executor
from workbench.algos.search import FullRuns, RandomSearcher
from workbench.core.drive import drive
from workbench.core.errors import InvalidInput, StudyError
from workbench.core.interventions import ACTIONS
from workbench.core.protocols import Kind
from workbench.knowledge import Controls, Inbox, KnowledgeBase, StudyLog, delete, driver_of
from workbench.knowledge.inbox import inbox_path, send
from workbench.knowledge.lock import lock_path

anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=5,
)
configs = st.dictionaries(st.sampled_from(["lr", "gamma", "nonsense"]), anything, max_size=2)
nearly = st.fixed_dictionaries(
    {"action": st.one_of(st.sampled_from(ACTIONS), anything)},
    optional={
        "trial": st.one_of(st.integers(-1, 3), anything),
        "data": st.one_of(
            anything,
            st.fixed_dictionaries(
                {}, optional={"phases": anything, "config": configs, "nodes": anything, "by": anything}
            ),
        ),
    },
)
contents = st.one_of(
    st.binary(max_size=100),
    st.one_of(nearly, anything).map(lambda thing: json.dumps(thing).encode()),  # NaN and half surrogates are among them
    st.tuples(nearly, st.integers(0, 60)).map(lambda cut: json.dumps(cut[0]).encode()[: cut[1]]),
    st.sampled_from([b"[" * 100_000, b'{"action": "' + b"x" * 100_000 + b'"}', b'{"action": "stop", "trial": 1e400}']),
)
names = st.one_of(
    st.sampled_from([b"00000", "ä🙂".encode(), b"\xff\xfe", b"..", b"a b\nc", b"%s{}"]),
    st.binary(min_size=1, max_size=20),
).filter(lambda name: not {b"/"[0], 0} & set(name))


def study_beside(path: Path, drop, name: str = "one") -> list:
    """Drive a study to its end, or for a while should it be paused, with `drop` called in the midst of it."""
    log, turns = StudyLog(path, name, {}), iter(range(10_000))
    inbox = Inbox(path, name)

    def requests():
        if next(turns) == 4:
            drop(lock_path(path, name).with_suffix(".inbox"))
        return inbox()

    executor = virtual_executor(RandomTimes(0), 2)
    scheduler = FullRuns(RandomSearcher(SPACE), 4, 3)
    drive(scheduler, executor, log, inbox=requests, stop=lambda: next(turns) > 200, poll_s=0.0)
    log.close()
    with KnowledgeBase(path) as kb:
        kb[name].frames()
        return kb[name].events()


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Path:
    """A knowledge base for many studies: making one takes longer than writing to it."""
    return tmp_path_factory.mktemp("inbox") / "kb.db"


@settings(max_examples=15, deadline=None)  # of many files each, for every example is a study
@given(files=st.dictionaries(names, contents, min_size=1, max_size=20))
def test_garbage_in_the_inbox_is_answered_in_one_line_and_kills_nobody(shared, files) -> None:
    dropped = []

    def drop(folder: Path) -> None:
        folder.mkdir()
        for name, content in files.items():
            file = os.fsencode(folder) + b"/" + name + b".json"
            with open(file, "wb") as stream:
                stream.write(content)
            dropped.append(file)

    events = study_beside(shared, drop, uuid.uuid4().hex)
    answers = [e for e in events if e.kind is Kind.INTERVENTION]
    assert len(answers) == len({e.data["request"] for e in answers}) == len(files)
    for answer in answers:
        assert answer.data["accepted"] or len(answer.data["why"].splitlines()) == 1
    assert not any(map(os.path.exists, dropped))


def test_what_is_no_file_is_left_alone(tmp_path) -> None:
    """A folder, a pipe that nobody writes to, a link to nowhere: none of them can be read."""

    def drop(folder: Path) -> None:
        (folder / "folder.json").mkdir(parents=True)
        os.mkfifo(folder / "pipe.json")
        (folder / "link.json").symlink_to(folder / "nowhere")

    events = study_beside(tmp_path / "kb.db", drop)
    assert not [e for e in events if e.kind is Kind.INTERVENTION]
    assert sum(e.kind is Kind.PHASE_ENDED for e in events) == 12


@pytest.mark.parametrize("trial", ["a", "1", 1.0, True, -1, [0]])
def test_what_is_no_number_of_a_trial_is_refused_at_the_call(tmp_path, trial) -> None:
    StudyLog(tmp_path / "kb.db", "one", {}).close()
    controls = Controls(tmp_path / "kb.db", "one")
    says = f"takes the number of a trial, a whole number from 0, got {re.escape(repr(trial))}$"
    for ask in (controls.stop, controls.confirm, lambda trial: controls.note("odd", trial)):
        with pytest.raises(InvalidInput, match=says):
            ask(trial)
    assert not Inbox(tmp_path / "kb.db", "one")()


@pytest.mark.parametrize("value", [{1, 2}, np.array([1, 2]), b"x"], ids=["set", "array", "bytes"])
def test_what_no_request_can_hold_is_refused_at_the_call(tmp_path, value) -> None:
    StudyLog(tmp_path / "kb.db", "one", {}).close()
    with pytest.raises(InvalidInput, match=f"a request holds numbers, .*, got {re.escape(repr(value))}$"):
        Controls(tmp_path / "kb.db", "one").clone(0, {"a": value})
    assert not Inbox(tmp_path / "kb.db", "one")()


def test_what_is_too_long_for_a_request_is_refused_at_the_call(tmp_path) -> None:
    StudyLog(tmp_path / "kb.db", "one", {}).close()
    with pytest.raises(InvalidInput, match=r"a request takes 64 KiB at most, and to note so takes 98 KiB: shorten it$"):
        Controls(tmp_path / "kb.db", "one").note("x" * 100_000)
    assert not Inbox(tmp_path / "kb.db", "one")()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"lr": "0.001"}, "lr='0.001' lies outside LogUniform"),
        ({"lr": True}, "lr=True lies outside"),
        ({"lr": [0.001]}, r"lr=\[0.001\] lies outside"),
        ({"lr": 10**400}, "lr=1000"),
        ({"lr": 1}, "lr=1 lies outside"),
        ({"lr": 0.001}, None),
        ({"lr": np.float32(2**-10)}, None),
    ],
)
def test_a_clone_s_hyperparameters_are_of_the_study_s_space(tmp_path, changes, says) -> None:
    path = tmp_path / "kb.db"
    events = study_beside(path, lambda folder: send(path, "one", "clone", 0, config=changes, phases=1))
    (answer,) = (e for e in events if e.kind is Kind.INTERVENTION)
    if says is None:
        assert answer.data["accepted"]
        assert [e.data["config"]["lr"] for e in events if e.kind is Kind.RUN and e.data.get("clone_of") == 0] == [
            changes["lr"]
        ]
    else:
        assert not answer.data["accepted"]
        assert re.search(says, answer.data["why"])


@pytest.mark.parametrize(("phases", "ran"), [(None, 3), (2, 2), (5, 5)])
def test_a_clone_runs_as_many_phases_as_are_asked_for_or_as_a_trial_of_its_study(tmp_path, phases, ran) -> None:
    path = tmp_path / "kb.db"
    events = study_beside(path, lambda _: Controls(path, "one").clone(0, {"lr": 0.001}, phases))
    (clone,) = (e.trial for e in events if e.kind is Kind.RUN and e.data.get("clone_of") == 0)
    assert sum(e.kind is Kind.PHASE_ENDED and e.trial == clone for e in events) == ran


@pytest.mark.parametrize(
    "content",
    [
        '{"action": "stop", "trial": true}',
        '{"action": "scale", "data": {"nodes": NaN}}',
        '{"action": "note", "data": {"text": "%s"}}' % ("x" * (1 << 16)),
        '{"action": "note", "data": {"text": "\\ud800"}}',
        '{"action": "note", "data": ["x"]}',
        '{"action": 1}',
    ],
    ids=["truth", "NaN", "large", "surrogate", "list", "number"],
)
def test_what_makes_no_request_is_one_that_will_be_refused(tmp_path, content) -> None:
    inbox_path(tmp_path / "kb.db", "one").mkdir()
    (inbox_path(tmp_path / "kb.db", "one") / "odd.json").write_text(content)
    (request,) = Inbox(tmp_path / "kb.db", "one")()
    assert request.action.startswith("unreadable request")
    assert (request.id, request.trial, request.data) == ("odd", None, {})


def test_what_was_asked_of_a_study_that_has_been_deleted_is_refused_by_the_next_of_its_name(tmp_path) -> None:
    db = tmp_path / "kb.db"
    StudyLog(db, "one", {}).close()
    send(db, "one", "stop study")
    stray = inbox_path(db, "one").rename(tmp_path / "stray")
    delete(db, "one")
    with closing(StudyLog(db, "one", {})) as log:
        stray.rename(inbox_path(db, "one"))  # as of whoever had looked for the study before it was deleted
        send(db, "one", "pause study")
        inbox = Inbox(db, "one", log.identity)
        assert not inbox.holds("stop study")
        assert [request.action for request in inbox()] == ["a request to another study of this name", "pause study"]


def test_whether_a_request_has_come_in_can_be_asked_and_it_stays(tmp_path) -> None:
    inbox, folder = Inbox(tmp_path / "kb.db", "one"), inbox_path(tmp_path / "kb.db", "one")
    assert not inbox.holds("stop study")
    folder.mkdir(parents=True)
    (folder / "0.json").write_text('{"action": "pause study"}')
    assert not inbox.holds("stop study")
    (folder / "1.json").write_text('{"action": "stop study"}')
    assert inbox.holds("stop study")
    assert [request.action for request in inbox()] == ["pause study", "stop study"]


def test_requests_are_taken_in_the_order_they_were_sent_though_the_clock_is_set_back(tmp_path, monkeypatch) -> None:
    StudyLog(tmp_path / "kb.db", "one", {}).close()
    for now in (5, 5, 5, 4, 3, 3):
        monkeypatch.setattr("time.time_ns", lambda now=now: now)
        send(tmp_path / "kb.db", "one", "scale", nodes=now)
    assert [request.data["nodes"] for request in Inbox(tmp_path / "kb.db", "one")()] == [5, 5, 5, 4, 3, 3]


def test_what_is_asked_while_nobody_drives_the_study_is_said_to_wait(tmp_path) -> None:
    log = StudyLog(db := tmp_path / "kb.db", "one", {})
    controls = Controls(db, "one")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        controls.extend(0, 1)
        log.close()
        controls.note("needs no driver")
    with pytest.warns(
        UserWarning, match="nobody drives study 'one': this waits, and is done when it is resumed$"
    ) as said:
        controls.extend(0, 1)
    assert said[0].filename == __file__
    with pytest.warns(UserWarning, match="nobody drives study 'one': there is nothing to stop$"):
        controls.stop_study()


def test_a_request_that_the_disk_does_not_take_is_told_and_leaves_nothing(tmp_path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        db = disk / "kb.db"
        with closing(StudyLog(db, "one", {})):
            with (disk / "full").open("wb", buffering=0) as full, suppress(OSError):
                while True:
                    full.write(bytes(4096))
            said = r"^study 'one' cannot be asked to pause beside .*/kb.db \(No space left .*\): make space there$"
            with pytest.raises(StudyError, match=said):
                Controls(db, "one").pause(0)
            assert [*inbox_path(db, "one").iterdir()] == []


def test_a_note_that_comes_while_another_is_written_down_is_not_left_waiting(tmp_path, monkeypatch) -> None:
    db, real = tmp_path / "kb.db", Inbox.waiting
    StudyLog(db, "one", {}).close()
    controls = Controls(db, "one")

    def waiting(inbox, actions):
        found = real(inbox, actions)
        if driver_of(db, "one") is not None and len(list(inbox_path(db, "one").iterdir())) == 1:
            monkeypatch.setattr(Inbox, "waiting", real)
            controls.note("second")  # by somebody who takes this one for a driver
        return found

    monkeypatch.setattr(Inbox, "waiting", waiting)
    controls.note("first")
    with KnowledgeBase(db) as kb:
        assert kb["one"].frames().notes["text"].tolist() == ["first", "second"]
