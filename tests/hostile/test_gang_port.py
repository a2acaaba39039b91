"""Strangers at the port of a gang: none keeps the ranks from meeting, whatever he says and however slowly."""

import json
import socket
import struct
import threading
import tracemalloc
from multiprocessing.connection import wait

import pytest

from workbench.algos.rl.ba3c import handshake
from workbench.algos.rl.ba3c.connection import Listener, connect
from workbench.core.errors import PeerLost


def old_greeting(told: object) -> bytes:
    text = json.dumps(told).encode()
    return struct.pack("!II", len(text), 0) + text


SAID = {
    "a rank without end": old_greeting({"rank": 1}).replace(b'"rank": 1', b'"rank": 1e999'),
    "a length of gigabytes": struct.pack("!II", 2**32 - 1, 2**32 - 1),
    "gigabytes": bytes(1 << 20),
    "a rank that there is not": struct.pack("!I", 2**32 - 1) + bytes(64),
    "no proof": struct.pack("!I", 1) + bytes(64),
    "half an answer": b"\x00" * 10,
    "nothing": b"",
}


def met(listener: Listener) -> None:
    """Let a true rank connect."""
    there: list = []
    thread = threading.Thread(target=lambda: there.append(connect(listener.address, 1, 30)))
    thread.start()
    (connection,) = listener.accept(2, lambda: None, 30)
    thread.join()
    connection.send({"hello": 1})
    assert there[0].receive()[0] == {"hello": 1}
    there[0].close()
    connection.close()


def stranger(listener: Listener) -> socket.socket:
    host, _, port = listener.address.partition("/")[0].rpartition(":")
    return socket.create_connection((host, int(port)))


@pytest.mark.parametrize("what", SAID)
def test_what_a_stranger_says_keeps_nobody_out(what, monkeypatch) -> None:
    monkeypatch.setattr(handshake, "HANDSHAKE_S", 600.0)  # longer than anybody here waits for him
    listener = Listener("127.0.0.1")
    tracemalloc.start()
    with stranger(listener) as line:
        line.setblocking(False)
        line.send(SAID[what])
        met(listener)
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()
    listener.close()


def test_a_crowd_of_silent_strangers_keeps_nobody_out() -> None:
    listener = Listener("127.0.0.1")
    lines: list[socket.socket] = []
    came = threading.Event()

    def crowd() -> None:
        lines.extend(stranger(listener) for _ in range(200))
        came.set()

    thread = threading.Thread(target=crowd)
    thread.start()
    there: list = []
    knocks = threading.Thread(target=lambda: (came.wait(), there.append(connect(listener.address, 1, 60))))
    knocks.start()
    (connection,) = listener.accept(2, lambda: None, 60)
    for one in (thread, knocks):
        one.join()
    for line in [*lines, connection, *there]:
        line.close()
    listener.close()


def test_of_too_many_strangers_the_oldest_go(monkeypatch) -> None:
    monkeypatch.setattr(handshake, "HANDSHAKE_S", 60.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        handshakes = handshake.Handshakes(server, "key")
        lines = []
        for _ in range(handshake._MOST + 2):
            lines.append(socket.create_connection(server.getsockname(), timeout=30))
            assert handshakes.go_on(10) == []
        for line in lines:
            assert len(line.recv(32)) == 32  # the challenge
        for line in lines[:2]:
            assert line.recv(1) == b""
        assert not wait(lines[2:], 0)
        handshakes.close()
    for line in lines:
        line.close()


def test_a_stranger_who_speaks_byte_by_byte_is_sent_away_in_time(monkeypatch) -> None:
    monkeypatch.setattr(handshake, "HANDSHAKE_S", 0.5)
    listener = Listener("127.0.0.1")
    sent_away = threading.Event()

    def drip(line: socket.socket) -> None:
        try:
            while not sent_away.wait(0.05):
                line.sendall(b"\x00")
        except OSError:
            sent_away.set()

    with stranger(listener) as line:
        thread = threading.Thread(target=drip, args=(line,))
        thread.start()
        with pytest.raises(PeerLost, match="only 1 of 2 ranks came within 2 s"):
            listener.accept(2, lambda: None, 2)
        assert sent_away.is_set()
        thread.join()
    listener.close()


def test_the_key_is_never_said() -> None:
    listener = Listener("127.0.0.1")
    key = listener.address.partition("/")[2]
    heard = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as between:

        def listen() -> None:
            line, _ = between.accept()
            with line:
                line.sendall(bytes(32))
                while piece := line.recv(1000):
                    heard.extend(piece)
                    if len(heard) == 68:
                        line.sendall(bytes(32))  # he cannot prove that he knows it

        thread = threading.Thread(target=listen)
        thread.start()
        with pytest.raises(PeerLost, match="does not know the key of this gang"):
            connect(f"127.0.0.1:{between.getsockname()[1]}/{key}", 1, 10)
        thread.join()
    assert len(heard) == 68
    assert key.encode() not in heard
    assert bytes.fromhex(key) not in heard
    listener.close()


def test_an_answer_cannot_be_given_again() -> None:
    listener = Listener("127.0.0.1")
    key = listener.address.partition("/")[2]
    number, own = struct.pack("!I", 1), bytes(32)
    with stranger(listener) as line:
        line.setblocking(False)
        line.send(
            number + own + handshake._proof(key.encode(), b"rank", number, bytes(32), own)
        )  # of another challenge
        with pytest.raises(PeerLost, match="only 1 of 2 ranks came"):
            listener.accept(2, lambda: None, 1)
    listener.close()
