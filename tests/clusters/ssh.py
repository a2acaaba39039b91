"""SSH servers on hosts of their own, and a user who may log in to them."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.clusters.processes import processes
from workbench.paper.ba3c.virtual_hosts import Host, hosts

_CONF = """\
Port 22
ListenAddress {address}
HostKey {folder}/host_key
PidFile {folder}/{name}.pid
AuthorizedKeysFile {folder}/user_key.pub
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
SetEnv HOME={home} PYTHONPATH={path} OMP_NUM_THREADS=1
"""


@contextmanager
def ssh_hosts(names: list[str], folder: Path, home: Path) -> Iterator[list[Host]]:
    """Bring up hosts that run SSH servers, and put the user's keys into `home`."""
    Path("/run/sshd").mkdir(exist_ok=True)  # the server's, whatever its settings
    for key in ("host_key", "user_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)], check=True)
    with hosts(names) as made, processes(folder) as started:
        known = []
        for host in made:
            conf = folder / f"{host.name}.conf"
            conf.write_text(
                _CONF.format(
                    address=host.address, folder=folder, name=host.name, home=home, path=os.environ["PYTHONPATH"]
                )
            )
            started.start(host.name, host.command("/usr/sbin/sshd", "-D", "-e", "-f", str(conf)))
            known.append(f"{host.address} {(folder / 'host_key.pub').read_text()}")
        own = home / ".ssh"
        own.mkdir(mode=0o700)
        (own / "known_hosts").write_text("".join(known))
        (own / "id_ed25519").write_bytes((folder / "user_key").read_bytes())
        (own / "id_ed25519").chmod(0o600)
        with made[0].entered():
            for host in made:
                _wait_until_it_listens(host.address)
        yield made


def _wait_until_it_listens(address: str) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection((address, 22), timeout=5).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
