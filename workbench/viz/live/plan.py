"""What a study set out to do, read off its record: the yardstick its progress is held against."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.algos.search.hypertrick import collecting_reports, expected_trials


@dataclass(frozen=True)
class Plan:
    """A study's size.

    Attributes
    ----------
    n_trials, n_phases : int or None
        The paper's W0 and Np; ``None`` if the record does not say.
    expected : list of float
        Trials expected to begin each phase, E[W_p] (arXiv 1902.02725, Eq. 1); empty for other schedulers.
    minimum : list of float
        Trials that go on after each phase however they score, W_DCM,p (Eq. 2); empty for other schedulers.
    """

    n_trials: int | None
    n_phases: int | None
    expected: list[float]
    minimum: list[float]

    @property
    def expected_phases(self) -> float | None:
        """Phases expected to run in all."""
        if self.expected:
            return sum(self.expected)
        return None if self.n_trials is None or self.n_phases is None else float(self.n_trials * self.n_phases)


def plan_of(spec: Mapping[str, Any]) -> Plan:
    """Read the plan off a study's recorded `spec`; a record this does not understand gives an empty plan."""
    scheduler = spec.get("scheduler")
    settings = scheduler if isinstance(scheduler, Mapping) else {}
    n_trials, n_phases = _whole(settings.get("n_trials")), _whole(settings.get("n_phases"))
    rate = settings.get("eviction_rate")
    if n_trials is None or n_phases is None or not isinstance(rate, float) or not 0 < rate < 1:
        return Plan(n_trials, n_phases, [], [])
    return Plan(
        n_trials,
        n_phases,
        [expected_trials(n_trials, rate, phase) for phase in range(n_phases)],
        [collecting_reports(n_trials, rate, phase) for phase in range(n_phases)],
    )


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
