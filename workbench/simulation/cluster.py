"""A described cluster in virtual time: how many nodes, how fast, what goes wrong."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from workbench.core.checks import COUNT, FROM_ZERO, POSITIVE, check, check_value, whole
from workbench.core.domains import scalar
from workbench.core.errors import InvalidInput
from workbench.core.showing import so_many


@dataclass(frozen=True)
class Hazards:
    """What goes wrong on a cluster, and how often.

    Parameters
    ----------
    crash_rate, hang_rate : float
        Expected crashes and hangs in a second of a running phase; both cost one attempt at the phase.
    stall_s : float
        Silence after which a hang is found.
    restart_s : float
        Seconds until a lost slot is back.
    max_retries : int
        Further attempts at a phase; then its trial fails, alone.
    """

    crash_rate: float = 0.0
    hang_rate: float = 0.0
    stall_s: float = 300.0
    restart_s: float = 0.0
    max_retries: int = 2

    def __post_init__(self) -> None:
        check(self, FROM_ZERO, "crash_rate", "hang_rate", "restart_s")
        check(self, whole(0), "max_retries")
        check(self, POSITIVE, "stall_s")

    def draw(self, rng: np.random.Generator, n_ranks: int = 1) -> tuple[float, str]:
        """Draw how long a phase runs before something goes wrong on one of its workers, seconds, and what it is."""
        crash = rng.exponential(1 / (self.crash_rate * n_ranks)) if self.crash_rate else math.inf
        hang = rng.exponential(1 / (self.hang_rate * n_ranks)) if self.hang_rate else math.inf
        return (float(crash), "crash") if crash <= hang else (float(hang), "stall")

    @property
    def any(self) -> bool:
        """Whether anything can go wrong at all."""
        return self.crash_rate > 0 or self.hang_rate > 0


@dataclass(frozen=True)
class VirtualCluster:
    """Nodes that exist only in virtual time.

    Parameters
    ----------
    nodes : int
    slots_per_node : int
        Trials a node holds at a time; its slots are equally fast.
    speeds : sequence of float, optional
        Listed, one a node; a phase takes the model's duration divided by the speed.
    speed_spread : float
        Without a list, speeds are drawn log-normal with median 1 and this standard deviation of their logarithm.
    startup_s, switch_s : float
        Added when a trial is brought up from nothing, or from a checkpoint: after a pause, a retry, or from a parent.
    hazards : Hazards
    seed : int
        Of the drawn speeds and the hazards.
    n_ranks : int
        Workers a trial needs at once. So many neighbours form a slot, as fast as the slowest of them; those that are
        left over stay idle. What happens to one of them costs the trial its attempt, so crashes and hangs are as many
        times as frequent.
    """

    nodes: int = 4
    slots_per_node: int = 1
    speeds: Sequence[float] | None = None
    speed_spread: float = 0.0
    startup_s: float = 0.0
    switch_s: float = 0.0
    hazards: Hazards = field(default_factory=Hazards)
    seed: int = 0
    n_ranks: int = 1

    def __post_init__(self) -> None:
        check(self, COUNT, "nodes", "slots_per_node", "n_ranks")
        check(self, FROM_ZERO, "speed_spread", "startup_s", "switch_s")
        if self.n_ranks > self.nodes * self.slots_per_node:
            raise InvalidInput(
                f"a trial needs a gang of {self.n_ranks} workers, the cluster has {self.nodes * self.slots_per_node}: "
                "add nodes, or lower n_ranks"
            )
        if self.speeds is not None and (len(self.speeds) != self.nodes or self.speed_spread):
            raise InvalidInput(
                f"{so_many(len(self.speeds), 'speed')} for {so_many(self.nodes, 'node')}, and speed_spread = "
                f"{self.speed_spread}: list one a node and leave speed_spread out"
            )
        if self.speeds is not None:  # numpy's, too
            object.__setattr__(self, "speeds", tuple(map(scalar, self.speeds)))
        for speed in self.speeds or ():
            check_value(self, POSITIVE, "speeds", speed)

    @property
    def n_slots(self) -> int:
        """Slots in all, each of which holds a trial: a gang of workers is one."""
        return self.nodes * self.slots_per_node // self.n_ranks

    def node_speeds(self) -> list[float]:
        """Give the speed of every node, listed or drawn."""
        if self.speeds is not None:
            return [float(speed) for speed in self.speeds]
        if not self.speed_spread:
            return [1.0] * self.nodes
        rng = np.random.default_rng([self.seed, 2])
        return [float(speed) for speed in np.exp(self.speed_spread * rng.normal(size=self.nodes))]

    def accident(self, trial: int, phase: int, attempt: int) -> tuple[float, str]:
        """Draw what goes wrong with an attempt at a phase, and when; see `Hazards.draw`. Each has draws of its own."""
        if not self.hazards.any:
            return math.inf, ""
        # as a list its last zeros would not count: the first attempt would share the draws of configurations
        identity = np.random.SeedSequence(self.seed, spawn_key=(2, trial, phase, attempt))
        return self.hazards.draw(np.random.default_rng(identity), self.n_ranks)

    def slot_speeds(self) -> list[float]:
        """Give the speed of every slot."""
        workers = [speed for speed in self.node_speeds() for _ in range(self.slots_per_node)]
        return [min(workers[slot * self.n_ranks : (slot + 1) * self.n_ranks]) for slot in range(self.n_slots)]
