"""What A3C reads beside every system's settings."""

from dataclasses import dataclass

from workbench.algos.rl.settings import RMSPropSettings
from workbench.core.errors import InvalidInput


@dataclass(frozen=True)
class A3CSettings(RMSPropSettings):
    """Settings of A3C, which runs on the CPU, with 16 agents by default, as the A3C paper.

    Attributes
    ----------
    lockstep : bool
        Deterministic mode: the agents take turns in one thread, always in the same order.
    """

    n_agents: int = 16
    device: str = "cpu"
    lockstep: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.torch_device().type != "cpu":
            raise InvalidInput(f"A3C runs on the CPU, got device {self.device!r}: use GA3C on a GPU")

    @property
    def repeatable(self) -> bool:
        """In the deterministic mode."""
        return self.lockstep
