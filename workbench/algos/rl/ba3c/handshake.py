"""How ranks know each other: they prove to each other that they have the gang's key, without saying it.

A challenge each way over messages of fixed length, so that nobody makes the rank that listens, rank 0 or another that
serves, read, keep or wait for more than that: it sends 32 random bytes; who connects answers with its rank, 32 bytes of
its own and their HMAC; it answers with another. Strangers may come in any number and be as slow as they like: each has
a few seconds in all, beside the others, and the oldest goes when they are too many.
"""

import hmac
import secrets
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import wait

from workbench.core.errors import PeerLost

HANDSHAKE_S = 5.0  # for all of it
_MOST = 64
_NONCE = 32
_RANK = struct.Struct("!I")
_ANSWER = _RANK.size + 2 * _NONCE


class Handshakes:
    """Connections to a listener whose other end has not proved yet who it is."""

    def __init__(self, listener: socket.socket, key: str) -> None:
        self._listener, self._key = listener, key.encode()
        listener.setblocking(False)
        # until when it may take, our challenge, and what has come of its answer
        self._under_way: dict[socket.socket, tuple[float, bytes, bytearray]] = {}

    def go_on(self, seconds: float) -> list[tuple[int, socket.socket]]:
        """Go on with all, waiting at most that long; give the ranks that proved who they are, and their sockets."""
        came = []
        for ready in wait([self._listener, *self._under_way], seconds):
            if ready is self._listener:
                self._begin()
                continue
            assert isinstance(ready, socket.socket)
            if ready not in self._under_way:
                continue  # it has just made room
            try:
                if (rank := self._heard(ready)) is not None:
                    del self._under_way[ready]
                    came.append((rank, ready))
            except Exception:  # noqa: BLE001  whatever a stranger brings about, the others go on
                self._refuse(ready)
        for late in [sock for sock, (until, _, _) in self._under_way.items() if time.monotonic() > until]:
            self._refuse(late)
        return came

    def close(self) -> None:
        """Refuse all that are under way."""
        for sock in list(self._under_way):
            self._refuse(sock)

    def _begin(self) -> None:
        with suppress(OSError):
            sock, _ = self._listener.accept()
            sock.setblocking(False)
            challenge = secrets.token_bytes(_NONCE)
            self._under_way[sock] = (time.monotonic() + HANDSHAKE_S, challenge, bytearray())
            if len(self._under_way) > _MOST:
                self._refuse(next(iter(self._under_way)))
            sock.send(challenge)

    def _heard(self, sock: socket.socket) -> int | None:
        _, challenge, answer = self._under_way[sock]
        got = sock.recv(_ANSWER - len(answer))
        if not got:
            raise EOFError
        answer += got
        if len(answer) < _ANSWER:
            return None
        whole = bytes(answer)
        rank, theirs, proof = whole[: _RANK.size], whole[_RANK.size : -_NONCE], whole[-_NONCE:]
        if not hmac.compare_digest(_proof(self._key, b"rank", rank, challenge, theirs), proof):
            raise ValueError("it does not know the key")
        sock.send(_proof(self._key, b"rank 0", rank, theirs, challenge))
        return int(_RANK.unpack(rank)[0])

    def _refuse(self, sock: socket.socket) -> None:
        self._under_way.pop(sock, None)
        sock.close()


def authenticate(
    sock: socket.socket,
    key: str,
    rank: int,
    alive: Callable[[], object],
    every_s: float,
    most_s: float,
    other: str = "rank 0",
) -> None:
    """Prove to who listens, `other`, that one has the key, and have it prove the same.

    Parameters
    ----------
    alive : callable
        Called every `every_s` seconds until there is an answer, for `most_s` at most.

    Raises
    ------
    PeerLost
        The other does not answer, or has not the key.
    """
    end = time.monotonic() + most_s

    def read() -> bytes:
        got = b""
        while len(got) < _NONCE:
            while not wait([sock], every_s):
                alive()
                if time.monotonic() > end:
                    raise PeerLost(f"{other} did not answer within {most_s:g} s")
            piece = sock.recv(_NONCE - len(got))
            if not piece:
                raise PeerLost(f"{other} turned this rank away: it has another key, or is gone")
            got += piece
        return got

    try:
        challenge, own, number = read(), secrets.token_bytes(_NONCE), _RANK.pack(rank)
        sock.sendall(number + own + _proof(key.encode(), b"rank", number, challenge, own))
        if not hmac.compare_digest(read(), _proof(key.encode(), b"rank 0", number, own, challenge)):
            raise PeerLost(f"who answers at {other}'s address does not know the key of this gang")
    except OSError as err:
        raise PeerLost(f"{other} is out of reach: {err}") from None


def _proof(key: bytes, *words: bytes) -> bytes:
    return hmac.digest(key, b"".join(words), "sha256")
