"""How long a phase lasts: in episodes, frames, updates or seconds, always said."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from workbench.core.checks import POSITIVE
from workbench.core.errors import InvalidInput

_EXAMPLE = "write for example Budget(frames=100_000), in a study file {frames = 100_000}"


@dataclass(frozen=True, slots=True)
class Budget:
    """The length of one phase; exactly one field is set.

    Attributes
    ----------
    episodes : int
        Finished episodes, over all environments (the HyperTrick paper, Sec. 5.1: 2500).
    frames : int
        Emulator frames, skipped ones included: 4 an agent step on Atari, 1 elsewhere.
    updates : int
        As the system counts them: the optimiser's steps, or what HTS-RL's PPO makes of one interval, in all its epochs;
        of Stable-Baselines3 see `SB3`.
    seconds : float
        Wall time; not reproducible.
    """

    episodes: int | None = None
    frames: int | None = None
    updates: int | None = None
    seconds: float | None = None

    def __new__(cls, *given: float | None, **amounts: Any) -> Self:
        """Refuse units that there are not."""
        if amounts.keys() - set(cls.__slots__):
            raise _no_budget(amounts)
        return object.__new__(cls)

    def __post_init__(self) -> None:
        given = {unit: amount for unit, amount in asdict(self).items() if amount is not None}
        if len(given) != 1 or not all(map(POSITIVE.fits, given.values())):
            raise _no_budget(given)

    @property
    def unit(self) -> str:
        """The name of the field that is set."""
        return next(unit for unit in self.__slots__ if getattr(self, unit) is not None)  # asked at every step

    @property
    def amount(self) -> float:
        """The number in that field."""
        return float(getattr(self, self.unit))

    def spent(self, used: Mapping[str, float]) -> bool:
        """Tell whether `used`, counted by the same names since the phase began, fills the budget."""
        return used[self.unit] >= self.amount


def _no_budget(given: Mapping[str, Any]) -> InvalidInput:
    units = "episodes, frames, updates or seconds"
    return InvalidInput(f"a phase budget is one positive number of {units}, got {given or 'none'}: {_EXAMPLE}")


def check_budget(phase: object) -> None:
    """Refuse a phase whose length is no `Budget`."""
    if not isinstance(phase, Budget):
        raise InvalidInput(f"phase is a Budget, got {phase!r}: {_EXAMPLE}")


def updates_of(settings: Any) -> int:
    """Give the updates of a phase, for what counts in nothing else; as any budget, a part of one is filled by a whole.

    Raises
    ------
    InvalidInput
        `settings.phase` is no `Budget`, or one in another unit.
    """
    phase = settings.phase
    if not isinstance(phase, Budget) or phase.unit != "updates":
        kind = type(settings).__name__
        raise InvalidInput(
            f"{kind} counts its phases in updates, got {phase!r}: write for example Budget(updates=100), in a study "
            "file {updates = 100}"
        )
    return math.ceil(phase.amount)
