"""Virtual hosts: they reach each other through their links alone, as fast as these are, and not with the cable out."""

import os
import socket
import threading
import time

import pytest

from workbench.core.errors import WorkbenchError
from workbench.paper.ba3c.virtual_hosts import hosts

MEGABYTE = b"x" * 1_000_000


def received(listener: socket.socket, arrived: list[float]) -> None:
    line, _ = listener.accept()
    with line:
        left = len(MEGABYTE)
        while left and (part := line.recv(left)):
            left -= len(part)
        arrived.append(time.monotonic())


def is_reached(listener: socket.socket, timeout_s: float) -> bool:
    try:
        socket.create_connection(listener.getsockname(), timeout=timeout_s).close()
    except OSError:
        return False
    return True


@pytest.mark.clusters
def test_what_hosts_say_goes_through_their_links() -> None:
    with hosts(["n0", "n1"], mbit_per_s=20) as (first, second):
        with first.entered():
            listener = socket.create_server((first.address, 0))
        arrived: list[float] = []
        reading = threading.Thread(target=received, args=(listener, arrived))
        reading.start()
        with second.entered(), socket.create_connection(listener.getsockname(), timeout=60) as line:
            began = time.monotonic()
            line.sendall(MEGABYTE)
            reading.join(60)
        assert arrived[0] - began > 0.3  # 8 of 20 Mbit are 0.4 s; 64 kB may go at once
        first.cut()
        with second.entered():
            assert not is_reached(listener, 1)
        first.mend()
        with second.entered():
            assert is_reached(listener, 60)
        assert not is_reached(listener, 1)  # from this machine, which is none of them
        listener.close()
        left = [first.namespace, second.namespace]
    assert not set(left) & set(os.listdir("/run/netns"))


def test_who_may_not_make_hosts_is_told_what_it_takes(monkeypatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(WorkbenchError, match=r"virtual hosts need root, .*iproute2"), hosts(["n0"]):
        pass
