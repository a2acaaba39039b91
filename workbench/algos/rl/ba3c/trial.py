"""Distributed BA3C: ranks that each play and take a gradient, and one update from their mean (1801.02852, Sec. 2).

::

    rank 0   play ▸ batch ▸ gradient ─┐                                ┌─▶ new weights ▸ play …
    rank 1   play ▸ batch ▸ gradient ─┼─▶ mean of the first k ▸ Adam ─┼─▶ new weights ▸ play …
    rank n-1 play ▸ batch ▸ gradient ─┘   (later ones are dropped)     └─▶ new weights ▸ play …

A rank is a process with environments of its own; between updates it plays and predicts in turn, in one thread, or plays
on in another (`ahead.py`). With k = n the mean is an all-reduce and every rank takes the same Adam step
(`exchange.py`); with k < n, and in the asynchronous variant, rank 0 keeps the weights and the others fetch them there
(`parameter_server.py`), or the first few ranks keep a slice each (`shards.py`, `shard_server.py`). What a rank does is
in `rank.py`, how ranks find each other in `peers.py`; here they are put together.
"""

from dataclasses import dataclass

from workbench.algos.rl.ba3c.local_gang import LocalGang
from workbench.algos.rl.ba3c.rank import BA3CTrial
from workbench.algos.rl.ba3c.settings import BA3CSettings
from workbench.core.protocols import Config, Trainable


@dataclass(frozen=True)
class BA3C(BA3CSettings):
    """Distributed BA3C as a study takes it: settings, and a factory of gangs."""

    def __call__(self, config: Config, seed: int) -> Trainable:
        """Build a whole trial for this machine, its ranks 1, 2, … in processes of their own."""
        return self.rank(config, seed, 0) if self.n_ranks == 1 else LocalGang(self, config, seed)

    def rank(self, config: Config, seed: int, rank: int) -> BA3CTrial:
        """Build one rank of a trial, for an executor that brings a gang together."""
        return BA3CTrial(self.with_config(config), seed, rank)
