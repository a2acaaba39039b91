"""Messages between ranks: what arrives, who is let in, what a death looks like."""

import threading

import numpy as np
import pytest

from tests.algos.rl.ba3c.gangs import connected, nothing
from workbench.algos.rl.ba3c.connection import Listener, connect
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
    with pytest.raises(PeerLost, match="rank 1 closed the connection"):
        here.receive()
    here.close()
    with pytest.raises(PeerLost, match="takes no more messages"):
        here.send({})
    with pytest.raises(PeerLost):
        here.receive()


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


def test_waiting_for_ranks_shows_life_and_can_be_called_off():
    class Enough(Exception):
        pass

    def enough():
        raise Enough

    listener = Listener("127.0.0.1")
    with pytest.raises(Enough):
        listener.accept(2, enough, 60)
    listener.close()
