"""A cluster on this machine: one single-threaded worker process a node, for loopback and its owner only."""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import get_context
from tempfile import gettempdir
from typing import Any

import dask
import distributed.utils
from distributed import Client, LocalCluster, Nanny
from distributed.core import Status
from distributed.security import Security

from workbench.cluster.children import WORKER
from workbench.cluster.gpus import LocalWithGPUs, gpus_for
from workbench.cluster.steady import keep_time
from workbench.core.checks import whole
from workbench.core.errors import InvalidInput, StudyError
from workbench.core.machine import CORES, allow_cluster, cores_a_slot
from workbench.core.pool import block_interrupts, refuse_without_processes, without_main

_LOOK_S = 5.0
_ENDING_S = 1.0
_UP_S = 120.0  # in which all workers must have come up
_ASKED_S = 1.0  # between two looks whether they still have to
_AT_ONCE_S = 0.001  # of 0 Dask takes for ever
_THREADS = (CORES, "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_BEFORE = "distributed.nanny.pre-spawn-environ"
_PAGES = "distributed.scheduler.http.routes"
_QUIET = logging.ERROR
_SCHEDULER = logging.getLogger("distributed.scheduler")
_SOCKET_PATH = 70  # characters of a temporary folder's path above which a socket in it gets too long a name


class ToldNanny(Nanny):  # type: ignore[misc]
    """A nanny that remembers how its workers ended.

    Attributes
    ----------
    endings : dict of str to int
        By the worker's address: the process's exit code, below 0 the number of the signal that killed it.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        self.endings: dict[str, int] = {}
        # Workers have no pages: with them each would import bokeh, for half a second and 20 MiB. And they are given the
        # environment as it is now: the process they fork from has that of the first cluster.
        settings |= {"dashboard": False, "env": {**os.environ, **(settings.get("env") or {})}}
        settings |= {"preload": ["workbench.cluster.forked"]}
        # Processes that begin here are deaf to Ctrl-C from the first: one that comes up could not ignore it yet.
        if threading.current_thread() is not threading.main_thread():
            block_interrupts()
        super().__init__(*arguments, **settings)

    def _on_worker_exit_sync(self, exitcode: int) -> None:
        if (address := self.worker_address) is not None:
            self.endings[address] = exitcode
        super()._on_worker_exit_sync(exitcode)


def ending_of(client: Client, address: str) -> str:
    """Say how the worker that was at an address ended, ": killed by SIGKILL"; nothing if it is not known within 1 s.

    Known are the workers of a cluster that `local_client` has started.
    """
    workers = getattr(client.cluster, "workers", {})
    nannies = [nanny for nanny in list(workers.values()) if isinstance(nanny, ToldNanny)]
    until = time.monotonic() + _ENDING_S
    while nannies and time.monotonic() < until:
        for nanny in nannies:
            if (code := nanny.endings.get(address)) is not None:
                return f": killed by {_signal(-code)}" if code < 0 else f": its process ended with exit code {code}"
        time.sleep(0.02)
    return ""


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@contextmanager
def local_client(
    nodes: int,
    *,
    memory_limit: str | int = 0,
    dashboard: bool = False,
    gpus_per_slot: float | None = None,
    unless: Callable[[], bool] = lambda: False,
) -> Iterator[Client]:
    """Start `nodes` worker processes, each under a nanny that replaces it when it dies; stop them at the end.

    Scheduler, workers and nannies speak TLS and know each other by a certificate made for this cluster, which never
    leaves its processes: other users of the machine reach the ports and are turned away.

    Parameters
    ----------
    nodes : int
        Worker processes, one slot each, numbered from 0. Each may count on its share of the cores: so many
        threads the libraries of a trial start, unless it or the environment says otherwise.
    memory_limit : str or int
        Of each worker, such as "2GiB"; 0 sets none.
    dashboard : bool
        Whether to serve Dask's own dashboard on loopback.
    gpus_per_slot : float, optional
        GPUs of this machine that each worker process sees, by CUDA_VISIBLE_DEVICES; below 1 several share one.
    unless : callable
        Asked while workers come up: whether nobody waits for them any more. Then those that are there have to do.

    Raises
    ------
    InvalidInput
        No whole number of nodes, more than the limits on files and processes allow, or this process is daemonic.
    StudyError
        Workers that did not come up within two minutes.
    """
    if not whole(1).fits(nodes):
        raise InvalidInput(f"a cluster needs a whole number of nodes >= 1, got {nodes!r}")
    refuse_without_processes("a cluster starts worker processes", "connect to one that is up, Client('tcp://…')")
    allow_cluster(nodes)
    share = {name: str(cores_a_slot(nodes)) for name in _THREADS if not os.environ.get(name)}
    with _HELD:
        with _pages(dashboard):
            cluster = LocalWithGPUs(
                gpus_for(nodes, gpus_per_slot),
                gpus_per_slot,
                n_workers=0,
                threads_per_worker=1,
                worker_class=ToldNanny,
                env=share,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                worker_dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": dashboard},
                memory_limit=memory_limit,
                security=Security.temporary(),
                silence_logs=_QUIET,
            )
        keep_time(cluster.loop)
        with cluster, Client(cluster, set_as_default=False) as client:
            cluster.scale(nodes)
            with _kept_up(cluster):
                _wait_for(client, nodes, unless)
                yield client


@contextmanager
def _pages(dashboard: bool) -> Iterator[None]:
    """Have the one scheduler that starts meanwhile serve Dask's own pages, or none, on logs and tasks."""
    with _STARTING, dask.config.set({_PAGES: _HELD.pages if dashboard else []}):
        yield


def _settings() -> dict[str, Any]:
    """Give Dask's settings for as long as there is a local cluster."""
    return {
        "distributed.worker.multiprocessing-method": _method(),
        "distributed.worker.daemon": False,  # trials may start processes of their own
        "distributed.worker.http.routes": [],  # pages on logs and tasks, for whoever asks
        # Dask would look at every worker's stack a hundred times a second, and keep what it saw for an hour.
        "distributed.worker.profile.enabled": False,
        # Fifty times a second workers, nannies and scheduler would look whether they are held up, and twice a second at
        # what they take: two thirds of what an idle cluster costs.
        "distributed.admin.tick.interval": "1s",
        "distributed.admin.system-monitor.interval": "2s",
        # On one machine a dead worker's connection breaks; silence is for `stall_s` to judge, not for a scheduler that
        # may itself have been stopped or suspended for as long.
        "distributed.scheduler.worker-ttl": None,
        # Dask's 15 s are less than a worker may need to come up on a loaded machine; its nanny was given up meanwhile.
        "distributed.deploy.lost-worker-timeout": "60s",
        # Threads would be written into this process's environment, at each start of a worker, and outlive the cluster.
        _BEFORE: {k: v for k, v in dask.config.get(_BEFORE).items() if k not in _THREADS},
    }


def _method() -> str:
    """Have workers fork from a process that has imported Dask: they are there at once, those that replace others too.

    What else is imported there comes with Dask; what they must not share of it, `forked` puts right.
    """
    if len(gettempdir()) > _SOCKET_PATH:
        return "spawn"
    distributed.utils._forkserver_preload_set = True  # or Dask would have pandas imported there, and here
    get_context("forkserver").set_forkserver_preload(["distributed"])
    return "forkserver"


def _wait_for(client: Client, nodes: int, unless: Callable[[], bool]) -> None:
    until = time.monotonic() + _UP_S
    while not unless():
        left = until - time.monotonic()
        with suppress(TimeoutError):
            client.wait_for_workers(nodes, timeout=max(_AT_ONCE_S, min(_ASKED_S, left)))
            return
        there = len(client.scheduler_info(n_workers=-1)["workers"])
        if there >= nodes:  # just now
            return
        if left <= _ASKED_S:
            raise StudyError(
                f"{there} of {nodes} workers came up within {_UP_S:g} s: "
                "ask for fewer nodes, or try again when the machine has less to do"
            )


class _Held:
    """What holds for this process as long as there is a local cluster: until the last of them has ended.

    Dask's settings are the process's: were they each cluster's, the first to end would take them from the others.
    """

    def __init__(self) -> None:
        self._lock, self._clusters, self._stack = threading.Lock(), 0, ExitStack()
        self.pages: list[str] = []

    def __enter__(self) -> None:
        with self._lock:
            if not self._clusters:
                self.pages = dask.config.get(_PAGES)
                with ExitStack() as stack:
                    stack.enter_context(dask.config.set(_settings()))
                    for logger in ("distributed", "bokeh"):  # before clusters and nannies do, which then change nothing
                        stack.enter_context(distributed.utils.silence_logging_cmgr(_QUIET, logger))
                    # A worker that was killed, and a stream to it that a child of its trial keeps open: as in `forked`.
                    stack.callback(_SCHEDULER.setLevel, _SCHEDULER.level)
                    _SCHEDULER.setLevel(logging.CRITICAL)
                    stack.enter_context(without_main(WORKER))
                    self._stack = stack.pop_all()
            self._clusters += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._clusters -= 1
            if not self._clusters:
                self._stack.close()


_HELD, _STARTING = _Held(), threading.Lock()


@contextmanager
def _kept_up(cluster: LocalCluster) -> Iterator[None]:
    """Replace nannies that have given up, were given up, or lost their worker before it was up.

    By itself a local cluster only ever shrinks.
    """
    over = threading.Event()

    def look() -> None:
        while not over.wait(_LOOK_S):
            with suppress(Exception):  # the cluster is on its way out, or it will do at the next look
                for name, nanny in list(cluster.workers.items()):
                    if nanny.status == Status.failed:
                        del cluster.workers[name]
                cluster.scale(len(cluster.worker_spec))

    thread = threading.Thread(target=look, name="workbench local cluster", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
