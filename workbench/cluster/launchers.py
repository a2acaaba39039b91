"""Clusters that a file describes: a Dask cluster class, its settings, and between what bounds it adapts."""

import asyncio
import json
import math
import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import dask
from distributed import Client
from distributed.comm import resolve_address
from distributed.deploy import Adaptive
from distributed.security import Security

from workbench.core.checks import whole
from workbench.core.errors import InvalidInput, first_line, refuse_unknown
from workbench.core.extras import what_is_missing
from workbench.core.imports import imported
from workbench.core.toml import read_toml

_LOST_S = _FILE_S = _START_S = 60.0
_LOOK_S = 5.0
_TABLES = {"kind", "settings", "adapt", "dask"}


class WholeJobs(Adaptive):  # type: ignore[misc]  # Dask has no types
    """Adaptive scaling by whole jobs: ``cluster.adapt(Adaptive=WholeJobs, minimum_jobs=0, maximum_jobs=8)``.

    A batch job may be several workers. Dask by itself closes a job when one of them is idle, and takes a job for alive
    whose workers have all gone; here a job is closed when none of its workers holds a trial, and one whose workers have
    been gone for a minute is submitted again.
    """

    state = "inactive"  # of one that its settings kept from being made, which Dask stops all the same

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._gone: dict[Any, float] = {}  # job → since when none of its workers is up, though some were
        self._seen: set[Any] = set()

    async def target(self) -> int:
        size = len((self.cluster.new_spec or {}).get("group", [""]))
        return -(-int(await super().target()) // size) * size

    async def workers_to_close(self, target: int) -> list[str]:
        idle = set(await self.scheduler.workers_to_close(target=0, attribute="name"))
        up = self._up()
        close: list[str] = []
        left = sum(map(len, up.values()))
        for names in reversed(up.values()):
            if names and names <= idle and left - len(names) >= target:
                close += names
                left -= len(names)
        return close

    async def adapt(self) -> None:
        now = time.monotonic()
        for job, names in self._up().items():
            if names:
                self._seen.add(job)
                self._gone.pop(job, None)
            elif job in self._seen and now - self._gone.setdefault(job, now) > _LOST_S and job in self.cluster.workers:
                self._seen.discard(job)
                del self._gone[job]
                await self.cluster.workers.pop(job).close()
        await super().adapt()

    def _up(self) -> dict[Any, set[Any]]:
        """Name each job's workers that are up."""
        here = {info["name"] for info in self.cluster.scheduler_info["workers"].values()}
        groups = {job: {f"{job}{suffix}" for suffix in spec["group"]} if "group" in spec else {job}
                  for job, spec in self.cluster.worker_spec.items()}  # fmt: skip
        return {job: names & here for job, names in groups.items()}


@contextmanager
def cluster_client(where: str) -> Iterator[Client]:
    """Connect to the cluster at an address or of a scheduler file, or start the one that a TOML file describes.

    Parameters
    ----------
    where : str
        ``tcp://head:8786``, ``scheduler.json`` or ``slurm.toml``; see ``docs/cluster.md``.

    Raises
    ------
    InvalidInput
        Nothing answers there, or the file is not as it should be.
    """
    if where.endswith(".toml"):
        with _launched(where) as client:
            yield client
        return
    if is_scheduler_file(where):
        _wait_for(Path(where))
        _check_scheduler_file(where)
    else:
        _check_certificates(where)
    try:
        if is_scheduler_file(where):
            client = Client(scheduler_file=where, set_as_default=False)
        else:
            _check_address(where)
            client = Client(where, set_as_default=False)
    except (OSError, ValueError) as err:
        raise InvalidInput(
            f"no Dask scheduler answers at {where!r} ({' '.join(str(err).split())}): start one with "
            f"dask scheduler and dask worker, or name no cluster to run on this machine"
        ) from None
    with client:
        yield client


def is_scheduler_file(where: str) -> bool:
    """Tell whether a cluster is named by the file that its scheduler writes, not by an address."""
    return where.endswith(".json")


@contextmanager
def _launched(file: str) -> Iterator[Client]:
    table = _expanded(_read(file))
    kind, settings, adapt = table["kind"], table.get("settings", {}), table.get("adapt")
    made = _class_of(kind, file)
    with dask.config.set({"distributed.deploy.lost-worker-timeout": f"{_LOST_S:g}s", **table.get("dask", {})}):
        try:
            cluster = made(**settings)
        except (TypeError, ValueError, OSError, RuntimeError, ImportError) as err:
            why = " ".join(str(err).split()) + what_is_missing(err)
            raise InvalidInput(f"{file}: {kind} cannot be made of [settings]: {why}") from None
        with cluster, Client(cluster, set_as_default=False) as client:
            if adapt is not None:
                _adapt(cluster, adapt, file)
            with _brought_back(cluster):
                yield client


def _adapt(cluster: Any, settings: Mapping[str, Any], file: str) -> None:
    """Have a cluster adapt; Dask takes any name, bounds in any order, and an interval of 0, which does nothing."""
    refuse_unknown(f"entry in [adapt] of {file}", settings, _names_of_adapt(type(cluster)))
    try:
        made = cluster.adapt(Adaptive=WholeJobs, **settings)
        least, most = made.minimum, made.maximum
        if not (whole(0).fits(least) and (most == math.inf or whole(1).fits(most)) and least <= most and made.interval):
            raise ValueError(f"from {least} to {most} workers, every {made.interval:g} s")
    except (TypeError, ValueError, KeyError) as err:
        given = ", ".join(f"{name} = {value!r}" for name, value in settings.items())
        cause = first_line(err).strip("'").split(". ")[0]  # Dask goes on with all the units that it knows
        raise InvalidInput(
            f"{file}: {type(cluster).__name__} cannot adapt by [adapt], {given} ({cause}): it takes whole numbers of "
            'workers, a minimum from 0 and a maximum from 1 that is not below it, and times such as "5s"'
        ) from None


def _names_of_adapt(kind: type) -> set[str]:
    """Name what a cluster's method `adapt` takes, with what it hands on to those that it overrides and to Dask."""
    names: set[str] = set()
    for method in [*(vars(base)["adapt"] for base in kind.__mro__ if "adapt" in vars(base)), Adaptive.__init__]:
        parameters = signature(method).parameters.values()
        names |= {p.name for p in parameters if p.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)}
        if all(p.kind is not Parameter.VAR_KEYWORD for p in parameters):
            break
    return names - {"self", "cluster", "Adaptive"}


@contextmanager
def _brought_back(cluster: Any) -> Iterator[None]:
    """Start workers over SSH again once they have ended: Dask does so once, and they end when they are given up."""
    keeping = asyncio.run_coroutine_threadsafe(_bring_back(cluster), cluster.loop.asyncio_loop)
    try:
        yield
    finally:
        keeping.cancel()


async def _bring_back(cluster: Any) -> None:
    while True:
        await asyncio.sleep(_LOOK_S)
        started = {name: getattr(host, "proc", None) for name, host in cluster.workers.items()}
        ended = [name for name, process in started.items() if process is not None and process.is_closing()]
        again = (_start_again(cluster, name) for name in ended)
        await asyncio.gather(*again, return_exceptions=True)  # out of reach: the next look will try


async def _start_again(cluster: Any, name: Any) -> None:
    """Start a host's workers, if it can be reached."""
    spec = cluster.worker_spec[name]
    host = spec["cls"](cluster.scheduler.address, name=name, **spec["options"])
    try:
        await asyncio.wait_for(host, _START_S)
    except BaseException:
        await host.close()
        raise
    ended, cluster.workers[name] = cluster.workers[name], host
    await ended.close()


def _check_address(where: str) -> None:
    """Raise `ValueError` for what is no address: a `Client` that is made of one takes a minute to end."""
    with suppress(OSError):  # a host's name may be known by the time that it is asked again
        resolve_address(where)


def _wait_for(file: Path) -> None:
    """Wait for a scheduler that is coming up to write its file: Dask would do so for ever."""
    until = time.monotonic() + _FILE_S
    while not file.exists():
        if time.monotonic() > until:
            raise InvalidInput(
                f"no scheduler file {file} after {_FILE_S:g} s: a Dask scheduler writes it when it is told to"
            )
        time.sleep(0.2)


def _check_scheduler_file(file: str) -> None:
    """Refuse a file that says no address; one that cannot be read is told by whoever connects."""
    try:
        told = json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    if not (isinstance(told, dict) and isinstance(told.get("address"), str)):
        raise InvalidInput(
            f"{file} is not a Dask scheduler's file, which says its address: name the file that dask scheduler has "
            "written, or the address itself"
        )
    _check_certificates(told["address"])


def _check_certificates(address: str) -> None:
    """Refuse an address that needs other certificates than are named here, before a `Client` is made of it."""
    security, names = Security(), "Dask's configuration, distributed.comm.tls: ca-file, client.cert and client.key"
    try:
        known = security.get_connection_args("client")
    except OSError as err:
        files = ", ".join(filter(None, (security.tls_ca_file, security.tls_client_cert, security.tls_client_key)))
        raise InvalidInput(
            f"the certificates {files} cannot be read ({err.strerror or first_line(err)}): correct {names}"
        ) from None
    if address.startswith("tls://") and known["ssl_context"] is None:
        raise InvalidInput(
            f"{address} is spoken to with certificates, and not all are named here: name them in {names}"
        )
    if known["require_encryption"] and (address.startswith("tcp://") or "://" not in address):
        raise InvalidInput(
            f"{address} is not encrypted, as Dask's configuration, distributed.comm.require-encryption, requires: name "
            "a scheduler at tls://…"
        )


def _read(file: str) -> Mapping[str, Any]:
    table = read_toml(file, "cluster file")
    refuse_unknown(f"entry in {file}", table, _TABLES)
    odd = [name for name in ("settings", "adapt", "dask") if not isinstance(table.get(name, {}), dict)]
    if odd or not isinstance(table.get("kind"), str):
        raise InvalidInput(
            f'{file}: a cluster file has kind = "dask_jobqueue:SLURMCluster" (MODULE:CLASS), and may have tables: '
            "[settings] of what the class takes, [adapt] of what its method adapt takes, [dask] of Dask's configuration"
        )
    return table


def _expanded(value: Any) -> Any:
    """Put the environment's variables into all text, as the shell does; what is not set stays as it is."""
    if isinstance(value, dict):
        return {key: _expanded(item) if key != "job_script_prologue" else item for key, item in value.items()}
    if isinstance(value, list):
        return [_expanded(item) for item in value]
    return os.path.expandvars(value) if isinstance(value, str) else value


def _class_of(kind: str, file: str) -> Any:
    interrupted = signal.getsignal(signal.SIGINT)
    try:
        return imported(kind)
    except InvalidInput as err:
        raise InvalidInput(
            f"{file}: kind = {kind!r} is no MODULE:CLASS to be found here ({err}): install it, or correct the name"
        ) from None
    finally:  # dask_jobqueue has Ctrl-C end the process, without a word and with exit code 0
        if signal.getsignal(signal.SIGINT) is not interrupted:
            signal.signal(signal.SIGINT, interrupted)
