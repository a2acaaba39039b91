"""A described cluster in virtual time: how many nodes, how fast, what goes wrong."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from workbench.core.errors import InvalidInput
from workbench.simulation.executor import Hazards, JobModel, PhaseModel, SimulatedExecutor


@dataclass(frozen=True)
class VirtualCluster:
    """Nodes that exist only in virtual time.

    Parameters
    ----------
    nodes : int
    slots_per_node : int
        Trials a node holds at a time; its slots are equally fast.
    speeds : sequence of float, optional
        Listed, one a node; 1 is the speed at which the model's durations hold.
    speed_spread : float
        Without a list, speeds are drawn log-normal with median 1 and this standard deviation of their logarithm.
    startup_s, switch_s : float
        Added when a trial is brought up from nothing, or from a checkpoint.
    hazards : Hazards
    seed : int
        Of the drawn speeds and the hazards.
    n_ranks : int
        Workers a trial needs at once; see `SimulatedExecutor`.
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
        for name in ("nodes", "slots_per_node", "n_ranks"):
            n = getattr(self, name)
            if isinstance(n, bool) or not isinstance(n, int) or n < 1:
                raise InvalidInput(f"a simulated cluster needs a whole number {name} >= 1, got {n!r}")
        if self.n_ranks > self.nodes * self.slots_per_node:
            raise InvalidInput(
                f"a trial needs a gang of {self.n_ranks} workers, the cluster has {self.nodes * self.slots_per_node}: "
                "add nodes, or lower n_ranks"
            )
        if self.speed_spread < 0:
            raise InvalidInput(f"speed_spread is 0 or more, got {self.speed_spread}")
        if self.speeds is not None and (len(self.speeds) != self.nodes or self.speed_spread):
            raise InvalidInput(
                f"{len(self.speeds)} speeds are listed for {self.nodes} nodes, with speed_spread={self.speed_spread}: "
                "list one a node and leave speed_spread out"
            )

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

    def executor(self, model: PhaseModel | JobModel) -> SimulatedExecutor:
        """Build the cluster, to run trials that behave as the model says."""
        speeds = [speed for speed in self.node_speeds() for _ in range(self.slots_per_node)]
        return SimulatedExecutor(
            model, speeds, self.slots_per_node, self.startup_s, self.switch_s, self.hazards, self.seed, self.n_ranks
        )
