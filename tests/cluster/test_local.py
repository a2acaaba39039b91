"""The cluster on this machine: how its workers come up, and what they are given."""

import logging
import os
import signal
import subprocess
import sys
import tempfile

import dask
import psutil
import pytest
from distributed import Client, LocalCluster

from workbench.cluster import local
from workbench.cluster.local import local_client
from workbench.core.errors import StudyError


def seen(client, expression: str):
    """Evaluate on the worker, without any module of the tests being imported there."""
    return client.submit(eval, expression, pure=False).result()


_ONE_BY_ONE = """
import os
from tests.cluster.test_local import seen
from workbench.cluster.local import local_client

for word in ("first", "second"):  # the second cluster's worker forks from a process of the time of the first
    os.environ["SAID_BEFORE"] = word
    with local_client(1) as client:
        assert seen(client, "{'pandas', 'bokeh', 'torch'} & {*__import__('sys').modules}") == set()
        assert seen(client, "__import__('os').environ['SAID_BEFORE']") == word
"""
_OVERLAPPING = """
import copy, logging
import dask

(handler,) = logging.getLogger("distributed").handlers
before, level = copy.deepcopy(dask.config.config), handler.level
first, second = local_client(1), local_client(1)
first.__enter__()
client = second.__enter__()
first.__exit__(None, None, None)
assert dask.config.get("distributed.worker.http.routes") == []
assert handler.level == logging.ERROR
client.restart()
assert seen(client, "__import__('multiprocessing').current_process().daemon") is False
second.__exit__(None, None, None)
assert (dask.config.config, handler.level) == (before, level)
"""


def test_a_new_worker_knows_dask_alone_and_of_two_clusters_that_overlap_none_takes_from_the_other() -> None:
    """In a process of its own: the tests' shared cluster forks from one that knows torch, and may hold the settings."""
    subprocess.run([sys.executable, "-c", _ONE_BY_ONE + _OVERLAPPING], check=True)


def test_a_cluster_of_somebody_else_s_beside_it_is_left_as_it_is() -> None:
    with (
        local_client(1),
        LocalCluster(1, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL) as plain,
        Client(plain, set_as_default=False) as client,
    ):
        assert seen(client, "'workbench.cluster.forked' in __import__('sys').modules") is False
        assert seen(client, "'distributed' in __import__('sys').modules") is True


def test_numpy_in_a_worker_has_the_threads_of_its_cluster_and_random_numbers_of_its_own(monkeypatch) -> None:
    monkeypatch.setattr("workbench.core.machine.cores", lambda: 2)
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)  # which Dask's own clusters set, and leave
    drawn = set()
    for nodes, threads in ((2, 1), (1, 2)):
        if nodes == 1:
            monkeypatch.setenv("OPENBLAS_NUM_THREADS", "")  # says as little as none
        with local_client(nodes) as client:
            drawn |= set(client.run(eval, "__import__('numpy').random.random()").values())
            pools = seen(client, "__import__('threadpoolctl').threadpool_info()")
            assert {pool["num_threads"] for pool in pools if pool["user_api"] == "blas"} == {threads}
    assert len(drawn) == 3


_INTERRUPTED = """
import os, signal, threading
from workbench.cluster.local import local_client

signal.signal(signal.SIGINT, lambda *_: None)
up = threading.Event()

def interrupt():
    while not up.wait(0.02):
        os.killpg(0, signal.SIGINT)

if __name__ == "__main__":
    threading.Thread(target=interrupt).start()
    with local_client(2) as client:
        up.set()
        print(len(client.run(os.getpid)))
"""


def test_workers_come_up_however_often_they_are_interrupted_meanwhile() -> None:
    """As by Ctrl-C in a terminal, which every process of the group hears."""
    command = [sys.executable, "-c", _INTERRUPTED]
    done = subprocess.run(command, check=True, capture_output=True, text=True, start_new_session=True, timeout=300)
    assert (done.stdout, done.stderr) == ("2\n", "")


def test_an_interrupt_of_a_cell_or_a_terminal_is_not_for_workers(client) -> None:
    assert set(client.run(signal.getsignal, signal.SIGINT).values()) == {signal.SIG_IGN}
    workers = client.run(os.getpid)
    for process in workers.values():
        os.kill(process, signal.SIGINT)
    assert client.run(os.getpid) == workers


def test_workers_come_up_where_the_path_of_a_socket_would_be_too_long(tmp_path, monkeypatch) -> None:
    (deep := tmp_path / ("d" * 100)).mkdir()
    monkeypatch.setattr(local, "_HELD", local._Held())  # or the tests' shared cluster has chosen for this one
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    with local_client(1) as client:
        assert seen(client, "6 * 7") == 42


@pytest.mark.parametrize("up_s", [0.01, 0])  # no longer than a tenth of a second, as Dask looks: too short for so many
def test_workers_that_do_not_come_up_are_told_in_one_line(monkeypatch, up_s) -> None:
    monkeypatch.setattr(local, "_UP_S", up_s)
    with (
        pytest.raises(StudyError, match=rf"^[0-5] of 6 workers came up within {up_s} s: ask for fewer nodes"),
        local_client(6),
    ):
        pass


_KILLED_ONCE = """
import os, signal

try:
    os.close(os.open({marker!r}, os.O_CREAT | os.O_EXCL))
except FileExistsError:
    pass
else:
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_worker_killed_while_it_comes_up_is_replaced(tmp_path, monkeypatch, capfd) -> None:
    class ToldNanny(local.ToldNanny):
        def __init__(self, *arguments, **settings) -> None:
            super().__init__(*arguments, **settings)
            self.preload = [*self.preload, _KILLED_ONCE.format(marker=str(tmp_path / "killed"))]

    monkeypatch.setattr(local, "ToldNanny", ToldNanny)
    monkeypatch.setattr(local, "_LOOK_S", 0.1)
    with local_client(2) as client:
        assert (tmp_path / "killed").exists()
        assert len(client.scheduler_info(n_workers=-1)["workers"]) == 2
    assert capfd.readouterr() == ("", "")


def test_nobody_waits_for_workers_that_are_wanted_no_more(monkeypatch) -> None:
    monkeypatch.setattr(local, "_UP_S", 0.01)
    with local_client(6, unless=lambda: True) as client:
        assert len(client.scheduler_info(n_workers=-1)["workers"]) < 6


def test_a_worker_that_its_nanny_has_given_up_is_replaced(monkeypatch) -> None:
    monkeypatch.setattr(local, "_LOOK_S", 0.1)
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "100ms"}),
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
        local._kept_up(cluster),
    ):
        (first,) = client.scheduler_info()["workers"]
        client.retire_workers([first], close_workers=True)
        # To wait for workers would renew what the cluster knows of them, under the eyes of its clock for those it lost.
        assert client.submit(abs, -1).result(timeout=300) == 1
        assert client.scheduler_info()["workers"].keys() - {first}


def _starts(apart: bool) -> int:
    return subprocess.Popen(["sleep", "600"], start_new_session=apart).pid


def test_what_trials_have_left_running_ends_with_their_worker_but_what_is_in_a_session_of_its_own() -> None:
    with local_client(1) as client:
        left, apart = (psutil.Process(client.submit(_starts, apart).result()) for apart in (False, True))
    gone = not left.is_running() or left.status() == psutil.STATUS_ZOMBIE  # where nobody takes note of its end
    apart.kill()
    assert gone


_CHILD_LEFT = """
import multiprocessing, os, signal, sys, time
from workbench.cluster.local import local_client

def fork_and_die():
    sleeps = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,), daemon=True)
    sleeps.start()
    print(sleeps.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    with local_client(1) as client:
        client.run(fork_and_die, on_error="ignore")
        while not client.run(os.getpid, on_error="ignore"):
            time.sleep(0.1)
"""


@pytest.mark.slow
def test_a_cluster_says_nothing_of_a_killed_worker_whose_connection_a_child_keeps_open() -> None:
    command = [sys.executable, "-c", _CHILD_LEFT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as cluster:
        assert cluster.stdout is not None
        child = int(cluster.stdout.readline())
        assert cluster.wait(timeout=300) == 0
        os.kill(child, signal.SIGKILL)  # which holds what it writes to open, too
        assert cluster.communicate() == ("", "")


def _level_of(logger: str) -> int:
    return logging.getLogger(logger).getEffectiveLevel()


def test_a_worker_tells_nothing_of_a_cluster_that_is_closing_and_does_little_while_it_waits() -> None:
    """Looking at itself fifty times a second would cost an idle cluster of two 4 % of a core."""
    with local_client(1) as client:
        assert client.submit(_level_of, "distributed.worker").result() == logging.CRITICAL
        assert seen(client, "__import__('dask').config.get('distributed.admin.tick.interval')") == "1s"
