"""A trial of several ranks that trains nothing and misbehaves on demand; light, for workers to import."""

import os
import signal
import threading
from dataclasses import dataclass
from pathlib import Path

from tests.support import Deterministic
from workbench.algos.rl.ba3c.connection import ALIVE_S, Connection, Listener, connect


@dataclass(frozen=True)
class Gang:
    """Trials whose ranks tell rank 0 their number and process; rank `who` does `what` in phase `when`, once."""

    n_ranks: int = 2
    once: str = ""
    what: str = ""
    who: int = 1
    when: int = 1

    def __call__(self, config, seed):
        raise AssertionError("an executor builds ranks")

    def rank(self, config, seed, rank):
        return Member(self, config, seed, rank)


class Member(Deterministic):
    def __init__(self, how: Gang, config, seed, rank) -> None:
        super().__init__(config, seed)
        self.how, self.rank = how, rank
        self.listener: Listener | None = None
        self.connections: list[Connection] = []

    def listen(self, host: str) -> str:
        self.listener = Listener(host)
        return self.listener.address

    def join(self, address: str) -> None:
        self.address = address

    def leave(self) -> None:
        for connection in self.connections:
            connection.close()
        if self.listener is not None:
            self.listener.close()
        self.connections, self.listener = [], None

    def train_phase(self, progress):
        def alive() -> None:
            progress({})

        if not self.connections and self.rank == 0:
            self.connections = self.listener.accept(self.how.n_ranks, alive, 60)
            for connection in self.connections:
                connection.send({"phase": self.phase})
        elif not self.connections:
            self.connections = [connect(self.address, self.rank, 60)]
            self.phase = self.receive(self.connections[0], alive)["phase"]  # only rank 0 was loaded
        self.misbehave(progress)
        if self.rank:
            self.connections[0].send({"rank": self.rank, "pid": os.getpid()})
            self.phase += 1
            return {}
        told = [self.receive(connection, alive) for connection in self.connections]
        metrics = super().train_phase(progress)
        pids = {os.getpid(), *(message["pid"] for message in told)}
        return {**metrics, "ranks": 1.0 + len(told), "processes": float(len(pids))}

    def receive(self, connection, alive):
        while not connection.ready(ALIVE_S):
            alive()
        return connection.receive()[0]

    def misbehave(self, progress) -> None:
        once = Path(self.how.once)
        if self.rank == self.how.who and self.phase == self.how.when and self.how.what and not once.exists():
            once.touch()
            getattr(self, self.how.what)(progress)

    def kill(self, progress) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def hang(self, progress) -> None:
        threading.Event().wait()

    def go_on_for_ever(self, progress) -> None:
        never = threading.Event()
        while not never.wait(0.05):
            progress({"frames": 1.0})

    def stop_process(self, progress) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)

    def fail(self, progress) -> None:
        raise OSError("the disk\nis on fire")
