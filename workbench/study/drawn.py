"""The figures of a study, from its frames, and what each shows."""

from typing import TYPE_CHECKING

import pandas as pd
import plotly.graph_objects as go

from workbench import analysis
from workbench.core.describe import explain_of
from workbench.knowledge import Frames
from workbench.study.rows import front_of
from workbench.viz import figures

if TYPE_CHECKING:
    from workbench.study.results import Results

_POINTS = 15_000  # of all learning curves in a figure
CAPTIONS = {
    "occupancy": (
        "Slots over time: one bar a phase, the later the lighter. The faint ground is idle, hatched is held or lost."
    ),
    "survival": "Trials phase by phase: how many began each, and what became of them.",
    "learning curves": "Every trial's score against the time it trained. Within a phase an agent's is of its last "
    "games, whichever phase they are of, at the end of that phase's alone: it may leap there.",
    "best so far": "The best score reported so far, against the study's clock.",
    "scores by phase": "How the scores at the end of each phase are distributed, and how many trials ended it.",
    "search space": "Where the trials of a phase lie in the search space, coloured by their score in it.",
    "score by hyperparameter": "Scores at phase ends against each hyperparameter; crosses are the last "
    "scores of trials that were stopped or failed.",
    "parallel coordinates": "A line a trial through its hyperparameters to its last score.",
    "importance": "What random forests make of the last scores of all trials that began with weights of their own, "
    "stopped ones among them; bars with 95 % intervals.",
    "partial dependence": "The score that the forests predict for each value of the hyperparameters that matter "
    "most, the others as they were tried; bands are 95 % over configurations.",
    "landscape": "The score that forests predict over the two hyperparameters that matter most, phase by phase, each "
    "phase in the colours of its own scores; a star is the best.",
    "objectives": "Every configuration's score against the second objective; none beats those on the front in both.",
    "population": "Every member's score phase by phase, with the best and the median of the population.",
    "hyperparameters over time": "What every member ran with in each phase, and the schedule of the best weights.",
    "lineage": "Members along the clock, coloured by the founder their weights descend from; a mark is a copy.",
    "phylogenetic tree": "The descent of all weights; what died out is faint, the best trial's descent thick.",
}


def drawn_of(results: "Results") -> dict[str, go.Figure]:
    """Draw all figures of a study by their names in `CAPTIONS`; see `Results.figures`."""
    f, size = results.frames, results.size
    used = analysis.occupancy(f.spans, f.slots, f.wall_s)
    searching = analysis.searching(f.trials)
    survived = analysis.survival(searching, f.searched, f.decisions, size.n_phases)
    importance = results.importance()
    drawn = {
        "occupancy": figures.node_occupancy(f.spans, f.slots, f.wall_s, occupancy=used.share),
        "survival": figures.phase_survival(survived, [*size.began] or None, [*size.fewest] or None, state=f.state),
        "learning curves": figures.learning_curves(
            curves_of(f),
            f.trials,
            hyperparameters=f.hyperparameters,
            decisions=f.decisions,
            explain=explain_of(results.spec.get("scheduler")),
        ),
        "best so far": figures.best_so_far(analysis.best_so_far(f.searched, f.aim.mode), f.wall_s),
        "scores by phase": figures.score_by_phase(f.searched, searching),
        "search space": figures.space_by_phase(f.searched, searching, f.hyperparameters),
        "score by hyperparameter": figures.score_by_hyperparameter(f.searched, searching, f.hyperparameters),
        "parallel coordinates": figures.parallel_coordinates(searching, f.hyperparameters, f.aim.mode),
        "importance": figures.hyperparameter_importance(importance.table, str(importance)),
        "partial dependence": figures.partial_dependence(
            analysis.partial_dependence(f.trials, f.phases, f.hyperparameters, fitted=importance), str(importance)
        ),
        "landscape": figures.landscape(
            analysis.landscape(f.trials, f.phases, f.hyperparameters, fitted=importance), str(importance), f.aim.mode
        ),
    }
    if f.aim.second is not None:
        drawn["objectives"] = figures.objectives(front_of(results), f.aim.second, f.aim.second_mode)
    return drawn | population_of(results)


def population_of(results: "Results") -> dict[str, go.Figure]:
    """Draw a population's scores, hyperparameters, members and descent; nothing where no weights were handed on."""
    if not results.has_lineage:
        return {}
    known, members, names = results.lineage, results.schedules, results.frames.hyperparameters
    best = analysis.best_trial(members, results.frames.aim.mode)
    schedule = None if best is None else results.best_schedule(best)
    return {
        "population": figures.population_curves(members, results.frames.aim.mode),
        "hyperparameters over time": figures.hyperparameters_over_time(members, names, schedule),
        "lineage": figures.member_lineage(known, results.frames.wall_s),
        "phylogenetic tree": figures.phylogenetic_tree(analysis.phylogeny(known, best)),
    }


def curves_of(frames: Frames, n_studies: int = 1) -> pd.DataFrame:
    """Give a study's learning curves without what nobody sees of very long ones; extremes and ends of phases stay.

    In a figure of `n_studies` each has its part of the points.
    """
    curves = analysis.learning_curves(frames.phases, frames.metrics, trials=frames.trials)
    most = _POINTS // n_studies
    if len(curves) <= most:
        return curves
    ordered = curves.sort_values(["trial", "x"], kind="stable", ignore_index=True)
    numbers = ordered[["trial", "x", "score"]].to_numpy(float)
    share = max(8, most // ordered["trial"].nunique())
    chosen = ordered["phase_end"].to_numpy(bool, copy=True)
    chosen[analysis.thin_curves(numbers[:, 0].astype(int), numbers[:, 1], numbers[:, 2], share)] = True
    return ordered[chosen]
