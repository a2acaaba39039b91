"""A study in a process of its own, which outlives the notebook that started it."""

import os
import pickle
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from multiprocessing import set_start_method
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cloudpickle

from workbench.cluster.children import chosen_method
from workbench.core.errors import InvalidInput, StudyError
from workbench.core.script import pickled

if TYPE_CHECKING:
    from distributed.security import Security

_CHILDREN: list["subprocess.Popen[bytes]"] = []  # kept, so that those that have ended can be reaped


def launch(study: Any, *, resume: bool, scheduler: "tuple[str, Security] | None") -> None:
    """Drive a study in a new process and session; returns when its log is open there.

    Parameters
    ----------
    study : Study
        Pickled with cloudpickle, so that classes made in a notebook reach the other process.
    resume : bool
        As of `Study.start`.
    scheduler : tuple of str and Security, or None
        Where that of the Dask cluster to use is, and what it is spoken to with; ``None``: a local cluster of its own.

    Raises
    ------
    InvalidInput
        Something in the study cannot be pickled.
    StudyError
        What `Study.start` raises, or the process did not come up.
    """
    from workbench.knowledge.lock import private, refuse_driven

    try:
        payload = pickle.dumps((sys.path, chosen_method())) + pickled((study, resume, scheduler))
    except Exception as err:  # noqa: BLE001  pickling runs whatever code an object brings along
        raise InvalidInput(f"study {study.name!r} cannot be sent to another process ({err}): use start()") from None
    said = _output(Path(study.db), study.name, resume=resume)
    refuse_driven(study.db, study.name)  # here, where it is told if this process does
    hears, tells = os.pipe()
    with open(said, "ab", opener=private) as out:
        child = subprocess.Popen(
            [sys.executable, "-m", "workbench.study.launch", str(tells)],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=out,
            pass_fds=[tells],
            start_new_session=True,  # signals to the notebook's process group must not reach it
        )
    os.close(tells)
    _CHILDREN[:] = [*(one for one in _CHILDREN if one.poll() is None), child]
    assert child.stdin is not None
    with open(hears, "rb") as answer:
        with suppress(BrokenPipeError), child.stdin:
            child.stdin.write(payload)
        message = answer.read()
    if not message:
        raise StudyError(f"the process for study {study.name!r} did not come up: see {said}")
    error = pickle.loads(message)
    if error is not None:
        raise error


def _output(db: Path, name: str, *, resume: bool) -> Path:
    """Name the file of what the process has to say, its folder made.

    Raises
    ------
    DatabaseError, StudyError
        There can be no such folder, or no study that could be resumed: to look for it makes nothing.
    """
    from workbench.knowledge import KnowledgeBase, output_path
    from workbench.knowledge.schema import Unfinished, make_folder

    if resume:
        with suppress(Unfinished), KnowledgeBase(db) as kb:  # what was interrupted, the driver mends
            kb[name]
    make_folder(db)
    return output_path(db, name)


def main(tells: int) -> int:
    """Drive the study that stands on standard input; tell `tells` (a file descriptor) whether it could be started."""
    sys.path[:], method = pickle.load(sys.stdin.buffer)
    set_start_method(method)
    study, resume, scheduler = pickle.load(sys.stdin.buffer)
    error: BaseException | None = None
    try:
        run = (study if scheduler is None else _on(study, *scheduler)).start(resume=resume)
    except BaseException as err:  # noqa: BLE001  raised where the study was launched
        error = err
    with suppress(BrokenPipeError), open(tells, "wb") as answer:  # whoever launched it may be gone already
        cloudpickle.dump(error, answer)
    if error is not None:
        return 2
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: run.stop())
    while not run.wait(1.0):  # a signal is heard between two waits
        pass
    return 0


def _on(study: Any, address: str, security: "Security") -> Any:
    from distributed import Client

    return replace(study, client=Client(address, security=security, set_as_default=False))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
