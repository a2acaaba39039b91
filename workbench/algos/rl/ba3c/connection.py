"""How the ranks of a gang exchange messages: a line of JSON and an array of floats, over TCP.

Rank 0 has a `Listener`; its address carries a fresh random key, and who does not know the key is turned away
(`handshake.py`). What follows is neither encrypted nor signed: run gangs on machines and networks you trust. Each other
rank has one `Connection` to rank 0, and one to each further rank that serves a slice of the weights. A rank that dies
closes its connections: the other end notices at once, and raises `PeerLost`.
"""

import json
import secrets
import selectors
import socket
import struct
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Any

import numpy as np

from workbench.algos.rl.ba3c.handshake import Handshakes, authenticate
from workbench.core.errors import PeerLost

Alive = Callable[[], object]
"""Called while others are awaited; raises what ends the phase."""
ALIVE_S = 0.25  # seconds between two signs of life while a rank waits
_CONNECT_S = 5.0
_CLOSED = "closed the connection: it has died, or was stopped"
_MOST_TEXT = 64 << 20  # bytes of JSON in a message
_LENGTHS = struct.Struct("!II")  # bytes of JSON, bytes of floats


class Connection:
    """One end of a connection between two ranks; one thread may send while another receives.

    Parameters
    ----------
    sock : socket
    other : str
        Who is at the other end, for errors.
    timeout_s : float
        Longest pause within a message.
    """

    def __init__(self, sock: socket.socket, other: str, timeout_s: float) -> None:
        sock.settimeout(timeout_s)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.other, self._sock = other, sock

    @property
    def host(self) -> str:
        """This end's address."""
        return str(self._sock.getsockname()[0])

    def send(self, message: Mapping[str, Any], floats: np.ndarray | None = None, alive: Alive | None = None) -> None:
        """Send a message in JSON's types, and float32 numbers; `alive` is called while the other end takes no more."""
        text = json.dumps(message).encode()
        body = memoryview(b"") if floats is None else np.ascontiguousarray(floats, np.float32).data.cast("B")
        try:
            for part in (_LENGTHS.pack(len(text), len(body)) + text, body):
                if alive is None:
                    self._sock.sendall(part)
                else:
                    self._send(memoryview(part), alive)
        except (OSError, ValueError) as err:
            raise PeerLost(f"{self.other} takes no more messages: {err}") from None

    def ready(self, seconds: float = 0.0) -> bool:
        """Wait for a message, or for the end of the connection, at most that long; tell whether it is there."""
        try:
            return bool(wait([self._sock], seconds))
        except (OSError, ValueError):
            return True  # closed here meanwhile: `receive` says so

    def receive(self) -> tuple[dict[str, Any], np.ndarray]:
        """Return the next message and its numbers, float32; blocks until it is there."""
        lengths = self._read(_LENGTHS.size)
        n_text, n_body = _LENGTHS.unpack(lengths)
        if n_text > _MOST_TEXT:
            raise PeerLost(f"{self.other} announces {n_text} bytes of text: it is none of ours")
        text = self._read(n_text)
        return json.loads(bytes(text)), np.frombuffer(self._read(n_body), np.float32)

    def check(self) -> None:
        """Raise `PeerLost` if the other end has closed it; messages that have come stay."""
        try:
            lost = self.ready() and not self._sock.recv(1, socket.MSG_PEEK)
        except OSError as err:
            raise PeerLost(f"{self.other} is out of reach: {err}") from None
        if lost:
            raise PeerLost(f"{self.other} {_CLOSED}")

    def close(self) -> None:
        """Close it; a thread that is in `receive` is woken, and so is the other end."""
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()

    def _send(self, view: memoryview, alive: Alive) -> None:
        with selectors.DefaultSelector() as free:
            free.register(self._sock, selectors.EVENT_WRITE)
            while view:
                if free.select(ALIVE_S):
                    view = view[self._sock.send(view) :]
                else:
                    alive()

    def _read(self, n: int) -> bytearray:
        buffer = bytearray(n)
        view = memoryview(buffer)
        while view:
            try:
                got = self._sock.recv_into(view)
            except OSError as err:
                raise PeerLost(f"{self.other} is out of reach: {err}") from None
            if not got:
                raise PeerLost(f"{self.other} {_CLOSED}")
            view = view[got:]
        return buffer


def listening(host: str) -> socket.socket:
    """Listen on `host` alone, an address of IPv4 or of IPv6, at a free port."""
    return socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET)


class Listener:
    """Where a rank waits for the others.

    Attributes
    ----------
    address : str
        ``host:port/key``: what the others `connect` to.
    """

    def __init__(self, host: str) -> None:
        self._socket = listening(host)
        self._key = secrets.token_hex(16)
        self.address = f"{host}:{self._socket.getsockname()[1]}/{self._key}"

    def accept(self, n_ranks: int, alive: Alive, timeout_s: float) -> list[Connection]:
        """Rank 0: wait until all other ranks have connected; one connection each, in their order.

        Raises
        ------
        PeerLost
            They have not, in time.
        """
        accepted = self.accept_from(range(1, n_ranks), n_ranks, alive, timeout_s)
        return [accepted[rank] for rank in range(1, n_ranks)]

    def accept_from(
        self, numbers: Collection[int], n_ranks: int, alive: Alive, timeout_s: float
    ) -> dict[int, Connection]:
        """Wait until one has connected as each of these numbers; give their connections.

        Parameters
        ----------
        numbers : collection of int
            Ranks; and `n_ranks`, as which rank 0 makes another connection, beside that as rank 0.
        n_ranks : int
        alive : callable
        timeout_s : float

        Raises
        ------
        PeerLost
            They have not, in time.
        """
        connections: dict[int, Connection] = {}
        handshakes = Handshakes(self._socket, self._key)
        end = time.monotonic() + timeout_s
        try:
            while len(connections) < len(numbers):
                alive()
                if time.monotonic() > end:
                    n_came = 1 + sum(number < n_ranks for number in connections)
                    raise PeerLost(f"only {n_came} of {n_ranks} ranks came within {timeout_s:g} s")
                for number, sock in handshakes.go_on(ALIVE_S):
                    if number in numbers and number not in connections:
                        connections[number] = Connection(sock, f"rank {number % n_ranks}", timeout_s)
                    else:
                        sock.close()
        except BaseException:
            for connection in connections.values():
                connection.close()
            raise
        finally:
            handshakes.close()
        return connections

    def close(self) -> None:
        """Accept no more."""
        self._socket.close()


def connect(address: str, rank: int, timeout_s: float, alive: Alive = lambda: None, to: int = 0) -> Connection:
    """Connect a rank to the listener of rank `to` at `address`, calling `alive` until it is accepted.

    Raises
    ------
    PeerLost
        Nobody answers.
    """
    place, _, key = address.partition("/")
    host, _, port = place.rpartition(":")
    other = f"rank {to}"
    try:
        sock = socket.create_connection((host, int(port)), timeout=min(_CONNECT_S, timeout_s))
    except OSError as err:
        raise PeerLost(f"{other} does not answer at {place}: {err}") from None
    try:
        authenticate(sock, key, rank, alive, ALIVE_S, timeout_s, other)
    except BaseException:
        sock.close()
        raise
    return Connection(sock, other, timeout_s)


def receive(connection: Connection, alive: Alive) -> tuple[dict[str, Any], np.ndarray]:
    """Wait for a message, calling `alive` meanwhile."""
    while not connection.ready(ALIVE_S):
        alive()
    return connection.receive()
