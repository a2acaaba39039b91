"""What a worker of the local cluster does first, Dask's preload: it was forked from a process older than its cluster.

NumPy came with that process: its random numbers would be those of every other worker, its threads those of the
cluster for which the process was started.

Ctrl-C in a terminal, and the button that interrupts a notebook's cell, reach every process of the group: they are meant
for whoever waits for the study, not for its workers, which would all die.
"""

import logging
import os
import signal
import threading
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from workbench.cluster.steady import keep_time


def dask_setup(worker: Any) -> None:
    """Draw a random state of its own, take this cluster's number of threads, keep time, keep quiet, stay at work."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    keep_time(worker.loop)
    np.random.seed()  # the state that code without a generator of its own draws from
    threadpool_limits({"blas": int(os.environ["OPENBLAS_NUM_THREADS"])})
    # A worker whose heartbeat meets a closing cluster would print a traceback; who is lost the study says itself.
    logging.getLogger("distributed.worker").setLevel(logging.CRITICAL)
