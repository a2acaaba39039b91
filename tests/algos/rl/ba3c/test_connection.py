"""Messages between ranks: what arrives, who is let in, what a death looks like."""

import socket
import threading

import numpy as np
import pytest

from tests.algos.rl.ba3c.gangs import connected, nothing
from workbench.algos.rl.ba3c.connection import Connection, Listener, connect, receive
from workbench.core.errors import PeerLost


def test_a_message_and_its_numbers_arrive_as_they_were_sent():
    here, there = connected()
    numbers = np.random.default_rng(0).normal(size=200_000).astype(np.float32)
    sender = threading.Thread(target=there.send, args=({"version": 3, "returns": [1.5]}, numbers))
    sender.start()
    message, received = here.receive()
    sender.join()
    assert message == {"version": 3, "returns": [1.5]}
    np.testing.assert_array_equal(received, numbers)
    assert not here.ready()
    here.send({})
    assert there.ready(10)
    there.check()  # takes nothing of it
    assert there.receive()[1].size == 0
    here.close()
    there.close()


def test_sending_to_who_takes_no_more_shows_life_and_can_be_called_off():
    class Enough(Exception):
        pass

    def enough():
        raise Enough

    here, there = connected()
    with pytest.raises(Enough):
        here.send({}, np.zeros(1 << 23, np.float32), enough)  # more than the system keeps for who does not read
    here.close()
    there.close()


def test_a_connection_that_is_closed_is_noticed_at_once():
    here, there = connected()
    there.close()
    assert here.ready(10)
    for notice in (here.check, here.receive):
        with pytest.raises(PeerLost, match="rank 1 closed the connection"):
            notice()
    here.close()
    assert here.ready()  # or a thread would wait for what cannot come
    with pytest.raises(PeerLost, match="takes no more messages"):
        here.send({})
    with pytest.raises(PeerLost):
        here.receive()


def test_waiting_for_a_message_shows_life():
    here, there = connected()
    assert receive(here, lambda: there.send({"version": 3}))[0] == {"version": 3}
    here.close()
    there.close()


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"\x00", "is out of reach: timed out"),
        (b"\x04\x00\x00\x01" + bytes(4), "announces 67108865 bytes of text: it is none of ours"),
    ],
)
def test_who_falls_silent_within_a_message_or_speaks_otherwise_is_lost(said, told):
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as line:
        here = Connection(server.accept()[0], "rank 1", 0.1)
        line.sendall(said)
        with pytest.raises(PeerLost, match=f"rank 1 {told}"):
            here.receive()
        here.close()


def test_ranks_are_told_apart_by_their_numbers_whenever_they_come_and_nobody_else_is_kept():
    listener, there = Listener("127.0.0.1"), {}

    def come() -> None:
        for name, rank in (("of none", 3), ("second", 2), ("second again", 2), ("first", 1)):
            there[name] = connect(listener.address, rank, 30)
            if name == "second":
                there[name].send({"rank": 2})

    thread = threading.Thread(target=come)
    thread.start()
    first, second = listener.accept(3, nothing, 60)
    thread.join()
    there["first"].send({"rank": 1})
    assert (first.other, first.receive()[0]) == ("rank 1", {"rank": 1})
    assert (second.other, second.receive()[0]) == ("rank 2", {"rank": 2})
    for name in ("of none", "second again"):
        with pytest.raises(PeerLost, match="rank 0 closed the connection"):
            there[name].receive()
    for connection in (first, second, *there.values()):
        connection.close()
    listener.close()


def test_who_does_not_know_the_key_is_turned_away_and_the_wait_has_an_end():
    listener = Listener("127.0.0.1")
    told = []

    def stranger() -> None:
        with pytest.raises(PeerLost) as refused:
            connect(listener.address.partition("/")[0] + "/wrong", 1, 30)
        told.append(str(refused.value))

    thread = threading.Thread(target=stranger)
    thread.start()
    with pytest.raises(PeerLost, match="only 1 of 2 ranks came within 1 s"):
        listener.accept(2, nothing, 1)
    thread.join()
    assert told == ["rank 0 turned this rank away: it has another key, or is gone"]
    address = listener.address
    listener.close()
    with pytest.raises(PeerLost, match="rank 0 does not answer"):
        connect(address, 1, 5)


def test_waiting_for_ranks_shows_life_and_can_be_called_off_and_lets_go_those_that_came():
    class Enough(Exception):
        pass

    listener, came = Listener("127.0.0.1"), []

    def enough():
        if came:
            raise Enough

    thread = threading.Thread(target=lambda: came.append(connect(listener.address, 1, 30)))
    thread.start()
    with pytest.raises(Enough) as caught:  # which keeps what `accept` has, or it would close by itself
        listener.accept(3, enough, 60)
    thread.join()
    with pytest.raises(PeerLost, match="rank 0 closed the connection"):
        came[0].receive()
    assert caught.tb is not None
    came[0].close()
    listener.close()


def test_who_listens_and_never_answers_is_waited_for_no_longer_than_was_said():
    alive: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(PeerLost, match=r"^rank 2 did not answer within 0.1 s$"):
            connect(f"{place}/key", 1, 0.1, lambda: alive.append(1), to=2)
    assert alive
