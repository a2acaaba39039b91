"""Writes a small study again and again, each time with another write failing; run with `faults.c` loaded before libc.

``python -m tests.knowledge.faulty_disk FOLDER STRIDE`` lets every STRIDE-th write fail and prints one JSON object:
how many writes there were to fail, how often the log said so, and what was wrong afterwards, which should be nothing.
"""

import ctypes
import errno
import itertools
import json
import shutil
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

from tests.knowledge.studies import a_study
from workbench.core.errors import WorkbenchError
from workbench.core.protocols import Event, Kind
from workbench.knowledge import KnowledgeBase, StudyLog, check, repair
from workbench.knowledge.schema import Unfinished

DISK = ctypes.CDLL(None)  # faults.c, for it was loaded first
NEVER = -1
LARGE = Event(Kind.PHASE_STARTED, 9.0, 0, 0, data={"padding": "x" * 20_000})
EVENTS = [*a_study()[:5], LARGE, *a_study()[9:12]]


def write(path: Path, told: Counter[str]) -> int:
    """Begin the study and append event by event until one append fails; return how many went in, -1 for not begun."""
    try:
        log = StudyLog(path, "one", {})
    except WorkbenchError as err:
        told[type(err).__name__] += 1
        return -1
    log._connection.execute("PRAGMA wal_autocheckpoint = 4")  # so that its writes and syncs may fail too
    kept = 0
    try:
        for event in EVENTS:
            log.append([event])
            kept += 1
    except WorkbenchError as err:
        told[type(err).__name__] += 1
    with suppress(WorkbenchError):
        log.close()
    return kept


def wrong_after(path: Path, kept: int) -> str:
    """Open what is there on a disk that works again; tell what is not as it should be."""
    begun, found = False, list[Event]()
    if path.is_file() and path.stat().st_size:
        try:
            with KnowledgeBase(path) as kb:
                begun = "one" in list(kb)
                found = kb["one"].events() if begun else []
        except Unfinished:
            if kept >= 0:
                raise
            repair(path)
        if found != EVENTS[: max(kept, 0)]:
            return f"{kept} appends went in, {len(found)} are there"
        if damage := [str(f) for f in check(path) if f.study != "one"]:
            return "; ".join(damage)
    if kept >= 0 and not begun:
        return "the study is gone"
    log = StudyLog(path, "one", {}, resume=begun)
    for event in EVENTS[max(kept, 0) :]:
        log.append([event])
    log.close()
    with KnowledgeBase(path) as kb:
        return "" if kb["one"].events() == EVENTS else "the rest could not be written"


def main(folder: Path, stride: int) -> None:
    """Let writes fail in turn: once with an input/output error, and for good with it or for lack of space."""
    told: Counter[str] = Counter()
    wrong: list[str] = []
    writes = []
    for first, (error, stays) in enumerate(((errno.EIO, 0), (errno.EIO, 1), (errno.ENOSPC, 1))):
        for at in itertools.chain([NEVER], itertools.count(first % stride, stride)):
            path = folder / "kb.db"
            DISK.fault_arm(str(path).encode(), ctypes.c_long(at), error, stays)
            try:
                kept = write(path, told)
            finally:
                n_writes = int(DISK.fault_disarm())
            try:
                trouble = wrong_after(path, kept)
            except Exception as err:  # noqa: BLE001  whatever goes wrong is what is looked for
                trouble = repr(err)
            if trouble:
                wrong.append(f"{errno.errorcode[error]}{' for good' if stays else ''} at write {at}: {trouble}")
            shutil.rmtree(folder)
            folder.mkdir()
            if at == NEVER:
                writes.append(n_writes)
            elif at >= n_writes:
                break  # this one had nothing left to fail
    print(json.dumps({"writes": writes, "told": told, "wrong": wrong}))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
