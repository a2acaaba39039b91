"""What is run for the HyperTrick paper's figures and tables, but for the Atari studies: those are whole studies."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.analysis import importance
from workbench.analysis.bootstrap import Interval, bootstrap_interval
from workbench.core.errors import WorkbenchError
from workbench.core.places import DATA
from workbench.core.protocols import Event
from workbench.knowledge import Frames, frames_of
from workbench.paper.experiment import Experiment, Rows, Settings, each
from workbench.paper.hypertrick.arrival import Arrivals, arrivals
from workbench.paper.hypertrick.curves import FullCurves, full_curves
from workbench.paper.hypertrick.evictions import evictions
from workbench.paper.hypertrick.replays import Draws
from workbench.simulation import Comparison, compare, preset
from workbench.study.results import Results

MEASURES = ("makespan", "occupancy", "completion_rate", "time_to_best", "best_score")


@dataclass(frozen=True)
class Repetitions:
    """Paired repetitions of a simulation that comes with the package."""

    preset: str
    repeats: int
    processes: int = 2


@dataclass(frozen=True)
class Redrawn(Draws):
    """Those of Hyperband and HyperTrick."""

    processes: int = 2


def schedulers(settings: Repetitions) -> Rows:
    """Simulate Hyperband and HyperTrick on the same configurations.

    Returns
    -------
    rows
        One a scheduler: scheduler, repeats, the medians of `MEASURES` and their 95 % bootstrap intervals (``_low``,
        ``_high``); then those of the paired differences, and of these in per cent of what the rival had in the same
        repetition. Times in the curves' units.
    """
    comparison = compare(preset(settings.preset), settings.repeats, processes=settings.processes)
    intervals = {
        name: {measure: bootstrap_interval(values, resamples=2000) for measure, values in of.items()}
        for name, of in _values(comparison).items()
    }
    return _rows(intervals, repeats=settings.repeats)


def redrawn_schedulers(settings: Redrawn) -> Rows:
    """Simulate them on recorded curves: intervals are over what other configurations might have been recorded.

    Returns
    -------
    rows
        As of `schedulers`, and draws; the intervals hold 95 % of the medians over the draws.
    """
    whole = _medians(compare(preset(settings.preset), settings.repeats, processes=settings.processes))
    # processes take draw after draw: begun anew for each they would take as long as its repetitions
    drawn = each(_of_draw, [(settings, draw) for draw in range(settings.draws)], settings.processes)
    intervals = {
        name: {
            measure: Interval(value, *map(float, np.quantile([of[name][measure] for of in drawn], (0.025, 0.975))))
            for measure, value in of_name.items()
        }
        for name, of_name in whole.items()
    }
    return _rows(intervals, repeats=settings.repeats, draws=settings.draws)


def _of_draw(settings: Redrawn, draw: int) -> dict[str, dict[str, float]]:
    return _medians(compare(preset(settings.preset).with_curves(redraw=draw), settings.each))


def _values(comparison: Comparison) -> dict[str, dict[str, Any]]:
    """Give the repetitions' `MEASURES` of every scheduler, and of the first less each other, also in per cent of it."""
    first, *others = comparison.labels
    found = {label: {m: comparison.values[label, m] for m in MEASURES} for label in comparison.labels}
    for other in others:
        gaps = {m: found[first][m] - found[other][m] for m in MEASURES}
        found[f"{first} - {other}"] = gaps
        found[f"{first} - {other}, %"] = {m: 100 * gap / found[other][m] for m, gap in gaps.items()}
    return found


def _medians(comparison: Comparison) -> dict[str, dict[str, float]]:
    return {name: {m: float(np.median(v)) for m, v in of.items()} for name, of in _values(comparison).items()}


def _rows(intervals: Mapping[str, Mapping[str, Interval]], **counts: int) -> Rows:
    rows: Rows = []
    for name, of in intervals.items():
        values = {measure: interval.value for measure, interval in of.items()}  # medians first, then intervals
        for measure, interval in of.items():
            values |= interval.columns(measure)
        rows.append({"scheduler": name, **counts} | {column: round(value, 9) for column, value in values.items()})
    return rows


@dataclass(frozen=True)
class Forests:
    """Forests to compare, and bootstrap samples of the trials."""

    forests: int = 100
    resamples: int = 100


@dataclass(frozen=True)
class SimulatedForests(Forests):
    """Those of a HyperTrick study that is simulated."""

    preset: str = "ga3c-curves"


@dataclass(frozen=True)
class RecordedForests(Forests):
    """Those of a study that was run, and recorded in `data/`."""

    study: str = "ms-pacman-hypertrick"


def importances(settings: SimulatedForests) -> Rows:
    """Tell which hyperparameters the scores of a HyperTrick study follow (App. A.2), on recorded curves.

    Returns
    -------
    rows
        One a hyperparameter, as `analysis.Importance.table` has them, with trials, r2 and r2_own of the chosen forest.

    Raises
    ------
    WorkbenchError
        The forests found nothing to tell.
    """
    events: list[Event] = []
    preset(settings.preset).repetition().run("hypertrick", events)
    return _importances(frames_of(events), settings)


def study_importances(settings: RecordedForests) -> Rows:
    """Tell the same of a recorded study."""
    return _importances(Results.of_recording(DATA / settings.study).frames, settings)


def _importances(frames: Frames, settings: Forests) -> Rows:
    result = importance(
        frames.trials,
        frames.phases,
        frames.hyperparameters,
        forests=settings.forests,
        resamples=settings.resamples,
    )
    if result.problem:
        raise WorkbenchError(result.problem)
    about = {"trials": result.trials, "r2": result.r2, "r2_own": result.r2_own}
    return [{str(name): value for name, value in row.items()} | about for row in result.table.to_dict("records")]


def _scales(minutes: Settings, more: Settings) -> dict[str, Settings]:
    """Simulations of minutes, and of more repetitions: no machine like the paper's is needed for them."""
    return {"minutes": minutes, "hours": more, "paper": more}


def _replayed(curves: str, of: str, end: str = "") -> list[Experiment[Any]]:
    """What is simulated on recorded curves, those of a preset."""
    return [
        Experiment(
            f"curves-hyperband-against-hypertrick{end}",
            shows=f"HyperTrick, Fig. 6 and Table 3, on {of}: Hyperband against HyperTrick on 46 nodes",
            source="simulated",
            run=redrawn_schedulers,
            scales=_scales(Redrawn(curves), Redrawn(curves, 10_000, draws=1000, each=50)),
        ),
        Experiment(
            f"curves-evictions{end}",
            shows=f"HyperTrick, Sec. 5.2.2, on {of}: what fast and slow, unstable and steady trials ran",
            source="simulated",
            run=evictions,
            scales=_scales(Draws(curves), Draws(curves, draws=1000)),
        ),
    ]


EXPERIMENTS: list[Experiment[Any]] = [
    Experiment(
        "hyperband-against-hypertrick",
        shows="HyperTrick, Fig. 6 and Table 3: Hyperband against HyperTrick, 46 configurations on 46 nodes",
        source="simulated",
        run=schedulers,
        scales=_scales(Repetitions("paper-46", 1000), Repetitions("paper-46", 10_000)),
    ),
    Experiment(
        "ga3c-curves",
        shows="HyperTrick, Figs 4 to 7: full learning curves of GA3C, 46 configurations, nothing stopped early",
        source="measured",
        run=full_curves,
        scales={
            "minutes": FullCurves(seeds=10, unit_frames=4000),
            "hours": FullCurves(seeds=20, unit_frames=20_000),
            "paper": FullCurves(seeds=3, unit_frames=2_000_000, game="Pong"),
        },
    ),
    *_replayed("ga3c-curves", "recorded GA3C curves"),
    Experiment(
        "curves-importance",
        shows="HyperTrick, Table 4, on recorded GA3C curves: which hyperparameters the scores follow",
        source="simulated",
        run=importances,
        scales={"minutes": SimulatedForests(), "hours": SimulatedForests(resamples=1000), "paper": SimulatedForests()},
    ),
    Experiment(
        "ga3c-curves-atari",
        shows="HyperTrick, Figs 4 to 7, on Ms. Pac-Man: full learning curves of GA3C, 46 configurations, none stopped",
        source="measured",
        run=full_curves,
        scales={
            "minutes": FullCurves(seeds=1, unit_frames=5000, game="MsPacman"),
            "hours": tuple(
                FullCurves(1, 45_000, "MsPacman", first=first, configs=min(8, 46 - first), first_seed=seed)
                for seed in range(2)
                for first in range(0, 46, 8)
            ),
            "paper": FullCurves(seeds=3, unit_frames=1_250_000, game="MsPacman"),  # some 500 games
        },
    ),
    *_replayed("ga3c-curves-atari", "recorded curves of Ms. Pac-Man", "-atari"),
    Experiment(  # not on CartPole, where many come to the most there is
        "curves-arrival",
        shows="HyperTrick, Sec. 3.2, on recorded curves of Ms. Pac-Man: its result by when the best is scheduled",
        source="simulated",
        run=arrivals,
        scales=_scales(Arrivals(), Arrivals(draws=1000)),
    ),
    Experiment(
        "ms-pacman-importance",
        shows="HyperTrick, Table 4, on the recorded Ms. Pac-Man study: which hyperparameters the scores follow",
        source="measured",
        run=study_importances,
        scales={"minutes": RecordedForests(), "hours": RecordedForests(resamples=1000), "paper": RecordedForests()},
    ),
]
