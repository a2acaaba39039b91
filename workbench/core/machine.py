"""What this process may use of its machine: cores and memory as control group and affinity allow, files and tasks."""

import math
import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from workbench.core.errors import InvalidInput, first_line
from workbench.core.showing import so_many

CORES = "WORKBENCH_CORES"
"""Environment variable: how many cores one slot of the cluster that this process belongs to may count on."""

_SLOT_BYTES = 1 << 30  # a trial with torch and its emulators takes about half of it
_FILES, _FILES_A_NODE = 100, 20  # open at most, in the process that starts a cluster
_TASKS, _TASKS_A_NODE = 5, 7  # threads there, and those of workers whose trials have one each: at least
_ROOT = Path("/")


def cores(root: Path = _ROOT) -> int:
    """Count the cores: those this process may run on, or as many as its control group's quota is worth; 1 at least."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quotas = [float(allowed)]
    for group in _groups(root, "cpu"):
        quota = _words(group / "cpu.max") or _words(group / "cpu.cfs_quota_us") + _words(group / "cpu.cfs_period_us")
        if len(quota) == 2 and quota[0] not in ("max", "-1"):
            quotas.append(int(quota[0]) / int(quota[1]))
    return max(1, int(min(quotas)))


def memory(root: Path = _ROOT) -> int:
    """Tell the bytes of memory: the machine's, or its control group's limit."""
    try:
        there = (root / "proc" / "meminfo").read_text().partition("MemTotal:")[2].split()
        limits = [int(there[0]) << 10]
    except FileNotFoundError:  # macOS has none
        limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for group in _groups(root, "memory"):
        words = _words(group / "memory.max") or _words(group / "memory.limit_in_bytes")
        limits += [int(word) for word in words if word != "max"]
    return min(limits)


def slots_here(n_ranks: int = 1, root: Path = _ROOT, *, most: float = math.inf) -> int:
    """Give the workers a cluster here has unless it is told: one a core, at least 1 GiB each, in whole gangs."""
    workers = min(cores(root), memory(root) // _SLOT_BYTES, most)
    return n_ranks * max(1, int(workers // n_ranks))


def cores_a_slot(slots: int | None = None) -> int:
    """Give the cores that one of so many slots may count on; without a number those of this process's own slot."""
    if slots is None:
        return max(1, int(given)) if (given := os.environ.get(CORES, "")).isdecimal() else cores()
    return max(1, cores() // slots)


def allow_cluster(nodes: int) -> None:
    """Raise this process's limits on open files and on its user's tasks, as far as they may be, for so many nodes.

    Raises
    ------
    InvalidInput
        One may not be raised so far.
    """
    _allow(resource.RLIMIT_NOFILE, _FILES + _FILES_A_NODE * nodes, "open files", "-n")
    limited = resource.getrlimit(resource.RLIMIT_NPROC)[0] != resource.RLIM_INFINITY
    if limited and os.getuid():  # root is not bound by it
        needed = tasks() + _TASKS + _TASKS_A_NODE * nodes
        _allow(resource.RLIMIT_NPROC, needed, "processes and threads, with those of yours that run", "-u")


def tasks(root: Path = _ROOT) -> int:
    """Count the processes and threads of this user that run, in whatever sessions; 0 where the system does not tell."""
    n = 0
    for file in root.glob("proc/[0-9]*/status"):
        with suppress(OSError, LookupError, ValueError):  # it has ended meanwhile, or the system tells less
            about = dict(line.split(":", 1) for line in file.read_text().splitlines())
            n += int(about["Threads"]) if int(about["Uid"].split()[0]) == os.getuid() else 0
    return n


def _allow(limit: int, needed: int, what: str, option: str) -> None:
    soft, hard = resource.getrlimit(limit)
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise InvalidInput(
            f"a cluster here takes about {needed} {what}, the limit is {hard}: raise it (ulimit {option}), or lower "
            "nodes"
        )
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(limit, (needed, hard))


def too_little_memory(err: BaseException) -> str:
    """Tell of an error that may come of this process's limit on memory, if it has one; nothing of a missing module.

    What does not fit below it is said in many ways: libraries that cannot be mapped, memory that is not to be had.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY or isinstance(err, ModuleNotFoundError):
        return ""
    may = f"this process may have {limit >> 20} MiB of memory (ulimit -v), which seems too little"
    return f"{may} ({type(err).__name__}: {first_line(err)}): raise that limit"


def layout(nodes: int, n_ranks: int = 1) -> str:
    """Say what slots so many workers make, and what these get of this machine.

    >>> layout(2)  # doctest: +SKIP
    '2 slots with 1 core each, of the 2 cores and 23.5 GiB that can be used here'
    """
    slots, over = divmod(nodes, n_ranks)
    of_ranks = f" of {so_many(n_ranks, 'worker')}" if n_ranks > 1 else ""
    idle = (
        f"; {so_many(over, 'worker')} left over: take nodes={nodes - over} or {nodes - over + n_ranks}" if over else ""
    )
    of = f"of the {so_many(cores(), 'core')} and {memory() / 2**30:.1f} GiB that can be used here"
    return f"{so_many(slots, 'slot')}{of_ranks} with {so_many(cores_a_slot(nodes), 'core')} each, {of}{idle}"


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """Give the folders of this process's control group and of those around it, in either version's layout."""
    with suppress(OSError):
        for line in (root / "proc" / "self" / "cgroup").read_text().splitlines():
            number, controllers, path = line.split(":", 2)
            if number == "0" or controller in controllers.split(","):
                top = root / "sys" / "fs" / "cgroup" / ("" if number == "0" else controller)
                group = top / path.strip("/")
                yield from (group, *(one for one in group.parents if one.is_relative_to(top)))


def _words(file: Path) -> tuple[str, ...]:
    try:
        return tuple(file.read_text().split())
    except OSError:
        return ()
