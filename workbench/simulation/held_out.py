"""What the configuration a scheduler would take is worth, by seeds it has not met: on tables with several seeds."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from workbench.analysis.bootstrap import Interval, mean_of
from workbench.core.checks import POSITIVE
from workbench.core.errors import InvalidInput, unknown
from workbench.core.failures import short
from workbench.core.garbage import uncollected
from workbench.core.protocols import Config, Scheduler
from workbench.core.showing import so_many
from workbench.simulation.cluster import VirtualCluster
from workbench.simulation.comparison import check_scenario, spread_over_processes
from workbench.simulation.curve_table import CurveTable
from workbench.simulation.race import Race
from workbench.simulation.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd

SHARES = (0.1, 0.15, 0.25, 0.35, 0.5, 1.0)
"""Budgets, as shares of the node time that running every configuration whole, with one seed, takes."""

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class HeldOut:
    """What came of paired repetitions: row n of every array is repetition n.

    Attributes
    ----------
    labels : list of str
    shares : sequence of float
        The budgets, see `SHARES`.
    regret : dict
        Label → (best - chosen) / (best - median), the worth of all configurations being the mean of their last scores
        over the held-out seeds: 0 is the best there is, 1 the median. Shape [repeats, budgets + 1]; the last column
        is the study's end.
    claimed, worth : dict
        Label → score of the configuration chosen at the end: by the seeds it was chosen with, and by the held-out ones.
        Shape [repeats].
    spent : dict
        Label → node time until the end, as a share of the same as `shares`; slots that idle count. Shape [repeats].
    seeds, held_out : int
        How many there are of each.
    """

    labels: list[str]
    shares: Sequence[float]
    regret: Mapping[str, Array]
    claimed: Mapping[str, Array]
    worth: Mapping[str, Array]
    spent: Mapping[str, Array]
    seeds: int
    held_out: int

    def mean(self, label: str, share: float | None = None) -> Interval:
        """Give the mean regret at a budget, or at the study's end, with its 95 % interval: see `mean_of`."""
        return mean_of(self._at(label, share))

    def difference(self, label: str, other: str, share: float | None = None) -> Interval:
        """Give the mean of the paired differences in regret, `label` - `other`, with its 95 % interval."""
        return mean_of(self._at(label, share) - self._at(other, share))

    def table(self) -> "pd.DataFrame":
        """One row a scheduler: mean regret at every budget and at the end, ``mean [low, high]``, and the node time."""
        import pandas as pd

        budgets: list[float | None] = [*self.shares, None]
        rows = {}
        for label in self.labels:
            cells = [self.mean(label, share).written(".3f") for share in budgets]
            rows[label] = [*cells, f"{self.spent[label].mean():.0%}"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=[*_titles(self.shares), "node time"])

    def summary(self, label: str) -> dict[str, Any]:
        """Give everything about a scheduler in JSON's types, means with their intervals; ``None`` is no limit."""
        budgets = zip(_titles(self.shares), [*self.shares, None], strict=True)
        summary: dict[str, Any] = {"regret": {title: _plain(self.mean(label, share)) for title, share in budgets}}
        return summary | {name: _plain(mean_of(getattr(self, name)[label])) for name in ("claimed", "worth", "spent")}

    def _at(self, label: str, share: float | None) -> Array:
        if label not in self.regret:
            raise unknown("scheduler of this comparison", label, self.labels)
        if share is not None and share not in self.shares:
            raise unknown("budget", str(share), map(str, self.shares))
        return self.regret[label][:, -1 if share is None else list(self.shares).index(share)]


def compare_held_out(
    scenario: Scenario,
    repeats: int | None = None,
    *,
    shares: Sequence[float] = SHARES,
    to_end: bool = True,
    processes: int = 1,
) -> HeldOut:
    """Run every scheduler on tuning seeds, and judge at several budgets what it would choose by the other seeds.

    In one repetition all schedulers meet the same configurations in the same order, the same tuning seeds and the same
    node speeds. What a scheduler would choose is what its `leader()` says; for one that says nothing, the configuration
    with the best mean of its trials' latest scores.

    Parameters
    ----------
    scenario : Scenario
        With ``seeds``, and curves that are a table.
    repeats : int, optional
        Instead of the scenario's own.
    shares : sequence of float
        Budgets in rising order, see `SHARES`.
    to_end : bool
        Whether studies run on after the last budget; where they are cut there, that is what is meant by their end.
    processes : int
        Worker processes; the numbers do not depend on it.
    """
    budgets = tuple(shares) if isinstance(shares, Iterable) else ()
    if not (budgets and all(map(POSITIVE.fits, budgets)) and list(budgets) == sorted(budgets)):
        raise InvalidInput(f"budgets rise, each {POSITIVE.words}, as {SHARES} do; got {short(shares)}")
    check_scenario(scenario)
    table = table_of(scenario)
    done = spread_over_processes(
        partial(_one, scenario, budgets, to_end), scenario.repeats if repeats is None else repeats, processes
    )
    labels = list(scenario.schedulers)
    by_label = {label: np.array([of_repeat[label] for of_repeat in done]) for label in labels}  # [repeats, budgets + 4]
    return HeldOut(
        labels,
        budgets,
        {label: rows[:, :-3] for label, rows in by_label.items()},
        {label: rows[:, -3] for label, rows in by_label.items()},
        {label: rows[:, -2] for label, rows in by_label.items()},
        {label: rows[:, -1] for label, rows in by_label.items()},
        scenario.n_seeds,
        len(table.seeds) - scenario.n_seeds,
    )


def table_of(scenario: Scenario) -> CurveTable:
    """Give a scenario's table, or raise `InvalidInput` if nothing can be held out."""
    table = scenario.source.table
    if table is None:
        raise InvalidInput("held-out seeds need curves of kind 'table', with several seeds a configuration")
    if len(table.seeds) <= scenario.n_seeds:
        raise InvalidInput(
            f"the table has {so_many(len(table.seeds), 'seed')} a configuration, and {scenario.n_seeds} to choose by "
            f"leave none held out: {len(table.seeds) - 1} at most"
        )
    cluster = scenario.cluster
    if cluster.hazards.any or cluster.startup_s or cluster.switch_s:
        raise InvalidInput("with held-out seeds nothing crashes, hangs or takes time to start: leave that out")
    return table


def last(scores: Array, share: float) -> Array:
    """Cut out the last share of the phases, one at least; [configs, seeds, phases]."""
    return scores[:, :, -max(1, round(share * scores.shape[2])) :]


def latest(scores: Array, share: float) -> Array:
    """Give the mean over seeds and the last share of the phases; [configs, seeds, phases] → [configs]."""
    mean: Array = last(scores, share).mean(axis=(1, 2))
    return mean


def regrets_of(worth: Array) -> Array:
    """Give by how much each falls short of the best, in shares of the best's lead over the median; 0 without a lead."""
    best = worth.max()
    lead = float(best - np.median(worth))
    return (best - worth) / lead if lead else np.zeros(len(worth))


class Draw:
    """The seeds of one repetition: those that schedulers meet, and what every configuration is worth by the others.

    Parameters
    ----------
    table : CurveTable
    n_seeds : int
        Seeds that schedulers meet.
    seed : int
        Of the draw.
    """

    def __init__(self, table: CurveTable, n_seeds: int, seed: int) -> None:
        self.table = table
        order = np.random.default_rng([seed, 4]).permutation(len(table.seeds))
        self.tuning, self.held_out = order[:n_seeds], order[n_seeds:]
        #: Of each row and tuning seed: duration and score of every phase.
        self.curves = np.stack([table.durations, table.scores], axis=-1)[:, self.tuning].tolist()
        self.worth = table.scores[:, self.held_out, -1].mean(axis=1)
        self.regrets = regrets_of(self.worth).tolist()
        self.whole = float(table.durations[:, self.tuning[0]].sum())


class Met:
    """The phase model of one scheduler's study on a draw: the n-th trial of a configuration meets its n-th tuning seed.

    After the last seed they begin again.

    Attributes
    ----------
    row_of : dict
        Trial → row of its configuration.
    trials_of : dict
        Row → its trials.
    """

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._curves: dict[int, list[tuple[float, float]]] = {}  # by trial, see `Draw.curves`
        self.row_of: dict[int, int] = {}
        self.trials_of: dict[int, list[int]] = defaultdict(list)

    def phase(self, trial: int, phase: int, config: Config, seed: int) -> tuple[float, float]:
        """Give the recorded duration and score."""
        if trial not in self._curves:
            self._meet(trial, config)
        return self._curves[trial][phase]

    def _meet(self, trial: int, config: Config) -> None:
        draw, row = self._draw, self._draw.table.row(config)
        self._curves[trial] = draw.curves[row][len(self.trials_of[row]) % len(draw.tuning)]
        self.row_of[trial] = row
        self.trials_of[row].append(trial)


class Choosing:
    """A scheduler's study on a draw, and which configuration it would take at any moment.

    Parameters
    ----------
    scheduler : Scheduler
        A fresh one.
    draw : Draw
    cluster : VirtualCluster
    """

    def __init__(self, scheduler: Scheduler, draw: Draw, cluster: VirtualCluster) -> None:
        self.scheduler, self.met = scheduler, Met(draw)
        self.race = Race(scheduler, self.met, cluster)
        self.scores: dict[int, list[float]] = {}  # of each trial that has reported, in order
        self._n_read = 0

    def run(self, marks: Sequence[float], smooth: Sequence[int] = (1,), to_end: bool = True) -> list[list[int]]:
        """Run to the end, or to the last of the times; give the row chosen at each of them, in rising order, and then.

        One list for each number of `smooth`, see `choice`.
        """
        chosen = []
        for mark in [*marks, math.inf] if to_end else marks:
            ended = self.race.run(mark)
            self._read()
            chosen.append([self.choice(n) for n in smooth])
        if not to_end:
            self.race.now = self.race.now if ended else marks[-1]
            chosen.append(chosen[-1])
        return [list(rows) for rows in zip(*chosen, strict=True)]

    def choice(self, smooth: int = 1) -> int:
        """Give the row of the configuration that would be taken now; -1 before the first report.

        Where the scheduler names no leader, a trial counts by the mean of its latest scores, `smooth` of them.
        """
        leader = getattr(self.scheduler, "leader", None)
        if callable(leader):
            trial = leader()
            return -1 if trial is None else self.met.row_of[trial]
        return max(self.met.trials_of, key=partial(self.claimed, smooth=smooth)) if self.scores else -1

    def claimed(self, row: int, smooth: int = 1) -> float:
        """Give the mean of a configuration's latest scores, over its trials."""
        curves = [self.scores[trial][-smooth:] for trial in self.met.trials_of[row] if trial in self.scores]
        return sum(sum(latest) / len(latest) for latest in curves) / len(curves) if curves else -math.inf

    def _read(self) -> None:
        """Take in what has been reported since the last time."""
        for _, score, trial in self.race.tally.ended[self._n_read :]:
            self.scores.setdefault(trial, []).append(score)
        self._n_read = len(self.race.tally.ended)


def _one(scenario: Scenario, shares: Sequence[float], to_end: bool, number: int) -> dict[str, list[float]]:
    """Run all schedulers of a repetition: regret at each budget and at the end, claimed, worth, node time.

    Those that differ only in how many scores the choice is averaged over take the same decisions: one race for all.
    """
    repetition = scenario.repetition(number)
    draw, cluster = Draw(table_of(scenario), scenario.n_seeds, repetition.seed), repetition.cluster
    speed = sum(cluster.slot_speeds())
    marks = [share * draw.whole / speed for share in shares]
    at_random = sum(draw.regrets) / len(draw.regrets)
    by_label = {}
    for labels in scenario.alike():
        study = Choosing(repetition.scheduler(labels[0]), draw, cluster)
        smooth = [scenario.smooth_of(label) for label in labels]
        with uncollected():
            rows = study.run(marks, smooth, to_end)
        for label, chosen, n in zip(labels, rows, smooth, strict=True):
            regret = [at_random if row < 0 else draw.regrets[row] for row in chosen]
            last = chosen[-1]  # none where nothing has been reported
            known = (study.claimed(last, n), float(draw.worth[last])) if last >= 0 else (math.nan, math.nan)
            outcome = *known, study.race.now * speed / draw.whole
            by_label[label] = [*regret, *outcome]
    return by_label


def _plain(interval: Interval) -> dict[str, float | None]:
    """Name the three numbers; JSON holds no infinite ones."""
    return {name: number if math.isfinite(number) else None for name, number in interval._asdict().items()}


def _titles(shares: Sequence[float]) -> list[str]:
    return [*(f"{share:.0%}" for share in shares), "end"]
