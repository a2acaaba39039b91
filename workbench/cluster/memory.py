"""What a worker does with memory that a trial has freed."""

import ctypes
from contextlib import suppress
from functools import cache

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # mallopt(3)


@cache
def keep_freed_memory() -> None:
    """Let glibc keep what is freed for what is taken next, as it would if Dask had not told it otherwise.

    Dask starts workers with ``MALLOC_TRIM_THRESHOLD_``, which gives memory back to the system at every free and keeps
    glibc from adapting to the sizes in use. A trial takes and frees megabytes hundreds of times a second, and would
    spend much of its time in page faults: ``benchmarks/freed_memory.py`` measures it.
    """
    with suppress(OSError, AttributeError):  # another C library needs no telling
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, 32 << 20)  # the most that glibc takes
        libc.mallopt(_M_TRIM_THRESHOLD, 64 << 20)
