"""A clock for Dask that nobody sets: by that of the system it stands still for as long as that is set back."""

import time
from typing import Any

import distributed.batched
from tornado.ioloop import IOLoop


def keep_time(loop: Any) -> None:
    """Have Dask wait on one of its own loops by a clock that is never set, beginning at the time that there is.

    Other loops keep theirs: code of a user's may count on it.

    Parameters
    ----------
    loop : IOLoop
        On which Dask alone runs, in a thread or process of its own.
    """
    ahead = time.time() - time.monotonic()  # what waits already was put off by the system's
    loop.time = lambda: ahead + time.monotonic()
    distributed.batched.time = _time_of_loop


def _time_of_loop() -> float:
    """Give the time by which the loop waits that sends: Dask compares it with the system's."""
    return IOLoop.current().time()
