"""Clusters that a file describes: what it may hold, and what is said of what it may not."""

import dask
import pytest
from distributed import LocalCluster

from tests.support import Deterministic
from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.dask import DaskExecutor
from workbench.cluster.launchers import cluster_client
from workbench.core.errors import InvalidInput

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


def test_a_file_or_an_address_that_is_not_there_is_told(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("workbench.cluster.launchers._FILE_S", 0.1)
    with pytest.raises(InvalidInput, match="cannot read the cluster file"), cluster_client("nowhere.toml"):
        pass
    with pytest.raises(InvalidInput, match="no scheduler file"), cluster_client(str(tmp_path / "none.json")):
        pass


@pytest.mark.parametrize("text", ["{}", "[]", '{"address": 5}'])
def test_a_scheduler_file_that_says_no_address_is_refused_in_one_line(tmp_path, text) -> None:
    (tmp_path / "odd.json").write_text(text)
    with pytest.raises(InvalidInput, match="is not a Dask scheduler's file"), cluster_client(f"{tmp_path}/odd.json"):
        pass
