"""Importance for the last scores and for every phase's, computed by a process of its own that gives way to all others.

Run as a module it reads what to explain from its input, pickled, and writes one line of JSON an answer.
"""

import json
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from workbench.analysis.importance import importance, phases_with_enough

FORESTS = 20  # fewer than a report compares
RESAMPLES = 30
LOWEST = 19  # of priorities: a study on the same cores loses next to nothing

Answer = dict[str, Any]
"""``phase`` (None: the last scores), ``rows`` (of `Importance.table`), ``told`` (how good it is, or why nothing is)."""


def forests_by_phase(
    trials: pd.DataFrame, phases: pd.DataFrame, hyperparameters: Sequence[str], forests: int = FORESTS
) -> Iterator[Answer]:
    """Explain the last scores, then those of each phase that enough trials have ended.

    Parameters
    ----------
    trials, phases, hyperparameters, forests
        As for `importance`.
    """
    for phase in (None, *phases_with_enough(trials, phases)):
        result = importance(trials, phases, hyperparameters, phase=phase, forests=forests, resamples=RESAMPLES)
        yield {"phase": phase, "rows": result.table.round(4).to_dict("records"), "told": str(result)}


def forests_apart(
    trials: pd.DataFrame,
    phases: pd.DataFrame,
    hyperparameters: Sequence[str],
    forests: int = FORESTS,
    niceness: int = LOWEST,
) -> "subprocess.Popen[bytes]":
    """Begin `forests_by_phase` in a process of low priority; its output is a line of JSON an answer."""
    ours = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | ours,
        start_new_session=True,  # interrupting a cell is not meant for it
    )
    mine = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, process.pid, min(LOWEST, mine + niceness))  # before it imports anything
    assert process.stdin is not None
    asked = ("trial", "candidate", "parent_phase", "last_score", *hyperparameters)
    told_of_trials = [name for name in asked if name in trials]
    kept = trials[told_of_trials], phases[["trial", "phase", "score"]]
    process.stdin.write(pickle.dumps((*kept, [*hyperparameters], forests)))
    process.stdin.close()
    return process


def _end_with(parent: int) -> None:
    """Leave as soon as whoever asked is gone: a kernel that is killed can tell nobody."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=_end_with, args=(int(sys.argv[1]),), daemon=True).start()
    for answer in forests_by_phase(*pickle.load(sys.stdin.buffer)):
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
