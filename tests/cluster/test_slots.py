"""Slots made of the workers that Dask's scheduler tells of."""

import pytest

from workbench.cluster.slots import Slots
from workbench.core.errors import SchedulerError


def told(*workers: str, **status: str) -> dict[str, dict[str, str]]:
    """What the scheduler knows of workers written as name@host; the address is tcp://name."""
    named = [worker.split("@") for worker in workers]
    return {f"tcp://{n}": {"name": n, "host": host, "status": status.get(n, "running")} for n, host in named}


def test_each_worker_is_a_slot_and_on_one_machine_a_node() -> None:
    slots = Slots(1)
    joined = slots.form(told("a@127.0.0.1", "b@10.0.0.2"), given_up=set())
    assert [(slot.index, slot.node, slot.addresses) for slot in joined] == [
        (0, "a", ("tcp://a",)),
        (1, "10.0.0.2", ("tcp://b",)),
    ]
    assert slots.n_up == 2
    assert all(slot.dirty for slot in joined)
    assert slots.form(told("a@127.0.0.1", "b@10.0.0.2"), given_up=set()) == []


def test_workers_given_up_or_not_running_make_no_slot() -> None:
    slots = Slots(1)
    workers = told("a@h", "b@h", "c@h", b="closing_gracefully")
    assert [slot.names for slot in slots.form(workers, given_up={"tcp://a"})] == [("c",)]


def test_a_gang_takes_workers_of_one_host_first_and_those_left_over_wait() -> None:
    slots = Slots(2)
    joined = slots.form(told("a@x", "b@y", "c@x", "d@y", "e@z"), given_up=set())
    assert [slot.names for slot in joined] == [("a", "c"), ("b", "d")]
    assert list(slots.apart) == ["e"]
    assert joined[0].place == {"node": "x", "workers": 2}


def test_a_slot_that_has_lost_a_rank_comes_back_under_its_number() -> None:
    slots = Slots(2)
    both = told("a@x", "b@x")
    (slot,) = slots.form(both, given_up=set())
    assert slots.bereft(both) == []
    assert slots.bereft(told("a@x")) == [(slot, [1])]
    slot.addresses, slot.dirty = (), False
    assert slots.form(told("a@x"), given_up=set()) == []
    assert slots.n_up == 0
    assert slots.form(both, given_up=set()) == [slot]
    assert (slot.index, slot.up, slot.dirty) == (0, True, True)


def test_a_trial_gets_the_slot_it_wants_if_that_is_free() -> None:
    slots = Slots(1)
    first, second = slots.form(told("a@h", "b@h"), given_up=set())
    assert slots.choose(7, wanted=1) is second
    second.trial = 7
    assert slots.of(7) is second
    assert slots.of(8) is None
    assert slots.choose(8, wanted=1) is first
    first.trial = 8
    with pytest.raises(SchedulerError, match="trial 9 cannot start: none of the 2 slots is free"):
        slots.choose(9, wanted=None)


def test_a_large_gang_names_the_first_and_the_last_of_its_nodes() -> None:
    (slot,) = Slots(5).form(told("a@n1", "b@n2", "c@n3", "d@n4", "e@n5"), given_up=set())
    assert slot.node == "n1…n5 (5)"
