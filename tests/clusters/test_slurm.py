"""SLURM, its own daemons on two hosts: studies that grow and shrink with the queue, and jobs that end in every way."""

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clusters.conftest import RECIPES
from tests.clusters.slurm import Site, site
from tests.clusters.trials import Paced
from tests.support import SPACE
from workbench import FullRuns, RandomSearcher, Study
from workbench.cluster import launchers
from workbench.core.protocols import Event, Kind
from workbench.knowledge import KnowledgeBase

pytestmark = pytest.mark.clusters

STUDY = """\
[study]
name = "{name}"

[space]
lr = {{log_uniform = [1e-5, 1e-2]}}
gamma = {{choice = [0.9, 0.99]}}

[scheduler]
kind = "full"
n_trials = {trials}
n_phases = {phases}

[trainable]
kind = "tests.clusters.trials:Paced"
steps = {steps}
record = "{record}"
processes = {processes}
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("slurm")) as here:
        yield here


@pytest.fixture
def user(slurm, home, monkeypatch) -> Site:
    """Whoever uses the site, in a home directory; this thread is on the login node."""
    monkeypatch.setenv("SLURM_CONF", slurm.env["SLURM_CONF"])
    with slurm.head.entered():
        yield Site(slurm.head, slurm.nodes, dict(os.environ))


def events_of(name: str) -> list[Event]:
    with KnowledgeBase("kb.db") as kb:
        return list(kb[name].events())


def write_study(name: str, trials: int, phases: int, steps: int = 10, processes: int = 0) -> Path:
    words = {"name": name, "trials": trials, "phases": phases, "steps": steps, "processes": processes}
    Path("study.toml").write_text(STUDY.format(record="steps", **words))
    return Path("study.toml")


def run_out(told: "subprocess.CompletedProcess[str]") -> str:
    return f"{told.stdout}\n{told.stderr}"


def test_a_whole_study_is_one_command_on_a_login_node(user) -> None:
    write_study("one-command", 6, 2)
    command = [sys.executable, "-m", "workbench", "run", "study.toml", "--db", "kb.db", "--quiet"]
    where = ["--cluster", str(RECIPES / "slurm.toml"), "--checkpoints", str(Path("checkpoints").absolute())]
    told = subprocess.run([*command, *where], capture_output=True, text=True, timeout=600, check=False)
    assert told.returncode == 0, run_out(told)
    events = events_of("one-command")
    nodes = {e.data["node"] for e in events if e.kind is Kind.SLOT_JOINED}
    assert nodes
    assert nodes <= {node.address for node in user.nodes}
    assert sum(e.kind is Kind.PHASE_ENDED for e in events) == 12
    assert not [e for e in events if e.kind is Kind.PHASE_FAILED]
    until(lambda: not user.run("squeue", "-h"))


class Watch:
    """Hears a study's events as they are logged."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._changed = threading.Condition()

    def __call__(self, events) -> None:
        with self._changed:
            self.events += events
            self._changed.notify_all()

    def until(self, true: Callable[[list[Event]], bool], limit_s: float = 300) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: true(self.events), limit_s):
                told = [e for e in self.events if e.kind is not Kind.PROGRESS][-12:]
                raise TimeoutError(
                    "\n".join(f"{e.at:.1f} {e.kind} {e.trial} {e.slot} {e.data.get('why')}" for e in told)
                )

    def n(self, kind: Kind) -> int:
        return sum(e.kind is kind for e in self.events)


def up(events: list[Event]) -> int:
    return sum(e.kind is Kind.SLOT_JOINED for e in events) - sum(e.kind is Kind.SLOT_LOST for e in events)


def until(true: Callable[[], bool], limit_s: float = 300) -> None:
    """Ask every now and then, of somebody else's program, whether it has come so far."""
    deadline = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def steps_of(file: str = "steps") -> Counter[tuple[str, ...]]:
    """Count how often each step of each phase of each trial was done."""
    return Counter(tuple(line.split()[:3]) for line in Path(file).read_text().splitlines())


@pytest.mark.parametrize("how", ["scancel", "requeue", "limit"])
def test_a_job_that_ends_early_costs_no_attempt_and_no_step(user, monkeypatch, how) -> None:
    """By somebody else's scancel, by a requeue, at its wall time: all its workers save, and others go on there."""
    monkeypatch.setattr(launchers, "_LOST_S", 8.0)
    watch, gate = Watch(), Path("gate").absolute()  # nobody is between two phases when the job ends
    with launchers.cluster_client(str(RECIPES / "slurm.toml")) as client:
        trials = Paced(step_s=0.1, record=str(Path("steps").absolute()), gate=str(gate))
        scheduler = FullRuns(RandomSearcher(SPACE), 4, 2)
        run = Study(how, scheduler, trials, "kb.db", client=client, callbacks=[watch], max_retries=0).start()
        watch.until(lambda events: len({e.trial for e in events if e.kind is Kind.PROGRESS}) == 4)
        (job, *others) = user.jobs()
        assert len(others) == 1
        end = {"scancel": ["scancel", job], "requeue": ["scontrol", "requeue", job]}
        user.run(*end.get(how, ["scontrol", "update", f"JobId={job}", "TimeLimit=1"]))
        watch.until(lambda events: sum(e.kind is Kind.SLOT_LOST for e in events) == 2)
        gate.touch()
        assert run.wait(600)
    lost = [e for e in watch.events if e.kind is Kind.PHASE_FAILED]
    assert [e.data["why"] for e in lost] == ["left", "left"]
    assert watch.n(Kind.PHASE_ENDED) == 8
    assert watch.n(Kind.TRIAL_FAILED) == 0
    assert set(steps_of().values()) == {1}  # nothing was done twice
    until(lambda: not user.run("squeue", "-h"))


def test_driver_and_workers_are_one_job_that_is_requeued_before_its_limit_and_goes_on(user) -> None:
    write_study("one-job", 4, 2, steps=200)
    script = [str(RECIPES / "one-job.sh"), "study.toml", "--db", "kb.db", "--quiet"]
    out = ["--output", "one-job.out"]
    job = user.run("sbatch", "--parsable", *out, *script, "--checkpoints", str(Path("checkpoints").absolute()))
    until(lambda: Path("steps").exists() and len(steps_of()) > 100)
    user.run("scancel", "--batch", "--signal=TERM", job)  # as SLURM does two minutes before the limit
    until(lambda: user.jobs("PD") == [job])
    first = events_of("one-job")
    assert first[-1].kind is Kind.STUDY_INTERRUPTED
    assert {e.data["why"] for e in first if e.kind is Kind.PHASE_FAILED} <= {"left"}
    user.run("scontrol", "update", f"JobId={job}", "StartTime=now")
    until(lambda: not user.run("squeue", "-h"))
    events = events_of("one-job")
    assert events[-1].kind is Kind.STUDY_ENDED, Path("one-job.out").read_text()
    assert {e.data["node"] for e in events if e.kind is Kind.SLOT_JOINED} == {node.address for node in user.nodes}
    assert sum(e.kind is Kind.PHASE_ENDED for e in events) == 8
    assert set(steps_of().values()) == {1}  # what was saved within phases was used


def test_every_slot_sees_the_gpu_of_its_job_and_no_other(user) -> None:
    write_study("gpus", 6, 1, processes=6)  # the second job may start long after the first
    command = [sys.executable, "-m", "workbench", "run", "study.toml", "--db", "kb.db", "--quiet"]
    where = ["--cluster", str(RECIPES / "gpus.toml"), "--checkpoints", str(Path("checkpoints").absolute())]
    told = subprocess.run([*command, *where], capture_output=True, text=True, timeout=600, check=False)
    assert told.returncode == 0, run_out(told)
    lines = [line.split(" ") for line in Path("steps").read_text().splitlines()]
    sees = {process: gpu for _, _, _, process, gpu in lines}
    assert len(sees) == 6
    places = Counter(sees.values())
    assert set(places) <= {"0", "1"}  # one device a process, as SLURM numbers them
    assert all(n % 3 == 0 for n in places.values())  # the three slots of a job share its device
    assert not [e for e in events_of("gpus") if e.kind is Kind.PHASE_FAILED]
