"""A trial of several ranks that trains nothing and misbehaves on demand; light, for workers to import."""

import os
import signal
import threading
from dataclasses import dataclass
from pathlib import Path

from tests.support import Deterministic
from workbench.algos.rl.ba3c.wire import ALIVE_S, Door, Wire, knock


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
        self.door: Door | None = None
        self.wires: list[Wire] = []

    def listen(self, host: str) -> str:
        self.door = Door(host)
        return self.door.address

    def join(self, address: str) -> None:
        self.address = address

    def leave(self) -> None:
        for wire in self.wires:
            wire.close()
        if self.door is not None:
            self.door.close()
        self.wires, self.door = [], None

    def train_phase(self, progress):
        def alive() -> None:
            progress({})

        if not self.wires and self.rank == 0:
            self.wires = self.door.admit(self.how.n_ranks, alive, 60)
            for wire in self.wires:
                wire.send({"phase": self.phase})
        elif not self.wires:
            self.wires = [knock(self.address, self.rank, 60)]
            self.phase = self.hear(self.wires[0], alive)["phase"]  # only rank 0 was loaded
        self.misbehave(progress)
        if self.rank:
            self.wires[0].send({"rank": self.rank, "pid": os.getpid()})
            self.phase += 1
            return {}
        told = [self.hear(wire, alive) for wire in self.wires]
        metrics = super().train_phase(progress)
        pids = {os.getpid(), *(message["pid"] for message in told)}
        return {**metrics, "ranks": 1.0 + len(told), "processes": float(len(pids))}

    def hear(self, wire, alive):
        while not wire.ready(ALIVE_S):
            alive()
        return wire.receive()[0]

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
