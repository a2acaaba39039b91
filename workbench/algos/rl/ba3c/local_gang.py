"""A gang on this machine: rank 0 in this process, each other rank in one of its own. No cluster is needed."""

import multiprocessing
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import cloudpickle

from workbench.algos.rl.ba3c.connection import ALIVE_S
from workbench.core.errors import PeerLost
from workbench.core.measured import one_line
from workbench.core.pool import deaf, refuse_without_processes, without_main
from workbench.core.protocols import Config, GangFactory, GangTrainable, Metrics, Progress
from workbench.core.script import pickled

HOST = "127.0.0.1"
_RANK = "BA3C rank"  # what a rank's process is called
_ANSWER_S = 30.0  # for a rank to notice that the phase is over


class LocalGang:
    """A whole trial of several ranks, as one `Trainable`.

    Parameters
    ----------
    factory : GangFactory
        It travels to the processes by cloudpickle, as do classes of the script or the cell that builds the gang.
    config, seed
        Of the trial.
    host : str
        This machine's address that rank 0 listens at.

    Raises
    ------
    InvalidInput
        This process is daemonic.
    """

    def __init__(self, factory: GangFactory, config: Config, seed: int, host: str = HOST) -> None:
        refuse_without_processes(
            "a gang starts a process for each of its other ranks", "have one rank alone (n_ranks=1)"
        )
        self._host = host
        self.chief: Any = factory.rank(config, seed, 0)
        self._lines: list[Connection] = []
        self._processes: list[Any] = []
        self._coming = list(range(1, factory.n_ranks))  # ranks whose processes have not said that they are up
        try:
            packet = pickled((factory, dict(config)))
            for rank in self._coming:
                self._start(packet, seed, rank)
        except BaseException:
            self.close()
            raise

    def _start(self, packet: bytes, seed: int, rank: int) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy threads' locks
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, name=f"{_RANK} {rank}", args=(packet, seed, rank, theirs), daemon=True)
        with deaf(), without_main(_RANK):  # what it does rank 0 decides, which hears Ctrl-C
            process.start()
        theirs.close()
        self._lines.append(ours)
        self._processes.append(process)

    def train_phase(self, progress: Progress) -> Metrics:
        """Run one phase on all ranks.

        Raises
        ------
        PeerLost
            A rank died; the message says which.
        """
        if not self._lines:  # rank 0 would wait for the others as long as for late ones
            raise RuntimeError("this gang is closed, its other ranks are no more: build the trial anew")
        self._wait_until_up(progress)
        address = self.chief.listen(self._host)
        failure: BaseException | None = None
        try:
            for rank, line in enumerate(self._lines, 1):
                with suppress(OSError):  # a dead rank: the next line says so
                    line.send(address)
                self._refuse_dead(rank)
            metrics: Metrics = self.chief.train_phase(_watched(progress, self._refuse_any_dead))
            return metrics
        except BaseException as err:
            failure = err
            raise
        finally:
            self.chief.leave()
            self._end_phase(failure)

    def save(self, path: Path) -> None:
        """Write rank 0's checkpoint; it is the trial's."""
        self.chief.save(path)

    def load(self, path: Path) -> None:
        """Load rank 0, which sends the others what they need."""
        self.chief.load(path)

    def close(self) -> None:
        """End the processes."""
        for line in self._lines:
            with suppress(OSError):
                line.send(None)
            line.close()
        for process in self._processes:
            process.join(_ANSWER_S)
            if process.is_alive():
                process.kill()
                process.join()
            process.close()
        self._lines, self._processes = [], []
        self.chief.close()

    def _wait_until_up(self, progress: Progress) -> None:
        """Wait for new processes, which have torch to import: that may take long, and must not count as silence."""
        while self._coming:
            rank = self._coming[0]
            if self._lines[rank - 1].poll(ALIVE_S):
                with suppress(EOFError):
                    self._lines[rank - 1].recv()
                self._coming.pop(0)
            self._refuse_dead(rank)
            progress({})

    def _end_phase(self, failure: BaseException | None) -> None:
        """Wait for every rank's answer; one that failed by itself explains why rank 0 did."""
        errors = []
        for rank, line in enumerate(self._lines, 1):
            try:
                error = line.recv() if line.poll(_ANSWER_S) else f"rank {rank} does not answer"
            except (OSError, EOFError):
                error = self._death(rank)
            if error:
                errors.append(error)
        if errors and (failure is None or isinstance(failure, PeerLost)):
            raise PeerLost("; ".join(errors)) from failure

    def _refuse_any_dead(self) -> None:
        for rank in range(1, len(self._processes) + 1):
            self._refuse_dead(rank)

    def _refuse_dead(self, rank: int) -> None:
        if not self._processes[rank - 1].is_alive():
            raise PeerLost(self._death(rank))

    def _death(self, rank: int) -> str:
        process = self._processes[rank - 1]
        process.join(1)
        return f"the process of rank {rank} died (exit code {process.exitcode}): start again from the last checkpoint"


def _watched(progress: Progress, look: Callable[[], None]) -> Progress:
    def watched(metrics: Metrics) -> None:
        look()
        progress(metrics)

    return watched


def _serve(packet: bytes, seed: int, rank: int, line: Connection) -> None:
    """Run phases of one rank whenever rank 0's address comes, until None comes or nobody is there."""
    factory, config = cloudpickle.loads(packet)
    trainable: GangTrainable = factory.rank(config, seed, rank)
    with suppress(EOFError, OSError):
        line.send("")
        while (address := line.recv()) is not None:
            line.send(_phase(trainable, address, rank))
    trainable.close()


def _phase(trainable: GangTrainable, address: str, rank: int) -> str:
    """Run one phase; return what went wrong, if it went wrong here."""
    try:
        trainable.join(address)
        trainable.train_phase(lambda metrics: None)
    except PeerLost:
        pass  # rank 0 knows better
    except Exception as err:  # noqa: BLE001 - sent to rank 0, whatever it is
        return f"rank {rank}: {one_line(err)}"
    finally:
        trainable.leave()
    return ""
