"""Checkpoints in an object store: moto's server, spoken to over HTTP, behind a proxy that misbehaves."""

import os
import threading
from contextlib import contextmanager
from shutil import rmtree

import pytest

from tests.cluster.misbehaving import object_store
from tests.cluster.test_checkpoints import kept, trained
from tests.study.test_pack import HALVING, outcome, study_of
from tests.support import SPACE, Deterministic, saved
from workbench import FullRuns, KnowledgeBase, RandomSearcher
from workbench.cluster import place
from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.local import local_client
from workbench.core.errors import CheckpointError
from workbench.core.protocols import Kind

pytestmark = pytest.mark.clusters
ROOT = "s3://bucket/study"


@pytest.fixture
def proxy(monkeypatch, tmp_path):
    pytest.importorskip("moto")
    pytest.importorskip("s3fs")
    monkeypatch.setattr(place, "_WAITS_S", (0.01,) * 3)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # what waits to be sent is this test's own
    with object_store() as proxy:
        once = {"retries": {"max_attempts": 0}}  # by the library: it would try for a minute itself
        settings = {"endpoint_url": proxy.url, "key": "me", "secret": "secret", "config_kwargs": once}
        monkeypatch.setitem(__import__("fsspec").config.conf, "s3", settings)
        yield proxy


def at_hand(store: CheckpointStore, name: str) -> int:
    """Read a checkpoint; how many phases it has seen."""
    trial = Deterministic({"lr": 1e-3}, 0)
    store.load(trial, name)
    return trial.phase


def waiting(tmp_path) -> list:
    return [path for path in tmp_path.glob("workbench-*/**/*") if path.is_file()]


def test_an_object_store_keeps_what_a_folder_keeps(proxy, tmp_path) -> None:
    store = CheckpointStore(ROOT)
    assert store.disk_use() == 0
    names = [saved(store, trained(phase + 1), 0, phase, score) for phase, score in enumerate([1.0, 9.0, 3.0, 2.0, 4.0])]
    assert kept(store) == [1, 3, 4]
    assert [at_hand(store, names[phase]) for phase in (1, 3, 4)] == [2, 4, 5]
    store.pin(names[3])
    for phase in (5, 6, 7):
        saved(store, trained(phase + 1), 0, phase, 0.0)
    assert kept(store) == [1, 3, 6, 7]
    with pytest.raises(CheckpointError, match="no checkpoint at s3://bucket/study/trial-00000/phase-000"):
        store.load(trained(0), names[0])
    assert store.disk_use() > 0
    assert not waiting(tmp_path)
    store.remove()
    assert store.disk_use() == 0


@pytest.mark.parametrize("fault", ["refuse", "reset", "cut"])
def test_answers_that_fail_are_asked_for_again_and_nothing_false_is_read(proxy, fault) -> None:
    store = CheckpointStore(ROOT)
    proxy.fault = lambda n: "pass" if n % 3 else fault
    names = [saved(store, trained(phase + 1), 1, phase) for phase in range(4)]
    assert [at_hand(store, name) for name in names[2:]] == [3, 4]
    assert proxy.faults > 5
    assert kept(store, 1)[-2:] == [2, 3]


def test_a_store_that_is_gone_is_no_checkpoint_that_is_missing(proxy, tmp_path) -> None:
    """Else a trial would go on from an older one, or from its start."""
    store = CheckpointStore(ROOT)
    name = saved(store, trained(1), 0, 0)
    proxy.close()
    with pytest.raises(OSError, match=r"trial-00000/phase-000 cannot be read from s3://bucket/study: \S") as told:
        store.load(trained(0), name)
    assert not isinstance(told.value, CheckpointError)
    with pytest.raises(OSError, match=r"trial-00000/phase-001 cannot be written to s3://bucket/study: \S"):
        saved(store, trained(2), 0, 1)
    assert at_hand(store, "trial-00000/phase-001") == 2  # it waits on this machine, and is lost to nobody here
    assert waiting(tmp_path)


def test_a_bucket_that_is_not_there_is_told_at_once_and_not_made(proxy) -> None:
    asked = []
    proxy.gate = asked.append
    for root in ("s3://nowhere/study", "s3://nowhere"):
        with pytest.raises(OSError, match=f"cannot be written to {root}: The specified bucket does not exist"):
            saved(CheckpointStore(root), trained(1), 0, 0)
    assert sum(data.startswith(b"PUT") for data in asked) == 2  # once each, and no bucket was made


def test_what_was_uploaded_in_part_is_no_checkpoint(proxy, tmp_path) -> None:
    store = CheckpointStore(ROOT)
    saved(store, trained(1), 0, 0)
    sent = []

    def break_off(data: bytes) -> None:
        sent.append(data)
        if b"phase-001/manifest.json" in data:
            raise OSError("the cable is cut")

    proxy.gate = break_off
    with pytest.raises(OSError, match="cannot be written"):
        saved(store, trained(2), 0, 1)
    assert any(b"phase-001/phase.txt" in data for data in sent)
    proxy.gate = lambda data: None
    for folder in tmp_path.glob("workbench-*"):  # this machine is lost too, with what waited on it
        rmtree(folder)
    with pytest.raises(CheckpointError, match="no checkpoint at"):
        store.load(trained(0), "trial-00000/phase-001")
    assert at_hand(store, "trial-00000/phase-000") == 1


# -- studies --------------------------------------------------------------------------------------------------


@contextmanager
def workers(proxy, monkeypatch, tmp_path):
    """Two workers that take their checkpoints to the proxy, and let them wait in a folder of this test's own."""
    for name, value in {"ENDPOINT_URL": proxy.url, "KEY": "me", "SECRET": "secret"}.items():
        monkeypatch.setenv(f"FSSPEC_S3_{name}", value)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with local_client(2) as client:
        yield client


class Gate:
    """Holds back what is written of some phases until it is opened."""

    def __init__(self, proxy, *phases: int) -> None:
        self.held, self.opened = threading.Event(), threading.Event()
        self._marks = [f"/phase-{phase:03d}/manifest.json".encode() for phase in phases]
        proxy.gate = self

    def __call__(self, data: bytes) -> None:
        if data.startswith(b"PUT") and any(mark in data.partition(b"\r\n")[0] for mark in self._marks):
            self.held.set()
            assert self.opened.wait(300)


@pytest.fixture
def own_place(tmp_path) -> str:
    """A place of one study's own."""
    return f"{ROOT}-{tmp_path.name}"


def events_of(db) -> list:
    with KnowledgeBase(db) as kb:
        return kb["a study"].events()


def watch(run, kind: Kind, phase: int | None) -> None:
    """Wait for an event in a running study's log."""
    while not any(e.kind is kind and e.phase == phase for e in events_of(run.db)):
        assert not run.wait(0.05)


def test_the_next_phase_runs_while_a_checkpoint_is_on_its_way(proxy, monkeypatch, tmp_path, own_place) -> None:
    with workers(proxy, monkeypatch, tmp_path) as client:
        gate = Gate(proxy, 1)
        scheduler = FullRuns(RandomSearcher(SPACE), 2, 4)
        run = study_of(client, tmp_path / "kb.db", scheduler=scheduler, checkpoints=own_place).start()
        assert gate.held.wait(300)
        watch(run, Kind.PHASE_STARTED, 2)  # else this waits for ever: nothing of phase 1 has arrived
        gate.opened.set()
        assert run.wait(300)
    frames = run.frames()
    assert frames.state == "ended"
    assert (frames.phases["phases_run"] == frames.phases["phase"] + 1).all()
    store = CheckpointStore(own_place)
    assert [at_hand(store, f"trial-{trial:05d}/phase-003") for trial in (0, 1)] == [4, 4]
    assert not waiting(tmp_path)  # the study has ended when all has arrived
    ended = [e.data for e in events_of(run.db) if e.kind is Kind.PHASE_ENDED]
    assert all(0 <= data["save_s"] <= data["wall_s"] and "on_its_way" not in data for data in ended)


def test_a_trial_that_goes_on_elsewhere_waits_for_its_checkpoint(proxy, monkeypatch, tmp_path, own_place) -> None:
    """Rungs with a barrier: trials are paused, and taken up by whichever worker is free."""
    with workers(proxy, monkeypatch, tmp_path) as client:
        calm = study_of(client, tmp_path / "calm.db").run()
        proxy.delay_s = 0.1
        run = study_of(client, tmp_path / "kb.db", scheduler=HALVING, checkpoints=own_place).run()
    assert outcome(run) == outcome(calm)
    assert (run.frames().phases["phases_run"] == run.frames().phases["phase"] + 1).all()
    assert not [e for e in events_of(run.db) if "recovered" in e.data or e.kind is Kind.PHASE_FAILED]


def test_a_phase_that_has_ended_is_not_lost_with_the_worker_that_still_sends_it(
    proxy, monkeypatch, tmp_path, own_place
) -> None:
    with workers(proxy, monkeypatch, tmp_path) as client:
        gate = Gate(proxy, 1)
        scheduler = FullRuns(RandomSearcher(SPACE), 1, 40)
        run = study_of(client, tmp_path / "kb.db", scheduler=scheduler, checkpoints=own_place).start()
        assert gate.held.wait(300)
        watch(run, Kind.PHASE_ENDED, 1)
        for pid in client.run(os.getpid).values():
            os.kill(pid, 9)
        watch(run, Kind.SLOT_LOST, None)
        gate.opened.set()
        assert run.wait(300)
    frames = run.frames()
    assert len(frames.phases) == 40
    assert (frames.phases["phases_run"] == frames.phases["phase"] + 1).all()
    assert not [e for e in events_of(run.db) if "recovered" in e.data]


def test_a_study_outlives_a_store_that_fails_now_and_then(proxy, monkeypatch, tmp_path, own_place) -> None:
    with workers(proxy, monkeypatch, tmp_path) as client:
        proxy.fault = lambda n: ("refuse", "pass", "reset", "pass", "cut", "pass")[n % 6]
        scheduler = FullRuns(RandomSearcher(SPACE), 3, 3)
        run = study_of(client, tmp_path / "kb.db", scheduler=scheduler, checkpoints=own_place).run()
    assert proxy.faults > 10
    assert (run.frames().phases["phases_run"] == run.frames().phases["phase"] + 1).all()
    assert not [e for e in events_of(run.db) if "recovered" in e.data or e.kind is Kind.PHASE_FAILED]
