"""Processes that stand for what runs on a cluster's hosts, each with a file for what it says."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


@contextmanager
def processes(folder: Path) -> Iterator["Processes"]:
    """Start processes; end those that are left, newest first."""
    started = Processes(folder)
    try:
        yield started
    finally:
        started.end()


class Processes:
    """Processes of a test, each with a file for what it says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.all: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, command: Sequence[str], **settings: Any) -> "subprocess.Popen[bytes]":
        """Start one, in a session of its own."""
        with (self.folder / f"{name}.out").open("ab") as out:
            self.all.append(subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True, **settings))
        return self.all[-1]

    def end(self) -> None:
        for process in reversed(self.all):
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(15)
            if process.poll() is None:
                process.kill()
                process.wait()
