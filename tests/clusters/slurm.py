"""A SLURM site of one machine: munge's daemon, a controller, and a daemon on each of two hosts."""

import os
import secrets
import socket
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.clusters.processes import processes
from workbench.paper.ba3c.virtual_hosts import Host, hosts

N_GPUS = 2
_CONF = """\
ClusterName=here
SlurmctldHost={machine}({head})
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.sock
SlurmUser=root
SlurmdUser=root
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,batch_sched_delay=0,sched_min_interval=0
KillWait=10
JobRequeue=1
GresTypes=gpu,shard
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
"""
_NODE = "NodeName={name} NodeHostname={machine} NodeAddr={address} CPUs=4 RealMemory=8000 Gres=gpu:{n},shard:{shards}\n"


@dataclass(frozen=True)
class Site:
    """A SLURM site: its login node, the nodes that compute, and the environment of whoever uses it."""

    head: Host
    nodes: list[Host]
    env: Mapping[str, str]

    def run(self, *command: str, timeout: float = 30) -> str:
        """Run a command on the login node; give what it says."""
        told = subprocess.run(
            self.head.command(*command), env=self.env, capture_output=True, text=True, timeout=timeout, check=False
        )
        assert told.returncode == 0, f"{command}: {told.stdout} {told.stderr}"
        return told.stdout.strip()

    def jobs(self, state: str = "R") -> list[str]:
        """Number the jobs in a state, the oldest first."""
        return sorted(self.run("squeue", "-h", "-o", "%i", "-t", state).split(), key=int)


@contextmanager
def site(folder: Path) -> Iterator[Site]:
    """Bring a site up, with files, keys and processes of its own; end them."""
    with hosts(["head", "n1", "n2"]) as (head, *nodes), processes(folder) as started:
        (folder / "state").mkdir()
        key = folder / "munge.key"
        key.touch(0o400)
        key.write_bytes(secrets.token_bytes(1024))
        conf, machine = folder / "slurm.conf", socket.gethostname().partition(".")[0]
        lines, gpus = [_CONF.format(machine=machine, head=head.address, folder=folder)], []
        for node in nodes:
            (folder / node.name).mkdir()
            for k in range(N_GPUS):  # a device is all that SLURM asks for: these are as /dev/null
                os.mknod(folder / node.name / f"nvidia{k}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            gpus.append(f"NodeName={node.name} Name=gpu File={folder}/{node.name}/nvidia[0-{N_GPUS - 1}]\n")
            gpus.append(f"NodeName={node.name} Name=shard Count={3 * N_GPUS}\n")
            lines.append(
                _NODE.format(name=node.name, machine=machine, address=node.address, n=N_GPUS, shards=3 * N_GPUS)
            )
        conf.write_text("".join([*lines, "PartitionName=short Nodes=ALL Default=YES State=UP\n"]))
        (folder / "gres.conf").write_text("".join(gpus))
        env = {**os.environ, "SLURM_CONF": str(conf)}
        own = [f"--{name}={folder}/munged.{name[:4]}" for name in ("pid-file", "log-file", "seed-file")]
        munge = ["munged", "--force", "--foreground", f"--socket={folder}/munge.sock", f"--key-file={key}", *own]
        started.start("munged", head.command(*munge))
        started.start("slurmctld", head.command("slurmctld", "-D", "-f", str(conf)), env=env)
        for node in nodes:
            started.start(node.name, node.command("slurmd", "-D", "-N", node.name, "-f", str(conf)), env=env)
        here = Site(head, nodes, env)
        _wait_until_idle(here, len(nodes))
        try:
            yield here
        finally:
            here.run("scancel", "--user", "root")
            deadline = time.monotonic() + 30
            while here.run("squeue", "-h") and time.monotonic() < deadline:
                time.sleep(0.2)


def _wait_until_idle(here: Site, n: int) -> None:
    command, states = here.head.command("sinfo", "-h", "-N", "-o", "%T"), ""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        states = subprocess.run(command, env=here.env, capture_output=True, text=True, timeout=30).stdout
        if states.split() == ["idle"] * n:
            return
        time.sleep(0.2)
    raise TimeoutError(f"the nodes of SLURM are not idle after 120 s: {states.split()}")
