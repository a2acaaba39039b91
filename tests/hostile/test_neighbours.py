"""Another user of the same machine can reach every port on loopback: the local cluster's must turn him away."""

import http.client
import socket
import urllib.error
import urllib.request
from urllib.parse import urlsplit

import psutil
import pytest
from distributed import Client
from distributed.security import Security


def listening() -> list[int]:
    """Ports on which this process and those below it listen."""
    me = psutil.Process()
    found = set()
    for process in (me, *me.children(recursive=True)):
        connections = process.net_connections("tcp")
        found |= {c.laddr.port for c in connections if c.status == psutil.CONN_LISTEN}
    return sorted(found)


def test_scheduler_workers_and_nannies_speak_tls_only(client) -> None:
    client.wait_for_workers(2, timeout=300)
    info = client.scheduler_info(n_workers=-1)["workers"]
    addresses = [client.scheduler.address, *info, *(worker["nanny"] for worker in info.values())]
    assert len(addresses) == 5
    assert all(address.startswith("tls://127.0.0.1:") for address in addresses)


@pytest.mark.parametrize("security", [None, Security.temporary()])
def test_a_stranger_cannot_connect_with_or_without_a_certificate_of_his_own(client, security) -> None:
    port = urlsplit(client.scheduler.address).port
    scheme = "tcp" if security is None else "tls"
    with pytest.raises(OSError, match=r"(?i)timed out|tls|ssl|certificate|reset|closed"):
        Client(f"{scheme}://127.0.0.1:{port}", security=security, set_as_default=False, timeout=3)


def test_no_port_of_the_cluster_answers_plain_words(client) -> None:
    """Not Dask's own greeting, and no page: of logs, of tasks, or one that retires workers."""
    ports = listening()
    assert len(ports) >= 5
    pages = ("/info/main/workers.html", "/info/main/logs.html", "/json/counts.json", "/api/v1/retire_workers")
    told = {(port, page): answer for port in ports for page in pages if (answer := shown(port, page)) not in (0, 404)}
    assert told == {}


def shown(port: int, page: str) -> int:
    """Status of the answer to a request; 0 if there is none."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{page}", timeout=5) as answer:
            return answer.status
    except urllib.error.HTTPError as err:
        return err.code
    except (OSError, http.client.HTTPException):
        return 0


def test_nothing_listens_beyond_loopback(client) -> None:
    me = psutil.Process()
    connections = [c for process in (me, *me.children(recursive=True)) for c in process.net_connections("tcp")]
    listening = {c.laddr.ip for c in connections if c.status == psutil.CONN_LISTEN}
    assert "127.0.0.1" in listening  # Dask's scheduler, if nobody else
    assert listening <= {"127.0.0.1", "::1"}


def test_a_stranger_who_only_holds_the_line_does_no_harm(client) -> None:
    port = urlsplit(client.scheduler.address).port
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(b"\x00" * 64)
        assert client.submit(sum, (1, 2), pure=False).result(timeout=60) == 3
