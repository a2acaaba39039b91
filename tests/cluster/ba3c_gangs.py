"""BA3C gangs of which a rank is killed, or whose ranks share a process."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from tests.algos.rl.ba3c.gangs import ranks_of, train
from workbench.algos.rl.ba3c.rank import BA3CTrial
from workbench.algos.rl.ba3c.trial import BA3C


@dataclass(frozen=True)
class Mortal(BA3C):
    """BA3C of which one rank's process is killed once, before it takes a gradient of weights of `when` updates or more.

    The other ranks wait there for it: where not all are awaited, they could end the phase without it.
    """

    once: str = ""
    who: int = 1
    when: int = 7

    def rank(self, config, seed, rank) -> BA3CTrial:
        trial = super().rank(config, seed, rank)
        contribution, once = trial.player.contribution, Path(self.once)

        def to_the_death(seconds):
            while trial.player.version >= self.when and not once.exists():
                if rank == self.who:
                    once.touch()
                    os.kill(os.getpid(), signal.SIGKILL)
                time.sleep(0.01)
            return contribution(seconds)

        trial.player.contribution = to_the_death  # type: ignore[method-assign]
        return trial


@dataclass(frozen=True)
class InThreads(BA3C):
    """BA3C whose ranks are threads of one process, also where a whole trial is asked for."""

    def __call__(self, config, seed):
        return ThreadGang(self, config, seed)


class ThreadGang:
    def __init__(self, factory: BA3C, config, seed) -> None:
        self.ranks = ranks_of(factory, config, seed)
        self.save, self.load = self.ranks[0].save, self.ranks[0].load

    def train_phase(self, progress):
        return train(self.ranks, progress)

    def close(self) -> None:
        for rank in self.ranks:
            rank.close()
