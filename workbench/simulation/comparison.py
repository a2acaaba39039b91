"""Schedulers compared over many paired repetitions in virtual time, with intervals."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from workbench.analysis.bootstrap import Interval, bootstrap_interval, median_of
from workbench.core.checks import SHARE, whole
from workbench.core.errors import InvalidInput, refuse_unknown, unknown
from workbench.core.failures import short
from workbench.core.pool import process_pool
from workbench.core.showing import so_many
from workbench.simulation.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd

MEASURES = ("makespan", "occupancy", "completion_rate", "time_to_best", "best_score", "phases", "trials", "retries")
_BETTER = {"makespan": -1, "time_to_best": -1, "best_score": 1, "occupancy": 1}  # the sign of an improvement
_POINTS = 100  # of a curve over time: the k-th, from 1, stands for k / 100 of it
_CHUNK = 5  # repetitions a process takes at a time: with more, one of them would end long before the others

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Comparison:
    """What came of paired repetitions: row n of every array is repetition n.

    Attributes
    ----------
    labels : list of str
    values : dict
        (label, measure) → array, shape [repeats].
    busy : dict
        Label → share of the slots at work in equal stretches of the time on `grid`, shape [repeats, points].
    regret : dict
        Label → best score that any of the configurations could reach minus the best reported by each moment of
        `grid`; before the first report, counted from the worst score any scheduler saw. Shape [repeats, points].
    grid : array, shape [repeats, points]
        Moments, from the start to the end of the repetition's longest study. All schedulers hold the same cluster, so
        equal moments are equal node-hours.
    slots : int
    """

    labels: list[str]
    values: Mapping[tuple[str, str], Array]
    busy: Mapping[str, Array]
    regret: Mapping[str, Array]
    grid: Array
    slots: int

    def medians(self, label: str, measures: Sequence[str] = MEASURES) -> dict[str, Interval]:
        """Give each measure's median over the repetitions, with the sign test's 95 % interval.

        Where fewer than six repetitions have a number, which have no such interval, with their range.
        """
        self._check(label, *measures)
        return {m: median_of(self.values[label, m], or_range=True) for m in measures}

    def difference(self, measure: str, label: str, other: str) -> Interval:
        """Give the median of the paired differences `label` - `other`, with the sign test's 95 % interval.

        It has no limits where fewer than six repetitions have both scores.
        """
        self._check(label, measure)
        self._check(other)
        return median_of(self.values[label, measure] - self.values[other, measure])

    def standing(self, label: str, share: float = 0.5) -> "pd.DataFrame":
        """Say where `label` does better than each other scheduler, and where worse.

        Parameters
        ----------
        label : str
        share : float
            Of the longest study's time, after which regret is compared.

        Returns
        -------
        DataFrame
            One row a measure and other scheduler: measure, against, difference (median of the paired differences), low,
            high (the sign test's 95 % interval, which is exact), verdict: better, worse, or even where the interval
            holds 0, as it does of fewer than six repetitions: all of them lie on one side of 0 by chance too often.
        """
        import pandas as pd

        self._check(label)
        column = _column(share)
        rows = []
        for other in (name for name in self.labels if name != label):
            gaps = {m: self.values[label, m] - self.values[other, m] for m in _BETTER}
            gaps[f"regret at {share:.0%} of the time"] = self.regret[label][:, column] - self.regret[other][:, column]
            for measure, gap in gaps.items():
                interval = median_of(gap)
                beyond = _BETTER.get(measure, -1) * np.sign([interval.low, interval.high]).sum()
                verdict = "better" if beyond == 2 else "worse" if beyond == -2 else "even"
                rows.append((measure, other, *interval, verdict))
        return pd.DataFrame(rows, columns=["measure", "against", "difference", "low", "high", "verdict"])

    def table(self) -> "pd.DataFrame":
        """One row a scheduler, one column a measure: ``median [low, high]``, as of `medians`."""
        import pandas as pd

        rows = {label: {m: v.written(".4g") for m, v in self.medians(label).items()} for label in self.labels}
        return pd.DataFrame(rows).T

    def over_time(self, what: str, labels: Sequence[str] = ()) -> "pd.DataFrame":
        """Give ``occupancy`` or ``regret`` over time, of some schedulers or all.

        Returns
        -------
        DataFrame
            One row a scheduler and moment: scheduler, share_of_time, at (median), median, low, high (as of `medians`).
        """
        import pandas as pd

        curves = {"occupancy": self.busy, "regret": self.regret}
        if what not in curves:
            raise unknown("curve over time", what, curves)
        for label in labels:
            self._check(label)
        frames = [_bands(label, curves[what][label], self.grid) for label in labels or self.labels]
        return pd.concat(frames, ignore_index=True)

    def regret_at(self, label: str, share: float) -> Interval:
        """Give the regret, as of `medians`, after a share of the longest study's time: after equal node-hours."""
        self._check(label)
        return median_of(self.regret[label][:, _column(share)], or_range=True)

    def _check(self, label: str, *measures: str) -> None:
        if label not in self.labels:
            raise unknown("scheduler of this comparison", label, self.labels)
        refuse_unknown("measure", measures, MEASURES)


def compare(scenario: Scenario, repeats: int | None = None, *, processes: int = 1) -> Comparison:
    """Run every scheduler of a scenario through the same repetitions.

    Parameters
    ----------
    scenario : Scenario
    repeats : int, optional
        Instead of the scenario's own.
    processes : int
        Worker processes; the numbers do not depend on it.
    """
    check_scenario(scenario)
    n = scenario.repeats if repeats is None else repeats
    done = spread_over_processes(partial(_one, scenario), n, processes)
    labels = list(scenario.schedulers)
    return Comparison(
        labels,
        {(label, m): np.array([rep.values[label, m] for rep in done]) for label in labels for m in MEASURES},
        {label: np.stack([rep.busy[label] for rep in done]) for label in labels},
        {label: np.stack([rep.regret[label] for rep in done]) for label in labels},
        np.stack([rep.grid for rep in done]),
        scenario.cluster.n_slots,
    )


def arrival_bias(
    scenario: Scenario, label: str, repeats: int, groups: int = 10, *, processes: int = 1
) -> "pd.DataFrame":
    """Measure how much of their phases trials get to run, by when they were started.

    Where scores do not depend on the configuration at all (the family ``unrelated``) every difference is a bias towards
    those who come early.

    Returns
    -------
    DataFrame
        One row a group of trials, in the order of starting: group, share_run (mean share of the phases run, 0 to 1),
        low, high (95 % bootstrap interval over the repetitions, too narrow for fewer than about ten).
    """
    import pandas as pd

    check_scenario(scenario)
    if not whole(1).fits(groups):
        raise InvalidInput(f"the groups that trials come in are {whole(1).words}, got {groups!r}")
    shares = spread_over_processes(partial(_shares_run, scenario, label, groups), repeats, processes)
    intervals = [bootstrap_interval(column, "mean", resamples=2000) for column in np.array(shares).T]
    rows = [(group + 1, *interval) for group, interval in enumerate(intervals)]
    return pd.DataFrame(rows, columns=["group", "share_run", "low", "high"])


def wins_and_losses(comparisons: Mapping[str, Comparison], label: str, share: float = 0.5, *, only: str = "") -> str:
    """Say in lines where a scheduler does clearly better or worse than others.

    Parameters
    ----------
    comparisons : Mapping
        Name, such as that of the curves → comparison.
    label, share
        As in `Comparison.standing`.
    only : str
        Beginning of the measures to speak of: "regret"; by default all.
    """
    lines: dict[str, list[str]] = {"worse": [], "better": []}
    for name, comparison in comparisons.items():
        for row in comparison.standing(label, share).itertuples():
            if row.verdict in lines and str(row.measure).startswith(only):
                size = f"{row.difference:+.3g} [{row.low:.3g}, {row.high:.3g}]"
                lines[str(row.verdict)].append(f"  {name}: {row.measure} against {row.against}, {size}")
    losses, wins = lines["worse"] or ["  nowhere here"], lines["better"] or ["  nowhere here"]
    return "\n".join([f"{label} loses", *losses, f"{label} wins", *wins])


def regrets(comparisons: Mapping[str, Comparison], share: float = 0.5) -> "pd.DataFrame":
    """Set all schedulers side by side at equal node-hours.

    Returns
    -------
    DataFrame
        One row a scheduler, one column a comparison: the regret after `share` of the longest study's time,
        ``median [low, high]``, as of `Comparison.medians`.
    """
    import pandas as pd

    columns = {
        name: {label: one.regret_at(label, share).written(".3f") for label in one.labels}
        for name, one in comparisons.items()
    }
    return pd.DataFrame(columns)


@dataclass(frozen=True)
class _Repetition:
    values: dict[tuple[str, str], float]
    busy: dict[str, Array]
    regret: dict[str, Array]
    grid: Array


def check_scenario(given: object) -> None:
    """Refuse what is no scenario, such as the name of one."""
    if not isinstance(given, Scenario):
        raise InvalidInput(f"a simulation is a Scenario, such as preset('paper-46'), got {short(given)}")


def spread_over_processes(work: Callable[[int], Any], repeats: int, processes: int) -> list[Any]:
    """Have the repetitions, by their numbers, worked through by several processes; results in order."""
    if not (whole(1).fits(repeats) and whole(1).fits(processes)):
        raise InvalidInput(f"a comparison needs repeats >= 1 and processes >= 1, got {repeats!r} and {processes!r}")
    if processes == 1 or repeats <= _CHUNK:
        return list(map(work, range(repeats)))
    with process_pool(processes) as pool:
        return list(pool.map(work, range(repeats), chunksize=_CHUNK))


def _shares_run(scenario: Scenario, label: str, groups: int, number: int) -> list[float]:
    """Mean share of the phases run, by groups of trials in the order of starting."""
    repetition = scenario.repetition(number)
    scheduler, outcome = repetition.scheduler(label), repetition.run(label)
    ran = outcome.phases_run() / scheduler.n_phases
    if groups > len(ran):
        raise InvalidInput(f"{so_many(len(ran), 'trial')} of {label} fill no {groups} groups: take {len(ran)} at most")
    return [float(part.mean()) for part in np.array_split(ran, groups)]


def _one(scenario: Scenario, number: int) -> _Repetition:
    repetition = scenario.repetition(number)
    outcomes = {label: repetition.run(label) for label in scenario.schedulers}
    grid = np.linspace(0.0, max(o.makespan for o in outcomes.values()), _POINTS + 1)
    told = [o for o in outcomes.values() if len(o.scores)]  # of others every trial has failed
    best = max([repetition.best_possible(), *(o.best_score for o in told)])
    worst = min((float(o.scores.min()) for o in told), default=float("nan"))
    return _Repetition(
        {(label, m): float(getattr(o, m)) for label, o in outcomes.items() for m in MEASURES},
        {label: o.busy_slots(grid) / o.slots for label, o in outcomes.items()},
        {label: best - np.maximum(o.best_by(grid[1:]), worst) for label, o in outcomes.items()},
        grid[1:],
    )


def _column(share: float) -> int:
    """Find the moment that a share of the time comes to."""
    if not SHARE.fits(share):
        raise InvalidInput(f"a share of the time is a number {SHARE.words}, got {share!r}")
    return max(min(round(share * _POINTS), _POINTS) - 1, 0)


def _bands(label: str, curves: Array, grid: Array) -> "pd.DataFrame":
    """Median with its limits at every point, shape [repeats, points] → [points]."""
    import pandas as pd

    bands = [median_of(column, or_range=True) for column in curves.T]
    return pd.DataFrame(
        {
            "scheduler": label,
            "share_of_time": (np.arange(curves.shape[1]) + 1) / curves.shape[1],
            "at": np.median(grid, axis=0),
            "median": [band.value for band in bands],
            "low": [band.low for band in bands],
            "high": [band.high for band in bands],
        }
    )
