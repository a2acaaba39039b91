"""Checkpoints on their way: what a worker does, and what the driver knows of it."""

import threading

import pytest

from tests.cluster.test_checkpoints import trained
from tests.study.test_pack import study_of
from tests.support import SPACE, Deterministic
from workbench import FullRuns, KnowledgeBase, RandomSearcher
from workbench.cluster.attempts import Attempt
from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.slots import Slot
from workbench.cluster.uploads import Arrivals, Uploads
from workbench.core.errors import FirstTrialsFailed, InvalidInput
from workbench.core.protocols import Job, Kind

ONE, TWO = "trial-00001/phase-000", "trial-00002/phase-000"


def attempt(checkpoint: str | None, alive: bool = False) -> Attempt:
    return Attempt(Job(1, 1, {}, 0, checkpoint), 0, Slot(0, ("a",), ("a",)), 0.0, alive, 0)


def test_who_must_read_what_is_on_its_way_waits_for_it() -> None:
    arrivals = Arrivals()
    arrivals.sent(ONE, "a", True)
    reader, other = attempt(ONE), attempt(TWO)
    assert [arrivals.must_wait(one) for one in (reader, other, attempt(None), attempt(ONE, alive=True))] == [
        True,
        False,
        False,
        False,
    ]
    assert arrivals.waiting == [reader]
    assert arrivals.arrived(TWO) == []
    assert arrivals.arrived(ONE) == [reader]
    assert not arrivals.must_wait(attempt(ONE))
    assert (arrivals.waiting, len(arrivals)) == ([], 0)


def test_what_arrived_before_it_was_said_to_be_sent_has_arrived() -> None:
    arrivals = Arrivals()
    arrivals.arrived(ONE)
    arrivals.sent(ONE, "a", True)
    assert not arrivals.must_wait(attempt(ONE))
    arrivals.arrived(TWO)
    arrivals.sent(TWO, "a", False)
    arrivals.sent(TWO, "a", True)  # another attempt at the phase
    assert arrivals.must_wait(attempt(TWO))


def test_what_a_lost_worker_was_sending_is_waited_for_no_more() -> None:
    arrivals = Arrivals(leave_s=40)
    arrivals.begin({ONE: "a", TWO: "b"})
    arrivals.must_wait(attempt(ONE))
    assert sorted(arrivals.senders) == ["a", "b"]
    assert arrivals.lost(["a"], ["a"], now=0.0) == []  # it goes in order, and may still send
    assert arrivals.lost(["a"], ["a"], now=41.0) == [ONE]
    assert arrivals.lost(["a"], [], now=42.0) == [ONE]
    assert len(arrivals.arrived(ONE)) == 1
    arrivals.must_wait(attempt(TWO))
    arrivals.forget_waiting()
    assert arrivals.arrived(TWO) == []


def test_what_is_sent_again_under_its_name_is_waited_for_anew() -> None:
    arrivals = Arrivals(leave_s=40)
    arrivals.sent(ONE, "a", True)
    assert arrivals.lost(["a"], ["a"], now=0.0) == []
    arrivals.arrived(ONE)
    arrivals.sent(ONE, "b", True)  # another attempt at the phase
    assert arrivals.lost(["b"], ["b"], now=100.0) == []
    arrivals.arrived(TWO)
    arrivals.begin({})  # the line broke: what arrived before it is no longer to be told of
    arrivals.sent(TWO, "b", True)
    assert arrivals.must_wait(attempt(TWO))


def test_a_worker_says_what_it_sends_and_waits_for_it_when_it_must(tmp_path) -> None:
    uploads, store, told, go = Uploads(), CheckpointStore(f"file://{tmp_path}/c"), [], threading.Event()
    name = store.set_down(trained(1), 3, 0)

    def tell(*what: str) -> None:
        told.append(what)
        assert go.wait(60)

    assert not uploads.is_proved(store)
    uploads.begin(store, "one", 3, name, tell)
    assert (uploads.under_way("one"), uploads.under_way("two"), uploads.busy) == ([name], [], True)
    said = []

    def say(note: str) -> None:
        said.append(note)
        go.set()

    uploads.wait(say, every_s=0.01)
    assert f"waiting for checkpoint {name} to arrive" in said
    assert told == [(name, "")]
    assert (uploads.under_way("one"), uploads.busy) == ([], False)
    assert uploads.is_proved(store)
    fresh = Deterministic({}, 0)
    store.load(fresh, name)
    assert fresh.phase == 1


def test_what_could_not_be_sent_is_the_trials_affair_and_is_raised_once() -> None:
    uploads, store, told = Uploads(), CheckpointStore("file:///proc/none"), []
    name = store.set_down(trained(1), 3, 0)
    try:
        uploads.begin(store, "one", 3, name, lambda *what: told.append(what))
        uploads.wait(lambda note: None)
        uploads.refuse("one", 4)
        uploads.refuse("two", 3)
        with pytest.raises(OSError, match="trial-00003/phase-000 cannot be written to file:///proc/none"):
            uploads.refuse("one", 3)
        uploads.refuse("one", 3)
        assert "cannot be written" in told[0][1]
        assert not uploads.is_proved(store)
    finally:
        store.remove()


def test_whatever_stops_a_send_is_told() -> None:
    class Broken(CheckpointStore):
        def send(self, name: str) -> None:
            raise InvalidInput("nothing here can write to this URL")

    uploads, told = Uploads(), []
    uploads.begin(Broken("file:///proc/none"), "one", 3, ONE, lambda *what: told.append(what))
    uploads.wait(lambda note: pytest.fail(note), every_s=10)
    assert told == [(ONE, "nothing here can write to this URL")]
    with pytest.raises(InvalidInput, match="nothing here can write"):
        uploads.refuse("one", 3)


def test_a_place_that_takes_no_checkpoint_is_told_in_the_first_phase(client, tmp_path) -> None:
    scheduler = FullRuns(RandomSearcher(SPACE), 4, 3)
    study = study_of(client, tmp_path / "kb.db", scheduler=scheduler, checkpoints="file:///proc/none")
    with pytest.raises(FirstTrialsFailed, match="phase-000 cannot be written to file:///proc/none"):
        study.run()
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        kinds = [e.kind for e in kb["a study"].events()]
    assert Kind.PHASE_FAILED not in kinds  # one attempt each
    assert kinds.count(Kind.TRIAL_FAILED) >= 3


def test_what_waits_to_be_sent_waits_in_a_private_folder_of_ones_own(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = CheckpointStore(f"file://{tmp_path}/c")
    store.set_down(trained(1), 0, 0)
    (own,) = tmp_path.glob("workbench-*")
    assert own.stat().st_mode & 0o077 == 0
    own.rename(tmp_path / "moved")
    own.symlink_to(tmp_path / "moved")  # somebody was there first
    with pytest.raises(OSError, match="no private folder of yours: remove it, or set TMPDIR"):
        store.set_down(trained(1), 0, 1)
    own.unlink()
    own.mkdir(mode=0o777)
    own.chmod(0o777)
    with pytest.raises(OSError, match="no private folder of yours"):
        store.set_down(trained(1), 0, 1)
    monkeypatch.setattr("os.getuid", lambda: 4321)  # it is called after this user, and is another's
    with pytest.raises(OSError, match="no private folder of yours"):
        store.set_down(trained(1), 0, 1)
