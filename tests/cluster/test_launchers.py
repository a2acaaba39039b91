"""Clusters that a file describes: what it may hold, and what is said of what it may not."""

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import dask
import pytest
from distributed import LocalCluster

from tests.support import Deterministic
from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.dask import DaskExecutor
from workbench.cluster.growing import planned_workers
from workbench.cluster.launchers import WholeJobs, _bring_back, cluster_client
from workbench.core.errors import InvalidInput

ONE_JOB = Path(__file__).parents[2] / "docs" / "recipes" / "one-job.sh"
LOCAL = """\
kind = "distributed:LocalCluster"

[settings]
n_workers = 0
threads_per_worker = 1
host = "127.0.0.1"
dashboard_address = "127.0.0.1:0"
local_directory = "$SOMEWHERE"

[adapt]
minimum = 0
maximum = 2
interval = "100ms"

[dask]
"distributed.worker.daemon" = false
"""


def test_a_file_makes_a_cluster_that_grows_with_what_is_wanted_and_ends_with_its_client(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("SOMEWHERE", str(tmp_path / "scratch"))
    (tmp_path / "local.toml").write_text(LOCAL)
    with cluster_client(str(tmp_path / "local.toml")) as client:
        executor = DaskExecutor(client, Deterministic, CheckpointStore(str(tmp_path)))
        executor.open(0.0)
        assert executor.n_slots == 0
        executor.want(2)
        while executor.n_slots < 2:
            executor.wait(5)
        executor.close()
        assert (tmp_path / "scratch").is_dir()
        cluster = client.cluster
    assert cluster.status.name == "closed"


class Jobs(LocalCluster):
    """Keeps what it was told of the jobs it would write."""

    def __init__(self, job_script_prologue, job_extra_directives, **settings) -> None:
        self.told = job_script_prologue, job_extra_directives
        super().__init__(n_workers=0, processes=False, dashboard_address=None, **settings)


JOBS = """\
kind = "tests.cluster.test_launchers:Jobs"

[settings]
job_script_prologue = ["cd $SOMEWHERE"]
job_extra_directives = ["--chdir=$SOMEWHERE", "--array=$NOWHERE_SET"]

[dask]
"distributed.worker.daemon" = false
"""


def test_variables_are_put_in_but_for_a_job_s_own_and_dask_is_told_while_the_cluster_is_there(
    tmp_path, monkeypatch
) -> None:
    def told() -> list:
        return [dask.config.get(f"distributed.{name}") for name in ("worker.daemon", "deploy.lost-worker-timeout")]

    monkeypatch.setenv("SOMEWHERE", "/scratch")
    jobs, patient = tmp_path / "jobs.toml", tmp_path / "patient.toml"
    jobs.write_text(JOBS)
    patient.write_text(f'{JOBS}"distributed.deploy.lost-worker-timeout" = "90s"\n')
    # another test's cluster may be there, which has Dask told as well
    with dask.config.set({"distributed.worker.daemon": True, "distributed.deploy.lost-worker-timeout": "15s"}):
        with cluster_client(str(jobs)) as client:
            assert client.cluster.told == (["cd $SOMEWHERE"], ["--chdir=/scratch", "--array=$NOWHERE_SET"])
            assert told() == [False, "60s"]
        with cluster_client(str(patient)):
            assert told() == [False, "90s"]
        assert told() == [True, "15s"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("kind = 3", r'a cluster file has kind = "dask_jobqueue:SLURMCluster"'),
        ("kind = 'distributed:LocalCluster'\nsettings = 3", "a cluster file has kind"),
        ("kind =", "is not a valid TOML file"),
        ("kind = 'distributed:LocalCluster'\n[setings]", "did you mean 'settings'"),
        ("kind = 'distributed:NoSuchCluster'", "is no MODULE:CLASS to be found here"),
        ("kind = 'nowhere.at.all:Cluster'", "is no MODULE:CLASS to be found here"),
        ("kind = 'distributed:LocalCluster'\n[settings]\nwings = 2", r"cannot be made of \[settings\]"),
    ],
)
def test_a_file_that_is_not_as_it_should_be_is_refused_in_one_line(tmp_path, text, told) -> None:
    (tmp_path / "odd.toml").write_text(text)
    with pytest.raises(InvalidInput, match=told) as refused, cluster_client(str(tmp_path / "odd.toml")):
        pass
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("missing", "lines"),
    [
        ("dask_jobqueue", 'kind = "dask_jobqueue:SLURMCluster"'),
        ("asyncssh", 'kind = "distributed:SSHCluster"\n[settings]\nhosts = ["127.0.0.1", "127.0.0.1"]'),
    ],
)
def test_a_cluster_whose_package_is_missing_is_told_with_the_extra_that_has_it(
    tmp_path, monkeypatch, missing, lines
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)  # as where it is not installed
    (tmp_path / "hosts.toml").write_text(lines)
    told = pytest.raises(InvalidInput, match=rf"{missing}.*: pip install 'rl-workbench\[clusters\]'")
    with told, cluster_client(str(tmp_path / "hosts.toml")):
        pass


def adapting(tmp_path, lines: str) -> str:
    """Write the file of a local cluster that adapts so, and give its name."""
    (tmp_path / "adapts.toml").write_text(
        'kind = "distributed:LocalCluster"\n[settings]\nn_workers = 0\nhost = "127.0.0.1"\n'
        f'dashboard_address = "127.0.0.1:0"\n[adapt]\n{lines}\n'
    )
    return str(tmp_path / "adapts.toml")


@pytest.fixture(scope="module")
def collected() -> None:
    """Lets collections of what is dropped here look at nothing that was there before."""
    gc.collect()
    gc.freeze()


@pytest.mark.usefixtures("collected")
@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (
            'interval = "soon"',
            r"interval = 'soon' \(Invalid time unit: soon\): it takes whole numbers of workers, .* and times",
        ),
        ('minimum = 0\nmaximum = "three"', "minimum = 0, maximum = 'three' .*: it takes whole numbers"),
        ("interval = 0", r"every 0 s\).* times such as \"5s\""),
        ("minimum = 5\nmaximum = 2", r"from 5 to 2 workers, every \d+ s\).* a maximum from 1 that is not below it"),
        ("minimum = -1", "from -1 to inf workers"),
        ("minimum = 1.5", "from 1.5 to inf workers"),
        ("maximum = 0", "from 0 to 0 workers"),
        ("maximum = true", "from 0 to True workers"),
        ("maxmum = 3", r"unknown entry in \[adapt\] of .* 'maxmum': did you mean 'maximum'"),
    ],
)
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_bounds_and_times_that_a_cluster_cannot_adapt_by_are_refused_in_one_line(tmp_path, lines, told) -> None:
    """What was half made of them is dropped without a word."""
    with pytest.raises(InvalidInput, match=told) as refused, cluster_client(adapting(tmp_path, lines)):
        pass
    assert "\n" not in str(refused.value)
    refused = None
    gc.collect()


def test_a_library_that_takes_ctrl_c_for_itself_gives_it_back(tmp_path, monkeypatch) -> None:
    """As dask_jobqueue does: a study on its clusters would not end cleanly."""
    (tmp_path / "taking.py").write_text("import signal, sys\nsignal.signal(signal.SIGINT, lambda *_: sys.exit())\n")
    (tmp_path / "taking.toml").write_text('kind = "taking:Cluster"\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(InvalidInput, match="is no MODULE:CLASS"), cluster_client(str(tmp_path / "taking.toml")):
        pass
    assert "taking" in sys.modules
    assert signal.getsignal(signal.SIGINT) is before


def test_what_a_cluster_adapts_by_is_asked_of_its_class_and_of_those_that_it_is_made_of(tmp_path) -> None:
    if find_spec("dask_jobqueue") is None:  # which takes Ctrl-C for itself where a test imports it
        pytest.skip("could not import 'dask_jobqueue'")
    file = tmp_path / "jobs.toml"
    text = (
        'kind = "dask_jobqueue:SLURMCluster"\n[settings]\ncores = 2\nprocesses = 2\nmemory = "4GB"\n'
        'scheduler_options = {host = "127.0.0.1", dashboard_address = "127.0.0.1:0"}\n[adapt]\n'
    )
    file.write_text(
        f'{text}minimum_jobs = 0\nmaximum_jobs = 3\nmaximum_memory = "1TB"\ninterval = "1h"\nwait_count = 4\n'
    )
    with cluster_client(str(file)) as client:
        assert planned_workers(client.cluster) == 6  # two a job
    file.write_text(f"{text}maximum_jbos = 3\n")
    with pytest.raises(InvalidInput, match="did you mean 'maximum_jobs'"), cluster_client(str(file)):
        pass


def test_a_file_or_an_address_that_is_not_there_is_told(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("workbench.cluster.launchers._FILE_S", 0.1)
    with pytest.raises(InvalidInput, match="cannot read the cluster file"), cluster_client("nowhere.toml"):
        pass
    with pytest.raises(InvalidInput, match="no scheduler file"), cluster_client(str(tmp_path / "none.json")):
        pass


@pytest.mark.parametrize("where", ["localhost", "localhost:port", "nowhere://x"])
def test_of_what_is_no_address_no_client_is_made(where, monkeypatch) -> None:
    """One would have Python end a minute later, with a traceback."""
    monkeypatch.setattr("workbench.cluster.launchers.Client", None)
    with pytest.raises(InvalidInput, match=f"no Dask scheduler answers at '{where}'"), cluster_client(where):
        pass


@pytest.mark.parametrize(
    ("where", "settings", "told"),
    [
        ("tls://127.0.0.1:1", {}, "tls://127.0.0.1:1 is spoken to with certificates, and not all are named here"),
        ("127.0.0.1:1", {"require-encryption": True}, "127.0.0.1:1 is not encrypted, as Dask's .* requires: name"),
        (
            "tls://127.0.0.1:1",
            {"tls.ca-file": "no.pem", "tls.client.cert": "no.pem", "tls.client.key": "key.pem"},
            r"certificates no\.pem, no\.pem, key\.pem cannot be read \(No such file or directory\): correct Dask's",
        ),
    ],
)
@pytest.mark.parametrize("in_file", [False, True])
def test_certificates_that_are_missing_are_told_before_a_client_is_made(
    tmp_path, monkeypatch, where, settings, told, in_file
) -> None:
    monkeypatch.setattr("workbench.cluster.launchers.Client", None)
    if in_file:
        (tmp_path / "scheduler.json").write_text(json.dumps({"address": where}))
        where = str(tmp_path / "scheduler.json")
    with (
        dask.config.set({f"distributed.comm.{name}": value for name, value in settings.items()}),
        pytest.raises(InvalidInput, match=f"^(the )?{told}"),
        cluster_client(where),
    ):
        pass


@pytest.mark.parametrize("text", ["{}", "[]", '{"address": 5}'])
def test_a_scheduler_file_that_says_no_address_is_refused_in_one_line(tmp_path, text) -> None:
    (tmp_path / "odd.json").write_text(text)
    with pytest.raises(InvalidInput, match="is not a Dask scheduler's file"), cluster_client(f"{tmp_path}/odd.json"):
        pass


class _Job:
    """A batch job, or the process that SSH holds on a host."""

    def __init__(self, ended: bool = False) -> None:
        self.closed = False
        self.proc = SimpleNamespace(is_closing=lambda: ended)

    async def close(self) -> None:
        self.closed = True


class _Queue:
    """Three jobs of two workers each, all of which are up, and a fourth in the queue; as Dask's scheduler, too."""

    def __init__(self, idle: str) -> None:
        self.new_spec = {"group": ["-0", "-1"]}
        self.worker_spec = dict.fromkeys(range(4), self.new_spec)
        self.workers = {job: _Job() for job in range(4)}
        self.up, self.idle, self.wanted = {f"{job}-{k}" for job in range(3) for k in range(2)}, idle.split(), 0
        self.scheduler_comm, self.loop = self, SimpleNamespace(add_callback=lambda begin: None)
        self.plan = self.requested = self.observed = frozenset(range(self.wanted))

    @property
    def scheduler_info(self) -> dict:
        return {"workers": {f"tcp://{name}": {"name": name} for name in self.up}}

    async def adaptive_target(self, target_duration) -> int:
        return self.wanted

    async def workers_to_close(self, target: int, attribute: str) -> list[str]:
        assert (target, attribute) == (0, "name")
        return self.idle


@pytest.mark.parametrize(
    ("idle", "target", "closed"),
    [
        ("0-0 0-1 1-0 2-0 2-1", 2, {"0-0", "0-1", "2-0", "2-1"}),  # of job 1 one worker is at work
        ("0-0 0-1 1-0 2-0 2-1", 4, {"2-0", "2-1"}),
        ("0-0 0-1 1-0 2-0 2-1", 5, set()),
        ("1-0 2-1", 0, set()),
    ],
)
def test_a_job_is_closed_whole_the_last_first_where_none_of_its_workers_is_at_work(idle, target, closed) -> None:
    assert set(asyncio.run(WholeJobs(_Queue(idle)).workers_to_close(target))) == closed


@pytest.mark.parametrize(("wanted", "target"), [(0, 0), (1, 2), (2, 2), (3, 4)])
def test_whole_jobs_are_asked_for(wanted, target) -> None:
    queue = _Queue("")
    queue.wanted = wanted
    assert asyncio.run(WholeJobs(queue).target()) == target
    queue.new_spec = None
    assert asyncio.run(WholeJobs(queue).target()) == wanted


def test_a_job_whose_workers_are_gone_for_a_minute_is_given_up_to_be_submitted_again(monkeypatch) -> None:
    now = [0.0]
    monkeypatch.setattr("workbench.cluster.launchers.time", SimpleNamespace(monotonic=lambda: now[0]))
    queue = _Queue("")
    jobs, before = WholeJobs(queue), dict(queue.workers)

    def given_up(at: float, *up: str) -> set[int]:
        now[0], queue.up = at, set(up)
        asyncio.run(jobs.adapt())
        assert {job for job in before if before[job].closed} == before.keys() - queue.workers.keys()
        return before.keys() - queue.workers.keys()

    assert given_up(0.0, "0-0", "1-0", "1-1", "2-0") == set()
    assert given_up(10.0, "0-0", "2-0") == set()
    assert given_up(70.0, "2-0") == set()  # job 1 for a minute; job 0 has just gone
    assert given_up(71.0, "0-1", "2-0") == {1}  # job 0 is back, job 3 never was there
    assert given_up(100.0, "2-0") == {1}
    assert given_up(160.0, "2-0") == {1}
    assert given_up(161.0, "2-0") == {0, 1}


def test_a_host_whose_workers_have_ended_is_started_again_as_soon_as_it_can_be_reached(monkeypatch) -> None:
    monkeypatch.setattr("workbench.cluster.launchers._LOOK_S", 0.0)
    made: list[_Job] = []

    class Host(_Job):
        def __init__(self, scheduler, name, port) -> None:
            super().__init__()
            assert (scheduler, name, port) == ("tcp://head", "b", 22)
            made.append(self)

        def __await__(self):
            if len(made) < 3:
                raise OSError("no route to host")
            yield from ()

    ended, others = _Job(ended=True), {"a": _Job(), "c": SimpleNamespace()}
    cluster = SimpleNamespace(
        scheduler=SimpleNamespace(address="tcp://head"),
        workers={**others, "b": ended},
        worker_spec={"b": {"cls": Host, "options": {"port": 22}}},
    )

    async def brought_back() -> None:
        looking = asyncio.ensure_future(_bring_back(cluster))
        while not ended.closed:
            await asyncio.sleep(0)
        looking.cancel()

    asyncio.run(brought_back())
    assert cluster.workers == {**others, "b": made[2]}
    assert [host.closed for host in made] == [True, True, False]


def test_a_job_that_was_requeued_before_its_study_had_begun_begins_it(tmp_path) -> None:
    """As when a node does not come up; one that had begun is resumed."""
    programs = {
        "workbench": 'echo "$@" >> "$HOME/told"',
        "openssl": "",
        "dask": "exec sleep 600",
        "srun": "exec sleep 600",
    }
    stubs, activate = tmp_path / "bin", tmp_path / "workbench" / ".venv" / "bin" / "activate"
    stubs.mkdir()
    for name, does in programs.items():
        (stubs / name).write_text(f"#!/bin/sh\n{does}\n")
        (stubs / name).chmod(0o700)
    activate.parent.mkdir(parents=True)
    activate.touch()
    env = {**os.environ, "HOME": str(tmp_path), "PATH": f"{stubs}:{os.environ['PATH']}", "SLURM_JOB_ID": "7"}
    for restarts in ("1", "2"):
        job = ["bash", str(ONE_JOB), "study.toml"]
        subprocess.run(job, cwd=tmp_path, env=env | {"SLURM_RESTART_COUNT": restarts}, timeout=60, check=True)
    where = f"--cluster {tmp_path}/job-7/scheduler.json"
    assert (tmp_path / "told").read_text().splitlines() == [
        f"run study.toml {where}",
        f"run study.toml --resume {where}",
    ]
