"""What a worker of the local cluster does first, Dask's preload: it was forked from a process older than its cluster.

NumPy came with that process: its random numbers would be those of every other worker, its threads those of the
cluster for which the process was started.
"""

import logging
import os
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits


def dask_setup(worker: Any) -> None:
    """Draw a random state of its own, take this cluster's number of threads, keep quiet."""
    np.random.seed()  # the state that code without a generator of its own draws from
    threadpool_limits({"blas": int(os.environ["OPENBLAS_NUM_THREADS"])})
    # A worker whose heartbeat meets a closing cluster would print a traceback; who is lost the study says itself.
    logging.getLogger("distributed.worker").setLevel(logging.CRITICAL)
