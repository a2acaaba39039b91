"""Slots made of the workers that Dask's scheduler tells of."""

from workbench.cluster.attempts import Attempts
from workbench.cluster.slots import Slot, Slots
from workbench.core.protocols import Job


def told(*workers: str) -> dict[str, dict[str, str]]:
    """What the scheduler knows of workers written as name@host; the address is tcp://name, the life that of name."""
    named = [worker.split("@") for worker in workers]
    return {f"tcp://{n}": {"name": n, "host": host, "life": f"life of {n}"} for n, host in named}


def in_service(joined: list[Slot]) -> list[Slot]:
    """Have a book of attempts take slots into service."""
    for slot in joined:
        Attempts(0).slot_joined(slot, 0.0)
    return joined


def test_each_worker_is_a_slot_and_on_one_machine_a_node() -> None:
    slots = Slots(1)
    joined = in_service(slots.form(told("a@127.0.0.1", "b@10.0.0.2"), given_up=set()))
    assert [(slot.index, slot.node, slot.addresses) for slot in joined] == [
        (0, "a", ("tcp://a",)),
        (1, "10.0.0.2", ("tcp://b",)),
    ]
    assert slots.addresses == ["tcp://a", "tcp://b"]
    assert slots.form(told("a@127.0.0.1", "b@10.0.0.2"), given_up=set()) == []


def test_workers_that_come_together_are_numbered_by_name_whichever_connected_first() -> None:
    joined = Slots(1).form(told("node-10@127.0.0.1", "node-2@127.0.0.1", "node-1@127.0.0.1"), given_up=set())
    assert [slot.node for slot in joined] == ["node-1", "node-2", "node-10"]
    assert [slot.names for slot in Slots(2).form(told("n10@x", "n9@x", "n8@x", "n7@x"), given_up=set())] == [
        ("n7", "n8"),
        ("n9", "n10"),
    ]


def test_workers_given_up_make_no_slot() -> None:
    slots = Slots(1)
    assert [slot.names for slot in slots.form(told("a@h", "c@h"), given_up={"life of a"})] == [("c",)]


def test_a_gang_takes_workers_of_one_host_first_and_those_left_over_wait() -> None:
    slots = Slots(2)
    joined = slots.form(told("a@x", "b@y", "c@x", "d@y", "e@z"), given_up=set())
    assert [slot.names for slot in joined] == [("a", "c"), ("b", "d")]
    assert list(slots.apart) == ["e"]
    in_service(joined)
    assert slots.held == {f"tcp://{name}": f"life of {name}" for name in "acbd"}
    assert slots.n_workers == 5
    assert joined[0].place == {"node": "x", "workers": 2}


def test_what_is_left_over_on_a_host_breaks_up_no_gang_of_another_one() -> None:
    slots = Slots(2)
    joined = slots.form(told("a@w", "b@w", "c@w", "d@x", "e@x", "f@y", "g@y", "h@z"), given_up=set())
    assert [slot.nodes for slot in joined] == [("w", "w"), ("x", "x"), ("y", "y"), ("w", "z")]
    assert not slots.apart


def test_a_slot_that_has_lost_a_rank_comes_back_under_its_number() -> None:
    slots = Slots(2)
    both = told("a@x", "b@x")
    (slot,) = in_service(slots.form(both, given_up=set()))
    assert slots.with_lost_workers(both) == []
    assert slots.with_lost_workers(told("a@x")) == [(slot, [1])]
    slot.up = False
    assert slots.with_lost_workers(told("a@x")) == []
    assert slots.form(told("a@x"), given_up=set()) == []
    assert slots.addresses == []
    back = {**told("a@x"), "tcp://b, restarted": {"name": "b", "host": "x", "life": "2nd of b"}}
    assert slots.form(back, given_up=set()) == [slot]
    assert (slot.index, slot.addresses) == (0, ("tcp://a", "tcp://b, restarted"))


def test_workers_are_busy_as_long_as_they_are_up_and_hold_a_trial() -> None:
    slots, book = Slots(2), Attempts(0)
    first, second = slots.form(told("a@x", "b@x", "c@y", "d@y"), given_up=set())
    for slot in (first, second):
        book.slot_joined(slot, 0.0)
    ((attempt,),) = book.start(Job(0, 0, {}, 0), 0.0)
    assert slots.busy == ["tcp://a", "tcp://b"]
    book.phase_ended(attempt, 1.0, {"checkpoint": None})
    assert slots.busy == ["tcp://a", "tcp://b"]  # they keep it
    book.slot_lost(first, 2.0)
    assert (first.trial, slots.busy) == (0, [])


def test_a_worker_that_is_back_at_its_address_is_another_one() -> None:
    slots = Slots(1)
    (slot,) = in_service(slots.form(told("a@x"), given_up=set()))
    assert slots.held == {"tcp://a": "life of a"}
    back = {"tcp://a": {"name": "a", "host": "x", "life": "2nd of a"}}
    assert slots.with_lost_workers(back) == [(slot, [0])]
    slot.up = False
    assert slots.form(told("a@x"), given_up={"life of a"}) == []
    assert slots.form(back, given_up={"life of a"}) == [slot]
    assert (slot.addresses, slot.lives) == (("tcp://a",), ("2nd of a",))


def test_a_large_gang_names_the_first_and_the_last_of_its_nodes() -> None:
    (slot,) = Slots(5).form(told("a@n1", "b@n2", "c@n3", "d@n4", "e@n5"), given_up=set())
    assert slot.node == "n1…n5 (5)"
