"""Hosts with addresses of their own on one machine: network namespaces on a virtual switch; a cable can be cut."""

import ctypes
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)


def ip(*arguments: str) -> None:
    """Run iproute2's command."""
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=20)


@dataclass(frozen=True)
class Host:
    """A network namespace with one interface, ``ib0``, beside its loopback."""

    name: str
    namespace: str
    address: str

    def cut(self) -> None:
        """Take its cable out: nothing is said to either end."""
        ip("-n", f"{self.namespace}", "link", "set", "ib0", "down")

    def mend(self) -> None:
        """Put the cable back."""
        ip("-n", f"{self.namespace}", "link", "set", "ib0", "up")

    def crash(self) -> None:
        """End all that runs on it but what this process has started there, such as its SSH server."""
        _end_all(self.namespace, but=os.getpid())

    def command(self, *arguments: str) -> list[str]:
        """Say what to run so that it runs on this host."""
        return [
            "nsenter",
            f"--net=/run/netns/{self.namespace}",
            *arguments,
        ]  # `ip netns exec` would hide /sys/fs/cgroup

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Let this thread, and those that it starts, be on this host."""
        with open("/proc/thread-self/ns/net") as home, open(f"/run/netns/{self.namespace}") as there:
            _enter(there.fileno())
            try:
                yield
            finally:
                _enter(home.fileno())


def _enter(namespace: int) -> None:
    if _LIBC.setns(namespace, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


@contextmanager
def hosts(names: Sequence[str]) -> Iterator[list[Host]]:
    """Make hosts that reach each other, at 10.73.0.1 and so on, and nothing else; remove them at the end."""
    mark = f"wb{os.getpid()}"
    with ExitStack() as undo:

        def make(*arguments: str, undone: Sequence[str]) -> None:
            ip(*arguments)
            undo.callback(subprocess.run, ["ip", *undone], capture_output=True)

        switch = f"{mark}sw"
        make("netns", "add", switch, undone=["netns", "del", switch])
        ip("-n", switch, "link", "add", "switch", "type", "bridge")
        ip("-n", switch, "link", "set", "switch", "up")
        found = []
        for k, name in enumerate(names):
            host = Host(name, f"{mark}{name}", f"10.73.0.{k + 1}")
            make("netns", "add", host.namespace, undone=["netns", "del", host.namespace])
            undo.callback(_end_all, host.namespace)
            ip("-n", host.namespace, "link", "add", "ib0", "type", "veth", "peer", "name", name, "netns", switch)
            ip("-n", switch, "link", "set", name, "master", "switch", "up")
            ip("-n", host.namespace, "address", "add", f"{host.address}/24", "dev", "ib0")
            ip("-n", host.namespace, "link", "set", "ib0", "up")
            ip("-n", host.namespace, "link", "set", "lo", "up")
            found.append(host)
        yield found


def _end_all(namespace: str, but: int = 0) -> None:
    """End whatever still runs on a host: what SSH and SLURM started there is no child of ours."""
    told = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True, timeout=20)
    for pid in set(map(int, told.stdout.split())) - {os.getpid()}:
        with suppress(ProcessLookupError, FileNotFoundError):
            if not but or _parent(pid) != but:
                os.kill(pid, signal.SIGKILL)


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@contextmanager
def processes(folder: Path) -> Iterator["Processes"]:
    """Start processes; end those that are left, newest first."""
    started = Processes(folder)
    try:
        yield started
    finally:
        started.end()


class Processes:
    """Processes of a test, each with a file for what it says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.all: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, command: Sequence[str], **settings: Any) -> "subprocess.Popen[bytes]":
        """Start one, in a session of its own."""
        with (self.folder / f"{name}.out").open("ab") as out:
            self.all.append(subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True, **settings))
        return self.all[-1]

    def end(self) -> None:
        for process in reversed(self.all):
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(15)
            if process.poll() is None:
                process.kill()
                process.wait()
