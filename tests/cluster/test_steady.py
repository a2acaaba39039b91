"""Dask's own loops wait by a clock that nobody sets."""

import asyncio
import time

import distributed.batched
import pytest
from tornado.ioloop import IOLoop, PeriodicCallback

from workbench.cluster.steady import keep_time


@pytest.fixture(autouse=True)
def _restored(monkeypatch) -> None:
    monkeypatch.setattr(distributed.batched, "time", distributed.batched.time)


@pytest.mark.parametrize("shift", [-7200.0, 7200.0])
def test_what_waits_on_a_loop_is_not_put_off_where_the_clock_is_set(monkeypatch, shift) -> None:
    real = time.time

    async def main() -> None:
        loop, again, later = IOLoop.current(), asyncio.Event(), asyncio.Event()
        every = PeriodicCallback(again.set, 10)
        every.start()  # before
        keep_time(loop)
        loop.call_at(loop.time() + 0.02, later.set)
        monkeypatch.setattr(time, "time", lambda: real() + shift)
        for event in (again, later):
            await asyncio.wait_for(event.wait(), 10)
        again.clear()
        await asyncio.wait_for(again.wait(), 10)
        every.stop()

    asyncio.run(main())


def test_what_is_sent_waits_by_the_clock_of_its_loop_and_other_loops_keep_theirs() -> None:
    async def main(kept: bool) -> float:
        if kept:
            keep_time(IOLoop.current())
            IOLoop.current().time = lambda: 7.0
        return distributed.batched.time()

    assert asyncio.run(main(True)) == 7.0
    assert asyncio.run(main(False)) == pytest.approx(time.time(), abs=10)
