"""What a study set out to do: the yardstick its progress is held against."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Plan:
    """A study's size.

    Attributes
    ----------
    n_trials, n_phases : int or None
        The paper's W0 and Np; ``None`` if the record does not say.
    expected : sequence of float
        Trials expected to begin each phase, E[W_p] (arXiv 1902.02725, Eq. 1); empty if nothing is expected.
    minimum : sequence of float
        Fewest that can begin each phase, however they score (from Eq. 2); empty likewise.
    """

    n_trials: int | None
    n_phases: int | None
    expected: Sequence[float] = ()
    minimum: Sequence[float] = ()

    @property
    def expected_phases(self) -> float | None:
        """Phases expected to run in all."""
        if self.expected:
            return sum(self.expected)
        return None if self.n_trials is None or self.n_phases is None else float(self.n_trials * self.n_phases)


def plan_of(spec: Mapping[str, Any], expected: Sequence[float] = (), minimum: Sequence[float] = ()) -> Plan:
    """Read the size off a study's recorded `spec`, as far as its scheduler has one."""
    scheduler = spec.get("scheduler")
    settings = scheduler if isinstance(scheduler, Mapping) else {}
    return Plan(_whole(settings.get("n_trials")), _whole(settings.get("n_phases")), expected, minimum)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
