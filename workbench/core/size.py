"""How large a study is: the yardstick its progress is held against, as its scheduler tells and the log keeps it."""

from collections.abc import Sequence, Sized
from dataclasses import asdict, dataclass
from typing import Any

from workbench.core.domains import scalar
from workbench.core.protocols import Scheduler, expectation_of


@dataclass(frozen=True)
class Size:
    """A study's size; what nobody knows is ``None`` or empty.

    Attributes
    ----------
    n_trials : int or None
        Most trials that will be started.
    n_configs : int or None
        The paper's W0, runs to the end that a completion rate of 1 stands for: see `full_runs`. Each begins with a
        trial of its own; whether more trials come, up to `n_trials`, may depend on scores.
    n_phases : int or None
        The paper's Np, most phases one trial may run.
    expected_phases : float or None
        Phases expected to run in all.
    began, fewest : sequence of float
        Trials expected to begin each phase, and the fewest that can, [n_phases].
    """

    n_trials: int | None = None
    n_configs: int | None = None
    n_phases: int | None = None
    expected_phases: float | None = None
    began: Sequence[float] = ()
    fewest: Sequence[float] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "began", tuple(self.began))
        object.__setattr__(self, "fewest", tuple(self.fewest))

    @property
    def may_be_fewer(self) -> bool:
        """Whether trials may be fewer than `n_trials`: members of a population may go on as the trials they are."""
        return self.n_trials is not None and self.n_configs is not None and self.n_configs < self.n_trials

    @property
    def completion(self) -> float | None:
        """Expected completion rate: Eq. 9, the sum of Eq. 1; or the smallest, where few trials make that more."""
        return _share(max(self.began, self.fewest, key=sum))

    @property
    def fewest_completion(self) -> float | None:
        """The smallest that can come of it if no trial fails; the paper's Eq. 8 is lower."""
        return _share(self.fewest)

    def to_json(self) -> dict[str, Any]:
        """Describe it in JSON's types, as ``size`` in the log's ``study_started``; `read_back` gives it again."""
        plain = {name: scalar(value) for name, value in asdict(self).items()}
        return plain | {"began": [*map(scalar, self.began)], "fewest": [*map(scalar, self.fewest)]}

    def phases_left(
        self,
        began: Sequence[int],
        completed: Sequence[int],
        under_way: Sequence[int],
        waiting: Sequence[int],
    ) -> tuple[float, float]:
        """Estimate how many phases are still to end, from the trials that began each phase so far and completed it.

        Trials that are to come, or under way, go on as often as was expected of them before the study, or as often as
        trials did so far: the truth is likelier between the two than at either. Those that go on however they score
        (`fewest`) are no matter of chance. Only for sizes that tell `began`.

        Parameters
        ----------
        began, completed : sequence of int, shape [n_phases]
            Trials.
        under_way, waiting : sequence of int, shape [n_phases]
            Trials that are in each phase, and that have ended it and may be let go on: not those that failed in it or
            that a person stopped.

        Returns
        -------
        tuple of float
            The smaller estimate and the larger.
        """
        judged = lasted = 0.0
        for phase, fewest in enumerate(self.fewest[1:]):
            judged += max(completed[phase] - fewest, 0)
            lasted += max(began[phase + 1] - fewest, 0)
        shares = (None, lasted / judged if judged else None)
        expected, seen = (self._flow(began, under_way, waiting, share) for share in shares)
        return min(expected, seen), max(expected, seen)

    def _flow(
        self, began: Sequence[int], under_way: Sequence[int], waiting: Sequence[int], share: float | None
    ) -> float:
        """Add up the trials that will end each phase; `share` of those who need not go on do, or as was expected."""
        coming, left = max(self.began[0] - began[0], 0.0), 0.0
        for phase, expected in enumerate(self.began):
            here = under_way[phase] + coming
            left += here
            if phase + 1 < len(self.began):
                fewest = self.fewest[phase + 1]
                by_chance = max(expected - fewest, 1e-9)
                # few may be fewer, as expected, than go on in any case: 0.7 trials where the first always does
                going_on = max(self.began[phase + 1] - fewest, 0.0) / by_chance if share is None else share
                sure = min(max(fewest - began[phase + 1], 0.0), here + waiting[phase])
                coming = sure + max(here - sure, 0.0) * going_on
        return left


def size_of(scheduler: Scheduler) -> Size:
    """Ask a scheduler how large its study is."""
    expected = expectation_of(scheduler)
    known = (scheduler.n_trials, full_runs(scheduler), scheduler.n_phases, float(scheduler.expected_phases))
    return Size(*known) if expected is None else Size(*known, expected.began, expected.fewest)


def _share(begun: Sequence[float]) -> float | None:
    """Give the share of all phases that run if so many trials begin each, [n_phases]; ``None`` if nobody knows."""
    return sum(begun) / (begun[0] * len(begun)) if any(begun) else None


def full_runs(scheduler: Scheduler) -> int:
    """Count the runs to the end that a completion rate of 1 stands for: configurations, or members of a population.

    Trials are more where a scheduler restarts some, or lets members go on as new ones; configurations are fewer than
    asked for where the searcher has no more.
    """
    asked: int = getattr(scheduler, "n_configs", getattr(scheduler, "population", scheduler.n_trials))
    searcher = getattr(scheduler, "searcher", None)
    return min(asked, len(searcher)) if isinstance(searcher, Sized) else asked
