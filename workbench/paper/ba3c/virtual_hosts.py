"""Hosts with addresses and links of their own on one machine: network namespaces on a virtual switch; for Linux.

What runs on them shares the machine's cores, but all they say to each other goes through their links, which can be as
narrow as one likes, and can be cut.
"""

import ctypes
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from workbench.core.errors import WorkbenchError

_CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)
_COMMAND_S = 20.0


@dataclass(frozen=True)
class Host:
    """A network namespace with one interface, ``ib0``, beside its loopback."""

    name: str
    namespace: str
    address: str

    def cut(self) -> None:
        """Take its cable out: nothing is said to either end."""
        _run("ip", "-n", self.namespace, "link", "set", "ib0", "down")

    def mend(self) -> None:
        """Put the cable back."""
        _run("ip", "-n", self.namespace, "link", "set", "ib0", "up")

    def crash(self) -> None:
        """End all that runs on it but what this process has started there, such as its SSH server."""
        _end_all(self.namespace, but=os.getpid())

    def command(self, *arguments: str) -> list[str]:
        """Say what to run so that it runs on this host."""
        # `ip netns exec` would hide /sys/fs/cgroup
        return ["nsenter", f"--net=/run/netns/{self.namespace}", *arguments]

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Let this thread, and those that it starts, be on this host."""
        with open("/proc/thread-self/ns/net") as home:
            self.enter()
            try:
                yield
            finally:
                _enter(home.fileno())

    def enter(self) -> None:
        """Let this thread, and those and the processes that it starts, be on this host for good."""
        with open(f"/run/netns/{self.namespace}") as there:
            _enter(there.fileno())


@contextmanager
def hosts(names: Sequence[str], mbit_per_s: float | None = None) -> Iterator[list[Host]]:
    """Make hosts that reach each other, at 10.73.0.1 and so on, and nothing else; remove them at the end.

    Parameters
    ----------
    names : sequence of str
        Short ones: they are those of network interfaces.
    mbit_per_s : float, optional
        What each host's link carries, each way; as much as the machine can by default.

    Raises
    ------
    WorkbenchError
        This is not root on Linux, or iproute2 is missing.
    """
    if os.geteuid() or not all(map(shutil.which, ("ip", "tc"))):
        raise WorkbenchError("virtual hosts need root, and the commands ip and tc: sudo, and the package iproute2")
    mark = f"wb{os.getpid()}"
    with ExitStack() as undo:

        def namespace(name: str) -> str:
            _run("ip", "netns", "add", mark + name)
            undo.callback(subprocess.run, ["ip", "netns", "del", mark + name], capture_output=True)
            return mark + name

        switch = namespace("sw")
        _run("ip", "-n", switch, "link", "add", "switch", "type", "bridge")
        _run("ip", "-n", switch, "link", "set", "switch", "up")
        found = []
        for k, name in enumerate(names, 1):
            host = Host(name, namespace(name), f"10.73.0.{k}")
            undo.callback(_end_all, host.namespace)
            found.append(host)
            _connect(host, switch, mbit_per_s)
        yield found


def _connect(host: Host, switch: str, mbit_per_s: float | None) -> None:
    """Lay a cable from the switch to a host."""
    there = host.namespace
    _run("ip", "-n", there, "link", "add", "ib0", "type", "veth", "peer", "name", host.name, "netns", switch)
    _run("ip", "-n", switch, "link", "set", host.name, "master", "switch", "up")
    _run("ip", "-n", there, "address", "add", f"{host.address}/24", "dev", "ib0")
    for device in ("ib0", "lo"):
        _run("ip", "-n", there, "link", "set", device, "up")
    if mbit_per_s is not None:
        limit = ("tbf", "rate", f"{round(mbit_per_s * 1000)}kbit", "burst", "64kb", "latency", "50ms")
        for end, device in ((there, "ib0"), (switch, host.name)):
            _run("tc", "-n", end, "qdisc", "add", "dev", device, "root", *limit)


def _run(*command: str) -> None:
    told = subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND_S)
    if told.returncode:
        raise WorkbenchError(f"virtual hosts: `{' '.join(command)}` failed: {' '.join(told.stderr.split())}")


def _enter(namespace: int) -> None:
    if _LIBC.setns(namespace, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


def _end_all(namespace: str, but: int = 0) -> None:
    """End whatever still runs on a host: what SSH and SLURM started there is no child of ours."""
    told = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True, timeout=_COMMAND_S)
    for pid in set(map(int, told.stdout.split())) - {os.getpid()}:
        with suppress(ProcessLookupError, FileNotFoundError):
            if not but or _parent(pid) != but:
                os.kill(pid, signal.SIGKILL)


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
