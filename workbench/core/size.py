"""How large a study is: the yardstick its progress is held against, as its scheduler tells and the log keeps it."""

from collections.abc import Mapping, Sequence, Sized
from dataclasses import asdict, dataclass, fields
from typing import Any

from workbench.core.protocols import Scheduler, expectation_of


@dataclass(frozen=True)
class Size:
    """A study's size; what nobody knows is ``None`` or empty.

    Attributes
    ----------
    n_trials : int or None
        Most trials that will be started.
    n_configs : int or None
        The paper's W0, runs to the end that a completion rate of 1 stands for: see `full_runs`.
    n_phases : int or None
        The paper's Np, most phases one trial may run.
    expected_phases : float or None
        Phases expected to run in all.
    began, fewest : sequence of float
        Trials expected to begin each phase, and the fewest that can, [n_phases].
    completion, fewest_completion : float or None
        Expected and smallest completion rate.
    """

    n_trials: int | None = None
    n_configs: int | None = None
    n_phases: int | None = None
    expected_phases: float | None = None
    began: Sequence[float] = ()
    fewest: Sequence[float] = ()
    completion: float | None = None
    fewest_completion: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "began", tuple(self.began))
        object.__setattr__(self, "fewest", tuple(self.fewest))

    def to_json(self) -> dict[str, Any]:
        """Describe it in JSON's types, as ``size`` in the log's ``study_started``."""
        return asdict(self) | {"began": list(self.began), "fewest": list(self.fewest)}

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> "Size":
        """Read it back; what a later version added is passed over."""
        known = {f.name for f in fields(cls)}
        return cls(**{key: value for key, value in described.items() if key in known})


def size_of(scheduler: Scheduler) -> Size:
    """Ask a scheduler how large its study is."""
    told = expectation_of(scheduler)
    known = (scheduler.n_trials, full_runs(scheduler), scheduler.n_phases, float(scheduler.expected_phases))
    return (
        Size(*known) if told is None else Size(*known, told.began, told.fewest, told.completion, told.fewest_completion)
    )


def full_runs(scheduler: Scheduler) -> int:
    """Count the runs to the end that a completion rate of 1 stands for: configurations, or members of a population.

    Trials are more where a scheduler restarts some, or lets members go on as new ones; configurations are fewer than
    asked for where the searcher has no more.
    """
    asked: int = getattr(scheduler, "n_configs", getattr(scheduler, "population", scheduler.n_trials))
    searcher = getattr(scheduler, "searcher", None)
    return min(asked, len(searcher)) if isinstance(searcher, Sized) else asked
