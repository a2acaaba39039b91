"""What a worker of the local cluster does first, Dask's preload: it was forked from a process older than its cluster.

NumPy came with that process: its random numbers would be those of every other worker, its threads those of the
cluster for which the process was started.

Ctrl-C in a terminal, and the button that interrupts a notebook's cell, reach every process of the group: they are meant
for whoever waits for the study, not for its workers, which would all die.

Processes that a trial has left running end with the worker, if that is not killed: they would share processor or GPU
with the next, and keep open what the study's process writes to, so that whoever reads that never sees its end.
"""

import logging
import os
import signal
import threading
from contextlib import suppress
from multiprocessing.util import Finalize
from typing import Any

import numpy as np
import psutil
from threadpoolctl import threadpool_limits

from workbench.cluster.steady import keep_time


def dask_setup(worker: Any) -> None:
    """Draw a random state of its own, take this cluster's number of threads, keep time, keep quiet, stay at work."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    Finalize(None, _end_children, exitpriority=0)  # before this process waits for those that are not daemons
    keep_time(worker.loop)
    np.random.seed()  # the state that code without a generator of its own draws from
    threadpool_limits({"blas": int(os.environ["OPENBLAS_NUM_THREADS"])})
    # A worker whose heartbeat meets a closing cluster would print a traceback; who is lost the study says itself.
    logging.getLogger("distributed.worker").setLevel(logging.CRITICAL)


def _end_children() -> None:
    """End what was started from here, but what has a session of its own: that was meant to outlive whoever began it."""
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            if os.getsid(child.pid) == os.getsid(0):
                child.terminate()
